"""The commands that train models of words: word2vec, fastText, GloVe, counts, one-hot, n-grams."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli import training
from sememe.cli.options import Json, Quiet, expand, flag
from sememe.cli.program import echo, examples, needed, print_json, print_result, remark
from sememe.contract import KINDS, Kind
from sememe.errors import OptionError
from sememe.localization import translate
from sememe.machine import imported
from sememe.models.counts.config import CountsConfig
from sememe.models.fasttext.config import FastTextConfig
from sememe.models.glove.config import GloVeConfig
from sememe.models.ngram.config import NGramConfig
from sememe.models.onehot.config import OneHotConfig
from sememe.models.sif.config import SIFConfig
from sememe.models.word2vec.config import Word2VecConfig
from sememe.progress import Reporter
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.vectors import WordVectors


def train(
    model: Any,
    corpus: list[str] | None,
    text: TextSettings,
    asked: training.Fitting,
    *,
    needs_passes: bool = False,
) -> None:
    """Fit word vectors with these options, and print the result."""
    from sememe.models.registry import load_words

    if training.is_planned(model, corpus, text=text, phrases=asked.phrases):
        return
    reporter = Reporter(quiet=asked.quiet)
    out = needed(asked.out)
    training.fit(
        model, corpus, text, asked, phrases=asked.phrases,
        start=load_words(asked.start) if asked.start else None,
        checkpoint_minutes=asked.checkpoint_minutes or math.inf,
        callbacks=_callbacks(asked, reporter),
    )  # fmt: skip
    training.print_vectors(
        model, out, as_json=asked.json, quiet=asked.quiet, needs_passes=needs_passes
    )


def _callbacks(asked: training.Fitting, reporter: Reporter) -> list[Any]:
    """How vectors are evaluated during training; the questions are checked first."""
    if not asked.evaluate_every:
        if asked.data is not None or asked.early_stopping:
            raise OptionError("--data and --early-stopping need --evaluate-every.")
        return []
    from sememe import Evaluate, evaluate_words
    from sememe.evaluation.words import find_files

    find_files(asked.data)

    def score(vectors: WordVectors) -> float:
        found = evaluate_words(vectors, asked.data).scores
        # Antonyms are omitted: a higher share of opposites among neighbors is not progress.
        scores = [one for one in found if one.kind != "antonyms"]
        values = [one.value for one in scores if math.isfinite(one.value)]
        mean = sum(values) / len(values) if values else math.nan
        reporter.note(f"score {mean:.4f}, the mean of {len(values)} of {len(scores)} files")
        return mean

    return [Evaluate(score, every_words=asked.evaluate_every, patience=asked.early_stopping)]


@training.app.command(
    epilog=examples(
        "sememe train word2vec --out runs/first",
        "sememe train word2vec my-texts/ --out runs/mine --dim 300 --epochs 3",
        "sememe train word2vec news.jsonl.gz --column text=body --language zh --out runs/news",
        "sememe train word2vec 'parts/*.parquet' --architecture cbow --phrases 2 --out runs/parts",
        "zcat huge.txt.gz | sememe train word2vec - --out runs/huge",
        "sememe train word2vec my-texts/ --out runs/mine --resume",
        "sememe train word2vec my-texts/ --preview",
    )
)
@expand(asked=None, config="Model", text="Text")
def word2vec(
    *,
    corpus: training.Corpus = None,
    asked: training.JointFitting,
    preview: Annotated[
        bool,
        flag("--preview", help="Show the first training pairs and one update; train nothing."),
    ] = False,
    config: Word2VecConfig,
    text: TextSettings,
) -> None:
    """Train word2vec: skip-gram or CBOW word vectors.

    In Python: sememe.Word2Vec(dim=100).fit("text.txt").
    """
    from sememe.models.word2vec.model import Word2Vec

    model = Word2Vec(config)
    if not preview:
        train(model, corpus, text, asked, needs_passes=True)
        return
    shown = model.preview(corpus, text=text)
    print_result(asdict(shown), str(shown), asked.json)


@training.app.command(
    epilog=examples(
        "sememe train fasttext my-texts/ --out runs/mine",
        "sememe train fasttext news.txt --language zh --minn 1 --maxn 3 --out runs/news",
        "sememe neighbors runs/mine misspeling",
        "sememe convert runs/mine mine.bin --format fasttext",
        "sememe train fasttext --supervised labelled.txt --out runs/labels",
    )
)
@expand(asked=None, config="Model", text="Text")
def fasttext(
    corpus: training.Corpus = None,
    supervised: Annotated[
        bool,
        flag("--supervised", help="Train a text classifier; see `sememe train classifier --help`."),
    ] = False,
    *,
    asked: training.JointFitting,
    config: FastTextConfig,
    text: TextSettings,
) -> None:
    """Train fastText: word vectors with character n-grams.

    Words that are not in the corpus get a vector from their n-grams.

    In Python: sememe.FastText(dim=100).fit("text.txt").
    """
    from sememe.models.fasttext.model import FastText

    train(FastText(config), corpus, text, asked, needs_passes=True)


@training.app.command(
    epilog=examples(
        "sememe train glove my-texts/ --out runs/glove",
        "sememe train glove my-texts/ --dim 300 --epochs 50 --memory 2G --out runs/glove",
        "sememe train glove news.jsonl.gz --column text=body --language zh --out runs/news",
        "sememe train glove small.txt --x-max 10 --min-count 2 --out runs/small",
        "sememe train glove my-texts/ --out runs/glove --resume",
    )
)
@expand(asked=None, config="Model", text="Text")
def glove(
    corpus: training.Corpus = None,
    *,
    asked: training.JointFitting,
    config: GloVeConfig,
    text: TextSettings,
) -> None:
    """Train GloVe: word vectors from log co-occurrence counts.

    In Python: sememe.GloVe(dim=100).fit("text.txt").
    """
    from sememe.models.glove.model import GloVe

    train(GloVe(config), corpus, text, asked)


@training.app.command(
    epilog=examples(
        "sememe train counts my-texts/ --out runs/counts",
        "sememe train counts my-texts/ --dim 300 --window 5 --memory 2G --out runs/counts",
        "sememe train counts news.jsonl.gz --column text=body --language zh --out runs/news",
        "sememe train counts three-sentences.txt --language none --keep-case --min-count 1 "
        "--window 1 --weighting flat --transform counts --dim 0 --table",
    )
)
@expand(asked=None, config="Model", text="Text")
def counts(
    *,
    corpus: training.Corpus = None,
    asked: training.Counting,
    table: Annotated[
        bool,
        flag("--table", help="Print the matrix of a small corpus; --out becomes optional."),
    ] = False,
    config: CountsConfig,
    text: TextSettings,
) -> None:
    """Count co-occurrences; make word vectors with PPMI and SVD.

    In Python: sememe.Counts(window=10, dim=100).fit("text.txt").
    """
    from sememe.models.counts.model import Counts

    model, out = Counts(config), asked.out
    if out is not None or not table:
        out = needed(out)
    training.fit(model, corpus, text, asked, phrases=asked.phrases)
    if table and asked.json:
        print_json({"path": str(out) if out else None, **model.table().to_dict()})
        return
    if table:
        echo(str(model.table()))
    if out is not None:
        training.print_vectors(model, out, as_json=asked.json, quiet=asked.quiet)


@training.app.command(
    epilog=examples(
        "sememe train onehot my-texts/ --out runs/onehot",
        "sememe train onehot my-texts/ --max-words 50000 --out runs/onehot",
    )
)
@expand(config="Model", text="Text")
def onehot(
    corpus: training.Corpus = None,
    out: training.Out = None,
    overwrite: training.Overwrite = False,
    store: training.Store = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: OneHotConfig,
    text: TextSettings,
) -> None:
    """Build one-hot vectors: a baseline without any similarity.

    In Python: sememe.OneHot().fit("text.txt").
    """
    from sememe.models.onehot.model import OneHot

    out = needed(out)
    reporter = Reporter(quiet=quiet)
    model = OneHot(config).fit(
        corpus, text=text, store=store, out=out, overwrite=overwrite, progress=reporter
    )
    training.print_vectors(model, out, as_json=json, quiet=quiet)


@training.app.command(
    epilog=examples(
        "sememe train sif runs/first my-texts/ --out runs/sif",
        "sememe train sif glove.6B.50d.txt my-texts/ --method usif --out runs/usif",
        "sememe embed runs/sif sentences.txt --out sentences.npy",
    )
)
@expand(config="Model", text="Text")
def sif(
    vectors: Annotated[
        str, typer.Argument(metavar="VECTORS", help="Word vectors: model folder or vector file.")
    ],
    corpus: training.Corpus = None,
    out: training.Out = None,
    overwrite: training.Overwrite = False,
    store: training.Store = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: SIFConfig,
    text: TextSettings,
) -> None:
    """Make sentence vectors: weighted means of word vectors (SIF).

    Frequent words weigh little, and what all sentences of CORPUS share is
    removed. VECTORS decide the language and case of CORPUS.

    In Python: sememe.SIF("runs/first").fit("text.txt").
    """
    from sememe.models.registry import load_words
    from sememe.models.sif.model import SIF

    out = needed(out)
    model = SIF(load_words(vectors), config).fit(
        corpus, text=text, store=store, out=out, overwrite=overwrite,
        progress=Reporter(quiet=quiet),
    )  # fmt: skip
    training.print_vectors(model, out, as_json=json, quiet=quiet)


@training.app.command(
    epilog=examples(
        "sememe train ngram my-texts/ --out runs/ngram",
        "sememe train ngram my-texts/ --order 3 --prune 0,0,1 --out runs/small",
        "sememe train ngram news.jsonl.gz --column text=body --language zh --out runs/news",
        "sememe suggest runs/ngram 'the most'",
        "sememe convert runs/ngram model.arpa.gz",
    )
)
@expand(asked=None, config="Model", text="Text")
def ngram(
    *,
    corpus: training.Corpus = None,
    asked: training.Counting,
    config: NGramConfig,
    text: TextSettings,
) -> None:
    """Train an n-gram language model.

    Smoothing is interpolated modified Kneser-Ney, as in KenLM.

    In Python: sememe.NGram(order=5).fit("text.txt").
    """
    from sememe.models.ngram.model import NGram

    model = NGram(config)
    out = needed(asked.out)
    training.fit(model, corpus, text, asked, phrases=asked.phrases)
    metrics, num_words = model.history.last(), len(model.vocabulary)
    if asked.json:
        print_json({"path": str(out), "words": num_words, **metrics})
        return
    sizes = ", ".join(f"{num:,} of {k}" for k, num in enumerate(model.trie.sizes, start=1))
    remark(f"Saved {num_words:,} words to {out}; n-grams: {sizes} words", asked.quiet)
    if "validation_perplexity" in metrics:
        line = (
            f"perplexity {metrics['validation_perplexity']:,.1f} on "
            f"{metrics['validation_words']:,} words that were held out"
        )
        echo(translate(line))
    word = training.example_word(model.vocabulary)
    remark(f'Try: sememe suggest {out} "{word} "', asked.quiet)


def _declare(name: str, kind: Kind) -> None:
    """Give a registered kind its command, made from its options and the line of its folder."""

    def command(
        *, corpus: training.Corpus = None, asked: training.Fitting, config: Any, text: TextSettings
    ) -> None:
        train(kind.cls()(config), corpus, text, asked, needs_passes=True)

    options, (_, class_name) = kind.options_class(), kind.home.split(":")
    about = imported(options.__module__.rpartition(".")[0], "__doc__")
    command.__annotations__["config"] = options
    command.__doc__ = f'Train {about}\n\nIn Python: sememe.{class_name}(dim=100).fit("text.txt").'
    example = examples(f"sememe train {name} my-texts/ --out runs/{name}")
    training.app.command(name, epilog=example)(
        expand(asked=None, config="Model", text="Text")(command)
    )


for _name, _kind in KINDS.items():
    if _kind.options:
        _declare(_name, _kind)
