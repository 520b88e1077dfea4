"""ELMo under a task: opened from what a user gives, words as they are written, its folder.

elmo/                 ELMo's own folder, which opens by itself too
vectors/              the word vectors beside it, where there are some
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from pathlib import Path

import numpy as np
import torch

from sememe.errors import OptionError
from sememe.examples.running_words import is_word, written
from sememe.networks.elmo_encoder import ELMoEncoder
from sememe.networks.elmo_model import ELMo
from sememe.networks.words import NUM_MARKS, Reads
from sememe.tasks.config import FinetuneConfig
from sememe.tasks.words import READER_WIDTH, WordCoder
from sememe.tokens.subwords import Encoding
from sememe.vectors import load
from sememe.vectors.lexicon import WrittenLexicon

ELMO, VECTORS = "elmo", "vectors"
_DROPOUT = 0.3
_LAYERS = ("", "mix", "first", "last", "second-to-last", "sum-all")


class ELMoCoder(WordCoder):
    """Words as they are written, with a mark before and between texts."""

    lexicon: WrittenLexicon

    def __init__(self, model: ELMo, lexicon: WrittenLexicon, length: int) -> None:
        super().__init__(lexicon, model.text, length)
        self.model = model

    def _is_kept(self, piece: str, word: str) -> bool:
        return is_word(piece, self.text) or super()._is_kept(piece, word)

    def encode_words(self, words: Several[str]) -> list[Encoding]:
        """Words that are cut already, each of them one, whatever is in it."""
        found = []
        for word in words:
            ids = np.array([NUM_MARKS + self.lexicon.number(written(word, self.text))], np.int32)
            place = np.array([0], np.int32), np.array([len(word)], np.int32)
            found.append(Encoding(ids, *place, np.ones(1, np.bool_)))
        return found


def new_elmo_coder(model: ELMo, config: FinetuneConfig) -> ELMoCoder:
    """Words for ELMo, with the word vectors that the options put beside it."""
    vectors = load(config.vectors) if config.vectors else None
    return ELMoCoder(model, WrittenLexicon(vectors), config.length)


def new_elmo_encoder(coder: ELMoCoder, reads: Reads, config: FinetuneConfig) -> ELMoEncoder:
    """ELMo as the options want it under a head."""
    if config.features not in _LAYERS:
        raise OptionError(
            f"features of ELMo must be one of {', '.join(_LAYERS[1:])}, not {config.features!r}."
        )
    if config.lm_weight:
        raise OptionError("lm_weight needs a GPT: ELMo stays as it is.")
    encoder = ELMoEncoder(
        coder.model.opened, coder.lexicon, reads=reads, features=config.features,
        is_frozen=config.freeze, reader_width=config.reader_width or READER_WIDTH,
        dropout=_DROPOUT if config.dropout is None else config.dropout,
    )  # fmt: skip
    encoder.initialise(torch.Generator().manual_seed(config.seed))
    return encoder


def described_elmo(encoder: ELMoEncoder) -> str:
    """What a task says that it starts from."""
    config, lexicon = encoder.elmo.network.config, encoder.lexicon
    vectors = f" beside vectors of {len(lexicon.vectors):,} words" if lexicon.dim else ""
    sizes = f"{config.num_layers} layers each way × {config.num_cells}/{config.width}"
    return f"ELMo, {sizes}{vectors}, a BiLSTM of {encoder.reader_width} each way"


# ---- the folder -----------------------------------------------------------------------------


def write_elmo(coder: ELMoCoder, folder: Path) -> None:
    """Write ELMo and the vectors beside it, once for all members of a task."""
    coder.model.save(folder / ELMO)
    if coder.lexicon.has_vectors:
        coder.lexicon.vectors.save(folder / VECTORS)


def read_elmo(folder: Path, words: list[str], length: int) -> ELMoCoder:
    """Open what `write_elmo` wrote, with the words that a task has met."""
    vectors = load(folder / VECTORS) if (folder / VECTORS).is_dir() else None
    return ELMoCoder(ELMo.load(folder / ELMO), WrittenLexicon(vectors, words), length)
