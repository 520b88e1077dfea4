"""word2vec: skip-gram and cbow with negative sampling, hierarchical or full softmax."""

from sememe.static.word2vec.config import Word2VecConfig
from sememe.static.word2vec.model import Word2Vec

__all__ = ["Word2Vec", "Word2VecConfig"]
