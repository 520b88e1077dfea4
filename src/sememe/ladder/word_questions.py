"""Tasks about single words: question files, and words that no rung has seen."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sememe.errors import InputError
from sememe.evaluation.question_files import BUILT_IN, Kind, read_questions
from sememe.evaluation.words import evaluate_file, find_files, kind_in
from sememe.ladder.reading import (
    CANDIDATES,
    NO_SIMILARITY,
    NO_VECTORS,
    Reader,
    RungAnswer,
    RungModel,
    cut,
    given,
    percent_bounds,
)
from sememe.ladder.results import Column
from sememe.ladder.text import LadderText
from sememe.metrics import proportion_interval
from sememe.progress import FEW
from sememe.vectors.search import unit_rows
from sememe.vectors.wordvectors import WordVectors

_CHARACTER_SIZE = 100  # of the random vectors of characters

_TITLES: dict[str, tuple[str, str, str]] = {
    "pairs": (
        "similarity",
        "Do people and vectors find the same pairs of words alike?",
        "Spearman",
    ),
    "analogies": ("analogies", "a is to b as c is to which word?", "accuracy"),
    "odd": ("odd one out", "Which word of a line does not belong?", "accuracy"),
    "groups": ("groups", "To which group of words does a word belong?", "accuracy"),
}


class FileQuestion:
    """One file of questions about words."""

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path, self.kind = path, kind
        title, what, metric = _TITLES[kind]
        name, content = path.stem, read_questions(path, kind)
        words = [*content.words, *content.without_tags().words]
        self.words = {*words, *map(str.lower, words)}
        self._rows = content.rows
        sizes = [len(row) for row in content.rows]
        chances = {"odd": [1 / size for size in sizes], "groups": [1 / len(sizes)]}
        if name not in ("analogies", "odd", "groups"):
            title = f"{title}: {name}" if name != title else title
        self.task = Column(
            name=name, title=title, group="words", what=what, metric=metric,
            baselines={"chance": round(100 * float(np.mean(chances.get(kind, [0.0]))), 1)},
            # In groups each word is one question, and not each row.
            num_test=sum(sizes) if kind == "groups" else len(sizes),
            how="vectors of words; of contextual models the mean over uses in the training text",
        )  # fmt: skip

    def num_known(self, is_known: Callable[[str], bool]) -> int:
        """The number of questions whose words are all known."""
        if self.kind == "groups":
            return sum(is_known(word) for row in self._rows for word in row)
        return sum(all(map(is_known, row)) for row in self._rows)

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Evaluate the file, among the words that every rung is evaluated on."""
        vectors = rung.word_vectors
        if vectors is None or rung.is_one_hot:
            return RungAnswer(why=NO_VECTORS if vectors is None else NO_SIMILARITY)
        score = evaluate_file(vectors, self.path, self.kind)
        if not score.num_asked or not math.isfinite(score.value):
            return RungAnswer(
                why="None of the words in the questions were in its text often enough."
            )
        details = {"asked": score.num_asked, "questions": score.num_questions}
        return RungAnswer(
            [100 * score.value], score.num_asked, details=details,
            interval=percent_bounds(score.interval),
        )  # fmt: skip


def file_questions(data: Sequence[str | Path] | None) -> list[FileQuestion]:
    """The tasks of question files and folders; None: the built-in ones about Python.

    Other files in a folder are skipped; a file that is named must contain questions.
    """
    if data is None:
        return _questions(find_files(None))
    found = []
    for place in map(Path, data):
        own = _questions(find_files(place))
        if not own:
            raise InputError(
                f"{place} holds no questions about words: word pairs with scores, analogies, odd "
                "ones out or groups were expected."
            )
        found += own
    return found


def chinese_questions(text: LadderText, min_count: int) -> list[FileQuestion]:
    """The built-in Chinese questions that are about words of this text, often enough."""
    vocabulary = text.words.vocabulary

    def is_known(word: str) -> bool:
        word_id = vocabulary.find(word)
        return word_id >= 0 and bool(vocabulary.counts[word_id] >= min_count)

    found = _questions(find_files(BUILT_IN / "chinese"))
    kept = [one for one in found if one.num_known(is_known) >= FEW]
    if kept:
        asked = {word for one in kept for word in one.words if is_known(word)}
        frequent = filter(is_known, islice(vocabulary, CANDIDATES))
        _add_characters(kept, sorted(asked | {*frequent}))
    return kept


def _add_characters(questions: Sequence[FileQuestion], words: list[str]) -> None:
    """Add a baseline that knows how words are written and nothing else: 稳定性 is 稳定 and 性."""
    characters = {one: index for index, one in enumerate(sorted(set("".join(words))))}
    table_CD = np.random.default_rng(1).standard_normal((len(characters), _CHARACTER_SIZE))
    rows = [table_CD[[characters[one] for one in word]].mean(0) for word in words]
    vectors = WordVectors(words, np.array(rows))
    for one in questions:
        score = 100 * evaluate_file(vectors, one.path, one.kind).value
        baselines = one.task.baselines | {"random character vectors": round(score, 1)}
        one.task = replace(one.task, baselines=baselines)


