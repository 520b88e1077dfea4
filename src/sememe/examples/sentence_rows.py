"""What sentence encoders learn from: a corpus or a table in, rows of texts out.

A corpus gives sentences, pairs of neighboring sentences, or pairs of a document's first line and
the rest. A table gives pairs, scored pairs, triplets, or rows of natural language inference, whose
contradictions become negatives; the columns show which.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.columns import described
from sememe.examples.labelled.rows import NAME, BadRowError, Note, items_of, silent
from sememe.frames import is_frame
from sememe.randomness import numbers, stream_key
from sememe.text import headers
from sememe.text.headers import ColumnProfile, as_text, is_number, listed, named_column, plain
from sememe.text.settings import TextSettings
from sememe.text.stream import read
from sememe.text.tables import FileTable, Record, at, flat, frame_table, is_path, open_tables
from sememe.text.words import sentence_ends

Kind = Literal["texts", "pairs", "scored", "triplets"]
CORPUS_OBJECTIVES = ("simcse", "neighbors", "titles", "tsdae")
_SAMPLED = 0x711  # the purpose of a random stream
_LOOKED_AT = 1_000  # rows, or documents, that show what there is
_LONGEST = 6_000  # characters of a text; networks read less
_SHORTEST = 4  # characters of a sentence


class SentenceRow(NamedTuple):
    """One example: a text; two that belong together, perhaps with negatives; or a scored pair."""

    texts: tuple[str, ...]
    score: float = math.nan


@dataclass(frozen=True)
class SentenceRows:
    """The examples of one kind."""

    kind: Kind
    rows: list[SentenceRow]
    lowest: float = 0.0  # of the scores, as is `highest`
    highest: float = 1.0
    columns: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)


# ---- a corpus -------------------------------------------------------------------------------


def corpus_rows(
    corpus: Any,
    objective: str,
    settings: TextSettings,
    *,
    seed: int = 1,
    most: int = 250_000,
    on_note: Note = silent,
) -> tuple[SentenceRows, str]:
    """The examples of a corpus, at most this many at random, and the objective.

    `auto` takes neighbors if most documents have several sentences, otherwise simcse.
    """
    batches = (_documents(batch, settings) for batch in read(corpus, settings))
    documents = (document for batch in batches for document in batch)
    early = list(islice(documents, _LOOKED_AT))
    if objective == "auto":
        num_several = sum(len(sentences) > 1 for _, sentences in early)
        objective = "neighbors" if 2 * num_several > len(early) else "simcse"
        on_note(f"Objective: {objective}; --objective takes another.")
    sample = _Sample(most, stream_key(seed, _SAMPLED))
    for lines, sentences in chain(early, documents):
        sample.add(_of_document(objective, lines, sentences))
    rows = sample.rows()
    if not rows:
        what = {
            "titles": "documents with a first line and a body",
            "neighbors": "documents of two or more sentences",
        }.get(objective, "sentences")
        raise InputError(f"The corpus holds no {what}: choose another --objective or corpus.")
    kind: Kind = "texts" if objective in ("simcse", "tsdae") else "pairs"
    if sample.num > len(rows):
        on_note(f"{len(rows):,} of {sample.num:,} examples are used (--max-examples).")
    first = " | ".join(headers.quoted(text) for text in rows[0].texts)
    on_note(f"{len(rows):,} examples ({objective}), such as {first}.")
    return SentenceRows(kind, rows), objective


def sampled(rows: list[SentenceRow], most: int, seed: int) -> list[SentenceRow]:
    """At most this many rows at random, in their order."""
    sample = _Sample(most, stream_key(seed, _SAMPLED))
    sample.add(rows)
    return sample.rows()


def _documents(batch: Any, settings: TextSettings) -> Iterator[tuple[list[str], list[str]]]:
    """The lines and the sentences of each document."""
    text, start = batch.text, 0
    cuts = sentence_ends(text, batch.ends, settings)
    for end in batch.ends.tolist():
        own = cuts[np.searchsorted(cuts, start, "right") : np.searchsorted(cuts, end, "left")]
        places = [start, *own.tolist(), end]
        parts = [text[a:b].decode("utf-8", "replace") for a, b in pairwise(places)]
        lines = text[start:end].decode("utf-8", "replace").splitlines()
        start = end
        yield _filled(lines), _filled(parts)


def _filled(parts: Iterable[str]) -> list[str]:
    return [own for part in parts if len(own := " ".join(part.split())) >= _SHORTEST]


def _titled(lines: list[str]) -> tuple[str, str] | None:
    """The first line and the rest of a document, if it has both and the line is a title."""
    title = lines[0].strip("=#* ") if len(lines) > 1 else ""
    body = " ".join(lines[1:])[:_LONGEST]
    return (title, body) if title and len(body) >= 2 * len(title) else None


def _of_document(objective: str, lines: list[str], sentences: list[str]) -> list[SentenceRow]:
    if objective == "titles":
        pair = _titled(lines)
        return [] if pair is None else [SentenceRow(pair)]
    cut = [sentence[:_LONGEST] for sentence in sentences]
    if objective == "neighbors":
        return [SentenceRow(pair) for pair in pairwise(cut) if pair[0] != pair[1]]
    return [SentenceRow((sentence,)) for sentence in cut]


class _Sample:
    """At most this many of a stream's items: those with the lowest random numbers, in order."""

    def __init__(self, most: int, key: int) -> None:
        self.most, self.key, self.num = most, key, 0
        self._kept: list[tuple[int, int, SentenceRow]] = []  # random number, index, row
        self._bound = 2**64

    def add(self, rows: list[SentenceRow]) -> None:
        """Consider some items."""
        drawn = numbers((self.key + self.num) & (2**64 - 1), len(rows)).tolist()
        for index, (own, row) in enumerate(zip(drawn, rows, strict=True)):
            if own < self._bound:
                self._kept.append((own, self.num + index, row))
        self.num += len(rows)
        if len(self._kept) > 2 * self.most:
            self._prune()

    def _prune(self) -> None:
        self._kept.sort()
        if len(self._kept) > self.most:
            self._bound = self._kept[self.most][0]
            del self._kept[self.most :]

    def rows(self) -> list[SentenceRow]:
        """The items, in the order of the stream."""
        self._prune()
        return [row for _, _, row in sorted(self._kept, key=lambda kept: kept[1])]


