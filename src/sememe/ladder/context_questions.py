"""Tasks about words in context: senses separated, and held-out text predicted.

Perplexities are comparable across vocabularies: they are over the held-out words that all language
models know. Each model gives the probability of a word after what is before it: in the sentence
(n-gram, NNLM, ELMo forwards), or in the document (GPT). Other words, punctuation and sentence ends
are context and are not scored.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sememe.evaluation.senses import SenseSet
from sememe.evaluation.senses.evaluating import CENTERED_MEAN, MEAN, evaluate_senses
from sememe.evaluation.senses.results import SenseScore
from sememe.examples.running_words import written
from sememe.ladder.plan import LadderPlan
from sememe.ladder.reading import (
    NO_CHANCES,
    NO_VECTORS,
    RungAnswer,
    RungModel,
    Words,
    cut,
    percent_bounds,
)
from sememe.ladder.results import Column
from sememe.ladder.text import LadderText, sentences_of
from sememe.metrics import mean_interval, proportion_interval
from sememe.metrics.comparison import redrawn_interval
from sememe.metrics.perplexity import perplexity

CONTEXT = "mean of the other words"
CENTERED = "mean of the other words, centered"
LAST = "last layer"


class SenseQuestion:
    """Does the nearest other use of an ambiguous word have the same sense?"""

    def __init__(self, sets: Sequence[SenseSet]) -> None:
        self.sets = list(sets)
        self.task = Column(
            name="senses",
            title="senses",
            group="senses",
            what="Does the nearest sentence with the same ambiguous word use it in the same sense?",
            metric="accuracy",
            num_test=sum(len(own.occurrences) for own in sets),
            how="the vector from which a network predicts the masked word, or the word's only "
            "vector; words that occur in the corpus; no training for the task",
        )

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Score the word in its sentence, and the mean of the other words as a baseline."""
        if not rung.can("embed_words"):
            return RungAnswer(why=NO_VECTORS)
        found = evaluate_senses(rung.model, self.sets, device=rung.device).scores
        own = [one for one in found if one.role in ("word", "place")]
        if not any(one.words for one in own):
            return RungAnswer(why="None of the ambiguous words is in its vocabulary.")
        details = {
            "chance": _mean(own, "chance"),
            CONTEXT: _mean([one for one in found if one.name == MEAN], "nearest"),
            CENTERED: _mean([one for one in found if one.name == CENTERED_MEAN], "nearest"),
            LAST: _mean([one for one in found if one.is_last], "nearest"),
        }
        num = sum(one.num_asked for one in own)
        words = [word.nearest for score in own for word in score.words]
        interval = percent_bounds(mean_interval(words))
        return RungAnswer([_mean(own, "nearest")], num, details=details, interval=interval)


def known_senses(sets: Sequence[SenseSet], text: LadderText, min_count: int) -> list[SenseSet]:
    """The words that occur often enough in a text to be scored."""
    words = {word for own in sets for word in own.words}
    kept = {word for word in words if _num_uses(word, text) >= min_count}
    found = [
        own._replace(occurrences=[one for one in own.occurrences if one.word in kept])
        for own in sets
    ]
    return [own for own in found if own.occurrences]


def _num_uses(word: str, text: LadderText) -> int:
    """How often a word, or all its parts in a row, occurs: 一个人 is segmented into 一个 and 人."""
    store = text.words
    whole = store.vocabulary.find(written(word, text.settings))
    if whole >= 0:
        return int(store.vocabulary.counts[whole])
    parts = [store.vocabulary.find(part) for part in cut([word], text.settings)[0].words]
    if len(parts) < 2 or min(parts) < 0:
        return 0
    ids_N = np.asarray(store.ids)
    places = np.flatnonzero(ids_N[: len(ids_N) - len(parts) + 1] == parts[0])
    for offset, part in enumerate(parts[1:], start=1):
        places = places[ids_N[places + offset] == part]
    return len(places)


def _mean(scores: Sequence[SenseScore], metric: str) -> float:
    """The mean over the words of all sets, in percent."""
    values = [getattr(word, metric) for score in scores for word in score.words]
    return round(100 * float(np.mean(values)), 2) if values else float("nan")


# ---- held-out text ------------------------------------------------------------------------------

SEE_HIDDEN = "It reads in both directions and gives no probability of a text: see hidden words."


class Document(NamedTuple):
    """A held-out document: its text, and the words of its sentences with their positions."""

    text: str
    sentences: list[Words]

    @property
    def words(self) -> list[str]:
        """The words of all sentences."""
        return [word for own in self.sentences for word in own.words]

    @property
    def spans(self) -> list[np.ndarray]:
        """The start and end of the words of each sentence, (words, 2)."""
        return [np.stack([own.starts, own.ends], 1) for own in self.sentences]


