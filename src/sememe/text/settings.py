"""How text is read and cut into words: one dataclass that the command and the Python call share."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from sememe.errors import OptionError

Mode = Literal["unicode", "whitespace", "chinese"]
Errors = Literal["strict", "replace"]

_LANGUAGE_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*")


def _option(default: Any, help_text: str) -> Any:
    return field(default=default, metadata={"help": help_text})


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """What a document is, how it is decoded, and how it becomes sentences of words."""

    language: str = _option(
        "en", "Language code; zh cuts Chinese words, none splits at whitespace."
    )
    lowercase: bool = _option(True, "Turn words into lower case.")
    layout: Literal["auto", "line", "paragraph", "file"] = _option(
        "auto", "A document of a text file: line, paragraph or file; auto: told by the text."
    )
    sentences: bool = _option(
        True, "Split documents into sentences; otherwise a line is a sentence."
    )
    field: str = _option("text", "Column of jsonl, csv, tsv and parquet files that holds the text.")
    label_field: str = _option("", "Column that holds a label; none when left out.")
    encoding: str = _option("utf-8", "Encoding of text, jsonl, csv and tsv files.")
    errors: Errors = _option("strict", "Stop at wrong bytes, or replace them.")
    dictionary: str = _option("", "File of extra Chinese words: word [frequency [tag]] a line.")

    def __post_init__(self) -> None:
        """Refuse what no run could satisfy, naming the option and its choices."""
        for name, choices in (
            ("layout", ("auto", "line", "paragraph", "file")),
            ("errors", ("strict", "replace")),
        ):
            if getattr(self, name) not in choices:
                raise OptionError(
                    f"{name} must be one of {', '.join(choices)}, not {getattr(self, name)!r}."
                )
        if self.language not in ("none", "whitespace") and not (
            isinstance(self.language, str) and _LANGUAGE_CODE.fullmatch(self.language)
        ):
            raise OptionError(
                f"language must be a code such as en, de or zh, or none, not {self.language!r}."
            )
        if not self.field:
            raise OptionError("field must name a column; it is empty.")
        self._check_encoding()
        if self.dictionary and self.mode != "chinese":
            raise OptionError("dictionary adds Chinese words: it needs language zh.")

    def _check_encoding(self) -> None:
        try:
            codec = codecs.lookup(self.encoding)
        except (LookupError, TypeError, ValueError):
            raise OptionError(f"encoding {self.encoding!r} is not known to Python.") from None
        if not getattr(codec, "_is_text_encoding", True):
            raise OptionError(f"encoding {self.encoding!r} is not an encoding of text.")

    @property
    def mode(self) -> Mode:
        """Which segmenter the language calls for."""
        if self.language in ("none", "whitespace"):
            return "whitespace"
        base = self.language.replace("_", "-").split("-")[0].lower()
        return "chinese" if base in ("zh", "zho", "chi", "cmn") else "unicode"

    def for_language(self, language: str) -> TextSettings:
        """The same settings for a text of another language."""
        own = replace(self, language=language, dictionary="")
        return replace(own, dictionary=self.dictionary) if own.mode == "chinese" else own

    def to_dict(self) -> dict[str, Any]:
        """The settings as they are kept in sememe.json."""
        return asdict(self)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> TextSettings:
        """The settings that a sememe.json kept, as far as this version knows them."""
        names = {own.name for own in fields(cls)}
        settings = cls(**{name: kept[name] for name in kept if name in names})
        # A dictionary of the user's may be gone by now.
        is_there = not settings.dictionary or Path(settings.dictionary).is_file()
        return settings if is_there else replace(settings, dictionary="")
