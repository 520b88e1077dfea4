"""Tagging: words in, a tag for each out, on its first sub-word; the rest is not asked about.

Sentences longer than the network sees are read in overlapping windows, never cut.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any, NamedTuple

import numpy as np

from sememe import metrics
from sememe.errors import InputError, OptionError
from sememe.examples import tagging
from sememe.examples.labelled import Rows, TagRow, read_tags, sorted_labels
from sememe.examples.tagging import IGNORE_ID, OUTSIDE, Span, WordPieces
from sememe.networks.windows import Window, windows
from sememe.tasks.classify import softmax
from sememe.tasks.config import TagConfig
from sememe.tasks.items import Item
from sememe.tasks.task import Task
from sememe.tasks.texts import is_gpt

_LETTERS = {"iob1": "BI", "iob2": "BI", "bioes": "BIES"}


class TaggedSpan(NamedTuple):
    """Characters `start` up to `end` of a text are of one type; the probability is the words'."""

    type: str
    text: str
    start: int
    end: int
    probability: float


class Tagging(NamedTuple):
    """The words of a row with their tags; word i is text[starts[i]:ends[i]]."""

    text: str  # the row's own, or its words with a space between them
    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    spans: tuple[TaggedSpan, ...]


class Extent(NamedTuple):
    """Which words an item answers for, and where their first pieces lie in its sequence."""

    word_indices: np.ndarray
    places: np.ndarray


