"""Multiple choice: a context with several continuations or answers in, the right one out."""

from __future__ import annotations

from collections.abc import Sequence as Several
from typing import Any, NamedTuple

import numpy as np

from sememe import metrics
from sememe.examples.labelled import Rows, TextRow, read_texts
from sememe.tasks.classify import softmax
from sememe.tasks.items import Item
from sememe.tasks.task import Task
from sememe.tasks.texts import is_gpt


class Choice(NamedTuple):
    """The likeliest choice of a row, counted from 0, and the probability of every one."""

    number: int
    text: str
    probabilities: tuple[float, ...]


class Choose(Task):
    """The right one of several choices, as in SWAG, RACE and Story Cloze.

    task = sememe.Choose("runs/bert").fit("train.csv", dev="dev.csv", out="runs/endings")
    """

    name = "choose"
    has_labels = False
    main_metric = "accuracy"

    def read(self, data: Any, *, labelled: bool, **reading: Any) -> Rows[TextRow]:
        """Read contexts with their choices; rows may have different numbers of them."""
        return read_texts(data, kind="choose", labelled=labelled, **reading)

    def encode(self, rows: Several[TextRow]) -> list[Item]:
        """One sequence for each choice: context, mark, question with choice.

        For a GPT the question stands with the context (Radford et al. 2018, 3.3).
        """
        texts = [self._texts(row) for row in rows]
        firsts = self.coder.encode([first for first, _ in texts])
        seconds = iter(self.coder.encode([one for _, choices in texts for one in choices]))
        items = []
        for index, (row, first) in enumerate(zip(rows, firsts, strict=True)):
            framed = [self.coder.frame(first.ids, next(seconds).ids) for _ in texts[index][1]]
            is_cut = any(one.is_cut for one in framed)
            target = None if row.label is None else np.array(int(row.label), np.int64)
            items.append(Item(tuple(one.sequence for one in framed), index, target, is_cut=is_cut))
        return items

    def _texts(self, row: TextRow) -> tuple[str, list[str]]:
        choices = list(row.choices or ())
        if not row.second:
            return row.text, choices
        if is_gpt(self.coder):
            return f"{row.text} {row.second}", choices
        return row.text, [f"{row.second} {choice}" for choice in choices]

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map to one number for each choice."""
        from sememe.networks.heads import ChoiceHead

        return ChoiceHead(width, 1, dropout=dropout, has_bias=has_bias)

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Probabilities."""
        return softmax(output)

    def decode(self, row: TextRow, items: Several[Item], outputs: Several[np.ndarray]) -> Choice:
        """The likeliest choice."""
        (chances,) = outputs
        best = int(chances.argmax())
        return Choice(best, (row.choices or ())[best], tuple(map(float, chances)))

    def written(self, row: TextRow, prediction: Choice, *, num: int, has_chances: bool) -> str:
        """The numbers of the likeliest choices, counted from 0."""
        ranked = sorted(enumerate(prediction.probabilities), key=lambda pair: -pair[1])
        chosen = ranked if num < 0 else ranked[:num]
        return " ".join(f"{index} {p:.6g}" if has_chances else str(index) for index, p in chosen)

    def score(self, rows: Several[TextRow], predictions: Several[Choice]) -> dict[str, float]:
        """The share of right choices."""
        gold = [int(str(row.label)) for row in rows]
        return {"accuracy": metrics.accuracy(gold, [one.number for one in predictions])}
