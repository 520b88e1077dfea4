"""Evaluate word vectors: scored pairs, analogies, antonyms, odd ones out and groups.

Vectors and a question file, a folder of them or the built-in sets in; scores out. Questions with an
unknown word are skipped and reported as coverage; with `count_unknown` they count as wrong (an
analogy) or as a similarity of zero (a pair), like gensim's `dummy4unknown`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.evaluation.offsets import Method, best_words, unit_rows
from sememe.evaluation.question_files import (
    BUILT_IN,
    Case,
    Kind,
    Lookup,
    WordQuestions,
    detect_kind,
    read_questions,
)
from sememe.evaluation.results import Score, WordsResult, proportion_score
from sememe.metrics import (
    pearson,
    score_sections,
    spearman,
    spearman_interval,
)
from sememe.models.registry import opened
from sememe.progress import SILENT, Reporter
from sememe.text.characters import is_mostly_chinese

if TYPE_CHECKING:
    from sememe.vectors import WordVectors

_LOW_COVERAGE = 0.5  # below it a score says little about a file, and a note says so
_NUM_NAMED = 5  # unknown words
_NUM_FREQUENT = 1_000  # words that tell the language of vectors


def _read(
    vectors: WordVectors, path: Path, kind: Kind, case: Case, restrict_vocab: int | None = None
) -> tuple[WordQuestions, Lookup, dict[str, Any]]:
    """The questions of a file, the lookup of their words, and the context of a score.

    Words with a part of speech (`sun-n`) are looked up without it if that finds more of them.
    """
    content, lookup = read_questions(path, kind), Lookup(vectors.vocabulary, case, restrict_vocab)
    bare, words = content.without_tags(), content.words
    details: dict[str, Any] = {"columns": content.columns} if content.columns else {}
    if bare is not content and len(lookup.known(bare.words)) > len(lookup.known(words)):
        details["tags_removed"] = f"{words[0]} → {bare.words[0]}"
        content, words = bare, bare.words
    known = lookup.known(words)
    unknown = set(words) - set(known)
    rows = vectors.vectors[np.array([lookup.find(word) for word in known], np.int64)]
    if not np.isfinite(rows).all():
        raise ArtifactError(
            "The model's vectors hold values that are not numbers: it is damaged; train or "
            "download it again."
        )
    details["unknown_words"] = [word for word in words if word in unknown][:_NUM_NAMED]
    return content, lookup, {**details, "case": case}


def evaluate_pairs(
    vectors: WordVectors,
    path: str | Path,
    *,
    case: Case = "lower",
    restrict_vocab: int | None = None,
    count_unknown: bool = False,
    compose_unknown: bool = True,
    seed: int = 1,
) -> Score:
    """Correlate cosines with human scores of word pairs (Spearman and Pearson).

    `compose_unknown` includes words outside the vocabulary, if the vectors have sub-words.
    """
    path = Path(path)
    content, lookup, details = _read(vectors, path, "pairs", case, restrict_vocab)
    ids = np.array([[lookup.find(word) for word in row] for row in content.rows], np.int64)
    is_known: np.ndarray = ids.min(axis=1) >= 0
    cosines, num_composed = np.zeros(len(ids)), 0
    if compose_unknown and vectors.has_subwords:
        num_composed = int((~is_known).sum())
        is_known[:] = True
        words = [[lookup.spelling(a), lookup.spelling(b)] for a, b in content.rows]
        cosines[:] = _cosines(*(vectors[list(column)] for column in zip(*words, strict=True)))
    else:
        cosines[is_known] = _cosines(*(vectors.vectors[column] for column in ids[is_known].T))
    is_asked = np.ones(len(is_known), bool) if count_unknown else is_known
    gold, model = np.array(content.scores)[is_asked], cosines[is_asked]
    return Score(
        kind="pairs",
        name=path.stem,
        measure="Spearman × 100",
        value=spearman(gold, model),
        interval=spearman_interval(gold, model, seed=seed),
        num_asked=int(is_known.sum()),
        num_questions=len(ids),
        details={
            "pearson": pearson(gold, model),
            **details,
            "restrict_vocab": restrict_vocab,
            "count_unknown": count_unknown,
            **({"num_composed": num_composed} if num_composed else {}),
            "seed": seed,
        },
    )


def _cosines(first_ND: np.ndarray, second_ND: np.ndarray) -> np.ndarray:
    x_ND, y_ND = first_ND.astype(np.float64), second_ND.astype(np.float64)
    lengths_N = np.linalg.norm(x_ND, axis=1) * np.linalg.norm(y_ND, axis=1)
    dots_N = np.einsum("nd,nd->n", x_ND, y_ND)
    # Rounded, because ranks would tell 0.9999999 from 1.0000001 where a word meets itself.
    return np.round(dots_N / np.where(lengths_N > 0, lengths_N, 1), 9)


def evaluate_analogies(
    vectors: WordVectors,
    path: str | Path,
    *,
    method: Method = "add",
    case: Case = "fold",
    restrict_vocab: int | None = 300_000,
    count_unknown: bool = False,
    seed: int = 1,
) -> Score:
    """Find the fourth word of each analogy; the defaults match gensim's evaluator."""
    if method not in ("add", "mul"):
        raise OptionError(f"method must be add or mul, not {method!r}.")
    path = Path(path)
    content, lookup, details = _read(vectors, path, "analogies", case, restrict_vocab)
    ids_Q4 = np.array([[lookup.find(word) for word in row] for row in content.rows], np.int64)
    is_known: np.ndarray = ids_Q4.min(axis=1) >= 0
    answers = best_words(
        vectors.vectors[: lookup.size], ids_Q4[is_known, :3],
        method=method, variants=lookup.variants,
    )  # fmt: skip
    stands_for = {spelling: ids[0] for ids in lookup.variants.values() for spelling in ids}
    is_correct = np.zeros(len(ids_Q4), bool)
    is_correct[is_known] = [
        stands_for.get(answer, answer) == expected
        for answer, expected in zip(answers.tolist(), ids_Q4[is_known, 3].tolist(), strict=True)
    ]
    is_asked = np.ones(len(is_known), bool) if count_unknown else is_known
    return proportion_score(
        "analogies", path.stem, "analogies right, %",
        score_sections(content.sections, is_asked.tolist(), is_correct.tolist()), seed,
        num_known=int(is_known.sum()),
        details={**details, "method": method, "restrict_vocab": restrict_vocab,
                 "count_unknown": count_unknown},
    )  # fmt: skip


