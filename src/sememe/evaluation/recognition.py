"""Benchmarks by the content of their files: a folder with other names in, holdings and notes out.

Columns, labels, marks of words and fields of JSON say which set a file belongs to; its name says
whether its rows are for training or for scoring. What is unclear is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import InputError
from sememe.evaluation.benchmarks import Benchmark, Files
from sememe.evaluation.rows import FoundFiles, Holdings
from sememe.text.sources import Source

_HEAD = 1 << 18  # bytes of a file that are looked at
_MOST_FILES = 200
_CHINESE = re.compile("[\u4e00-\u9fff]")
# Characters that only one of the two scripts writes.
_TRADITIONAL, _SIMPLIFIED = (
    re.compile("[學國會這個來時們說對後發]"),
    re.compile("[学国会这个来时们说对后发]"),
)
_TAGGED = re.compile(r"\S+[ \t](?:\S+[ \t])*(?:O|[BIESM]-[\w-]+)")
_NAME = re.compile(r"[^\W\d]\w*|#\d \w+")  # of a column
_THREE = frozenset(("entailment", "neutral", "contradiction"))
_TWO = frozenset(("entailment", "not_entailment"))
_BINARY = frozenset("01")
_MARKS = frozenset(("", " ", "*", "?", "?*", "*?", "??", "* "))  # of sentences in CoLA


class Head(NamedTuple):
    """The beginning of a file: its lines, and its rows by the names or numbers of columns."""

    lines: list[str]
    names: frozenset[str]  # of columns or fields; empty without a header
    rows: list[Mapping[str, str]]

    def has(self, *names: str) -> bool:
        """Whether the rows have these columns."""
        return self.names.issuperset(names)

    def says(self, column: str, labels: Iterable[str]) -> bool:
        """Whether a column holds only these labels, and more than one of them."""
        found = {row.get(column, "") for row in self.rows} - {"-"}
        return len(found) > 1 and found <= set(labels)

    def is_chinese(self) -> bool:
        """Whether many of the characters are Chinese."""
        text = "".join(self.lines)
        return len(_CHINESE.findall(text)) > 0.05 * len(text)


def head_of(path: Path) -> Head:
    """Read the beginning of a file."""
    data = b""
    for block in Source(path).blocks():
        data += block
        if len(data) >= _HEAD:
            break
    is_whole = len(data) < _HEAD
    text = data[:_HEAD].decode("utf-8-sig", "ignore").replace("\r\n", "\n")
    lines = [line for line in text.split("\n") if line.strip()]
    if not is_whole and len(lines) > 1:
        lines.pop()  # it may be cut
    if lines and lines[0].lstrip().startswith(("{", "[")):
        return _json_head(lines)
    cells = [line.split("\t") for line in lines]
    names = cells[0] if cells else []
    is_header = all(map(_NAME.fullmatch, names)) and len(set(names)) == len(names) > 1
    if not is_header:
        names = []
    numbered = [str(number) for number in range(1, 1 + max(map(len, cells), default=0))]
    own = cells[1:] if names else cells
    rows: list[Mapping[str, str]] = [dict(zip(names or numbered, row, strict=False)) for row in own]
    return Head(lines, frozenset(names), rows)


def _json_head(lines: list[str]) -> Head:
    rows = []
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            break
        if isinstance(found, dict):
            rows.append(found)
    names = frozenset(rows[0]) if len(rows) > 1 else frozenset()
    return Head(lines, names, [{k: str(v) for k, v in row.items()} for row in rows])


def _is_answers(head: Head) -> bool:
    start = "".join(head.lines[:200])
    return '"paragraphs"' in start and '"qas"' in start


def _has(pattern: str, head: Head) -> bool:
    return any(re.search(pattern, line) for line in head.lines[:2_000])


def _tags(head: Head, num_columns: Callable[[int], bool], is_chinese: bool) -> bool:
    lines = [line for line in head.lines if not line.startswith("-DOCSTART-")]
    tagged = [line for line in lines if _TAGGED.fullmatch(line.strip())]
    return (
        10 * len(tagged) > 9 * len(lines) > 0
        and num_columns(len(tagged[0].split()))
        and any("-" in line.split()[-1] for line in tagged)
        and head.is_chinese() == is_chinese
    )


def _columns(head: Head, count: int) -> bool:
    return not head.names and bool(head.rows) and all(len(row) == count for row in head.rows)


def _is_script(head: Head, own: re.Pattern[str], other: re.Pattern[str]) -> bool:
    text = "".join(head.lines)
    return len(own.findall(text)) > len(other.findall(text))


# Each benchmark, by what only its files have, and the columns of such a file.
RULES: dict[str, tuple[Callable[[Head], bool], Mapping[str, str]]] = {
    "MNLI": (
        lambda h: (
            (h.has("premise", "hypothesis", "label") and h.says("label", _THREE))
            or h.has("sentence1", "sentence2", "gold_label", "genre")
        ),
        {},
    ),
    "QQP": (
        lambda h: h.has("question1", "question2", "is_duplicate"),
        {"text": "question1", "second": "question2", "label": "is_duplicate"},
    ),
    "QNLI": (
        lambda h: h.has("question", "sentence", "label") and h.says("label", _TWO),
        {"text": "question", "second": "sentence", "label": "label"},
    ),
    "SST-2": (
        lambda h: h.names == {"sentence", "label"} and h.says("label", _BINARY),
        {"text": "sentence", "label": "label"},
    ),
    "CoLA": (
        lambda h: _columns(h, 4) and h.says("2", _BINARY) and h.says("3", _MARKS),
        {"label": "2", "text": "4"},
    ),
    "STS-B": (
        lambda h: h.has("sentence1", "sentence2", "score"),
        {"text": "sentence1", "second": "sentence2", "score": "score"},
    ),
    "MRPC": (
        lambda h: h.has("Quality", "#1 String", "#2 String"),
        {"label": "Quality", "text": "#1 String", "second": "#2 String"},
    ),
    "RTE": (
        lambda h: h.has("sentence1", "sentence2", "label") and h.says("label", _TWO),
        {"text": "sentence1", "second": "sentence2", "label": "label"},
    ),
    "WNLI": (
        lambda h: h.has("sentence1", "sentence2", "label") and h.says("label", _BINARY),
        {"text": "sentence1", "second": "sentence2", "label": "label"},
    ),
    "snli": (
        lambda h: (
            (h.has("premise", "hypothesis", "label") and h.says("label", _THREE))
            or (h.has("sentence1", "sentence2", "gold_label") and not h.has("genre"))
        ),
        {},
    ),
    "scitail": (
        lambda h: _columns(h, 3) and h.says("3", ("entails", "neutral")),
        {"text": "1", "second": "2", "label": "3"},
    ),
    "sst5": (lambda h: all(re.match(r"\([0-4] ", line) for line in h.lines[:50]), {}),
    "agnews": (
        lambda h: _columns(h, 2) and h.says("2", ("World", "Sports", "Business", "Sci/Tech")),
        {"text": "1", "label": "2"},
    ),
    "chnsenticorp": (
        lambda h: h.has("label", "text_a") and h.says("label", _BINARY) and h.is_chinese(),
        {"label": "label", "text": "text_a"},
    ),
    "lcqmc": (
        lambda h: _columns(h, 3) and h.says("3", _BINARY) and h.is_chinese(),
        {"text": "1", "second": "2", "label": "3"},
    ),
    "ocnli": (
        lambda h: h.has("sentence1", "sentence2", "label", "prem_id") and h.is_chinese(),
        {"text": "sentence1", "second": "sentence2", "label": "label"},
    ),
    "conll2003": (lambda h: _tags(h, lambda num: num == 4, False), {}),
    "msra": (lambda h: _tags(h, lambda num: num == 2, True), {}),
    "cluener": (
        lambda h: (
            h.has("text", "label")
            and any(row.get("label", "").startswith("{") for row in h.rows[:10])
            and h.is_chinese()
        ),
        {},
    ),
    "squad1.1": (
        lambda h: (
            _is_answers(h)
            and not h.is_chinese()
            and not _has(r"is_impossible|\"version\": *\"v?2", h)
        ),
        {},
    ),
    "squad2.0": (
        lambda h: (
            _is_answers(h) and not h.is_chinese() and _has(r"is_impossible|\"version\": *\"v?2", h)
        ),
        {},
    ),
    "cmrc2018": (
        lambda h: (
            _is_answers(h) and h.is_chinese() and _is_script(h, _SIMPLIFIED, _TRADITIONAL)
        ),
        {},
    ),
    "drcd": (
        lambda h: (
            _is_answers(h) and h.is_chinese() and _is_script(h, _TRADITIONAL, _SIMPLIFIED)
        ),
        {},
    ),
}  # fmt: skip


def sets_of(head: Head, names: Iterable[str]) -> list[str]:
    """The benchmarks among `names` that a file may belong to."""
    if not head.lines:
        return []
    return [name for name in names if name in RULES and RULES[name][0](head)]


def part_of(stem: str, benchmark: Benchmark) -> str | None:
    """The part that a file is by its name: train, one of the benchmark's, or None if unclear."""
    name = stem.lower()
    if "train" in name:
        return "train"
    found = [
        part
        for part in sorted(benchmark.parts, key=len, reverse=True)
        if part.rpartition("-")[2] in name
    ]
    if found:
        return found[0]
    kind = "dev" if re.search("dev|val", name) else "test" if "test" in name else ""
    return kind if kind in benchmark.parts else None


