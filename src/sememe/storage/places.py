"""Where things that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_dir() -> Path:
    """The user's cache folder for sememe; the environment variable SEMEME_CACHE overrides it."""
    override = os.environ.get("SEMEME_CACHE")
    return Path(override) if override else Path(platformdirs.user_cache_dir("sememe"))
