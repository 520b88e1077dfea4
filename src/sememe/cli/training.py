"""What the training commands share: their options, checks, the call of `fit` and closing words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.on_cluster import on_cluster
from sememe.cli.options import Cluster, Json, Quiet, flag, named
from sememe.cli.program import Ordered, echo, group, needed, print_json, print_result, remark
from sememe.errors import OptionError
from sememe.localization import translate
from sememe.options import check_ranges
from sememe.progress import Reporter
from sememe.text.settings import TextSettings
from sememe.training.config import Activation

if TYPE_CHECKING:
    from sememe.tokens.vocabulary import Vocabulary

# Words in all passes. 827 k words of Chinese Wikipedia: wordsim-297 is 28 after 5 passes, 46 after
# 20, 42 after 60.
_FEW_SEEN = 10_000_000
_MOST_PASSES = 100


class Models(Ordered):
    """The models; fastText's classifier has options of its own, so it is a command apart."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Take `fasttext --supervised` for the classifier, as users of fastText call it."""
        if args[0] == "fasttext" and "--supervised" in args:
            args = ["classifier", *(arg for arg in args[1:] if arg != "--supervised")]
        return super().resolve_command(ctx, args)


app = group("train", "Train a model on your corpus.", Models)

Corpus = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CORPUS",
        help="Text files, folders or patterns; - for standard input; default: built-in corpus.",
        show_default=False,
    ),
]
Mix = Annotated[
    list[str] | None,
    typer.Option(
        "--mix",
        metavar="LANGUAGE=TEXT",
        help="Corpus of one language, such as zh=news/; repeatable; replaces CORPUS.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Output folder (required)."),
]
Resume = Annotated[bool, flag("--resume", help="Resume an interrupted run in --out.")]
Overwrite = Annotated[
    bool, flag("--overwrite", help="Replace an existing model in --out when training finishes.")
]
Start = Annotated[
    str | None, typer.Option(help="Initialise with these vectors: model folder or vector file.")
]
Store = Annotated[
    Path | None, typer.Option(help="Folder for the tokenized corpus, instead of the cache.")
]
CheckpointMinutes = Annotated[
    float,
    typer.Option(min=0, max=10**9, help="Minutes between checkpoints; 0: none."),
]
Preview = Annotated[
    bool, flag("--preview", help="Show the first training examples; train nothing.")
]
Preset = Annotated[str, typer.Option(help="Size; auto: the best that fits, by a plan.")]
SomePreset = Annotated[str, typer.Option(help="Size of the network.")]
Tokenizer = Annotated[
    Path | None,
    typer.Option(help="Tokenizer folder; default: trained on the corpus."),
]


AUTO = "auto"
# What to do with a model and its data instead of training: the command `plan` plans there.
PLANNING: ContextVar[Callable[..., None] | None] = ContextVar("planning", default=None)


def or_auto(presets: Iterable[str]) -> dict[str, None]:
    """The names of presets, and the one that lets a plan choose."""
    return dict.fromkeys([*presets, AUTO])


def first(preset: str, usual: str = "tiny") -> str:
    """A preset to make a model with; `fit` replaces it by the one that a plan chooses."""
    return usual if preset == AUTO else preset


@dataclass(frozen=True, kw_only=True)
class SavingOptions:
    """Options of every command that saves a model."""

    out: Out = None
    resume: Resume = False
    overwrite: Overwrite = False
    json: Json = False
    quiet: Quiet = False


@dataclass(frozen=True, kw_only=True)
class TrainOptions(SavingOptions):
    """Options of every command that trains on a corpus."""

    store: Store = None
    cluster: Cluster = None


TrainingCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Train on a Ray cluster: local, auto or ray://HOST:PORT.",
    ),
]
NumWorkers = Annotated[
    int,
    typer.Option(help="Training processes on the cluster; 0: one per GPU or node."),
]


