"""word2vec: skip-gram and cbow with negative sampling, hierarchical or full softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sememe.static.word2vec.config import Word2VecConfig

if TYPE_CHECKING:
    from sememe.static.word2vec.model import Word2Vec as Word2Vec

__all__ = ["Word2Vec", "Word2VecConfig"]


def __getattr__(name: str) -> Any:
    # The options alone are what the command line needs to print its help.
    if name == "Word2Vec":
        from sememe.static.word2vec.model import Word2Vec

        return Word2Vec
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
