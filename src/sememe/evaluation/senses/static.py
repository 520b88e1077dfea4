"""Word vectors on words in sentences: one vector a word, and the mean over its neighbors.

N occurrences, D numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sememe.evaluation.senses.files import Occurrence
from sememe.evaluation.senses.representations import Representation, context_baselines
from sememe.examples.running_words import is_word, places_in, written
from sememe.text.settings import TextSettings
from sememe.vectors.lexicon import Lexicon

if TYPE_CHECKING:
    from sememe.vectors import WordVectors


def represent_words(
    vectors: WordVectors, settings: TextSettings | None, occurrences: Sequence[Occurrence]
) -> list[Representation]:
    """The vector of each word by itself, and the mean of the other words of its sentence.

    Without settings, text is cut as its own characters ask for, in the case that vectors know.
    """
    settings = settings or guess_settings(occurrences)
    lexicon = Lexicon(vectors)
    words = list(dict.fromkeys(one.word for one in occurrences))
    texts = [one.sentence for one in occurrences]
    places = list(places_in([*texts, *words], settings))

    def numbers(text: str, own: Sequence[tuple[int, int]]) -> list[int]:
        pieces = [text[start:end] for start, end in own]
        kept = [written(piece, settings) for piece in pieces if is_word(piece, settings)]
        return [lexicon.number(lexicon.spelling(piece)) for piece in kept]

    contexts = [
        numbers(one.sentence, [(s, e) for s, e in own if e <= one.start or s >= one.end])
        for one, own in zip(occurrences, places, strict=False)
    ]
    alone = {
        # A word of several characters may be one word of the vectors, or several.
        word: numbers(word, [(0, len(word))] if lexicon.has_own(written(word, settings)) else own)
        for word, own in zip(words, places[len(texts) :], strict=True)
    }
    rows_WD, is_known_W = lexicon.rows(0, len(lexicon))
    if lexicon.is_one_hot:
        rows_WD = np.eye(len(lexicon), dtype=np.float32)
    by_itself = _means([alone[one.word] for one in occurrences], rows_WD, is_known_W)
    return [
        *context_baselines(*_means(contexts, rows_WD, is_known_W)),
        Representation("word, one vector for all senses", "word", *by_itself),
    ]


def _means(
    numbers: Sequence[Sequence[int]], rows_WD: np.ndarray, is_known_W: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The mean over the known words of each row, (N, D), and which rows have one."""
    known = [[number for number in own if is_known_W[number]] for own in numbers]
    means_ND = np.zeros((len(numbers), rows_WD.shape[1]))
    for mean_D, own in zip(means_ND, known, strict=True):
        if own:
            mean_D[:] = rows_WD[own].mean(0, dtype=np.float64)
    return means_ND, np.array([bool(own) for own in known])


def guess_settings(occurrences: Sequence[Occurrence]) -> TextSettings:
    """How text must be cut for vectors that do not tell: as Chinese if most words here are."""
    num_chinese = sum("\u4e00" <= one.word[:1] <= "\u9fff" for one in occurrences)
    language = "zh" if 2 * num_chinese > len(occurrences) else "en"
    return TextSettings(language=language, lowercase=False)
