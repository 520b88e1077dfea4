"""The command that trains fastText's word vectors; `--supervised` leads to its classifier."""

from __future__ import annotations

from typing import Annotated

from sememe.cli import training
from sememe.cli.options import Json, Quiet, expand, flag
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


@expand(config="Model", text="Text")
def fasttext(
    corpus: training.Corpus = None,
    supervised: Annotated[
        bool,
        flag("--supervised", help="Train a classifier of texts instead; it has its own --help."),
    ] = False,
    out: training.Out = None,
    resume: training.Resume = False,
    start: training.Start = None,
    phrases: training.Phrases = 0,
    store: training.Store = None,
    checkpoint_minutes: training.CheckpointMinutes = 10.0,
    evaluate_every: training.EvaluateEvery = 0,
    data: training.Data = None,
    early_stopping: training.EarlyStopping = 0,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: FastTextConfig,
    text: TextSettings,
) -> None:
    """Train fastText: vectors of words and of the pieces they are made of.

    A word that the text does not have gets a vector from its character n-grams.
    The options carry the names of the Python call:
    sememe.FastText(dim=100).fit("text.txt").
    """
    from sememe.static.fasttext.model import FastText

    training.train(
        FastText(config), corpus, text=text, out=out, resume=resume, start=start, phrases=phrases,
        store=store, checkpoint_minutes=checkpoint_minutes, evaluate_every=evaluate_every,
        data=data, early_stopping=early_stopping, json=json, quiet=quiet,
    )  # fmt: skip
