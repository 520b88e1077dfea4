"""The options of the explorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.options import Config, option


@dataclass(frozen=True, kw_only=True)
class ExploreConfig(Config):
    """Where the page is served, and the texts that it shows."""

    port: int = option(8_001, "Port to listen on; 0: any free one.", 0, 65_535)
    text: str = option("", "Text whose sentences show words in use; default: built-in.")
    rows: str = option("", "File of rows to show as points, such as reviews.csv.")
    device: Literal["auto", "cpu", "cuda"] = option("auto", "Where networks compute.")
