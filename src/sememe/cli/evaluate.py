"""Scores of models on question files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sememe.cli.options import Json, Limit, Model, Quiet
from sememe.cli.screen import console, examples, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from sememe.evaluation import WordsResult

app = typer.Typer(help="Score models on question files.", no_args_is_help=True)


@app.command(
    epilog=examples(
        "sememe evaluate words runs/ladder/models/skipgram",
        "sememe evaluate words runs/mine --data questions-words.txt --data wordsim353.tsv",
        "sememe evaluate words glove.txt --data word-sets/ --json",
    )
)
def words(
    model: Model,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="A question file or a folder of them; repeatable. Left out: the built-in sets.",
        ),
    ] = None,
    restrict_vocab: Annotated[
        int, typer.Option(help="Answer analogies with this many words, the most frequent; 0: all.")
    ] = 300_000,
    method: Annotated[
        Literal["add", "mul"], typer.Option(help="How analogies are answered.")
    ] = "add",
    seed: Annotated[int, typer.Option(help="Start of the bootstrap.")] = 1,
    limit: Limit = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score word vectors: similarity, analogies, odd ones out, groups, antonyms.

    The kind of each file is told by its content. 95 % intervals come from a
    bootstrap; coverage says how many questions had all their words known.
    """
    from sememe.evaluation import evaluate_words
    from sememe.progress import Reporter
    from sememe.vectors import load

    chosen: list[str | None] = [*data] if data else [None]
    vectors, reporter = load(model, limit), Reporter(quiet=quiet)
    results = [
        evaluate_words(
            vectors,
            path,
            restrict_vocab=restrict_vocab or None,
            method=method,
            seed=seed,
            reporter=reporter,
        )
        for path in chosen
    ]
    result = replace(
        results[0],
        scores=[score for one in results for score in one.scores],
        skipped=[name for one in results for name in one.skipped],
    )
    if json:
        print_json(result.to_dict())
    elif console().is_terminal:
        console().print(score_table(result))
    else:
        typer.echo(str(result))
    unasked = [score.name for score in result.scores if not score.num_asked]
    if unasked and not data:
        reporter.note(
            f"The built-in {', '.join(unasked)} are English, and the model knows the words of no "
            "question of them; give questions of your own with --data."
        )


def score_table(result: WordsResult, *, has_sections: bool = True) -> Table:
    """Lay the scores out for a terminal of 80 columns, on which every figure stays whole."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=result.caption, caption_justify="left"
    )
    table.add_column("questions")
    for heading in ("score", "95 % interval", "asked", "coverage"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, measure, *figures in result.rows():
        is_section = not measure
        if not is_section or has_sections:
            label = name if is_section else f"{name}: {measure}"
            table.add_row(label, *figures, style="dim" if is_section else "")
    return table
