"""Train a sentence encoder: rows of texts in; ids, hard negatives and a run out.

N rows, C distinct texts, D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.docstring_tasks import docstring_pairs, docstring_texts
from sememe.examples.pair_batches import Side, is_held_out
from sememe.examples.sentence_rows import (
    SentenceRow,
    SentenceRows,
    corpus_rows,
    sampled,
    table_rows,
)
from sememe.metrics.word_scores import spearman
from sememe.models.fitting import Plan, Prepared, Request
from sememe.models.sentence.batches import Examples, SentenceBatches, encode_rows
from sememe.models.sentence.config import SentenceConfig
from sememe.models.sentence.encoders import Trainable, open_encoder
from sememe.models.sentence.objective import SentenceObjective, text_hash, vectors_of
from sememe.training.device import Validation, choose_device
from sememe.training.distributed import Processes
from sememe.training.loop import Loop
from sememe.training.run import TrainingRun, check_tensorboard
from sememe.training.weights import weights_hash

if TYPE_CHECKING:
    from sememe.models.sentence.model import SentenceModel

# A mined text that is almost as near as the right one may be right, too (Moreira et al. 2024).
_MOST_SIMILAR = 0.95


# ---- hard negatives -----------------------------------------------------------------------------


def with_negatives(
    examples: Examples, objective: SentenceObjective, num: int, on_note: Callable[[str], None]
) -> Examples:
    """Pairs with the nearest wrong texts of each first text, by the vectors of the model as it is.

    A text that is almost as near as the right one, or belongs to an equal first text, is not taken.
    """
    anchors, positives = examples.columns[:2]
    device = choose_device(objective.config.device)
    objective.to(device)
    asked_ND, right_ND = (vectors_of(objective, side, device) for side in (anchors, positives))
    groups = np.unique([text_hash(ids) for ids in map(anchors.__getitem__, range(len(anchors)))],
                       return_inverse=True)[1]  # fmt: skip
    _, first, same = np.unique(
        [text_hash(positives[i]) for i in range(len(positives))],
        return_index=True,
        return_inverse=True,
    )
    texts_CD, found = right_ND[first], np.full((len(anchors), num), -1, np.int64)
    wrong_for: list[set[int]] = [set() for _ in range(int(groups.max()) + 1)]
    for group, text in zip(groups, same, strict=True):
        wrong_for[group].add(int(text))
    for start in range(0, len(anchors), 512):
        scores_BC = asked_ND[start : start + 512] @ texts_CD.T
        for row, scores_C in enumerate(scores_BC, start):
            limit = _MOST_SIMILAR * scores_C[same[row]]
            own = list(wrong_for[groups[row]])
            scores_C[own] = -np.inf
            scores_C[scores_C > max(limit, 0.0)] = -np.inf
            best = np.argpartition(-scores_C, min(num, len(scores_C) - 1))[:num]
            best = best[np.argsort(-scores_C[best], kind="stable")]
            kept = first[best[np.isfinite(scores_C[best])]]
            found[row, : len(kept)] = kept
    empty = np.empty(0, np.int32)
    more = tuple(
        Side(positives[place] if place >= 0 else empty for place in column) for column in found.T
    )
    on_note(f"{int((found >= 0).sum()):,} hard negatives were found for {len(anchors):,} rows.")
    return Examples("triplets", (*examples.columns, *more))


# ---- the run ------------------------------------------------------------------------------------


class _Data(NamedTuple):
    train: Examples
    dev: Examples | None
    kind: str  # of the objective


def prepare_sentences(model: SentenceModel, data: Any, request: Request) -> Prepared:
    """Read and encode the rows; return the run's plan and the function that trains."""
    check_tensorboard(model.config.tensorboard)
    note = request.reporter.note
    trainable = open_encoder(model.base, model.config)
    if "cls" in model.pools and not trainable.has_cls:
        raise OptionError("This model has no [CLS]; choose pool mean or max.")
    found = _read(model, data, request, trainable)
    config = model.config = _resolved(model.config, trainable, is_corpus=data_is_corpus(request))
    trainable.learn_rows(config.seed)
    objective = SentenceObjective(
        trainable, config, kind=found.kind, pools=model.pools, dense=model.dense
    )
    train = found.train
    if config.hard_negatives:
        if train.kind != "pairs":
            raise OptionError(f"hard_negatives are found for pairs, not for {train.kind}.")
        train = with_negatives(train, objective, config.hard_negatives, note)
    plan: Plan = {
        "training": config.lasting(),
        "pools": list(model.pools),
        "content": {
            "weights": weights_hash(objective),
            **trainable.fingerprints(),
            "train": train.fingerprint,
            "dev": None if found.dev is None else found.dev.fingerprint,
        },
    }

    def learn() -> None:
        note(
            f"{trainable.description}, {'+'.join(model.pools)} pooling: {len(train):,} examples, "
            f"batches of {config.batch_size}, learning rate {config.learning_rate:g}"
        )
        run = _run(config, found._replace(train=train), trainable, plan, request)
        loop = Loop(objective, run)
        model.history, model.precision = loop.train(), loop.precision
        model.take_trained(trainable.base(), objective.eval().dense)

    num_dev = 0 if found.dev is None else len(found.dev)
    sizes = {"base": model.parent, "examples": len(train), "dev_examples": num_dev}
    return Prepared(plan, learn, {"objective": config.objective, **sizes})


def data_is_corpus(request: Request) -> bool:
    """Whether a request is about running text rather than rows."""
    return request.reading["what"] == "corpus"


