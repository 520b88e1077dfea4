"""What may happen while a model trains: callables that are asked every so many words.

A callback has `every_words` and is called with the model (its vectors are the current ones) and
the words done; it returns True to end the training there. Figures that it leaves in `record`
go to the model's history.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from sememe.errors import OptionError
from sememe.progress import History

if TYPE_CHECKING:
    from sememe.static.model import StaticModel
    from sememe.vectors import WordVectors


class Callback(Protocol):
    """The shape of a callback."""

    every_words: int

    def __call__(self, model: StaticModel, record: dict[str, Any]) -> bool | None:
        """Look at the model at a point of its training; True ends it."""


class Evaluate:
    """Score the current vectors every N words; end when the score has stopped rising."""

    def __init__(
        self,
        score: Callable[[WordVectors], float],
        *,
        every_words: int,
        patience: int = 0,
        name: str = "score",
    ) -> None:
        """`patience` scores in a row that are not above the best one end the training; 0: never."""
        if every_words < 1 or patience < 0:
            raise OptionError("every_words must be at least 1 and patience at least 0.")
        self.every_words, self.patience, self.name = every_words, patience, name
        self._score = score
        self.best = float("-inf")
        self.num_worse = 0

    def __call__(self, model: StaticModel, record: dict[str, Any]) -> bool:
        """Score, keep the figure, and say whether to stop."""
        record[self.name] = value = float(self._score(model.vectors))
        return self._weigh(value)

    def restore(self, history: History) -> None:
        """Take up what a run had seen before it was stopped."""
        self.best, self.num_worse = float("-inf"), 0
        for record in history:
            if record.get(self.name) is not None:
                self._weigh(record[self.name])

    def _weigh(self, value: float) -> bool:
        if value > self.best:
            self.best, self.num_worse = value, 0
        else:
            self.num_worse += 1
        return bool(self.patience) and self.num_worse >= self.patience