def _questions(paths: Sequence[Path]) -> list[FileQuestion]:
    kinds = {path: kind_in(path, is_alone=len(paths) == 1) for path in paths}
    # Antonyms close to each other are neither good nor bad.
    return [FileQuestion(path, kind) for path, kind in kinds.items() if kind and kind in _TITLES]


# ---- words that were never seen -----------------------------------------------------------------


class Belonging(NamedTuple):
    """A word, the words of its own text and those of others; the right ones come first."""

    word: str
    choices: list[list[str]]


_NUM_CHOICES, _NUM_WORDS, _COMMON = 4, 8, 300


class BelongingQuestion:
    """Which of four held-out texts is a word from? For known words, or unseen ones."""

    def __init__(self, text: LadderText, *, is_unseen: bool, num: int, min_count: int) -> None:
        self.is_unseen, self._settings = is_unseen, text.settings
        self.rows = _belongings(text, is_unseen, num, min_count)
        self.words = {word for row in self.rows for own in row.choices for word in own}
        if not is_unseen:
            self.words |= {row.word for row in self.rows}
        what = "a word that was never in the training text" if is_unseen else "a word"
        self.task = Column(
            name="unseen" if is_unseen else "belonging",
            title="unseen words" if is_unseen else "words of a text",
            group="words",
            what=f"From which of four held-out texts, each given by eight words, is {what}?",
            metric="accuracy",
            baselines={"chance": 100 / _NUM_CHOICES},
            num_test=len(self.rows),
            how="cosine with the mean of eight known words; made from the text itself",
        )

    def evaluate(self, rung: RungModel) -> RungAnswer:
        """Choose for every word the text whose words are nearest."""
        if rung.reader is None or rung.is_one_hot:
            return RungAnswer(why=NO_VECTORS if rung.reader is None else NO_SIMILARITY)
        if self.is_unseen and not rung.is_contextual and not rung.model.words.has_subwords:
            return RungAnswer(why="It has no vectors for words that it was not trained on.")
        vectors = self._vectors(rung.reader)
        is_right = [
            int(np.argmax([vectors[row.word] @ _mean(vectors, own) for own in row.choices])) == 0
            for row in self.rows
        ]
        return RungAnswer(
            [100 * float(np.mean(is_right))], len(self.rows),
            interval=percent_bounds(proportion_interval(sum(is_right), len(is_right))),
        )  # fmt: skip

    def _vectors(self, reader: Reader) -> dict[str, np.ndarray]:
        """A unit vector for each word; contextual models read a word by itself."""
        asked = sorted({*self.words, *(row.word for row in self.rows)})
        rows_VD = np.asarray(reader.read([given([word], self._settings) for word in asked]))
        if reader.is_contextual:
            spread_D = rows_VD.std(0)
            rows_VD = (rows_VD - rows_VD.mean(0)) / np.where(spread_D > 1e-9, spread_D, 1.0)
        return dict(zip(asked, unit_rows(rows_VD), strict=True))


def _mean(vectors: dict[str, np.ndarray], words: list[str]) -> np.ndarray:
    mean_D = np.mean([vectors[word] for word in words], axis=0)
    return mean_D / max(float(np.linalg.norm(mean_D)), 1e-9)


def _belongings(text: LadderText, is_unseen: bool, num: int, min_count: int) -> list[Belonging]:
    """Words of held-out documents with words of their own document and of three others."""
    vocabulary = text.words.vocabulary
    documents: list[tuple[list[str], list[str]]] = []  # words to ask, words to choose by
    is_chinese = text.settings.mode == "chinese"
    common = min(_COMMON, len(vocabulary) // 10)

    def is_known(word: str) -> bool:
        word_id = vocabulary.find(word)
        return common <= word_id < 10_000 and vocabulary.counts[word_id] >= min_count

    for words in _document_words(text, 40 * num):
        # A letter is not a word; a single Chinese character mostly fits any text (做, 约, 总).
        distinct = [word for word in dict.fromkeys(words) if word.isalpha() and len(word) > 1]
        known = [word for word in distinct if is_known(word)]
        if is_unseen:
            asked = [w for w in distinct if vocabulary.find(w) < 0 and (is_chinese or len(w) > 3)]
        else:
            asked, known = known[:1], known[1:]
        if len(known) >= _NUM_WORDS:
            documents.append((asked, known[:_NUM_WORDS]))
    rows: list[Belonging] = []
    rng = np.random.default_rng(1)
    for index, (asked, own) in enumerate(documents):
        for word in asked[:2]:
            others = [int(x) for x in rng.choice(len(documents), 3 * _NUM_CHOICES) if x != index]
            sets = [documents[x][1] for x in dict.fromkeys(others) if word not in documents[x][1]]
            if len(sets) >= _NUM_CHOICES - 1 and len(rows) < num:
                rows.append(Belonging(word, [own, *sets[: _NUM_CHOICES - 1]]))
    return rows


def _document_words(text: LadderText, num: int) -> list[list[str]]:
    """The words of the first held-out documents, a few hundred of each."""
    kept = [document[:3_000] for document in islice(text.heldout_documents(), num)]
    return [own.words for own in cut(kept, text.settings)]
