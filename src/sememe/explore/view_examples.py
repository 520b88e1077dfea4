"""Examples for the views: languages and vocabularies in, texts and words that models know out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sememe.text.characters import is_han

_FOLDER = Path(__file__).parent / "examples"
_MOST = 6  # of each kind
_FEWEST_PAIRS = 3
_NUM_FREQUENT = 3_000  # words from which examples are taken if the model knows none below
PAIR_SETS = ("capitals", "gender", "antonyms", "verbs", "plurals")
_RANKED, _MOST_TEXTS = ("masks", "next", "follows"), 4  # kinds of texts, and how many of each
_UNSEEN = {"en": ("kinglike", "arraylike", "doggish"), "zh": ("电脑化", "小老师们")}


@cache
def candidates(language: str) -> dict[str, list[tuple[str, ...]]]:
    """The examples of a language by kind."""
    name = "zh" if language == "zh" else "en"
    found: dict[str, list[tuple[str, ...]]] = {}
    for line in (_FOLDER / f"words_{name}.tsv").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            kind, words = line.split("\t")
            found.setdefault(kind, []).append(tuple(words.split()))
    return found


def known_candidates(vectors: Any, language: str) -> set[str]:
    """The words among the examples that a model knows."""
    rows = (row for own in candidates(language).values() for row in own)
    return {word for row in rows for word in row if word in vectors}


def frequent_words(vectors: Any, num: int) -> list[str]:
    """Frequent words with a meaning of their own, as far as their length can tell."""
    least = 2 if any(map(is_han, "".join(vectors.vocabulary[-20:]))) else 4
    words = [
        word
        for word in vectors.vocabulary[: min(len(vectors), _NUM_FREQUENT)]
        if word.isalpha() and len(word) >= least
    ]
    # Function words come first in every vocabulary.
    kept = words[len(words) // 20 :] or list(vectors.vocabulary[: min(len(vectors), num)])
    return kept[:num]


def choose_examples(language: str, known: Sequence[set[str]], own: list[str]) -> dict[str, Any]:
    """The examples that most models know; without any, made of the first model's own words."""

    def ranked(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
        num_models = {row: sum(words.issuperset(row) for words in known) for row in rows}
        usable = [row for row in rows if num_models[row] and known[0].issuperset(row)]
        return sorted(usable, key=lambda row: -num_models[row])

    given = candidates(language)
    found = {kind: ranked(given[kind])[:_MOST] for kind in ("word", "analogy", "list", "odd")}
    pairs = {kind: ranked(given.get(kind, ())) for kind in PAIR_SETS}
    pairs = {kind: rows for kind, rows in pairs.items() if len(rows) >= _FEWEST_PAIRS}
    return {
        "words": [row[0] for row in found["word"]] or own[:_MOST],
        "analogies": found["analogy"] or [tuple(own[:3])],
        "lists": found["list"] or [tuple(own[:6])],
        "odd": found["odd"] or [tuple(own[:4])],
        "pairs": pairs or {"own": list(zip(own[:8:2], own[1:8:2], strict=False))},
    }


def unseen_word(language: str, vectors: Sequence[Any]) -> str:
    """A word that none of the models has seen, for those that have vectors of sub-words."""
    words = _UNSEEN["zh" if language == "zh" else "en"]
    return next((word for word in words if not any(word in own for own in vectors)), "")


@cache
def _texts() -> dict[str, dict[str, list[list[str]]]]:
    """The examples of texts by language and kind; the first field of each is a text."""
    found: dict[str, dict[str, list[list[str]]]] = {}
    for language in ("en", "zh"):
        kinds: dict[str, list[list[str]]] = {}
        found[language] = kinds
        for line in (_FOLDER / f"texts_{language}.tsv").read_text("utf-8").splitlines():
            if not line.startswith("#"):
                kind, *fields = line.replace("\\n", "\n").split("\t")
                kinds.setdefault(kind, []).append(fields)
    return found


def text_examples(vectors: Sequence[Any]) -> dict[str, dict[str, list[list[str]]]]:
    """The examples of texts; of the English ones, those whose words the models know come first."""

    def num_known(fields: list[str]) -> float:
        words = re.findall(r"\w+", fields[0])
        known = sum(word in own or word.lower() in own for own in vectors for word in words)
        return known / len(words)

    found = dict(_texts()["en"])
    for kind in _RANKED:
        found[kind] = sorted(found[kind], key=num_known, reverse=True)[:_MOST_TEXTS]
    return _texts() | {"en": found}
