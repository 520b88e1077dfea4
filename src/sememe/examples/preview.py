"""Examples as a person reads them: tokens, what is hidden, segments, what follows what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sememe.examples.batches import Batch, BatchSource

_LEGEND = "{seen ← true} is a hidden token: what the network sees, and what it must predict."


@dataclass(frozen=True)
class Preview:
    """One row of a batch in words."""

    tokens: list[str]  # as the network sees them, without padding
    hidden: dict[int, str]  # true tokens by their place
    segments: list[int] | None
    is_next: bool | None
    text: str | None = None  # where tokens are bytes that a person cannot read

    def __str__(self) -> str:
        """The row as lines of text."""
        words = [
            f"{{{token} ← {self.hidden[place]}}}" if place in self.hidden else token
            for place, token in enumerate(self.tokens)
        ]
        facts = [f"{len(self.tokens)} tokens"]
        if self.hidden:
            facts.append(f"{len(self.hidden)} hidden")
        if self.is_next is not None:
            facts.append("B follows A" if self.is_next else "B is from another document")
        lines = [", ".join(facts)]
        if self.segments is None:
            return "\n".join([*lines, " ".join(words) if self.text is None else self.text])
        for segment, name in enumerate("AB"):
            own = [word for word, its in zip(words, self.segments, strict=True) if its == segment]
            lines.append(f"{name}: {' '.join(own)}")
        return "\n".join(lines)


def preview(source: BatchSource, tokenizer: Any, *, num_rows: int = 3) -> list[Preview]:
    """The first rows that a training would see."""
    rows: list[Preview] = []
    for step in range(source.batches_per_epoch):
        batch = source.batch(step)
        rows += [_view(batch, row, tokenizer) for row in range(len(batch.ids_BT))]
        if len(rows) >= num_rows:
            break
    return rows[:num_rows]


def render(previews: list[Preview]) -> str:
    """Previews as text, with a word on how to read them."""
    legend = [_LEGEND] if any(row.hidden for row in previews) else []
    return "\n\n".join([*legend, *map(str, previews)])


def _view(batch: Batch, row: int, tokenizer: Any) -> Preview:
    length, width = int(batch.lengths_B[row]), batch.ids_BT.shape[1]
    ids, hidden = batch.ids_BT[row, :length].tolist(), {}
    if batch.hidden_N is not None and batch.targets_N is not None:
        own = np.flatnonzero(batch.hidden_N // width == row)
        places = (batch.hidden_N[own] - row * width).tolist()
        tokens = map(tokenizer.token, batch.targets_N[own].tolist())
        hidden = dict(zip(places, tokens, strict=True))
    return Preview(
        tokens=[tokenizer.token(index) for index in ids],
        hidden=hidden,
        segments=None if batch.segments_BT is None else batch.segments_BT[row, :length].tolist(),
        is_next=None if batch.is_next_B is None else bool(batch.is_next_B[row]),
        text=tokenizer.decode(ids, specials=True) if tokenizer.kind == "bpe" else None,
    )
