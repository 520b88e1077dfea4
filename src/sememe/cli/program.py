"""The program: its root and groups of commands, its output, and its errors.

Results are tables on a terminal, tab-separated lines in a pipe, JSON on request. An error that a
user can fix is one sentence on standard error and exit code 2; `--debug` shows the traceback.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from sememe import __version__
from sememe.cli.options import flag
from sememe.cli.remote_paths import as_typed, with_urls
from sememe.cli.wording import localize, requested, speaking, translated_usage_errors
from sememe.errors import LookupNote, OptionError, SememeError
from sememe.localization import VARIABLE, Language, say, translate, translations
from sememe.machine import naming_extra, torchrun_ranks
from sememe.progress import shown
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import kind_of_folder

if TYPE_CHECKING:
    from rich.console import Console

# The commands by purpose, in the order in which a newcomer needs them; then those of groups.
PANELS = {
    "Train": ("ladder", "train", "plan", "distill"),
    "Prepare a corpus": ("clean",),
    "Search and group": ("search", "duplicates", "topics"),
    "Use word vectors": ("neighbors", "analogy", "similarity", "odd", "align"),
    "Use language models": ("fill", "next", "generate", "suggest", "prompt", "translate"),
    "Fine-tune and predict": ("finetune", "predict"),
    "Evaluate and compare": ("evaluate", "compare", "study"),
    "Look inside": ("explore", "inspect", "plot", "info"),
    "Files": ("embed", "convert"),
    "Serve": ("serve",),
    "Cluster": ("cluster",),
}
_PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}
_IN_GROUPS = (
    "word2vec", "fasttext", "classifier", "glove", "counts", "onehot", "sif", "elmo", "ulmfit",
    "ngram", "nnlm", "tokenizer", "bert", "gpt", "seq2seq", "transformer",
    "classify", "pairs", "regress", "choose", "tag", "answer",
    "words", "labels", "glue", "squad", "ner", "texts", "features", "perplexity", "senses",
    "retrieval", "sts", "induction",
    "masking", "reversal", "rates",
    "pca", "map", "heatmap", "positions", "history", "attention",
    "context", "changes", "prediction", "generation", "step", "film", "masks",
    "status",
)  # fmt: skip
USER_ERROR, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
_OUT: ContextVar[Path | None] = ContextVar("out", default=None)


# ---- what a command prints ----------------------------------------------------------------


def examples(*lines: str) -> str:
    """The examples below a command's help, one per line."""
    shown = (f"  {line}".replace("[", r"\[") for line in lines)
    return "\n".join(["[bold]Examples[/bold]", *shown])


def console() -> Console:
    """The terminal, or whatever standard output is at the moment."""
    from rich.console import Console

    return Console(highlight=False)


