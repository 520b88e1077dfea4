"""The command that trains word2vec: text in, a model folder out."""

from __future__ import annotations

from typing import Annotated

import typer

from sememe.cli import training
from sememe.cli.options import expand, flag
from sememe.cli.screen import examples, print_json
from sememe.static.word2vec.config import Word2VecConfig
from sememe.text.settings import TextSettings

EXAMPLES = examples(
    "sememe train word2vec --out runs/first",
    "sememe train word2vec my-texts/ --out runs/mine --dim 300 --epochs 3",
    "sememe train word2vec news.jsonl.gz --field body --language zh --out runs/news",
    "sememe train word2vec 'parts/*.parquet' --architecture cbow --phrases 2 --out runs/parts",
    "zcat huge.txt.gz | sememe train word2vec - --out runs/huge",
    "sememe train word2vec my-texts/ --out runs/mine --resume",
    "sememe train word2vec my-texts/ --preview",
)


@expand(asked=None, config="Model", text="Text")
def word2vec(
    *,
    corpus: training.Corpus = None,
    asked: training.Fitting,
    preview: Annotated[
        bool,
        flag("--preview", help="Train nothing; show the first training pairs and one update."),
    ] = False,
    config: Word2VecConfig,
    text: TextSettings,
) -> None:
    """Train word2vec: one vector for each word, learned from the words around it.

    The options carry the names of the Python call:
    sememe.Word2Vec(dim=100).fit("text.txt").
    """
    from sememe.static.word2vec.model import Word2Vec

    if preview:
        _preview(corpus, config, text, asked.json)
        return
    training.train(Word2Vec(config), corpus, text, asked)


def _preview(
    corpus: list[str] | None, config: Word2VecConfig, text: TextSettings, as_json: bool
) -> None:
    from dataclasses import asdict

    from sememe.static.word2vec.preview import preview
    from sememe.static.word2vec.preview_text import render

    shown = preview(corpus, config, text)
    if as_json:
        print_json(asdict(shown))
    else:
        typer.echo(render(shown))
