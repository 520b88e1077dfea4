"""Parallel text: two files aligned line by line, or one with two columns, in; pairs out.

pairs = read_pairs("train.en.gz", "train.de.gz")
pairs = read_pairs("eng-cmn.tsv")
pairs = read_pairs("pairs.jsonl", columns={"source": "en", "target": "zh"}, skip_bad=True)
pairs = read_pairs([("good morning", "guten Morgen")])
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import InputError, OptionError
from sememe.examples.labelled.rows import Note, silent
from sememe.frames import is_frame
from sememe.text.headers import named_column, plain
from sememe.text.settings import TextSettings
from sememe.text.sources import STDIN, Corpus, Source, find_sources
from sememe.text.tables import (
    FileTable,
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
_LANGUAGES = (
    "en", "de", "fr", "es", "it", "nl", "pt", "ru", "zh", "ja", "ko", "ar", "cs", "eng", "deu",
    "fra", "cmn", "english", "german", "french", "spanish", "italian", "russian", "chinese",
    "japanese", "英文", "中文", "英语", "汉语",
)  # fmt: skip


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


def _files(side: Corpus) -> list[Path]:
    _refuse_stdin(side)
    return [Path(found.path) for found in find_sources(side)]


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

    def is_header(cells: list[str], _: Any) -> bool:
        names = [cell.strip() for cell in cells]
        if wanted & set(names):
            return True
        known = [plain(name) for name in names]
        if any(set(pair) <= set(known) for pair in _NAMES):
            return True
        return len(names) > 1 and all(name in _LANGUAGES for name in known[:2])

    tables: Iterable[FileTable] = (
        [frame_table(paths)]
        if is_frame(paths)
        else open_tables(paths, encoding=encoding, is_header=is_header)
    )
    for table in tables:
        chosen = [_place(table, role, columns or {}) for role in ROLES]
        note = f"{table.name}: source = {chosen[0]}, target = {chosen[1]}."
        if note not in told:
            told.append(note)
            on_note(note)
        for record in table.records:
            if not table.has(record, chosen):
                yield Pair("", "", f"{record.where} ({record.problem})")
                continue
            source, target = (
                cell if isinstance(cell := record.cells.get(name), str) else "" for name in chosen
            )
            yield Pair(source, target, record.where)


def _place(table: FileTable, role: str, columns: Mapping[str, str]) -> str:
    named = columns.get(role)
    if named is not None:
        return named_column(table, named)
    index = ROLES.index(role)
    by_plain = {plain(column): column for column in table.columns}
    for pair in _NAMES:
        if all(name in by_plain for name in pair):
            return by_plain[pair[index]]
    taken = set(columns.values())
    free = [column for column in table.columns if column not in taken]
    place = 0 if columns else index
    if place < len(free):
        return free[place]
    raise InputError(
        f"{table.name} has one column; parallel text has two, or a second file with as many lines."
    )


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
