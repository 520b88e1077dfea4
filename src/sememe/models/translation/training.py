"""Prepare a translator's training: pairs of texts in; sub-words, batches and a run out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from sememe.errors import MissingExtraError, OptionError
from sememe.examples.pair_batches import PairBatch, PairBatches, PairIds, encode_pairs, is_held_out
from sememe.examples.parallel import Pair, ParallelPairs, read_pairs
from sememe.metrics.perplexity import perplexity
from sememe.models.fitting import Plan, Prepared, Request
from sememe.models.translation.coding import (
    PairCoder,
    TranslationInputs,
    train_coder,
    translation_inputs,
)
from sememe.models.translation.config import SearchConfig
from sememe.models.translation.translating import scored
from sememe.nn.layers import cast_at_once, trained_layers
from sememe.progress import Reporter, format_count
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.training.device import Validation
from sememe.training.loop import Loop
from sememe.training.objective import NetworkObjective
from sememe.training.run import TrainingRun, check_tensorboard
from sememe.training.weights import Best

if TYPE_CHECKING:
    from sememe.models.translation.model import Translator


class TranslationObjective(NetworkObjective):
    """The next token of the target, given the source and the true tokens before it."""

    def __init__(self, network: Any, *, smoothing: float) -> None:
        super().__init__(network)
        self.smoothing = smoothing
        # The metrics are those without smoothing, so that a perplexity can be computed from them.
        self.counted_by = {"token_loss": "predicted", "token_accuracy": "predicted"}
        self._is_compiled = False
        self._layers = trained_layers(network) if network.casts_weights else []

    def compile(self, **options: Any) -> None:
        """Compile the network part by part, in place."""
        self._is_compiled = True
        self.network.compile(**options)

    def counts(self, batch: PairBatch) -> dict[str, int]:
        """Tokens of a batch, and those to predict; 0 for a placeholder."""
        if not batch.weight:
            return {"tokens": 0, "predicted": 0}
        return {"tokens": batch.num_tokens, "predicted": batch.num_targets}

    def prepare(self, batch: PairBatch) -> TranslationInputs:
        """Concatenate the texts of a batch."""
        return translation_inputs(batch)

    def forward(
        self, inputs: TranslationInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        if self._is_compiled or self.precision == torch.float32 or not self._layers:
            loss, score = self.network.loss(inputs, self.smoothing)
        else:
            with cast_at_once(self._layers, self.precision):
                loss, score = self.network.loss(inputs, self.smoothing)
        metrics = {
            "token_loss": inputs.weight * score.loss.detach(),
            "token_accuracy": inputs.weight * score.num_right,
        }
        return inputs.weight * loss / counts["predicted"], metrics


_NUM_VALIDATIONS = 20


@dataclass(frozen=True)
class _Part:
    """The held-out pairs of a text, or the others; read again each time."""

    pairs: ParallelPairs
    share: float
    is_dev: bool

    def __iter__(self) -> Iterator[Pair]:
        for pair in self.pairs:
            if is_held_out(pair.source, self.share) == self.is_dev:
                yield pair


def prepare_pairs(model: Translator, source: Any, target: Any, request: Request) -> Prepared:
    """Read and encode the pairs; return the run's plan and the function that trains."""
    reporter = request.reporter
    check_tensorboard(model.training.tensorboard)
    train, dev = _texts(model, source, target, request)
    model.coder = coder = _coder(model, train, request)
    model.config = replace(model.config, vocab_size=coder.tokenizer.vocab_size)
    train_ids = _encoded(model, train, "training", reporter)
    if request.dev is None and dev is not None and not _any_fits(model, dev):
        reporter.note("None of the pairs that were held out is short enough: none is used.")
        dev = None
    dev_ids = _encoded(model, dev, "dev", reporter) if dev is not None else None
    plan = _plan(model, train_ids, dev_ids)

    def learn() -> None:
        model.network = model.new_network()
        reporter.note(_start_message(model, train_ids, dev_ids))
        objective = TranslationObjective(model.network, smoothing=model.training.smoothing)
        loop = Loop(objective, _run(model, train_ids, dev_ids, plan, request))
        model.history, model.precision = loop.train(), loop.precision
        model.network.uncompile()
        model.network.eval()
        if dev is not None and model.training.bleu_pairs:
            _score(model, dev, reporter)
        model.network.to("cpu")

    return Prepared(plan, learn, {"pairs": len(train_ids), "dev_pairs": len(dev_ids or ())})


# ---- pairs --------------------------------------------------------------------------------------


