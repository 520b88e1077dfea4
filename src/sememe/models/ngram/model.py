"""NGram: a corpus in; an n-gram language model, which gives the probabilities of words, out."""

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from sememe.contract import GenerationStep, Model, NextToken
from sememe.errors import ArtifactError, OptionError
from sememe.examples.running_words import written
from sememe.metrics.perplexity import TextScore
from sememe.models.fitting import Prepared, Request
from sememe.models.ngram.arpa import read_arpa, write_arpa
from sememe.models.ngram.config import NGramConfig
from sememe.models.ngram.counting import Counter, read_blocks
from sememe.models.ngram.kernels import read_text
from sememe.models.ngram.trie import NGramTrie, estimate
from sememe.models.static.model import StaticModel
from sememe.options import changed
from sememe.progress import SILENT, History, Reporter
from sememe.randomness import number, stream_key
from sememe.storage.folder import reads_artifact, scratch_folder
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build
from sememe.tokens.prompts import Suggestion, cut_sentences, read_prompt, suggest_words
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

_BLOCK = 1 << 20
_PURPOSE = 0x4E  # of a stream of random numbers


def _check_neutral(options: dict[str, Any]) -> None:
    """Refuse what narrows the choice of tokens."""
    neutral = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
    for name, value in options.items():
        if value != neutral.get(name):
            raise OptionError(f"{name} is for GPT; an n-gram model draws by its probabilities.")


