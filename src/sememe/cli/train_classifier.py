"""The command that trains fastText's classifier: labelled lines in, a model folder out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import sememe
from sememe.cli import training
from sememe.cli.options import Column, Json, Quiet, columns_of, expand, flag
from sememe.cli.program import examples, print_json, print_scores, remark
from sememe.errors import OptionError, WriteError
from sememe.models.fasttext.classifier.config import FastTextClassifierConfig
from sememe.progress import Reporter

if TYPE_CHECKING:
    from sememe import FastTextClassifier


_HARDLY_LEARNED = 0.98  # of the loss of one who guesses


@training.app.command(
    epilog=examples(
        "sememe train classifier train.txt --validation dev.txt --out runs/topics",
        "sememe train classifier reviews.tsv --column text=review --column label=stars -o r",
        "sememe train classifier train.txt --validation dev.txt --autotune 5m --out runs/best",
        "sememe train classifier train.txt --quantize --cutoff 50000 --retrain --out runs/small",
        "sememe train classifier train.txt --preset fasttext --out runs/original",
        "sememe train classifier news.txt --language zh --out runs/news",
        "sememe train fasttext --supervised train.txt --out topics.bin",
    ),
)
@expand(config="Model")
def classifier(
    train: Annotated[
        list[str],
        typer.Argument(
            metavar="TRAIN",
            help="Labelled lines (“__label__good a fine film”), or jsonl, csv, tsv, parquet.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Output folder, or .bin or .ftz file (required)."),
    ] = None,
    validation: Annotated[str | None, typer.Option(help="Labelled validation file.")] = None,
    autotune: Annotated[
        str | None,
        typer.Option(help="Hyperparameter search on --validation for this time, such as 5m."),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            help="Metric for --autotune: f1, precision, recall, macro_f1, f1@3, f1:LABEL."
        ),
    ] = "f1",
    resume: training.Resume = False,
    overwrite: training.Overwrite = False,
    start: training.Start = None,
    checkpoint_minutes: training.CheckpointMinutes = 10.0,
    language: Annotated[
        str,
        typer.Option(
            help="auto: words of any language; none: split at whitespace; zh: segment Chinese."
        ),
    ] = "auto",
    lowercase: Annotated[
        bool | None,
        flag("--lowercase/--keep-case", help="Convert words to lower case; default: with auto."),
    ] = None,
    column: Column = None,
    encoding: Annotated[
        str, typer.Option(help="Encoding of text, jsonl, csv and tsv files.")
    ] = "utf-8",
    errors: Annotated[
        Literal["strict", "replace"], typer.Option(help="Invalid bytes: stop, or replace them.")
    ] = "strict",
    quantize: Annotated[
        bool, flag("--quantize", help="Product quantization: a much smaller model.")
    ] = False,
    cutoff: Annotated[
        int,
        typer.Option(help="With --quantize: keep this many features, largest norms first; 0: all."),
    ] = 0,
    retrain: Annotated[
        bool, flag("--retrain", help="With --cutoff: retrain the remaining features.")
    ] = False,
    qnorm: Annotated[
        bool, flag("--qnorm", help="With --quantize: quantize the norms separately.")
    ] = False,
    qout: Annotated[
        bool,
        flag(
            "--qout", help="With --quantize: also quantize the output layer (256 labels or more)."
        ),
    ] = False,
    dsub: Annotated[int, typer.Option(help="With --quantize: dimensions per sub-vector.")] = 2,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: FastTextClassifierConfig,
) -> None:
    """Train a text classifier (fastText supervised).

    Words that start with __label__ are the labels of a line; the other
    words are its text.

    In Python:
    sememe.FastTextClassifier(word_ngrams=2).fit("train.txt").
    """
    shrinking: dict[str, Any] = {"cutoff": cutoff, "qnorm": qnorm, "qout": qout, "dsub": dsub}
    out = _checked(out, quantize, retrain, shrinking)
    if retrain and config.calibrate:
        raise OptionError("--retrain would undo --calibrate: choose one.")
    if out.is_file() and not overwrite:
        raise WriteError(f"{out} exists; choose another name, or --overwrite to replace it.")
    reporter, metrics = Reporter(quiet=quiet), dict[str, Any]()
    text: dict[str, Any] = {} if lowercase is None else {"lowercase": lowercase}
    is_file = out.suffix.lower() in (".bin", ".ftz")
    if language != "auto" or is_file:  # files of Facebook's program have words between blanks
        text["language"] = "none" if language == "auto" else language
    model = sememe.FastTextClassifier(config).fit(
        train, validation=validation, out=None if out.suffix.lower() == ".ftz" else out,
        progress=reporter,
        start=start, autotune=autotune, metric=metric, resume=resume, overwrite=overwrite,
        checkpoint_minutes=checkpoint_minutes or math.inf, columns=columns_of(column),
        encoding=encoding, errors=errors, **text,
    )  # fmt: skip
    if quantize and not model.is_quantized:  # a finished one that was resumed is
        shrinking["retrain"] = train if retrain else None
        model = _shrink(model, train, validation, shrinking, metrics, reporter)
        model.save(out)
    scores = model.evaluate(validation) if validation is not None else None
    if scores is not None:
        scores = replace(scores, baselines=list(model.scores.get("baselines", ())))
    if scores is not None:
        metrics["validation"] = {**scores.to_dict(), "remark": scores.remark}
    if scores is not None and not json:
        print_scores(scores, "validation")
    _tell(model, out, metrics, as_json=json, quiet=quiet)


def _checked(out: Path | None, quantize: bool, retrain: bool, shrinking: dict[str, Any]) -> Path:
    """The path of the model; raises an error for conflicting options before any text is read."""
    defaults = {"cutoff": 0, "qnorm": False, "qout": False, "dsub": 2}
    if not quantize and (retrain or shrinking != defaults):
        raise OptionError("--cutoff, --retrain, --qnorm, --qout and --dsub need --quantize.")
    if retrain and not shrinking["cutoff"]:
        raise OptionError("--retrain trains the rows that --cutoff keeps: give a --cutoff.")
    sememe.FastTextClassifier.check_quantize(**shrinking)
    if out is None:
        raise OptionError("--out must name the output folder or file.")
    ending = out.suffix.lower()
    if (ending == ".ftz" and not quantize) or (ending == ".bin" and quantize):
        raise OptionError(f"--out {out}: a .ftz file is quantised (--quantize), a .bin file not.")
    if ending in (".bin", ".ftz") and out.is_dir():
        raise OptionError(f"--out {out} is a folder, but its name is that of a file.")
    return out


def _shrink(
    model: FastTextClassifier,
    train: list[str],
    validation: str | None,
    options: dict[str, Any],
    metrics: dict[str, Any],
    reporter: Reporter,
) -> FastTextClassifier:
    """Compress the model; compare F1 on the validation file, or else on the training file."""
    small = model.quantize(progress=reporter, validation=validation, **options)
    data = train if validation is None else validation
    before, after = model.evaluate(data).f1, small.evaluate(data).f1
    metrics["quantization"] = {
        "bytes_before": model.weights.nbytes,
        "bytes_after": small.weights.nbytes,
        "f1_before": before,
        "f1_after": after,
    }
    reporter.note(f"F1 {before:.4f} before, {after:.4f} after")
    return small


def _tell(
    model: FastTextClassifier,
    out: Path,
    metrics: dict[str, Any],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    sizes = {"labels": len(model.labels), "words": len(model.words), "dim": model.config.dim}
    if as_json:
        history = model.history.last()
        options = model.config.to_dict()
        more = {"learned": model.learned, "options": options, "history": history}
        print_json({"path": str(out), **sizes, **metrics, **more})
        return
    remark(f"Saved {sizes['labels']:,} labels, {sizes['words']:,} words to {out}", quiet)
    loss, chance = model.history.last().get("loss") or 0.0, math.log(len(model.labels))
    if model.config.loss == "softmax" and loss > _HARDLY_LEARNED * chance:
        advice = "more passes and larger steps help: try --epochs 50 --learning-rate 0.5"
        remark(f"A loss of {loss:.3f} is no better than guessing; {advice}", quiet)
    remark(f"Try: sememe predict {out} texts.txt", quiet)
