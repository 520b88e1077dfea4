"""Does a model keep the meanings of a word apart? A model or its path and files in, scores out.

Static models give one vector a word, and the mean over its neighbors. Models that read words in
context give the word layer by layer and, beside the layers, what they expect in its place: the
vector from which they predict it. There the word itself is not seen, so that nothing in the vector
is the same for all its meanings (Amrami & Goldberg 2018 distinguish meanings by what a language
model would put in a word's place). N occurrences, T words or tokens of a sentence, D dimensions.

A line of a file holds, between tabs, the word, a name for its meaning, and a sentence in which the
word is marked: `bank⇥river⇥We sat on the [[bank]].` Or the sentence stays as it is, and where the
word starts and ends in it, counted in characters from 0, comes before it: `bank⇥river⇥14⇥18⇥We sat
on the bank.` Blank lines and lines that start with `#` are skipped.
"""

from __future__ import annotations

import copy
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.evaluation.question_files import Line, read_lines
from sememe.evaluation.senses.results import SenseScore, SensesResult, WordScore
from sememe.examples.running_words import is_word, places_in, written
from sememe.metrics import mean_interval, separation
from sememe.models.registry import opened
from sememe.progress import Reporter, as_reporter
from sememe.text.characters import is_mostly_chinese
from sememe.text.settings import TextSettings
from sememe.vectors.lexicon import Lexicon

if TYPE_CHECKING:
    from sememe.contract import Model
    from sememe.vectors import WordVectors

BUILT_IN = Path(__file__).parent / "data"
SETS = ("english", "chinese", "python", "docstrings")

_MARKED = re.compile(r"\[\[(.+?)\]\]")

# A word by itself; the other words of its sentence; the word in its sentence, as a layer has it;
# what a network that does not see the word expects in its place.
Role = Literal["word", "context", "layer", "place"]
MEAN, CENTERED_MEAN = "other words, mean", "other words, centered"
PLACE = "place of the word, predicted"

_SENTENCES_AT_ONCE = 64
_NUM_LOOKED_AT = 2_000
_LAYERS = {"first": 0, "second-to-last": -2, "last": -1}


# ---- files --------------------------------------------------------------------------------------


class Occurrence(NamedTuple):
    """A word with one of its meanings, in a sentence: characters `start` to `end` of it."""

    word: str
    sense: str
    sentence: str
    start: int
    end: int


class SenseSet(NamedTuple):
    """A file of words in sentences, named after the file."""

    name: str
    occurrences: list[Occurrence]

    @property
    def words(self) -> list[str]:
        """The words, in the order of the file."""
        return list(dict.fromkeys(one.word for one in self.occurrences))


Data = str | Path | SenseSet


def find_sets(data: Data | Sequence[Data] | None) -> list[SenseSet]:
    """Read the sets of `data`: built-in ones by name, files, or all built-in ones."""
    names = SETS if data is None else [data] if isinstance(data, Data) else data
    found = []
    for name in names:
        if isinstance(name, SenseSet):
            found.append(name)
            continue
        is_built_in = str(name) in SETS and not Path(name).exists()
        found.append(read_senses(BUILT_IN / f"{name}.tsv" if is_built_in else name))
    return found


def read_senses(path: str | Path) -> SenseSet:
    """Read a file in which every word has at least two senses, each with at least two sentences."""
    path = Path(path)
    if not path.is_file():
        raise InputError(
            f"There is no file {path}; give a file of words in sentences, or one of "
            f"{', '.join(SETS)}."
        )
    lines = read_lines(path)
    occurrences = [_occurrence(path, line) for line in lines]
    first_lines: dict[Occurrence, int] = {}
    for line, one in zip(lines, occurrences, strict=True):
        # The meaning is not part of it: the same place cannot have two.
        place = one._replace(sense="")
        if place in first_lines:
            raise InputError(
                f"{path}:{line.number}: the same sentence is on line {first_lines[place]}."
            )
        first_lines[place] = line.number
    _check_senses(path, lines, occurrences)
    return SenseSet(path.stem, occurrences)


