"""The command that trains BERT: text in, a model folder out."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from sememe.cli import pretraining, training
from sememe.cli.options import expand
from sememe.cli.screen import examples
from sememe.examples.masking_config import MaskingConfig
from sememe.networks.pretraining_config import BERTTrainingConfig
from sememe.text.settings import TextSettings

EXAMPLES = examples(
    "sememe train bert --out runs/bert --budget 5m",
    "sememe train bert my-texts/ --out runs/mine --preset mini --steps 20000",
    "sememe train bert news.txt --language zh --unit word --out runs/news",
    "sememe train bert my-texts/ --out runs/mine --preset mini --steps 20000 --resume",
    "sememe train bert --mix en=my-texts/ --mix zh=news.txt --out runs/both",
    "sememe train bert my-texts/ --unit word --preview",
)

Preset = Literal["tiny", "mini", "small", "medium", "base", "large"]


@expand(asked=None, sizes=None, config="Training", masking="Masking", text="Text")
def bert(
    *,
    corpus: training.Corpus = None,
    mix: training.Mix = None,
    asked: training.Asked,
    preview: pretraining.Preview = False,
    preset: Annotated[Preset, typer.Option(help="The size of the network.")] = "tiny",
    tokenizer: pretraining.Tokenizer = None,
    sizes: pretraining.PretrainingSizes,
    config: BERTTrainingConfig,
    masking: MaskingConfig,
    text: TextSettings,
) -> None:
    """Train BERT: a network that reads both sides of a word, from plain text.

    The options carry the names of the Python call:
    sememe.BERT(preset="tiny", budget="5m").fit("text.txt").
    """
    from dataclasses import asdict

    from sememe.networks.pretraining import BERT

    own = {**sizes.given(), **config.to_dict(), **asdict(masking)}
    pretraining.train(
        BERT(preset, **own), training.by_language(corpus, mix), text, asked, tokenizer=tokenizer,
        preview=preview,
    )  # fmt: skip
