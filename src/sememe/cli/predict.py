"""Predict labels of texts (`predict`), and score them (`evaluate labels`).

Both take fastText classifiers and the folders of fine-tuned tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli import evaluate
from sememe.cli.on_cluster import spread_inference
from sememe.cli.options import (
    Column,
    InferenceCluster,
    Json,
    Quiet,
    ResumeParts,
    SkipBad,
    flag,
    paths_of,
    reading_of,
)
from sememe.cli.program import app, echo, examples, is_ascii, print_json, print_scores, remark
from sememe.cli.row_cells import RowCells, expected_rows
from sememe.errors import InputError, OptionError
from sememe.localization import translate
from sememe.progress import Reporter

if TYPE_CHECKING:
    from sememe.contract import PredictedRow

_LINES_AT_ONCE, _ROWS_AT_ONCE = 4_096, 1_024
Classifier = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Fine-tuned model folder, classifier folder, or .bin or .ftz file.",
    ),
]
Number = Annotated[
    int | None,
    typer.Option(
        "-k", help="Labels per text; -1: all; default: 1, or those above their thresholds."
    ),
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
        "sememe predict runs/topics new.csv --out predictions.csv",
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
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Output table: .csv, .tsv, .jsonl or .parquet."),
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", help="Replace an existing --out.")] = False,
    escape_formulas: Annotated[
        bool,
        flag("--escape-formulas", help="Put ' before cells that spreadsheets take for formulas."),
    ] = False,
    k: Number = None,
    threshold: Threshold = 0.0,
    prob: Annotated[
        bool, flag("--prob", help="Print the probability after each label (--out: always).")
    ] = False,
    label_prefix: Prefix = "__label__",
    column: Column = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = None,
    json: Annotated[bool, flag("--json", help="Print one JSON object per line.")] = False,
    resume: ResumeParts = False,
    cluster: InferenceCluster = None,
    quiet: Quiet = False,
) -> None:
    """Predict labels, scores, tags or answers for each row of a file.

    One line is printed per row: a classifier prints an empty one if it
    knows no word of the text, or if no label reaches the threshold; any
    model does (null in JSON) for an empty row or one that --skip-bad
    skips. So output and input stay aligned. With --out, a table gets
    the columns of FILE and those of the predictions; -k 3 adds
    prediction_2 and prediction_3, -k -1 a column per label. A fine-tuned
    model or classifier folder reuses the columns and the encoding of its
    training rows. Labels in the file are ignored.
    """
    from sememe.storage.tables import check_free, table_format

    if escape_formulas and (out is None or table_format(out)[0] not in (".csv", ".tsv")):
        raise OptionError("--escape-formulas is for --out tables that end in .csv or .tsv.")
    if out is not None:
        if json:
            raise OptionError("--json prints, --out writes a table: choose one, or --out x.jsonl.")
        table_format(out)
        check_free(out, overwrite=overwrite)
    opened, reading = _opened(model, label_prefix, column, skip_bad, encoding)
    k, has_cells = opened.own_k if k is None else k, out is not None
    with _spread(opened, cluster, out, resume, Reporter(quiet=quiet)):
        rows = opened.predict_stream(file, k=k, threshold=threshold, has_cells=has_cells, **reading)
        if out is not None:
            _write_table(opened, rows, file, k, out, escape_formulas, Reporter(quiet=quiet))
            return
        line = partial(opened.prediction_line, k=k, has_chances=prob)
        if json:
            to_json = partial(dumps, ensure_ascii=is_ascii())
            lines = (to_json(p if p is None else opened.prediction_json(p)) for _, p, _ in rows)
        else:
            lines = ("" if p is None else line(p) for _, p, _ in rows)
        while part := list(islice(lines, _LINES_AT_ONCE)):
            echo("\n".join(part))


@contextmanager
def _spread(
    model: Any, address: str | None, out: Path | None, resume: bool, reporter: Reporter
) -> Iterator[None]:
    """Let a fine-tuned network compute on a cluster, and keep its parts."""
    if model.is_classifier and (address or resume):
        raise OptionError(
            "A fastText classifier predicts faster than its lines can be sent: leave out --cluster "
            "and --resume."
        )
    with spread_inference(address, out, resume=resume, progress=reporter):
        yield


def _write_table(
    model: Any,
    rows: Iterator[PredictedRow],
    file: str,
    k: int,
    out: Path,
    escapes_formulas: bool,
    reporter: Reporter,
) -> None:
    """Write the rows with their predictions to a table, and report progress."""
    from sememe.examples.labelled.texts import PREFIX as BUILTIN
    from sememe.storage.tables import write_table
    from sememe.text.sources import Source, find_sources
    from sememe.text.tables import parquet_types

    columns = model.prediction_columns(k)
    files = [] if file.startswith(BUILTIN) else find_sources(file)
    sources = [Source(found.path) for found in files]
    total = None if reporter.quiet else expected_rows(sources)
    types = {name: own for source in sources for name, own in parquet_types(source).items()}
    with (
        write_table(out, types=types, escapes_formulas=escapes_formulas) as table,
        reporter.task("predicting", total, "rows") as task,
    ):
        table.new, cells, empty = columns, RowCells(sources), [None] * len(columns)
        watched = task.watch(rows)
        while part := list(islice(watched, _ROWS_AT_ONCE)):
            found = (
                empty if row.prediction is None else model.prediction_cells(row.prediction, k)
                for row in part
            )
            # As exact as networks compute, and as pandas reads a csv file back.
            rounded = [
                [float(f"{v:.9g}") if isinstance(v, float) else v for v in own] for own in found
            ]
            table.add([cells.of(row.cells, row.source) for row in part], rounded)
        if not table.num_rows:
            raise InputError(f"{file} has no rows.")
    for name, own in zip(columns, table.new_names, strict=True):
        if name != own:
            reporter.note(f"The file has a column {name!r}; the new one is {own!r}.")
    remark(f"Wrote {table.num_rows:,} rows to {out}", reporter.quiet)
    if table.num_formulas and not escapes_formulas:
        warnings.warn(
            f"{table.num_formulas:,} cells start with =, +, - or @, which Excel takes for formulas "
            "if it opens the file directly: import it there (Data, From Text/CSV), or add "
            "--escape-formulas.",
            stacklevel=2,
        )


def _opened(
    model: str, prefix: str, column: list[str] | None, skip_bad: bool, encoding: str | None
) -> tuple[Any, dict[str, Any]]:
    """A model that predicts, and how it is to read rows."""
    from sememe.models.registry import load

    reading = reading_of(column, skip_bad, **({"encoding": encoding} if encoding else {}))
    opened = load(model, able="predict", columns=reading["columns"], device="auto")
    opened = opened.with_label_prefix(prefix)
    return opened, {**reading, "on_note": lambda text: echo(translate(text), err=True)}


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
    k: Number = None,
    threshold: Threshold = 0.0,
    label_prefix: Prefix = "__label__",
    train: Annotated[
        list[str] | None,
        typer.Option(help="Training rows, for the scores of baselines; repeatable."),
    ] = None,
    column: Column = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = None,
    cluster: InferenceCluster = None,
    json: Json = False,
) -> None:
    """Evaluate a classifier or fine-tuned model on labelled rows.

    A classifier gets precision, recall and F1, overall and per label.
    Lines without a known label are skipped, as in Facebook's fastText. A
    fine-tuned model gets the metrics of its task.
    """
    opened, reading = _opened(model, label_prefix, column, skip_bad, encoding)
    if train and file == "-":
        raise OptionError("--train needs rows in a file: standard input cannot be read twice.")
    with _spread(opened, cluster, None, False, Reporter(quiet=json)):
        scores = opened.evaluate(file, k=k, threshold=threshold, train=paths_of(train), **reading)
    if json:
        print_json({**scores.to_dict(), "remark": scores.remark})
    else:
        print_scores(scores, Path(file).name)
        if not train:
            echo(translate("No baselines: --train names the rows that they learn from."), err=True)
