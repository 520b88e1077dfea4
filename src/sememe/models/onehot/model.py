"""OneHot: a corpus in, its words as one-hot vectors out."""

from typing import Any

from sememe.errors import OptionError
from sememe.models.fitting import Prepared, Request
from sememe.models.onehot.config import OneHotConfig
from sememe.models.static.model import StaticModel
from sememe.progress import History
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

    def prepare_tokens(self, tokens: TokenStore, request: Request) -> Prepared:
        """Read the words of the text; there is nothing to train."""
        if request.start is not None or request.callbacks:
            raise OptionError("One-hot vectors are not trained: they take no start or callbacks.")
        size = self.trainable_words(tokens)

        def take_words() -> None:
            self.adopt(tokens.vocabulary.cut(size))
            self.history = History([{"words": tokens.num_tokens}])

        return Prepared(self.plan_of(tokens, size), take_words)

    def make_vectors(self) -> OneHotVectors:
        """The vectors, which are never stored."""
        return OneHotVectors(self.vocabulary)

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return {**super().manifest(), "dim": len(self.vocabulary)}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """No tensors except the words."""
        return {}
