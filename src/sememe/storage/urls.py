"""Names of files on other file systems: `s3://bucket/texts`, but no links and no texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sememe.errors import WriteError

# pathlib makes one slash of two, and some options are paths.
_URL = re.compile(r"([a-z][a-z0-9+.-]+):(/{1,2})([^/\s]\S*|/\S+)")
_LINKS = ("http", "https", "ftp", "ray")
_ABSOLUTE = ("file", "local", "memory")  # whose paths start with a slash


def url_of(name: Any) -> str | None:
    """The URL that a name or a path is; None for files of this machine and for texts."""
    found = _URL.fullmatch(str(name)) if isinstance(name, str | Path) else None
    if found is None or found[1] in _LINKS:
        return None
    scheme, slashes, rest = found.groups()
    if len(slashes) == 1:
        if not isinstance(name, Path) or Path(f"{scheme}:").exists():
            return None
        rest = f"/{rest}" if scheme in _ABSOLUTE else rest
    return f"{scheme}://{rest}"


def check_here(path: str | Path) -> None:
    """Refuse to write to a URL as if it were a folder of this machine."""
    if (url := url_of(path)) is not None:
        raise WriteError(
            f"{url} is on another file system: give it to `fit(out=…)` or to a command's --out, "
            "or save to this machine first."
        )
