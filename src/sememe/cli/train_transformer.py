"""The command that trains the Transformer: pairs of texts in, a model folder out."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from sememe.cli import pretraining, translation
from sememe.cli.options import expand
from sememe.cli.screen import examples
from sememe.networks.translation_config import TranslationTrainingConfig

EXAMPLES = examples(
    "sememe train transformer train.en train.de --out runs/de --epochs 30",
    "sememe train transformer train.en.gz train.de.gz --dev-source val.en --dev-target val.de -o "
    "runs/de",
    "sememe train transformer eng-cmn.tsv --lowercase --budget 20m --out runs/zh",
    "sememe train transformer pairs.jsonl --column source=en --column target=zh --out runs/zh",
    "sememe train transformer train.en train.de --preset base --warmup 4000 --steps 100000 -o "
    "runs/base",
)

Preset = Literal["tiny", "small", "base", "big"]


@expand(asked=None, sizes=None, config="Training")
def transformer(
    *,
    source: translation.Source,
    target: translation.Target = None,
    asked: translation.Asked,
    preset: Annotated[Preset, typer.Option(help="The size of the network.")] = "small",
    tokenizer: pretraining.Tokenizer = None,
    sizes: pretraining.TransformerSizes,
    norm: Annotated[
        Literal["post", "pre"],
        typer.Option(help="Normalise after each part, as in the paper, or before it."),
    ] = "post",
    config: TranslationTrainingConfig,
) -> None:
    """Train the Transformer to translate: attention alone, from pairs of texts.

    SOURCE and TARGET are aligned line by line; or SOURCE is a table with two columns. One table of
    sub-words serves both languages. The options carry the names of the Python call:
    sememe.Transformer(preset="small", epochs=30).fit("train.en", "train.de").
    """
    from sememe.tasks.translate import Transformer

    model = Transformer(preset, norm=norm, **sizes.given(), **config.to_dict())
    translation.train(model, source, target, asked, tokenizer)
