"""The command that trains fastText's word vectors; `--supervised` leads to its classifier."""

from __future__ import annotations

from typing import Annotated

from sememe.cli import training
from sememe.cli.options import expand, flag
from sememe.cli.screen import examples
from sememe.static.fasttext.config import FastTextConfig
from sememe.text.settings import TextSettings

EXAMPLES = examples(
    "sememe train fasttext my-texts/ --out runs/mine",
    "sememe train fasttext news.txt --language zh --minn 1 --maxn 3 --out runs/news",
    "sememe neighbors runs/mine misspeling",
    "sememe convert runs/mine mine.bin --format fasttext",
    "sememe train fasttext --supervised labelled.txt --out runs/labels",
)


@expand(asked=None, config="Model", text="Text")
def fasttext(
    corpus: training.Corpus = None,
    supervised: Annotated[
        bool,
        flag("--supervised", help="Train a classifier of texts instead; it has its own --help."),
    ] = False,
    *,
    asked: training.Fitting,
    config: FastTextConfig,
    text: TextSettings,
) -> None:
    """Train fastText: vectors of words and of the pieces they are made of.

    A word that the text does not have gets a vector from its character n-grams.
    The options carry the names of the Python call:
    sememe.FastText(dim=100).fit("text.txt").
    """
    from sememe.static.fasttext.model import FastText

    training.train(FastText(config), corpus, text, asked)
