"""The command that counts n-grams: text in, the folder of a language model out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from sememe.cli import training
from sememe.cli.options import expand
from sememe.cli.screen import examples, print_json, remark
from sememe.static.ngram.config import NGramConfig
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.static.ngram.model import NGram

EXAMPLES = examples(
    "sememe train ngram my-texts/ --out runs/ngram",
    "sememe train ngram my-texts/ --order 3 --prune 0,0,1 --out runs/small",
    "sememe train ngram news.jsonl.gz --field body --language zh --out runs/news",
    "sememe suggest runs/ngram 'the most'",
    "sememe convert runs/ngram model.arpa.gz",
)


@expand(asked=None, config="Model", text="Text")
def ngram(
    *,
    corpus: training.Corpus = None,
    asked: training.Counting,
    config: NGramConfig,
    text: TextSettings,
) -> None:
    """Count which words follow which others: an n-gram language model.

    Smoothed by interpolated modified Kneser-Ney, as KenLM does it. The options carry the names of
    the Python call: sememe.NGram(order=5).fit("text.txt").
    """
    from sememe.progress import Reporter
    from sememe.static.ngram.model import NGram

    model = NGram(config)
    out = training.checked_out(asked.out, model.kind)
    training.fit(model, corpus, text, asked, Reporter(quiet=asked.quiet))
    figures = model.history.last()
    if asked.json:
        print_json({"path": str(out), "words": len(model.vocabulary), **figures})
        return
    _tell(model, str(out), figures, asked.quiet)


def _tell(model: NGram, out: str, figures: dict[str, Any], quiet: bool) -> None:
    sizes = ", ".join(f"{num:,} of {k}" for k, num in enumerate(model.trie.sizes, start=1))
    remark(f"Saved {len(model.vocabulary):,} words to {out}; n-grams: {sizes} words", quiet)
    if "validation_perplexity" in figures:
        typer.echo(
            f"perplexity {figures['validation_perplexity']:,.1f} on "
            f"{figures['validation_words']:,} words that were held out"
        )
    word = training.telling_word(model.vocabulary)
    remark(f'Try: sememe suggest {out} "{word} "', quiet)
