"""Tagging: words in, one tag per word out, predicted at its first sub-word token.

Sentences longer than the network's context are read in overlapping windows, never truncated. Tags
become spans of the text, which are scored.
"""

from collections.abc import Iterable, Sequence as Several
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe import metrics
from sememe.errors import InputError, OptionError
from sememe.examples import tagging
from sememe.examples.labelled.rows import LabelledRows, Note, TagRow, silent
from sememe.examples.labelled.tags import open_tags, read_tags
from sememe.examples.labelled.texts import sorted_labels
from sememe.examples.tagging import IGNORE_ID, OUTSIDE, Span, WordPieces
from sememe.nn.crf import (
    CRFHead,
    allowed_transitions,
    best_tags,
    forbidden_pair,
    parted,
    tag_marginals,
)
from sememe.nn.encoders import Coder, Reads
from sememe.nn.heads import TokenHead
from sememe.nn.rows import TextWindow, windows
from sememe.tasks.config import TagConfig
from sememe.tasks.objective import Item
from sememe.tasks.scores import beside_majority
from sememe.tasks.task import Task
from sememe.tasks.texts import softmax
from sememe.text.characters import is_han
from sememe.text.tables import FileTable


class TagExtent(NamedTuple):
    """The words that an item predicts, and the positions of their first tokens."""

    word_indices: np.ndarray
    places: np.ndarray


