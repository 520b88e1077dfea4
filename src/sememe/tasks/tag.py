"""Tagging: words in, a tag for each out, on its first sub-word; the rest is not asked about.

Sentences longer than the network sees are read in overlapping windows, never cut.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples import tagging
from sememe.examples.labelled import Rows, TagRow, read_tags, sorted_labels
from sememe.examples.tagging import OUTSIDE
from sememe.tasks.classify import softmax
from sememe.tasks.config import TagConfig
from sememe.tasks.items import Item
from sememe.tasks.tag_windows import Extent, encode_tags
from sememe.tasks.taggings import Tagging, tag_figures, tagging_of
from sememe.tasks.task import Task

_LETTERS = {"iob1": "BI", "iob2": "BI", "bioes": "BIES"}


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

    def encode(self, rows: Several[TagRow]) -> list[Item]:
        """One sequence for each window over the pieces of a row."""
        has_marks = self.config.predicate_column != 0
        return encode_tags(self.coder, rows, self.labels, has_marks=has_marks)

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
        return tagging_of(row, tags, chances, self.learned["scheme"])

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
        """Entity F1 as conlleval counts it, and the share of right tags."""
        return tag_figures(rows, predictions, self.learned["scheme"])


def _chosen(own_WC: np.ndarray, transitions_SC: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The tag of each word and its chance: each by itself, or all together with transitions."""
    if transitions_SC is None:
        return own_WC.argmax(-1), own_WC.max(-1)
    from sememe.networks.crf import best_tags, tag_chances

    best = best_tags(own_WC, transitions_SC)
    return best, tag_chances(own_WC, transitions_SC)[np.arange(len(best)), best]


def _numbered(column: Any) -> int | str:
    """A column as the reader takes it: by name, or by number from 1, from the end below 0."""
    text = str(column)
    if not text.removeprefix("-").isdecimal():
        return text
    return int(text) - 1 if int(text) > 0 else int(text)
