"""The command that trains fastText's classifier: labelled lines in, a model folder out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememe.cli import training
from sememe.cli.options import Json, Quiet, expand, flag
from sememe.cli.screen import examples, print_json, remark
from sememe.static.fasttext.classifier.config import FastTextClassifierConfig

if TYPE_CHECKING:
    from sememe.progress import Reporter
    from sememe.static.fasttext.classifier.model import FastTextClassifier

EXAMPLES = examples(
    "sememe train classifier train.txt --validation dev.txt --out runs/topics",
    "sememe train classifier reviews.tsv --field text --label-field stars --out runs/reviews",
    "sememe train classifier train.txt --validation dev.txt --autotune 5m --out runs/best",
    "sememe train classifier train.txt --quantize --cutoff 50000 --retrain --out runs/small",
    "sememe train classifier news.txt --language zh --out runs/news",
    "sememe train fasttext --supervised train.txt --out topics.bin",
)

_HARDLY_LEARNED = 0.98  # of the loss of one who guesses


@expand(config="Model")
def classifier(
    train: Annotated[
        list[str],
        typer.Argument(
            metavar="TRAIN",
            help="Files of lines such as “__label__good a fine film”, or jsonl, csv, tsv, parquet.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The model folder to write, or a .bin or .ftz file."),
    ] = None,
    validation: Annotated[
        str | None, typer.Option(help="Labelled file on which the model is scored.")
    ] = None,
    autotune: Annotated[
        str | None,
        typer.Option(help="Try options on --validation for this time (90s, 5m) and keep the best."),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="What --autotune makes large: f1, precision, recall, f1@3, f1:good.")
    ] = "f1",
    resume: training.Resume = False,
    start: training.Start = None,
    checkpoint_minutes: training.CheckpointMinutes = 10.0,
    language: Annotated[
        str,
        typer.Option(help="none splits at blanks; zh cuts Chinese words, en drops punctuation."),
    ] = "none",
    lowercase: Annotated[
        bool, flag("--lowercase/--keep-case", help="Turn words into lower case.")
    ] = False,
    field: Annotated[
        str, typer.Option(help="Column of jsonl, csv, tsv and parquet files that holds the text.")
    ] = "text",
    label_field: Annotated[str, typer.Option(help="Column that holds the label.")] = "label",
    encoding: Annotated[
        str, typer.Option(help="Encoding of text, jsonl, csv and tsv files.")
    ] = "utf-8",
    errors: Annotated[
        Literal["strict", "replace"], typer.Option(help="Stop at wrong bytes, or replace them.")
    ] = "strict",
    quantize: Annotated[
        bool, flag("--quantize", help="Keep the rows as bytes: a model many times smaller.")
    ] = False,
    cutoff: Annotated[
        int, typer.Option(help="With --quantize: keep this many rows, the strongest; 0 all.")
    ] = 0,
    retrain: Annotated[
        bool, flag("--retrain", help="With --cutoff: train the rows that are kept again.")
    ] = False,
    qnorm: Annotated[
        bool, flag("--qnorm", help="With --quantize: lengths of rows get bytes of their own.")
    ] = False,
    qout: Annotated[
        bool, flag("--qout", help="With --quantize: also the labels' rows (256 labels or more).")
    ] = False,
    dsub: Annotated[
        int, typer.Option(help="With --quantize: numbers of a row that share a byte.")
    ] = 2,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: FastTextClassifierConfig,
) -> None:
    """Train a classifier of texts (fastText's supervised half).

    A line's labels are its words that start with __label__; all others are its text.
    The options carry the names of the Python call:
    sememe.FastTextClassifier(word_ngrams=2).fit("train.txt").
    """
    shrinking = {"cutoff": cutoff, "qnorm": qnorm, "qout": qout, "dsub": dsub}
    _check(out, quantize, retrain, shrinking)
    training.check("--checkpoint-minutes", checkpoint_minutes)
    train_classifier(
        train,
        out,
        config,
        validation=validation,
        shrinking={**shrinking, "retrain": train if retrain else None} if quantize else None,
        as_json=json,
        quiet=quiet,
        start=start,
        autotune=autotune,
        metric=metric,
        resume=resume,
        checkpoint_minutes=checkpoint_minutes or math.inf,
        language=language,
        lowercase=lowercase,
        field=field,
        label_field=label_field,
        encoding=encoding,
        errors=errors,
    )


def _check(out: Path | None, quantize: bool, retrain: bool, shrinking: dict[str, Any]) -> None:
    """Refuse what does not go together before any text is read."""
    from sememe.errors import OptionError
    from sememe.static.fasttext.classifier.shrinking import Shrinking

    defaults = {"cutoff": 0, "qnorm": False, "qout": False, "dsub": 2}
    if not quantize and (retrain or shrinking != defaults):
        raise OptionError("--cutoff, --retrain, --qnorm, --qout and --dsub need --quantize.")
    if retrain and not shrinking["cutoff"]:
        raise OptionError("--retrain trains the rows that --cutoff keeps: give a --cutoff.")
    Shrinking(**shrinking)  # refuses what could not be quantised
    if out is None:
        raise OptionError("--out must name the folder or file that shall hold the model.")
    ending = out.suffix.lower()
    if (ending == ".ftz" and not quantize) or (ending == ".bin" and quantize):
        raise OptionError(f"--out {out}: a .ftz file is quantised (--quantize), a .bin file not.")
    if ending in (".bin", ".ftz") and out.is_dir():
        raise OptionError(f"--out {out} is a folder, but its name asks for a file.")


def train_classifier(
    train: list[str],
    out: Path | None,
    config: FastTextClassifierConfig,
    *,
    validation: str | None,
    shrinking: dict[str, Any] | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Fit a classifier, make it smaller where that is asked for, and tell how it went."""
    from sememe.progress import Reporter
    from sememe.static.fasttext.classifier.model import FastTextClassifier

    reporter = Reporter(quiet=quiet)
    is_file = out is not None and out.suffix.lower() == ".ftz"
    model = FastTextClassifier(config).fit(
        train, validation, out=None if is_file else out, progress=reporter, **options
    )
    figures: dict[str, Any] = {}
    if validation is not None:
        figures["validation"] = _scores(model, validation)
    if shrinking is not None and not model.is_quantized:  # a finished one that was resumed is
        model = _shrink(model, validation or train, shrinking, figures, reporter)
        assert out is not None
        model.save(out)
    _tell(model, out, figures, as_json=as_json, quiet=quiet)


def _scores(model: FastTextClassifier, data: Any) -> dict[str, Any]:
    scores = model.evaluate(data).to_dict()
    del scores["labels"]
    return scores


def _shrink(
    model: FastTextClassifier,
    data: Any,
    options: dict[str, Any],
    figures: dict[str, Any],
    reporter: Reporter,
) -> FastTextClassifier:
    small = model.quantize(progress=reporter, **options)
    before, after = _scores(model, data)["f1"], _scores(small, data)["f1"]
    figures["quantization"] = {
        "bytes_before": model.weights.nbytes,
        "bytes_after": small.weights.nbytes,
        "f1_before": before,
        "f1_after": after,
    }
    reporter.note(f"F1 {before:.4f} before, {after:.4f} after")
    return small


def _tell(
    model: FastTextClassifier,
    out: Path | None,
    figures: dict[str, Any],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    sizes = {"labels": len(model.labels), "words": len(model.words), "dim": model.config.dim}
    if as_json:
        history = model.history.last()
        options = model.config.to_dict()
        print_json({"path": str(out), **sizes, **figures, "options": options, "history": history})
        return
    if "validation" in figures:
        scores = figures["validation"]
        typer.echo(f"F1 {scores['f1']:.4f} on {scores['num_examples']:,} examples")
    remark(f"Saved {sizes['labels']:,} labels, {sizes['words']:,} words to {out}", quiet)
    loss, chance = model.history.last().get("loss") or 0.0, math.log(len(model.labels))
    if model.config.loss == "softmax" and loss > _HARDLY_LEARNED * chance:
        advice = "more passes and larger steps help: try --epochs 50 --learning-rate 0.5"
        remark(f"A loss of {loss:.3f} is that of guessing; {advice}", quiet)
    remark(f"Try: sememe predict {out} texts.txt", quiet)
