"""The training commands, one file each."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from sememe.cli import (
    train_bert,
    train_classifier,
    train_counts,
    train_elmo,
    train_fasttext,
    train_glove,
    train_gpt,
    train_ngram,
    train_nnlm,
    train_seq2seq,
    train_tokenizer,
    train_transformer,
    train_ulmfit,
    train_word2vec,
)


class Models(TyperGroup):
    """The models; fastText's classifier has options of its own, so it is a command apart."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Take `fasttext --supervised` for the classifier, as users of fastText call it."""
        if args[0] == "fasttext" and "--supervised" in args:
            args = ["classifier", *(arg for arg in args[1:] if arg != "--supervised")]
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=Models, help="Train a model on your text.", no_args_is_help=True)


app.command(epilog=train_word2vec.EXAMPLES)(train_word2vec.word2vec)
app.command(epilog=train_fasttext.EXAMPLES)(train_fasttext.fasttext)
app.command(epilog=train_classifier.EXAMPLES)(train_classifier.classifier)
app.command(epilog=train_glove.EXAMPLES)(train_glove.glove)
app.command(epilog=train_counts.EXAMPLES)(train_counts.counts)
app.command(epilog=train_counts.ONE_HOT_EXAMPLES)(train_counts.onehot)
app.command(epilog=train_elmo.EXAMPLES)(train_elmo.elmo)
app.command(epilog=train_ulmfit.EXAMPLES)(train_ulmfit.ulmfit)
app.command(epilog=train_ngram.EXAMPLES)(train_ngram.ngram)
app.command(epilog=train_nnlm.EXAMPLES)(train_nnlm.nnlm)
app.command(epilog=train_tokenizer.EXAMPLES)(train_tokenizer.tokenizer)
app.command(epilog=train_bert.EXAMPLES)(train_bert.bert)
app.command(epilog=train_gpt.EXAMPLES)(train_gpt.gpt)
app.command(epilog=train_seq2seq.EXAMPLES)(train_seq2seq.seq2seq)
app.command(epilog=train_transformer.EXAMPLES)(train_transformer.transformer)
