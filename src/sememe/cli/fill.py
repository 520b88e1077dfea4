"""The words that a BERT expects in place of [MASK]."""

from __future__ import annotations

from typing import Annotated

import typer

from sememe.cli.opening import BERTFolder, Device, open_network
from sememe.cli.options import Json
from sememe.cli.screen import examples, print_json, print_table

EXAMPLES = examples(
    'sememe fill runs/bert "The [MASK] returns a new array."',
    'sememe fill bert-base-uncased "[MASK] is the capital of [MASK]." --num 3',
    'sememe fill runs/news "国[MASK]喜欢读书。" --json',
)


def fill(
    model: BERTFolder,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="A text with [MASK] in place of a token.")
    ],
    num: Annotated[
        int, typer.Option("--num", "-n", help=r"How many tokens to show for each \[MASK].")
    ] = 5,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Show the likeliest tokens for each [MASK] of a text, with their probabilities.

    Several of them are asked about at once, each by itself: none is told what the others became.
    """
    opened = open_network(model, "bert", device)
    from sememe.networks.guessing import fill_masks

    guesses = fill_masks(*opened, text, top=num)
    if json:
        masks = [[guess._asdict() for guess in own] for own in guesses]
        print_json({"text": text, "masks": masks})
        return
    for index, own in enumerate(guesses):
        if len(guesses) > 1:
            typer.echo(("\n" if index else "") + f"[MASK] {index + 1}")
        rows = [(guess.token, guess.probability) for guess in own]
        print_table(("token", "probability"), rows, title="" if len(guesses) > 1 else text)
