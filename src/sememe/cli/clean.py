"""Clean a corpus: remove repeated, broken and useless rows and lines (`clean`)."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sememe.cli.options import Json, Quiet, expand, flag, paths_of
from sememe.cli.program import app, echo, examples, print_json, print_table, remark
from sememe.localization import translate, translations
from sememe.notebook import aligned
from sememe.progress import Reporter
from sememe.text.cleaning.config import CleanConfig


@app.command(
    epilog=examples(
        "sememe clean my-texts/ --out clean.txt",
        "sememe clean reviews.csv --column text=review --out clean.csv --removed removed.csv",
        "sememe clean news.jsonl --keep-language en --threshold 0.7 --out clean.jsonl",
        "sememe clean news.txt --encoding gb18030 --keep-language zh --out clean.txt",
        "sememe clean my-texts/  # writes nothing, shows what would be removed",
    ),
)
@expand(config="Rules")
def clean(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="CORPUS", help="Text files, tables, folders or patterns; - for standard input."
        ),
    ],
    config: CleanConfig,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Output .txt, .csv, .tsv, .jsonl or .parquet file; default: none."
        ),
    ] = None,
    removed: Annotated[
        Path | None,
        typer.Option(help="Table of what was removed and why: .csv, .tsv, .jsonl, .parquet."),
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", help="Replace existing output files.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove repeated, broken and useless rows and lines of a corpus.

    A row is a document of a text file or a row of a table. Exact and
    near-duplicates of earlier rows, boilerplate lines, lines that are too
    long and broken characters are removed by default; --keep-language
    keeps some languages only. The other columns of a table are kept.
    Output is UTF-8. Without --out, the report shows what would be removed.
    """
    from sememe.text.cleaning.running import clean as clean_corpus

    report = clean_corpus(
        paths_of(corpus), out, removed=removed, overwrite=overwrite,
        progress=Reporter(quiet=quiet), **asdict(config),
    )  # fmt: skip
    if json:
        print_json(report.to_dict())
        return
    if counts := report.counts():
        headings = "rule", "rows removed", "share", "lines removed"
        print_table(
            headings, counts, always_headed=True, names=translations(rule for rule, *_ in counts)
        )
        echo()
        _print_samples(report.samples())
        echo()
    echo(translate(report.summary()))
    if out is not None:
        remark(f"Wrote {report.num_kept:,} rows to {out}", quiet)


def _print_samples(samples: list[tuple[str, ...]]) -> None:
    """Print columns of text, which a table would align to the right."""
    if not sys.stdout.isatty():
        print_table(("rule", "place", "text"), samples, always_headed=True)
        return
    for line in aligned([(translate(rule), *others) for rule, *others in samples], num_left=3):
        echo(line)