# ---- a table --------------------------------------------------------------------------------

ROLES = ("text", "second", "third", "score", "label")
_TRIPLETS = (
    ("anchor", "positive", "negative"), ("query", "positive", "negative"), ("query", "pos", "neg"),
    ("text", "second", "third"), ("sent0", "sent1", "hardneg"), ("问题", "正例", "负例"),
)  # fmt: skip
_PAIRS = (
    ("anchor", "positive"), ("sentence1", "sentence2"), ("premise", "hypothesis"),
    ("text", "second"), ("question1", "question2"), ("question", "answer"), ("query", "document"),
    ("query", "passage"), ("query", "positive"), ("title", "body"), ("summary", "body"),
    ("texta", "textb"), ("text1", "text2"), ("source", "target"), ("sent0", "sent1"),
    ("句子1", "句子2"), ("文本1", "文本2"), ("前提", "假设"), ("问题", "答案"), ("标题", "正文"),
)  # fmt: skip
_SCORES = ("score", "similarity", "relatednessscore", "goldscore", "分数", "相似度")
_LABELS = ("label", "goldlabel", "similar", "isduplicate", "quality", "标签")
_KNOWN = {name for names in (*_TRIPLETS, *_PAIRS, _SCORES, _LABELS) for name in names}
# The labels of inference: what follows, what contradicts, and what is neither.
_ENTAILS, _CONTRADICTS = {"entailment", "entails", "蕴含"}, {"contradiction", "矛盾"}
_INFERENCE = _ENTAILS | _CONTRADICTS | {"neutral", "neither", "中立", "-"}

_is_header = partial(headers.is_header, is_common=lambda name: plain(name) in _KNOWN)
Columns = dict[str, tuple[str, ...]]


