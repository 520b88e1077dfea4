"""BERT from raw text: a corpus in, a network with its tokenizer out; mask filling and vectors.

model = sememe.BERT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
model.fill("The [MASK] sat on the mat.")
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.examples.batches import Split
from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.masking.config import MaskingConfig
from sememe.models.bert.config import PRESETS, BERTConfig, BERTTrainingConfig
from sememe.models.bert.network import BERTNetwork, MaskedObjective
from sememe.models.language.baselines import targets_of, token_counts, unigram_metrics
from sememe.models.language.features import frame, room, stacked, token_vectors
from sememe.models.language.subword_model import SubwordModel
from sememe.nn.rows import windows
from sememe.progress import SILENT, Reporter
from sememe.tokens.subwords.store import SubwordStore, open_or_build_subwords
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.training.device import Validation
from sememe.training.distributed import Processes


class Guess(NamedTuple):
    """A candidate token for a masked position."""

    token: str
    token_id: int
    probability: float


def _most_likely(probabilities_V: np.ndarray, tokenizer: SubwordTokenizer, top: int) -> list[Guess]:
    # Stable, so that ties are in the order of ids.
    order = np.argsort(-probabilities_V[: tokenizer.vocab_size], kind="stable")
    chosen = [int(i) for i in order[: top + len(tokenizer.special_ids)]]
    named = [token_id for token_id in chosen if token_id not in tokenizer.special_ids]
    return [
        Guess(tokenizer.token(token_id), token_id, float(probabilities_V[token_id]))
        for token_id in named[:top]
    ]


class MaskedScore(NamedTuple):
    """The accuracy on masked tokens: of the network, and of always the most frequent token."""

    accuracy: float
    unigram_accuracy: float
    loss: float  # nats
    num_tokens: int


def score_masked(
    network: BERTNetwork,
    tokenizer: SubwordTokenizer,
    store: SubwordStore,
    *,
    num_batches: int,
    seed: int,
) -> MaskedScore:
    """Mask tokens of a text as in training, and count correct predictions."""
    store.validation_share = 0.0
    source = MaskedBatches(
        store, tokenizer, MaskingConfig(), length=min(128, network.seen_length), batch_size=16,
        seed=seed, next_sentence=False, split="train",
    )  # fmt: skip
    validation = Validation(source, num_batches)
    untrained = network.untrained
    objective = MaskedObjective(network, has_pairs=False)
    device = network.embedding.tokens.weight.device
    metrics = validation(objective, device, Processes())
    network.untrained = untrained
    counts = token_counts(store, tokenizer.vocab_size)
    counted = unigram_metrics(counts, source, validation.num_batches)
    batches = map(source.batch, range(validation.num_batches))
    return MaskedScore(
        accuracy=metrics["masked_accuracy"],
        unigram_accuracy=counted["unigram_accuracy"],
        loss=metrics["masked_loss"],
        num_tokens=sum(len(targets_of(batch)) for batch in batches),
    )


class BERT(SubwordModel):
    """BERT (Devlin et al. 2019): hidden tokens and next sentences.

    model = sememe.BERT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
    """

    kind = "bert"
    tokenizer_kind = "wordpiece"
    training_class = BERTTrainingConfig
    config_class, network_class, presets = BERTConfig, BERTNetwork, PRESETS
    more_options = {"masking": MaskingConfig}  # noqa: RUF012

    def lacking(self) -> dict[str, str]:
        """What needs a head that is missing from its files, or was not trained."""
        untrained = frozenset[str]() if self.network is None else self.network.untrained
        why = f"it came without {' and '.join(sorted(untrained))}"
        heads = {"fill": {"masked head"}, "follows": {"pooler", "next head"}}
        return {call: why for call, needed in heads.items() if untrained & needed}

    @torch.no_grad()
    def fill(self, text: str, *, top: int = 5) -> list[list[Guess]]:
        """The most likely tokens for every [MASK] of a text, in order, without special tokens."""
        network, tokenizer = self.trained("fill"), self.tokenizer
        if top < 1:
            raise OptionError(f"top must be at least 1, not {top}.")
        ids = tokenizer.encode(text).ids
        if not (ids == tokenizer.mask_id).any():
            raise InputError("The text holds no [MASK]: put [MASK] in place of a word.")
        guesses = []
        for window in windows(len(ids), room(network), room(network) // 2):
            row = frame(network, tokenizer, ids[window.start : window.end])
            places = np.flatnonzero(ids[window.first : window.last] == tokenizer.mask_id)
            hidden_TD = network(*stacked([row], self.device))[0]
            places += window.first - window.start + row.num_before
            logits_MV = network.masked_logits(hidden_TD[torch.from_numpy(places).to(self.device)])
            chances_MV = logits_MV.float().softmax(-1).cpu().numpy()
            guesses += [_most_likely(chances_V, tokenizer, top) for chances_V in chances_MV]
        return guesses

    @torch.no_grad()
    def follows(self, first: str, second: str) -> float:
        """The probability that the second text follows the first."""
        network, tokenizer = self.trained("follows"), self.tokenizer
        first_ids, second_ids = (own.ids for own in tokenizer.encode_batch([first, second]))
        row = frame(network, tokenizer, first_ids, second_ids)
        if len(row.ids) > network.config.max_length:
            raise InputError(
                f"The two texts have {len(row.ids):,} tokens together, but this network sees no "
                f"more than {network.config.max_length:,} at once: give the end of the first and "
                "the start of the second."
            )
        hidden_BTD = network(*stacked([row], self.device))
        logits_2 = network.next_logits(network.pool(hidden_BTD[:, 0]))[0]
        return float(logits_2.float().softmax(-1)[0])

    def embed_expected(self, texts: Sequence[str], spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """The last layer at one [MASK] in place of the word of each text."""
        hidden = [
            f"{text[:start]}{self.tokenizer.token(self.tokenizer.mask_id)}{text[end:]}"
            for text, (start, end) in zip(texts, spans, strict=True)
        ]
        found = token_vectors(self.trained(), self.tokenizer, hidden)
        rows = []
        for (start, _), own in zip(spans, found, strict=True):
            is_mask_T = own.encoding.ids == self.tokenizer.mask_id
            places = np.flatnonzero(is_mask_T & (own.encoding.starts >= start))
            if not len(places):
                raise ArtifactError("The tokenizer of this BERT does not read [MASK] as one token.")
            rows.append(own.vectors_TD[places[0]])
        return np.array(rows, np.float32).reshape(-1, self.config.width)

    def evaluate(
        self,
        data: Any,
        *,
        store: str | Path | None = None,
        num_batches: int = 64,
        seed: int = 1,
        progress: Reporter | None = None,
    ) -> MaskedScore:
        """Mask about every seventh token of a text and count correct predictions.

        `store` is the path of the token store; `num_batches` of 16 rows are evaluated.
        """
        tokens = open_or_build_subwords(
            data, self.tokenizer, text=self.text, path=store, progress=progress or SILENT
        )
        return score_masked(
            self.trained("fill"), self.tokenizer, tokens, num_batches=num_batches, seed=seed
        )

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the network, its training and its examples."""
        return super().manifest() | {"masking": asdict(self.masking)}

    def objective(self) -> Any:
        """The objective: masked tokens and, if the options say so, next sentences."""

        return MaskedObjective(self.network, has_pairs=self.training.next_sentence)

    def source(self, store: Any, split: Split) -> Any:
        """Batches of masked rows."""

        return MaskedBatches(
            store, self.tokenizer, self.masking, length=self.training.length,
            batch_size=self.training.batch_size, seed=self.training.seed,
            next_sentence=self.training.next_sentence, split=split,
        )  # fmt: skip
