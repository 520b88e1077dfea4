"""The view "words" of the explorer: completions, neighbors, analogies, and words on a plane."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from sememe.errors import InputError, OptionError, UnknownWordError
from sememe.explore.routing import explore_router
from sememe.explore.view_examples import (
    choose_examples,
    frequent_words,
    known_candidates,
    unseen_word,
)
from sememe.plots.heatmaps import color_range, combine
from sememe.plots.projection import lay_out, project
from sememe.serve.routes import Body, Num, Word
from sememe.serve.service import Service, as_dicts, json_response
from sememe.vectors.search import parse_sum, unit_rows

_ONE_HOT = (
    "One-hot vectors have no similarity: every word is equally far from every other, so any list "
    "of neighbors would be arbitrary."
)
_MOST_VALUES = 40_000  # cells of a heat-map; a browser draws each as an element
_NUM_OWN = 12  # words of a model for its own examples
_TALLEST = 0.62  # of a plane: its height is at most this share of its width, or 480 pixels
Words = Annotated[list[Word], Field(min_length=1, max_length=40)]
Width = Annotated[float, Field(ge=200, le=4_000)]


class NeighborsOf(Body):
    """A word as it is typed; `known_only`: no answer unless it is in the vocabulary."""

    word: Word
    num: Num = 12
    known_only: bool = False


class AnalogyOf(Body):
    """a is to b as c is to …"""

    a: Word
    b: Word
    c: Word
    num: Annotated[int, Field(ge=1, le=30)] = 5
    method: Literal["add", "mul"] = "add"
    width: Width = 640  # of the picture, in pixels


class WordList(Body):
    """Words to compare."""

    words: Words


class Plane(Body):
    """Pairs to join on a plane, and words besides."""

    pairs: list[tuple[Word, Word]] = Field([], max_length=60)
    words: list[Word] = Field([], max_length=120)
    width: Width = 640  # of the picture, in pixels


def word_routes(service: Service) -> APIRouter:
    """The routes of this view."""
    router = explore_router()

    @router.get("/complete", summary="The words that begin with these letters")
    async def complete(
        request: Request,
        start: Annotated[str, Query(max_length=1_000)],
        model: Annotated[str | None, Query(max_length=1_000)] = None,
        num: Annotated[int, Query(ge=1, le=100)] = 8,
    ) -> Response:
        found = await service.answer(
            request, model, "words", lambda own: completions(own.words, start, num)
        )
        return json_response({"words": found})

    @router.get("/words/examples", summary="Examples that the models know")
    async def examples(
        request: Request, models: Annotated[str, Query(max_length=10_000)]
    ) -> Response:
        names = [name for name in models.split(",") if name][:4]
        if not names:
            raise InputError("Name at least one model.")

        def read(model: Any) -> tuple[Any, str, list[str]]:
            return model.words, model.text.language, frequent_words(model.words, _NUM_OWN)

        found = [await service.answer(request, name, "words", read) for name in names]
        language = found[0][1]
        known = [known_candidates(vectors, language) for vectors, _, _ in found]
        answer = choose_examples(language, known, found[0][2])
        if any(vectors.has_subwords for vectors, _, _ in found):
            answer["unseen"] = unseen_word(language, [vectors for vectors, _, _ in found])
        return json_response(answer)

    def add(path: str, summary: str, kind: type[Any], call: Any) -> None:
        async def answer(request: Request, body: Any) -> Response:
            found = await service.answer(
                request, body.model, "words", lambda model: call(model.words, body)
            )
            return json_response(found)

        # What the route reads; postponed annotations cannot name a variable.
        answer.__annotations__["body"] = kind
        router.post(path, summary=summary)(answer)

    add("/words/neighbors", "The nearest words, with what was looked up", NeighborsOf, near_words)
    add("/words/analogy", "a is to b as c is to …, with its picture", AnalogyOf, solved)
    add("/words/similarities", "Cosines of words, and the odd one", WordList, compared)
    add("/words/plane", "Words and pairs on their plane", Plane, on_plane)
    add("/words/vectors", "Values of vectors and of their sums", WordList, values)
    return router


def completions(vectors: Any, start: str, num: int) -> list[str]:
    """The words that begin with `start` in any case of its letters, most frequent first."""
    if not start:
        return []
    forms = dict.fromkeys((start, start.lower(), start[:1].upper() + start[1:]))
    ids = np.concatenate([vectors.vocabulary.starting_with(form) for form in forms])
    # One form may begin with another; np.unique sorts, and ids are ordered by frequency.
    return [vectors.vocabulary[word_id] for word_id in np.unique(ids)[:num].tolist()]


def near_words(vectors: Any, body: NeighborsOf) -> dict[str, Any]:
    """The neighbors of a word; notes say what was looked up instead of it."""
    is_known = body.word in vectors
    if body.known_only and not is_known:
        return {"is_known": False, "neighbors": None}
    _refuse_one_hot(vectors)
    match = vectors.look_up(body.word)
    return {
        "is_known": is_known, "notes": _notes([match]),
        # Made of sub-words: no training has seen it.
        "is_unseen": not any(word in vectors for word in match.words),
        "count": vectors.count(body.word) if is_known else 0,
        "neighbors": as_dicts(vectors.neighbors(body.word, num=body.num)),
    }  # fmt: skip


def _refuse_one_hot(vectors: Any) -> None:
    if vectors.is_one_hot:
        raise OptionError(_ONE_HOT)


def solved(vectors: Any, body: AnalogyOf) -> dict[str, Any]:
    """The answers with their cosines to a, b and c, and the parallelogram on the plane."""
    _refuse_one_hot(vectors)
    given = [body.a, body.b, body.c]
    notes = _notes(map(vectors.look_up, given))
    answers = vectors.analogy(*given, body.num, method=body.method)
    words = given + [own.word for own in answers]
    units_ND = unit_rows(vectors.query_vectors(words))
    points_N2, shares = project(units_ND)
    # The projection keeps sums whose weights add up to 1, so b − a + c has its place too.
    target_2 = points_N2[1] - points_N2[0] + points_N2[2]
    plane = _picture(
        np.concatenate([points_N2, target_2[None]]), [*words, "b − a + c"],
        [(0, 1), (2, len(words)), (0, 2), (1, len(words))], shares, body.width,
    )  # fmt: skip
    a_D, b_D, c_D = units_ND[:3]
    return {
        "notes": notes, "plane": plane, "length": float(np.linalg.norm(b_D - a_D + c_D)),
        "answers": [
            {**own._asdict(), "cosines": (units_ND[:3] @ unit_D).tolist()}
            for own, unit_D in zip(answers, units_ND[3:], strict=True)
        ],
    }  # fmt: skip


def compared(vectors: Any, body: WordList) -> dict[str, Any]:
    """The cosines of all pairs of the words that a model knows, and the odd one out."""
    words, notes, unknown = _known(vectors, body.words)
    if len(words) < 2:
        raise _too_few(2, unknown)
    cosines_NN = np.stack([vectors.similarities(word, words) for word in words])
    others = cosines_NN - np.diag(np.diag(cosines_NN))
    is_choice = len(words) > 2 and not vectors.is_one_hot
    return {
        "words": words, "notes": notes, "unknown": unknown, "cosines": cosines_NN.tolist(),
        "means": (others.sum(axis=1) / (len(words) - 1)).tolist(),
        "odd": vectors.odd_one_out(words) if is_choice else None,
        "is_one_hot": vectors.is_one_hot,
    }  # fmt: skip


def on_plane(vectors: Any, body: Plane) -> dict[str, Any]:
    """Words and pairs on their first two principal components, as `sememe plot pca` draws them."""
    given = [*(word for pair in body.pairs for word in pair), *body.words]
    known, notes, unknown = _known(vectors, given)
    pairs = [pair for pair in body.pairs if set(pair) <= set(known)]
    words = list(dict.fromkeys([word for pair in pairs for word in pair] + body.words))
    words = [word for word in words if word in set(known)]
    if len(words) < 3:
        raise _too_few(3, unknown)
    points_N2, shares = project(unit_rows(vectors.query_vectors(words)))
    lines = [(words.index(first), words.index(second)) for first, second in pairs]
    return {
        "words": words, "notes": notes, "unknown": unknown, "coordinates": points_N2.tolist(),
        "plane": _picture(points_N2, words, lines, shares, body.width),
    }  # fmt: skip


def values(vectors: Any, body: WordList) -> dict[str, Any]:
    """The values of vectors, and of sums such as king - man + woman."""
    if vectors.is_one_hot:
        raise OptionError(
            f"One-hot vectors have {vectors.dim:,} dimensions: a single 1, at the index of the "
            "word, and zeros."
        )
    rows, words, unknown, matches = [], [], [], []
    for text in body.words:
        if re.search(r"\w\+\w", text) and text not in vectors:
            raise OptionError(
                f"“{text}” is not a sum of words; write it as king - man + woman, with spaces."
            )
        try:
            matches += [vectors.look_up(word) for _, word in parse_sum(text)]
            rows.append(combine(vectors, text))
            words.append(text)
        except UnknownWordError as error:
            unknown.append({"word": text, "message": str(error)})
    if not words:
        raise _too_few(1, unknown)
    notes = _notes(matches)
    if len(rows) * vectors.dim > _MOST_VALUES:
        raise OptionError(f"{len(rows)} × {vectors.dim:,} values are too many: use fewer words.")
    rows_ND = np.stack(rows)
    return {
        "words": words, "notes": notes, "unknown": unknown, "values": rows_ND.tolist(),
        "limit": color_range(rows_ND).limit,
    }  # fmt: skip


def _notes(matches: Iterable[Any]) -> list[dict[str, Any]]:
    """What was looked up, where it differs from the query."""
    found = {own.query: own.words for own in matches if own.note}
    return [{"query": query, "words": words} for query, words in found.items()]


def _known(vectors: Any, words: list[str]) -> tuple[list[str], list[Any], list[dict[str, str]]]:
    """The words that a model can look up, its notes about them, and why it lacks the others."""
    matches, unknown = [], []
    for word in dict.fromkeys(words):
        try:
            matches.append(vectors.look_up(word))
        except UnknownWordError as error:
            unknown.append({"word": word, "message": str(error)})
    return [own.query for own in matches], _notes(matches), unknown


def _too_few(least: int, unknown: list[dict[str, str]]) -> OptionError:
    told = " ".join(own["message"] for own in unknown[:3])
    number = {1: "one known word", 2: "two known words", 3: "three known words"}[least]
    return OptionError(f"Give at least {number}. {told}".strip())


def _picture(
    points_N2: np.ndarray,
    labels: list[str],
    lines: list[tuple[int, int]],
    shares: np.ndarray,
    width: float,
) -> dict[str, Any]:
    """The places of points and labels in pixels: labels are as large as other text."""
    tallest = max(480.0, _TALLEST * width)
    placed = lay_out(points_N2, labels, lines, width=width, heights=(280.0, tallest))
    return {
        "width": placed.width, "height": placed.height, "shares": shares.tolist(), "lines": lines,
        "points": placed.points_N2.round(1).tolist(), "labels": placed.labels,
        "centres": placed.centres_N2.round(1).tolist(),
    }  # fmt: skip
