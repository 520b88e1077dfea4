"""The command that trains ULMFiT's language model: text in, a model folder out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from sememe.cli import pretraining, training
from sememe.cli.options import expand
from sememe.cli.screen import examples
from sememe.networks.awd_config import ULMFiTTrainingConfig
from sememe.text.settings import TextSettings

EXAMPLES = examples(
    "sememe train ulmfit --out runs/general --budget 5m",
    "sememe train ulmfit reviews.txt --from runs/general --epochs 5 --out runs/reviews",
    "sememe finetune classify runs/reviews --train train.tsv --schedule slanted "
    "--layer-decay 0.3846 --unfreeze-every 1 --epochs 8 --out runs/opinions",
    "sememe train ulmfit news.txt --language zh --out runs/news",
    "sememe suggest runs/general 'the most '",
)

Preset = Literal["tiny", "mini", "small", "medium", "original"]


@dataclass(frozen=True, kw_only=True)
class Sizes(pretraining.Sizes):
    """The sizes of an AWD-LSTM that shall not be those of its preset."""

    num_layers: Annotated[
        int | None, typer.Option(help="LSTM layers, instead of the preset's.")
    ] = None
    num_cells: pretraining.NumCells = None
    width: pretraining.Width = None
    dropout_factor: Annotated[
        float | None,
        typer.Option(help="The paper's five shares that are left out, times this."),
    ] = None


@expand(asked=None, sizes=None, config="Training", text="Text")
def ulmfit(
    *,
    corpus: training.Corpus = None,
    asked: training.Asked,
    start: Annotated[
        Path | None,
        typer.Option(
            "--from",
            help="Model to go on from with the text of a task: its size, its words, its weights.",
        ),
    ] = None,
    preset: Annotated[Preset, typer.Option(help="The size of a new network.")] = "tiny",
    sizes: Sizes,
    config: ULMFiTTrainingConfig,
    text: TextSettings,
) -> None:
    """Train the language model of ULMFiT, an AWD-LSTM: first on any text, then on that of a task.

    The options carry the names of the Python call:
    sememe.ULMFiT(preset="tiny", budget="5m").fit("text.txt"); --from is its `start`.
    """
    from sememe.networks.awd_model import ULMFiT

    model = ULMFiT(preset, start=start, **sizes.given(), **config.to_dict())
    # Text is read as that of the model to start from was, where nothing else is said.
    own = None if start is not None and text == TextSettings() else text
    pretraining.train(model, corpus, own, asked)
