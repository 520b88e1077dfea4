"""Vector files of other tools: word2vec text and binary, GloVe text, fastText, floret."""

from sememe.vectors.formats.files import read_vectors, write_vectors

__all__ = ["read_vectors", "write_vectors"]
