"""How every picture looks and how it is saved; matplotlib's own state is left as it was."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import OptionError
from sememe.plots.fonts import families_for
from sememe.storage.folder import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Paths = str | Path | Sequence[str | Path]

INK, FAINT, PAPER = "#2b2b33", "#8b8b96", "#fdfdfb"
BLUE, RED = "#2f6db3", "#c8553d"
FORMATS = (".png", ".svg")

_RC: dict[str, Any] = {
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": "#d8d8dc",
    "axes.labelcolor": FAINT,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.unicode_minus": True,
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,  # a word may hold a dollar sign
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "svg.hashsalt": "sememe",  # the same picture gives the same bytes
}


def check_paths(path: Paths) -> list[Path]:
    """Refuse endings that are neither .png nor .svg before any work is done."""
    given = [path] if isinstance(path, (str, Path)) else list(path)
    paths = [Path(item) for item in given]
    for item in paths:
        if item.suffix.lower() not in FORMATS:
            raise OptionError(f"A picture's name must end in .png or .svg, not “{item.name}”.")
    if not paths:
        raise OptionError("A picture needs a path that ends in .png or .svg.")
    return paths


@contextmanager
def styled(texts: Iterable[str]) -> Iterator[None]:
    """Apply our style, with fonts that hold the characters of `texts`."""
    import matplotlib

    families, is_complete = families_for(texts)
    # Where no font has the glyphs, an SVG keeps its text as text: the viewer's fonts may.
    more = {"font.family": families, "svg.fonttype": "path" if is_complete else "none"}
    settings: Any = {**_RC, **more}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def new_figure(width: float, height: float) -> Figure:
    """Make a figure (inches) that is drawn by Agg and known to no pyplot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=100)
    FigureCanvasAgg(figure)
    return figure


def save(figure: Figure, paths: Sequence[Path]) -> None:
    """Write the figure to each path, whole or not at all, without a date inside."""
    for path in paths:
        kind = path.suffix.lower()[1:]
        metadata = {"Date": None} if kind == "svg" else {"Software": None}
        with write_file(path) as scratch:
            figure.savefig(scratch, format=kind, dpi=200, metadata=metadata)
