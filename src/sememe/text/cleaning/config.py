"""The options of `sememe clean`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, option
from sememe.text.settings import Errors, TextSettings

_LANGUAGES = re.compile(r"[a-z]{2,3}(,[a-z]{2,3})*")


@dataclass(frozen=True, kw_only=True)
class CleanConfig(Config):
    """Which rows and lines of a corpus are removed, and how the corpus is read."""

    duplicates: bool = option(True, "Remove exact duplicates of earlier rows.")
    near_duplicates: bool = option(True, "Remove near-duplicates of earlier rows (MinHash).")
    threshold: float = option(0.8, "Jaccard similarity of near-duplicates.", 0.1, 1)
    shingles: Literal["words", "characters"] = option(
        "words", "Units of a shingle; Chinese always by characters."
    )
    shingle_size: int = option(5, "Number of units per shingle.", 1, 64)
    keep_language: str = option("", "Keep only these languages, such as en or en,zh.")
    repeated_lines: int = option(10, "Remove lines that N documents share; 0: off.", 0, 2**30)
    links: bool = option(True, "Remove lines that are only links.")
    page_numbers: bool = option(True, "Remove lines that are only page numbers.")
    markup: bool = option(True, "Remove lines that are only markup or punctuation.")
    strip_markup: bool = option(False, "Remove HTML tags and entities inside lines.")
    broken: bool = option(True, "Repair broken characters; remove lines beyond repair.")
    min_length: int = option(
        2, "Minimum letters of a text; Chinese characters count double.", 0, 2**30
    )
    max_length: int = option(1_000_000, "Maximum characters of a line; 0: no limit.", 0, 2**26)
    layout: Literal["auto", "line", "paragraph", "file"] = option(
        "auto", "Document unit in text files; auto: detected."
    )
    columns: Mapping[str, str] = field(
        default_factory=dict,
        hash=False,
        metadata={"help": "Column of a table that holds the text: text=body."},
    )
    encoding: str = option("utf-8", "Encoding of text, jsonl, csv and tsv files.")
    errors: Errors = option("replace", "Invalid bytes: stop, or replace and remove their lines.")
    skip_bad: bool = option(False, "Remove invalid rows of tables; otherwise stop.")
    workers: int = option(0, "Number of threads and processes; 0: all cores.", 0, 1024)

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.keep_language and not _LANGUAGES.fullmatch(self.keep_language):
            raise OptionError(
                f"keep_language must be codes such as en or en,zh, not {self.keep_language!r}."
            )
        self.text_settings  # noqa: B018 (checks the options that it shares)

    @property
    def text_settings(self) -> TextSettings:
        """How files are read."""
        return TextSettings(
            layout=self.layout, columns=self.columns, encoding=self.encoding, errors=self.errors
        )
