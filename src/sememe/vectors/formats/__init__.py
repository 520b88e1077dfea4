"""Vector files of other tools: word2vec text and binary, GloVe text, fastText, floret."""

from sememe.vectors.formats.convert import convert
from sememe.vectors.formats.reading import read_vectors
from sememe.vectors.formats.writing import write_vectors

__all__ = ["convert", "read_vectors", "write_vectors"]
