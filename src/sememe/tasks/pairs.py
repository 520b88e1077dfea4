"""Pairs: two texts in, one of several labels out, such as whether one follows from the other."""

from __future__ import annotations

from collections.abc import Sequence as Several

from sememe.examples.labelled import TextRow
from sememe.tasks.classify import Classify
from sememe.tasks.items import Item
from sememe.tasks.texts import encode_texts


class Pairs(Classify):
    """One label for each pair of texts.

    task = sememe.Pairs("runs/bert").fit("train.tsv", dev="dev.tsv", out="runs/follows")
    """

    name = "pairs"

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """Both texts in one sequence, or in both orders."""
        both = self.config.both_orders == "yes"
        return encode_texts(self.coder, rows, self.target(), both_orders=both)