def table_rows(
    data: Any,
    *,
    needs_three: bool = False,
    columns: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
    on_note: Note = silent,
) -> SentenceRows:
    """Read paths, a DataFrame or a list of tuples; the columns show what kind of rows they are.

    `columns` names the column of text, second, third, score or label. A table that could be read
    in two ways is an error.
    """
    for role in columns or {}:
        if role not in ROLES:
            raise OptionError(f"These rows have no part {role!r}; they have {', '.join(ROLES)}.")
    found: list[SentenceRow] = []
    read: _Read | None = None
    for table in _tables(data, columns, encoding):
        own = _Read(table, columns or {}, needs_three)
        on_note(own.note)
        if read is not None and own.kind != read.kind:
            raise InputError(f"{table.name} holds {own.kind}, the table before it {read.kind}.")
        read = own
        found += own.rows(skip_bad, on_note)
    if read is None or not found:
        raise InputError("The table holds no rows.")
    if read.kind == "inference":
        return SentenceRows("triplets", _of_inference(found, on_note), columns=read.named)
    scores = [row.score for row in found] if read.kind == "scored" else [0.0, 1.0]
    if min(scores) == max(scores):
        raise InputError(
            f"All scores are {scores[0]:g}, so they do not say which texts are more alike; leave "
            "that column out for plain pairs."
        )
    kind: Any = read.kind
    return SentenceRows(kind, found, min(scores), max(scores), read.named)


def _tables(data: Any, columns: Mapping[str, str] | None, encoding: str) -> Iterable[FileTable]:
    if is_frame(data):
        return [frame_table(data)]
    if is_path(data):
        return open_tables(
            data, encoding=encoding,
            is_header=lambda first, others: _is_header(first, others, columns),
        )  # fmt: skip
    records = [
        Record(_cells(item, index), at(NAME, index)) for index, item in enumerate(items_of(data))
    ]
    names = list(dict.fromkeys(column for record in records for column in record.cells))
    return [FileTable(NAME, names, all(not name.isdecimal() for name in names), records)]


def _cells(item: Any, index: int) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return flat(item)
    if not isinstance(item, (list, tuple)) or not 2 <= len(item) <= 3:
        raise InputError(
            f"Row {index} is not two or three texts, or two and a score: {item!r:.60}."
        )
    return {str(number): part for number, part in enumerate(item, 1)}


