"""The command that trains GPT: text in, a model folder out."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from sememe.cli import pretraining, training
from sememe.cli.options import expand
from sememe.cli.screen import examples
from sememe.networks.pretraining_config import GPTTrainingConfig
from sememe.text.settings import TextSettings

EXAMPLES = examples(
    "sememe train gpt --out runs/gpt --budget 5m",
    "sememe train gpt my-texts/ --out runs/mine --preset mini --steps 20000",
    "sememe train gpt news.txt --language zh --out runs/news",
    "sememe train gpt my-texts/ --out runs/mine --preset mini --steps 20000 --resume",
    "sememe train gpt my-texts/ --preview",
)

Preset = Literal["tiny", "mini", "gpt1", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"]


@expand(asked=None, sizes=None, config="Training", text="Text")
def gpt(
    *,
    corpus: training.Corpus = None,
    mix: training.Mix = None,
    asked: training.Asked,
    preview: pretraining.Preview = False,
    preset: Annotated[Preset, typer.Option(help="The size of the network.")] = "tiny",
    tokenizer: pretraining.Tokenizer = None,
    sizes: pretraining.PretrainingSizes,
    config: GPTTrainingConfig,
    text: TextSettings,
) -> None:
    """Train GPT: a network that goes on with a text, from plain text.

    The options carry the names of the Python call:
    sememe.GPT(preset="tiny", budget="5m").fit("text.txt").
    """
    from sememe.networks.pretraining import GPT

    pretraining.train(
        GPT(preset, **sizes.given(), **config.to_dict()), training.by_language(corpus, mix), text,
        asked, tokenizer=tokenizer, preview=preview,
    )  # fmt: skip
