"""The main job for a first look: the built-in corpus to vectors, answers, scores and a picture."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.evaluate import score_table
from sememe.cli.options import Json, Quiet
from sememe.cli.screen import console, examples, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from sememe.evaluation import WordsResult
    from sememe.progress import Reporter, Task
    from sememe.vectors import WordVectors

EXAMPLES = examples("sememe demo", "sememe demo --dim 50 --epochs 3 --out runs/small")

WORDS = ("array", "tensor", "matrix", "function", "error", "file", "plot", "gradient")
ANALOGIES = (
    ("numpy", "array", "torch"),
    ("row", "rows", "column"),
    ("minimum", "maximum", "smallest"),
    ("matplotlib", "figure", "networkx"),
    ("read", "reading", "write"),
    ("server", "client", "parent"),
    ("horizontal", "vertical", "left"),
    ("sin", "cos", "sinh"),
)
_FREQUENT = 6_000  # rarer words are names of functions more often than words
PAIRS = (
    ("minimum", "maximum"), ("smallest", "largest"), ("lower", "upper"), ("row", "column"),
    ("left", "right"), ("first", "last"), ("start", "end"), ("input", "output"),
    ("positive", "negative"), ("true", "false"), ("horizontal", "vertical"), ("read", "write"),
    ("encode", "decode"), ("top", "bottom"),
)  # fmt: skip


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The model folder; pictures stand beside it.")
    ] = Path("runs/demo"),
    dim: Annotated[int, typer.Option(help="Numbers in a vector.")] = 100,
    epochs: Annotated[int, typer.Option(help="Passes over the text.")] = 20,
    workers: Annotated[int, typer.Option(help="Threads; 0 takes every core.")] = 0,
    seed: Annotated[int, typer.Option(help="Start of every random choice.")] = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train word vectors on the docstrings of the installed packages and look at them.

    Needs no data: the text is the prose of the Python packages on this machine.
    """
    from sememe import plots
    from sememe.evaluation import evaluate_words
    from sememe.progress import Reporter
    from sememe.static.word2vec import Word2Vec

    reporter = Reporter(quiet=quiet)
    _collect(reporter)
    model = Word2Vec(dim=dim, epochs=epochs, workers=workers, seed=seed)
    model.fit(None, out=out, progress=reporter)
    vectors = model.vectors
    result = evaluate_words(vectors, reporter=reporter)
    pairs = [pair for pair in PAIRS if all(word in vectors for word in pair)]
    pictures = [out.with_name(f"{out.name}-pca{ending}") for ending in (".png", ".svg")]
    plots.pca(vectors, pairs, pictures, title="Opposites in the prose of Python's packages")
    if json:
        paths = {"model": str(out), "pictures": list(map(str, pictures))}
        print_json({"paths": paths, "evaluation": result.to_dict(), **_answers(vectors)})
    else:
        _show(console(), vectors, result, out, pictures)


def _collect(reporter: Reporter) -> None:
    from sememe.text import library

    with ExitStack() as shown:
        task: Task | None = None

        def on_file(num_read: int, num_files: int) -> None:
            nonlocal task
            if task is None:  # not where the text is in the cache already
                started = reporter.task("collecting docstrings", num_files, "files")
                task = shown.enter_context(started)
            task.update(num_read)

        library.collect(on_file)


def _answers(vectors: WordVectors) -> dict[str, Any]:
    """Neighbors and analogies of those words of the field that the text holds."""
    known = [word for word in WORDS if word in vectors]
    asked = [three for three in ANALOGIES if all(word in vectors for word in three)]
    return {
        "neighbors": dict(
            zip(known, vectors.neighbors_of_many(known, 6, restrict_vocab=_FREQUENT), strict=True)
        ),
        "analogies": [
            {"question": three, "answers": vectors.analogy(*three, num=3, restrict_vocab=_FREQUENT)}
            for three in asked
        ],
    }


def _show(
    screen: Console, vectors: WordVectors, result: WordsResult, out: Path, pictures: list[Path]
) -> None:
    from rich import box
    from rich.panel import Panel
    from rich.table import Table

    answers = _answers(vectors)
    look: dict[str, Any] = {
        "box": box.SIMPLE_HEAD, "title_justify": "left", "title_style": "bold",
    }  # fmt: skip
    table = Table(title="Nearest words", **look)
    table.add_column("word", style="bold cyan", no_wrap=True)
    table.add_column("neighbors, nearest first")
    for word, found in answers["neighbors"].items():
        table.add_row(word, ", ".join(neighbor.word for neighbor in found))
    screen.print(table)
    table = Table(title="Analogies", **look)
    table.add_column("a is to b as c is to …", no_wrap=True)
    table.add_column("answers, best first")
    for row in answers["analogies"]:
        a, b, c = row["question"]
        first, *others = (answer.word for answer in row["answers"])
        table.add_row(f"{a} : {b} :: {c} : …", f"[bold cyan]{first}[/] [dim]{', '.join(others)}[/]")
    screen.print(table)
    screen.print(score_table(result, has_sections=False))
    screen.print(
        Panel(
            f"vectors   {out}\npictures  {pictures[0]} · {pictures[1].name}\n\n"
            "Try next\n"
            f"  sememe neighbors {out} derivative\n"
            f"  sememe analogy {out} numpy array torch\n"
            f"  sememe plot heatmap {out} \"row - column\" minimum maximum\n"
            "  sememe train word2vec YOUR-TEXT --out runs/mine",
            title="Done", title_align="left", expand=False, border_style="cyan",
        )
    )  # fmt: skip
