"""Group the rows of texts: those that say the same (`duplicates`), and by `topics`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sememe.cli.options import Device, Json, Quiet, expand, flag, paths_of
from sememe.cli.program import app, echo, examples, print_json, print_table, remark
from sememe.errors import OptionError
from sememe.localization import translate
from sememe.progress import Reporter
from sememe.search.config import DuplicatesConfig, TopicsConfig

Texts = Annotated[
    list[str],
    typer.Argument(
        metavar="TEXT", help="Text files, tables, folders or patterns; - for standard input."
    ),
]
Overwrite = Annotated[bool, flag("--overwrite", help="Replace an existing --out.")]


@app.command(
    epilog=examples(
        "sememe duplicates reviews.csv --model runs/encoder --out duplicates.csv",
        "sememe duplicates news.jsonl --column text=body --model runs/encoder --threshold 0.9",
        "sememe duplicates notes/  # without a model: by their words",
    ),
)
@expand(config="Rows")
def duplicates(
    texts: Texts,
    config: DuplicatesConfig,
    model: Annotated[
        str, typer.Option(help="Model folder or vector file; without: by words (MinHash).")
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Table of the groups: .csv, .tsv, .jsonl or .parquet."),
    ] = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find groups of rows that say nearly the same.

    A group is a row and later rows that are similar enough to it: by the
    cosine of a model's vectors, compared exactly, or without a model by
    the shingles that they share (MinHash, as in sememe clean). Each row of
    the table has the number of its group and its similarity to the first.
    """
    from sememe.search.duplicates import duplicates as find

    report = find(
        paths_of(texts), model or None, out=out, overwrite=overwrite, device=device,
        progress=Reporter(quiet=quiet), **asdict(config),
    )  # fmt: skip
    if json:
        print_json(report.to_dict())
        return
    rows = [
        (number, f"{one.similarity:.3f}", one.id, one.text)
        for number, group in enumerate(report.samples, 1)
        for one in group
    ]
    if rows:
        print_table(("group", "similarity", "id", "text"), rows, always_headed=True)
        echo()
    echo(translate(report.summary()))
    if out is not None:
        remark(f"Wrote {sum(map(len, report.groups)):,} rows to {out}", quiet)


@app.command(
    epilog=examples(
        "sememe topics reviews.csv --model runs/encoder",
        "sememe topics news.jsonl --model runs/encoder --num-topics 20 --out topics.csv",
        "sememe topics news.txt --model runs/zh --method hdbscan --picture topics.png",
    ),
)
@expand(config="Topics")
def topics(
    texts: Texts,
    config: TopicsConfig,
    model: Annotated[
        str, typer.Option(help="Model folder or vector file (required).", show_default=False)
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Table of all rows with topics: .csv, .tsv, .jsonl, .parquet."
        ),
    ] = None,
    picture: Annotated[
        list[Path] | None, typer.Option(help="Output .png or .svg map of the rows; repeatable.")
    ] = None,
    overwrite: Overwrite = False,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Group rows by topic and describe each topic by words.

    The vectors of a model are clustered by k-means or HDBSCAN. The words
    of a topic are those that are frequent in it and rare in the others
    (c-TF-IDF), without stop words.
    """
    from sememe.search.topics import topics as group

    if not model:
        raise OptionError("--model must name a model folder or vector file.")
    found = group(
        paths_of(texts), model, out=out, picture=picture, overwrite=overwrite, device=device,
        progress=Reporter(quiet=quiet), **asdict(config),
    )  # fmt: skip
    if json:
        print_json(found.to_dict())
        return
    rows = [(one.number, f"{one.num_rows:,}", ", ".join(one.words)) for one in found.topics]
    print_table(("topic", "rows", "words"), rows, always_headed=True)
    if found.num_left_out:
        echo(translate(f"{found.num_left_out:,} rows have no topic."))
    if out is not None:
        remark(f"Wrote {len(found.of_rows):,} rows to {out}", quiet)
    for path in picture or []:
        remark(f"Saved {path}", quiet)
