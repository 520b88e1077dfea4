"""What the training commands share: their common options, checks and closing words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.failures import remember_out
from sememe.cli.options import Json, Quiet, flag, named
from sememe.cli.screen import print_json, remark

if TYPE_CHECKING:
    from sememe.progress import Reporter
    from sememe.static.callbacks import Callback
    from sememe.static.model import StaticModel
    from sememe.text.settings import TextSettings
    from sememe.tokens.vocabulary import Vocabulary
    from sememe.vectors import WordVectors

# Words in all passes. 827 k words of Chinese Wikipedia: wordsim-297 is 28 after 5 passes, 46 after
# 20, 42 after 60.
_FEW_SEEN = 10_000_000
_MOST_PASSES = 100
Corpus = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CORPUS",
        help="Files, folders or patterns of text, or - for standard input. "
        "Left out: the docstrings of the installed packages.",
        show_default=False,
    ),
]
Mix = Annotated[
    list[str] | None,
    typer.Option(
        "--mix",
        metavar="LANGUAGE=TEXT",
        help="The text of one language, such as zh=news/, instead of a corpus; may be repeated: "
        "the model then knows several.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The model folder to write; a training needs one."),
]
Resume = Annotated[bool, flag("--resume", help="Go on where a training into --out was stopped.")]
Start = Annotated[
    str | None, typer.Option(help="Begin with these vectors: a model folder or vector file.")
]
Phrases = Annotated[
    int, typer.Option(help="Passes that join phrases such as new_york; 0 joins none.")
]
Store = Annotated[
    Path | None, typer.Option(help="Keep the text as ids here instead of in the cache folder.")
]
CheckpointMinutes = Annotated[
    float, typer.Option(help="Save the state of the training this often; 0 never.")
]
EvaluateEvery = Annotated[
    int, typer.Option(help="Score the vectors each time this many words were seen; 0 never.")
]
Data = Annotated[
    str | None,
    typer.Option(help="Question file or folder for --evaluate-every; built-in when left out."),
]
EarlyStopping = Annotated[
    int, typer.Option(help="Stop after this many evaluations without a better score; 0 never.")
]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of every command that learns from a corpus."""

    out: Out = None
    resume: Resume = False
    store: Store = None
    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class Counting(Asked):
    """What is asked of the commands that count words."""

    phrases: Phrases = 0


@dataclass(frozen=True, kw_only=True)
class Fitting(Counting):
    """What is asked of the commands that train word vectors."""

    start: Start = None
    checkpoint_minutes: CheckpointMinutes = 10.0
    evaluate_every: EvaluateEvery = 0
    data: Data = None
    early_stopping: EarlyStopping = 0


def checked_out(out: Path | None, kind: str) -> Path:
    """The folder to write, refused before any work when it is missing or holds something else."""
    from sememe.errors import OptionError
    from sememe.storage.folder import check_replaceable

    if out is None:
        raise OptionError("--out must name the folder that shall hold the model.")
    check_replaceable(out, kind)
    remember_out(out)
    return out


def by_language(corpus: list[str] | None, mix: list[str] | None) -> Any:
    """The corpus, or the texts of each language that --mix names."""
    from sememe.errors import OptionError

    if not mix:
        return corpus
    if corpus:
        raise OptionError("Give a corpus, or the text of each language with --mix, not both.")
    found: dict[str, list[str]] = {}
    for language, place in named(mix, "--mix", "zh=news/"):
        found.setdefault(language, []).append(place)
    return found


def train(model: StaticModel, corpus: list[str] | None, text: TextSettings, asked: Fitting) -> None:
    """Fit a model as the options say, and tell how it went."""
    from sememe.progress import Reporter
    from sememe.vectors import load

    reporter = Reporter(quiet=asked.quiet)
    out = checked_out(asked.out, model.kind)
    check("--checkpoint-minutes", asked.checkpoint_minutes)
    fit(
        model, corpus, text, asked, reporter,
        start=load(asked.start) if asked.start else None,
        checkpoint_minutes=asked.checkpoint_minutes or math.inf,
        callbacks=callbacks(asked.evaluate_every, asked.data, asked.early_stopping, reporter),
    )  # fmt: skip
    tell(model, out, as_json=asked.json, quiet=asked.quiet)


def fit(
    model: StaticModel,
    corpus: list[str] | None,
    text: TextSettings,
    asked: Counting,
    reporter: Reporter,
    **more: Any,
) -> None:
    """Fit a model with what is asked of all that count words, and with more."""
    check("--phrases", asked.phrases, 10)
    model.fit(
        corpus, text=text, phrases=asked.phrases, store=asked.store, out=asked.out,
        resume=asked.resume, progress=reporter, **more,
    )  # fmt: skip


def check(name: str, value: float, high: float = 1e15) -> None:
    """Refuse a number out of its range before any work is done."""
    from sememe.errors import OptionError

    if not 0 <= value <= high:  # NaN fails this too
        raise OptionError(f"{name} must lie between 0 and {high:,.0f}, not {value}.")


def callbacks(
    evaluate_every: int, data: str | None, early_stopping: int, reporter: Reporter
) -> list[Callback]:
    """What is asked of the vectors while they are trained; the questions are checked first."""
    from sememe.errors import OptionError

    check("--evaluate-every", evaluate_every)
    check("--early-stopping", early_stopping)
    if not evaluate_every:
        if data is not None or early_stopping:
            raise OptionError("--data and --early-stopping need --evaluate-every.")
        return []
    from sememe.evaluation import evaluate_words
    from sememe.evaluation.words import find_files
    from sememe.static.callbacks import Evaluate

    find_files(data)

    def score(vectors: WordVectors) -> float:
        # Antonyms are left out: a higher share of opposites among neighbors is no progress.
        scores = [one for one in evaluate_words(vectors, data).scores if one.kind != "antonyms"]
        values = [one.value for one in scores if math.isfinite(one.value)]
        mean = sum(values) / len(values) if values else math.nan
        reporter.note(f"score {mean:.4f}, the mean of {len(values)} of {len(scores)} files")
        return mean

    return [Evaluate(score, every_words=evaluate_every, patience=early_stopping)]


def tell(model: StaticModel, out: Path, *, as_json: bool, quiet: bool) -> None:
    """Say what was saved and what to try next."""
    vectors = model.vectors
    if as_json:
        figures = {"words": len(vectors), "dim": vectors.dim, "history": model.history.last()}
        print_json({"path": str(out), **figures})
        return
    remark(f"Saved {len(vectors):,} words × {vectors.dim} to {out}", quiet)
    num_seen = model.plan.get("tokens", 0) * getattr(model.config, "epochs", 0)
    if model.kind in ("word2vec", "fasttext") and num_seen < _FEW_SEEN:
        epochs = min(_MOST_PASSES, math.ceil(_FEW_SEEN / model.plan["tokens"]))
        if epochs > model.config.epochs:
            remark(f"So short a text needs more passes: try --epochs {epochs}", quiet)
    remark(f"Try: sememe neighbors {out} {telling_word(vectors.vocabulary)}", quiet)


def telling_word(vocabulary: Vocabulary) -> str:
    """A word to try first: known well, but none of the most frequent, which mean little.

    It is made of letters, for an apostrophe would leave a shell waiting for a second one.
    """
    first = min(200, len(vocabulary) // 2)
    words = vocabulary[first : first + 100]
    return next((word for word in words if len(word) > 1 and word.isalpha()), words[0])