class NGram(StaticModel):
    """n-gram language model, interpolated modified Kneser–Ney (Chen & Goodman 1999).

    model = sememe.NGram(order=3).fit("corpus.txt")
    model.next_words("the king of", count=5)
    model.perplexity("held-out.txt")
    """

    kind = "ngram"
    config_class = NGramConfig
    _trie: NGramTrie | None = None

    def __repr__(self) -> str:
        size = f"{len(self.vocabulary):,} words, {len(self.tensors.get('words', ())):,} n-grams"
        return f"NGram(order {self.config.order}: {size})"

    # ---- learning -------------------------------------------------------------------------------

    def prepare_tokens(self, tokens: TokenStore, request: Request) -> Prepared:
        """Count the text and smooth the counts; there are no training steps."""
        if request.start is not None or request.callbacks:
            raise OptionError(
                "n-grams are not trained step by step: they take neither start nor callbacks."
            )
        size = self.trainable_words(tokens)

        def count() -> None:
            # The folder of the token store has room for large files.
            with scratch_folder(tokens.path.parent, ".ngrams") as folder:
                self._count(tokens, size, folder, request.reporter)

        # Counting again gives the same bits, so checkpoints are not needed.
        return Prepared(self.plan_of(tokens, size), count)

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
        metrics: dict[str, Any] = {
            "words": tokens.num_tokens,
            **{f"{k}-grams": num for k, num in enumerate(trie.sizes, start=1)},
            "discounts": [list(own) for own in discounts],
            "seconds": time.monotonic() - begun,
        }
        held = self._read(tokens, id_map, share=config.validation_share, is_held=True)
        if held.num_words:
            metrics |= {
                "validation_words": held.num_words,
                "validation_perplexity": held.perplexity,
            }
        elif config.validation_share:
            reporter.note("No document is held out for validation: the text has too few of them.")
        self.history = History([metrics])

    def make_vectors(self) -> WordVectors:
        """Raise an error: the model has probabilities, not vectors."""
        raise self.unsupported("words")

    def sizes(self) -> dict[str, Any]:
        """The number of words, and of n-grams by order."""
        return {"words": len(self.vocabulary), "ngrams": self.trie.sizes if self.tensors else []}

    def describe(self) -> dict[str, Any]:
        """The kind and sizes, the options, the text settings, and the model's origin."""
        more = {name: value for name, value in self.manifest().items() if name != "plan"}
        return {**Model.describe(self), **more}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with their shapes."""
        return {"level_ends": (self.config.order,)}

    @classmethod
    @reads_artifact
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
    def trie(self) -> NGramTrie:
        """The n-grams with their probabilities."""
        if not self.tensors:
            raise OptionError("This model has counted nothing yet: call fit first.")
        if self._trie is None:
            self._trie = NGramTrie.from_tensors(self.tensors)
        return self._trie

    def adopt(self, vocabulary: Vocabulary, **tensors: np.ndarray) -> None:
        """Take over what was counted."""
        super().adopt(vocabulary, **tensors)
        self._trie = None

    def ids_of(self, words: Sequence[str]) -> np.ndarray:
        """The ids of words, uint32; unknown words get that of <unk>."""
        unknown = len(self.vocabulary)
        found = [self.vocabulary.find(word) for word in words]
        return np.array([unknown if one < 0 else one for one in found], np.uint32)

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The probability of each word to follow a sentence so far; they sum to 1.

        The words of the vocabulary are followed by <unk> and </s>.
        """
        trie = self.trie
        return trie.distribution(trie.state(self.ids_of(words)))[:-1]

    def score(self, text: str) -> float:
        """The log10 probability of a text, including sentence ends."""
        return float(sum(self.word_scores(words).sum() for words in cut_sentences(text, self.text)))

    def word_scores(self, words: Sequence[str]) -> np.ndarray:
        """The log10 probability of each word of a sentence, and of its end."""
        trie = self.trie
        ids = np.append(self.ids_of(words), np.uint32(len(self.vocabulary) + 1))
        return trie.advance(trie.state(), ids)

    def word_log_probs(
        self, documents: Sequence[tuple[str, Sequence[np.ndarray]]]
    ) -> list[np.ndarray]:
        """The natural log probability of each word of some documents given the sentence so far.

        NaN for unknown words: the probability of <unk> is that of all of them together.
        """
        return [
            np.concatenate([np.empty(0), *(self._log_probs(text, own) for own in sentences)])
            for text, sentences in documents
        ]

    def _log_probs(self, text: str, places: np.ndarray) -> np.ndarray:
        words = [written(text[start:end], self.text) for start, end in places]
        is_known = self.ids_of(words) < len(self.vocabulary)
        return np.where(is_known, self.word_scores(words)[:-1] * math.log(10), math.nan)

    def perplexity(self, corpus: Any, *, progress: Reporter | None = None) -> float:
        """The perplexity of a text, including unknown words and sentence ends."""
        return self.evaluate(corpus, progress=progress).perplexity

    def evaluate(self, data: Any, *, progress: Reporter | None = None) -> TextScore:
        """The perplexity of a corpus, in any form that `fit` takes, with its counts."""
        tokens = open_or_build(
            data, self.text, min_count=1, workers=self.config.num_workers,
            progress=progress or SILENT,
        )  # fmt: skip
        id_map = np.append(self.ids_of(tokens.vocabulary), np.uint32(len(self.vocabulary)))
        return self._read(tokens, id_map)

    def _read(self, tokens: TokenStore, id_map: np.ndarray, **split: Any) -> TextScore:

        trie, num_words, sums = self.trie, len(self.vocabulary), np.zeros(4)
        nodes = trie.state()
        arrays = trie.words, trie.probs, trie.backoffs, trie.starts
        for block in read_blocks(tokens, id_map, num_words, size=_BLOCK, **split):
            read_text(*arrays, nodes, block.stream, num_words + 2, num_words, sums)
        return TextScore(float(sums[0]), int(sums[1]), float(sums[2]), int(sums[3]))

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The most likely words after a text, or completions of its last word."""
        prompt = read_prompt(text, self.text)
        return suggest_words(self.vocabulary, prompt, self.distribution, count)

    def generate(self, prompts: str = "", *, max_words: int = 30, seed: int = 1) -> list[str]:
        """Sample words after a text until a sentence ends or there are `max_words`."""

        words = []
        for chosen, _ in self._draws(prompts, (), max_words, seed):
            if chosen > len(self.vocabulary):
                break
            words.append(self.vocabulary[chosen])
        return words

    def _draws(
        self, prompt: str, ids: Sequence[int], num: int, seed: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Words drawn after a text and the words `ids`, each with the distribution it is from."""
        trie, size, key = self.trie, len(self.vocabulary), stream_key(seed, _PURPOSE)
        read = read_prompt(f"{prompt} " if prompt else "", self.text)
        nodes = trie.state(np.append(self.ids_of(read.words), np.array(ids, np.uint32)))
        for index in range(len(ids), len(ids) + num):
            chances = trie.distribution(nodes)
            shown = chances.copy()
            shown[size] = 0.0  # only words that can be shown
            drawn = number(key, index) / 2.0**64 * shown.sum()
            chosen = min(int(np.searchsorted(shown.cumsum(), drawn, "right")), size + 1)
            yield chosen, chances
            trie.advance(nodes, np.array([chosen], np.uint32))

    def stream(
        self, prompt: str = "", *, max_tokens: int = 30, seed: int = 1, **options: Any
    ) -> Iterator[str]:
        """Yield the words that `generate` samples, with the spaces between them, if any."""
        _check_neutral(options)
        for index, word in enumerate(self.generate(prompt, max_words=max_tokens, seed=seed)):
            yield self._spaced(word, prompt, is_first=index == 0)

    def _spaced(self, word: str, prompt: str, *, is_first: bool) -> str:
        """A word with the space before it, if there must be one."""
        space = "" if self.text.mode == "chinese" else " "
        has_space = is_first and (not prompt or prompt.endswith(space or prompt))
        return word if has_space else space + word

    def generate_steps(
        self,
        prompt: str,
        *,
        ids: Sequence[int] = (),
        count: int = 10,
        max_tokens: int = 30,
        seed: int = 1,
        **options: Any,
    ) -> Iterator[GenerationStep]:
        """The steps of `generate` with the most likely words at each; ids are those of words.

        <unk>, the sum of all unknown words, is never drawn; the end of the sentence has no text.
        """
        _check_neutral(options)
        size = len(self.vocabulary)
        if count < 1 or any(not 0 <= one < size for one in ids):
            raise OptionError(f"count must be at least 1, and ids must be below {size:,}.")
        for index, (chosen, chances) in enumerate(self._draws(prompt, ids, max_tokens, seed)):
            is_first = index + len(ids) == 0
            total = float(chances.sum() - chances[size])

            def token(
                word_id: int,
                chances: np.ndarray = chances,
                total: float = total,
                is_first: bool = is_first,
            ) -> NextToken:
                chance = float(chances[word_id])
                if word_id >= size:
                    is_end = word_id > size
                    return NextToken(
                        word_id, "" if is_end else "<unk>", chance, is_end * chance / total
                    )
                text = self._spaced(self.vocabulary[word_id], prompt, is_first=is_first)
                return NextToken(word_id, text, chance, chance / total)

            likely = np.argsort(-chances[: size + 2], kind="stable")[:count].tolist()
            yield GenerationStep(token(chosen), [*map(token, likely)], size + 1)
            if chosen > size:
                return

    # ---- other programs' files ------------------------------------------------------------------

    def write_arpa(self, path: str | Path, *, progress: Reporter = SILENT) -> None:
        """Write an ARPA file for KenLM, SRILM and others; .gz and similar endings compress it."""

        write_arpa(Path(path), self.vocabulary, self.trie, progress)

    @classmethod
    def read_arpa(cls, path: str | Path, **text_options: Any) -> Self:
        """Read an ARPA file; text is split at white space unless its options say otherwise."""

        words, trie = read_arpa(Path(path))
        model = cls(order=trie.order, validation_share=0.0)
        settings = TextSettings(language="none", lowercase=False)
        model.text = changed(settings, "read_arpa", text_options)
        model.adopt(Vocabulary.from_words(words), **trie.to_tensors())
        return model
