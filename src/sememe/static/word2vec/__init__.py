"""word2vec: skip-gram and cbow with negative sampling, hierarchical or full softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sememe.lazy import lazily

if TYPE_CHECKING:
    from sememe.static.word2vec.config import Word2VecConfig as Word2VecConfig
    from sememe.static.word2vec.model import Word2Vec as Word2Vec

__all__ = ["Word2Vec", "Word2VecConfig"]

__getattr__ = lazily(__name__, {"Word2Vec": "model", "Word2VecConfig": "config"})