@dataclass(frozen=True, kw_only=True)
class NetworkSaving(SavingOptions):
    """Options of every command that trains a network."""

    cluster: TrainingCluster = None
    num_workers: NumWorkers = 0

    def __post_init__(self) -> None:
        """Refuse a number out of its range, or one that nothing reads."""
        check_num_workers(self)


def check_num_workers(asked: NetworkSaving | JointFitting) -> None:
    """Refuse a number of workers out of its range, or without a cluster."""
    check_ranges(asked, num_workers=(0, 100_000))
    if asked.num_workers and asked.cluster is None:
        raise OptionError("--num-workers is about a cluster: give --cluster, too.")


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(NetworkSaving):
    """Options of every command that trains a network on a corpus."""

    store: Store = None


@dataclass(frozen=True, kw_only=True)
class Counting(TrainOptions):
    """The options of the commands that count words."""

    phrases: Annotated[
        int,
        typer.Option(help="Passes that join phrases such as new_york; 0: none."),
    ] = 0

    def __post_init__(self) -> None:
        """Refuse a number out of its range before any work is done."""
        check_ranges(self, phrases=(0, 10))


@dataclass(frozen=True, kw_only=True)
class Fitting(Counting):
    """The options of the commands that train word vectors."""

    start: Start = None
    checkpoint_minutes: CheckpointMinutes = 10.0
    evaluate_every: Annotated[
        int,
        typer.Option(help="Words between evaluations of the vectors; 0: none."),
    ] = 0
    data: Annotated[
        str | None,
        typer.Option(help="Question file or folder for --evaluate-every; default: built-in sets."),
    ] = None
    early_stopping: Annotated[
        int,
        typer.Option(help="Stop after this many evaluations without improvement; 0: never."),
    ] = 0

    def __post_init__(self) -> None:
        """Refuse a number out of its range before any work is done."""
        super().__post_init__()
        most = (0, 10**15)
        check_ranges(self, checkpoint_minutes=most, evaluate_every=most, early_stopping=most)


@dataclass(frozen=True, kw_only=True)
class JointFitting(Fitting):
    """The options of the commands whose word vectors several workers train together."""

    cluster: TrainingCluster = None
    num_workers: NumWorkers = 0

    def __post_init__(self) -> None:
        """Refuse a number out of its range before any work is done."""
        super().__post_init__()
        check_num_workers(self)


class Sizes:
    """The sizes of a network that will not be those of its preset."""

    def given(self) -> dict[str, Any]:
        """Those that were given."""
        return {name: value for name, value in vars(self).items() if value is not None}


# Sizes that several networks have: the type and the help of each.
SIZES = {
    "vocab_size": (int, "Vocabulary size of the new tokenizer; default: from the preset."),
    "num_layers": (int, "Transformer blocks; default: from the preset."),
    "num_cells": (int, "LSTM cells per layer; default: from the preset."),
    "width": (int, "Dimensions of a token vector; default: from the preset."),
    "num_heads": (int, "Attention heads per block; default: from the preset."),
    "max_length": (int, "Maximum sequence length in tokens; default: from the preset."),
    "dropout": (float, "Dropout; default: from the preset."),
}


def sizes(*names: str, **own: tuple[Any, str]) -> type[Sizes]:
    """The sizes that a command takes: names of SIZES, and the type and help of its own."""
    given = [
        (name, Annotated[kind | None, typer.Option(help=text)], field(default=None))
        for name, (kind, text) in ({name: SIZES[name] for name in names} | own).items()
    ]
    return make_dataclass("Given", given, bases=(Sizes,), frozen=True, kw_only=True)


BLOCK_SIZES = sizes("vocab_size", "num_layers", "width", "num_heads")
_TRANSFORMER = ("vocab_size", "num_layers", "width", "num_heads", "max_length", "dropout")
TRANSFORMER_SIZES = sizes(*_TRANSFORMER)
BERT_SIZES = sizes(
    *_TRANSFORMER,
    activation=(Activation, "Activation of the feed-forward layers; relu2: ReLU squared."),
)


