"""The command that trains GloVe: text in, a model folder out."""

from __future__ import annotations

import math

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
    from sememe.progress import Reporter
    from sememe.static.glove import GloVe
    from sememe.vectors import load

    reporter = Reporter(quiet=quiet)
    out = training.checked_out(out, GloVe.kind)
    training.check("--phrases", phrases, 10)
    training.check("--checkpoint-minutes", checkpoint_minutes)
    callbacks = training.callbacks(evaluate_every, data, early_stopping, reporter)
    model = GloVe(config).fit(
        corpus,
        text=text,
        phrases=phrases,
        start=load(start) if start else None,
        store=store,
        out=out,
        resume=resume,
        checkpoint_minutes=checkpoint_minutes or math.inf,
        callbacks=callbacks,
        progress=reporter,
    )
    training.tell(model, out, json)
