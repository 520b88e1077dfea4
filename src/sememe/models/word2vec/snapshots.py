"""A short word2vec training as a film: a corpus in, the moving vectors of frequent words out.

    film = train_film("corpus.txt", num_snapshots=30)
    film.positions_SN2  # where each word is at each snapshot

All snapshots are drawn on the same axes, the two principal components of the last one, so that
words move smoothly. S snapshots, N words, D dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.models.word2vec.model import Word2Vec
from sememe.models.word2vec.training import start_rows
from sememe.progress import SILENT
from sememe.text import characters as ch
from sememe.text.settings import TextSettings
from sememe.text.stream import read

_MOST_TEXT = 2_000_000  # characters that are read of a corpus
_SAMPLE = 2_000  # that tell its language
Report = Callable[[float, str], None]


class TrainingFilm(NamedTuple):
    """Frequent words, their places at each snapshot, and the loss between the snapshots."""

    words: list[str]
    counts: list[int]
    positions_SN2: np.ndarray
    num_words_S: list[int]  # words of text that were trained on
    losses_S: list[float]  # mean loss since the snapshot before; the first is that of no training
    model: Word2Vec


class _Camera:
    """A callback that keeps the input vectors of the words that are shown."""

    def __init__(self, num: int, num_words: int, report: Report, total: int) -> None:
        self.every_words = max(1, total // (16 * num))
        self.report, self.total = report, total
        self.num_words, self.rows = num_words, list[int]()
        # Words move most at first: the moments are close to each other there.
        self.moments = [total * (index / num) ** 2 for index in range(1, num + 1)]
        self.frames: list[np.ndarray] = []
        self.ends: list[int] = []  # words of text before each

    def __call__(self, model: Any, record: dict[str, Any]) -> bool:
        done = int(record["words"])
        if done >= self.moments[0] or done == self.total:
            self.moments = [one for one in self.moments if one > done] or [self.total]
            if not self.rows:
                self.rows = _shown_rows(list(model.vocabulary), self.num_words)
            self.frames.append(np.asarray(model.tensors["input"][self.rows], np.float32))
            self.ends.append(done)
        self.report(min(1.0, done / self.total), "training")
        return False


def train_film(
    corpus: Any = None,
    *,
    num_snapshots: int = 30,
    num_words: int = 300,
    text: TextSettings | None = None,
    report: Report = lambda share, message: None,
    **options: Any,
) -> TrainingFilm:
    """Train Word2Vec on the start of a corpus (None: the built-in one), and keep snapshots.

    Without `text`, the letters of the corpus tell its language. The options are those of Word2Vec;
    20 epochs of 50 dimensions by default, with one worker, so that the same call gives the same
    film.
    """
    if num_snapshots < 2 or num_words < 3:
        raise OptionError("A film needs at least 2 snapshots and 3 words.")
    documents = list(first_documents(corpus, text or TextSettings()))
    first = documents[0] if documents and corpus is not None else ""
    settings = text or TextSettings(language=ch.language_of(first[:_SAMPLE]))
    model = Word2Vec(**{"dim": 50, "epochs": 20, "min_count": 5, "workers": 1} | options)
    model.text = settings
    report(0.0, "reading")
    tokens = model.open_text(iter(documents), 0, None, SILENT)
    total = tokens.num_tokens * model.config.epochs
    camera = _Camera(num_snapshots - 1, num_words, report, total)
    # A store is read by other settings only if they are named here.
    model.fit(tokens, text=settings, callbacks=[camera])
    rows = camera.rows
    start_VD = np.zeros((len(model.vocabulary), camera.frames[0].shape[1]), np.float32)
    start_rows(start_VD, model.config.dim, model.config.seed)
    frames_SND = np.stack([start_VD[rows], *camera.frames])
    ends = [0, *camera.ends]
    return TrainingFilm(
        [model.vocabulary[row] for row in rows],
        [int(model.vocabulary.counts[row]) for row in rows],
        _on_last_axes(frames_SND), ends, _losses(model, ends), model,
    )  # fmt: skip


def first_documents(corpus: Any, settings: TextSettings) -> Iterator[str]:
    """The first documents of a corpus, two million characters in all."""
    room = _MOST_TEXT
    for batch in read(corpus, settings):
        start = 0
        for end in batch.ends.tolist():
            document, start = batch.text[start:end].decode("utf-8", "replace"), end
            yield document[:room]
            room -= len(document)
            if room <= 0:
                return


def _shown_rows(words: list[str], num: int) -> list[int]:
    """The most frequent words that say something alone: no digits, no single Latin letters."""
    rows = [
        row for row, word in enumerate(words)
        if word.isalpha() and (len(word) > 2 or ch.char_class(word[0]) == ch.IDEOGRAPH)
    ]  # fmt: skip
    if len(rows) < 3:
        raise InputError("The text has fewer than three words that are frequent enough to show.")
    return rows[:num]


def _on_last_axes(frames_SND: np.ndarray) -> np.ndarray:
    """Every snapshot on the first two principal components of the last one."""
    last_ND = frames_SND[-1]
    center_D = last_ND.mean(0)
    _, _, axes_KD = np.linalg.svd(last_ND - center_D, full_matrices=False)
    positions_SN2 = (frames_SND - center_D) @ axes_KD[:2].T
    return np.ascontiguousarray(positions_SN2, np.float32)


def _losses(model: Word2Vec, ends: list[int]) -> list[float]:
    """The mean loss before each snapshot: at first that of scores of 0, then as recorded."""
    losses = [(1 + model.config.negatives) * math.log(2)]
    records = [own for own in model.history if own.get("loss") is not None]
    for start, end in pairwise(ends):
        own = [one["loss"] for one in records if start < one["words"] <= end]
        losses.append(float(np.mean(own)) if own else losses[-1])
    return losses