def is_ascii() -> bool:
    """Whether standard output supports only ASCII."""
    return not (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")


def echo(text: Any = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text; words, labels and names in it cannot control the terminal."""
    typer.echo(shown(as_typed(str(text))), err=err, nl=nl)


def print_json(content: Any) -> None:
    """Print one JSON value, escaped to ASCII if the terminal needs it."""
    echo(json.dumps(content, ensure_ascii=is_ascii(), indent=2))


def print_result(content: Any, text: str, as_json: bool) -> None:
    """Print a result as JSON, or as text."""
    if as_json:
        print_json(content)
    else:
        echo(text)


def remark(text: str, quiet: bool) -> None:
    """Print a remark about the results: what was saved, what to try; --quiet omits it."""
    if not quiet:
        echo(translate(text))


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    title: str = "",
    *,
    always_headed: bool = False,
    names: Mapping[str, str] | None = None,
    labels: Sequence[str] = (),
) -> None:
    """Print rows as a table on a terminal, and as tab-separated lines in a pipe.

    With `always_headed`, a pipe gets the headings too, because its columns would be unclear. On a
    terminal headings are translated, except the user's own `labels`, and cells are written as
    `names` says. A column without a heading is left-aligned.
    """
    named, *cells = [[_cell(value) for value in row] for row in (headings, *rows)]
    if not sys.stdout.isatty():
        for row in [named, *cells] if always_headed else cells:
            echo("\t".join(row))
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if title:
        console().print(Text(shown(title), "italic"), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, show_header=any(named))
    for index, heading in enumerate(named):
        own = heading if heading in labels else translate(heading)
        table.add_column(Text(own), justify="right" if index and heading else "left")
    for row in cells:
        table.add_row(*(Text((names or {}).get(cell, cell)) for cell in row))
    console().print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4f}"
    return shown(str(value)).replace("\t", "\\t").replace("\n", "\\n")


def print_scores(scores: Any, name: str) -> None:
    """Print the tables and the metrics of these rows."""
    from sememe.metrics.baselines import names_beside

    for headings, rows, title in scores.tables(name):
        print_table(
            headings,
            rows,
            translate(title),
            always_headed=bool(title),
            names=translations(
                [
                    *(f"{average} average" for average in scores.averages),
                    *names_beside(scores.baselines, scores.seeds),
                ]
            ),
            labels=scores.labels,
        )
    for line in scores.summary(name).splitlines():
        echo(translate(line))
    if scores.remark:
        echo(translate(scores.remark), err=True)


# ---- the commands -------------------------------------------------------------------------


class Ordered(TyperGroup):
    """Commands in the order in which a newcomer needs them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        places = {name: place for place, name in enumerate([*_PANEL_OF, *_IN_GROUPS])}
        return sorted(self.commands, key=lambda name: places.get(name, len(places)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, its help in the language of the user."""
        found = super().get_command(ctx, cmd_name)
        return found and with_urls(localize(found, ctx))


class Program(Ordered):
    """The root of the commands, where all errors are handled."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, with its panel in the help."""
        if found := super().get_command(ctx, cmd_name):
            found.rich_help_panel = translate(_PANEL_OF[cmd_name])
        return found

    def main(self, args: Any = None, *more: Any, **options: Any) -> Any:
        """Run the program in the language of the user."""
        with speaking(requested(sys.argv[1:] if args is None else args)):
            return super().main(args, *more, **options)

    def parse_args(self, ctx: Any, args: Any) -> Any:
        """Read the options before the command."""
        localize(self, ctx)
        with translated_usage_errors():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command and turn errors that a user can fix into one sentence."""
        with report_failures(ctx), translated_usage_errors():
            return super().invoke(ctx)


app = typer.Typer(
    cls=Program,
    name="sememe",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "sememe ladder",
        "sememe train word2vec my-texts/ --out runs/mine",
        "sememe neighbors runs/mine contract",
        "sememe train word2vec news.txt --language zh --out runs/news",
    ),
)


def group(name: str, help: str, cls: type[Ordered] = Ordered) -> typer.Typer:
    """Add a group of commands to the program."""
    made = typer.Typer(cls=cls, help=help, no_args_is_help=True)
    app.add_typer(made, name=name)
    return made


def _print_version(is_asked: bool) -> None:
    if is_asked:
        echo(f"sememe {__version__}")
        raise typer.Exit


@app.callback()
def sememe(
    version: Annotated[
        bool,
        flag("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Annotated[
        bool, flag("--debug", help="Show the traceback of an error.", envvar="SEMEME_DEBUG")
    ] = False,
    lang: Annotated[
        Language | None,
        typer.Option(
            help="Language of help, messages and report; default: locale.", envvar=VARIABLE
        ),
    ] = None,
) -> None:
    """Train, compare and inspect text representations on your own corpus.

    `sememe COMMAND --help` lists the options and examples of a command.
    """


def main() -> None:
    """Run the program on the arguments of this process and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        # A character that a terminal cannot show is replaced, not an error.
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")
    # If the locale is ASCII, Python hides the bytes of other words in surrogates. What is not UTF-8
    # stays hidden: it may be a file name.
    sys.argv[1:] = [os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:]]
    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            drop_output()


# ---- how a command fails ------------------------------------------------------------------


def needed(out: Path | None) -> Path:
    """The output folder, which is required; `fit` refuses one that holds something else."""
    if out is None:
        raise OptionError("--out must name the output folder.")
    _OUT.set(out)  # for the message on how to resume after an interruption
    return out


def _can_resume() -> bool:
    """Whether the command has left a checkpoint, of one training or of one among several."""
    out = _OUT.get()
    if out is None:
        return False
    # Several runs of a fine-tuning have their own folder, those of a study are in its folder; the
    # initial skip-gram of an ELMo is next to it.
    beside = [Path(f"{out}{ending}.checkpoints") for ending in ("", ".start")]
    places = [*beside, *out.glob("*.checkpoints")]
    if Path(f"{out}.trials").is_dir() or kind_of_folder(out) == "ladder":
        return True
    return any(Checkpoints(place).has_one for place in places)


@contextmanager
def report_failures(ctx: Any) -> Iterator[None]:
    """Turn errors that a user can fix into one sentence, and exit with the right code."""
    is_debug = bool(ctx.params.get("debug"))
    _OUT.set(None)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            with ExitStack() as muted:
                if torchrun_ranks()[0]:  # only the first process prints; each reports its errors
                    silence = muted.enter_context(Path(os.devnull).open("w"))
                    muted.enter_context(redirect_stdout(silence))
                    muted.enter_context(redirect_stderr(silence))
                muted.enter_context(naming_extra("This command"))
                yield
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(PIPE_CLOSED) from None
        except KeyboardInterrupt:
            if is_debug:
                raise
            hint = "Stopped. Run the same command with --resume to continue."
            echo("\n" + say(hint if _can_resume() else "Stopped."), err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (SememeError, MemoryError, OSError, RuntimeError) as error:
            is_known = not isinstance(error, RuntimeError) or _lacks_memory(error)
            if is_debug or not is_known:
                raise
            echo(say("Error: {reason}", reason=translate(_sentence(error))), err=True)
            raise typer.Exit(USER_ERROR) from None


def _lacks_memory(error: RuntimeError) -> bool:
    """Whether PyTorch, which is not imported here, ran out of memory."""
    words = ("can't allocate memory", "not enough memory", "out of memory")
    return any(word in str(error) for word in words)


def _sentence(error: Exception) -> str:
    if isinstance(error, SememeError):
        return str(error)
    if isinstance(error, RuntimeError):
        place = "The GPU" if "CUDA" in str(error) or "MPS" in str(error) else "This machine"
        return (
            f"{place} has too little memory for this network and text: take a smaller model, "
            "shorter texts, or another --device."
        )
    if isinstance(error, MemoryError):
        reason = f" ({error})" if str(error) else ""
        return f"There is not enough memory for these options{reason}; try smaller ones."
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror or error}."
    return f"{error}."


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    if isinstance(message, LookupNote):
        echo(translate(str(message)), err=True)
        return
    echo(say("Warning: {reason}", reason=translate(str(message))), err=True)


def drop_output() -> None:
    """Discard output that is buffered for a reader that has gone, without an error."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stdout.fileno())
