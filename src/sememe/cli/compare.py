"""Two fine-tuned models on the same rows: is the difference real?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sememe.cli.finetuning import Column, SkipBad, paths_of, reading_of
from sememe.cli.options import Json, Quiet
from sememe.cli.screen import examples, print_json

EXAMPLES = examples(
    "sememe compare runs/small runs/large --data test.tsv",
    "sememe compare runs/small runs/large --data eng.testb --json",
    "sememe compare runs/a/CoLA/dev.seed-1.jsonl runs/b/CoLA/dev.seed-1.jsonl --metric matthews",
)
_FIRST = "A fine-tuned model, or predictions that evaluate --out kept (.jsonl)."


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help=_FIRST)],
    second: Annotated[Path, typer.Argument(metavar="B", help="The other one.")],
    data: Annotated[
        list[str] | None, typer.Option(help="Labelled rows that both answer; may be repeated.")
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            help="accuracy, binary_f1, macro_f1, matthews, pearson, spearman, entity_f1, squad_f1, "
            "squad_exact, squad2_f1, cmrc_f1 …; left out: that of the task.",
            show_default=False,
        ),
    ] = "",
    test: Annotated[
        Literal["bootstrap", "mcnemar"], typer.Option(help="The paired test that decides.")
    ] = "bootstrap",
    positive: Annotated[str, typer.Option(help="The label whose F1 binary_f1 counts.")] = "1",
    resamples: Annotated[int, typer.Option(help="How often the rows are redrawn.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Start of the bootstrap.")] = 1,
    column: Column = None,
    skip_bad: SkipBad = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test whether one model is better than another on the same rows, or only seems so.

    A paired bootstrap redraws the rows and sees how the difference of the scores moves; McNemar's
    test stands beside it where rows are right or wrong.
    """
    from sememe.errors import OptionError
    from sememe.evaluation.comparing import compare_files, compare_tasks
    from sememe.progress import Reporter

    if resamples < 1:
        raise OptionError(f"--resamples must be 1 or more, not {resamples}.")
    options = {"positive": positive, "test": test, "num_resamples": resamples, "seed": seed}
    if first.is_file() and second.is_file():
        if data:
            raise OptionError("Files of predictions know what is right: leave --data out.")
        found = compare_files(first, second, metric=metric, **options)
    elif not data:
        raise OptionError("--data must name the labelled rows that both models answer.")
    else:
        from sememe.networks.installed import need_torch

        need_torch()
        reading = reading_of(column, skip_bad, "utf-8")
        found = compare_tasks(
            first, second, paths_of(data), metric=metric, reading=reading,
            on_note=Reporter(quiet=quiet).note, **options,
        )  # fmt: skip
    if json:
        print_json(found.to_dict())
        return
    low, high = found.bootstrap.interval
    typer.echo(f"{found.metric.replace('_', ' ')} on {found.num_rows:,} rows")
    width = max(len(found.first), len(found.second))
    for name, score in (
        (found.first, found.bootstrap.first),
        (found.second, found.bootstrap.second),
    ):
        typer.echo(f"  {name:<{width}}  {100 * score:.2f}")
    typer.echo(
        f"  difference {100 * found.bootstrap.difference:+.2f}, 95 % interval "
        f"{100 * low:+.2f} to {100 * high:+.2f} (paired bootstrap, "
        f"{found.bootstrap.num_resamples:,} resamples, p = {found.bootstrap.p_value:.4f})"
    )
    if found.mcnemar is not None:
        typer.echo(
            f"  right alone: {found.first} {found.mcnemar.num_only_first:,}, {found.second} "
            f"{found.mcnemar.num_only_second:,} (McNemar, p = {found.mcnemar.p_value:.4f})"
        )
    typer.echo(found.verdict)