def encode_tags(
    coder: Coder, rows: Several[TagRow], labels: Several[str], *, has_marks: bool
) -> list[Item]:
    """One item per window over the tokens of a row; `has_marks` if rows mark a predicate."""
    room = coder.room(1)
    numbers = {label: number for number, label in enumerate(labels)}
    items = []
    for index, (row, pieces) in enumerate(zip(rows, _pieces(coder, rows), strict=True)):
        targets = _targets(row, pieces, numbers)
        marks = _marks(coder, row, pieces) if has_marks else None
        items += [
            _item(coder, index, pieces, targets, marks, window)
            for window in windows(len(pieces.ids), room, room // 2)
        ]
    return items


def _pieces(coder: Coder, rows: Several[TagRow]) -> list[WordPieces]:
    """Tokenize the words of all rows; each distinct word once."""
    # Byte-level BPE sees the space before every word except the first.
    space = " " if coder.is_gpt else ""
    texts = [[space * (i > 0) + word for i, word in enumerate(row.words)] for row in rows]
    distinct = list(dict.fromkeys(text for row in texts for text in row))
    encodings = coder.encode_words(distinct)
    own = {text: encoding.ids for text, encoding in zip(distinct, encodings, strict=True)}
    return [tagging.join_pieces([own[text] for text in row], coder.unknown_id) for row in texts]


def _targets(row: TagRow, pieces: WordPieces, numbers: dict[str, int]) -> np.ndarray | None:
    if row.tags is None or any(tag not in numbers for tag in row.tags):
        return None
    return tagging.targets_of(pieces, [numbers[tag] for tag in row.tags])


def _marks(coder: Coder, row: TagRow, pieces: WordPieces) -> np.ndarray:
    """Which tokens belong to the predicate that a row marks."""
    if coder.is_gpt:
        raise OptionError("A GPT knows no segments, by which predicates are marked.")
    if row.marks is None or not any(row.marks):
        raise InputError(f"{row.source}: no word is marked as the predicate.")
    sizes = np.diff(pieces.firsts, append=len(pieces.ids))
    return np.repeat(np.array(row.marks, np.int8), sizes)


def _item(
    coder: Coder,
    index: int,
    pieces: WordPieces,
    targets: np.ndarray | None,
    marks: np.ndarray | None,
    window: TextWindow,
) -> Item:
    framed = coder.frame(pieces.ids[window.start : window.end])
    shift = framed.starts[0] - window.start
    if marks is not None:
        segments_T, (first,) = framed.sequence.segments_T, framed.starts
        segments_T[first : first + window.end - window.start] = marks[window.start : window.end]
    is_own = (window.first <= pieces.firsts) & (pieces.firsts < window.last)
    extent = TagExtent(np.flatnonzero(is_own), pieces.firsts[is_own] + shift)
    target = None
    if targets is not None:
        target = np.full(len(framed.sequence.ids_T), IGNORE_ID, np.int64)
        target[extent.places] = targets[pieces.firsts[is_own]]
    return Item((framed.sequence,), index, target, extra=extent)


class TaggedSpan(NamedTuple):
    """Characters `start` up to `end` of a text are of one type; the probability is the words'."""

    type: str
    text: str
    start: int
    end: int
    probability: float


class Tagging(NamedTuple):
    """The words of a row with their tags; word i is text[starts[i]:ends[i]]."""

    text: str  # the row's own text, or its words joined by spaces
    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    spans: tuple[TaggedSpan, ...]


def tagging_of(row: TagRow, tags: tuple[str, ...], chances: np.ndarray, scheme: Any) -> Tagging:
    """The tags of a row's words with their probabilities, and the spans that they form."""
    text, starts, ends = _places(row)

    def tagged(span: Span) -> TaggedSpan:
        start, end = starts[span.start], ends[span.end - 1]
        chance = float(np.prod(chances[span.start : span.end]))
        return TaggedSpan(span.type, text[start:end], start, end, chance)

    spans = () if scheme == "none" else tuple(map(tagged, tagging.spans_of(tags, scheme)))
    return Tagging(text, row.words, tags, tuple(map(float, chances)), starts, ends, spans)


def _places(row: TagRow) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """The text of a row, and the positions of its words."""
    if row.text is not None and row.starts is not None and row.ends is not None:
        return row.text, row.starts, row.ends
    ends = np.cumsum([len(word) + 1 for word in row.words]) - 1
    starts = tuple(int(end) - len(word) for end, word in zip(ends, row.words, strict=True))
    return " ".join(row.words), starts, tuple(map(int, ends))


def _plain_metrics(gold: list[list[str]], said: list[list[str]]) -> dict[str, float]:
    pairs = [pair for own, other in zip(gold, said, strict=True) for pair in zip(own, other)]  # noqa: B905
    num_right = sum(one == other != OUTSIDE for one, other in pairs)
    total = sum((one != OUTSIDE) + (other != OUTSIDE) for one, other in pairs)
    return {
        "f1": 2 * num_right / total if total else 0.0,
        "accuracy": sum(one == other for one, other in pairs) / max(len(pairs), 1),
    }


_LETTERS = {"iob1": "BI", "iob2": "BI", "bioes": "BIES"}


class Tag(Task):
    """One tag for each word.

    task = sememe.Tag("runs/bert").fit("eng.train", dev="eng.testa", out="runs/names")
    """

    kind = "tag"
    main_metric = "f1"
    learns = ("scheme",)
    config_class = TagConfig
    config: TagConfig

    @property
    def reads(self) -> Reads:  # type: ignore[override]
        """One vector per word; rows that mark a predicate need roles."""
        return "roles" if self.config.predicate_column else "words"

    def read(
        self, data: Any, *, labelled: bool, columns: Any = None, **reading: Any
    ) -> LabelledRows[TagRow]:
        """Read tagged words; without tags also plain text, which is split into words."""
        return read_tags(
            data,
            labelled=labelled,
            **self._places(columns),
            target=self.config.scheme,
            labels_known=self.labels if labelled and self.labels else None,
            by_character=self.learned.get("by_character", False),
            **reading,
        )

    def open_rows(
        self, data: Any, *, encoding: str, columns: Any = None, on_note: Note = silent
    ) -> Iterable[FileTable]:
        """The tables of data without labels."""
        places = self._places(columns)
        return open_tags(data, labelled=False, encoding=encoding, on_note=on_note, **places)

    def _places(self, columns: Any) -> dict[str, Any]:
        """The columns for the reader, which counts them from 0."""
        marks = self.config.predicate_column
        places: dict[str, Any] = {"mark_column": marks - (marks > 0) if marks else None}
        for role, column in (columns or self.columns).items():
            if role not in ("words", "tags"):
                raise OptionError(f"tag rows have no part {role!r}; they have words, tags.")
            places["word_column" if role == "words" else "tag_column"] = _numbered(column)
        return places

    def labels_of(self, rows: Several[TagRow]) -> list[str]:
        """The tags of the rows, and those that the scheme adds for the same types.

        If every word is one character, plain text will be split the same way.
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
        has_chinese = any(is_han(char) for row in rows for word in row.words for char in word[:1])
        self.learned = {"scheme": scheme, "by_character": is_single and has_chinese}
        if self.config.crf and not self.config.any_tags:
            self._check_order(rows, scheme)
        return sorted_labels(found)

    def learn_foreign(self, content: dict[str, Any], folder: Path) -> None:
        """Find out from the labels whether tags form spans."""
        is_spans = any(label.startswith("B-") for label in self.labels)
        self.learned = {"scheme": "iob2" if is_spans else "none", "by_character": False}

    def _check_order(self, rows: Several[TagRow], scheme: str) -> None:
        """Raise an error for tag sequences that the CRF forbids and so could not learn."""
        for row in rows:
            if (pair := forbidden_pair(row.tags or (), scheme)) is not None:
                raise InputError(
                    f"{row.source}: {pair[1]} after {pair[0]} is not valid in {scheme}, which the "
                    f"CRF enforces. Choose scheme {scheme} instead of same, which corrects such "
                    "tags, or any_tags."
                )

    def encode(self, rows: Several[TagRow]) -> list[Item]:
        """One sequence per window over the tokens of a row."""
        has_marks = self.config.predicate_column != 0
        return encode_tags(self.coder, rows, self.labels, has_marks=has_marks)

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map from each token to the tags, with a CRF if requested."""
        if self.config.crf:
            scheme = "none" if self.config.any_tags else self.learned["scheme"]
            allowed = allowed_transitions(self.labels, scheme)
            return CRFHead(width, len(self.labels), dropout=dropout, is_allowed_SC=allowed)

        # Other programs give this head a bias on every network.
        return TokenHead(width, len(self.labels), dropout=dropout, has_bias=True)

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Tag probabilities of each token; with a CRF raw scores, because it decodes them later."""
        return output if self.config.crf else softmax(output)

    def decode(self, row: TagRow, items: Several[Item], outputs: Several[np.ndarray]) -> Tagging:
        """The most likely tag of each word, and the spans that the tags form."""
        own_WC = np.zeros((len(row.words), len(self.labels)))
        transitions_SC = None
        for item, output in zip(items, outputs, strict=True):
            if self.config.crf:
                output, transitions_SC = parted(output)
            extent: TagExtent = item.extra
            own_WC[extent.word_indices] = output[extent.places]
        best, chances = _chosen(own_WC, transitions_SC)
        tags = tuple(self.labels[index] for index in best)
        return tagging_of(row, tags, chances, self.learned["scheme"])

    def prediction_line(self, prediction: Tagging, *, k: int = 1, has_chances: bool = False) -> str:
        """One line per word with its tag, in CoNLL format, and a blank line at the end."""
        lines = [
            f"{word}\t{tag}\t{chance:.6g}" if has_chances else f"{word}\t{tag}"
            for word, tag, chance in zip(
                prediction.words, prediction.tags, prediction.probabilities, strict=True
            )
        ]
        return "\n".join([*lines, ""])

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The tags of the words with their probabilities, and the entities that they form."""
        spans = {} if self.learned["scheme"] == "none" else {"entities": list[TaggedSpan]}
        return {"prediction": list[str], "probability": list[float], **spans}

    def prediction_cells(self, prediction: Tagging, k: int = 1) -> list[Any]:
        """The cells of these columns."""
        spans = [] if self.learned["scheme"] == "none" else [[*prediction.spans]]
        return [[*prediction.tags], [*prediction.probabilities], *spans]

    def measure(self, rows: Several[TagRow], predictions: Several[Tagging]) -> dict[str, float]:
        """Entity F1 as in conlleval, and the accuracy of tags.

        Tags without a scheme are scored one by one, without O.
        """
        gold = [list(row.tags or ()) for row in rows]
        said = [list(one.tags) for one in predictions]
        if self.learned["scheme"] == "none":
            return _plain_metrics(gold, said)
        found = metrics.score_entities(gold, said)
        return {
            "f1": found.overall.f1,
            "precision": found.overall.precision,
            "recall": found.overall.recall,
            "accuracy": found.tag_accuracy,
        }

    def metric_names(self, rows: Several[Any]) -> dict[str, str]:
        """Those of entities, or of tags without a scheme."""
        if self.learned.get("scheme") == "none":  # unknown before rows are read
            return {"f1": "tag_f1"}
        return {name: f"entity_{name}" for name in ("f1", "precision", "recall")}

    def explain(self, rows: Several[TagRow], predictions: Several[Tagging]) -> dict[str, Any]:
        """What the most frequent tag scores."""
        said = [tag for one in predictions for tag in one.tags]
        return beside_majority([tag for row in rows for tag in row.tags or ()], said)


def _chosen(own_WC: np.ndarray, transitions_SC: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Each word's tag and its probability, decoded independently or with transitions."""
    if transitions_SC is None:
        return own_WC.argmax(-1), own_WC.max(-1)

    best = best_tags(own_WC, transitions_SC)
    return best, tag_marginals(own_WC, transitions_SC)[np.arange(len(best)), best]


def _numbered(column: Any) -> int | str:
    """A column in the reader's form: a name, or a number from 1 (negative: from the end)."""
    text = str(column)
    if not text.removeprefix("-").isdecimal():
        return text
    return int(text) - 1 if int(text) > 0 else int(text)