def by_language(corpus: list[str] | None, mix: list[str] | None) -> Any:
    """The corpus, or the texts of each language that --mix names."""
    if not mix:
        return corpus
    if corpus:
        raise OptionError("Give a corpus, or the text of each language with --mix, not both.")
    found: dict[str, list[str]] = {}
    for language, place in named(mix, "--mix", "zh=news/"):
        found.setdefault(language, []).append(place)
    return found


def fit(
    model: Any, corpus: Any, text: TextSettings | None, asked: TrainOptions, **more: Any
) -> Any:
    """Fit a model with the options of all commands that learn from a corpus; returns the model."""
    num_workers = getattr(asked, "num_workers", 0)
    with on_cluster(asked.cluster, Reporter(quiet=asked.quiet), num_workers):
        return fit_on(model, (corpus,), asked, text=text, store=asked.store, **more)


def fit_on(
    model: Any, data: tuple[Any, ...], asked: SavingOptions, *, preset: str = "", **more: Any
) -> Any:
    """Fit a model on data; with the preset auto, a plan chooses its size first."""
    from sememe.planning.planned import compared, fit_planned

    fitted = fit_planned(
        model, data, is_auto=preset == AUTO, quiet=asked.quiet, out=asked.out,
        resume=asked.resume, overwrite=asked.overwrite, **more,
    )  # fmt: skip
    if line := compared(fitted):
        remark(line, asked.quiet or asked.json)
    return fitted


def fit_network(
    model: Any, data: tuple[Any, ...], asked: NetworkSaving, *, preset: str = "", **more: Any
) -> Any:
    """Fit a network on data, in this process or by the workers that --cluster names."""
    with fitted_where(asked) as fit:
        return fit_on(model, data, asked, preset=preset, fit=fit, **more)


@contextmanager
def fitted_where(asked: NetworkSaving) -> Iterator[Callable[..., Any]]:
    """Yield what fits a model on data: its own `fit`, or the workers that --cluster names."""
    if asked.cluster is None:  # and Ray is not needed
        yield lambda model, *data, **more: model.fit(*data, **more)
        return
    with on_cluster(asked.cluster, Reporter(quiet=asked.quiet)):
        from sememe.cluster.networks import fit_on_workers

        yield partial(fit_on_workers, num_workers=asked.num_workers)


def is_planned(model: Any, *data: Any, **more: Any) -> bool:
    """Whether the training is to be planned only, which is done here."""
    planning = PLANNING.get()
    if planning is not None:
        planning(model, *data, **more)
    return planning is not None


def print_vectors(
    model: Any, out: Path, *, as_json: bool, quiet: bool, needs_passes: bool = False
) -> None:
    """Say what was saved and what to try next."""
    vectors = model.vectors
    if as_json:
        metrics = {"words": len(vectors), "dim": vectors.dim, "history": model.history.last()}
        print_json({"path": str(out), **metrics})
        return
    remark(f"Saved {len(vectors):,} words × {vectors.dim} to {out}", quiet)
    num_tokens = model.plan.get("tokens", 0)
    if needs_passes and num_tokens * model.config.epochs < _FEW_SEEN:
        epochs = min(_MOST_PASSES, math.ceil(_FEW_SEEN / num_tokens))
        if epochs > model.config.epochs:
            remark(f"This corpus is small: --epochs {epochs} may give better vectors.", quiet)
    remark(f"Try: sememe neighbors {out} {example_word(vectors.vocabulary)}", quiet)