class Tag(Task):
    """One tag for each word.

    task = sememe.Tag("runs/bert").fit("eng.train", dev="eng.testa", out="runs/names")
    """

    name = "tag"
    main_metric = "f1"
    config_class = TagConfig
    config: TagConfig

    def read(self, data: Any, *, labelled: bool, **reading: Any) -> Rows[TagRow]:
        """Read tagged words; without tags also running text, which is cut into words."""
        columns = reading.pop("columns", None) or {}
        for role, column in columns.items():
            if role not in ("words", "tags"):
                raise OptionError(f"tag rows have no part {role!r}; they have words, tags.")
            reading["word_column" if role == "words" else "tag_column"] = _numbered(column)
        return read_tags(
            data,
            labelled=labelled,
            mark_column=self._mark_column,
            target=self.config.scheme,
            labels_known=self.labels if labelled and self.labels else None,
            by_character=self.learned.get("by_character", False),
            **reading,
        )

    @property
    def _has_marks(self) -> bool:
        return self.config.predicate_column != 0

    @property
    def _mark_column(self) -> int | None:
        """The column that marks predicates as the reader takes it: from 0 on."""
        column = self.config.predicate_column
        return None if not column else column - (column > 0)

    def labels_of(self, rows: Several[TagRow]) -> list[str]:
        """The tags of the rows, and those that the scheme has for the same types.

        Where every word is one character, running text will be cut the same way.
        """
        found = {tag for row in rows for tag in row.tags or ()}
        scheme = tagging.detect_scheme(row.tags or () for row in rows)
        if scheme != "none" and self.config.scheme != "same":
            scheme = self.config.scheme
        if scheme != "none":
            kinds = {tagging.split_tag(tag)[1] for tag in found} - {""}
            found |= {OUTSIDE} | {
                f"{letter}-{kind}" for kind in kinds for letter in _LETTERS[scheme]
            }
        if len(found) < 2:
            raise InputError(f"Every word has the tag {min(found)!r}: there is nothing to learn.")
        is_single = all(len(word) == 1 for row in rows for word in row.words)
        has_chinese = any("\u4e00" <= word <= "\u9fff" for row in rows for word in row.words)
        self.learned = {"scheme": scheme, "by_character": is_single and has_chinese}
        if self.config.crf and not self.config.any_tags:
            self._check_order(rows, scheme)
        return sorted_labels(found)

    def _check_order(self, rows: Several[TagRow], scheme: str) -> None:
        """Refuse tags that the CRF may never write, which it could not learn."""
        from sememe.networks.crf import forbidden_pair

        for row in rows:
            if (pair := forbidden_pair(row.tags or (), scheme)) is not None:
                raise InputError(
                    f"{row.source}: {pair[1]} behind {pair[0]} breaks the rules of {scheme}, which "
                    f"the CRF keeps. Take scheme {scheme} instead of same, which mends such tags, "
                    "or any_tags."
                )

    # ---- words and sub-words --------------------------------------------------------------

    def encode(self, rows: Several[TagRow]) -> list[Item]:
        """One sequence for each window over the pieces of a row."""
        room = self.coder.room(1)
        numbers = {label: number for number, label in enumerate(self.labels)}
        items = []
        for index, pieces in enumerate(self._pieces(rows)):
            targets = _targets(rows[index], pieces, numbers)
            marks = self._marks(rows[index], pieces)
            for window in windows(len(pieces.ids), room, room // 2):
                items.append(self._item(index, pieces, targets, marks, window))
        return items

    def _pieces(self, rows: Several[TagRow]) -> list[WordPieces]:
        """Cut the words of all rows; each distinct word is cut once."""
        # Byte-level BPE sees the space that stands before every word but the first.
        space = " " if is_gpt(self.coder) else ""
        texts = [[space * (i > 0) + word for i, word in enumerate(row.words)] for row in rows]
        distinct = list(dict.fromkeys(text for row in texts for text in row))
        # What reads characters takes a word as it is.
        encode = getattr(self.coder, "encode_words", self.coder.encode)
        own = {
            text: encoding.ids for text, encoding in zip(distinct, encode(distinct), strict=True)
        }
        unknown_id = self.coder.unknown_id
        return [tagging.join_pieces([own[text] for text in row], unknown_id) for row in texts]

    def _marks(self, row: TagRow, pieces: WordPieces) -> np.ndarray | None:
        """Which pieces belong to a predicate, for rows that mark one."""
        if not self._has_marks:
            return None
        if is_gpt(self.coder):
            raise OptionError("A GPT knows no segments, by which predicates are marked.")
        if row.marks is None or not any(row.marks):
            raise InputError(f"{row.source}: no word is marked as the predicate.")
        sizes = np.diff(pieces.firsts, append=len(pieces.ids))
        return np.repeat(np.array(row.marks, np.int8), sizes)

    def _item(
        self,
        index: int,
        pieces: WordPieces,
        targets: np.ndarray | None,
        marks: np.ndarray | None,
        window: Window,
    ) -> Item:
        framed = self.coder.frame(pieces.ids[window.start : window.end])
        shift = framed.starts[0] - window.start
        if marks is not None:
            segments_T, (first,) = framed.sequence.segments_T, framed.starts
            segments_T[first : first + window.end - window.start] = marks[window.start : window.end]
        is_own = (window.first <= pieces.firsts) & (pieces.firsts < window.last)
        extent = Extent(np.flatnonzero(is_own), pieces.firsts[is_own] + shift)
        target = None
        if targets is not None:
            target = np.full(len(framed.sequence.ids_T), IGNORE_ID, np.int64)
            target[extent.places] = targets[pieces.firsts[is_own]]
        return Item((framed.sequence,), index, target, extra=extent)

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map from each token to the tags, with a CRF above it where one is asked for."""
        from sememe.networks.heads import TokenHead

        if self.config.crf:
            from sememe.networks.crf import CRFHead, allowed_transitions

            scheme = "none" if self.config.any_tags else self.learned["scheme"]
            allowed = allowed_transitions(self.labels, scheme)
            return CRFHead(width, len(self.labels), dropout=dropout, is_allowed_SC=allowed)

        # Other programs give this head a bias on every network.
        return TokenHead(width, len(self.labels), dropout=dropout, has_bias=True)

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Probabilities of the tags of each token; of a CRF scores, for it chooses them later."""
        return output if self.config.crf else softmax(output)

    # ---- predictions ----------------------------------------------------------------------

    def decode(self, row: TagRow, items: Several[Item], outputs: Several[np.ndarray]) -> Tagging:
        """The likeliest tag of each word, and the spans that the tags write."""
        own_WC = np.zeros((len(row.words), len(self.labels)))
        transitions_SC = None
        for item, output in zip(items, outputs, strict=True):
            if self.config.crf:
                from sememe.networks.crf import parted

                output, transitions_SC = parted(output)
            extent: Extent = item.extra
            own_WC[extent.word_indices] = output[extent.places]
        best, chances = _chosen(own_WC, transitions_SC)
        tags = tuple(self.labels[index] for index in best)
        text, starts, ends = _places(row)
        spans = self._spans(text, tags, chances, starts, ends)
        return Tagging(text, row.words, tags, tuple(map(float, chances)), starts, ends, spans)

    def _spans(
        self,
        text: str,
        tags: Several[str],
        chances: np.ndarray,
        starts: Several[int],
        ends: Several[int],
    ) -> tuple[TaggedSpan, ...]:
        scheme = self.learned["scheme"]
        if scheme == "none":
            return ()

        def of(span: Span) -> TaggedSpan:
            start, end = starts[span.start], ends[span.end - 1]
            chance = float(np.prod(chances[span.start : span.end]))
            return TaggedSpan(span.type, text[start:end], start, end, chance)

        return tuple(map(of, tagging.spans_of(tags, scheme)))

    def written(self, row: TagRow, prediction: Tagging, *, num: int, has_chances: bool) -> str:
        """A line for each word with its tag, as CoNLL writes them, and a blank line behind."""
        lines = [
            f"{word}\t{tag}\t{chance:.6g}" if has_chances else f"{word}\t{tag}"
            for word, tag, chance in zip(
                prediction.words, prediction.tags, prediction.probabilities, strict=True
            )
        ]
        return "\n".join([*lines, ""])

    def score(self, rows: Several[TagRow], predictions: Several[Tagging]) -> dict[str, float]:
        """Entity F1 as conlleval counts it, and the share of right tags.

        Tags without a scheme are scored each by itself, O left out.
        """
        gold = [list(row.tags or ()) for row in rows]
        said = [list(one.tags) for one in predictions]
        if self.learned["scheme"] == "none":
            return _plain_figures(gold, said)
        found = metrics.score_entities(gold, said)
        return {
            "f1": found.overall.f1,
            "precision": found.overall.precision,
            "recall": found.overall.recall,
            "accuracy": found.tag_accuracy,
        }


def _chosen(own_WC: np.ndarray, transitions_SC: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The tag of each word and its chance: each by itself, or all together with transitions."""
    if transitions_SC is None:
        return own_WC.argmax(-1), own_WC.max(-1)
    from sememe.networks.crf import best_tags, tag_chances

    best = best_tags(own_WC, transitions_SC)
    return best, tag_chances(own_WC, transitions_SC)[np.arange(len(best)), best]


def _targets(row: TagRow, pieces: WordPieces, numbers: dict[str, int]) -> np.ndarray | None:
    if row.tags is None or any(tag not in numbers for tag in row.tags):
        return None
    return tagging.targets_of(pieces, [numbers[tag] for tag in row.tags])


def _numbered(column: Any) -> int | str:
    """A column as the reader takes it: by name, or by number from 1, from the end below 0."""
    text = str(column)
    if not text.removeprefix("-").isdecimal():
        return text
    return int(text) - 1 if int(text) > 0 else int(text)


def _places(row: TagRow) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """The text of a row and where its words lie in it."""
    if row.text is not None and row.starts is not None and row.ends is not None:
        return row.text, row.starts, row.ends
    ends = np.cumsum([len(word) + 1 for word in row.words]) - 1
    starts = tuple(int(end) - len(word) for end, word in zip(ends, row.words, strict=True))
    return " ".join(row.words), starts, tuple(map(int, ends))


def _plain_figures(gold: list[list[str]], said: list[list[str]]) -> dict[str, float]:
    pairs = [pair for own, other in zip(gold, said, strict=True) for pair in zip(own, other)]  # noqa: B905
    num_right = sum(one == other != OUTSIDE for one, other in pairs)
    total = sum((one != OUTSIDE) + (other != OUTSIDE) for one, other in pairs)
    return {
        "f1": 2 * num_right / total if total else 0.0,
        "accuracy": sum(one == other for one, other in pairs) / max(len(pairs), 1),
    }