def evaluate_antonyms(
    vectors: WordVectors,
    path: str | Path | None = None,
    *,
    num: int = 10,
    case: Case = "lower",
    seed: int = 1,
) -> Score:
    """Count the pairs of opposites that are both among each other's `num` nearest words.

    Opposites share their contexts, so a high share is not praise: it shows what vectors of
    contexts cannot distinguish. Without a path, English and Chinese pairs of our own are used.
    """
    path = Path(path) if path is not None else built_in(vectors) / "antonyms.txt"
    content, lookup, details = _read(vectors, path, "antonyms", case)
    pairs = [tuple(lookup.find(word) for word in row) for row in content.rows]
    is_asked = [min(pair) >= 0 and pair[0] != pair[1] for pair in pairs]
    asked = [pair for pair, known in zip(pairs, is_asked, strict=True) if known]
    words = {word_id: vectors.vocabulary[word_id] for pair in asked for word_id in pair}
    found = vectors.neighbors_of_many(list(words.values()), num=num) if words else []
    near = {
        word_id: {neighbor.word for neighbor in neighbors}
        for word_id, neighbors in zip(words, found, strict=True)
    }
    is_correct = [
        known and words[b] in near[a] and words[a] in near[b]
        for (a, b), known in zip(pairs, is_asked, strict=True)
    ]
    return proportion_score(
        "antonyms", path.stem, f"opposites among {num} nearest, %",
        score_sections(content.sections, is_asked, is_correct), seed,
        details={**details, "num": num},
    )  # fmt: skip


def evaluate_odd(
    vectors: WordVectors, path: str | Path, *, case: Case = "lower", seed: int = 1
) -> Score:
    """Find the word that does not belong; lines read `row column axis | banana`.

    Words that the vectors lack are left out of their line; a question needs the odd word and two
    others.
    """
    path = Path(path)
    content, lookup, details = _read(vectors, path, "odd", case)
    is_asked, is_correct, num_words = [], [], []
    for row in content.rows:
        ids = [lookup.find(word) for word in row]
        known = [word_id for word_id in ids if word_id >= 0]
        is_asked.append(ids[-1] >= 0 and len(known) > 2)
        is_correct.append(False)
        if is_asked[-1]:
            units = unit_rows(vectors.vectors[np.array(known)])
            is_correct[-1] = int(np.argmin(units @ units.mean(axis=0))) == len(known) - 1
            num_words.append((len(known), len(row)))
    sections = score_sections(content.sections, is_asked, is_correct)
    details["chance"] = float(np.mean([1 / num for num, _ in num_words])) if num_words else math.nan
    if num_partial := sum(num < whole for num, whole in num_words):
        details["num_partial"] = num_partial
    return proportion_score("odd", path.stem, "odd one found, %", sections, seed, details=details)


def evaluate_groups(
    vectors: WordVectors, path: str | Path, *, case: Case = "lower", seed: int = 1
) -> Score:
    """Put each word to the group whose other words are nearest on average."""
    path = Path(path)
    content, lookup, details = _read(vectors, path, "groups", case)
    members = [[lookup.find(word) for word in row] for row in content.rows]
    known = [[word for word in row if word >= 0] for row in members]
    owners = np.array([group for group, row in enumerate(known) for _ in row], np.int64)
    ids = np.array([word for row in known for word in row], np.int64)
    cosines = unit_rows(vectors.vectors[ids]) @ unit_rows(vectors.vectors[ids]).T
    np.fill_diagonal(cosines, 0)
    belongs = owners[:, None] == np.arange(len(known))
    sizes = belongs.sum(axis=0) - belongs  # without the word itself
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(sizes > 0, (cosines @ belongs) / sizes, -np.inf)
    is_right = iter((means.argmax(axis=1) == owners).tolist() if len(ids) else [])
    # A word whose group has no other known word cannot be placed.
    is_asked = [
        word >= 0 and len(k) > 1 for row, k in zip(members, known, strict=True) for word in row
    ]
    is_correct = [word >= 0 and next(is_right) for row in members for word in row]
    names = [name for name, row in zip(content.sections, members, strict=True) for _ in row]
    return proportion_score(
        "groups", path.stem, "words in their group, %",
        score_sections(names, is_asked, is_correct), seed,
        details={"chance": 1 / len(known), **details},
    )  # fmt: skip


