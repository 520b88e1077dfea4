"""Fonts for labels: texts in, families out that together hold their characters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache

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
    """Add what was installed since matplotlib wrote its list of fonts, which it never renews."""
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
    """Families that hold `codes`, and those of them that none holds."""
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


def families_for(texts: Iterable[str]) -> tuple[list[str], bool]:
    """Choose font families for `texts`; the second value tells whether all characters are held."""
    codes = {ord(mark) for text in texts for mark in text if not mark.isspace()}
    families, missing = _choose(codes)
    if missing:
        _find_new_fonts()
        families, missing = _choose(codes)
    if missing:
        # One warning a process, whatever the words: the cure is the same.
        _warn_once("Chinese" if any(0x2E80 <= code <= 0x9FFF for code in missing) else "some")
    return families, not missing
