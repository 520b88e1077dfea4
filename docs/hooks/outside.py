"""A page of the site comes in; one that would fetch something from elsewhere stops the build."""

from __future__ import annotations

import re
from typing import Any

from mkdocs.exceptions import PluginError

FETCHED = re.compile(
    r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)\s*=\s*[\"']?((?:https?:)?//[^\s\"'>]+)"
)


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """Look for scripts, styles, fonts and pictures of other places."""
    found = FETCHED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri}: fetched from elsewhere: {found[1]}")
    return output
