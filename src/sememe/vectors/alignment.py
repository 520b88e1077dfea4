"""Two sets of word vectors in one space: an orthogonal map learned from pairs of words.

    found = align("runs/de", "runs/en", dictionary="de-en.txt")
    found.vectors.save("runs/de-in-en")

The map W minimizes Σ |W x − y|² over the pairs (x, y) of a seed dictionary, or of words that both
sides spell alike; under the constraint that W is orthogonal a singular value decomposition solves
it (Schönemann 1966; Xing et al. 2015; Smith et al. 2017). Refinement then takes as new pairs the
words that are each other's nearest neighbors by CSLS, and solves again (Conneau et al. 2018).
S source words, T target words, P pairs, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError, SememeError
from sememe.progress import Reporter, as_reporter
from sememe.storage.tensors import read_tensors
from sememe.text.sources import read_utf8
from sememe.vectors.opening import TENSORS, load, save_folder
from sememe.vectors.search import unit_rows
from sememe.vectors.wordvectors import WordVectors

By = Literal["csls", "cosine"]
CSLS_NEIGHBORS = 10  # as in the paper
_NUM_SCORES = 1 << 24  # held at one time: 64 MB of float32
_SEEDS = "seed_ids"  # the tensor of the source words that the map was learned from
_LEAST_GAIN = 1e-4  # of the mean CSLS; below it refinement ends


# ---- dictionaries -------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A word and one of its translations."""

    source: str
    target: str


def read_dictionary(path: str | Path) -> list[Entry]:
    """Read a file with a word and its translation per line, with a tab or spaces between.

    Empty lines and lines that start with # are skipped, repeated pairs count once.
    """
    found: dict[Entry, None] = {}
    for number, line in enumerate(read_utf8(path).split("\n"), start=1):
        line = line.strip("\r\n ")
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else line.split())]
        if len(cells) != 2 or not all(cells):
            raise InputError(
                f"{path}, line {number}: a word and its translation are expected, with a tab or a "
                f"space between, not {line[:60]!r}."
            )
        found[Entry(*cells)] = None
    if not found:
        raise InputError(f"{path} holds no pairs of words: it is empty.")
    return list(found)


@dataclass(frozen=True)
class Pairs:
    """The pairs that have vectors on both sides, as ids, and how many have not."""

    source_P: np.ndarray
    target_P: np.ndarray
    num_given: int
    num_unknown_source: int = 0
    num_unknown_target: int = 0

    def __len__(self) -> int:
        return len(self.source_P)


def known_pairs(source: WordVectors, target: WordVectors, entries: Sequence[Entry]) -> Pairs:
    """Look the pairs up, as written or else in lower case; a missing source word counts first."""
    ids, unknown = [], [0, 0]
    for entry in entries:
        own = find(source, entry.source), find(target, entry.target)
        if min(own) < 0:
            unknown[0 if own[0] < 0 else 1] += 1
        else:
            ids.append(own)
    both_P2 = np.array(list(dict.fromkeys(ids)), np.int64).reshape(-1, 2)
    return Pairs(both_P2[:, 0], both_P2[:, 1], len(entries), *unknown)


def find(vectors: WordVectors, word: str) -> int:
    """The id of a word, as written or else in lower case; -1 without one."""
    return vectors.vocabulary.find(vectors.spelling(word))


def identical_pairs(source: WordVectors, target: WordVectors, num_words: int) -> Pairs:
    """The words among the `num_words` most frequent of both sides that are spelled alike."""
    places = {word: index for index, word in enumerate(target.vocabulary[:num_words])}
    words = source.vocabulary[:num_words]
    ids = [(index, places[word]) for index, word in enumerate(words) if word in places]
    both_P2 = np.array(ids, np.int64).reshape(-1, 2)
    return Pairs(both_P2[:, 0], both_P2[:, 1], len(ids))


# ---- the map ------------------------------------------------------------------------------------


