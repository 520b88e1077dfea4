"""How text is read and tokenized: one dataclass for the command and the Python call."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from sememe.errors import ArtifactError, OptionError
from sememe.options import check_choices, option

# The name of the corpus that is read if none is given.
BUILT_IN = "docstrings of the installed Python packages"

Mode = Literal["unicode", "whitespace", "chinese"]
Errors = Literal["strict", "replace"]

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*")


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """What a document is, how it is decoded, and how it is split into sentences of words."""

    language: str = option("en", "Language code; zh segments Chinese, none splits at whitespace.")
    lowercase: bool = option(True, "Convert words to lower case.")
    layout: Literal["auto", "line", "paragraph", "file"] = option(
        "auto", "Document unit in text files; auto: detected."
    )
    sentences: bool = option(
        True, "Split documents into sentences; otherwise one sentence per line."
    )
    # The column of each part of a document in a table: {"text": "body", "label": "kind"}.
    columns: Mapping[str, str] = field(
        default_factory=dict,
        hash=False,
        metadata={"help": "Column of a table by role: text=body, label=kind; repeatable."},
    )
    encoding: str = option("utf-8", "Encoding of text, jsonl, csv and tsv files.")
    errors: Errors = option("strict", "Invalid bytes: stop, or replace them.")
    dictionary: str = option("", "Extra Chinese words, one per line: word [frequency [tag]].")

    def __post_init__(self) -> None:
        """Raise OptionError for settings that no run could satisfy."""
        for own in fields(self):
            value = getattr(self, own.name)
            kind = dict if own.name == "columns" else type(own.default)
            if type(value) is not kind:
                raise OptionError(f"{own.name} must be a {kind.__name__}, not {value!r}.")
        check_choices(self, layout=("auto", "line", "paragraph", "file"), errors=get_args(Errors))
        if self.language not in ("none", "whitespace") and not _LANGUAGE_CODE.fullmatch(
            self.language
        ):
            raise OptionError(
                f"language must be a code such as en, de or zh, or none, not {self.language!r}."
            )
        for role, column in self.columns.items():
            if role not in ("text", "label") or not column or not isinstance(column, str):
                raise OptionError(
                    f"The columns of a text are text and label, each with its name, not "
                    f"{role}={column}."
                )
        self._check_encoding()
        if self.dictionary and self.mode != "chinese":
            raise OptionError("dictionary adds Chinese words: it needs language zh.")

    def _check_encoding(self) -> None:
        try:
            codec = codecs.lookup(self.encoding)
        except (LookupError, ValueError):
            raise OptionError(f"encoding {self.encoding!r} is not known to Python.") from None
        if not getattr(codec, "_is_text_encoding", True):
            raise OptionError(f"encoding {self.encoding!r} is not an encoding of text.")

    @cached_property
    def mode(self) -> Mode:
        """The segmenter for the language."""
        if self.language in ("none", "whitespace"):
            return "whitespace"
        base = self.language.replace("_", "-").split("-")[0].lower()
        return "chinese" if base in ("zh", "zho", "chi", "cmn") else "unicode"

    def for_language(self, language: str) -> TextSettings:
        """The same settings for another language."""
        own = replace(self, language=language, dictionary="")
        return replace(own, dictionary=self.dictionary) if own.mode == "chinese" else own

    @property
    def text_column(self) -> str:
        """The column of a table that holds the text."""
        return self.columns.get("text", "text")

    @property
    def label_column(self) -> str:
        """The column of a table that holds a label; empty where none is read."""
        return self.columns.get("label", "")

    def to_dict(self) -> dict[str, Any]:
        """The settings as saved in sememe.json."""
        kept = {name: value for name, value in asdict(self).items() if name != "columns"}
        return kept | {"field": self.text_column, "label_field": self.label_column}

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> TextSettings:
        """The settings in a sememe.json, as far as this version knows them."""
        if not isinstance(kept, Mapping):
            raise ArtifactError(
                f"The settings of text in a sememe.json are an object, not {kept!r}."
            )
        names = {own.name for own in fields(cls)}
        columns = {"text": kept.get("field", "text"), "label": kept.get("label_field", "")}
        columns = {role: name for role, name in columns.items() if name not in ("", "text")}
        settings = cls(columns=columns, **{name: kept[name] for name in kept if name in names})
        # The user's dictionary may no longer exist.
        is_there = not settings.dictionary or Path(settings.dictionary).is_file()
        return settings if is_there else replace(settings, dictionary="")
