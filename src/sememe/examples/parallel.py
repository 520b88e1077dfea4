"""Parallel text: two files aligned line by line, or one with two columns, in; pairs out.

pairs = read_pairs("train.en.gz", "train.de.gz")
pairs = read_pairs("eng-cmn.tsv")
pairs = read_pairs("pairs.jsonl", columns={"source": "en", "target": "zh"}, skip_bad=True)
pairs = read_pairs([("good morning", "guten Morgen")])
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.rows import Note, silent
from sememe.frames import is_frame
from sememe.text.headers import ColumnProfile, as_text, could_name, named_column, plain, quoted
from sememe.text.settings import TextSettings
from sememe.text.sources import STDIN, Corpus, Source, find_sources
from sememe.text.tables import (
    FileTable,
    Record,
    at,
    frame_table,
    is_path,
    numbered_lines,
    open_tables,
)

ROLES = ("source", "target")
_NAMES = (
    ("source", "target"), ("src", "tgt"), ("src", "trg"), ("sourcetext", "targettext"),
    ("input", "output"), ("原文", "译文"),
)  # fmt: skip
_LANGUAGES = frozenset((
    "en", "de", "fr", "es", "it", "nl", "pt", "ru", "zh", "ja", "ko", "ar", "cs", "pl", "tr", "vi",
    "eng", "deu", "fra", "spa", "rus", "cmn", "jpn", "english", "german", "french", "spanish",
    "italian", "dutch", "portuguese", "russian", "chinese", "japanese", "korean", "arabic", "czech",
    "source", "target", "src", "tgt", "trg", "translation", "original",
))  # fmt: skip
_CHINESE = re.compile("[中英汉日韩法德俄]文|[汉英日韩法德俄]语|原文|译文|源语言|目标语言|翻译")
_LOOKED_AT = 200  # rows
_WIDE = re.compile(r"[^\W\d_\u0000-\u024f]")  # a letter of another script than the Latin one
_ENDS = tuple(".!?。！？…")


class Pair(NamedTuple):
    """A text and its translation, and their position."""

    source: str
    target: str
    where: str = ""


class ParallelPairs:
    """Pairs that are read again each time, so that none need be kept in memory.

    A bad pair is an error that names file and line, unless `skip_bad` skips it: after a pass
    `num_skipped` has their number.
    """

    def __init__(self, read: Any, *, skip_bad: bool, on_note: Note) -> None:
        self._read, self._skip_bad, self._on_note = read, skip_bad, on_note
        self.num_skipped = 0
        self._has_told = False

    def __iter__(self) -> Iterator[Pair]:
        """Every good pair."""
        num_skipped, first, is_empty = 0, "", True
        for pair in self._read():
            problem = _problem(pair)
            if not problem:
                is_empty = False
                yield pair
                continue
            if not self._skip_bad:
                raise InputError(
                    f"{pair.where}: {problem}. Fix it, or skip such pairs with --skip-bad "
                    "(skip_bad=True)."
                )
            num_skipped += 1
            first = first or f"{pair.where}: {problem}"
        self.num_skipped = num_skipped
        if is_empty:
            reason = f"; all {num_skipped:,} are bad ({first})" if first else ""
            raise InputError(f"The parallel text holds no pairs{reason}.")
        if num_skipped and not self._has_told:
            self._on_note(f"{num_skipped:,} bad pairs were left out; the first: {first}.")
            self._has_told = True


def _problem(pair: Pair) -> str:
    empty = [role for role in ROLES if not getattr(pair, role).strip()]
    return (
        f"the {' and the '.join(empty)} {'are' if len(empty) > 1 else 'is'} empty" if empty else ""
    )


def read_pairs(
    source: Any,
    target: Any = None,
    *,
    columns: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
    on_note: Note = silent,
) -> ParallelPairs:
    """Read pairs from two files, or as many on either side, whose lines belong together.

    Without a `target`, `source` is a table (tsv, csv, jsonl, parquet), a DataFrame, or pairs.
    `columns` says which column is the source and which the target, by name or by number from 1.
    """
    if isinstance(source, ParallelPairs):
        return source
    for role in columns or {}:
        if role not in ROLES:
            raise OptionError(f"Pairs have no part {role!r}; they have {', '.join(ROLES)}.")
    if target is not None:
        if columns:
            raise OptionError("columns are for one file with two columns, not for two files.")
        files = _file_pairs(source, target)
        settings = TextSettings(encoding=encoding)
        return ParallelPairs(lambda: _aligned(files, settings), skip_bad=skip_bad, on_note=on_note)
    if is_frame(source) or is_path(source):
        _refuse_stdin(source)
        told: list[str] = []
        return ParallelPairs(
            lambda: _from_tables(source, columns, encoding, on_note, told),
            skip_bad=skip_bad, on_note=on_note,
        )  # fmt: skip
    given = _given(source)
    return ParallelPairs(lambda: given, skip_bad=skip_bad, on_note=on_note)


# ---- two files ----------------------------------------------------------------------------------


def _file_pairs(source: Corpus, target: Corpus) -> list[tuple[Path, Path]]:
    sides = [_files(side) for side in (source, target)]
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"The source has {len(sides[0]):,} files, the target {len(sides[1]):,}: "
            "each file needs its translation."
        )
    return list(zip(*sides, strict=True))


def _files(side: Corpus) -> list[Any]:
    _refuse_stdin(side)
    return [found.path for found in find_sources(side)]


def _refuse_stdin(side: Any) -> None:
    is_several = isinstance(side, Sequence) and not isinstance(side, str)
    if (isinstance(side, str) and side == STDIN) or (is_several and STDIN in side):
        raise InputError("Parallel text is read more than once: name files, not standard input.")


def _aligned(files: list[tuple[Path, Path]], settings: TextSettings) -> Iterator[Pair]:
    for paths in files:
        sides = [numbered_lines(Source(path), settings) for path in paths]
        for number, (first, second) in enumerate(zip_longest(*sides), 1):
            if first is None or second is None:
                counts = [number + sum(1 for _ in sides[first is None]), number - 1]
                raise InputError(
                    f"{paths[first is None]} has {counts[0]:,} lines, "
                    f"{paths[first is not None]} only {counts[1]:,}: line by line, one must be "
                    "the translation of the other."
                )
            yield Pair(first[1], second[1], f"{paths[0]} and {paths[1].name}, line {number:,}")


# ---- one file -----------------------------------------------------------------------------------


def _from_tables(
    paths: Any,
    columns: Mapping[str, str] | None,
    encoding: str,
    on_note: Note,
    told: list[str],
) -> Iterator[Pair]:
    wanted = {name for name in (columns or {}).values() if not name.isdecimal()}
    tables: Iterable[FileTable] = (
        [frame_table(paths)]
        if is_frame(paths)
        else open_tables(
            paths,
            encoding=encoding,
            is_header=lambda first, others: (
                bool(wanted & {cell.strip() for cell in first}) or _is_header(first, others)
            ),
        )
    )
    for table in tables:
        records = iter(table.records)
        early = list(islice(records, _LOOKED_AT))
        chosen = _chosen(table, early, columns or {})
        note = _note(table, early, chosen)
        if note not in told:
            told.append(note)
            on_note(note)
        for record in chain(early, records):
            if not table.has(record, chosen):
                yield Pair("", "", f"{record.where} ({record.problem})")
                continue
            source, target = (
                cell if isinstance(cell := record.cells.get(name), str) else "" for name in chosen
            )
            if source or target or any(map(as_text, record.cells.values())):
                yield Pair(source, target, record.where)


def _names_language(name: str) -> bool:
    words = re.split(r"[\W\d_]+", re.sub("([a-z])([A-Z])", r"\1 \2", name).lower())
    return bool(_LANGUAGES & {*words} or _CHINESE.search(name))


def _is_header(first: list[str], others: list[list[str]]) -> bool:
    """Whether a row names columns: by known names, or because it differs from the pairs below.

    It differs if a cell is in another script than its column, is written like_this, or heads a
    column of numbers; and if it does not end like a sentence where almost all below do.
    """
    names = [cell.strip() for cell in first]
    if len(names) < 2 or not all(map(could_name, filter(None, names))):
        return False
    known = {plain(name) for name in names}
    if any({*pair} <= known for pair in _NAMES) or sum(map(_names_language, names)) > 1:
        return True
    below = [
        [row[place].strip() for row in others if place < len(row)] for place in range(len(names))
    ]
    if any(name in cells for name, cells in zip(names, below, strict=True)):
        return False
    num_ended = num_cells = 0
    for name, cells in zip(names, below, strict=True):
        look = ColumnProfile.of(cells)
        if not name or not look.num:
            continue
        has_wide = [bool(_WIDE.search(cell)) for cell in cells if cell]
        is_odd = bool(_WIDE.search(name)) not in has_wide or look.kind in ("number", "date")
        if is_odd or ("_" in name and not any("_" in cell for cell in cells)):
            return True
        num_ended += sum(cell.endswith(_ENDS) for cell in cells if cell)
        num_cells += look.num
    has_sentences = num_cells >= 2 * len(names) and num_ended > 0.9 * num_cells
    return has_sentences and not any(name.endswith(_ENDS) for name in names)


def _chosen(table: FileTable, early: list[Record], columns: Mapping[str, str]) -> list[str]:
    """The columns of source and target: as named, by known names, or the first ones with texts."""
    chosen = {role: named_column(table, name) for role, name in columns.items()}
    by_plain = {plain(column): column for column in table.columns}
    for pair in _NAMES:
        if all(name in by_plain for name in pair):
            chosen = {role: by_plain[name] for role, name in zip(ROLES, pair, strict=True)} | chosen
    looks = {
        column: ColumnProfile.of([as_text(record.cells.get(column)) for record in early])
        for column in table.columns
        if column not in chosen.values()
    }
    texts = [column for column, look in looks.items() if not look.is_code]
    # Not a split or a language, which repeat.
    own = [column for column in texts if 10 * looks[column].num_distinct > looks[column].num]
    named = [column for column in table.columns if table.has_names and _names_language(column)]
    missing = [role for role in ROLES if role not in chosen]
    for free in (named if len(named) == 2 else [], own, texts, [*looks]):
        free = [column for column in free if column not in chosen.values()]
        if len(free) >= len(missing):
            found = chosen | dict(zip(missing, free, strict=False))
            return [found[role] for role in ROLES]
    raise InputError(
        f"{table.name} has one column; parallel text has two, or a second file with as many lines."
    )


def _note(table: FileTable, early: list[Record], chosen: list[str]) -> str:
    cells = early[0].cells if early else {}
    source, target = (f"{name} ({quoted(as_text(cells.get(name)))})" for name in chosen)
    if table.has_names:
        return f"{table.name}: source = {source}, target = {target}."
    return f"{table.name}: source = {source}, target = {target}; no header row."


# ---- Python -------------------------------------------------------------------------------------


def _given(rows: Iterable[Any]) -> list[Pair]:
    if isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        raise InputError("Pairs are paths, or an iterable of (source, target).")
    pairs = []
    for number, row in enumerate(rows, 1):
        own: Any = [row.get(role) for role in ROLES] if isinstance(row, Mapping) else row
        is_pair = isinstance(own, Sequence) and not isinstance(own, str) and len(own) >= 2
        if not is_pair or not all(isinstance(text, str) for text in own[:2]):
            raise InputError(f"{at('the pairs', number)}: {row!r} is not a source and a target.")
        pairs.append(Pair(own[0], own[1], at("the pairs", number)))
    return pairs
