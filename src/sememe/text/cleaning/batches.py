"""Clean one batch of rows: its lines, then its texts; fingerprints of what remains.

This part runs in several threads, and nothing here depends on other batches.
"""

from typing import NamedTuple

import numpy as np

from sememe.text.cleaning.config import CleanConfig
from sememe.text.cleaning.fingerprints import Fingerprints, fingerprint
from sememe.text.cleaning.lines import Lines, Verdict, judge, split
from sememe.text.cleaning.report import EMPTY, INVALID, LANGUAGE, NUM_SAMPLES, RULES, TOO_SHORT
from sememe.text.cleaning.rows import RowBatch
from sememe.text.cleaning.worker import Workers

_LOOKED_AT = 1600  # bytes: 400 characters or more, as many as the language is judged by


class Removal(NamedTuple):
    """A row or a line of a row that was removed, by their places in the batch."""

    row: int
    line: int  # of the row, from 0 on
    rule: int
    text: str


class CleanBatch(NamedTuple):
    """The rows of a batch after cleaning: removed ones are empty, `rules` says why (0: kept).

    `num_lines` counts the lines removed inside rows by rule, and `removals` has some of them.
    """

    rows: RowBatch
    text: bytes
    ends: np.ndarray
    is_changed: np.ndarray
    rules: np.ndarray
    num_lines: np.ndarray
    num_repaired: int
    removals: list[Removal]
    fingerprints: Fingerprints


def clean_batch(
    batch: RowBatch,
    config: CleanConfig,
    *,
    repeated: np.ndarray,
    workers: Workers,
    tells_all: bool,
) -> CleanBatch:
    """Clean the rows of a batch; `repeated` are the hashes of lines of many documents."""
    num_rows, is_cells = len(batch.ends), batch.form == "cell"
    lines = split(batch.text, batch.ends)
    verdict = judge(
        batch.text, lines, num_rows, is_cells=is_cells, repeated=repeated, config=config,
        workers=workers,
    )  # fmt: skip
    text, ends, is_changed = _without_lines(batch, lines, verdict)
    rules = _row_rules(batch, lines, verdict, config)
    if config.keep_language:
        _judge_language(text, ends, rules, workers)
    removals = _removals(batch, lines, verdict.rules, rules, tells_all)
    is_single = lines.num_filled(num_rows)[lines.documents] == 1
    num_lines = np.bincount(verdict.rules[~is_single], minlength=len(RULES) + 1)
    sizes = np.diff(ends, prepend=0)
    if rules.any():
        text = np.frombuffer(text, np.uint8)[np.repeat(rules == 0, sizes)].tobytes()
        ends = np.cumsum(np.where(rules == 0, sizes, 0))
    prints = fingerprint(text, ends, config)
    num_repaired = len(verdict.repaired)
    return CleanBatch(
        batch, text, ends, is_changed, rules, num_lines, num_repaired, removals, prints
    )


def _without_lines(
    batch: RowBatch, lines: Lines, verdict: Verdict
) -> tuple[bytes, np.ndarray, np.ndarray]:
    """The texts without removed lines, with repaired ones, and which of them changed."""
    is_removed = verdict.rules > 0
    if batch.form in ("paragraph", "file"):
        is_removed |= lines.is_blank  # a blank line ends a document
    is_edited = is_removed.copy()
    is_edited[list(verdict.repaired)] = True
    if not is_edited.any():
        return batch.text, batch.ends, np.zeros(len(batch.ends), np.bool_)
    parts, place = [], 0
    sizes = np.where(is_removed, 0, lines.ends - lines.starts)
    for line in np.flatnonzero(is_edited).tolist():
        parts.append(batch.text[place : lines.starts[line]])
        place = int(lines.ends[line])
        if (new := verdict.repaired.get(line)) is not None:
            new += batch.text[int(lines.stops[line]) : place]
            parts.append(new)
            sizes[line] = len(new)
    parts.append(batch.text[place:])
    num_rows = len(batch.ends)
    is_changed = np.zeros(num_rows, np.bool_)
    is_changed[lines.documents[is_edited]] = True
    own_sizes = np.bincount(lines.documents, sizes, num_rows).astype(np.int64)
    return b"".join(parts), np.cumsum(own_sizes), is_changed


def _row_rules(batch: RowBatch, lines: Lines, verdict: Verdict, config: CleanConfig) -> np.ndarray:
    """The rule by which each row is removed for its lines or length."""
    num_rows = len(batch.ends)
    num_filled = lines.num_filled(num_rows)
    is_left = (verdict.rules == 0) & ~lines.is_blank
    num_left = np.bincount(lines.documents[is_left], minlength=num_rows)
    widths = np.bincount(lines.documents[is_left], lines.widths[is_left], num_rows)
    rules = np.zeros(num_rows, np.uint8)
    rules[widths < config.min_length] = TOO_SHORT
    rules[num_left == 0] = EMPTY
    # The only line of a row is the row.
    is_only = (num_filled[lines.documents] == 1) & (verdict.rules > 0)
    rules[lines.documents[is_only]] = verdict.rules[is_only]
    rules[list(batch.problems)] = INVALID
    return rules


def _judge_language(text: bytes, ends: np.ndarray, rules: np.ndarray, workers: Workers) -> None:
    rows = np.flatnonzero(rules == 0).tolist()
    starts = np.concatenate(([0], ends[:-1]))
    samples = [
        text[starts[row] : min(ends[row], starts[row] + _LOOKED_AT)].decode("utf-8", "ignore")
        for row in rows
    ]
    for row, is_kept in zip(rows, workers.ask("language", samples), strict=True):
        if not is_kept:
            rules[row] = LANGUAGE


def _removals(
    batch: RowBatch, lines: Lines, line_rules: np.ndarray, rules: np.ndarray, tells_all: bool
) -> list[Removal]:
    """The removed rows, and the removed lines of rows with several; all, or a few per rule."""
    firsts = np.searchsorted(lines.documents, np.arange(len(rules)))
    starts = np.concatenate(([0], batch.ends[:-1]))
    is_single = lines.num_filled(len(rules))[lines.documents] == 1
    found = []
    for row in _some(rules, tells_all):
        text = batch.text[starts[row] : batch.ends[row]].decode().strip("\n")
        found.append(Removal(row, 0, int(rules[row]), batch.problems.get(row) or text))
    for line in _some(np.where(is_single, 0, line_rules), tells_all):
        row = int(lines.documents[line])
        text = batch.text[lines.starts[line] : lines.stops[line]].decode()
        found.append(Removal(row, int(line - firsts[row]), int(line_rules[line]), text))
    return sorted(found, key=lambda own: (own.row, own.line))


def _some(rules: np.ndarray, tells_all: bool) -> list[int]:
    if tells_all:
        return np.flatnonzero(rules).tolist()
    return [
        int(place)
        for rule in np.unique(rules[rules > 0])
        for place in np.flatnonzero(rules == rule)[:NUM_SAMPLES]
    ]