def procrustes(source_PD: np.ndarray, target_PD: np.ndarray) -> np.ndarray:
    """The orthogonal matrix (D, D) for which source @ matrix is nearest to target."""
    left_DD, _, right_DD = np.linalg.svd(source_PD.T @ target_PD)
    return np.asarray(left_DD @ right_DD)


def mean_similarity(units_ND: np.ndarray, others_MD: np.ndarray) -> np.ndarray:
    """The mean cosine of each row with its nearest rows of the other side (CSLS's r), (N,)."""
    found_N, num = np.empty(len(units_ND)), min(CSLS_NEIGHBORS, len(others_MD))
    for own in _blocks(len(units_ND), len(others_MD)):
        best_BK = np.partition(units_ND[own] @ others_MD.T, -num, axis=1)[:, -num:]
        found_N[own] = best_BK.mean(axis=1)
    return found_N


def _blocks(num_rows: int, num_columns: int) -> Iterator[slice]:
    """Blocks of rows whose scores with all columns fit in memory."""
    size = max(1, _NUM_SCORES // num_columns)
    return (slice(start, start + size) for start in range(0, num_rows, size))


class Space:
    """Unit vectors of a target language, to be searched by mapped source words."""

    def __init__(self, units_TD: np.ndarray, source_SD: np.ndarray, by: By = "csls") -> None:
        """`source_SD` are the mapped unit vectors among which CSLS counts a target's neighbors."""
        self.units_TD = units_TD.astype(np.float32)
        # 2 cos(x, y) − r(x) − r(y): r(x) does not change the order of the targets of one x.
        own_T = mean_similarity(self.units_TD, source_SD.astype(np.float32)) if by == "csls" else 0
        self._hubness_T = np.asarray(own_T, np.float32) / 2

    def nearest(self, units_QD: np.ndarray, num: int) -> tuple[np.ndarray, np.ndarray]:
        """The ids (Q, num) of the best target words, best first, and their scores."""
        num = min(num, len(self.units_TD))
        ids_QK = np.empty((len(units_QD), num), np.int64)
        scores_QK = np.empty((len(units_QD), num), np.float32)
        for own in _blocks(len(units_QD), len(self.units_TD)):
            scores_BT = units_QD[own].astype(np.float32) @ self.units_TD.T
            scores_BT -= self._hubness_T
            if num == 1:
                ids_QK[own] = scores_BT.argmax(axis=1)[:, None]
                scores_QK[own] = np.take_along_axis(scores_BT, ids_QK[own], 1)
                continue
            found_BK = np.argpartition(-scores_BT, num - 1, axis=1)[:, :num]
            found_BK.sort(axis=1)  # ties by id
            found_scores = np.take_along_axis(scores_BT, found_BK, 1)
            order = np.argsort(-found_scores, axis=1, kind="stable")
            ids_QK[own] = np.take_along_axis(found_BK, order, 1)
            scores_QK[own] = np.take_along_axis(found_scores, order, 1)
        return ids_QK, scores_QK


class Round(NamedTuple):
    """A map, the pairs that it was learned from, and the mean CSLS of the nearest neighbors."""

    matrix_DD: np.ndarray
    num_pairs: int
    mean_csls: float


def _mutual(mapped_SD: np.ndarray, units_TD: np.ndarray) -> tuple[np.ndarray, float]:
    """The pairs (P, 2) that are each other's nearest by CSLS, and the mean CSLS of the nearest."""
    mapped_SD, units_TD = mapped_SD.astype(np.float32), units_TD.astype(np.float32)
    there, back = Space(units_TD, mapped_SD), Space(mapped_SD, units_TD)
    forward_S1, scores_S1 = there.nearest(mapped_SD, 1)
    backward_T1, _ = back.nearest(units_TD, 1)
    forward_S = forward_S1[:, 0]
    is_mutual_S = backward_T1[forward_S, 0] == np.arange(len(forward_S))
    source_P = np.flatnonzero(is_mutual_S)
    score = 2 * (scores_S1[:, 0] - back._hubness_T).mean()
    return np.stack([source_P, forward_S[source_P]], 1), float(score)


def refine(
    source_SD: np.ndarray, target_TD: np.ndarray, matrix_DD: np.ndarray, rounds: int
) -> list[Round]:
    """Learn the map again from mutual nearest neighbors, `rounds` times or until nothing is gained.

    Both sides are the unit vectors of their most frequent words. The first round is the given map.
    """
    found: list[Round] = []
    num_pairs = 0
    for index in range(rounds + 1):
        pairs_P2, score = _mutual(source_SD @ matrix_DD, target_TD)
        found.append(Round(matrix_DD, num_pairs, score))
        is_over = index and score < found[-2].mean_csls + _LEAST_GAIN
        if is_over or index == rounds or not len(pairs_P2):
            break
        matrix_DD = procrustes(source_SD[pairs_P2[:, 0]], target_TD[pairs_P2[:, 1]])
        num_pairs = len(pairs_P2)
    return found


# ---- aligning models ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Source vectors in the space of the target, and what the map was learned from."""

    vectors: WordVectors
    matrix_DD: np.ndarray  # source vectors @ matrix
    pairs: Pairs
    seeds: list[Entry]  # the pairs that were used
    rounds: list[Round] = field(default_factory=list)  # of the refinement; the first is before it
    taken: int = -1  # the round whose map was taken
    about: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, list[str]] = field(default_factory=dict)  # words and their nearest targets

    def save(self, path: str | Path) -> None:
        """Write the aligned vectors as a folder; it says how they were made."""
        about = {"alignment": self.to_dict()}
        own = {_SEEDS: np.unique(self.pairs.source_P).astype(np.int32)}
        save_folder(self.vectors, Path(path), about=about, more=own)

    def to_dict(self) -> dict[str, Any]:
        """What was done, for JSON."""
        return {
            **self.about,
            "pairs": len(self.pairs),
            "pairs_given": self.pairs.num_given,
            "unknown_source": self.pairs.num_unknown_source,
            "unknown_target": self.pairs.num_unknown_target,
            "rounds": [
                {"pairs": own.num_pairs or len(self.pairs), "mean_csls": round(own.mean_csls, 4)}
                for own in self.rounds
            ],
            "round_taken": max(0, self.taken),
        }