def _occurrence(path: Path, line: Line) -> Occurrence:
    where = f"{path}:{line.number}"
    cells = [cell.strip() for cell in line.text.split("\t")]
    if len(cells) not in (3, 5) or not all(cells):
        raise InputError(
            f"{where}: a word, its meaning and a sentence between tabs were expected, "
            f"not “{line.text}”."
        )
    if len(cells) == 5:
        return _placed(where, cells)
    word, sense, marked = cells
    marks = list(_MARKED.finditer(marked))
    if len(marks) != 1:
        raise InputError(
            f"{where}: one word in [[ ]] was expected in the sentence, not {len(marks)}: "
            f"“{marked}”."
        )
    start, text = marks[0].start(), marks[0][1]
    sentence = marked[:start] + text + marked[marks[0].end() :]
    return Occurrence(word, sense, sentence, start, start + len(text))


def _placed(where: str, cells: list[str]) -> Occurrence:
    word, sense, first, last, sentence = cells
    if not all(place.isdecimal() and len(place) < 10 for place in (first, last)):
        raise InputError(
            f"{where}: two numbers, where the word starts and ends, were expected before the "
            f"sentence, not “{first[:40]}” and “{last[:40]}”."
        )
    start, end = int(first), int(last)
    if not start < end <= len(sentence) or not sentence[start:end].strip():
        raise InputError(
            f"{where}: characters {start} to {end} hold no word; the sentence has "
            f"{len(sentence)} characters."
        )
    return Occurrence(word, sense, sentence, start, end)


def _check_senses(path: Path, lines: list[Line], occurrences: list[Occurrence]) -> None:
    counts = Counter((one.word, one.sense) for one in occurrences)
    num_senses = Counter(word for word, _ in counts)
    for line, one in zip(lines, occurrences, strict=True):
        if num_senses[one.word] < 2:
            raise InputError(f"{path}:{line.number}: “{one.word}” has only one meaning here.")
        if counts[one.word, one.sense] < 2:
            raise InputError(
                f"{path}:{line.number}: “{one.sense}” of “{one.word}” has only one sentence; "
                "it needs at least two."
            )


# ---- one model ----------------------------------------------------------------------------------


class Representation(NamedTuple):
    """One vector per occurrence; unknown ones are excluded from scores."""

    name: str
    role: Role
    vectors_ND: np.ndarray
    is_known_N: np.ndarray
    is_last: bool = False  # the layer that the model itself continues from


def evaluate_senses(
    model: Any,
    data: Data | Sequence[Data] | None = None,
    *,
    layers: Any = "all",
    language: str = "",
    limit: int | None = None,
    device: str = "auto",
    seed: int = 1,
    progress: Reporter | bool | None = None,
) -> SensesResult:
    """Does the nearest other occurrence of a word have the same sense?

    `model` is any model with word vectors, or its path; `data` are built-in sets by name (english,
    chinese, python, docstrings), or files; by default all built-in ones. `layers` is all, or one or
    several of the choices of `embed_words`.
    """
    sets, choices = find_sets(data), _choices(layers)
    asked = opened(model, limit=limit, device=device)
    asked.require("embed_words")
    if language and asked.text.language != language:
        asked = copy.copy(asked)
        asked.text = asked.text.for_language(language)
    scores = [
        score_set(own, representation, seed)
        for own in sets
        for representation in represent(asked, own.occurrences, choices, as_reporter(progress))
    ]
    name = str(model) if isinstance(model, str | Path) else type(model).__name__
    return SensesResult(model=name, kind=asked.kind, scores=scores, seed=seed)


def _choices(layers: Any) -> list[Any]:
    """The layers to score one by one; empty means all."""
    chosen = list(layers) if isinstance(layers, list | tuple) else [layers]
    chosen = [
        int(one) if isinstance(one, str) and one.removeprefix("-").isdecimal() else one
        for one in chosen
    ]
    if "all" in chosen:
        if len(chosen) > 1:
            raise OptionError("layers is all of them, or some: not both.")
        return []
    return chosen