def sample_documents(text: LadderText, num_words: int) -> list[Document]:
    """The first held-out documents, up to this many words."""
    found, num = [], 0
    for document in text.heldout_documents():
        pieces = [piece for piece in sentences_of(document, text.settings) if piece.strip()]
        sentences, place = [], 0
        for piece, own in zip(pieces, cut(pieces, text.settings), strict=True):
            place = document.index(piece, place)
            if own.words:
                sentences.append(own._replace(starts=own.starts + place, ends=own.ends + place))
            place += len(piece)
        found.append(Document(document, sentences))
        num += sum(len(own.words) for own in sentences)
        if num >= num_words:
            break
    return found


def _mean_loss(logs_N: np.ndarray) -> float:
    return -float(logs_N.mean()) if len(logs_N) else math.nan


class PerplexityQuestion:
    """How well is held-out text predicted, word by word?"""

    def __init__(self, text: LadderText, plan: LadderPlan, num_words: int) -> None:
        self.documents = sample_documents(text, num_words)
        vocabulary = text.words.vocabulary
        size = int(np.searchsorted(-np.asarray(vocabulary.counts), -plan.min_count, "right"))
        self.known = frozenset(vocabulary[: min(size, plan.predicted_words)])
        words = [word for own in self.documents for word in own.words]
        self._is_asked_N = np.array([word in self.known for word in words], bool)
        counts = np.asarray(vocabulary.counts, np.float64)
        asked = [vocabulary.id(word) for word in words if word in self.known]
        by_frequency = perplexity(_mean_loss(np.log(counts[asked] / counts.sum())))
        self.task = Column(
            name="perplexity",
            title="perplexity",
            group="language model",
            what="How well does it predict the words of held-out text?",
            metric="perplexity per word",
            unit="perplexity",
            higher_is_better=False,
            baselines={"by frequency alone": round(by_frequency, 1)},
            num_test=len(asked),
            how=f"the {len(asked):,} of {len(words):,} held-out words that are among the "
            f"{len(self.known):,} most frequent; other words and punctuation are context; GPT "
            "multiplies the probabilities of a word's sub-word tokens, is case-sensitive and "
            "sees the document so far; the other models see the sentence so far",
        )

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Evaluate a language model that reads from left to right."""
        if not rung.can("score"):
            return RungAnswer(why=SEE_HIDDEN if rung.can("fill") else NO_CHANCES)
        given = [(own.text, own.spans) for own in self.documents]
        logs_N = np.concatenate([np.empty(0), *rung.model.word_log_probs(given)])[self._is_asked_N]
        if lacks := int(np.isnan(logs_N).sum()):
            return RungAnswer(why=f"{lacks:,} of the test words are not in its vocabulary.")
        return RungAnswer(
            [perplexity(_mean_loss(logs_N))], len(logs_N), interval=self._interval(logs_N)
        )

    def _interval(self, logs_N: np.ndarray) -> Sequence[float]:
        """The interval over the documents, whose words belong together."""
        sizes = [len(own.words) for own in self.documents]
        documents_N = np.repeat(np.arange(len(sizes)), sizes)[self._is_asked_N]
        counts = np.bincount(documents_N, minlength=len(sizes))
        sums = np.bincount(documents_N, logs_N, len(sizes))
        rows = np.column_stack([sums, counts])[counts > 0]

        def of_sums(sums_RK: np.ndarray) -> np.ndarray:
            found: np.ndarray = np.exp(-sums_RK[:, 0] / sums_RK[:, 1])
            return found

        return redrawn_interval(rows, of_sums) if np.isfinite(rows).all() else ()


class HiddenQuestion:
    """How many masked sub-word tokens of held-out text are predicted?"""

    def __init__(self, text: LadderText, plan: LadderPlan, num_batches: int) -> None:
        self._text, self._plan, self._num_batches = text, plan, num_batches
        self.task = Column(
            name="hidden",
            title="hidden words",
            group="language model",
            what="How many masked sub-word tokens of held-out text does it predict?",
            metric="accuracy",
            how="15 % of the tokens are masked, as in BERT's training",
        )

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Evaluate a model that predicts masked words."""
        if not rung.can("fill"):
            return RungAnswer(why="It is not trained to predict masked words.")
        found = rung.model.evaluate(
            self._text.heldout, store=self._text.folder / f"heldout-{rung.rung.name}",
            num_batches=self._num_batches, seed=self._plan.seed,
        )  # fmt: skip
        details = {"most_frequent": round(100 * found.unigram_accuracy, 2)}
        num_right = round(found.accuracy * found.num_tokens)
        return RungAnswer(
            [100 * found.accuracy], found.num_tokens, details=details,
            interval=percent_bounds(proportion_interval(num_right, found.num_tokens)),
        )  # fmt: skip
