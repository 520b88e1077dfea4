"""Questions about words in context: meanings kept apart, and held-out text foretold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sememe.evaluation.senses.evaluating import evaluate_senses
from sememe.evaluation.senses.files import SenseSet
from sememe.evaluation.senses.representations import CENTERED_MEAN, MEAN
from sememe.evaluation.senses.results import SenseScore
from sememe.examples.running_words import written
from sememe.ladder.foretelling import find_hidden, foretell, sample_documents, unigram
from sememe.ladder.plan import Plan
from sememe.ladder.questions import NO_CHANCES, NO_VECTORS, Answer, Interview
from sememe.ladder.reading import cut
from sememe.ladder.results import Task
from sememe.ladder.text import LadderText

CONTEXT = "mean of the other words"
CENTERED = "mean of the other words, centered"
LAST = "last layer"


class SenseQuestion:
    """Has the nearest other use of an ambiguous word the same meaning?"""

    def __init__(self, sets: Sequence[SenseSet]) -> None:
        self.sets = list(sets)
        num = sum(len(own.occurrences) for own in sets)
        self.task = Task(
            name="senses",
            title="senses",
            group="senses",
            what="Has the nearest other sentence with an ambiguous word the same meaning of it?",
            metric="accuracy",
            num_test=num,
            how="what a network expects in the word's place, or the word's one vector; words that "
            "the text has; nothing is trained for it",
        )

    def ask(self, rung: Interview) -> Answer:
        """Score the word in its sentence, and the mean of the words around it beside it."""
        if rung.opened.kind == "ngram":
            return Answer(why=NO_VECTORS)
        found = evaluate_senses(rung.path, self.sets, device=rung.device).scores
        own = [one for one in found if one.role in ("word", "place")]
        if not any(one.words for one in own):
            return Answer(why="It knows none of the ambiguous words.")
        details = {
            "chance": _mean(own, "chance"),
            CONTEXT: _mean([one for one in found if one.name == MEAN], "nearest"),
            CENTERED: _mean([one for one in found if one.name == CENTERED_MEAN], "nearest"),
            LAST: _mean([one for one in found if one.is_last], "nearest"),
        }
        return Answer([_mean(own, "nearest")], details=details)


def known_senses(sets: Sequence[SenseSet], text: LadderText, min_count: int) -> list[SenseSet]:
    """The words that a text has often enough to tell anything about them."""
    words = {word for own in sets for word in own.words}
    kept = {word for word in words if _num_uses(word, text) >= min_count}
    found = [
        own._replace(occurrences=[one for one in own.occurrences if one.word in kept])
        for own in sets
    ]
    return [own for own in found if own.occurrences]


def _num_uses(word: str, text: LadderText) -> int:
    """How often a text has a word, or all its parts in a row: 一个人 is cut into 一个 and 人."""
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


def _mean(scores: Sequence[SenseScore], figure: str) -> float:
    """The mean over the words of all sets, in per cent."""
    values = [getattr(word, figure) for score in scores for word in score.words]
    return round(100 * float(np.mean(values)), 2) if values else float("nan")


class PerplexityQuestion:
    """How well is held-out text foretold, word by word?"""

    def __init__(self, text: LadderText, plan: Plan, num_words: int) -> None:
        self.documents = sample_documents(text, num_words)
        vocabulary = text.words.vocabulary
        size = int(np.searchsorted(-np.asarray(vocabulary.counts), -plan.min_count, "right"))
        self.known = frozenset(vocabulary[: min(size, plan.predicted_words)])
        words = [w for one in self.documents for own in one.sentences for w in own.words]
        num_known = sum(word in self.known for word in words)
        self.task = Task(
            name="perplexity",
            title="perplexity",
            group="language model",
            what="How many words are equally likely at each place of held-out text?",
            metric="perplexity per word",
            unit="perplexity",
            higher_is_better=False,
            baselines={"by frequency alone": round(unigram(text, self.documents, self.known), 1)},
            num_test=num_known,
            how=f"the {num_known:,} of {len(words):,} held-out words that are among the "
            f"{len(self.known):,} most frequent; other words and punctuation are context; GPT's "
            "chance of a word is the product over its pieces, capitals included, after all that "
            "stands before it in the document; the others begin anew with each sentence",
        )

    def ask(self, rung: Interview) -> Answer:
        """Ask a language model that reads from left to right."""
        kind = rung.opened.kind
        if kind == "bert":
            return Answer(
                why="It reads both sides of a word and gives no chance of a text: see hidden words."
            )
        if kind not in ("ngram", "nnlm", "elmo", "gpt"):
            return Answer(why=NO_CHANCES)
        if kind == "nnlm" and rung.opened.model.config.architecture == "ranking":
            return Answer(why=NO_CHANCES)
        if kind in ("ngram", "nnlm", "elmo"):
            lacks = sum(word not in rung.opened.model.vocabulary for word in self.known)
            if lacks:
                return Answer(why=f"It does not know {lacks:,} of the words that are asked.")
        found = foretell(rung.opened, self.documents, self.known)
        return Answer([found.perplexity], details={"words": found.num})


class HiddenQuestion:
    """How many hidden sub-words of held-out text are found?"""

    def __init__(self, text: LadderText, plan: Plan, num_batches: int) -> None:
        self._text, self._plan, self._num_batches = text, plan, num_batches
        self.task = Task(
            name="hidden",
            title="hidden words",
            group="language model",
            what="How many of the hidden sub-words of held-out text does it find?",
            metric="accuracy",
            how="every seventh sub-word or so is hidden, as in BERT's training",
        )

    def ask(self, rung: Interview) -> Answer:
        """Ask a BERT."""
        if rung.opened.kind != "bert":
            return Answer(why="It is not taught to find hidden words.")
        found = find_hidden(
            rung.opened, self._text, self._plan.vocab_size, self._num_batches, self._plan.seed
        )
        details = {"commonest": round(100 * found.commonest, 2), "hidden": found.num}
        return Answer([100 * found.accuracy], details=details)
