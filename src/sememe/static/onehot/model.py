"""OneHot: a corpus in, its words out, each with a 1 in a place of its own."""

from __future__ import annotations

from typing import Any

from sememe.errors import OptionError
from sememe.progress import History
from sememe.static.fitting import Request, content_of, plan_of
from sememe.static.model import StaticModel
from sememe.static.onehot.config import OneHotConfig
from sememe.tokens.store import TokenStore
from sememe.vectors.onehot import KIND, OneHotVectors


class OneHot(StaticModel):
    """The baseline that knows words but no similarity: every pair has the cosine 0.

    model = sememe.OneHot().fit("corpus.txt")
    sememe.evaluate_words(model.vectors)
    """

    kind = KIND
    config_class = OneHotConfig

    def __repr__(self) -> str:
        return f"OneHot({len(self.vocabulary):,} words)"

    def train(self, tokens: TokenStore, request: Request) -> None:
        """Take the words of the text; there is nothing to learn."""
        if request.start is not None or request.callbacks:
            raise OptionError("One-hot vectors are not trained: they take no start or callbacks.")
        size = self.trainable_words(tokens)
        self.adopt(tokens.vocabulary.cut(size))
        self.plan = plan_of(self, content_of(tokens, size))
        self.history = History([{"words": tokens.num_tokens}])
        if request.out is not None:
            self.save(request.out)

    def make_vectors(self) -> OneHotVectors:
        """The vectors, none of which is ever written out."""
        return OneHotVectors(self.vocabulary)

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {**super().manifest(), "dim": len(self.vocabulary)}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """No tensor but the words."""
        return {}
