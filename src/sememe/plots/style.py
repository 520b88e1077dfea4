"""The style of all pictures and how they are saved, with fonts for the characters of labels.

matplotlib's own state is not changed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import OptionError
from sememe.localization import translate
from sememe.storage.folder import write_file
from sememe.text.characters import has_ideograph

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BASE_FAMILY = "DejaVu Sans"  # comes with matplotlib

# Fonts with Chinese, Japanese and Korean characters, as systems name them; the first one wins.
CJK_FAMILIES = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN",
    "PingFang SC", "Hiragino Sans GB", "Heiti SC", "STHeiti", "Microsoft YaHei", "SimHei",
    "DengXian", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Noto Sans CJK JP", "Noto Sans CJK TC",
    "Noto Serif CJK SC", "Noto Serif SC", "Droid Sans Fallback", "AR PL UMing CN",
    "AR PL UKai CN", "Arial Unicode MS", "Unifont",
)  # fmt: skip


@cache
def _characters(font_path: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(font_path).get_charmap())


def _installed() -> dict[str, str]:
    from matplotlib.font_manager import fontManager

    return {font.name: font.fname for font in reversed(fontManager.ttflist)}


@cache
def _find_new_fonts() -> None:
    """Add fonts installed since matplotlib cached its list, which it never updates."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    for path in set(findSystemFonts()) - {font.fname for font in fontManager.ttflist}:
        try:
            fontManager.addfont(path)
        except Exception:
            continue


@cache
def _warn_once(sample: str) -> None:
    warnings.warn(
        f"No installed font can draw {sample} characters; a PNG will show boxes in their place. "
        "Install one, for instance fonts-noto-cjk, and draw again.",
        stacklevel=2,
    )


def _choose(codes: set[int]) -> tuple[list[str], set[int]]:
    """Families that cover `codes`, and the codes that none covers."""
    installed = _installed()
    missing = codes - _characters(installed[BASE_FAMILY])
    families = [BASE_FAMILY]
    for family in CJK_FAMILIES:
        if not missing:
            break
        if family in installed and missing & _characters(installed[family]):
            families.append(family)
            missing -= _characters(installed[family])
    return families, missing


def _chosen(texts: Iterable[str]) -> tuple[list[str], set[int]]:
    """The font families for `texts`, and the characters that none of them has."""
    codes = {ord(mark) for text in texts for mark in text if not mark.isspace()}
    families, missing = _choose(codes)
    if missing:
        _find_new_fonts()
        families, missing = _choose(codes)
    return families, missing


def families_for(texts: Iterable[str]) -> tuple[list[str], bool]:
    """Choose font families for `texts`; also return whether all characters are covered."""
    families, missing = _chosen(texts)
    if missing:
        # One warning a process, whatever the words: the cure is the same.
        _warn_once("Chinese" if has_ideograph("".join(map(chr, missing))) else "some")
    return families, not missing


def spoken(text: str) -> str:
    """A label in the language in use; English if no font has its characters."""
    told = translate(text)
    return text if told != text and _chosen([told])[1] else told


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
    """Raise an error for endings other than .png and .svg, before any work is done."""
    paths = [Path(item) for item in ([path] if isinstance(path, (str, Path)) else path)]
    for item in paths:
        if item.suffix.lower() not in FORMATS:
            raise OptionError(f"A picture's name must end in .png or .svg, not “{item.name}”.")
    if not paths:
        raise OptionError("A picture needs a path that ends in .png or .svg.")
    return paths


@contextmanager
def picture(
    paths: Sequence[Path],
    texts: Iterable[str],
    width: float,
    height: float,
    *,
    told: str,
    **settings: Any,
) -> Iterator[Figure]:
    """A matplotlib figure (inches) in our style, with fonts for `texts`; saved to each path.

    It is drawn by Agg, unknown to pyplot, and contains no date. `told` describes it in words, for
    screen readers: the title and description of an SVG, the description of a PNG.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    told = translate(told)
    families, is_complete = families_for([*texts, spoken("position")])
    # Where no font has the glyphs, an SVG keeps its text as text: the viewer's fonts may.
    more = {"font.family": families, "svg.fonttype": "path" if is_complete else "none"}
    rc: Any = {**_RC, **more, **settings}
    with matplotlib.rc_context(rc), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = Figure(figsize=(width, height), dpi=100)
        FigureCanvasAgg(figure)
        yield figure
        for path in paths:
            kind = path.suffix.lower()[1:]
            is_svg = path.suffix.lower() == ".svg"
            metadata: Any = {"Date": None} if is_svg else {"Software": None, "Description": told}
            with write_file(path) as scratch:
                figure.savefig(scratch, format=kind, dpi=200, metadata=metadata)
                if is_svg:
                    _describe(scratch, told)


def _describe(path: Path, told: str) -> None:
    """Give an SVG file a text alternative."""
    head, mark, rest = path.read_text("utf-8").partition("<svg ")
    opening, end, body = rest.partition(">")
    title, _, _ = told.partition(". ")
    texts = f"<title>{escape(title)}</title><desc>{escape(told)}</desc>"
    path.write_text(f'{head}{mark}role="img" {opening}{end}{texts}{body}', encoding="utf-8")
