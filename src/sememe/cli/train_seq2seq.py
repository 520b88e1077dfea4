"""The command that trains a recurrent encoder and decoder: pairs of texts in, a folder out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from sememe.cli import pretraining, translation
from sememe.cli.options import expand
from sememe.cli.screen import examples
from sememe.networks.translation_config import RecurrentTrainingConfig

EXAMPLES = examples(
    "sememe train seq2seq train.en train.de --out runs/lstm --epochs 20",
    "sememe train seq2seq train.en train.de --attention additive --context before --cell gru -o "
    "runs/bahdanau",
    "sememe train seq2seq train.en train.de --attention none --out runs/fixed",
    "sememe train seq2seq eng-cmn.tsv --lowercase --budget 20m --out runs/zh",
)

Preset = Literal["tiny", "small", "base"]


@dataclass(frozen=True, kw_only=True)
class Sizes(pretraining.Sizes):
    """The sizes of an encoder and decoder that shall not be those of their preset."""

    vocab_size: pretraining.VocabSize = None
    num_layers: Annotated[
        int | None, typer.Option(help="Layers on either side, instead of the preset's.")
    ] = None
    width: Annotated[
        int | None, typer.Option(help="Numbers in a state, instead of the preset's.")
    ] = None
    embedding_size: Annotated[
        int | None, typer.Option(help="Numbers in a token's vector, instead of the preset's.")
    ] = None
    max_length: pretraining.MaxLength = None
    dropout: pretraining.Dropout = None


@expand(asked=None, sizes=None, config="Training")
def seq2seq(
    *,
    source: translation.Source,
    target: translation.Target = None,
    asked: translation.Asked,
    preset: Annotated[Preset, typer.Option(help="The size of the network.")] = "small",
    attention: Annotated[
        Literal["multiplicative", "additive", "none"],
        typer.Option(help="Luong's attention, Bahdanau's, or all of a text in one vector."),
    ] = "multiplicative",
    context: Annotated[
        Literal["after", "feeding", "before"],
        typer.Option(
            help="Where what was looked at enters: after a step (fast), fed to the next one too "
            "(Luong's input feeding), or before the step (Bahdanau)."
        ),
    ] = "after",
    cell: Annotated[Literal["lstm", "gru"], typer.Option(help="The kind of layers.")] = "lstm",
    tokenizer: pretraining.Tokenizer = None,
    sizes: Sizes,
    config: RecurrentTrainingConfig,
) -> None:
    """Train an encoder and a decoder of LSTM or GRU layers to translate, with attention or without.

    SOURCE and TARGET are aligned line by line; or SOURCE is a table with two columns. The options
    carry the names of the Python call:
    sememe.Seq2Seq(attention="additive", epochs=20).fit("train.en", "train.de").
    """
    from sememe.tasks.translate import Seq2Seq

    own = {**sizes.given(), **config.to_dict()}
    model = Seq2Seq(preset, attention=attention, context=context, cell=cell, **own)
    translation.train(model, source, target, asked, tokenizer)
