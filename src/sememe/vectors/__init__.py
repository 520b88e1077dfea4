"""Word vectors in use: look-up, neighbors, analogies, an index, and the vector file formats."""

from sememe.vectors.formats.files import write_vectors
from sememe.vectors.opening import convert, load
from sememe.vectors.subwords import SubwordVectors
from sememe.vectors.wordvectors import Neighbor, Neighbors, WordVectors

__all__ = [
    "Neighbor",
    "Neighbors",
    "SubwordVectors",
    "WordVectors",
    "convert",
    "load",
    "write_vectors",
]
