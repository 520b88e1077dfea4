"""Rows of questions with a context and answers: SQuAD's and CMRC's json, tables, Python lists.

rows = read_answers("train-v1.1.json")
rows = read_answers("questions.csv", on_note=print)      # question, context, answer
rows = read_answers([("Who sings?", "Jim sings.", "Jim")])
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.columns import Columns, described
from sememe.examples.labelled.rows import (
    NAME,
    AnswerRow,
    AnswerSpan,
    LabelledRows,
    Note,
    items_of,
    silent,
)
from sememe.examples.labelled.texts import Sieve, opened
from sememe.text.headers import plain
from sememe.text.tables import BLANK, FileTable, Record, flat, is_path, open_tables

Spans = Literal["exact", "nearest", "texts"]

_NAMES = {
    "id": ("id", "qid", "queryid", "questionid", "编号"),
    "question": ("question", "query", "querytext", "问题"),
    "context": (
        "context", "contexttext", "passage", "paragraph", "document", "article", "text", "文章",
        "上下文",
    ),
    "answers": ("answers", "answer", "answertext", "答案"),
    "start": ("answerstart", "start", "startposition", "begin", "answeroffset"),
    "is_impossible": ("isimpossible", "impossible"),
}  # fmt: skip
_KNOWN = frozenset(name for names in _NAMES.values() for name in names)
_TRUE = ("true", "1", "yes")


def read_answers(
    data: Any,
    *,
    columns: Mapping[str, str] | None = None,
    spans: Spans = "exact",
    labelled: bool = True,
    skip_bad: bool = False,
    encoding: str = "utf-8",
    on_note: Note = silent,
    sieve: Sieve | None = None,
) -> LabelledRows[AnswerRow]:
    """Read questions from paths, an iterable, or a part of a table.

    `spans` says what to do with a wrong answer position: with "exact" the row is bad; with
    "nearest" the answer is searched, and the row is bad if the context does not contain it; with
    "texts" the answer keeps its text, for scoring, at position -1. A missing or negative position
    is searched. Without `labelled`, answers are not required. Parts of a table, from
    `open_answers`, share a `sieve`, which the caller finishes.
    """
    if spans not in ("exact", "nearest", "texts"):
        raise OptionError(f"spans must be exact, nearest or texts, not {spans!r}.")
    for role in columns or {}:
        if role not in _NAMES:
            raise OptionError(f"Questions have no part {role!r}; they have {', '.join(_NAMES)}.")
    own = sieve or Sieve(skip_bad, on_note)
    rows: list[AnswerRow] = []
    for table in open_answers(data, columns, encoding, on_note):
        for row, cells in _of_table(table, columns, labelled, own):
            placed = row if isinstance(row, AnswerRow) else _row(row, labelled, cells)
            if isinstance(placed, AnswerRow) and labelled:
                # A row that was read before has gone without a place then, if it has none.
                placed = _placed(placed, "texts" if placed is row and spans == "exact" else spans)
            if isinstance(placed, AnswerRow):
                number = own.num_before + len(rows)
                rows.append(placed if placed.id else replace(placed, id=str(number)))
                own.num_kept += 1
            else:
                where = row.source if isinstance(row, AnswerRow) else row.where
                own.refuse(where, placed, cells)
    if labelled and len({row.id for row in rows}) < len(rows):
        own.say("Some questions share an id: scores by id would count them once.")
    found = own.rows_of(rows, columns or {})
    if sieve is None:
        own.finish()
    return found


# ---- records ------------------------------------------------------------------------------


def open_answers(
    data: Any, columns: Mapping[str, str] | None, encoding: str, on_note: Note
) -> Iterator[FileTable]:
    """The tables of data in any form, each to be read entirely or in parts."""
    if isinstance(data, FileTable):
        yield data
        return
    data = opened(data, "answer", on_note)
    if is_path(data):
        named = set((columns or {}).values())

        def is_header(cells: list[str], _: Any) -> bool:
            return any(cell.strip() in named or plain(cell) in _KNOWN for cell in cells)

        yield from open_tables(data, encoding=encoding, is_header=is_header)
        return
    yield FileTable(NAME, [], True, [_item(item, i) for i, item in enumerate(items_of(data))])


def _item(item: Any, index: int) -> Any:
    where = f"row {index}"
    if isinstance(item, AnswerRow):
        return item if item.source else replace(item, source=where)
    if isinstance(item, Mapping):
        return Record(flat(item), where)
    if isinstance(item, (list, tuple)) and 2 <= len(item) <= 4 and isinstance(item[0], str):
        return Record(
            dict(zip(("question", "context", "answers", "start"), item, strict=False)), where
        )
    raise InputError(f"Row {index} is not (question, context, answer): {item!r:.60}.")


def _of_table(
    table: FileTable, columns: Mapping[str, str] | None, labelled: bool, sieve: Sieve
) -> Iterator[tuple[Record | AnswerRow, Mapping[str, Any] | None]]:
    """One record per question, its cells named by their roles, and all cells of its row."""
    for record in table.records:
        if isinstance(record, AnswerRow) or record.problem:
            yield record, record.cells
            continue
        if "paragraphs" in record.cells or "qas" in record.cells:
            for question in _questions(record, table.name):
                own = {name: question.cells.get(name) for name in ("id", "question", "context")}
                yield question, own
            continue
        chosen = _columns(record, columns, labelled)
        if table.roles is None and table.name != NAME:
            sieve.say(described(table, [record], chosen))
            table.roles = chosen
        cells = {role: record.cells.get(own[0]) for role, own in chosen.items()}
        yield Record(cells, record.where), record.cells


def _columns(record: Record, named: Mapping[str, str] | None, labelled: bool) -> Columns:
    by_plain = {plain(column): column for column in record.cells}
    found: Columns = {}
    for role, names in _NAMES.items():
        column = next((by_plain[name] for name in names if name in by_plain), None)
        if role in (named or {}):
            column = (named or {})[role]
            if column not in record.cells:
                raise InputError(f"{record.where}: there is no column {column!r}.")
        if column is not None:
            found[role] = (column,)
    for role in ("question", "context", *(["answers"] if labelled else [])):
        if role not in found:
            there = ", ".join(map(repr, list(record.cells)[:20])) or "none"
            raise InputError(
                f"{record.where}: no column for the {role} was found; there are {there}. "
                f"Name it: --column {role}=NAME, or columns={{{role!r}: NAME}}."
            )
    return found


def _questions(record: Record, name: str) -> Iterator[Record]:
    """The questions of an article or paragraph, in the layout of SQuAD and CMRC."""
    paragraphs = record.cells.get("paragraphs", [record.cells])
    for paragraph in paragraphs if isinstance(paragraphs, list) else [None]:
        context = _of(paragraph, "context")
        questions = paragraph.get("qas") if isinstance(paragraph, Mapping) else None
        if not isinstance(context, str) or not isinstance(questions, list):
            yield Record({}, record.where, "a paragraph without context and qas")
            continue
        for question in questions:
            cells = {role: _of(question, role) for role in _NAMES} | {"context": context}
            yield Record(cells, f"{name}, question {cells['id'] or '?'}")


def _of(content: Any, role: str) -> Any:
    if not isinstance(content, Mapping):
        return None
    by_plain = {plain(str(key)): key for key in content}
    return next((content[by_plain[name]] for name in _NAMES[role] if name in by_plain), None)


# ---- rows ---------------------------------------------------------------------------------


def _row(record: Record, labelled: bool, cells: Mapping[str, Any] | None) -> AnswerRow | str:
    """A record as a row, or what is wrong with it; answer positions are not checked."""
    if record.problem:
        return record.problem
    question, context = record.cells.get("question"), record.cells.get("context")
    if not isinstance(question, str) or not question.strip():
        return "the question is empty" if labelled else BLANK
    if not isinstance(context, str) or not context.strip():
        return "the context is empty" if labelled else BLANK
    answers = _answers(record.cells.get("answers"), record.cells.get("start"))
    if isinstance(answers, str):
        return answers
    impossible = record.cells.get("is_impossible")
    has_said = impossible is not None and str(impossible).strip() != ""
    is_impossible = str(impossible).strip().lower() in _TRUE if has_said else not answers
    if labelled and has_said and not is_impossible and not answers:
        return "the question has no answers, and is not marked as impossible"
    return AnswerRow(
        id=str(record.cells.get("id") or ""),
        question=question,
        context=context,
        answers=() if is_impossible else answers,
        is_impossible=is_impossible and labelled,
        source=record.where,
        cells=None if labelled else cells,
    )


def _answers(value: Any, start: Any) -> tuple[AnswerSpan, ...] | str:
    """Answers in any of their forms; -1 where no place is given."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    if isinstance(value, str):
        return _numbered(value, start)
    if isinstance(value, Mapping):  # {"text": [...], "answer_start": [...]}
        texts: Any = value.get("text")
        starts = value.get("answer_start", value.get("start"))
        texts = [texts] if isinstance(texts, str) else texts
        if not hasattr(texts, "__len__"):
            return f"the answers {value!r:.60} have no list of texts"
        starts = [-1] * len(texts) if starts is None else starts
        starts = starts if hasattr(starts, "__len__") else [starts]
        if len(starts) != len(texts):
            return f"{len(texts)} answers but {len(starts)} places"
        value = [{"text": text, "start": place} for text, place in zip(texts, starts, strict=True)]
    found: list[AnswerSpan] = []
    for item in value if isinstance(value, Sequence) else [None]:
        text = item if isinstance(item, str) else _of(item, "answers")
        text = text or (item.get("text") if isinstance(item, Mapping) else None)
        own = _numbered(text, _of(item, "start")) if isinstance(text, str) and text else ()
        if isinstance(own, str) or not own:
            return own or f"an answer has no text: {item!r:.60}"
        found += own
    return tuple(found)


