"""The batch of a training step, the interface of batch sources, and a readable preview.

B rows, T positions, N masked tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.localization import say, translate


class TokenSequence(NamedTuple):
    """One sequence: ids, and the text that each belongs to."""

    ids_T: np.ndarray  # int32
    segments_T: np.ndarray  # int8; 0 for the first text, 1 for the second


Split = Literal["train", "validation"]


@dataclass(frozen=True)
class Batch:
    """Some rows of ids, each `lengths_B` long and padded.

    A masked batch has the tokens to predict: their positions in the flattened rows and their true
    ids. A batch of running text has none, because each token predicts the next one of its row.
    """

    ids_BT: np.ndarray  # int32
    lengths_B: np.ndarray  # int32
    num_tokens: int  # of all rows, without padding
    segments_BT: np.ndarray | None = None  # int8; 0 for [CLS] A [SEP], 1 for B [SEP]
    hidden_N: np.ndarray | None = None  # int64, ascending
    targets_N: np.ndarray | None = None  # int32
    is_next_B: np.ndarray | None = None  # int8; 1: B follows A, 0: it does not, -1: no label

    def part(self, index: int, num_parts: int) -> Batch:
        """Every `num_parts`-th row from row `index` on: the part of one of several processes."""
        own = slice(index, None, num_parts)
        hidden_N = targets_N = None
        if self.hidden_N is not None and self.targets_N is not None:
            width = self.ids_BT.shape[1]
            rows_N, places_N = np.divmod(self.hidden_N, width)
            is_own_N = rows_N % num_parts == index
            hidden_N = (rows_N // num_parts * width + places_N)[is_own_N]
            targets_N = self.targets_N[is_own_N]
        return Batch(
            ids_BT=self.ids_BT[own],
            lengths_B=self.lengths_B[own],
            num_tokens=int(self.lengths_B[own].sum()),
            segments_BT=None if self.segments_BT is None else self.segments_BT[own],
            hidden_N=hidden_N,
            targets_N=targets_N,
            is_next_B=None if self.is_next_B is None else self.is_next_B[own],
        )

    def first(self, num: int) -> Batch:
        """The first `num` rows."""
        if num >= len(self.ids_BT):
            return self
        hidden_N = targets_N = None
        if self.hidden_N is not None and self.targets_N is not None:
            end = int(np.searchsorted(self.hidden_N, num * self.ids_BT.shape[1]))
            hidden_N, targets_N = self.hidden_N[:end], self.targets_N[:end]
        return Batch(
            ids_BT=self.ids_BT[:num],
            lengths_B=self.lengths_B[:num],
            num_tokens=int(self.lengths_B[:num].sum()),
            segments_BT=None if self.segments_BT is None else self.segments_BT[:num],
            hidden_N=hidden_N,
            targets_N=targets_N,
            is_next_B=None if self.is_next_B is None else self.is_next_B[:num],
        )


class RowBatches:
    """Batches of an endless sequence of rows, each a function of (seed, step).

    So resume needs only the step. Fixed batches are the same in every epoch.
    """

    pad_id: int
    num_tokens: int  # of the text

    def __init__(self, length: int, batch_size: int, seed: int, *, is_fixed: bool) -> None:
        if not 2 <= length <= 1 << 20:
            raise OptionError(f"length must be between 2 and {1 << 20:,}, not {length}.")
        if not 1 <= batch_size <= 1 << 20:
            raise OptionError(f"batch_size must be between 1 and {1 << 20:,}, not {batch_size}.")
        self.length, self.batch_size, self._seed = length, batch_size, seed
        self.is_fixed = is_fixed

    @property
    def rows_per_epoch(self) -> int:
        """Rows per epoch."""
        raise NotImplementedError

    @property
    def batches_per_epoch(self) -> int:
        """Batches per epoch; the last one may be smaller."""
        return -(-self.rows_per_epoch // self.batch_size)

    @property
    def num_trimmed(self) -> int:
        """Tokens that one epoch drops."""
        return 0

    @property
    def num_labelled(self) -> int:
        """Rows of one epoch that have a next-sentence label."""
        return 0

    def num_steps(self, epochs: float) -> int:
        """Steps of `epochs` epochs."""
        return -(-round(epochs * self.rows_per_epoch) // self.batch_size)

    def batch(self, step: int) -> Any:
        """The batch of a step, counted from 0.

        It may hold the end of one epoch and the start of the next, so that all are full.
        """
        if self.is_fixed:
            step %= self.batches_per_epoch
        return self.rows(step * self.batch_size, self.batch_size)

    def rows(self, first: int, num: int) -> Any:
        """The rows `first` … `first + num` of the sequence, fewer if fixed ones end."""
        raise NotImplementedError


def join_batches(parts: Sequence[Batch], pad_id: int) -> Batch:
    """Stack the rows of several batches, padding the narrower ones."""
    width = max(part.ids_BT.shape[1] for part in parts)
    first_rows = np.cumsum([0, *(len(part.ids_BT) for part in parts)])

    def moved(part: Batch, first_row: int) -> np.ndarray:
        rows_N, places_N = np.divmod(np.asarray(part.hidden_N), part.ids_BT.shape[1])
        return (rows_N + first_row) * width + places_N

    is_masked = parts[0].hidden_N is not None
    return Batch(
        ids_BT=np.concatenate([_widened(part.ids_BT, width, pad_id) for part in parts]),
        lengths_B=np.concatenate([part.lengths_B for part in parts]),
        num_tokens=sum(part.num_tokens for part in parts),
        segments_BT=_joined([_widened(part.segments_BT, width, 0) for part in parts]),
        hidden_N=_joined(list(map(moved, parts, first_rows)) if is_masked else [None]),
        targets_N=_joined([part.targets_N for part in parts]),
        is_next_B=_joined([part.is_next_B for part in parts]),
    )


def _widened(rows_BT: np.ndarray | None, width: int, filling: int) -> Any:
    if rows_BT is None:
        return None
    missing = width - rows_BT.shape[1]
    return np.pad(rows_BT, ((0, 0), (0, missing)), constant_values=filling) if missing else rows_BT


def _joined(arrays: list[Any]) -> np.ndarray | None:
    return None if arrays[0] is None else np.concatenate(arrays)


_LEGEND = "{seen ← true}: a hidden token, as the network sees it ← the one it must predict."


_LABELS = {1: "B follows A", 0: "B is from another document", -1: "no next-sentence label"}


@dataclass(frozen=True)
class Preview:
    """One row of a batch as text."""

    tokens: list[str]  # as the network sees them, without padding
    hidden: dict[int, str]  # true tokens by their place
    segments: list[int] | None
    is_next: int | None  # as in a batch
    text: str | None = None  # where tokens are bytes that a person cannot read

    def __str__(self) -> str:
        """The row as lines of text."""
        words = [
            f"{{{token} ← {self.hidden[place]}}}" if place in self.hidden else token
            for place, token in enumerate(self.tokens)
        ]
        facts = [say("{num} tokens", num=len(self.tokens))]
        if self.hidden:
            facts.append(say("{num} hidden", num=len(self.hidden)))
        if self.is_next is not None:
            facts.append(say(_LABELS[self.is_next]))
        lines = [say(", ").join(facts)]
        if self.segments is None:
            return "\n".join([*lines, " ".join(words) if self.text is None else self.text])
        for segment, name in enumerate("AB"):
            own = [word for word, its in zip(words, self.segments, strict=True) if its == segment]
            lines.append(f"{name}: {' '.join(own)}")
        return "\n".join(lines)


def preview(source: RowBatches, tokenizer: Any, *, num_rows: int = 3) -> list[Preview]:
    """The first rows of a training."""
    rows: list[Preview] = []
    for step in range(source.batches_per_epoch):
        batch = source.batch(step)
        rows += [_view(batch, row, tokenizer) for row in range(len(batch.ids_BT))]
        if len(rows) >= num_rows:
            break
    return rows[:num_rows]


def render(previews: list[Preview]) -> str:
    """Previews as text, with a legend."""
    legend = [translate(_LEGEND)] if any(row.hidden for row in previews) else []
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
        is_next=None if batch.is_next_B is None else int(batch.is_next_B[row]),
        text=tokenizer.decode(ids, specials=True) if tokenizer.kind == "bpe" else None,
    )
