"""BERT from raw text: a corpus in, a network with its tokenizer out; mask filling and vectors.

model = sememe.BERT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
model.fill("The [MASK] sat on the mat.")
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from sememe.errors import ArtifactError, InputError, OptionError, UnsupportedError
from sememe.examples.batches import Split
from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.scheduled import Schedule
from sememe.models.bert.config import (
    PRESETS,
    BERTConfig,
    BERTTrainingConfig,
    DistillationConfig,
    DomainConfig,
    gpu_rows,
    recipe_options,
)
from sememe.models.bert.distillation import DistilledObjective, check_teacher, start_from
from sememe.models.bert.families import FamilyConfig
from sememe.models.bert.network import BERTNetwork, MaskedObjective
from sememe.models.bert.new_words import choose_words, with_words
from sememe.models.bert.replaced import (
    ReplacedObjective,
    detection_metrics,
    discriminator_config,
    new_generator,
    part_embedding,
    share_embedding,
)
from sememe.models.bert.word_perplexity import WordPerplexity, word_perplexity
from sememe.models.fitting import Request
from sememe.models.huggingface.folder import (
    load_network,
    manifest_of,
    token_fields,
    write_network,
)
from sememe.models.huggingface.layout import CONFIG
from sememe.models.language.baselines import targets_of, token_counts, unigram_metrics
from sememe.models.language.features import frame, room, shown, stacked, token_vectors
from sememe.models.language.subword_model import SubwordModel
from sememe.models.language.texts import Metrics, Texts
from sememe.nn.rows import windows
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import MANIFEST, write_json
from sememe.tokens.subwords.store import SubwordStore, open_or_build_subwords
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.training.device import Validation
from sememe.training.distributed import Processes
from sememe.training.lora import LoRAOptions
from sememe.training.weights import weights_hash

GENERATOR = "generator"  # the folder in that of a model trained with rtd


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
        Guess(shown(tokenizer, token_id), token_id, float(probabilities_V[token_id]))
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
    learned = (*SubwordModel.learned, "generator")
    tokenizer_kind = "wordpiece"

    @property
    def predicted_share(self) -> float:  # type: ignore[override]
        """The share of tokens that are masked, and so predicted."""
        return (self.masking.rate + (self.training.last_rate or self.masking.rate)) / 2

    training_class = BERTTrainingConfig
    config_class, network_class, presets = BERTConfig, BERTNetwork, PRESETS
    more_options = {  # noqa: RUF012
        "masking": MaskingConfig, "lora": LoRAOptions, "domain": DomainConfig,
        "distillation": DistillationConfig,
    }  # fmt: skip
    domain: DomainConfig
    distillation: DistillationConfig

    def __init__(
        self,
        preset: str = "tiny",
        *,
        pretrained: str | Path | Self | None = None,
        recipe: str = "paper",
        **options: Any,
    ) -> None:
        """Take a preset by name or a model to continue, and options; families have no pairs.

        A recipe sets the options that are not given: modern learns more per token than the paper's.
        """
        self._of_recipe = recipe_options(recipe, options | {"pretrained": pretrained})
        super().__init__(preset, pretrained=pretrained, **options | self._of_recipe)
        self._is_sized = not options.get("batch_size") and self._is_on_gpu()
        if self._is_sized:
            rows = gpu_rows(self.preset, self.training.length, self.training.accumulate)
            self.training = replace(self.training, batch_size=rows)
        # What fills masks in place of a network that detects replaced tokens.
        self.generator: BERTNetwork | None = None
        self._has_pairs = True
        self._before = self.pretrained  # without new words
        self._teacher: BERT | None = None  # once the text is opened
        self._num_copied = 0  # of the teacher's blocks
        if self.training.architecture == "modern":
            self.config = self._modern(options)
        if self.is_rtd:
            self._check_pretrained(options)
            self.config = discriminator_config(self.config)
        if self.config.family != "bert":
            self.training = replace(self.training, next_sentence=False)

    def _is_on_gpu(self) -> bool:
        """Whether a training would be on a GPU; a device that is not there is refused later."""
        name = self.training.device
        return name == "cuda" or (name == "auto" and torch.cuda.is_available())

    @property
    def is_rtd(self) -> bool:
        """Whether it is trained to detect replaced tokens."""
        return bool(self.training.objective == "rtd")

    def _modern(self, options: dict[str, Any]) -> BERTConfig:
        if self.pretrained is None:
            for name, has in (("positions", "rotary positions"), ("num_segments", "no segments")):
                if name in options:
                    raise OptionError(f"The architecture modern has {has}: leave {name} out.")
            found = FamilyConfig.modern(self.config)
            # The usual value of BERT's blocks is not that of these.
            return replace(found, norm_eps=options.get("norm_eps", found.norm_eps))
        if not self.config.is_modern:
            raise OptionError(
                f"{self.pretrained!r} has other blocks: a continued model keeps its architecture."
            )
        return self.config

    def _check_pretrained(self, options: dict[str, Any]) -> None:
        if self.lora.lora:
            raise OptionError(
                "lora does not train replaced-token detection: leave one of them out."
            )
        if self.pretrained is None:
            return
        if self.pretrained.generator is None:
            raise OptionError(
                f"{self.pretrained!r} has no generator beside it: replaced-token detection starts "
                "from new weights, or continues a model that was trained with it."
            )
        if "generator_share" in options:
            raise OptionError("generator_share is that of the model to continue: leave it out.")

    @property
    def filler(self) -> BERTNetwork:
        """The network that predicts masked tokens."""
        return self.trained("fill") if self.generator is None else self.generator

    def _shape(self) -> str:
        family = "" if self.config.family == "bert" else f"{self.config.family}, "
        return family + super()._shape()

    def lacking(self) -> dict[str, str]:
        """What needs a head that is missing from its files, or was not trained."""
        untrained = frozenset[str]() if self.network is None else self.network.untrained
        why = f"it came without {' and '.join(sorted(untrained))}"
        heads = {"fill": {"masked head"}, "follows": {"pooler", "next head"}}
        if self.generator is not None:
            del heads["fill"]
        found = {call: why for call, needed in heads.items() if untrained & needed}
        if self.config.positions == "rotary":
            found["positions"] = "its positions are rotations, not vectors"
        return found

    @torch.no_grad()
    def fill(self, text: str, *, top: int = 5) -> list[list[Guess]]:
        """The most likely tokens for every [MASK] of a text, in order, without special tokens."""
        network, tokenizer = self.filler, self.tokenizer
        if top < 1:
            raise OptionError(f"top must be at least 1, not {top}.")
        # Every family takes [MASK], whatever its own name for the token.
        name = tokenizer.token(tokenizer.mask_id)
        ids = tokenizer.encode(text.replace("[MASK]", name)).ids
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
        return score_masked(self.filler, self.tokenizer, tokens, num_batches=num_batches, seed=seed)

    def word_perplexity(
        self,
        data: Any,
        *,
        store: str | Path | None = None,
        num_words: int = 20_000,
        seed: int = 1,
        progress: Reporter | None = None,
    ) -> WordPerplexity:
        """The perplexity per masked word of a text, comparable between vocabularies."""
        tokens = open_or_build_subwords(
            data, self.tokenizer, text=self.text, path=store, progress=progress or SILENT
        )
        return word_perplexity(self.filler, self.tokenizer, tokens, num_words=num_words, seed=seed)

    @torch.no_grad()
    def replaced(self, text: str) -> list[tuple[str, float]]:
        """The tokens of a text, each with the probability that it was replaced by another."""
        network, tokenizer = self.trained(), self.tokenizer
        if not self.config.has_replaced_head or "replaced head" in network.untrained:
            raise UnsupportedError(
                "Only a BERT trained with objective rtd detects replaced tokens; this one was not."
            )
        ids, found = tokenizer.encode(text).ids, []
        for window in windows(len(ids), room(network), room(network) // 2):
            row = frame(network, tokenizer, ids[window.start : window.end])
            logits_T = network.replaced_logits(network(*stacked([row], self.device))[0])
            first = window.first - window.start + row.num_before
            own = logits_T[first : first + window.last - window.first].sigmoid().tolist()
            names = [tokenizer.token(int(own)) for own in ids[window.first : window.last]]
            found += list(zip(names, own, strict=True))
        return found

    def to(self, device: str) -> Self:
        """Move the network, and its generator, to a device: cpu, cuda, mps, or auto."""
        super().to(device)
        if self.generator is not None:
            self.generator.to(self.device)
        return self

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the network, its training and its examples."""
        generator = {}
        if self.generator is not None:
            generator = {"generator": self.generator.config.to_dict()}
        has_domain = self.domain.add_words or self.domain.replay
        more: dict[str, Any] = {"domain": self.domain} if has_domain else {}
        more |= {"distillation": self.distillation} if self.distillation.teacher else {}
        own = {name: options.to_dict() for name, options in more.items()}
        return super().manifest() | {"masking": asdict(self.masking)} | generator | own

    def open_text(self, corpus: Any, request: Request) -> Texts:
        """Tokenize every text, with the new words and the teacher's tokenizer, if there are any."""
        if self.domain.add_words:
            self._add_words(corpus, request.reporter)
        if self.distillation.teacher:
            request = self._taught(request)
        text = super().open_text(corpus, request)
        if not self.domain.replay:
            return text
        if self.pretrained is None:
            raise OptionError("replay repeats the text of a trained model: name it with --from.")
        place = None if request.store is None else Path(f"{request.store}-replay")
        old = open_or_build_subwords(
            self.domain.replay, self.tokenizer, text=self.text, path=place,
            workers=self.training.workers, progress=request.reporter,
        )  # fmt: skip
        old.validation_share = self.training.validation_share
        return text.with_replay(old, self.domain.replay_share)

    def _add_words(self, corpus: Any, reporter: Reporter) -> None:
        """Continue a model that has the words of the text as tokens."""
        if self._before is None:
            raise OptionError(
                "add_words extends a trained model: name it with --from (pretrained)."
            )
        if self.lora.lora or self.is_rtd:
            raise OptionError("add_words trains new vectors: leave out lora and objective rtd.")
        new = choose_words(
            self.domain.add_words, corpus, self._before.tokenizer, self.text, reporter,
            workers=self.training.workers,
        )  # fmt: skip
        self.pretrained = with_words(self._before, new.words)
        self.config = replace(self.config, vocab_size=self.pretrained.config.vocab_size)
        reporter.note(str(new))

    def _taught(self, request: Request) -> Request:
        """Open the teacher; its tokenizer is the student's."""
        if self.is_rtd:
            raise OptionError("A teacher is for masked tokens: leave out objective rtd.")
        if self.training.compile == "step":
            raise OptionError("compile step does not compile a teacher: leave one of them out.")
        teacher = self._opened(self.distillation.teacher)
        tokenizer = request.tokenizer
        if isinstance(tokenizer, str | Path):
            tokenizer = SubwordTokenizer.load(tokenizer)
        if self.pretrained is not None:
            tokenizer = self.pretrained.tokenizer
        check_teacher(teacher, self, tokenizer or teacher.tokenizer)
        self._teacher = teacher
        given = request.tokenizer if self.pretrained is not None else teacher.tokenizer
        return replace(request, tokenizer=given)

    def new_network(self) -> Any:
        """A network of the model's sizes, which may start from a teacher's blocks."""
        network = super().new_network()
        if self._teacher is not None and self.pretrained is None:
            self._num_copied = start_from(network, self._teacher.network)
        return network

    def plan_of(self, text: Any) -> dict[str, Any]:
        """What identifies a run."""
        plan = super().plan_of(text)
        if self._teacher is not None:
            plan["distillation"] = self.distillation.to_dict() | {
                "teacher": weights_hash(self._teacher.network)
            }
        if self.is_rtd and self.pretrained is not None:
            assert self.pretrained.generator is not None
            plan["content"]["generator"] = weights_hash(self.pretrained.generator)
        return plan

    def learn(self, text: Any, plan: dict[str, Any], request: Request) -> None:
        """Train a network on a text; one with a generator has its own embedding afterwards."""
        super().learn(text, plan, request)
        if self.generator is not None:
            self.generator.to("cpu").eval()
            part_embedding(self.network, self.generator)

    def begin(self, text: Any, source: Any, reporter: Reporter) -> Any:
        """The network with its objective: masked tokens alone if no pair has a label."""
        if self._of_recipe:
            told = ", ".join(f"{name} {own}" for name, own in self._of_recipe.items())
            reporter.note(f"The recipe sets: {told}.")
        if self._is_sized:
            reporter.note(
                f"{self.training.batch_size:,} rows of {self.training.length:,} tokens per step, "
                "chosen for a GPU (batch_size)."
            )
        self._has_pairs, before = bool(source.num_labelled), self.network.untrained
        objective = super().begin(text, source, reporter)
        if self.pretrained is not None:
            for head in sorted(before - self.network.untrained):
                reporter.note(
                    f"The model to continue has no {head}: it starts with random weights."
                )
        if self._teacher is not None:
            reporter.note(self._told_teacher())
        if self.generator is not None:
            sizes = self.generator.config
            reporter.note(
                f"Replaced tokens are detected; the generator has {sizes.num_layers} layers × "
                f"{sizes.width}. Next sentences are not trained."
            )
        elif self.config.family != "bert":
            reporter.note(
                f"Masked tokens alone are trained: next sentences are BERT's, and this is a "
                f"network of the family {self.config.family}."
            )
        return objective

    def _told_teacher(self) -> str:
        """What is learned from the teacher."""
        assert self._teacher is not None
        options, what = self.distillation, []
        if options.soft_weight and "masked head" not in self._teacher.network.untrained:
            what.append("masked predictions")
        if options.relation_weight:
            what.append("token relations")
        if not what:
            raise OptionError(
                f"The teacher {self._teacher!r} has no masked head: give relation_weight."
            )
        begins = f"{self._num_copied} of its blocks are the start" if self._num_copied else (
            "the student starts with weights of its own"
        )  # fmt: skip
        return f"The teacher {self._teacher!r} teaches {' and '.join(what)}; {begins}."

    def objective(self) -> Any:
        """Masked tokens and, if the options say so, next sentences; or replaced tokens."""
        if not self.is_rtd:
            has_pairs = self.training.next_sentence and self._has_pairs
            if self._teacher is not None:
                return DistilledObjective(
                    self.network, self._teacher.network, self.distillation, has_pairs=has_pairs
                )
            return MaskedObjective(self.network, has_pairs=has_pairs)
        if self.pretrained is None:
            generator = self._new_generator(self.training.seed)
        else:
            assert self.pretrained.generator is not None
            generator = deepcopy(self.pretrained.generator)
        generator.seen_length = self.network.seen_length
        generator.stack.recompute = self.training.recompute
        share_embedding(self.network, generator, is_trained=self.pretrained is not None)
        self.generator = generator
        return ReplacedObjective(
            self.network, generator, weight=self.training.replaced_weight, seed=self.training.seed
        )

    def _new_generator(self, seed: int) -> BERTNetwork:
        assert isinstance(self.config, FamilyConfig)
        return new_generator(self.config, self.training.generator_share, seed)

    def add_metrics(self, text: Any, validation: Any) -> Callable[[Metrics], Metrics]:
        """A function that adds perplexity and baselines to the metrics of a validation."""
        add = super().add_metrics(text, validation)
        return lambda metrics: add(metrics) | detection_metrics(metrics)

    # ---- planning -------------------------------------------------------------------------------

    def frequency_loss(self, metrics: Metrics) -> float | None:
        """None if replaced tokens are detected: such losses were not measured for plans."""
        return None if self.is_rtd else super().frequency_loss(metrics)

    def num_weights(self) -> int:
        """The number of weights of the network, and of its generator while it is trained."""
        own = super().num_weights()
        if not self.is_rtd:
            return own
        return own + sum(one.numel() for one in self._generator_outline().parameters())

    def _flops_per_token(self) -> float:
        """Also those of a generator, whose scores of masked tokens replace the network's."""
        own = super()._flops_per_token()
        if not self.is_rtd:
            return own
        sizes = self._generator_outline()
        blocks = sum(one.numel() for one in sizes.stack.parameters() if one.dim() > 1)
        attention = 4.0 * sizes.config.num_layers * sizes.config.width * self.training.length
        return own + 2.0 * blocks + attention

    def _generator_outline(self) -> BERTNetwork:
        with torch.device("meta"):
            return self._new_generator(1)

    # ---- the folder -----------------------------------------------------------------------------

    def _write(self, folder: Path) -> None:
        """Write files that `transformers` opens too, the generator's in a folder of its own."""
        super()._write(folder)
        if self.generator is None:
            return
        place = folder / GENERATOR
        place.mkdir()
        write_network(self.generator, place, config=token_fields(self.generator, self.tokenizer))
        self.tokenizer.save(place, max_length=self.config.max_length, has_segments=True)
        write_json(place / MANIFEST, manifest_of(self.generator) | {"text": self.text.to_dict()})

    def _read(self, folder: Path) -> None:
        super()._read(folder)
        if (folder / GENERATOR / CONFIG).is_file():
            generator = load_network(folder / GENERATOR)
            if not isinstance(generator, BERTNetwork):
                raise ArtifactError(
                    f"{folder / GENERATOR} is not a generator: its network is a GPT."
                )
            self.generator = generator

    @property
    def short_length(self) -> int:  # type: ignore[override]
        """The length of the rows that a schedule starts with; 0: full length."""
        return int(self.training.short_length)

    def schedule(self) -> Schedule | None:
        """How batches change over a run, if they do."""
        training, rate = self.training, self.masking.rate
        found = Schedule(
            rate, training.last_rate or rate, training.short_share if self.short_length else 0.0,
            training.batch_warmup,
        )  # fmt: skip
        return None if found == Schedule(rate, rate) else found

    def source(self, store: Any, split: Split, length: int = 0) -> Any:
        """Batches of masked rows; those of validation always have the last masking rate."""
        masking, length = self.masking, length or self.training.length
        if split == "validation" and self.training.last_rate:
            masking = replace(masking, rate=self.training.last_rate)
        return MaskedBatches(
            store, self.tokenizer, masking, length=length,
            batch_size=self.rows_of(length), seed=self.training.seed,
            next_sentence=self.training.next_sentence, split=split,
        )  # fmt: skip
