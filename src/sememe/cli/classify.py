"""Labels of texts: `predict` writes them, `evaluate labels` scores them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememe.cli.finetuning import Column, SkipBad
from sememe.cli.options import Json, flag
from sememe.cli.predicting import evaluate_task, is_task, predict_task, refuse_rows
from sememe.cli.screen import examples, print_json, print_table, remark

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier.model import FastTextClassifier
    from sememe.static.fasttext.classifier.prediction import Found

PREDICT_EXAMPLES = examples(
    "sememe predict runs/topics texts.txt",
    "sememe predict runs/follows pairs.tsv --column text=premise --column second=hypothesis",
    "sememe predict lid.176.ftz texts.txt -k 3 --prob",
    "echo '我 喜欢 这 部 电影' | sememe predict runs/reviews - --json",
)
LABELS_EXAMPLES = examples(
    "sememe evaluate labels runs/topics test.txt",
    "sememe evaluate labels runs/follows test.tsv --json",
    "sememe evaluate labels model.ftz test.txt -k 5 --threshold 0.1 --json",
)
Classifier = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="The folder of a fine-tuned task or of a classifier, or a .bin or .ftz file.",
    ),
]
Number = Annotated[int, typer.Option("-k", help="Labels for each text, the likeliest; -1 all.")]
Threshold = Annotated[
    float, typer.Option(help="Leave out labels that are less likely than this, from 0 to 1.")
]
Prefix = Annotated[str, typer.Option(help="How labels start in the lines of .bin and .ftz models.")]


def _open(model: str, label_prefix: str) -> FastTextClassifier:
    from sememe.static.fasttext.classifier.model import FastTextClassifier

    return FastTextClassifier.load(model, label_prefix=label_prefix)


def predict(
    model: Classifier,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Texts, one a line, or for a task a table; - for standard input.",
        ),
    ],
    k: Number = 1,
    threshold: Threshold = 0.0,
    prob: Annotated[bool, flag("--prob", help="Write the probability after each label.")] = False,
    label_prefix: Prefix = "__label__",
    column: Column = None,
    skip_bad: SkipBad = False,
    json: Annotated[bool, flag("--json", help="Write one JSON object a line.")] = False,
) -> None:
    """Write what a model predicts for each row of a file: labels, the likeliest first, or scores.

    A line in which a classifier knows no word, or without a label that reaches the threshold,
    gives an empty line. Labels in the file, if there are any, are not looked at.
    """
    if is_task(model):
        predict_task(
            model, file, num=k, threshold=threshold, prob=prob, column=column, skip_bad=skip_bad,
            json=json,
        )  # fmt: skip
        return
    refuse_rows(column, skip_bad)
    classifier = _open(model, label_prefix)
    names = classifier.labels
    for found in classifier.predict_blocks(file, k, threshold):
        if len(found.label_ids):
            typer.echo("\n".join(_written(found, names, json, prob)))


def _written(found: Found, names: list[str], as_json: bool, has_chances: bool) -> Iterator[str]:
    """A line of output for each line of text."""
    from json import dumps

    if not as_json and not has_chances and found.label_ids.shape[1] == 1:
        known = [*names, ""]  # -1, no label, takes the last
        yield from (known[label] for label in found.label_ids[:, 0].tolist())
        return
    is_ascii = _is_ascii()
    for ids, chances in zip(found.label_ids.tolist(), found.chances.tolist(), strict=True):
        pairs = [(names[i], chance) for i, chance in zip(ids, chances, strict=True) if i >= 0]
        if as_json:
            labels = [{"label": name, "probability": chance} for name, chance in pairs]
            yield dumps({"labels": labels}, ensure_ascii=is_ascii)
        elif has_chances:
            yield " ".join(f"{name} {chance:.6g}" for name, chance in pairs)
        else:
            yield " ".join(name for name, _ in pairs)


def _is_ascii() -> bool:
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return not encoding.startswith("utf")


def labels(
    model: Classifier,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Labelled lines; - for standard input.")
    ],
    k: Number = 1,
    threshold: Threshold = 0.0,
    label_prefix: Prefix = "__label__",
    column: Column = None,
    skip_bad: SkipBad = False,
    json: Json = False,
) -> None:
    """Score a classifier or a fine-tuned task on labelled rows.

    A classifier gets precision, recall and F1, over all and by label; lines without a label that
    it knows are not asked, as in Facebook's program. A task gets the figures of its kind.
    """
    if is_task(model):
        evaluate_task(
            model, file, num=k, threshold=threshold, column=column, skip_bad=skip_bad, json=json
        )
        return
    refuse_rows(column, skip_bad)
    result = _open(model, label_prefix).evaluate(file, k, threshold)
    if json:
        print_json(result.to_dict())
        return
    rows = [
        (one.label, *(_figure(x) for x in (one.precision, one.recall, one.f1)), one.num_true)
        for one in result.labels
    ]
    overall = (_figure(x) for x in (result.precision, result.recall, result.f1))
    rows.append(("all", *overall, sum(one.num_true for one in result.labels)))
    headings = ("label", f"precision at {k}", f"recall at {k}", "F1", "occurs")
    print_table(headings, rows)
    if result.num_skipped:
        typer.echo(
            f"{result.num_examples:,} examples; {result.num_skipped:,} lines without a known label "
            "or word were left out.",
            err=True,
        )


def _figure(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


def is_classifier(path: str | Path) -> bool:
    """Whether a path is the folder of a classifier."""
    from sememe.storage.folder import kind_of_folder

    return kind_of_folder(Path(path)) == "fasttext-classifier"


def convert_classifier(source: str, target: str, json: bool, quiet: bool) -> None:
    """Write a classifier as a file of Facebook's program, or as another folder."""
    model = _open(source, "__label__")
    model.save(target)
    num_labels, num_words = len(model.labels), len(model.words)
    if json:
        print_json({"path": target, "labels": num_labels, "words": num_words})
    else:
        remark(f"Wrote {num_labels:,} labels, {num_words:,} words to {target}.", quiet)
