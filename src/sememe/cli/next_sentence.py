"""Whether one text follows another, as a BERT sees it."""

from __future__ import annotations

from typing import Annotated

import typer

from sememe.cli.opening import BERTFolder, Device, open_network
from sememe.cli.options import Json
from sememe.cli.screen import examples, print_json

EXAMPLES = examples(
    'sememe next runs/bert "The king went to the palace." "He had breakfast there."',
    'sememe next runs/news "国王喜欢读书。" "女王喜欢音乐。" --json',
)


def next_sentence(
    model: BERTFolder,
    a: Annotated[str, typer.Argument(metavar="A", help="The first text.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The text that may follow it.")],
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Give the probability that text B follows text A: 1 for surely, 0 for surely not."""
    from sememe.errors import InputError

    for name, text in (("A", a), ("B", b)):
        if not text.strip():
            raise InputError(f"{name} is empty: give two texts.")
    opened = open_network(model, "bert", device)
    from sememe.networks.guessing import next_probability

    probability = next_probability(*opened, a, b)
    if json:
        print_json({"a": a, "b": b, "probability": probability})
    else:
        typer.echo(f"{probability:.4f}")
