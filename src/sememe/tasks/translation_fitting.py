"""How a model that translates is fitted: pairs, sub-words, batches, the loop, a folder."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import MissingExtraError, OptionError
from sememe.examples.pair_batches import PairBatches, PairIds, encode_pairs, is_held_out
from sememe.examples.parallel import Pair, Pairs, read_pairs
from sememe.networks.translation_config import SearchConfig
from sememe.networks.translation_objective import TranslationObjective
from sememe.progress import SILENT, Reporter
from sememe.progress.figures import format_count
from sememe.tasks.pair_coding import PairCoder, train_coder
from sememe.tasks.translating import scored
from sememe.tokens.subwords import SubwordTokenizer
from sememe.training.averaging import LowestMean
from sememe.training.distributed import Processes
from sememe.training.evaluation import Validation
from sememe.training.loop import Loop
from sememe.training.places import finished_before, keeper_of, save_finished
from sememe.training.run import Run, started

if TYPE_CHECKING:
    from sememe.tasks.translate import Translator

_NUM_VALIDATIONS = 20


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of `fit` asks for beside the pairs to learn from."""

    dev: Any = None
    tokenizer: Any = None
    out: Path | None = None
    resume: bool = False
    reporter: Reporter = SILENT
    reading: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Part:
    """The pairs of a text that are held out, or the others; read anew each time."""

    pairs: Pairs
    share: float
    is_dev: bool

    def __iter__(self) -> Iterator[Pair]:
        for pair in self.pairs:
            if is_held_out(pair.source, self.share) == self.is_dev:
                yield pair


def fit(model: Translator, source: Any, target: Any, request: Request) -> None:
    """Train `model` and save it where the request says so."""
    with started(request, model.training) as (own, processes):
        _fit(model, source, target, own, processes)


def _fit(
    model: Translator, source: Any, target: Any, request: Request, processes: Processes
) -> None:
    training, reporter = model.training, request.reporter
    train, dev = _texts(model, source, target, request)
    model.coder = coder = _coder(model, train, request)
    model.config = replace(model.config, vocab_size=coder.tokenizer.vocab_size)
    train_ids = _encoded(model, train, "training", reporter)
    if request.dev is None and dev is not None and not _any_fits(model, dev):
        reporter.note("None of the pairs that were held out is short enough: none is used.")
        dev = None
    dev_ids = _encoded(model, dev, "dev", reporter) if dev is not None else None
    model.plan = _plan(model, train_ids, dev_ids)
    if (finished := finished_before(model, request, model.plan)) is not None:
        model.network, model.coder = finished.network, finished.coder
        model.history, model.scores = finished.history, finished.scores
        model.precision = finished.precision
        return
    model.network = model.new_network()
    reporter.note(_greeting(model, train_ids, dev_ids))
    best = None
    if dev_ids is not None and training.evaluate_batches:
        best = LowestMean("loss", training.average, training.patience)
    elif training.patience:
        raise OptionError("patience needs dev pairs: it waits for a lower loss on them.")
    run = _run(model, train_ids, dev_ids, best, request, processes)
    objective = TranslationObjective(model.network, smoothing=training.smoothing)
    loop = Loop(objective, run)
    model.history, model.precision = loop.train(), loop.precision
    model.network.uncompile()
    model.network.eval()
    if dev is not None and training.bleu_pairs:
        _score(model, dev, reporter)
    model.network.to("cpu")
    save_finished(model, request, processes)


# ---- pairs --------------------------------------------------------------------------------------


def _texts(
    model: Translator, source: Any, target: Any, request: Request
) -> tuple[Iterable[Pair], Iterable[Pair] | None]:
    """The pairs to learn from and those to choose by, if there are any."""
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
    assert coder is not None
    return any(
        len(coder.sources([pair.source])[0]) <= most
        and len(coder.targets([pair.target])[0]) <= most
        for pair in pairs
    )


def _encoded(model: Translator, pairs: Iterable[Pair], name: str, reporter: Reporter) -> PairIds:
    coder, most = model.coder, _most_tokens(model)
    assert coder is not None
    found = encode_pairs(pairs, coder.sources, coder.targets, most)
    if found.num_long:
        reporter.note(
            f"{found.num_long:,} of {len(found) + found.num_long:,} {name} pairs are longer than "
            f"{most} tokens (length) and were left out."
        )
    return found


# ---- the run ------------------------------------------------------------------------------------


def _plan(model: Translator, train: PairIds, dev: PairIds | None) -> dict[str, Any]:
    """What identifies a run: the options that shape it, and its text."""
    assert model.coder is not None
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
    model: Translator,
    train: PairIds,
    dev: PairIds | None,
    best: LowestMean | None,
    request: Request,
    processes: Processes,
) -> Run:
    training = model.training
    validation = None
    if dev is not None and training.evaluate_batches:
        source = PairBatches(
            dev, batch_tokens=training.batch_size, seed=training.seed, is_fixed=True
        )
        validation = Validation(source, training.evaluate_batches)
    return Run(
        source=PairBatches(train, batch_tokens=training.batch_size, seed=training.seed),
        config=training,
        validation=validation,
        on_validation=_with_perplexity,
        num_validations=_NUM_VALIDATIONS,
        best=best,
        reporter=request.reporter,
        keeper=keeper_of(request, training.keep),
        resume=request.resume,
        plan=model.plan,
        processes=processes,
    )


def _with_perplexity(figures: dict[str, float]) -> dict[str, float]:
    return {**figures, "perplexity": math.exp(min(figures["token_loss"], 700.0))}


def _greeting(model: Translator, train: PairIds, dev: PairIds | None) -> str:
    num_weights = sum(parameter.numel() for parameter in model.network.parameters())
    config = model.config
    return (
        f"{type(model).__name__} {model.preset}: {config.num_layers} layers × {config.width}, "
        f"{format_count(num_weights)} weights, {config.vocab_size:,} tokens; {len(train):,} pairs "
        f"({format_count(train.num_tokens, 'tokens')}), "
        f"{0 if dev is None else len(dev):,} dev pairs"
    )


def _score(model: Translator, dev: Iterable[Pair], reporter: Reporter) -> None:
    """Translate some dev pairs with the final weights."""
    assert model.coder is not None
    most, pairs = model.config.max_length, []
    for pair in dev:  # one that is too long to be read shall not cost the training
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
