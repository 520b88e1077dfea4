"""Does a model keep the meanings of a word apart?"""

from __future__ import annotations

from typing import Annotated

import typer

from sememe.cli.opening import Device
from sememe.cli.options import Json, Limit, Quiet
from sememe.cli.screen import examples, print_json

EXAMPLES = examples(
    "sememe evaluate senses runs/bert",
    "sememe evaluate senses runs/word2vec runs/elmo runs/bert --data english --layers last",
    "sememe evaluate senses bert-base-chinese --data chinese --json",
    "sememe evaluate senses runs/bert --data my-words.tsv",
)


def senses(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="Folders of BERT, GPT or ELMo models, or word vectors of any format.",
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SET",
            help="english, chinese, python, docstrings, or a file: word, meaning, sentence with "
            r"the word in \[\[ ]]; repeatable. Left out: the four sets.",
        ),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            help="Layers of a network: a number (0 is the embedding), last, sum-last-four … as "
            "in embed; repeatable. Left out: each of them."
        ),
    ] = None,
    language: Annotated[
        str, typer.Option(help="How words are cut; left out: as the model says, or the text asks.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Start of the bootstrap.")] = 1,
    limit: Limit = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask whether a model keeps the meanings of ambiguous words apart, layer by layer.

    For each sentence: has the nearest other sentence, by the cosine of the word's vectors, the
    same meaning? Word vectors have one vector for all meanings of a word: they score what chance
    does. Beside them stands the mean over the other words of the sentence.
    """
    from sememe.evaluation.senses import evaluate_senses, sense_tables
    from sememe.progress import Reporter

    results = [
        evaluate_senses(
            model, data, layers=layers or "all", language=language, limit=limit, device=device,
            seed=seed, progress=Reporter(quiet=quiet),
        )
        for model in models
    ]  # fmt: skip
    if json:
        print_json({"models": [result.to_dict() for result in results]})
    else:
        typer.echo("\n\n".join(map(str, sense_tables(results))))
