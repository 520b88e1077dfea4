"""The commands that train translation models: pairs of texts in, a model folder out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sememe.cli import training
from sememe.cli.options import expand, flag, named
from sememe.cli.program import echo, examples, needed, print_json, remark
from sememe.errors import OptionError
from sememe.localization import translate
from sememe.models.translation.config import (
    SEQ2SEQ_PRESETS,
    TRANSFORMER_PRESETS,
    RecurrentTrainingConfig,
    TranslationTrainingConfig,
)

if TYPE_CHECKING:
    from sememe.models.translation.model import Translator

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="Source texts, one per line; or a table with both sides.",
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="Their translations, one per line."),
]


@dataclass(frozen=True, kw_only=True)
class TranslationOptions(training.NetworkSaving):
    """Options of the commands that train on pairs of texts."""

    dev_source: Annotated[
        str | None,
        typer.Option(help="Validation source texts, or a table; default: a fraction held out."),
    ] = None
    dev_target: Annotated[str | None, typer.Option(help="Translations of --dev-source.")] = None
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="ROLE=NAME",
            help="Column of a table by side, such as source=en; repeatable.",
        ),
    ] = None
    skip_bad: Annotated[
        bool, flag("--skip-bad", help="Skip pairs with an empty side and report how many.")
    ] = False
    encoding: Annotated[str, typer.Option(help="Encoding of the input files.")] = "utf-8"


def train(
    model: Translator,
    source: str,
    target: str | None,
    asked: TranslationOptions,
    tokenizer: Path | None,
    preset: str,
) -> None:
    """Fit a translation model with these options, and print the result."""

    dev: Any = asked.dev_source
    if asked.dev_target is not None:
        if dev is None:
            raise OptionError("--dev-target needs --dev-source.")
        dev = dev, asked.dev_target
    columns = dict(named(asked.column, "--column", "source=en"))
    reading = {
        "dev": dev, "columns": columns or None, "skip_bad": asked.skip_bad,
        "encoding": asked.encoding, "tokenizer": tokenizer,
    }  # fmt: skip
    if training.is_planned(model, source, target, **reading):
        return
    out = needed(asked.out)
    model = training.fit_network(model, (source, target), asked, preset=preset, **reading)
    metrics = model.history.last()
    if asked.json:
        print_json(
            {"path": str(out), "metrics": metrics, "scores": model.scores, **model.told_forecast()}
        )
        return
    remark(f"Saved {type(model).__name__} {model.preset} to {out}", asked.quiet)
    if "validation_perplexity" in metrics:
        text = (
            f"dev pairs: loss {metrics['validation_loss']:.3f} a token, perplexity "
            f"{metrics['validation_perplexity']:,.2f}, {metrics['validation_token_accuracy']:.1%} "
            "of the tokens right"
        )
        echo(translate(text))
    if model.scores:
        echo(score_line(model.scores))


def score_line(scores: dict[str, Any]) -> str:
    """BLEU and chrF as text in the language in use, each with its interval and signature."""
    bleu, chrf = (
        "–" if scores[name] is None else f"{scores[name][0]:.1f} – {scores[name][1]:.1f}"
        for name in ("bleu_interval", "chrf_interval")
    )
    return translate(
        f"BLEU {scores['bleu']:.2f} (95 % interval {bleu}; {scores['bleu_signature']}), "
        f"chrF {scores['chrf']:.2f} (95 % interval {chrf}; {scores['chrf_signature']}) on "
        f"{scores['pairs']:,} pairs, beam {scores['beam']}, one seed"
    )


SEQ2SEQ_SIZES = training.sizes(
    "vocab_size",
    "max_length",
    "dropout",
    num_layers=(int, "Encoder and decoder layers; default: from the preset."),
    width=(int, "Dimensions of the state; default: from the preset."),
    embedding_size=(int, "Dimensions of a token vector; default: from the preset."),
)


@training.app.command(
    epilog=examples(
        "sememe train seq2seq train.en train.de --out runs/lstm --epochs 20",
        "sememe train seq2seq train.en train.de --attention additive --context before --cell gru "
        "-o runs/bahdanau",
        "sememe train seq2seq train.en train.de --attention none --out runs/fixed",
        "sememe train seq2seq eng-cmn.tsv --lowercase --budget 20m --out runs/zh",
    ),
)
@expand(
    asked=None, sizes=SEQ2SEQ_SIZES, preset=training.or_auto(SEQ2SEQ_PRESETS), config="Training"
)
def seq2seq(
    *,
    source: Source,
    target: Target = None,
    asked: TranslationOptions,
    preset: training.Preset = "small",
    attention: Annotated[
        Literal["multiplicative", "additive", "none"],
        typer.Option(help="Attention: multiplicative (Luong), additive (Bahdanau), or none."),
    ] = "multiplicative",
    context: Annotated[
        Literal["after", "feeding", "before"],
        typer.Option(
            help="Attention after the step (fast), with input feeding, or before the step."
        ),
    ] = "after",
    cell: Annotated[Literal["lstm", "gru"], typer.Option(help="Recurrent cell.")] = "lstm",
    tokenizer: training.Tokenizer = None,
    sizes: training.Sizes,
    config: RecurrentTrainingConfig,
) -> None:
    """Train an LSTM or GRU translator, with or without attention.

    SOURCE and TARGET are aligned line by line; or SOURCE is a table with
    both columns.

    In Python:
    sememe.Seq2Seq(attention="additive").fit("train.en", "train.de").
    """
    from sememe.models.translation.model import Seq2Seq

    own = {**sizes.given(), **config.to_dict()}
    model = Seq2Seq(
        training.first(preset, "small"), attention=attention, context=context, cell=cell, **own
    )
    train(model, source, target, asked, tokenizer, preset)


@training.app.command(
    epilog=examples(
        "sememe train transformer train.en train.de --out runs/de --epochs 30",
        "sememe train transformer train.en.gz train.de.gz --dev-source val.en --dev-target val.de "
        "-o runs/de",
        "sememe train transformer eng-cmn.tsv --lowercase --budget 20m --out runs/zh",
        "sememe train transformer pairs.jsonl --column source=en --column target=zh --out runs/zh",
        "sememe train transformer train.en train.de --preset base --warmup 4000 --steps 100000 -o "
        "runs/base",
    ),
)
@expand(
    asked=None,
    sizes=training.TRANSFORMER_SIZES,
    preset=training.or_auto(TRANSFORMER_PRESETS),
    config="Training",
)
def transformer(
    *,
    source: Source,
    target: Target = None,
    asked: TranslationOptions,
    preset: training.Preset = "small",
    tokenizer: training.Tokenizer = None,
    sizes: training.Sizes,
    norm: Annotated[
        Literal["post", "pre"],
        typer.Option(help="Layer normalisation after (paper) or before each sub-layer."),
    ] = "post",
    config: TranslationTrainingConfig,
) -> None:
    """Train a Transformer translator.

    SOURCE and TARGET are aligned line by line; or SOURCE is a table with
    both columns. Both languages share one sub-word vocabulary.

    In Python:
    sememe.Transformer(preset="small").fit("train.en", "train.de").
    """
    from sememe.models.translation.model import Transformer

    model = Transformer(
        training.first(preset, "small"), norm=norm, **sizes.given(), **config.to_dict()
    )
    train(model, source, target, asked, tokenizer, preset)
