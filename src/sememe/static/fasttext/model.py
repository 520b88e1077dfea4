"""FastText: a corpus in, vectors of words and of their character n-grams out."""

from __future__ import annotations

from typing import Any

from sememe.errors import OptionError
from sememe.static.fasttext.config import FastTextConfig
from sememe.static.fasttext.training import FastTextRun
from sememe.static.fitting import Request
from sememe.static.word2vec.model import WindowModel
from sememe.tokens.store import TokenStore
from sememe.vectors.subwords import SubwordVectors


class FastText(WindowModel):
    """Word vectors that know the inside of words (Bojanowski et al. 2017).

    model = sememe.FastText(dim=100).fit("corpus.txt")
    model.vectors["unseenword"]
    """

    kind = "fasttext"
    config_class = FastTextConfig
    run_class = FastTextRun

    def train(self, tokens: TokenStore, request: Request) -> None:
        """Learn from a token store as the request says."""
        if self.config.hash_count and request.start is not None:
            raise OptionError(
                "In a compact table no word has a row that could take a given vector: "
                "leave out start or hash_count."
            )
        super().train(tokens, request)

    def make_vectors(self) -> SubwordVectors:
        """The vectors of words and of their n-grams."""
        config = self.config
        if config.hash_count:
            return SubwordVectors.hashed(
                self.input, minn=config.minn, maxn=config.maxn, hash_count=config.hash_count,
                words=self.vocabulary,
            )  # fmt: skip
        return SubwordVectors(
            self.vocabulary, self.input, minn=config.minn, maxn=config.maxn, bucket=config.bucket,
            pruned=self.tensors["pruned"],
        )  # fmt: skip

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with the ends of their shapes."""
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("input", "output"), (self.config.dim,))
        return shapes if self.config.hash_count else {**shapes, "pruned": (2,)}

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model, with how its words are put together."""
        return {**super().manifest(), "subwords": self.make_vectors().subwords.options()}