def _read(model: SentenceModel, data: Any, request: Request, trainable: Trainable) -> _Data:
    """The rows of the data as ids, and those held out."""
    config, note = model.config, request.reporter.note
    reading = {name: own for name, own in request.reading.items() if name != "what"}
    if data_is_corpus(request):
        rows, objective = _corpus_rows(data, config, model.text, note)
        model.config = config = replace(config, objective=objective)  # type: ignore[arg-type]
    else:
        if config.objective != "auto":
            raise OptionError(
                "objective is for a corpus; what rows teach follows from their columns."
            )
        needs_three = request.reading["what"] == "triplets"
        rows = table_rows(data, needs_three=needs_three, on_note=note, **reading)
    kind = rows.kind
    if config.objective == "tsdae":
        if trainable.is_word_start_V is None:
            raise OptionError("tsdae needs a BERT: its decoder shares the weights of the encoder.")
        kind = "denoised"  # type: ignore[assignment]
    elif rows.kind == "texts" and not config.dropout:
        raise OptionError("simcse needs dropout: without it, both vectors of a text are equal.")
    dev_rows = None
    if request.dev is not None and request.dev is not False:
        dev_rows = table_rows(request.dev, on_note=note, **reading)
    elif request.dev is None and config.objective != "simcse":
        rows, dev_rows = _held_out(rows, config.dev_share)
    train = _encoded(rows, trainable, model.prompts, "training", note)
    if len(train) < 2 and kind != "denoised":
        raise InputError("One row is not enough: the negatives of a row are the other rows.")
    dev = None if dev_rows is None else _encoded(dev_rows, trainable, model.prompts, "dev", note)
    return _Data(train, dev, kind)


def _corpus_rows(
    corpus: Any, config: SentenceConfig, text: Any, note: Callable[[str], None]
) -> tuple[SentenceRows, str]:
    """The rows of a corpus; the built-in one without what `docstring_pairs` holds out."""
    if corpus is None:
        note("Built-in corpus: docstrings of all modules except those held out for evaluation.")
        if config.objective in ("auto", "titles"):
            pairs = [SentenceRow((own.text, own.second or "")) for own in docstring_pairs("train")]
            note(f"{len(pairs):,} pairs of a summary and a body.")
            return SentenceRows("pairs", sampled(pairs, config.max_examples, config.seed)), "titles"
        corpus = docstring_texts("train")
    return corpus_rows(
        corpus, config.objective, text, seed=config.seed, most=config.max_examples, on_note=note
    )


def _held_out(rows: SentenceRows, share: float) -> tuple[SentenceRows, SentenceRows | None]:
    """Training rows, and those held out; equal first texts stay together."""
    parts: tuple[list[SentenceRow], list[SentenceRow]] = ([], [])
    for row in rows.rows:
        parts[is_held_out(row.texts[0], share)].append(row)
    if len(parts[0]) < 2 or len(parts[1]) < 2:
        return rows, None
    return replace(rows, rows=parts[0]), replace(rows, rows=parts[1])


def _encoded(
    rows: SentenceRows,
    trainable: Trainable,
    prompts: Mapping[str, str],
    name: str,
    note: Callable[[str], None],
) -> Examples:
    found, num_cut = encode_rows(rows, trainable, prompts)
    if num_cut:
        note(
            f"{num_cut:,} texts of the {name} rows have {trainable.room} tokens or more and are "
            "truncated (--length)."
        )
    return found


def _resolved(config: SentenceConfig, trainable: Trainable, *, is_corpus: bool) -> SentenceConfig:
    """The options with every 0 that means "default" filled in."""
    epochs = config.epochs
    if not (epochs or config.steps or config.budget):
        epochs = 1.0 if is_corpus else 3.0
    rate = config.learning_rate or trainable.default_rate
    return replace(config, learning_rate=rate, epochs=epochs)


def _run(
    config: SentenceConfig, found: _Data, trainable: Trainable, plan: Plan, request: Request
) -> TrainingRun:
    is_denoised = found.kind == "denoised"
    starts = trainable.is_word_start_V if is_denoised else None

    def source(examples: Examples) -> SentenceBatches:
        return SentenceBatches(
            examples, batch_size=config.batch_size, seed=config.seed, is_word_start_V=starts,
            deletion=config.deletion,
        )  # fmt: skip

    validation: Any = None
    if found.dev is not None and config.evaluate_batches:
        if found.dev.kind == "scored":
            validation = _correlation(found.dev)
        elif found.kind == "scored" or (is_denoised and found.dev.kind != "texts"):
            raise OptionError("The dev rows of this training are pairs with a score.")
        else:
            validation = Validation(source(found.dev), config.evaluate_batches)
    return TrainingRun(
        source=source(found.train),
        config=config,
        validation=validation,
        watches_rises=False,  # a batch with new negatives may be much harder
        shown=("validation_spearman", "validation_ranking_accuracy"),
        reporter=request.reporter,
        keeper=request.checkpoints(config.keep),
        resume=request.resume,
        plan=plan,
        processes=request.processes,
    )


def _correlation(dev: Examples) -> Callable[[Any, Any, Processes], dict[str, float]]:
    """A function that compares the cosines of scored pairs with their scores."""
    scores = dev.scores
    assert scores is not None

    def metrics(objective: Any, device: Any, processes: Processes) -> dict[str, float]:
        first_ND, second_ND = (vectors_of(objective, side, device) for side in dev.columns[:2])
        return {"spearman": spearman((first_ND * second_ND).sum(1), scores)}

    return metrics
