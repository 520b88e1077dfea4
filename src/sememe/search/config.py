"""The options of a search index, of duplicates and of topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, option
from sememe.text.settings import Errors, TextSettings


@dataclass(frozen=True, kw_only=True)
class RowsConfig(Config):
    """How the rows of texts are read."""

    layout: Literal["auto", "line", "paragraph", "file"] = option(
        "auto", "Row of text files; auto: detected."
    )
    columns: Mapping[str, str] = field(
        default_factory=dict,
        hash=False,
        metadata={"help": "Column of a table by role: text=body, id=key; repeatable."},
    )
    encoding: str = option("utf-8", "Encoding of text, jsonl, csv and tsv files.")
    errors: Errors = option("strict", "Invalid bytes: stop, or replace them.")
    skip_bad: bool = option(False, "Skip invalid rows and report how many.")

    def __post_init__(self) -> None:
        """Raise OptionError for options that no text could satisfy."""
        super().__post_init__()
        for role, column in self.columns.items():
            if role not in ("text", "id") or not column or not isinstance(column, str):
                raise OptionError(
                    f"The columns of a search index are text and id, each with its name, not "
                    f"{role}={column}."
                )
        self.reading()

    def reading(self, text_column: str = "") -> TextSettings:
        """How files are read; `text_column` is that of a table, if it is known."""
        column = self.columns.get("text", text_column)
        return TextSettings(
            layout=self.layout, encoding=self.encoding, errors=self.errors,
            columns={"text": column} if column else {},
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WordsConfig(RowsConfig):
    """How the rows of texts are read and split into words."""

    language: str = option("", "Language of the words (en, zh …); default: detected.")

    def reading(self, text_column: str = "") -> TextSettings:
        """How files are read; `text_column` is that of a table, if it is known."""
        return replace(super().reading(text_column), language=self.language or "en")


@dataclass(frozen=True, kw_only=True)
class SearchConfig(WordsConfig):
    """How rows are read, split into passages and stored as vectors."""

    passage: int = option(
        1_000, "Split rows longer than N characters into passages; 0: never.", 0, 2**24
    )
    overlap: int = option(200, "Characters that neighboring passages share at most.", 0, 2**24)
    vectors: Literal["float32", "int8", "binary"] = option(
        "float32", "Vector precision; int8 and binary need less memory."
    )

    def __post_init__(self) -> None:
        """Raise OptionError for options that no index could satisfy."""
        super().__post_init__()
        if self.passage and self.overlap >= self.passage:
            raise OptionError(
                f"overlap ({self.overlap:,}) must be smaller than passage ({self.passage:,})."
            )


@dataclass(frozen=True, kw_only=True)
class DuplicatesConfig(RowsConfig):
    """How similar near-duplicates are, and how rows are read."""

    threshold: float | None = option(
        None, "Minimum similarity; default: 0.95 (cosine) or 0.8 (Jaccard).", 0.1, 1
    )


@dataclass(frozen=True, kw_only=True)
class TopicsConfig(WordsConfig):
    """How rows are grouped and described, and how they are read."""

    num_topics: int = option(0, "Number of topics of k-means; 0: from the rows.", 0, 10_000)
    method: Literal["kmeans", "hdbscan"] = option(
        "kmeans", "kmeans, or hdbscan, which leaves some rows out."
    )
    min_size: int = option(15, "Minimum rows of a topic (hdbscan).", 2, 10**9)
    num_words: int = option(8, "Number of words that describe a topic.", 1, 100)
    seed: int = option(1, "Random seed of k-means.", 0, 2**32 - 1)
