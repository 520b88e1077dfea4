"""The training commands, one file each."""

from __future__ import annotations

import typer

from sememe.cli import train_counts, train_word2vec

app = typer.Typer(help="Train a model on your text.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


app.command(epilog=train_word2vec.EXAMPLES)(train_word2vec.word2vec)
app.command(epilog=train_counts.EXAMPLES)(train_counts.counts)
app.command(epilog=train_counts.ONE_HOT_EXAMPLES)(train_counts.onehot)
