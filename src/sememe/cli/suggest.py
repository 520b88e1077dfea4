"""The next word, as the keyboard of a phone suggests it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from sememe.cli.opening import Device, LanguageModelPath
from sememe.cli.options import Json
from sememe.cli.screen import examples, print_json, print_table

if TYPE_CHECKING:
    from sememe.tokens.prompts import Suggestion

EXAMPLES = examples(
    'sememe suggest runs/ngram "the most "',
    'sememe suggest runs/ngram "the weath" -k 3',
    'sememe suggest runs/news "今天" --json',
    'sememe suggest gpt2 "Once upon a "',
    "sememe suggest runs/ngram",
)


def suggest(
    model: LanguageModelPath,
    prompt: Annotated[
        str | None,
        typer.Argument(metavar="PROMPT", help="The text so far; left out: asked for line by line."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="How many words.")] = 5,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Suggest the next word of a text, or how the word that it ends in goes on.

    A prompt that ends in a space asks for the next word; one that ends inside a word asks for
    words that begin so. Chinese needs no space: both kinds are suggested.
    """
    from sememe.evaluation.perplexity import open_language_model

    next_words = open_language_model(model, device).next_words
    for line in [prompt] if prompt is not None else _typed_lines():
        _show(line, next_words(line, count=count), json)


def _typed_lines() -> Iterator[str]:
    """What somebody types, line by line, until the input ends."""
    from sememe.errors import OptionError

    if not sys.stdin.isatty():
        raise OptionError("Give a prompt; without one, lines are asked for on a terminal only.")
    typer.echo("Type the start of a sentence; Ctrl-D ends.", err=True)
    while True:
        try:
            yield input("> ")
        except EOFError:
            return


def _show(prompt: str, found: list[Suggestion], as_json: bool) -> None:
    if as_json:
        print_json({"prompt": prompt, "suggestions": [one._asdict() for one in found]})
    elif not found:
        typer.echo("No word that the model knows begins so.", err=True)
    else:
        print_table(("word", "probability"), [one[:2] for one in found])