def represent(
    model: Model, occurrences: Sequence[Occurrence], choices: Sequence[Any], reporter: Reporter
) -> list[Representation]:
    """A model's vectors for words in sentences: the other words first, then the word itself."""
    if len(model.layer_widths) > 1:
        return _represent_layers(model, occurrences, choices, reporter)
    return _represent_words(model.words, model.text, occurrences)


def _context(vectors_ND: np.ndarray, is_known_N: np.ndarray) -> list[Representation]:
    """The mean of the other words of a sentence, as it is and minus the mean over all sentences.

    Frequent words pull every mean in one direction; without it, similar means stand out.
    """
    centered_ND = np.array(vectors_ND)
    if is_known_N.any():
        centered_ND[is_known_N] -= vectors_ND[is_known_N].mean(0)
    return [
        Representation(MEAN, "context", vectors_ND, is_known_N),
        Representation(CENTERED_MEAN, "context", centered_ND, is_known_N),
    ]


# ---- words in context ---------------------------------------------------------------------------


def _represent_layers(
    model: Model, occurrences: Sequence[Occurrence], choices: Sequence[Any], reporter: Reporter
) -> list[Representation]:
    """The other words' input vectors, the word in the chosen layers, and its expected vector."""
    num_layers = len(model.layer_widths)
    chosen = [_LAYERS.get(one, one) for one in choices] or list(range(num_layers))
    # Layers that have a number are read together, after the words by themselves.
    numbers = [0, *(one for one in chosen if isinstance(one, int))]
    read = _read(model, occurrences, tuple(numbers), reporter)
    cuts = np.cumsum([model.layer_widths[number] for number in numbers])[:-1]
    layers = iter(np.split(read.inside_ND, cuts, axis=1)[1:])
    found = _context(read.outside_ND[:, : model.layer_widths[0]], read.has_context_N)
    for one in chosen:
        if isinstance(one, int):
            number = one % num_layers
            label, vectors_ND, is_last = f"layer {number}", next(layers), number == num_layers - 1
        else:
            vectors_ND = _read(model, occurrences, one, reporter).inside_ND
            label, is_last = str(one), False
        found.append(Representation(label, "layer", vectors_ND, read.is_known_N, is_last))
    if "embed_expected" in model.capabilities:
        places = [(one.start, one.end) for one in occurrences]
        expected_ND = model.embed_expected([one.sentence for one in occurrences], places)
        found.append(Representation(PLACE, "place", expected_ND, read.is_known_N))
    return found


class _Read(NamedTuple):
    """The mean over the tokens of each word, and over the others of its sentence."""

    inside_ND: np.ndarray
    outside_ND: np.ndarray
    is_known_N: np.ndarray
    has_context_N: np.ndarray


def _read(
    model: Model, occurrences: Sequence[Occurrence], layers: Any, reporter: Reporter
) -> _Read:
    rows = []
    with reporter.task("reading", len(occurrences), "sentences") as task:
        # In parts, since all layers of many sentences would fill the memory.
        for first in range(0, len(occurrences), _SENTENCES_AT_ONCE):
            part = occurrences[first : first + _SENTENCES_AT_ONCE]
            found = model.embed_tokens([one.sentence for one in part], layers=layers)
            for one, own in zip(part, found, strict=True):
                is_inside_T = (own.starts < one.end) & (own.ends > one.start)
                rows.append(
                    (
                        _mean(own.vectors_WD[is_inside_T]), _mean(own.vectors_WD[~is_inside_T]),
                        own.is_known_W[is_inside_T].any(), own.is_known_W[~is_inside_T].any(),
                    )
                )  # fmt: skip
            task.update(len(rows))
    return _Read(*(np.array(column) for column in zip(*rows, strict=True)))


