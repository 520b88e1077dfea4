"""First weights of ELMo from skip-gram: the words of a text in, vectors to begin with out.

Skip-gram reads a text a hundred times as fast as LSTMs do. Its input vectors tell which words are
of a kind, its output vectors which words stand beside them: what the table of words and the softmax
of a language model have to learn before its LSTMs are of use. V words, P width.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from sememe.examples.word_rows import NUM_MARKS
from sememe.networks.word_forms import RowTable
from sememe.static.word2vec.model import Word2Vec
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import check_replaceable, kind_of_folder
from sememe.tokens.splits import is_held_out
from sememe.tokens.store import TokenStore
from sememe.training.distributed import this_process

if TYPE_CHECKING:
    from sememe.networks.elmo import ELMoNetwork
    from sememe.networks.elmo_config import ELMoTrainingConfig
    from sememe.networks.word_text import WordText
    from sememe.progress import Reporter


class Start(NamedTuple):
    """Where skip-gram's vectors lie until the network is whole, and whether to go on with them."""

    out: Path | None = None
    resume: bool = False

    @classmethod
    def beside(cls, out: str | Path | None, resume: bool) -> Start:
        """The place beside the model to be; one of several processes writes there."""
        if out is None or not this_process().is_main:
            return cls()
        place = Path(f"{out}.start")
        check_replaceable(place, Word2Vec.kind)  # before any text is read
        return cls(place, resume)

    def clear(self) -> None:
        """Remove what skip-gram has left there, checkpoints of a run that was stopped included."""
        if self.out is None:
            return
        Checkpoints(f"{self.out}.checkpoints").clear()
        if kind_of_folder(self.out) == Word2Vec.kind:
            shutil.rmtree(self.out, ignore_errors=True)


def start_with_skipgram(
    network: ELMoNetwork,
    text: WordText,
    training: ELMoTrainingConfig,
    reporter: Reporter,
    start: Start,
) -> float:
    """Let the softmax begin with skip-gram's output vectors, a table of words with its input.

    Gives the seconds that skip-gram has trained, those before an interruption included.
    """
    num = training.start_epochs
    reporter.note(f"Skip-gram first: {num} {'pass' if num == 1 else 'passes'} over the text.")
    model = Word2Vec(
        dim=network.config.width, epochs=training.start_epochs, min_count=training.min_count,
        workers=training.workers, seed=training.seed,
    )  # fmt: skip
    share = training.validation_share
    sentences = TrainingSentences(text.store, share) if share else text.store
    model.fit(
        sentences, out=start.out, resume=start.resume, progress=reporter,
        checkpoint_minutes=training.checkpoint_minutes,
    )  # fmt: skip
    seconds = float(model.history.last().get("seconds", 0.0))
    found_V = np.array([model.vocabulary.find(word) for word in text.vocabulary], np.int64)
    known_V = np.flatnonzero(found_V >= 0)
    if not len(known_V):
        return seconds
    assert network.table_VP is not None
    _fill(network.table_VP, known_V, model.tensors["output"][found_V[known_V]])
    if isinstance(network.input, RowTable):
        _fill(network.input.rows.weight, known_V, model.tensors["input"][found_V[known_V]])
    return seconds


@torch.no_grad()
def _fill(table_VP: torch.Tensor, words: np.ndarray, rows_VP: np.ndarray) -> None:
    """Put rows into a table, with the spread that its own have."""
    rows_VP = np.asarray(rows_VP, np.float32)
    places = torch.from_numpy(NUM_MARKS + words)
    spread = float(table_VP[places].std())
    table_VP[places] = torch.from_numpy(rows_VP * (spread / max(float(rows_VP.std()), 1e-9)))


class TrainingSentences:
    """The sentences of the documents that are not held out, as lists of words."""

    def __init__(self, store: TokenStore, validation_share: float) -> None:
        self._store, self._share = store, validation_share

    def __iter__(self) -> Iterator[list[str]]:
        store, num_words = self._store, len(self._store.vocabulary)
        words = list(store.vocabulary)
        ends = np.asarray(store.sentence_ends)
        first_sentence = 0
        for index, last_sentence in enumerate(np.asarray(store.document_ends).tolist()):
            if not is_held_out(np.array([index]), self._share)[0]:
                for sentence in range(first_sentence, last_sentence):
                    first = int(ends[sentence - 1]) if sentence else 0
                    ids = store.ids[first : int(ends[sentence])].tolist()
                    yield [words[word_id] for word_id in ids if word_id < num_words]
            first_sentence = last_sentence
