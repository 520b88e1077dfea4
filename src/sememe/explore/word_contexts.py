"""One word in many sentences: a model and a text in; a point for each use, layer by layer, out.

    found = word_contexts(model, "bank", "my-texts/", sentence="The bank of the river is wet.")
    found.rows(layer=2)

N uses of a word, L layers (the first are the input vectors), D dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.contract import KINDS
from sememe.errors import InputError, OptionError
from sememe.explore.clusters import clustered
from sememe.explore.uses import Use, UsesText, locate, of_set
from sememe.metrics import separation
from sememe.text.settings import BUILT_IN
from sememe.vectors.search import unit_rows

_SAME = 1e-5  # unit vectors closer than this are one point
Embed = Callable[[list[list[Any]]], list[tuple[np.ndarray, bool]]]


class Layers(NamedTuple):
    """The unit vectors of uses, (N, D) for each layer, and whether the model knows the word."""

    units_LND: list[np.ndarray]
    is_known_N: np.ndarray


class WordContexts(NamedTuple):
    """The uses of a word as points of every layer, their clusters, and metrics of the layers."""

    uses: list[Use]
    is_known_N: np.ndarray
    places_LN2: np.ndarray
    cluster_N: np.ndarray
    clusters: list[list[str]]  # words that are typical of the sentences of each
    is_one_point: bool  # one vector for the word, whatever the sentence
    mean_cosines: list[float]  # of two uses, by layer
    same_sense: list[float] | None  # how often the nearest use has the same sense, by layer
    chance: float | None  # of the same by chance
    own: Use | None = None  # the word in one's own sentence
    own_L2: np.ndarray | None = None  # where it is
    cosines_LN: np.ndarray | None = None  # of it and every use

    def rows(self, layer: int = -1) -> list[dict[str, Any]]:
        """The uses with their points in a layer, as the page saves them."""
        if not -len(self.places_LN2) <= layer < len(self.places_LN2):
            raise OptionError(f"The layer must be 0 to {len(self.places_LN2) - 1}, not {layer}.")
        found = []
        for index, use in enumerate(self.uses):
            x, y = self.places_LN2[layer, index].tolist()
            row = {
                "sentence": use.sentence, "start": use.start, "end": use.end, "group": use.group,
                "cluster": int(self.cluster_N[index]), "x": x, "y": y,
            }  # fmt: skip
            if self.cosines_LN is not None:
                row["cosine"] = float(self.cosines_LN[layer, index])
            found.append(row)
        return found


def word_contexts(
    model: Any,
    word: str,
    text: str | Path | None = None,
    *,
    set: str = "",
    num: int = 150,
    clusters: int = 0,
    sentence: str = "",
) -> WordContexts:
    """The uses of a word in a text (None: the built-in corpus) or in a set of known senses.

    `clusters` 0: as many as separate best. `sentence` is one's own and is compared with all.
    """
    model.require("embed_words")
    word = word.strip()
    uses = of_set(word, set)[:num] if set else UsesText(text).find(word, num).uses
    check_number(word, uses, f"the sense set {set}" if set else str(text or BUILT_IN))

    name = KINDS[model.kind].title

    def embed(rows: list[list[Any]]) -> list[tuple[np.ndarray, bool]]:
        return embedded(model, rows)

    layers = layers_of(uses, model, name, embed)
    single = None
    if sentence.strip():
        place = locate(word, sentence)
        single = layers_of([place], model, name, embed), place
    return arranged(uses, layers, word, clusters, single, has_senses=bool(set))


def check_number(word: str, uses: Sequence[Use], where: str) -> None:
    """Raise an error if a word has too few uses to be compared."""
    if len(uses) < 2:
        raise InputError(f"“{word}” occurs in {len(uses)} sentences of {where}: too few.")


def layers_of(uses: Sequence[Use], model: Any, name: str, embed: Embed) -> Layers:
    """The vectors of uses by layer; `embed` computes them, all layers in a row."""
    results = embed([[use.sentence, use.start, use.end] for use in uses])
    vectors_ND = np.stack([vector_D for vector_D, _ in results])
    is_known_N = np.array([is_known for _, is_known in results], np.bool_)
    if not is_known_N.any():
        word = uses[0].sentence[uses[0].start : uses[0].end]
        raise InputError(f"{name} does not know “{word}”.")
    parts = np.split(vectors_ND, np.cumsum(model.layer_widths)[:-1], axis=1)
    return Layers([unit_rows(part).astype(np.float32) for part in parts], is_known_N)


def embedded(model: Any, rows: Sequence[Any]) -> list[tuple[np.ndarray, bool]]:
    """The mean over the tokens of a word, all layers in a row, and whether the word is known."""
    num_layers = len(model.layer_widths)
    layers = tuple(range(num_layers)) if num_layers > 1 else "last"
    vectors = []
    found = model.embed_tokens([row[0] for row in rows], layers=layers)
    for (_, start, end), own in zip(rows, found, strict=True):
        is_inside_T = (own.starts < end) & (own.ends > start)
        vector_D = own.vectors_WD[is_inside_T].sum(0) / max(1, is_inside_T.sum())
        vectors.append((vector_D, bool(own.is_known_W[is_inside_T].any())))
    return vectors


def arranged(
    uses: Sequence[Use],
    layers: Layers,
    word: str,
    clusters: int = 0,
    single: tuple[Layers, Use] | None = None,
    *,
    has_senses: bool = False,
) -> WordContexts:
    """Points of all layers with clusters, cosines to one's own sentence, and metrics."""
    is_known_N, units_LND = layers.is_known_N, layers.units_LND
    known_LND = [units_ND[is_known_N] for units_ND in units_LND]
    planes = aligned([plane(units_ND) for units_ND in known_LND])
    known = [own for own, is_one in zip(uses, is_known_N, strict=True) if is_one]
    numbers, names = clustered(known_LND[-1], known, word, clusters)
    places_LN2 = np.zeros((len(planes), len(uses), 2), np.float32)
    places_LN2[:, is_known_N] = [own.points_N2 for own in planes]
    cluster_N = np.zeros(len(uses), np.uint8)
    cluster_N[is_known_N] = numbers
    senses = [own.group for own in known] if has_senses else []
    same_sense, chance = None, None
    if len(set(senses)) > 1:
        separations = [separation(units_ND, senses) for units_ND in known_LND]
        same_sense, chance = [own.nearest for own in separations], separations[0].chance
    return WordContexts(
        list(uses), is_known_N, places_LN2, cluster_N, names,
        all(own.is_one_point for own in planes), [mean_cosine(own) for own in known_LND],
        same_sense, chance, *_compared(planes, units_LND, single),
    )  # fmt: skip


