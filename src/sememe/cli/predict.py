"""Predict labels of texts (`predict`), and score them (`evaluate labels`).

Both take fastText classifiers and the folders of fine-tuned tasks.
"""

from functools import partial
from itertools import islice
from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from sememe.cli import evaluate
from sememe.cli.options import Column, Json, SkipBad, flag, reading_of
from sememe.cli.program import app, echo, examples, is_ascii, print_json, print_scores

_LINES_AT_ONCE = 4_096
Classifier = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Fine-tuned model folder, classifier folder, or .bin or .ftz file.",
    ),
]
Number = Annotated[
    int, typer.Option("-k", help="Number of labels per text, most probable first; -1: all.")
]
Threshold = Annotated[
    float,
    typer.Option(min=0, max=1, help="Minimum probability of a label, 0 to 1."),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of the file, such as gb18030.", show_default=False)
]
Prefix = Annotated[str, typer.Option(help="Label prefix of .bin and .ftz models.")]


@app.command(
    epilog=examples(
        "sememe predict runs/topics texts.txt",
        "sememe predict runs/follows pairs.tsv --column text=premise --column second=hypothesis",
        "sememe predict lid.176.ftz texts.txt -k 3 --prob",
        "echo '我 喜欢 这 部 电影' | sememe predict runs/reviews - --json",
    ),
)
def predict(
    model: Classifier,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Texts, one per line, or a table; - for standard input.",
        ),
    ],
    k: Number = 1,
    threshold: Threshold = 0.0,
    prob: Annotated[bool, flag("--prob", help="Print the probability after each label.")] = False,
    label_prefix: Prefix = "__label__",
    column: Column = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = None,
    json: Annotated[bool, flag("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Predict labels, scores, tags or answers for each row of a file.

    A classifier prints an empty line if it knows no word of the text, or
    if no label reaches the threshold. A fine-tuned model prints an empty
    line (null in JSON) for an empty line, or for a row that --skip-bad
    skips, so that output and input stay aligned. A fine-tuned model or
    classifier folder reuses the columns and the encoding of its training
    rows. Labels in the file are ignored.
    """
    opened, reading = _opened(model, column, skip_bad, encoding)
    to_json = partial(dumps, ensure_ascii=is_ascii()) if json else None
    lines = opened.predict_lines(
        file, k=k, threshold=threshold, has_chances=prob, to_json=to_json,
        label_prefix=label_prefix, **reading,
    )  # fmt: skip
    while part := list(islice(lines, _LINES_AT_ONCE)):
        echo("\n".join(part))


def _opened(
    model: str, column: list[str] | None, skip_bad: bool, encoding: str | None
) -> tuple[Any, dict[str, Any]]:
    """A model that predicts, and how it is to read rows."""
    from sememe.models.registry import load

    reading = reading_of(column, skip_bad, **({"encoding": encoding} if encoding else {}))
    opened = load(model, able="predict", columns=reading["columns"], device="auto")
    return opened, {**reading, "on_note": lambda text: echo(text, err=True)}


@evaluate.app.command(
    epilog=examples(
        "sememe evaluate labels runs/topics test.txt",
        "sememe evaluate labels runs/follows test.tsv --json",
        "sememe evaluate labels model.ftz test.txt -k 5 --threshold 0.1 --json",
    ),
)
def labels(
    model: Classifier,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File of labelled lines; - for standard input.")
    ],
    k: Number = 1,
    threshold: Threshold = 0.0,
    label_prefix: Prefix = "__label__",
    column: Column = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Evaluate a classifier or fine-tuned model on labelled rows.

    A classifier gets precision, recall and F1, overall and per label.
    Lines without a known label are skipped, as in Facebook's fastText. A
    fine-tuned model gets the metrics of its task.
    """
    opened, reading = _opened(model, column, skip_bad, encoding)
    scores = opened.evaluate(file, k=k, threshold=threshold, label_prefix=label_prefix, **reading)
    if json:
        print_json({**scores.to_dict(), "remark": scores.remark})
    else:
        print_scores(scores, Path(file).name)
