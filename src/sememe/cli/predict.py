"""Predict labels of texts (`predict`), and score them (`evaluate labels`).

Both take fastText classifiers and the folders of fine-tuned tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from itertools import chain, count, islice
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli import evaluate
from sememe.cli.options import Column, Json, Quiet, SkipBad, flag, reading_of
from sememe.cli.program import app, echo, examples, is_ascii, print_json, print_scores, remark
from sememe.errors import InputError, OptionError
from sememe.localization import translate
from sememe.progress import Reporter

if TYPE_CHECKING:
    from sememe.contract import PredictedRow
    from sememe.progress import ProgressTask

_ROWS_AT_ONCE = 4_096
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
    k: Number = 1,
    threshold: Threshold = 0.0,
    prob: Annotated[
        bool, flag("--prob", help="Print the probability after each label (--out: always).")
    ] = False,
    label_prefix: Prefix = "__label__",
    column: Column = None,
    skip_bad: SkipBad = False,
    encoding: Encoding = None,
    json: Annotated[bool, flag("--json", help="Print one JSON object per line.")] = False,
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

    if out is not None:
        if json:
            raise OptionError("--json prints, --out writes a table: choose one, or --out x.jsonl.")
        table_format(out)
        check_free(out, overwrite=overwrite)
    opened, reading = _opened(model, label_prefix, column, skip_bad, encoding)
    has_cells = out is not None
    rows = opened.predict_stream(file, k=k, threshold=threshold, has_cells=has_cells, **reading)
    if out is not None:
        _write_table(opened, rows, file, k, out, Reporter(quiet=quiet))
        return
    line = partial(opened.prediction_line, k=k, has_chances=prob)
    if json:
        to_json = partial(dumps, ensure_ascii=is_ascii())
        lines = (to_json(p if p is None else opened.prediction_json(p)) for _, p, _ in rows)
    else:
        lines = ("" if p is None else line(p) for _, p, _ in rows)
    while part := list(islice(lines, _ROWS_AT_ONCE)):
        echo("\n".join(part))


def _write_table(
    model: Any, rows: Iterator[PredictedRow], file: str, k: int, out: Path, reporter: Reporter
) -> None:
    """Write the rows with their predictions to a table, and report progress."""
    from sememe.examples.labelled.texts import PREFIX as BUILTIN
    from sememe.storage.tables import write_table
    from sememe.text.sources import Source, find_sources
    from sememe.text.tables import num_rows, parquet_types

    columns = model.prediction_columns(k)
    files = [] if file.startswith(BUILTIN) else find_sources(file)
    sources = [Source(found.path) for found in files]
    counts = [num_rows(source) for source in sources if not reporter.quiet]
    total = sum(filter(None, counts)) if counts and None not in counts else None
    types = {name: own for source in sources for name, own in parquet_types(source).items()}
    with (
        write_table(out, types=types) as table,
        reporter.task("predicting", total, "rows") as task,
    ):
        names: dict[str, str] = {}
        given = _given(rows, task, has_files=len(sources) > 1)
        while part := list(islice(given, _ROWS_AT_ONCE)):
            if not names:
                taken = {name for cells, _ in part for name in cells}
                names = _free_names(columns, taken, reporter)
                table.types |= {names[name]: own for name, own in columns.items()}
            for cells, prediction in part:
                if not cells.keys().isdisjoint(names.values()):
                    raise InputError(
                        f"{file}, row {cells['row']}: its columns are not those of the first rows."
                    )
                own: list[Any] = [None] * len(names)
                if prediction is not None:
                    # As exact as the networks compute, and as pandas reads a csv file back.
                    found = model.prediction_cells(prediction, k)
                    own = [float(f"{v:.9g}") if isinstance(v, float) else v for v in found]
                cells |= zip(names.values(), own, strict=True)
            table.add([cells for cells, _ in part])
        if not table.num_rows:
            raise InputError(f"{file} has no rows.")
    remark(f"Wrote {table.num_rows:,} rows to {out}", reporter.quiet)
    if table.num_formulas:
        echo(
            f"Warning: {table.num_formulas:,} cells start with =, +, - or @, which Excel takes for "
            "formulas if it opens the file directly: import it there (Data, From Text/CSV).",
            err=True,
        )


def _given(
    rows: Iterator[PredictedRow], task: ProgressTask, *, has_files: bool
) -> Iterator[tuple[dict[str, Any], Any]]:
    """The cells of each row with its number, and perhaps its file, before them."""
    from sememe.text.tables import unflat

    number, source = 0, ""
    for done, row in enumerate(rows, 1):
        number = number + 1 if row.source == source else 1
        source = row.source
        cells = {"text": row.cells["1"]} if [*row.cells] == ["1"] else unflat(row.cells)
        yield {"row": number} | ({"file": source} if has_files else {}) | cells, row.prediction
        task.update(done)


def _free_names(
    columns: Iterable[str], taken: Collection[str], reporter: Reporter
) -> dict[str, str]:
    """A name for each column of predictions that the file does not have."""
    names = {}
    for name in columns:
        all_names = chain([name], (f"{name} ({n})" for n in count(2)))
        names[name] = next(own for own in all_names if own not in taken)
        if names[name] != name:
            reporter.note(f"The file has a column {name!r}; the new one is {names[name]!r}.")
    return names


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
    opened, reading = _opened(model, label_prefix, column, skip_bad, encoding)
    scores = opened.evaluate(file, k=k, threshold=threshold, **reading)
    if json:
        print_json({**scores.to_dict(), "remark": scores.remark})
    else:
        print_scores(scores, Path(file).name)
