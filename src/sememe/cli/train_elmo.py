"""The command that trains ELMo: text in, a model folder out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from sememe.cli import pretraining, training
from sememe.cli.options import expand
from sememe.cli.screen import examples
from sememe.networks.elmo_config import CasedTextSettings, ELMoTrainingConfig

EXAMPLES = examples(
    "sememe train elmo --out runs/elmo --budget 5m",
    "sememe train elmo my-texts/ --out runs/mine --preset small --epochs 3",
    "sememe train elmo news.txt --language zh --out runs/news",
    "sememe train elmo tokens.txt --language none --input words --out runs/tokens",
    "sememe train elmo my-texts/ --out runs/mine --preset small --epochs 3 --resume",
)

Preset = Literal["tiny", "mini", "small", "medium", "original"]


@dataclass(frozen=True, kw_only=True)
class Sizes(pretraining.Sizes):
    """The sizes of an ELMo that shall not be those of its preset."""

    num_layers: Annotated[
        int | None, typer.Option(help="LSTM layers each way, instead of the preset's.")
    ] = None
    num_cells: pretraining.NumCells = None
    width: Annotated[
        int | None, typer.Option(help="Numbers a layer gives, instead of the preset's.")
    ] = None
    filters: Annotated[
        str | None, typer.Option(help='Filters over characters, such as "1:32 2:64 3:128".')
    ] = None
    num_highways: Annotated[
        int | None, typer.Option(help="Highway layers, instead of the preset's.")
    ] = None
    dropout: pretraining.Dropout = None
    cell_clip: Annotated[
        float | None, typer.Option(help="Hold cells inside ± this, without cuDNN: slow.")
    ] = None
    output_clip: Annotated[
        float | None, typer.Option(help="Hold projections inside ± this, without cuDNN: slow.")
    ] = None


@expand(asked=None, sizes=None, config="Training", text="Text")
def elmo(
    *,
    corpus: training.Corpus = None,
    asked: training.Asked,
    preset: Annotated[Preset, typer.Option(help="The size of the network.")] = "tiny",
    input: Annotated[
        Literal["characters", "words", "subwords"],
        typer.Option(help="How words come in: by characters, a vector each, or by sub-words."),
    ] = "characters",
    sizes: Sizes,
    config: ELMoTrainingConfig,
    text: CasedTextSettings,
) -> None:
    """Train ELMo: words in context, from what comes before them and after them.

    The options carry the names of the Python call:
    sememe.ELMo(preset="tiny", budget="5m").fit("text.txt").
    """
    from sememe.networks.elmo_model import ELMo

    model = ELMo(preset, input=input, **sizes.given(), **config.to_dict())
    pretraining.train(model, corpus, text, asked)