def recognise(folder: Path, chosen: Sequence[Benchmark]) -> tuple[dict[str, Holdings], list[str]]:
    """The benchmarks whose files are in a folder by their content, and a note on each file.

    Raises an error for a file that fits several benchmarks, or a part that two files claim.
    """
    by_name = {benchmark.name: benchmark for benchmark in chosen}
    found: dict[str, dict[str, Path]] = {}
    notes = []
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")
    if len(paths) > _MOST_FILES:
        notes.append(f"{folder} has {len(paths):,} files; the first {_MOST_FILES} were read.")
    for path in paths[:_MOST_FILES]:
        head = head_of(path)
        possible = sets_of(head, RULES)
        names = [name for name in possible if name in by_name]
        if not names:
            continue
        if len(names) > 1 or len(possible) > 1 < len(by_name):
            raise InputError(
                f"{path} may be {' or '.join(possible)} by its content: choose one with --only."
            )
        (name,) = names
        part = part_of(path.name.partition(".")[0], by_name[name])
        if part is None:
            raise InputError(
                f"{path} has rows of {name}, but its name does not say whether they are for "
                f"training or for scoring: name it train… or {next(iter(by_name[name].parts))}…."
            )
        own = found.setdefault(name, {})
        if part in own:
            raise InputError(
                f"{own[part]} and {path} both have rows of {name} ({part}): keep one of them."
            )
        own[part] = path
        notes.append(f"{path}: taken as {name}, {part}, by its content: “{_sample(head)}”.")
    return {name: _holdings(by_name[name], own) for name, own in found.items()}, notes


def _sample(head: Head) -> str:
    line = head.lines[1 if head.names and len(head.lines) > 1 else 0]
    return " ".join(line[:80].split())


def _holdings(benchmark: Benchmark, own: Mapping[str, Path]) -> Holdings:
    columns: Any = RULES[benchmark.name][1]
    files = {part: FoundFiles([path], Files("", columns)) for part, path in own.items()}
    return Holdings(
        benchmark,
        files.get("train"),
        {part: files[part] for part in benchmark.parts if part in files},
        {},
    )
