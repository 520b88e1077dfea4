"""Word vectors in use: look-up, neighbors, analogies, an index, and the vector file formats."""

from sememe.vectors.loading import load
from sememe.vectors.subwords import SubwordVectors
from sememe.vectors.wordvectors import Neighbor, WordVectors

__all__ = ["Neighbor", "SubwordVectors", "WordVectors", "load"]