def _compared(
    planes: Sequence[Plane],
    units_LND: Sequence[np.ndarray],
    single: tuple[Layers, Use] | None,
) -> tuple[Use | None, np.ndarray | None, np.ndarray | None]:
    """One's own sentence on the planes, and its cosine with every use."""
    if single is None:
        return None, None, None
    own_LD = [own_ND[0] for own_ND in single[0].units_LND]
    places_L2 = [own.place(own_D) for own, own_D in zip(planes, own_LD, strict=True)]
    cosines_LN = [units_ND @ own_D for units_ND, own_D in zip(units_LND, own_LD, strict=True)]
    return single[1], np.stack(places_L2), np.stack(cosines_LN)


# ---- a plane for each layer, turned so that points move little from one to the next -------------


class Plane(NamedTuple):
    """The two directions in which uses differ most, and their points on them."""

    points_N2: np.ndarray
    mean_D: np.ndarray
    axes_D2: np.ndarray
    is_one_point: bool

    def place(self, unit_D: np.ndarray) -> np.ndarray:
        """The place of another vector on the plane."""
        found: np.ndarray = ((unit_D - self.mean_D) @ self.axes_D2).astype(np.float32)
        return found

    def turned(self, rotation_22: np.ndarray) -> Plane:
        """The same plane with other axes in it."""
        return self._replace(
            points_N2=self.points_N2 @ rotation_22, axes_D2=self.axes_D2 @ rotation_22
        )


def plane(units_ND: np.ndarray) -> Plane:
    """Principal components of few rows: their products are a smaller matrix than covariances."""
    mean_D = units_ND.mean(0, dtype=np.float64)
    centered_ND = units_ND - mean_D
    if np.abs(centered_ND).max() < _SAME:  # only rounding differs
        zeros_N2 = np.zeros((len(units_ND), 2))
        return Plane(zeros_N2, mean_D, np.zeros((len(mean_D), 2)), True)
    values, vectors_NN = np.linalg.eigh(centered_ND @ centered_ND.T)
    num = min(2, len(values))
    axes_D2 = np.zeros((len(mean_D), 2))
    for axis, value in enumerate(values[::-1][:num]):
        if value > 1e-9 * values[-1]:
            axes_D2[:, axis] = centered_ND.T @ vectors_NN[:, -1 - axis] / np.sqrt(value)
    points_N2 = centered_ND @ axes_D2
    # The sign of an axis is arbitrary.
    signs = np.where(points_N2[np.abs(points_N2).argmax(0), [0, 1]] < 0, -1, 1)
    return Plane(points_N2 * signs, mean_D, axes_D2 * signs, False)


def aligned(planes: Sequence[Plane]) -> list[Plane]:
    """Planes turned and mirrored, from the last to the first, to fit the next one."""
    found = [planes[-1]]
    for own in reversed(planes[:-1]):
        left, _, right = np.linalg.svd(own.points_N2.T @ found[-1].points_N2)
        found.append(own.turned(left @ right))
    return found[::-1]


def mean_cosine(units_ND: np.ndarray) -> float:
    """The mean cosine of two different uses (self-similarity, Ethayarajh 2019)."""
    num = len(units_ND)
    if num < 2:
        return 1.0
    total = float((units_ND.sum(0, dtype=np.float64) ** 2).sum())
    return (total - float((units_ND.astype(np.float64) ** 2).sum())) / (num * (num - 1))
