"""Sentiment trees of the Stanford treebank: `(3 (2 It) (4 works))` in, label and text out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sememe.examples.labelled.records import Record

_TREE = re.compile(r"\(\d+ [(\S]")
_PART = re.compile(r"\((\d+) |([^\s()]+)|\)")
_WRITTEN = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def is_tree(line: str) -> bool:
    """Whether a line begins as a tree does."""
    return bool(_TREE.match(line))


def read_trees(
    name: str, lines: Iterable[tuple[int, str]], *, phrases: bool = False
) -> Iterator[Record]:
    """Read the sentence and label of each tree, or those of every phrase inside as well."""
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{name}, line {number:,}"
        found = _phrases(line)
        if found is None:
            yield Record({}, where, "not one tree: its brackets do not close")
            continue
        for label, text in found if phrases else found[-1:]:
            yield Record({"label": label, "text": text}, where)


def _phrases(line: str) -> list[tuple[str, str]] | None:
    """(label, text) of every node, the root last; None where brackets do not match."""
    found: list[tuple[str, str]] = []
    open_nodes: list[tuple[str, int]] = []
    words: list[str] = []
    for part in _PART.finditer(line):
        label, word = part.groups()
        if found and not open_nodes:
            return None
        if label is not None:
            open_nodes.append((label, len(words)))
        elif word is not None:
            words.append(_WRITTEN.get(word, word.replace("\\/", "/").replace("\\*", "*")))
        else:
            if not open_nodes:
                return None
            label, start = open_nodes.pop()
            found.append((label, " ".join(words[start:])))
    return found if found and not open_nodes else None
