"""Rows of texts as items: one text, or two, in one order or both."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Several

import numpy as np

from sememe.examples.labelled import TextRow
from sememe.tasks.encoding import Coder
from sememe.tasks.items import Item

Target = Callable[[TextRow], np.ndarray | None]


def encode_texts(
    coder: Coder, rows: Several[TextRow], target: Target, *, both_orders: bool = False
) -> list[Item]:
    """One item for each row: its text, or its two texts as one sequence or as both orders."""
    firsts = coder.encode([row.text for row in rows])
    seconds = iter(coder.encode([row.second for row in rows if row.second is not None]))
    items = []
    for index, (row, first) in enumerate(zip(rows, firsts, strict=True)):
        if row.second is None:
            framed = [coder.frame(first.ids)]
        else:
            second = next(seconds)
            framed = [coder.frame(first.ids, second.ids)]
            if both_orders:
                framed.append(coder.frame(second.ids, first.ids))
        items.append(
            Item(
                tuple(one.sequence for one in framed), index, target(row),
                is_cut=any(one.is_cut for one in framed),
            )
        )  # fmt: skip
    return items


def is_gpt(coder: Coder) -> bool:
    """Whether sequences are made for a GPT."""
    return coder.kind == "gpt"
