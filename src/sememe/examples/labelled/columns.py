"""Assign columns to roles: by the user's choice, by name, or by content.

Roles: text, second, label, score, choices, id. A role may have several columns, whose cells are
joined by a space ("title+body"); the choices have one column of lists, or several columns. If names
and cells leave it open (two columns that could be the label, dates, a label per row), an error is
raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.label_sets import labels_in, separator_in
from sememe.text import headers
from sememe.text.headers import (
    FEW_ROWS,
    ColumnProfile,
    as_text,
    column_parts,
    listed,
    named_column,
    plain,
    quoted,
)
from sememe.text.tables import FileTable, Record

Kind = Literal["classify", "pairs", "regress", "choose", "search"]
KINDS = ("classify", "pairs", "regress", "choose")
# The columns of each role; a role that the file lacks is left out.
Columns = dict[str, tuple[str, ...]]

ROLES = {
    "classify": ("text", "label", "id"),
    "pairs": ("text", "second", "label", "id"),
    "regress": ("text", "second", "score", "id"),
    "choose": ("text", "second", "choices", "label", "id"),
    "search": ("text", "id"),
}

# Names are compared without case, spaces, hyphens and underscores; the first that is there wins.
_TEXTS = (
    "text", "sentence", "review", "content", "document", "article", "body", "comment", "utterance",
    "message", "tweet", "texta", "sentence1", "sentencea", "string", "description", "summary",
    "nachricht", "inhalt", "beschreibung", "title", "headline", "query", "question", "words",
    "文本", "句子", "内容", "正文", "评论", "评价", "描述", "标题", "问题",
)  # fmt: skip
_PAIRS = (
    ("text", "second"), ("sentence1", "sentence2"), ("premise", "hypothesis"),
    ("question1", "question2"), ("texta", "textb"), ("text1", "text2"),
    ("#1string", "#2string"), ("sentencea", "sentenceb"), ("question", "sentence"),
    ("query", "title"), ("query", "passage"), ("query", "document"), ("sent1", "sent2"),
    ("first", "second"), ("source", "target"), ("context", "response"), ("question", "answer"),
    ("summary", "body"), ("title", "body"), ("句子1", "句子2"), ("文本1", "文本2"),
    ("前提", "假设"), ("问题1", "问题2"), ("问题", "答案"),
)  # fmt: skip
_LABELS = (
    "label", "goldlabel", "labels", "class", "category", "target", "quality", "isduplicate",
    "polarity", "sentiment", "intent", "topic", "kategorie", "klasse", "y", "标签", "类别", "分类",
    "标注", "情感", "categories", "topics", "tags", "genres",
)  # fmt: skip
_SCORES = (
    "score", "similarity", "relatednessscore", "goldscore", "rating", "stars", "target", "label",
    "value", "y", "分数", "得分", "相似度", "评分",
)  # fmt: skip
_CONTEXTS = (
    "context", "passage", "article", "premise", "story", "paragraph", "ctx", "background", "sent1",
    "sentence1", "text", "文章", "上下文", "材料",
)  # fmt: skip
_QUESTIONS = ("question", "questions", "query", "sent2", "second", "问题")
_RIGHTS = (
    "label", "answer", "answers", "answerrightending", "goldlabel", "gold", "correct", "target",
    "答案",
)  # fmt: skip
_LISTS = ("choices", "options", "endings", "candidates", "选项")
_NUMBERED_CHOICES = (
    "ending",
    "choice",
    "option",
    "answer",
    "randomfifthsentencequiz",
    "sol",
    "选项",
)
_NUMBERED_CONTEXTS = ("inputsentence", "sentence")
_IDS = ("id", "idx", "index", "guid", "pairid", "inputstoryid", "exampleid", "qid", "uid", "编号")

_KNOWN = frozenset(
    [*_TEXTS, *_LABELS, *_SCORES, *_CONTEXTS, *_QUESTIONS, *_RIGHTS, *_LISTS, *_IDS]
    + [name for pair in _PAIRS for name in pair]
)


_LOOKED_AT = 1_000  # records, spread over a table


# ---- names --------------------------------------------------------------------------------


def _numbered(name: str) -> str:
    """The part of a name before its number, where that is known."""
    stem = plain(name).rstrip("0123456789")
    is_known = stem != plain(name) and stem in (*_NUMBERED_CHOICES, *_NUMBERED_CONTEXTS)
    return stem if is_known else ""


is_header = partial(
    headers.is_header, is_common=lambda name: plain(name) in _KNOWN or bool(_numbered(name))
)


# ---- roles --------------------------------------------------------------------------------


def choose_columns(
    table: FileTable,
    records: Sequence[Record],
    kind: Kind,
    named: Mapping[str, str | Sequence[str]] | None,
    needed: Sequence[str],
    earlier: Mapping[str, str] | None = None,
    is_sure: bool = False,
) -> Columns:
    """Assign columns to roles: as named, as in `earlier` rows, by known names, or by content.

    With `is_sure` a column's name decides that it holds labels, whatever its cells look like.
    """
    for role in named or {}:
        if role not in ROLES[kind]:
            raise OptionError(
                f"{kind} rows have no part {role!r}; they have {', '.join(ROLES[kind])}."
            )
    found: Columns = {
        role: tuple(named_column(table, part) for part in column_parts(columns, table.columns))
        for role, columns in (_still_there(table, earlier or {}) | dict(named or {})).items()
    }
    looks = _profiles(table, records)
    for guess in (_by_name(table, kind) if table.has_names else {}, _by_layout(table, looks, kind)):
        taken = {column for columns in found.values() for column in columns}
        found |= {
            role: columns
            for role, columns in guess.items()
            if role not in found and not taken & set(columns)
        }
    if "label" in found and kind != "choose" and not (is_sure or "label" in (named or {})):
        look = looks[found["label"][0]]
        if look.is_another_each:
            look = _label_profile(records, found["label"][0])
        if look.kind == "date" or look.is_another_each:
            raise NoColumnError(table, "label", kind, {found["label"][0]: look})
    if kind != "choose":
        taken = {column for columns in found.values() for column in columns}
        rest = {column: look for column, look in looks.items() if column not in taken}
        texts = [role for role in needed if role in ("text", "second") and role not in found]
        if texts and rest:
            found |= _texts_of(table, rest, kind, texts)
        for role in needed:
            if role not in found and rest:
                taken = {column for columns in found.values() for column in columns}
                left = {column: look for column, look in rest.items() if column not in taken}
                found[role] = _answer_of(table, records, left, kind, role)
    for role in needed:
        if role not in found:
            raise NoColumnError(table, role, kind, {})
    return {role: found[role] for role in ROLES[kind] if role in found}


def _still_there(table: FileTable, earlier: Mapping[str, str]) -> dict[str, str]:
    """The columns of earlier rows that this table has, too: its names, or as many of them."""
    if not table.has_names and len(table.columns) == 1:
        return {}
    return {
        role: columns
        for role, columns in earlier.items()
        if all(part in table.columns for part in column_parts(columns, table.columns))
    }


class NoColumnError(InputError):
    """Raised if a role has no column in a table, or several candidates."""

    def __init__(
        self, table: FileTable, role: str, kind: str, open_to: Mapping[str, ColumnProfile]
    ) -> None:
        what = {"second": "second text"}.get(role, role)
        name = "NAME" if table.has_names else "NUMBER"
        cure = f"Name one: --column {role}={name}, or columns={{{role!r}: {name}}}."
        if len(table.columns) == 1 and not table.has_names:
            cure = "Write a tab between the parts of a row."
        found = f"no column for the {what} of {kind} rows was found; {listed(table)}"
        if open_to:
            told = ", ".join(f"{column!r} ({look})" for column, look in open_to.items())
            found = f"it is not clear which column is the {what} of {kind} rows: {told}"
        super().__init__(f"{table.name}: {found}. {cure}")


def _label_profile(records: Sequence[Record], column: str) -> ColumnProfile:
    """What the labels of a column look like, if its cells hold several."""
    cells = [record.cells.get(column) for record in records[:: len(records) // _LOOKED_AT + 1]]
    separator = separator_in(cells)
    return ColumnProfile.of([label for cell in cells for label in labels_in(cell, separator)])


def _profiles(table: FileTable, records: Sequence[Record]) -> dict[str, ColumnProfile]:
    """What each column looks like, in records that are spread over the table."""
    some = records[:: len(records) // _LOOKED_AT + 1]
    return {
        column: ColumnProfile.of([as_text(record.cells.get(column)) for record in some])
        for column in table.columns
    }


# ---- by name ------------------------------------------------------------------------------


def _by_name(table: FileTable, kind: Kind) -> Columns:
    by_plain: dict[str, str] = {}
    for column in table.columns:
        by_plain.setdefault(plain(column), column)

    def first(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(by_plain[name] for name in names if name in by_plain)[:1]

    found: Columns = {"id": first(_IDS)}
    if kind == "choose":
        found |= _choice_columns(table, by_plain)
        found["text"] = _numbered_columns(table, _NUMBERED_CONTEXTS, 2) or first(_CONTEXTS)
        found["second"], found["label"] = first(_QUESTIONS), first(_RIGHTS)
        return {role: columns for role, columns in found.items() if columns}
    pair = next((pair for pair in _PAIRS if all(name in by_plain for name in pair)), None)
    if kind == "search":
        return {"text": first(_TEXTS)} if first(_TEXTS) else {}
    if kind != "classify" and pair:
        found["text"], found["second"] = ((by_plain[name],) for name in pair)
    else:
        found["text"] = first(_TEXTS)
    found["score" if kind == "regress" else "label"] = first(
        _SCORES if kind == "regress" else _LABELS
    )
    return {role: columns for role, columns in found.items() if columns}


def _choice_columns(table: FileTable, by_plain: Mapping[str, str]) -> Columns:
    own = [(by_plain[name],) for name in _LISTS if name in by_plain]
    return {"choices": own[0] if own else _numbered_columns(table, _NUMBERED_CHOICES, 2)}


def _numbered_columns(table: FileTable, stems: Sequence[str], at_least: int) -> tuple[str, ...]:
    found = (tuple(one for one in table.columns if _numbered(one) == stem) for stem in stems)
    return next((columns for columns in found if len(columns) >= at_least), ())


# ---- by content ---------------------------------------------------------------------------


def _by_layout(table: FileTable, looks: Mapping[str, ColumnProfile], kind: Kind) -> Columns:
    """The columns of CoLA, which names none: a code, the label, a star or nothing, the sentence."""
    is_cola = kind == "classify" and not table.has_names and len(table.columns) == 4
    labels, stars = ({*looks[own].samples} for own in "23") if is_cola else (set(), set())
    if labels and labels <= {"0", "1"} and stars <= {"*"}:
        return {"text": ("4",), "label": ("2",)}
    return {}


def _answer_of(
    table: FileTable,
    records: Sequence[Record],
    looks: Mapping[str, ColumnProfile],
    kind: Kind,
    role: str,
) -> tuple[str, ...]:
    """The one column that could be the label or the score; several are refused."""
    if role == "label":
        fit = {column: look for column, look in looks.items() if look.could_be_label}
        if not fit:  # each row may have a different set of labels that come again one by one
            split = {column: _label_profile(records, column) for column in looks}
            fit = {column: look for column, look in split.items() if look.could_be_label}
        fit = {column: look for column, look in fit.items() if not look.num_empty} or fit
        open_to = {column: look for column, look in fit.items() if look.num_distinct > 1} or fit
    else:
        fit = {column: look for column, look in looks.items() if look.kind == "number"}
        open_to = {column: look for column, look in fit.items() if not look.is_numbering} or fit
    if len(open_to) != 1:
        raise NoColumnError(table, role, kind, open_to or looks)
    return tuple(open_to)


def _texts_of(
    table: FileTable, looks: Mapping[str, ColumnProfile], kind: Kind, roles: Sequence[str]
) -> Columns:
    """The columns with the longest cells that do not come again, one for each role."""
    fit = {column: look for column, look in looks.items() if not look.is_code}
    # What comes repeatedly is a label, unless nothing else is there.
    kept = {column: look for column, look in fit.items() if not look.repeats}
    open_to = kept if len(kept) >= len(roles) else fit
    ranked = sorted(open_to, key=lambda column: -open_to[column].length)
    if kind == "regress" and len(ranked) > 1:
        # Where the other column is far shorter it is a name or a kind, not a second text.
        is_pair = 4 * open_to[ranked[1]].length >= open_to[ranked[0]].length
        roles = ("text", "second") if is_pair else ("text",)
    chosen, others = ranked[: len(roles)], ranked[len(roles) :]
    if len(chosen) < len(roles):
        raise NoColumnError(table, roles[len(chosen)], kind, {} if chosen else looks)
    if others and 2 * open_to[others[0]].length > open_to[chosen[-1]].length:
        close = {column: open_to[column] for column in ranked[len(roles) - 1 :]}
        raise NoColumnError(table, roles[-1], kind, close)
    in_order = sorted(chosen, key=table.columns.index)
    return {role: (column,) for role, column in zip(roles, in_order, strict=True)}


def described(table: FileTable, records: Sequence[Record], columns: Columns) -> str:
    """A sentence about the chosen columns, with two samples of each."""

    def part(role: str, own: tuple[str, ...]) -> str:
        name = " + ".join(f"“{column}”" if table.has_names else column for column in own)
        samples = _profiles(replace(table, columns=list(own)), records[:100])[own[0]].samples
        told = f" ({', '.join(map(quoted, samples))})" if samples else ""
        return f"{role} = {name}{told}"

    parts = [part(role, own) for role, own in columns.items()]
    source = "" if table.has_names else " (no header row; columns by number)"
    texts = _profiles(replace(table, columns=[*columns.get("text", ())][:1]), records).values()
    is_odd = any(look.is_code and look.num >= FEW_ROWS for look in texts)
    odd = " The text looks like ids, numbers or dates: check --column text=NAME." if is_odd else ""
    return f"{table.name}: {', '.join(parts)}{source}.{odd}"
