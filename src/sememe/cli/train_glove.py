"""The command that trains GloVe: text in, a model folder out."""

from __future__ import annotations

from sememe.cli import training
from sememe.cli.options import expand
from sememe.cli.screen import examples
from sememe.static.glove.config import GloVeConfig
from sememe.text.settings import TextSettings

EXAMPLES = examples(
    "sememe train glove my-texts/ --out runs/glove",
    "sememe train glove my-texts/ --dim 300 --epochs 50 --memory 2G --out runs/glove",
    "sememe train glove news.jsonl.gz --field body --language zh --out runs/news",
    "sememe train glove small.txt --x-max 10 --min-count 2 --out runs/small",
    "sememe train glove my-texts/ --out runs/glove --resume",
)


@expand(asked=None, config="Model", text="Text")
def glove(
    corpus: training.Corpus = None,
    *,
    asked: training.Fitting,
    config: GloVeConfig,
    text: TextSettings,
) -> None:
    """Train GloVe: vectors whose products are the logarithms of how often words meet.

    The options carry the names of the Python call:
    sememe.GloVe(dim=100).fit("text.txt").
    """
    from sememe.static.glove.model import GloVe

    training.train(GloVe(config), corpus, text, asked)