def _mean(vectors_TD: np.ndarray) -> np.ndarray:
    """The mean over tokens; zeros where there is none."""
    return vectors_TD.sum(0, dtype=np.float64) / max(1, len(vectors_TD))


# ---- one vector a word --------------------------------------------------------------------------


def _represent_words(
    vectors: WordVectors, settings: TextSettings, occurrences: Sequence[Occurrence]
) -> list[Representation]:
    """The vector of each word by itself, and the mean of the other words of its sentence."""
    # Vectors of a file do not say how text was cut: their words do.
    longer = [word for word in vectors.vocabulary[:_NUM_LOOKED_AT] if len(word) > 1]
    if settings == TextSettings() and is_mostly_chinese(longer):
        settings = settings.for_language("zh")
    lexicon = Lexicon(vectors)
    words = list(dict.fromkeys(one.word for one in occurrences))
    texts = [one.sentence for one in occurrences]
    places = list(places_in([*texts, *words], settings))

    def spelled(piece: str) -> str:
        return piece if lexicon.has_own(piece) else lexicon.spelling(written(piece, settings))

    def numbers(text: str, own: Sequence[tuple[int, int]]) -> list[int]:
        pieces = [text[start:end] for start, end in own]
        return [lexicon.number(spelled(piece)) for piece in pieces if is_word(piece, settings)]

    contexts = [
        numbers(one.sentence, [(s, e) for s, e in own if e <= one.start or s >= one.end])
        for one, own in zip(occurrences, places, strict=False)
    ]
    alone = {
        # A word of several characters may be one word of the vectors, or several.
        word: numbers(word, [(0, len(word))] if lexicon.has_own(spelled(word)) else own)
        for word, own in zip(words, places[len(texts) :], strict=True)
    }
    rows_WD, is_known_W = lexicon.rows(0, len(lexicon))
    if lexicon.is_one_hot:
        rows_WD = np.eye(len(lexicon), dtype=np.float32)

    def means(numbers: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        known = [[number for number in own if is_known_W[number]] for own in numbers]
        means_ND = np.stack([_mean(rows_WD[own]) for own in known])
        return means_ND, np.array([bool(own) for own in known])

    by_itself = means([alone[one.word] for one in occurrences])
    return [
        *_context(*means(contexts)),
        Representation("word, one vector for all senses", "word", *by_itself),
    ]


# ---- scores -------------------------------------------------------------------------------------


def score_set(own: SenseSet, representation: Representation, seed: int = 1) -> SenseScore:
    """Score one representation of the words of a set; each word has equal weight."""
    if not np.isfinite(representation.vectors_ND).all():
        raise ArtifactError(f"The vectors for “{own.name}” are NaN: the model is damaged.")
    scores = [_score_word(word, own.occurrences, representation) for word in own.words]
    found = [score for score in scores if score is not None]
    nearest, chance, auc = (
        [getattr(score, name) for score in found] for name in ("nearest", "chance", "auc")
    )
    return SenseScore(
        set=own.name,
        name=representation.name,
        role=representation.role,
        is_last=representation.is_last,
        nearest=float(np.mean(nearest)) if found else math.nan,
        interval=mean_interval(nearest, seed=seed),
        chance=float(np.mean(chance)) if found else math.nan,
        auc=float(np.mean(auc)) if found else math.nan,
        num_words=len(own.words),
        num_occurrences=len(own.occurrences),
        words=found,
    )


def _score_word(
    word: str, occurrences: list[Occurrence], representation: Representation
) -> WordScore | None:
    """Score a word by its known occurrences; None if fewer than two senses are left."""
    known = [
        index
        for index, one in enumerate(occurrences)
        if one.word == word and representation.is_known_N[index]
    ]
    counts = Counter(occurrences[index].sense for index in known)
    # An only occurrence has no like to be near to.
    kept = [index for index in known if counts[occurrences[index].sense] > 1]
    senses = [occurrences[index].sense for index in kept]
    if len(set(senses)) < 2:
        return None
    return WordScore(word, *separation(representation.vectors_ND[kept], senses), len(kept))
