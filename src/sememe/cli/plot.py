"""Pictures: words on a plane, vectors side by side, positions, the curve of a training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sememe.cli.options import Limit, Model, Pictures, Quiet
from sememe.cli.screen import examples, remark

app = typer.Typer(help="Draw pictures of vectors and of training.", no_args_is_help=True)

Title = Annotated[str, typer.Option(help="A line above the picture.")]


def read_pairs(given: list[str]) -> list[tuple[str, str]]:
    """Read pairs written as `france:paris,italy:rome`, or from files of two words a line."""
    from sememe.errors import OptionError

    pairs = []
    for text in given:
        for line in _lines(text):
            words = line.replace(":", " ").split()
            if len(words) != 2:
                raise OptionError(
                    f"“{line}” is no pair; write france:paris, or name a file of two words a line."
                )
            pairs.append((words[0], words[1]))
    return pairs


def _lines(text: str) -> list[str]:
    from sememe.errors import InputError

    path = Path(text)
    if ":" in text and not path.exists():
        return text.split(",")
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InputError(
            f"Cannot read the pairs of {text}: {reason}; write france:paris, or name a file."
        ) from error
    return [line for line in map(str.strip, lines) if line and line[0] not in "#:"]


def _tell(paths: list[Path], quiet: bool) -> None:
    for path in paths:
        remark(f"Saved {path}", quiet)


@app.command(
    epilog=examples(
        "sememe plot pca runs/ladder/models/skipgram row column minimum maximum --out words.png",
        'sememe plot pca glove.txt --pairs "france:paris,italy:rome,japan:tokyo" --out map.svg',
        "sememe plot pca runs/mine --pairs capitals.txt --out map.png --out map.svg",
    )
)
def pca(
    model: Model,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORD", help="Words to show.")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PAIRS",
            help="Pairs to join with a line: france:paris,italy:rome, or a file of two words a "
            "line; may be repeated.",
        ),
    ] = None,
    out: Pictures = None,
    title: Title = "",
    limit: Limit = None,
    quiet: Quiet = False,
) -> None:
    """Show words on the plane in which they differ most (principal components).

    Three words or more are needed, by themselves or in pairs. Lines of pairs that run side by side
    show that the words of each differ in the same way.
    """
    from sememe import plots
    from sememe.vectors import load

    paths = out or [Path("pca.png")]
    items: list[str | tuple[str, str]] = [*read_pairs(pairs or []), *(words or [])]
    plots.pca(load(model, limit), items, paths, title=title)
    _tell(paths, quiet)


@app.command(
    epilog=examples(
        'sememe plot heatmap glove.txt king queen man woman "king - man + woman" --out strips.png',
        "sememe plot heatmap runs/ladder/models/skipgram array matrix error --scale 1",
    )
)
def heatmap(
    model: Model,
    expressions: Annotated[
        list[str],
        typer.Argument(metavar="EXPRESSION", help='Words or sums such as "king - man + woman".'),
    ],
    out: Pictures = None,
    scale: Annotated[float, typer.Option(help="Blue is minus this, red is plus this.")] = 2.0,
    title: Title = "",
    limit: Limit = None,
    quiet: Quiet = False,
) -> None:
    """Show vectors as strips of color, one a row: blue below zero, red above."""
    from sememe import plots
    from sememe.vectors import load

    paths = out or [Path("heatmap.png")]
    plots.heatmap(load(model, limit), expressions, paths, limit=scale, title=title)
    _tell(paths, quiet)


@app.command(
    epilog=examples(
        "sememe plot positions --out waves.png",
        "sememe plot positions --length 50 --width 128 --out waves.svg",
        "sememe plot positions runs/bert --out learned.png",
    )
)
def positions(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="Folder of a BERT, GPT or transformer; left out: the Transformer's sine waves.",
        ),
    ] = None,
    length: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Positions to show; 100 of sine waves.")
    ] = None,
    width: Annotated[int, typer.Option(min=2, max=100_000, help="Dimensions of sine waves.")] = 512,
    out: Pictures = None,
    title: Title = "",
    quiet: Quiet = False,
) -> None:
    """Show the vectors of positions: the Transformer's sine waves, or those of a model."""
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe import plots

    paths = out or [Path("positions.png")]
    if model is None:
        from sememe.networks.positions import sinusoidal_table

        table = sinusoidal_table(length or 100, width)
    else:
        table = _positions_of(model)[:length]
    plots.positions(table.detach().numpy(), paths, title=title)
    _tell(paths, quiet)


def _positions_of(model: Path) -> Any:
    """The table of positions of a model's folder."""
    from sememe.errors import ArtifactError
    from sememe.storage.folder import kind_of_folder

    kind = kind_of_folder(model)
    if kind == "seq2seq":
        raise ArtifactError(f"{model} has no positions: its layers read one token after the other.")
    if kind == "transformer":
        from sememe.tasks.translation_folder import open_translator

        return open_translator(model, device="cpu").network.embedding.positions.weight
    from sememe.cli.opening import open_network

    return open_network(model, device="cpu")[0].embedding.positions.weight


@app.command(
    epilog=examples(
        "sememe plot history runs/ladder/models/skipgram",
        "sememe plot history runs/mine --figure words_per_s",
    )
)
def history(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder.")],
    out: Pictures = None,
    figure: Annotated[str, typer.Option(help="Which figure of the history to draw.")] = "loss",
    title: Title = "",
    quiet: Quiet = False,
) -> None:
    """Show the curve of a training: the loss, or another figure of its history."""
    from sememe import plots
    from sememe.progress import History

    paths = out or [Path("history.png")]
    plots.history(History.load(model / "history.json"), paths, figure_name=figure, title=title)
    _tell(paths, quiet)
