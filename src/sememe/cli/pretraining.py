"""What the commands that pre-train networks share: their options, and their closing words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.options import flag
from sememe.cli.screen import print_json, remark
from sememe.cli.training import Asked, checked_out

if TYPE_CHECKING:
    from sememe.networks.language_model import LanguageModel
    from sememe.text.settings import TextSettings

Preview = Annotated[
    bool, flag("--preview", help="Train nothing; show the first examples a training would see.")
]
Tokenizer = Annotated[
    Path | None,
    typer.Option(help="Folder of the tokenizer to use; left out: one is trained on the corpus."),
]
NumLayers = Annotated[int | None, typer.Option(help="Blocks, instead of the preset's.")]
NumCells = Annotated[int | None, typer.Option(help="Cells of a layer, instead of the preset's.")]
Width = Annotated[int | None, typer.Option(help="Numbers in a vector, instead of the preset's.")]
NumHeads = Annotated[int | None, typer.Option(help="Attention heads, instead of the preset's.")]
VocabSize = Annotated[
    int | None, typer.Option(help="Tokens of the tokenizer to train, instead of the preset's.")
]
MaxLength = Annotated[
    int | None, typer.Option(help="Most tokens the network can see, instead of the preset's.")
]
Dropout = Annotated[
    float | None, typer.Option(help="Share left out in training, instead of the preset's.")
]


class Sizes:
    """The base of the sizes of a network that shall not be those of its preset."""

    def given(self) -> dict[str, Any]:
        """Those that were given."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class BlockSizes(Sizes):
    """How many blocks a Transformer has, and how large ones."""

    vocab_size: VocabSize = None
    num_layers: NumLayers = None
    width: Width = None
    num_heads: NumHeads = None


@dataclass(frozen=True, kw_only=True)
class TransformerSizes(BlockSizes):
    """What a Transformer is given beside its blocks."""

    max_length: MaxLength = None
    dropout: Dropout = None


@dataclass(frozen=True, kw_only=True)
class PretrainingSizes(TransformerSizes):
    """The sizes of BERT and GPT, which have one dropout for all their parts."""

    def given(self) -> dict[str, Any]:
        """Those that were given."""
        sizes = super().given()
        return sizes | ({"attention_dropout": self.dropout} if "dropout" in sizes else {})


def train(
    model: LanguageModel,
    corpus: Any,
    text: TextSettings | None,
    asked: Asked,
    *,
    preview: bool = False,
    **more: Any,
) -> None:
    """Fit a language model with what is asked, or show examples; tell how it went."""
    from sememe.networks.word_model import WordModel
    from sememe.progress import Reporter

    reporter = Reporter(quiet=asked.quiet)
    more |= {"text": text, "store": asked.store, "progress": reporter}
    if preview:
        _show(model, corpus, asked.json, **more)
        return
    out = checked_out(asked.out, model.kind)
    model.fit(corpus, out=out, resume=asked.resume, **more)
    figures = model.history.last()
    if asked.json:
        words = {"words": len(model.vocabulary)} if isinstance(model, WordModel) else {}
        print_json({"path": str(out), **words, "figures": figures})
        return
    remark(f"Saved {type(model).__name__} {model.preset} to {out}", asked.quiet)
    for line in summary(figures):
        typer.echo(line)


def summary(figures: dict[str, Any]) -> list[str]:
    """The figures of the last validation in words, each beside what it is measured against.

    Of a mix of languages those of all come first, then those of each.
    """
    own = {
        name.removeprefix("validation_"): value
        for name, value in figures.items()
        if name.startswith("validation_")
    }
    if "unigram_perplexity" in own or "ranking_accuracy" in own:
        return [_word_line(own)]
    marks = [name.removesuffix("perplexity") for name in own if name.endswith("perplexity")]
    lines = []
    for mark in sorted(marks):
        part = {
            name.removeprefix(mark): value for name, value in own.items() if name.startswith(mark)
        }
        lines += [f"{mark[:-1]}: {line}" if mark else line for line in _lines(part)]
    return lines


def _word_line(own: dict[str, Any]) -> str:
    """The figures of a model over words."""
    if "ranking_accuracy" in own:
        return f"windows told from broken ones: {own['ranking_accuracy']:.1%}"
    told = f"perplexity {own['perplexity']:,.1f}"
    if "backward_perplexity" in own:
        told = (
            f"perplexity: {own['forward_perplexity']:,.1f} forwards, "
            f"{own['backward_perplexity']:,.1f} backwards"
        )
    return f"{told} (by frequency alone: {own['unigram_perplexity']:,.1f})"


def _lines(own: dict[str, Any]) -> list[str]:
    lines = []
    for name, title in (("masked", "hidden tokens"), ("token", "next tokens")):
        if f"{name}_accuracy" in own:
            counted = f"the most frequent token: {own['unigram_accuracy']:.1%}"
            if "neighbor_accuracy" in own:
                counted += f", counted neighbors: {own['neighbor_accuracy']:.1%}"
            lines.append(
                f"{title}: {own[f'{name}_accuracy']:.1%} right ({counted}), loss "
                f"{own[f'{name}_loss']:.3f} (by frequency alone: {own['unigram_loss']:.3f}), "
                f"perplexity {own['perplexity']:,.1f}"
            )
    if "next_accuracy" in own:
        lines.append(f"next sentences: {own['next_accuracy']:.1%} right")
    return lines


def _show(model: Any, corpus: Any, as_json: bool, **asked: Any) -> None:
    from dataclasses import asdict

    from sememe.examples.preview import render

    shown = model.preview(corpus, **asked)
    if as_json:
        print_json([asdict(row) for row in shown])
    else:
        typer.echo(render(shown))
