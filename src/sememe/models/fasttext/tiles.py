"""fastText on a GPU: the tiles of word2vec, with input vectors of several rows."""

import numpy as np

from sememe.models.fasttext.model import FastTextRun
from sememe.models.word2vec.tiles.plan import InputRows
from sememe.models.word2vec.tiles.run import TileRun


class FastTextTileRun(TileRun, FastTextRun):
    """A run of tiles whose input rows belong to words and n-grams.

    Every pair reads and changes the rows themselves, where the CPU composes a word once in a part
    of the text.
    """

    def input_rows(self) -> InputRows:
        """Which rows make up the input vector of a word."""
        return InputRows(np.append(0, self.ends), self.rows, len(self.matrices["input"]))

    def start_message(self) -> str:
        """One line that describes the training about to start."""
        return f"{TileRun.start_message(self)}, {self.num_shared:,} rows of n-grams"