def built_in(vectors: WordVectors) -> Path:
    """The folder of the built-in questions in the language of most frequent words."""
    is_chinese = is_mostly_chinese(vectors.vocabulary[:_NUM_FREQUENT])
    return BUILT_IN / ("chinese" if is_chinese else "english")


def find_files(data: str | Path | None) -> list[Path]:
    """List the question files of `data`: a file, a folder's files, or the built-in English ones."""
    path = BUILT_IN / "english" if data is None else Path(data)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path} does not exist; give a file of questions or a folder of them.")
    found = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] not in "._")
    if not found:
        raise InputError(f"The folder {path} holds no files; put files of questions there.")
    return found


def kind_in(path: Path, is_alone: bool) -> Kind | None:
    """The kind of a file of questions; none of a picture or an empty file among others."""
    try:
        return detect_kind(path)
    except InputError:
        if is_alone:
            raise
        return None


def evaluate_file(
    vectors: WordVectors,
    path: Path,
    kind: Kind,
    *,
    restrict_vocab: int | None = 300_000,
    method: Method = "add",
    seed: int = 1,
) -> Score:
    """Ask one file of a known kind."""
    content = read_questions(path, kind)
    limit = restrict_vocab if kind == "analogies" else None
    vectors = vectors.condensed([*content.words, *content.without_tags().words], limit)
    evaluate: dict[str, Callable[..., Score]] = {
        "analogies": partial(evaluate_analogies, method=method, restrict_vocab=restrict_vocab),
        "pairs": evaluate_pairs,
        "odd": evaluate_odd,
        "groups": evaluate_groups,
        "antonyms": evaluate_antonyms,
    }
    return evaluate[kind](vectors, path, seed=seed)


def _notes(score: Score) -> Iterator[str]:
    """How a file was read, and what its score must be read with."""
    details = score.details
    if "columns" in details:
        yield details["columns"]
    if "tags_removed" in details:
        yield f"parts of speech are removed from words ({details['tags_removed']})"
    if "num_partial" in details:
        yield f"{details['num_partial']:,} questions are scored without their unknown words"
    if score.coverage < _LOW_COVERAGE:
        yield (
            f"only {score.num_asked:,} of {score.num_questions:,} questions can be scored; "
            f"the vocabulary lacks words such as {', '.join(details['unknown_words'])}"
        )


def evaluate_words(
    model: Any,
    data: str | Path | None = None,
    *,
    restrict_vocab: int | None = 300_000,
    method: Method = "add",
    seed: int = 1,
    reporter: Reporter = SILENT,
) -> WordsResult:
    """Ask every file of `data` that its content shows to be of a known format; None: the built-in.

    `model` is any model that has one vector a word, such as word vectors, or its path.
    """
    vectors: WordVectors = opened(model).words
    scores, skipped = [], []
    folder = built_in(vectors) if data is None else Path(data)
    paths = find_files(folder)
    if folder == BUILT_IN / "chinese":
        reporter.note("The vocabulary is Chinese: the built-in Chinese questions are used.")
    for path in paths:
        kind = kind_in(path, is_alone=len(paths) == 1)
        if kind is None:
            skipped.append(path.name)
            reporter.note(f"{path} is not a question file of a known format; it is skipped.")
            continue
        score = evaluate_file(
            vectors, path, kind, restrict_vocab=restrict_vocab, method=method, seed=seed
        )
        for note in _notes(score):
            reporter.note(f"{path.name}: {note}.")
        scores.append(score)
    if not scores:
        raise InputError(
            f"{data} holds no questions that we know: word pairs with scores, analogies, "
            "odd-one-out lines, groups or antonyms."
        )
    if not any(math.isfinite(score.value) for score in scores):
        words = [word for score in scores for word in score.details["unknown_words"]]
        if any(score.num_asked > 1 for score in scores):
            raise InputError(
                f"{data} cannot be scored: all scores, or all similarities of the model, are equal."
            )
        raise InputError(
            f"None of the questions of {data or 'the built-in files'} can be scored: the model's "
            f"vocabulary lacks their words, such as {', '.join(words[:_NUM_NAMED])}. Give "
            "questions in the model's language and spelling."
        )
    return WordsResult(
        scores=scores,
        num_words=len(vectors.vocabulary),
        dim=vectors.dim,
        seed=seed,
        skipped=skipped,
    )
