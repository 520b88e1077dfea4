"""Formulas of the site: TeX in ```math blocks comes in, MathML goes out.

GitHub and GitLab draw such blocks by themselves. Browsers draw MathML without any program, so the
site needs nothing from elsewhere.
"""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

BLOCK = re.compile(r"^```math\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The converter leaves no space between the name of a function and what it is taken of.
FUNCTION = re.compile(r"(\\(?:log|exp|tanh|max|min))(?= ?[A-Za-z\\])(?! ?\\left| ?\\!)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the formulas of a page before the rest of it is read."""
    return BLOCK.sub(lambda block: drawn(block[1]), markdown)


def drawn(tex: str) -> str:
    """One formula as a paragraph; on one line, so that nothing inside is taken for Markdown."""
    spaced = FUNCTION.sub(r"\1\\,", " ".join(tex.split()))
    formula = convert(spaced, display="block")
    return f'<div class="formula">{formula}</div>\n'
