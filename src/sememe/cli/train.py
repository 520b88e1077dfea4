"""Training commands: text in, a model folder out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sememe.cli.options import Json, Quiet, expand, flag
from sememe.cli.screen import examples, print_json
from sememe.static.word2vec.config import Word2VecConfig
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.progress import Reporter
    from sememe.static.word2vec import Word2Vec
    from sememe.static.word2vec.callbacks import Callback
    from sememe.vectors import WordVectors

app = typer.Typer(help="Train a model on your text.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command(
    epilog=examples(
        "sememe train word2vec --out runs/first",
        "sememe train word2vec my-texts/ --out runs/mine --dim 300 --epochs 3",
        "sememe train word2vec news.jsonl.gz --field body --language zh --out runs/news",
        "sememe train word2vec 'parts/*.parquet' --architecture cbow --phrases 2 --out runs/parts",
        "zcat huge.txt.gz | sememe train word2vec - --out runs/huge",
        "sememe train word2vec my-texts/ --out runs/mine --resume",
        "sememe train word2vec my-texts/ --preview",
    )
)
@expand(config="Model", text="Text")
def word2vec(
    corpus: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CORPUS...]",
            help="Files, folders or patterns of text, or - for standard input. "
            "Left out: the docstrings of the installed packages.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The model folder to write.")
    ] = None,
    resume: Annotated[
        bool, flag("--resume", help="Go on where a training into --out was stopped.")
    ] = False,
    preview: Annotated[
        bool,
        flag("--preview", help="Train nothing; show the first training pairs and one update."),
    ] = False,
    start: Annotated[
        str | None, typer.Option(help="Begin with these vectors: a model folder or vector file.")
    ] = None,
    phrases: Annotated[
        int, typer.Option(help="Passes that join phrases such as new_york; 0 joins none.")
    ] = 0,
    store: Annotated[
        Path | None, typer.Option(help="Keep the text as ids here instead of in the cache folder.")
    ] = None,
    checkpoint_minutes: Annotated[
        float, typer.Option(help="Save the state of the training this often; 0 never.")
    ] = 10.0,
    evaluate_every: Annotated[
        int, typer.Option(help="Score the vectors each time this many words were seen; 0 never.")
    ] = 0,
    data: Annotated[
        str | None,
        typer.Option(help="Question file or folder for --evaluate-every; built-in when left out."),
    ] = None,
    early_stopping: Annotated[
        int, typer.Option(help="Stop after this many evaluations without a better score; 0 never.")
    ] = 0,
    device: Annotated[Literal["cpu"], typer.Option(help="Where to compute.")] = "cpu",
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: Word2VecConfig,
    text: TextSettings,
) -> None:
    """Train word2vec: one vector for each word, learned from the words around it.

    The options carry the names of the Python call:
    sememe.Word2Vec(dim=100).fit("text.txt").
    """
    from sememe.errors import OptionError
    from sememe.progress import Reporter
    from sememe.static.word2vec import Word2Vec
    from sememe.static.word2vec.model import check_replaceable
    from sememe.vectors import load

    reporter = Reporter(quiet=quiet)
    if preview:
        _preview(corpus, config, text, json)
        return
    if out is None:
        raise OptionError("--out must name the folder that shall hold the model.")
    _check("--phrases", phrases, 10)
    _check("--checkpoint-minutes", checkpoint_minutes)
    _check("--evaluate-every", evaluate_every)
    _check("--early-stopping", early_stopping)
    check_replaceable(out)
    callbacks = _callbacks(evaluate_every, data, early_stopping, reporter)
    model = Word2Vec(config).fit(
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
    _tell(model, out, json)


def _check(name: str, value: float, high: float = 1e15) -> None:
    """Refuse a number out of its range before any work is done."""
    from sememe.errors import OptionError

    if not 0 <= value <= high:  # NaN fails this too
        raise OptionError(f"{name} must lie between 0 and {high:,.0f}, not {value}.")


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


def _callbacks(
    evaluate_every: int, data: str | None, early_stopping: int, reporter: Reporter
) -> list[Callback]:
    """What is asked of the vectors while they are trained; the questions are checked first."""
    from sememe.errors import OptionError

    if not evaluate_every:
        if data is not None or early_stopping:
            raise OptionError("--data and --early-stopping need --evaluate-every.")
        return []
    from sememe.evaluation import evaluate_words
    from sememe.evaluation.words import find_files
    from sememe.static.word2vec.callbacks import Evaluate

    find_files(data)

    def score(vectors: WordVectors) -> float:
        # Antonyms are left out: a higher share of opposites among neighbors is no progress.
        scores = [one for one in evaluate_words(vectors, data).scores if one.kind != "antonyms"]
        values = [one.value for one in scores if math.isfinite(one.value)]
        mean = sum(values) / len(values) if values else math.nan
        reporter.note(f"score {mean:.4f}, the mean of {len(values)} of {len(scores)} files")
        return mean

    return [Evaluate(score, every_words=evaluate_every, patience=early_stopping)]


def _tell(model: Word2Vec, out: Path, as_json: bool) -> None:
    vectors = model.vectors
    if as_json:
        figures = {"words": len(vectors), "dim": vectors.dim, "history": model.history.last()}
        print_json({"path": str(out), **figures})
        return
    typer.echo(f"Saved {len(vectors):,} words × {vectors.dim} to {out}")
    word = vectors.vocabulary[min(50, len(vectors) - 1)]
    typer.echo(f"Try: sememe neighbors {out} {word}")
