"""Many analogies at once: (a, b, c) ids in, the id of the best fourth word out.

Q questions, U distinct words in them, V words searched, W words of one tile, D width. Questions
share their words (19,544 of Google's have 905), so the cosines of those words with a tile are
computed once, by BLAS, and a question only adds three rows of them. No Q × V array ever exists, and
the vectors may be memory-mapped.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np

from sememe.machine import available_cores

Method = Literal["add", "mul"]

# gensim looks at the five best words that are not a, b or c themselves; if all five are other
# spellings of them ("KING", "King"), the question counts as missed.
NUM_LOOKED_AT = 5
# Levy and Goldberg (2014, 3CosMul) divide by a similarity plus this.
MUL_EPSILON = 1e-6

_TILE_WORDS = 2_048


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Scale each row to length one as float32; a row of zeros stays."""
    rows = np.asarray(rows, np.float32)
    lengths = np.sqrt(np.einsum("vd,vd->v", rows, rows))
    return rows / np.where(lengths > 0, lengths, 1)[:, None]


def score_words(units_VD: np.ndarray, question_3D: np.ndarray, method: Method) -> np.ndarray:
    """Score words for one question, given the unit vectors of its a, b and c."""
    a, b, c = question_3D
    if method == "add":
        return units_VD @ (b + c - a)
    near_a, near_b, near_c = ((1 + units_VD @ word) / 2 for word in (a, b, c))
    return near_b * near_c / (near_a + np.float32(MUL_EPSILON))


def _banned(
    questions_Q3: np.ndarray, variants: Mapping[int, Sequence[int]]
) -> tuple[np.ndarray, np.ndarray]:
    """Words that cannot be answers (the inputs in every spelling): each question's end, and all."""
    ends: list[int] = []
    banned: list[int] = []
    for question in questions_Q3.tolist():
        for word in dict.fromkeys(question):
            banned += variants.get(word, (word,))
        ends.append(len(banned))
    return np.array(ends, np.int64), np.array(banned, np.int64)


def best_words(
    vectors_VD: np.ndarray,
    questions_Q3: np.ndarray,
    *,
    method: Method = "add",
    variants: Mapping[int, Sequence[int]] | None = None,
) -> np.ndarray:
    """Answer each question (a is to b as c is to ?) by 3CosAdd or 3CosMul; -1 for no answer."""
    from sememe.evaluation.kernels import search_tile

    variants = variants or {}
    num_questions = len(questions_Q3)
    used_U, places = np.unique(questions_Q3, return_inverse=True)
    places_Q3 = np.ascontiguousarray(places.reshape(num_questions, 3), np.int64)
    words_UD = unit_rows(vectors_VD[used_U])
    ends_Q, banned = _banned(questions_Q3, variants)
    score_Q = np.full(num_questions, -np.inf, np.float32)
    best_Q = np.full(num_questions, -1, np.int64)

    num_threads = available_cores()
    edges = np.linspace(0, num_questions, num_threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(num_threads) as pool:
        for start in range(0, len(vectors_VD), _TILE_WORDS):
            near_UW = words_UD @ unit_rows(vectors_VD[start : start + _TILE_WORDS]).T
            if method == "mul":
                near_UW = (1 + near_UW) / 2  # to 0…1 (Levy and Goldberg 2014, footnote 7)

            def search(
                first: int, last: int, start: int = start, near: np.ndarray = near_UW
            ) -> None:
                search_tile(
                    near, places_Q3, ends_Q, banned, start, method == "mul",
                    np.float32(MUL_EPSILON), first, last, score_Q, best_Q,
                )  # fmt: skip

            list(pool.map(search, edges[:-1], edges[1:]))
    _let_spellings_crowd_out(best_Q, score_Q, vectors_VD, questions_Q3, method, variants)
    return best_Q


def _let_spellings_crowd_out(
    best_Q: np.ndarray,
    best_score_Q: np.ndarray,
    vectors_VD: np.ndarray,
    questions_Q3: np.ndarray,
    method: Method,
    variants: Mapping[int, Sequence[int]],
) -> None:
    """Replace answers that come after five other spellings of the inputs (see NUM_LOOKED_AT)."""
    spare = {word: list(ids[1:]) for word, ids in variants.items()}
    for row, question in enumerate(questions_Q3.tolist()):
        others = [other for word in set(question) for other in spare.get(word, ())]
        if not others or (len(others) < NUM_LOOKED_AT and best_Q[row] >= 0):
            continue
        units = unit_rows(vectors_VD[np.array([*question, *others])])
        scores = score_words(units[3:], units[:3], method)
        last = np.argsort(-scores, kind="stable")[:NUM_LOOKED_AT][-1]
        if best_Q[row] < 0 or scores[last] > best_score_Q[row]:
            best_Q[row] = others[last]