def _numbered(text: str, start: Any) -> tuple[AnswerSpan, ...] | str:
    if start is None or (isinstance(start, str) and not start.strip()):
        return (AnswerSpan(text, -1),)
    try:
        return (AnswerSpan(text, int(start)),)
    except (TypeError, ValueError, OverflowError):
        return f"the place {start!r:.40} of the answer {text!r:.40} is not a whole number"


def _placed(row: AnswerRow, spans: Spans) -> AnswerRow | str:
    """The row with the position of each answer checked or searched; or what is wrong with it."""
    placed = []
    for answer in row.answers:
        start = answer.start
        there = row.context[start : start + len(answer.text)] if start >= 0 else ""
        if there != answer.text:
            if start >= 0 and spans == "exact":
                return (
                    f"the context has {there!r:.40} at character {start}, not the answer "
                    f"{answer.text!r:.40}"
                )
            start = _nearest(row.context, answer.text, start)
        placed.append(AnswerSpan(answer.text, start))
    if placed and spans != "texts" and all(answer.start < 0 for answer in placed):
        return f"the context does not hold the answer {placed[0].text!r:.60}"
    return replace(row, answers=tuple(placed))


def _nearest(context: str, text: str, start: int) -> int:
    """Where the text is in the context, nearest to `start`; -1 if nowhere."""
    places = []
    place = context.find(text)
    while place >= 0:
        places.append(place)
        place = context.find(text, place + 1)
    return min(places, key=lambda place: abs(place - max(start, 0)), default=-1)