def example_word(vocabulary: Vocabulary) -> str:
    """A word to try first: known well, but none of the most frequent, which mean little.

    It is made of letters, for an apostrophe would leave a shell waiting for a second one.
    """
    first = min(200, len(vocabulary) // 2)
    words = vocabulary[first : first + 100]
    return next((word for word in words if len(word) > 1 and word.isalpha()), words[0])


def train_network(
    model: Any,
    corpus: Any,
    text: TextSettings | None,
    asked: NetworkOptions,
    *,
    preset: str = "",
    preview: bool = False,
    **more: Any,
) -> Any:
    """Fit a language model with these options, say how it went, and return it.

    Or show examples, or the plan, and return None.
    """
    if is_planned(model, corpus, text=text, **more):
        return None
    if preview:
        _show_examples(model, corpus, asked, text=text, **more)
        return None
    out = needed(asked.out)
    model = fit_network(
        model, (corpus,), asked, text=text, store=asked.store, preset=preset, **more
    )
    metrics = model.history.last()
    if asked.json:
        sizes = {name: size for name, size in model.manifest().items() if name == "words"}
        print_json({"path": str(out), **sizes, "metrics": metrics, **model.told_forecast()})
        return model
    remark(f"Saved {model.title} to {out}", asked.quiet)
    for line in summary(metrics):
        echo(translate(line))
    return model


def _show_examples(model: Any, corpus: Any, asked: NetworkOptions, **more: Any) -> None:
    from sememe.examples.batches import render

    progress = Reporter(quiet=asked.quiet)
    with on_cluster(asked.cluster, progress):
        shown = model.preview(corpus, store=asked.store, progress=progress, **more)
    print_result([asdict(row) for row in shown], render(shown), asked.json)


def summary(metrics: dict[str, Any]) -> list[str]:
    """The metrics of the last validation as text, each with its baseline."""
    own = {
        name.removeprefix("validation_"): value
        for name, value in metrics.items()
        if name.startswith("validation_")
    }
    if "unigram_perplexity" in own or "ranking_accuracy" in own:
        return [_word_line(own)]
    marks = [name.removesuffix("perplexity") for name in own if name.endswith("perplexity")]
    lines = []
    for mark in sorted(marks):
        part = {
            name.removeprefix(mark): value for name, value in own.items() if name.startswith(mark)
        }
        lines += [f"{mark[:-1]}: {line}" if mark else line for line in _lines(part)]
    return lines


def _word_line(own: dict[str, Any]) -> str:
    """The metrics of a model over words."""
    if "ranking_accuracy" in own:
        return f"windows ranked above corrupted ones: {own['ranking_accuracy']:.1%}"
    told = f"perplexity {own['perplexity']:,.1f}"
    if "backward_perplexity" in own:
        told = (
            f"perplexity: {own['forward_perplexity']:,.1f} forwards, "
            f"{own['backward_perplexity']:,.1f} backwards"
        )
    return f"{told} (by frequency alone: {own['unigram_perplexity']:,.1f})"


def _lines(own: dict[str, Any]) -> list[str]:
    lines = []
    for name, title in (("masked", "hidden tokens"), ("token", "next tokens")):
        if f"{name}_accuracy" in own:
            counted = f"the most frequent token: {own['unigram_accuracy']:.1%}"
            if "neighbor_accuracy" in own:
                counted += f", counted neighbors: {own['neighbor_accuracy']:.1%}"
            lines.append(
                f"{title}: {own[f'{name}_accuracy']:.1%} right ({counted}), loss "
                f"{own[f'{name}_loss']:.3f} (by frequency alone: {own['unigram_loss']:.3f}), "
                f"perplexity {own['perplexity']:,.1f}"
            )
    if "replaced_accuracy" in own:
        lines.append(
            f"replaced tokens: {own['replaced_accuracy']:.1%} right (always the same answer: "
            f"{own['replaced_baseline']:.1%}), {own.get('replaced_recall', 0.0):.1%} of the "
            "replaced ones found"
        )
    if "next_accuracy" in own:
        lines.append(
            f"next sentences: {own['next_accuracy']:.1%} right "
            f"(always the same answer: {own['next_baseline']:.1%})"
        )
    return lines
