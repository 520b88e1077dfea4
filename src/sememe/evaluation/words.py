"""Every question file of a folder, or the built-in sets: vectors and a path in, one result out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sememe.errors import InputError
from sememe.evaluation.analogies import evaluate_analogies
from sememe.evaluation.antonyms import evaluate_antonyms
from sememe.evaluation.files import BUILT_IN, Kind, detect_kind, read_lines
from sememe.evaluation.groups import evaluate_groups, evaluate_odd
from sememe.evaluation.offsets import Method
from sememe.evaluation.pairs import evaluate_pairs
from sememe.evaluation.results import Score, WordsResult
from sememe.progress import SILENT, Reporter

if TYPE_CHECKING:
    from sememe.vectors import WordVectors


def find_files(data: str | Path | None) -> list[Path]:
    """List the question files of `data`: a file, a folder's files, or the built-in ones."""
    path = BUILT_IN if data is None else Path(data)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise InputError(f"{path} does not exist; give a file of questions or a folder of them.")
    found = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] not in "._")
    if not found:
        raise InputError(f"The folder {path} holds no files; put files of questions there.")
    return found


def _kind_in(path: Path, is_alone: bool) -> Kind | None:
    try:
        return detect_kind(path)
    except InputError:
        if is_alone:
            raise
        return None  # a picture or an empty file among the questions


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
    from sememe.vectors.onehot import OneHotVectors

    if isinstance(vectors, OneHotVectors):
        limit = restrict_vocab if kind == "analogies" else None
        vectors = vectors.condensed((line.text for line in read_lines(path)), limit)
    if kind == "pairs":
        return evaluate_pairs(vectors, path, seed=seed)
    if kind == "analogies":
        return evaluate_analogies(
            vectors, path, method=method, restrict_vocab=restrict_vocab, seed=seed
        )
    if kind == "odd":
        return evaluate_odd(vectors, path, seed=seed)
    if kind == "groups":
        return evaluate_groups(vectors, path, seed=seed)
    return evaluate_antonyms(vectors, path, seed=seed)


def evaluate_words(
    vectors: WordVectors,
    data: str | Path | None = None,
    *,
    restrict_vocab: int | None = 300_000,
    method: Method = "add",
    seed: int = 1,
    reporter: Reporter = SILENT,
) -> WordsResult:
    """Ask every file of `data` that its content shows to be one of ours; None: the built-in."""
    scores, skipped = [], []
    paths = find_files(data)
    for path in paths:
        kind = _kind_in(path, is_alone=len(paths) == 1)
        if kind is None:
            skipped.append(path.name)
            reporter.note(f"{path} is no file of questions that we know; it is left out.")
            continue
        score = evaluate_file(
            vectors, path, kind, restrict_vocab=restrict_vocab, method=method, seed=seed
        )
        if kind == "pairs":
            reporter.note(f"{path.name}: scores are taken from {score.details['score_column']}.")
        scores.append(score)
    if not scores:
        raise InputError(
            f"{data} holds no questions that we know: word pairs with scores, analogies, "
            "odd-one-out lines, groups or antonyms."
        )
    return WordsResult(
        scores=scores,
        num_words=len(vectors.vocabulary),
        dim=vectors.dim,
        seed=seed,
        skipped=skipped,
    )
