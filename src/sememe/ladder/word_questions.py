"""Questions about words by themselves: files of questions, and words that no rung has seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError
from sememe.evaluation.files import Kind, detect_kind, read_lines
from sememe.evaluation.words import evaluate_file, find_files
from sememe.ladder.questions import NO_SIMILARITY, NO_VECTORS, Answer, Interview
from sememe.ladder.reading import Words, cut, given
from sememe.ladder.results import Task
from sememe.ladder.text import LadderText
from sememe.vectors.search import unit_rows

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
_NEAREST = 0.05  # chance of finding a word among thousands, for the baseline


class FileQuestion:
    """One file of questions about words."""

    def __init__(self, path: Path, kind: Kind) -> None:
        self.path, self.kind = path, kind
        title, what, metric = _TITLES[kind]
        name = path.stem
        lines = read_lines(path)
        num = sum(not line.text.startswith(":") for line in lines)
        self.words = {word for line in lines for word in line.text.replace(":", " ").split()}
        self.words |= {word.lower() for word in self.words}
        if name not in ("analogies", "odd", "groups"):
            title = f"{title}: {name}" if name != title else title
        self.task = Task(
            name=name, title=title, group="words", what=what, metric=metric,
            baselines=self._baselines(), num_test=num,
            how="vectors of words; of contextual models the mean over uses in the training text",
        )  # fmt: skip

    def _baselines(self) -> dict[str, float]:
        rows = [line.text for line in read_lines(self.path) if not line.text.startswith(":")]
        if self.kind == "odd":
            shares = [1 / max(1, len(row.replace("|", " ").split())) for row in rows]
            return {"chance": round(100 * float(np.mean(shares)), 1)}
        if self.kind == "groups":
            return {"chance": round(100 / len(rows), 1)}
        return {"chance": 0.0}

    def ask(self, rung: Interview) -> Answer:
        """Ask the file, among the words that every rung is asked for."""
        if rung.is_one_hot:
            return Answer(why=NO_SIMILARITY)
        vectors = rung.word_vectors
        if vectors is None:
            return Answer(why=NO_VECTORS)
        score = evaluate_file(vectors, self.path, self.kind)
        if not score.num_asked or not math.isfinite(score.value):
            return Answer(why="None of the words in the questions were in its text often enough.")
        details = {"asked": score.num_asked, "questions": score.num_questions}
        return Answer([100 * score.value], details=details)


def file_questions(data: Sequence[str | Path] | None) -> list[FileQuestion]:
    """The questions of files and folders; None: the built-in ones of the Python world.

    Other files in a folder are passed over; one that is named must ask something.
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


def _questions(paths: Sequence[Path]) -> list[FileQuestion]:
    found = []
    for path in paths:
        try:
            kind = detect_kind(path)
        except InputError:
            if len(paths) == 1:
                raise
            continue
        # Antonyms near each other are no merit and no fault.
        if kind is not None and kind in _TITLES:
            found.append(FileQuestion(path, kind))
    return found


# ---- words that were never seen -----------------------------------------------------------------


class Belonging(NamedTuple):
    """A word, the words of its own text and those of others; the right ones come first."""

    word: str
    choices: list[list[str]]


_NUM_CHOICES, _NUM_WORDS, _COMMON = 4, 8, 300


class BelongingQuestion:
    """To which of four held-out texts does a word belong? Known words, or ones never seen."""

    def __init__(self, text: LadderText, *, is_unseen: bool, num: int, min_count: int) -> None:
        self.is_unseen, self._settings = is_unseen, text.settings
        self.rows = _belongings(text, is_unseen, num, min_count)
        self.words = {word for row in self.rows for own in row.choices for word in own}
        if not is_unseen:
            self.words |= {row.word for row in self.rows}
        what = "a word that was never in the training text" if is_unseen else "a word"
        self.task = Task(
            name="unseen" if is_unseen else "belonging",
            title="unseen words" if is_unseen else "words of a text",
            group="words",
            what=f"To which of four held-out texts does {what} belong, by eight words of each?",
            metric="accuracy",
            baselines={"chance": 100 / _NUM_CHOICES},
            num_test=len(self.rows),
            how="cosine with the mean of eight known words; made from the text itself",
        )

    def ask(self, rung: Interview) -> Answer:
        """Choose for every word the text whose words are nearest."""
        opened = rung.opened
        if opened.vectors is None and opened.reader is None:
            return Answer(why=NO_VECTORS)
        if rung.is_one_hot:
            return Answer(why=NO_SIMILARITY)
        if self.is_unseen and opened.vectors is not None and not _composes(opened.vectors):
            return Answer(why="Words that it was not trained on have no vector.")
        vectors = self._vectors(rung)
        is_right = [
            int(np.argmax([vectors[row.word] @ _mean(vectors, own) for own in row.choices])) == 0
            for row in self.rows
        ]
        return Answer([100 * float(np.mean(is_right))])

    def _vectors(self, rung: Interview) -> dict[str, np.ndarray]:
        """A unit vector for each word; contextual models read a word by itself."""
        asked = sorted({*self.words, *(row.word for row in self.rows)})
        reader = rung.opened.reader
        assert reader is not None
        rows_VD = np.asarray(reader.read([given([word], self._settings) for word in asked]))
        if reader.is_contextual:
            spread_D = rows_VD.std(0)
            rows_VD = (rows_VD - rows_VD.mean(0)) / np.where(spread_D > 1e-9, spread_D, 1.0)
        return dict(zip(asked, unit_rows(rows_VD), strict=True))


def _composes(vectors: Any) -> bool:
    from sememe.vectors.subwords import SubwordVectors

    return isinstance(vectors, SubwordVectors) and vectors.has_subwords


def _mean(vectors: dict[str, np.ndarray], words: list[str]) -> np.ndarray:
    mean_D = np.mean([vectors[word] for word in words], axis=0)
    return mean_D / max(float(np.linalg.norm(mean_D)), 1e-9)


def _belongings(text: LadderText, is_unseen: bool, num: int, min_count: int) -> list[Belonging]:
    """Words of held-out documents with words of their own document and of three others."""
    vocabulary = text.words.vocabulary
    documents: list[tuple[list[str], list[str]]] = []  # words to ask, words to choose by

    common = min(_COMMON, len(vocabulary) // 10)

    def is_known(word: str) -> bool:
        word_id = vocabulary.find(word)
        return common <= word_id < 10_000 and vocabulary.counts[word_id] >= min_count

    for words in _document_words(text, 40 * num):
        # A letter is no word; a Chinese character by itself mostly fits any text (做, 约, 总).
        distinct = [word for word in dict.fromkeys(words) if word.isalpha() and len(word) > 1]
        known = [word for word in distinct if is_known(word)]
        if is_unseen:
            asked = [word for word in distinct if vocabulary.find(word) < 0 and len(word) > 3]
            if text.settings.mode == "chinese":
                asked = [word for word in distinct if vocabulary.find(word) < 0]
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
    """The words of the first held-out documents, of each the first few hundred."""
    kept: list[str] = []
    for document in text.heldout_documents():
        if len(kept) >= num:
            break
        kept.append(document[:3_000])
    found: list[Words] = cut(kept, text.settings)
    return [own.words for own in found]