def seed_words(vectors: WordVectors) -> set[str]:
    """The words that the map of aligned vectors was learned from; none for other vectors."""
    if vectors._folder is None or "alignment" not in vectors.about:
        return set()
    ids = read_tensors(vectors._folder / TENSORS).get(_SEEDS, np.zeros(0, np.int32))
    return {vectors.vocabulary[int(one)] for one in ids if one < len(vectors)}


def align(
    source: Any,
    target: Any,
    *,
    dictionary: str | Path | Iterable[tuple[str, str]] | None = None,
    identical: bool = False,
    rounds: int = 5,
    num_words: int = 10_000,
    names: tuple[str, str] | None = None,
    progress: Reporter | bool | None = None,
) -> Alignment:
    """Turn the vectors of `source` so that translations are close to those of `target`.

    Both are word vectors, models that have them, or paths. The pairs come from a dictionary (a
    file, or pairs of words) or from `identical` spelling. `rounds` is the most rounds of refinement
    by mutual nearest neighbors, among the `num_words` most frequent words of each side; 0: none.
    The output folder says which models these were, by `names` if they are given.
    """
    if (dictionary is None) != identical:
        raise OptionError("Give either a dictionary or identical (identical strings).")
    if rounds < 0 or num_words < 2:
        raise OptionError("rounds must be at least 0, num_words at least 2.")
    reporter = as_reporter(progress)
    left, right = (_opened(model) for model in (source, target))
    pairs, origin = _pairs(left, right, dictionary, num_words)
    _check(left, right, pairs, reporter)
    first_DD = procrustes(
        unit_rows(left.vectors[pairs.source_P]), unit_rows(right.vectors[pairs.target_P])
    )
    source_SD, target_TD = (unit_rows(own.vectors[:num_words]) for own in (left, right))
    found = refine(source_SD, target_TD, first_DD, rounds)
    taken = max(range(len(found)), key=lambda index: found[index].mean_csls)
    matrix_DD = found[taken].matrix_DD
    turned = WordVectors(
        left.vocabulary, np.asarray(left.vectors @ matrix_DD.astype(np.float32)),
        text=left._text,
    )  # fmt: skip
    seeds = [
        Entry(left.vocabulary[int(a)], right.vocabulary[int(b)])
        for a, b in zip(pairs.source_P, pairs.target_P, strict=True)
    ]
    own = names or (_name(source), _name(target))
    about = {"source": own[0], "target": own[1], **origin}
    return Alignment(
        vectors=turned, matrix_DD=matrix_DD, pairs=pairs, seeds=seeds, rounds=found, taken=taken,
        about=about, samples=_samples(left, right, source_SD @ matrix_DD, target_TD, pairs),
    )  # fmt: skip


