"""Which column is what: named by the user, known by its name, or guessed from what it holds.

Roles: text, second, label, score, choices, id. A role may take several columns, whose cells are
joined by a space ("title+body"); the choices take one column of lists, or several columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.records import Record, Table

Kind = Literal["classify", "pairs", "regress", "choose"]
KINDS = ("classify", "pairs", "regress", "choose")
# The columns of each role; a role that the file lacks is left out.
Columns = dict[str, tuple[str, ...]]

ROLES = {
    "classify": ("text", "label", "id"),
    "pairs": ("text", "second", "label", "id"),
    "regress": ("text", "second", "score", "id"),
    "choose": ("text", "second", "choices", "label", "id"),
}

# Names are compared without case, spaces, hyphens and underscores; the first that is there wins.
_TEXTS = (
    "text", "sentence", "review", "content", "document", "article", "body", "comment", "utterance",
    "message", "tweet", "texta", "sentence1", "sentencea", "string", "description", "summary",
    "title", "headline", "query", "question", "words", "文本", "句子", "内容", "正文", "评论",
    "评价", "标题", "问题",
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
    "polarity", "sentiment", "intent", "topic", "y", "标签", "类别", "分类", "标注", "情感",
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

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LONGEST_NAME = 64


def plain(name: str) -> str:
    """A column's name as names are compared."""
    return re.sub(r"[\s_-]", "", name).lower()


_KNOWN = frozenset(
    [*_TEXTS, *_LABELS, *_SCORES, *_CONTEXTS, *_QUESTIONS, *_RIGHTS, *_LISTS, *_IDS]
    + [name for pair in _PAIRS for name in pair]
)


def is_number(text: str) -> bool:
    """Whether a cell is a number and nothing else."""
    return bool(_NUMBER.fullmatch(text.strip()))


def is_header(cells: Sequence[str], named: Mapping[str, Any] | None = None) -> bool:
    """Whether the first line of a table names its columns: it holds a name that is known."""
    names = [cell.strip() for cell in cells]
    wanted = {part for columns in (named or {}).values() for part in _parts(columns, names)}
    if any(name in wanted and not name.isdecimal() for name in names):
        return True
    if any(is_number(name) or len(name) > _LONGEST_NAME for name in names):
        return False
    return any(plain(name) in _KNOWN or _numbered(name) for name in names)


def _numbered(name: str) -> str:
    """The part of a name before its number, where that is known."""
    stem = plain(name).rstrip("0123456789")
    is_known = stem != plain(name) and stem in (*_NUMBERED_CHOICES, *_NUMBERED_CONTEXTS)
    return stem if is_known else ""


def _parts(columns: str | Sequence[str], known: Sequence[str]) -> list[str]:
    """The columns that a setting names; one whose name holds a + is found as it is."""
    if not isinstance(columns, str):
        return list(columns)
    return [columns] if columns in known else [part.strip() for part in columns.split("+")]


# ---- named --------------------------------------------------------------------------------


def choose_columns(
    table: Table,
    records: Sequence[Record],
    kind: Kind,
    named: Mapping[str, str | Sequence[str]] | None,
    needed: Sequence[str],
) -> Columns:
    """Give each role its columns: as named, else by known names, else by what they hold."""
    for role in named or {}:
        if role not in ROLES[kind]:
            raise OptionError(
                f"{kind} rows have no part {role!r}; they have {', '.join(ROLES[kind])}."
            )
    found: Columns = {
        role: tuple(_place(table, part) for part in _parts(columns, table.columns))
        for role, columns in (named or {}).items()
    }
    guess = _by_name(table, kind) if table.has_names else _by_content(table, records, kind, found)
    taken = {column for columns in found.values() for column in columns}
    for role, columns in guess.items():
        if role not in found and not taken & set(columns):
            found[role] = columns
    for role in needed:
        if role not in found:
            raise NoColumnError(table, role, kind)
    return {role: found[role] for role in ROLES[kind] if role in found}


def _place(table: Table, name: str) -> str:
    if name in table.columns:
        return name
    if name.isdecimal() and 1 <= int(name) <= len(table.columns):
        return table.columns[int(name) - 1]
    matching = [column for column in table.columns if plain(column) == plain(name)]
    if len(matching) == 1:
        return matching[0]
    raise InputError(f"{table.name} has no column {name!r}; {_listed(table)}.")


