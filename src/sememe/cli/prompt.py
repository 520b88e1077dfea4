"""Few-shot prompts for language models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from sememe.cli.options import (
    Column,
    Device,
    Json,
    LanguageModelPath,
    Quiet,
    SkipBad,
    flag,
    named,
    paths_of,
    reading_of,
)
from sememe.cli.program import app, echo, examples, print_json
from sememe.errors import OptionError
from sememe.options import MAX_SEEDS
from sememe.progress import Reporter


@app.command(
    epilog=examples(
        "sememe prompt runs/gpt --train train.tsv --data dev.tsv --words 0=bad --words 1=good",
        "sememe prompt gpt2 --train agnews.tsv --data test.tsv --shots 0 --shots 4 --choose-words",
        "sememe prompt runs/gpt --train train.tsv --data dev.tsv --against runs/fine-tuned --json",
        "sememe prompt runs/gpt --task pairs --train train.tsv --data dev.tsv "
        "--instruction 'Do both sentences say the same?'",
    )
)
def prompt(
    model: LanguageModelPath,
    train: Annotated[
        list[str] | None,
        typer.Option(help="Labelled rows that examples are taken from (required); repeatable."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="Labelled rows to be scored (required); repeatable."),
    ] = None,
    task: Annotated[
        Literal["classify", "pairs"], typer.Option(help="One text per row, or two.")
    ] = "classify",
    shots: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            max=1_000,
            help="Examples per prompt; repeatable; default: 0, 1 and 4.",
            show_default=False,
        ),
    ] = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LABEL=WORD", help="Word that stands for a label; repeatable; default: it."
        ),
    ] = None,
    choose_words: Annotated[
        bool, flag("--choose-words", help="Find the label words in the training rows.")
    ] = False,
    instruction: Annotated[str, typer.Option(help="Text at the start of every prompt.")] = "",
    template: Annotated[
        str,
        typer.Option(
            help="How a row is written: {text}, {second}, and {label} at the end.",
            show_default=False,
        ),
    ] = "",
    seeds: Annotated[
        int, typer.Option(min=1, max=MAX_SEEDS, help="Random choices of examples.")
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="First random seed.")] = 1,
    max_rows: Annotated[
        int, typer.Option(min=1, max=10**9, help="Score at most N random rows.")
    ] = 500,
    against: Annotated[
        Path | None, typer.Option(help="Fine-tuned model to compare with.", show_default=False)
    ] = None,
    column: Column = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify rows by zero-, one- and few-shot prompts, without training.

    A prompt has an instruction, examples with their labels, and a new row.
    The label whose word is most likely next is the answer; calibrated
    scores divide by those of a row without content. Chance, the most
    frequent label and a fine-tuned model are scored on the same rows.
    """
    from sememe.evaluation.prompting import evaluate_prompts

    if not train or not data:
        raise OptionError("--train and --data must name labelled rows.")
    found = evaluate_prompts(
        model, paths_of(train), paths_of(data), task=task, shots=tuple(shots or (0, 1, 4)),
        words=dict(named(words, "--words", "1=good")), choose=choose_words, template=template,
        instruction=instruction, seeds=range(seed, seed + seeds), max_rows=max_rows,
        against=against, reading=reading_of(column, skip_bad), device=device,
        reporter=Reporter(quiet=quiet),
    )  # fmt: skip
    if json:
        print_json(found.to_dict())
        return
    if not quiet:
        num, text = list(found.prompts.items())[-1]
        echo(f"[{num}]\n{text}\n")
    echo(str(found))
