"""Text from a GPT, shown while it is written."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated

import typer

from sememe.cli.opening import Device, GPTFolder, open_network
from sememe.cli.options import Json, expand, flag
from sememe.cli.screen import examples, print_json
from sememe.networks.sampling import Sampling

EXAMPLES = examples(
    'sememe generate runs/gpt "Returns the"',
    'sememe generate gpt2 "Once upon a time" --max-tokens 100 --temperature 0.8 --top-p 0.95',
    'sememe generate runs/gpt "The array" --greedy',
    'sememe generate runs/news "国王" --num 3 --seed 7 --json',
)


@expand(sampling="Choice of tokens")
def generate(
    model: GPTFolder,
    prompt: Annotated[
        str, typer.Argument(metavar="PROMPT", help="How the text starts; left out: a new text.")
    ] = "",
    num: Annotated[int, typer.Option("--num", "-n", min=1, help="How many texts to write.")] = 1,
    greedy: Annotated[
        bool, flag("--greedy", help="Take the likeliest token each time, as --temperature 0 does.")
    ] = False,
    device: Device = "auto",
    json: Json = False,
    *,
    sampling: Sampling,
) -> None:
    """Go on with a text; the prompt and what follows appear as they are written.

    The same seed writes the same text. Of several texts each has the seed after the last one's.
    """
    opened = open_network(model, "gpt", device)
    from sememe.networks.generation import stream

    if greedy:
        sampling = replace(sampling, temperature=0.0)
    texts = []
    for index in range(num):
        options = asdict(replace(sampling, seed=sampling.seed + index))
        pieces = stream(*opened, prompt, **options)
        if json:
            texts.append("".join(pieces))
            continue
        if index:
            typer.echo()
        typer.echo(prompt, nl=False)
        for piece in pieces:
            typer.echo(piece, nl=False)
        typer.echo()
    if json:
        print_json({"prompt": prompt, "texts": texts, **asdict(sampling)})