def _texts(
    model: Translator, source: Any, target: Any, request: Request
) -> tuple[Iterable[Pair], Iterable[Pair] | None]:
    """The training pairs and the dev pairs, if there are any."""
    reading = {"on_note": request.reporter.note, **request.reading}
    pairs = read_pairs(source, target, **reading)
    if request.dev is False:
        return pairs, None
    if request.dev is not None:
        given = request.dev
        is_two = isinstance(given, tuple) and all(isinstance(own, (str, Path)) for own in given)
        if is_two and len(given) == 2:
            # Two files have no columns.
            return pairs, read_pairs(*given, **{**reading, "columns": None})
        return pairs, read_pairs(given, **reading)
    share = model.training.dev_share
    train, dev = (_Part(pairs, share, is_dev) for is_dev in (False, True))
    num_dev = sum(1 for _ in dev) if share else 0
    if not num_dev:
        return pairs, None
    request.reporter.note(
        f"No dev pairs were given: {num_dev:,} are held out for that, the same ones in every run."
    )
    return train, dev


def _coder(model: Translator, train: Iterable[Pair], request: Request) -> PairCoder:
    training, given = model.training, request.tokenizer
    if given is None:
        return train_coder(
            train, kind=training.pieces, vocab_size=model.config.vocab_size,
            lowercase=training.lowercase, progress=request.reporter,
        )  # fmt: skip
    tokenizer = given if isinstance(given, SubwordTokenizer) else SubwordTokenizer.load(given)
    return PairCoder(tokenizer, lowercase=training.lowercase)


def _most_tokens(model: Translator) -> int:
    return min(model.training.length, model.config.max_length)


def _any_fits(model: Translator, pairs: Iterable[Pair]) -> bool:
    """Whether there is a pair that is not too long."""
    coder, most = model.coder, _most_tokens(model)
    return any(
        len(coder.sources([pair.source])[0]) <= most
        and len(coder.targets([pair.target])[0]) <= most
        for pair in pairs
    )


def _encoded(model: Translator, pairs: Iterable[Pair], name: str, reporter: Reporter) -> PairIds:
    coder, most = model.coder, _most_tokens(model)
    found = encode_pairs(pairs, coder.sources, coder.targets, most)
    if found.num_long:
        reporter.note(
            f"{found.num_long:,} of {len(found) + found.num_long:,} {name} pairs are longer than "
            f"{most} tokens (length) and were left out."
        )
    return found


# ---- the run ------------------------------------------------------------------------------------


def _plan(model: Translator, train: PairIds, dev: PairIds | None) -> Plan:
    """What identifies a run: the options that affect the result, and its text."""
    return {
        "network": model.config.to_dict(),
        "training": model.training.lasting(),
        "content": {
            "train": train.fingerprint,
            "dev": None if dev is None else dev.fingerprint,
            "tokenizer": model.coder.tokenizer.fingerprint,
        },
    }


def _run(
    model: Translator, train: PairIds, dev: PairIds | None, plan: Plan, request: Request
) -> TrainingRun:
    training, validation, best = model.training, None, None
    if dev is not None and training.evaluate_batches:
        source = PairBatches(
            dev, batch_tokens=training.batch_size, seed=training.seed, is_fixed=True
        )
        validation = Validation(source, training.evaluate_batches)
        best = Best("loss", training.patience, num_kept=training.average, is_lowest=True)
    elif training.patience:
        raise OptionError("patience needs dev pairs: it waits for a lower loss on them.")
    return TrainingRun(
        source=PairBatches(train, batch_tokens=training.batch_size, seed=training.seed),
        config=training,
        validation=validation,
        on_validation=lambda metrics: {
            **metrics,
            "perplexity": perplexity(metrics["token_loss"]),
        },
        num_validations=_NUM_VALIDATIONS,
        best=best,
        reporter=request.reporter,
        keeper=request.checkpoints(training.keep),
        resume=request.resume,
        plan=plan,
        processes=request.processes,
    )


def _start_message(model: Translator, train: PairIds, dev: PairIds | None) -> str:
    return (
        f"{model.start_message()}; {len(train):,} pairs "
        f"({format_count(train.num_tokens, 'tokens')}), "
        f"{0 if dev is None else len(dev):,} dev pairs"
    )


def _score(model: Translator, dev: Iterable[Pair], reporter: Reporter) -> None:
    """Translate some dev pairs with the final weights."""
    most, pairs = model.config.max_length, []
    for pair in dev:  # one that is too long to be read must not cost the training
        if len(model.coder.sources([pair.source])[0]) <= most:
            pairs.append(pair)
        if len(pairs) == model.training.bleu_pairs:
            break
    if not pairs:
        return
    try:
        found = scored(model, pairs, SearchConfig(), progress=reporter)
    except MissingExtraError as error:
        reporter.note(f"No BLEU: {error}")
        return
    model.scores = {name: value for name, value in found.items() if name != "translations"}
