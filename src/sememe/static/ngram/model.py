"""NGram: a corpus in; a language model that counts, to be asked for chances of words, out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.metrics.perplexity import TextScore
from sememe.options import changed
from sememe.progress import SILENT, History, Reporter
from sememe.static.fitting import Request, content_of, plan_of, take_finished
from sememe.static.model import FORMAT, StaticModel
from sememe.static.ngram.config import NGramConfig
from sememe.static.ngram.counting import Counter
from sememe.static.ngram.estimation import estimate
from sememe.static.ngram.reading import read_blocks
from sememe.static.ngram.trie import Trie
from sememe.storage.folder import scratch_folder
from sememe.storage.provenance import provenance
from sememe.text.settings import TextSettings
from sememe.tokens.prompts import Suggestion, cut_sentences, read_prompt, suggest_words
from sememe.tokens.store import TokenStore, open_or_build
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

_BLOCK = 1 << 20
_PURPOSE = 0x4E  # of a stream of random numbers


class NGram(StaticModel):
    """n-gram language model, interpolated modified Kneser–Ney (Chen & Goodman 1999).

    model = sememe.NGram(order=3).fit("corpus.txt")
    model.next_words("the king of", count=5)
    model.perplexity("held-out.txt")
    """

    kind = "ngram"
    config_class = NGramConfig
    _trie: Trie | None = None

    def __repr__(self) -> str:
        size = f"{len(self.vocabulary):,} words, {len(self.tensors.get('words', ())):,} n-grams"
        return f"NGram(order {self.config.order}: {size})"

    # ---- learning -------------------------------------------------------------------------------

    def train(self, tokens: TokenStore, request: Request) -> None:
        """Count the text and smooth the counts; nothing in it is learned step by step."""
        if request.start is not None or request.callbacks:
            raise OptionError(
                "n-grams are not trained step by step: they take neither start nor callbacks."
            )
        size = self.trainable_words(tokens)
        plan = plan_of(self, content_of(tokens, size))
        # Counting again gives the same bits, so there is nothing that a checkpoint could save.
        if take_finished(self, request, plan):
            return
        # The token store lies where large files may.
        with scratch_folder(tokens.path.parent, ".ngrams") as folder:
            self._count(tokens, size, folder, request.reporter)
        self.plan = plan
        if request.out is not None:
            self.save(request.out)

    def _count(self, tokens: TokenStore, size: int, scratch: Path, reporter: Reporter) -> None:
        config, begun = self.config, time.monotonic()
        id_map = np.minimum(np.arange(len(tokens.vocabulary) + 1), size).astype(np.uint32)
        counter = Counter(
            tokens, id_map, size, config.order, share=config.validation_share,
            memory=config.num_bytes, workers=config.num_workers, scratch=scratch,
            reporter=reporter,
        )  # fmt: skip
        trie, discounts = estimate(
            counter.count(), config.cuts, workers=config.num_workers, reporter=reporter
        )
        self.adopt(tokens.vocabulary.cut(size), **trie.to_tensors())
        figures: dict[str, Any] = {
            "words": tokens.num_tokens,
            **{f"{k}-grams": num for k, num in enumerate(trie.sizes, start=1)},
            "discounts": [list(own) for own in discounts],
            "seconds": time.monotonic() - begun,
        }
        held = self._read(tokens, id_map, share=config.validation_share, is_held=True)
        if held.num_words:
            figures |= {
                "validation_words": held.num_words,
                "validation_perplexity": held.perplexity,
            }
        elif config.validation_share:
            reporter.note("No document is held out for validation: the text has too few of them.")
        self.history = History([figures])

    def make_vectors(self) -> WordVectors:
        """Refuse: the model knows chances, not vectors."""
        raise OptionError("An n-gram model has no word vectors: ask it for next_words.")

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "words": len(self.vocabulary),
            "ngrams": self.trie.sizes,
            "config": self.config.to_dict(),
            "text": self.text.to_dict(),
            "plan": self.plan,
            "figures": self.history.last(),
            "provenance": provenance(),
        }

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with the ends of their shapes."""
        return {"level_ends": (self.config.order,)}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a saved model, memory-mapped, or read an ARPA file."""
        if Path(folder).is_file():
            return cls.read_arpa(folder)
        model = super().load(folder)
        if model.trie.num_ids != len(model.vocabulary) + 3:
            raise ArtifactError(f"{folder} is damaged: its words do not fit its n-grams.")
        return model

    # ---- asking ---------------------------------------------------------------------------------

    @property
    def trie(self) -> Trie:
        """The n-grams with their chances."""
        if not self.tensors:
            raise OptionError("This model has counted nothing yet: call fit first.")
        if self._trie is None:
            self._trie = Trie.from_tensors(self.tensors)
        return self._trie

    def adopt(self, vocabulary: Vocabulary, **tensors: np.ndarray) -> None:
        """Take what was counted."""
        super().adopt(vocabulary, **tensors)
        self._trie = None

    def ids_of(self, words: Sequence[str]) -> np.ndarray:
        """The ids of words, uint32; those of words that are not known are <unk>'s."""
        unknown = len(self.vocabulary)
        found = [self.vocabulary.find(word) for word in words]
        return np.array([unknown if one < 0 else one for one in found], np.uint32)

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The chance of each word to come after those of a sentence so far; they add up to one.

        Behind the words of the vocabulary stand <unk> and </s>.
        """
        trie = self.trie
        return trie.distribution(trie.state(self.ids_of(words)))[:-1]

    def score(self, text: str) -> float:
        """The log10 of a text's probability, the ends of its sentences included."""
        return float(sum(self.word_scores(words).sum() for words in cut_sentences(text, self.text)))

    def word_scores(self, words: Sequence[str]) -> np.ndarray:
        """The log10 of the chance of each word of a sentence, and of its end."""
        trie = self.trie
        ids = np.append(self.ids_of(words), np.uint32(len(self.vocabulary) + 1))
        return trie.advance(trie.state(), ids)

    def perplexity(self, corpus: Any, *, progress: Reporter | None = None) -> float:
        """The perplexity of a text, unknown words and the ends of sentences included."""
        return self.evaluate(corpus, progress=progress).perplexity

    def evaluate(self, corpus: Any, *, progress: Reporter | None = None) -> TextScore:
        """Measure how well the model foretells a text: all that `fit` takes."""
        tokens = open_or_build(
            corpus, self.text, min_count=1, workers=self.config.num_workers,
            progress=progress or SILENT,
        )  # fmt: skip
        id_map = np.append(self.ids_of(tokens.vocabulary), np.uint32(len(self.vocabulary)))
        return self._read(tokens, id_map)

    def _read(self, tokens: TokenStore, id_map: np.ndarray, **split: Any) -> TextScore:
        from sememe.static.ngram.query_kernels import read_text

        trie, num_words, sums = self.trie, len(self.vocabulary), np.zeros(4)
        nodes = trie.state()
        arrays = trie.words, trie.probs, trie.backoffs, trie.starts
        for block in read_blocks(tokens, id_map, num_words, size=_BLOCK, **split):
            read_text(*arrays, nodes, block.stream, num_words + 2, num_words, sums)
        return TextScore(float(sums[0]), int(sums[1]), float(sums[2]), int(sums[3]))

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The likeliest words after a text, or to complete the one that it ends in."""
        prompt = read_prompt(text, self.text)
        return suggest_words(self.vocabulary, prompt, self.distribution, count)

    def generate(self, text: str = "", *, max_words: int = 30, seed: int = 1) -> list[str]:
        """Draw words after a text until a sentence ends or there are `max_words`."""
        from sememe.examples.randomness import number, stream_key

        trie, size, key = self.trie, len(self.vocabulary), stream_key(seed, _PURPOSE)
        prompt = read_prompt(f"{text} " if text else "", self.text)
        nodes, words = trie.state(self.ids_of(prompt.words)), []
        for index in range(max_words):
            chances = trie.distribution(nodes)
            chances[size] = 0.0  # a word must be one that can be shown
            drawn = number(key, index) / 2.0**64 * chances.sum()
            chosen = min(int(np.searchsorted(chances.cumsum(), drawn, "right")), size + 1)
            if chosen > size:
                break
            words.append(self.vocabulary[chosen])
            trie.advance(nodes, np.array([chosen], np.uint32))
        return words

    # ---- other programs' files ------------------------------------------------------------------

    def write_arpa(self, path: str | Path, *, progress: Reporter = SILENT) -> None:
        """Write an ARPA file, as KenLM, SRILM and others read it; .gz and its kin pack it."""
        from sememe.static.ngram.arpa import write_arpa

        write_arpa(Path(path), self.vocabulary, self.trie, progress)

    @classmethod
    def read_arpa(cls, path: str | Path, **text_options: Any) -> Self:
        """Read an ARPA file; text is cut at white space unless its options say otherwise."""
        from sememe.static.ngram.arpa import read_arpa

        words, trie = read_arpa(Path(path))
        model = cls(order=trie.order, validation_share=0.0)
        settings = TextSettings(language="none", lowercase=False)
        model.text = changed(settings, "read_arpa", text_options)
        model.adopt(Vocabulary.from_words(words), **trie.to_tensors())
        return model
