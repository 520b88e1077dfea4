"""Word2Vec: a corpus in, two matrices out; `fit`, `save`, `load`, and the vectors to use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from sememe.errors import OptionError
from sememe.options import changed
from sememe.progress import Reporter, as_reporter
from sememe.static.chunks import first_words
from sememe.static.fitting import Request, content_of, fit
from sememe.static.loop import Driver, Run
from sememe.static.model import StaticModel
from sememe.static.word2vec.config import Word2VecConfig
from sememe.static.word2vec.training import WindowRun, start_rows, take_start
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary


class WindowModel(StaticModel):
    """A model that predicts words from the words around them."""

    run_class: ClassVar[type[WindowRun]] = WindowRun

    def __repr__(self) -> str:
        shape = f"{len(self.vocabulary):,} words × {self.config.dim}"
        return f"{type(self).__name__}({self.config.architecture}, {self.config.loss}: {shape})"

    def train(self, tokens: TokenStore, request: Request) -> None:
        """Learn from a token store as the request says."""
        config, size = self.config, self.trainable_words(tokens)
        vocabulary = tokens.vocabulary.cut(size)

        def prepare() -> Run:
            return self.run_class(config, tokens, vocabulary, first_words(tokens, size))

        def begin(run: Run) -> None:
            rows = run.matrices["input"]
            start_rows(rows, config.dim, config.seed)
            if request.start is not None:
                num_known = take_start(rows, vocabulary, request.start, config.dim)
                request.reporter.note(
                    f"{num_known:,} of {size:,} words start from the given vectors."
                )

        fit(self, request, content_of(tokens, size), prepare, begin)

    def continue_fit(
        self,
        corpus: Any,
        *,
        epochs: int | None = None,
        text: TextSettings | None = None,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Go on with new text. New words that reach min_count in it are added to the vocabulary.

        With hierarchical softmax the tree stands, so new words are left out there.
        """
        if not len(self.vocabulary):
            raise OptionError("This model has not been fitted yet: call fit first.")
        reporter = as_reporter(progress)
        if text is not None or text_options:
            self.text = changed(text or TextSettings(), "continue_fit", text_options)
        # Words that are known already count even where the new text has them once.
        tokens = self.open_text(corpus, 0, None, reporter, min_count=1)
        config = replace(self.config, epochs=epochs or self.config.epochs)
        vocabulary, id_map = self._grown(tokens)
        run = self.run_class(config, tokens, vocabulary, id_map)
        start_rows(run.matrices["input"], config.dim, config.seed)
        run.take(self)
        try:
            Driver(self, run, reporter).drive()
        finally:
            run.close()
        return self

    def _grown(self, tokens: TokenStore) -> tuple[Vocabulary, np.ndarray]:
        """The vocabulary with the new words of the text, and the map of its ids to rows."""
        known, counts = self.vocabulary, np.array(self.vocabulary.counts)
        size = self.trainable_words(tokens)
        can_grow = self.config.loss != "hierarchical"  # its tree was made from the old counts
        id_map = np.full(len(tokens.vocabulary) + 1, -1, np.int32)
        new_words: list[str] = []
        new_counts: list[int] = []
        for word_id, word in enumerate(tokens.vocabulary[:]):
            row = known.find(word)
            if row < 0 and word_id < size and can_grow:
                row = len(known) + len(new_words)
                new_words.append(word)
                new_counts.append(int(tokens.vocabulary.counts[word_id]))
            elif row >= 0 and can_grow:
                counts[row] += tokens.vocabulary.counts[word_id]
            id_map[word_id] = row
        id_map[id_map < 0] = len(known) + len(new_words)
        grown = Vocabulary.from_words([*known, *new_words], [*counts.tolist(), *new_counts])
        return grown, id_map


class Word2Vec(WindowModel):
    """Word vectors by predicting neighbors (Mikolov et al. 2013).

    model = sememe.Word2Vec(dim=100).fit("corpus.txt")
    model.vectors.neighbors("king")
    """

    kind = "word2vec"
    config_class = Word2VecConfig

    def check(self) -> None:
        """Refuse options that do not go together, before any text is read."""
        if self.config.loss == "hierarchical" and self.config.vectors != "input":
            raise OptionError(
                "Hierarchical softmax keeps no output vector for a word: vectors must be input."
            )
