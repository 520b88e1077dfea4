"""The command that trains NNLM: text in, the folder of a language model with word vectors out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from sememe.cli import pretraining, training
from sememe.cli.options import expand, flag
from sememe.cli.screen import examples, remark
from sememe.networks.nnlm_config import NNLMTrainingConfig
from sememe.text.settings import TextSettings

EXAMPLES = examples(
    "sememe train nnlm --out runs/nnlm --budget 2m",
    "sememe train nnlm my-texts/ --out runs/mine --preset small --epochs 5",
    "sememe train nnlm my-texts/ --direct --window 3 --out runs/mine",
    "sememe train nnlm my-texts/ --ranking --window 5 --out runs/ranking",
    "sememe train nnlm news.txt --language zh --out runs/news",
    "sememe suggest runs/nnlm 'the shape of the '",
)

Preset = Literal["tiny", "mini", "small", "medium"]


@dataclass(frozen=True, kw_only=True)
class Sizes(pretraining.Sizes):
    """The sizes of an NNLM that shall not be those of its preset."""

    window: Annotated[
        int | None,
        typer.Option(help="Words before the one to predict; with --ranking on each side."),
    ] = None
    dim: Annotated[
        int | None, typer.Option(help="Numbers in a word's vector, instead of the preset's.")
    ] = None
    num_hidden: Annotated[
        int | None, typer.Option(help="Units of the hidden layer, instead of the preset's.")
    ] = None
    dropout: pretraining.Dropout = None


@expand(asked=None, sizes=None, config="Training", text="Text")
def nnlm(
    *,
    corpus: training.Corpus = None,
    asked: training.Asked,
    preset: Annotated[Preset, typer.Option(help="The size of the network.")] = "tiny",
    ranking: Annotated[
        bool,
        flag("--ranking", help="Learn to tell windows of text from broken ones, as SENNA did."),
    ] = False,
    direct: Annotated[
        bool, flag("--direct", help="Connect the vectors to the output, past the hidden layer too.")
    ] = False,
    sizes: Sizes,
    config: NNLMTrainingConfig,
    text: TextSettings,
) -> None:
    """Train Bengio's neural language model: a window of words in, the next word out.

    The options carry the names of the Python call:
    sememe.NNLM(preset="tiny", budget="2m").fit("text.txt").
    """
    from sememe.networks.nnlm_model import NNLM

    architecture = "ranking" if ranking else "softmax"
    model = NNLM(
        preset, architecture=architecture, direct=direct, **sizes.given(), **config.to_dict()
    )
    pretraining.train(model, corpus, text, asked)
    if not asked.json:
        word = training.telling_word(model.vocabulary)
        remark(f"Try: sememe neighbors {asked.out} {word}", asked.quiet)