def _opened(model: Any) -> WordVectors:
    try:
        vectors: WordVectors = load(model) if isinstance(model, str | Path) else model.words
    except SememeError:
        raise
    except AttributeError:
        raise OptionError(
            "align needs word vectors, a model that has them, or the path of one."
        ) from None
    if vectors.is_one_hot:
        raise OptionError("align needs vectors with dimensions, not one-hot vectors.")
    return vectors


def _name(model: Any) -> str:
    return str(model) if isinstance(model, str | Path) else type(model).__name__


def _pairs(
    left: WordVectors, right: WordVectors, dictionary: Any, num_words: int
) -> tuple[Pairs, dict[str, Any]]:
    if dictionary is None:
        return identical_pairs(left, right, num_words), {"seed": "identical strings"}
    if isinstance(dictionary, str | Path):
        return known_pairs(left, right, read_dictionary(dictionary)), {
            "seed": "dictionary",
            "dictionary": str(dictionary),
        }
    entries = [Entry(*pair) for pair in dictionary]
    return known_pairs(left, right, entries), {"seed": "dictionary"}


def _check(left: WordVectors, right: WordVectors, pairs: Pairs, reporter: Reporter) -> None:
    if left.dim != right.dim:
        raise OptionError(
            f"An orthogonal map needs the same number of dimensions on both sides, not {left.dim} "
            f"and {right.dim}: train one of them again."
        )
    if len(pairs) < 2:
        raise InputError(
            f"{len(pairs)} of {pairs.num_given:,} pairs have vectors on both sides: too few to "
            f"learn a map ({pairs.num_unknown_source:,} source words and "
            f"{pairs.num_unknown_target:,} target words are unknown)."
        )
    if len(pairs) < left.dim:
        reporter.note(
            f"{len(pairs):,} pairs for {left.dim} dimensions: they do not determine the map, which "
            "depends on the refinement then. Give more pairs."
        )


def _samples(
    left: WordVectors, right: WordVectors, mapped_SD: np.ndarray, target_TD: np.ndarray,
    pairs: Pairs,
) -> dict[str, list[str]]:  # fmt: skip
    """A few frequent words outside the seed pairs, with the nearest target words by CSLS."""
    known = set(pairs.source_P.tolist())
    # The most frequent words are function words, which rarely translate one by one.
    ids = [one for one in range(min(200, len(mapped_SD) // 4), len(mapped_SD)) if one not in known]
    chosen = ids[:: max(1, len(ids) // 40)][:5]
    if not chosen:
        return {}
    near_QK, _ = Space(target_TD, mapped_SD).nearest(mapped_SD[chosen], 3)
    return {
        left.vocabulary[word]: [right.vocabulary[int(one)] for one in row]
        for word, row in zip(chosen, near_QK, strict=True)
    }
