"""Labels of texts: `predict` writes them, `evaluate labels` scores them."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememe.cli.options import Json, flag
from sememe.cli.screen import examples, print_json, print_table

if TYPE_CHECKING:
    from sememe.static.fasttext.classifier import FastTextClassifier

PREDICT_EXAMPLES = examples(
    "sememe predict runs/topics texts.txt",
    "sememe predict lid.176.ftz texts.txt -k 3 --prob",
    "echo '我 喜欢 这 部 电影' | sememe predict runs/reviews - --json",
)
LABELS_EXAMPLES = examples(
    "sememe evaluate labels runs/topics test.txt",
    "sememe evaluate labels model.ftz test.txt -k 5 --threshold 0.1 --json",
)
Classifier = Annotated[
    str, typer.Argument(metavar="MODEL", help="A classifier's folder, or a .bin or .ftz file.")
]
Number = Annotated[int, typer.Option("-k", help="Labels for each text, the likeliest; -1 all.")]
Threshold = Annotated[float, typer.Option(help="Leave out labels that are less likely.")]
Prefix = Annotated[str, typer.Option(help="How labels start in the lines of .bin and .ftz models.")]
_LINES = 2_000  # written at once


def _open(model: str, label_prefix: str) -> FastTextClassifier:
    from sememe.static.fasttext.classifier import FastTextClassifier

    return FastTextClassifier.load(model, label_prefix=label_prefix)


def predict(
    model: Classifier,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Texts, one a line; - for standard input.")
    ],
    k: Number = 1,
    threshold: Threshold = 0.0,
    prob: Annotated[bool, flag("--prob", help="Write the probability behind each label.")] = False,
    label_prefix: Prefix = "__label__",
    json: Annotated[bool, flag("--json", help="Write one JSON object a line.")] = False,
) -> None:
    """Write the labels of each line of a file, the likeliest first.

    A line without any known word, or without a label that reaches the threshold, gives an empty
    line. Labels in the lines, if there are any, are not looked at.
    """
    from json import dumps

    predictions = _open(model, label_prefix).predict_file(file, k, threshold)
    kept: list[str] = []
    for labels in predictions:
        if json:
            named = [{"label": one.label, "probability": one.probability} for one in labels]
            kept.append(dumps({"labels": named}, ensure_ascii=_is_ascii()))
        elif prob:
            kept.append(" ".join(f"{one.label} {one.probability:.6g}" for one in labels))
        else:
            kept.append(" ".join(one.label for one in labels))
        if len(kept) == _LINES:
            typer.echo("\n".join(kept))
            kept.clear()
    if kept:
        typer.echo("\n".join(kept))


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
    json: Json = False,
) -> None:
    """Score a classifier on labelled lines: precision, recall and F1, over all and by label.

    Lines without a label that the model knows are not asked, as in Facebook's program.
    """
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
    from sememe.storage.folder import MANIFEST, read_json

    manifest = Path(path) / MANIFEST
    if not manifest.is_file():
        return False
    content = read_json(manifest)
    return isinstance(content, dict) and content.get("kind") == "fasttext-classifier"


def convert_classifier(source: str, target: str) -> None:
    """Write a classifier as a file of Facebook's program, or as another folder."""
    model = _open(source, "__label__")
    model.save(target)
    typer.echo(f"Wrote {len(model.labels):,} labels, {len(model.words):,} words to {target}.")
