"""The commands of the models that count: co-occurrences with PPMI and SVD, and one-hot."""

from __future__ import annotations

from typing import Annotated

import typer

from sememe.cli import training
from sememe.cli.options import Json, Quiet, expand, flag
from sememe.cli.screen import examples, print_json
from sememe.static.counts.config import CountsConfig
from sememe.static.onehot.config import OneHotConfig
from sememe.text.settings import TextSettings

EXAMPLES = examples(
    "sememe train counts my-texts/ --out runs/counts",
    "sememe train counts my-texts/ --dim 300 --window 5 --memory 2G --out runs/counts",
    "sememe train counts news.jsonl.gz --field body --language zh --out runs/news",
    "sememe train counts three-sentences.txt --language none --keep-case --min-count 1 "
    "--window 1 --weighting flat --transform counts --dim 0 --table",
)
ONE_HOT_EXAMPLES = examples(
    "sememe train onehot my-texts/ --out runs/onehot",
    "sememe train onehot my-texts/ --max-words 50000 --out runs/onehot",
)


@expand(asked=None, config="Model", text="Text")
def counts(
    *,
    corpus: training.Corpus = None,
    asked: training.Counting,
    table: Annotated[
        bool,
        flag("--table", help="Print the matrix of a small text; --out may then be left out."),
    ] = False,
    config: CountsConfig,
    text: TextSettings,
) -> None:
    """Count which words stand near each other; make vectors by mutual information and SVD.

    The options carry the names of the Python call:
    sememe.Counts(window=10, dim=100).fit("text.txt").
    """
    from sememe.progress import Reporter
    from sememe.static.counts.model import Counts

    model, out = Counts(config), asked.out
    if out is not None or not table:
        out = training.checked_out(out, model.kind)
    training.fit(model, corpus, text, asked, Reporter(quiet=asked.quiet))
    shown = model.table() if table else None
    if shown is not None and asked.json:
        print_json({"path": str(out) if out else None, **shown.to_dict()})
    elif shown is not None:
        typer.echo(str(shown))
    if out is not None and not (asked.json and table):
        training.tell(model, out, as_json=asked.json, quiet=asked.quiet)


@expand(config="Model", text="Text")
def onehot(
    corpus: training.Corpus = None,
    out: training.Out = None,
    store: training.Store = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: OneHotConfig,
    text: TextSettings,
) -> None:
    """Give each word a place of its own: the baseline that cannot express similarity.

    The options carry the names of the Python call: sememe.OneHot().fit("text.txt").
    """
    from sememe.progress import Reporter
    from sememe.static.onehot.model import OneHot

    out = training.checked_out(out, OneHot.kind)
    reporter = Reporter(quiet=quiet)
    model = OneHot(config).fit(corpus, text=text, store=store, out=out, progress=reporter)
    training.tell(model, out, as_json=json, quiet=quiet)