class _Read:
    """One table: the columns of its rows, what kind they are, and the rows."""

    def __init__(self, table: FileTable, named: Mapping[str, str], needs_three: bool) -> None:
        records = iter(table.records)
        self.early = list(islice(records, _LOOKED_AT))
        self.table, self.records = table, chain(self.early, records)
        if not self.early:
            raise InputError(f"{table.name} holds no rows.")
        self.looks = {
            column: ColumnProfile.of([as_text(record.cells.get(column)) for record in self.early])
            for column in table.columns
        }
        given = {role: named_column(table, name) for role, name in named.items()}
        self.named = self._chosen(given, needs_three)
        self.kind = self._kind()
        roles: Columns = {role: (column,) for role, column in self.named.items()}
        what = {"inference": "inference rows: entailment = positive, contradiction = negative"}
        self.note = f"{described(table, self.early, roles)[:-1]}; {what.get(self.kind, self.kind)}."

    def _chosen(self, given: dict[str, str], needs_three: bool) -> dict[str, str]:
        """The column of each role: given, by known names, or by content."""
        by_plain = {plain(column): column for column in self.table.columns}

        def free(columns: Iterable[str]) -> list[str]:
            return [column for column in columns if column not in given.values()]

        roles = ("text", "second", "third")
        has_more = needs_three or "third" in given
        for names in (*_TRIPLETS, *(() if has_more else _PAIRS)):
            if all(name in by_plain for name in names) and not {*roles} & {*given}:
                given |= dict(zip(roles, (by_plain[name] for name in names), strict=False))
                break
        texts = [own for own in free(self.table.columns) if not self._is_answer(own)]
        missing = [role for role in ("text", "second") if role not in given]
        if missing and len(texts) == len(missing) + 1 and "third" not in given:
            missing = [*missing, "third"]
        if needs_three and "third" not in given and "third" not in missing:
            missing = [*missing, "third"]
        if missing and len(texts) != len(missing):
            raise self._unclear(f"which columns hold the {len(missing)} texts", texts)
        given |= dict(zip(missing, texts, strict=False))
        if {"score", "label", "third"} & {*given}:
            return {role: given[role] for role in ROLES if role in given}
        answers = [own for own in free(self.table.columns) if self._is_answer(own)]
        for role, names in (("score", _SCORES), ("label", _LABELS)):
            own = [by_plain[name] for name in names if by_plain.get(name) in answers][:1]
            if own or (role == "label" and len(answers) == 1):
                given[role] = (own or answers)[0]
                break
        else:
            if len(answers) > 1 and not self.table.has_names:
                raise self._unclear("which column is the score or label", answers)
        return {role: given[role] for role in ROLES if role in given}

    def _is_answer(self, column: str) -> bool:
        """Whether a column holds scores, labels or ids rather than texts."""
        look, is_named = self.looks[column], plain(column) in (*_SCORES, *_LABELS)
        return is_named or look.is_code or look.kind == "empty" or {*look.samples} <= _INFERENCE

    def _kind(self) -> str:
        if "third" in self.named:
            return "triplets"
        column = self.named.get("score", self.named.get("label"))
        if column is None:
            return "pairs"
        cells = {as_text(record.cells.get(column)).lower() for record in self.early}
        if cells & (_ENTAILS | _CONTRADICTS) and cells <= _INFERENCE | {""}:
            return "inference"
        if all(is_number(cell.replace(",", ".")) for cell in cells if cell):
            is_inference = plain(self.named["text"]) in ("premise", "前提")
            if is_inference and len(cells) == 3:
                raise InputError(
                    f"{self.table.name}: the labels {', '.join(sorted(cells))} of “{column}” do "
                    "not say which is entailment and which is contradiction; write the names."
                )
            return "scored"
        raise self._unclear(
            "what to learn: a score or entailment, neutral, contradiction", [column]
        )

    def _unclear(self, what: str, columns: Sequence[str]) -> InputError:
        told = ", ".join(f"{column!r} ({self.looks[column]})" for column in columns)
        return InputError(
            f"{self.table.name}: it is not clear {what}: {told or listed(self.table)}. Name them "
            "with --column ROLE=NAME; the roles are text, second, third, score and label."
        )

    def rows(self, skip_bad: bool, on_note: Note) -> Iterator[SentenceRow]:
        """The rows; a bad one is an error, or counted."""
        texts = [self.named[role] for role in ("text", "second", "third") if role in self.named]
        answer = self.named.get("score", self.named.get("label", ""))
        num_bad, first = 0, ""
        for record in self.records:
            own = tuple(as_text(record.cells.get(column))[:_LONGEST] for column in texts)
            cell = as_text(record.cells.get(answer)).lower()
            problem = record.problem or self._problem(own, cell)
            if not problem:
                if self.kind == "inference":
                    yield SentenceRow((*own, cell))
                else:
                    score = float(cell.replace(",", ".")) if self.kind == "scored" else math.nan
                    yield SentenceRow(own, score)
            elif not skip_bad:
                raise BadRowError(f"{record.where}: {problem}")
            else:
                num_bad, first = num_bad + 1, first or f"{record.where}: {problem}"
        if num_bad:
            on_note(f"{num_bad:,} rows were left out; the first: {first}.")

    def _problem(self, texts: tuple[str, ...], cell: str) -> str:
        if not all(texts):
            return "a text is empty"
        if self.kind == "scored" and not is_number(cell.replace(",", ".")):
            return f"the score {cell!r} is not a number"
        if self.kind == "inference" and cell not in _INFERENCE:
            return f"the label {cell!r} is not entailment, neutral or contradiction"
        return ""


def _of_inference(rows: list[SentenceRow], on_note: Note) -> list[SentenceRow]:
    """For each entailed text its premise, itself, and a text that contradicts it, or ""."""
    entailed: dict[str, list[str]] = {}
    contradicted: dict[str, list[str]] = {}
    for row in rows:
        premise, hypothesis, label = row.texts
        groups = entailed if label in _ENTAILS else contradicted
        if label in _ENTAILS | _CONTRADICTS:
            groups.setdefault(premise, []).append(hypothesis)
    found = []
    for premise, texts in entailed.items():
        against = contradicted.get(premise, [""])
        for index, text in enumerate(texts):
            found.append(SentenceRow((premise, text, against[index % len(against)])))
    if not found:
        raise InputError("No row is labelled entailment: there are no positives.")
    with_negative = sum(bool(row.texts[2]) for row in found)
    on_note(
        f"{len(rows):,} inference rows: {len(found):,} positives, {with_negative:,} with a "
        "contradiction as negative."
    )
    return found