def _listed(table: Table) -> str:
    if not table.has_names:
        many = "one column" if len(table.columns) == 1 else f"{len(table.columns)} columns"
        return f"it has {many} and no line of names"
    return f"its columns are {', '.join(map(repr, table.columns[:20])) or 'none'}"


class NoColumnError(InputError):
    """A part of the rows was found in no column of a table."""

    def __init__(self, table: Table, role: str, kind: str) -> None:
        what = {"second": "second text"}.get(role, role)
        found = f"no column for the {what} of {kind} rows was found; {_listed(table)}."
        self.role, self.found = role, f"{table.name}: {found}"
        self.can_be_named = table.has_names or len(table.columns) > 1
        cure = "Write a tab between the parts of a row."
        if self.can_be_named:
            name = "NAME" if table.has_names else "NUMBER"
            cure = f"Name one: --column {role}={name}, or columns={{{role!r}: {name}}}."
        super().__init__(f"{self.found} {cure}")


# ---- by name ------------------------------------------------------------------------------


def _by_name(table: Table, kind: Kind) -> Columns:
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
    if kind != "classify" and pair:
        found["text"], found["second"] = ((by_plain[name],) for name in pair)
    else:
        found["text"] = first(_TEXTS)
    found["score" if kind == "regress" else "label"] = first(
        _SCORES if kind == "regress" else _LABELS
    )
    return {role: columns for role, columns in found.items() if columns}


def _choice_columns(table: Table, by_plain: Mapping[str, str]) -> Columns:
    for name in _LISTS:
        if name in by_plain:
            return {"choices": (by_plain[name],)}
    return {"choices": _numbered_columns(table, _NUMBERED_CHOICES, 2)}


def _numbered_columns(table: Table, stems: Sequence[str], at_least: int) -> tuple[str, ...]:
    for stem in stems:
        columns = tuple(column for column in table.columns if _numbered(column) == stem)
        if len(columns) >= at_least:
            return columns
    return ()


# ---- by content ---------------------------------------------------------------------------


def _by_content(table: Table, records: Sequence[Record], kind: Kind, named: Columns) -> Columns:
    """Guess where no line names the columns: texts are the longest, labels take few values."""
    taken = {column for columns in named.values() for column in columns}
    cells = {
        column: [str(record.cells[column]) for record in records if column in record.cells]
        for column in table.columns
        if column not in taken
    }
    lengths = {column: sum(map(len, own)) / max(len(own), 1) for column, own in cells.items()}
    if kind == "choose" or not cells:
        return {}
    if kind == "regress":
        return _scored(cells, lengths)
    num_texts = 2 if kind == "pairs" else 1
    texts = sorted(sorted(lengths, key=lambda column: -lengths[column])[:num_texts], key=int)
    found: Columns = dict(zip(("text", "second"), ((text,) for text in texts), strict=False))
    distinct = {
        column: len(set(own)) for column, own in cells.items() if column not in texts and any(own)
    }
    # A column with gaps, or one that is the same everywhere, only where there is no other.
    order = sorted(
        distinct,
        key=lambda column: (
            not all(cells[column]), distinct[column] == 1, distinct[column], -int(column)
        ),
    )  # fmt: skip
    return found | ({"label": (order[0],)} if order else {})


def _scored(cells: Mapping[str, list[str]], lengths: Mapping[str, float]) -> Columns:
    numeric = [column for column, own in cells.items() if own and all(map(is_number, own))]
    scores = numeric[-1:]
    texts = [column for column in cells if column not in numeric] or [
        column for column in cells if column not in scores
    ]
    texts = sorted(sorted(texts, key=lambda column: -lengths[column])[:2], key=int)
    # Where the other column is far shorter it is a name or a kind, not a second text.
    sizes = [lengths[text] for text in texts]
    if len(texts) == 2 and min(sizes) * 4 < max(sizes):
        texts = [max(texts, key=lambda column: lengths[column])]
    found: Columns = dict(zip(("text", "second"), ((text,) for text in texts), strict=False))
    return found | ({"score": tuple(scores)} if scores else {})


def described(table: Table, columns: Columns) -> str:
    """What was chosen, as it is said aloud."""

    def name(column: str) -> str:
        return f"“{column}”" if table.has_names else column

    parts = [f"{role} = {' + '.join(map(name, own))}" for role, own in columns.items()]
    source = "" if table.has_names else " (no line of names; columns by number)"
    return f"{table.name}: {', '.join(parts)}{source}."
