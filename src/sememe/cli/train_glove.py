"""The command that trains GloVe: text in, a model folder out."""

from __future__ import annotations

from sememe.cli import training
from sememe.cli.options import Json, Quiet, expand
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


@expand(config="Model", text="Text")
def glove(
    corpus: training.Corpus = None,
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
    config: GloVeConfig,
    text: TextSettings,
) -> None:
    """Train GloVe: vectors whose products are the logarithms of how often words meet.

    The options carry the names of the Python call:
    sememe.GloVe(dim=100).fit("text.txt").
    """
    from sememe.static.glove import GloVe

    training.train(
        GloVe(config), corpus, text=text, out=out, resume=resume, start=start, phrases=phrases,
        store=store, checkpoint_minutes=checkpoint_minutes, evaluate_every=evaluate_every,
        data=data, early_stopping=early_stopping, json=json, quiet=quiet,
    )  # fmt: skip
