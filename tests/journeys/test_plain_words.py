"""Help, messages, READMEs, pages and docstrings use plain words: none of dialect_words.tsv."""

from __future__ import annotations

import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import prose

EXCEPTIONS = Path(__file__).with_name("dialect_exceptions.tsv")


def exceptions() -> list[list[str]]:
    """Group, path and text of each exception."""
    lines = EXCEPTIONS.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def found_in(passages: list[prose.Passage]) -> list[tuple[prose.Passage, str, str]]:
    """Every dialect word with its passage and replacement."""
    dialect = prose.read_dialect()
    return [(one, *pair) for one in passages for pair in prose.dialect_in(one, dialect)]


def is_allowed(passage: prose.Passage, text: str, allowed: list[str]) -> bool:
    """Whether an exception covers a dialect word."""
    named = (passage.group, passage.path, text.lower())
    return all(fnmatch(value, pattern) for value, pattern in zip(named, allowed, strict=True))


def test_words_are_plain() -> None:
    """No dialect word is in this tree but for the exceptions."""
    allowed = exceptions()
    found = [
        f"{one.path}:{one.line}: “{text}”; write: {replacement}"
        for one, text, replacement in found_in(list(prose.read_passages(ROOT)))
        if not any(is_allowed(one, text, line) for line in allowed)
    ]
    assert not found, "\n".join(found)


def test_exceptions_are_needed() -> None:
    """Each exception covers a word that is there."""
    found = found_in(list(prose.read_passages(ROOT)))
    unused = [
        line
        for line in exceptions()
        if line[2] != "*" and not any(is_allowed(one, text, line) for one, text, _ in found)
    ]
    assert not unused


def test_a_dialect_word_is_found_in_every_group(tmp_path: Path) -> None:
    """Pages, help texts, messages, docstrings and comments are read; code and names are not."""
    for name in ("README.md", "docs/page.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("It was mended,\nand `mended` is code.\n", encoding="utf-8")
    (tmp_path / "README.zh-CN.md").write_text("这点时间练不出 BERT。\n", encoding="utf-8")
    code = '''"""Say what was mended."""

mended = option(0, "The mended rows.")  # it was mended


def run(mended):
    raise ValueError(f"{mended} was not mended yet.")
'''
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text(code, encoding="utf-8")
    found = found_in(list(prose.read_passages(tmp_path)))
    mended = [one.group for one, text, _ in found if text == "mended"]
    assert sorted(mended) == sorted(set(prose.GROUPS) - {"readme_zh"})
    assert {one.group for one, text, _ in found if text != "mended"} == {"readme_zh"}
