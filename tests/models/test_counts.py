"""The count model: the lecture's table, PPMI and SVD against plain NumPy, bounds, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sememe
from sememe.models.counts.config import CountsConfig
from sememe.models.counts.matrix import MatrixWriter, SparseMatrix
from sememe.models.counts.model import Counts, Matrices, decompose
from sememe.models.counts.reference import decompose_reference, ppmi_reference
from sememe.progress import SILENT

LECTURE = ["I like deep learning .", "I like NLP .", "I enjoy flying ."]
TABLE = {
    ("I", "like"): 2, ("I", "enjoy"): 1, ("like", "deep"): 1, ("like", "NLP"): 1,
    ("enjoy", "flying"): 1, ("deep", "learning"): 1, ("learning", "."): 1, ("NLP", "."): 1,
    ("flying", "."): 1,
}  # fmt: skip
PLAIN = {"window": 1, "weighting": "flat", "transform": "counts", "dim": 0, "min_count": 1}
SENTENCES = [
    line.split()
    for line in (
        "the old king and the young queen live in a small castle by the sea",
        "the young king saw the old castle and the sea",
        "国王 和 女王 在 宫殿 里 吃 早饭",
        "孩子 和 国王 在 宫殿 里 学习",
        "a queen and a king eat breakfast by the sea",
    )
]

pytestmark = pytest.mark.usefixtures("place")


def lecture_model(**options: object) -> Counts:
    sentences = [line.split() for line in LECTURE]
    return Counts(**{**PLAIN, **options}).fit(sentences, lowercase=False)


def test_the_three_sentences_give_the_table_of_the_lecture():
    table = lecture_model().table()
    assert sorted(table.words) == sorted({word for pair in TABLE for word in pair})
    for row, line in zip(table.words, table.values.tolist(), strict=True):
        for column, value in zip(table.words, line, strict=True):
            assert value == TABLE.get((row, column), TABLE.get((column, row), 0))


def test_cosines_of_the_rows():
    vectors = lecture_model().vectors
    assert vectors.similarity("like", "enjoy") == pytest.approx(0.577, abs=5e-4)
    assert vectors.similarity("deep", "NLP") == pytest.approx(0.5, abs=1e-6)


def test_windows_stop_at_the_end_of_a_sentence():
    """In one line the same words are neighbors across the full stop."""
    apart, joined = LECTURE, [" ".join(LECTURE)]
    tables = [
        Counts(**PLAIN).fit([line.split() for line in lines], lowercase=False).table([".", "I"])
        for lines in (apart, joined)
    ]
    assert tables[0].values[0, 1] == 0 and tables[1].values[0, 1] == 2


def test_a_table_of_some_words_in_their_order_as_text():
    table = lecture_model().table(["like", "I", "enjoy"])
    assert str(table).splitlines() == [
        "       like  I  enjoy",
        "like      0  2      0",
        "I         2  0      1",
        "enjoy     0  1      0",
    ]
    with pytest.raises(sememe.SememeError, match="hate"):
        lecture_model().table(["hate"])
    with pytest.raises(sememe.SememeError, match="at least one word"):
        lecture_model().table([])


def test_a_table_of_chinese_words_is_aligned():
    model = Counts(**PLAIN).fit(SENTENCES)
    lines = str(model.table(["国王", "和", "king"])).splitlines()
    # A Chinese character is two columns wide, so the shorter line has as many fewer letters.
    assert lines[0] == "      国王  和  king" and lines[1] == "国王     0   2     0"


def test_directed_counts():
    right = lecture_model(direction="right").table(["I", "like"])
    left = lecture_model(direction="left").table(["I", "like"])
    assert right.values.tolist() == [[0, 2], [0, 0]]
    assert left.values.tolist() == [[0, 0], [2, 0]]


def matrix_of(model: Counts) -> np.ndarray:
    starts, columns, values = (model.tensors[name] for name in ("starts", "columns", "values"))
    return SparseMatrix(starts, columns, values).sparse().toarray()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=9), min_size=1, max_size=9),
    st.sampled_from(["both", "left", "right"]),
    st.sampled_from([0.5, 0.75, 1.0]),
    st.sampled_from([0.2, 1.0, 3.0]),
)
def test_ppmi_is_that_of_the_reference(sentences, direction, smoothing, shift):
    shared = {"direction": direction, "min_count": 1, "window": 3, "dim": 0}
    counts = Counts(**shared, transform="counts").fit(sentences)
    ppmi = Counts(**shared, transform="ppmi", smoothing=smoothing, shift=shift).fit(sentences)
    expected = ppmi_reference(matrix_of(counts), shift, smoothing)
    assert ppmi.vectors.vectors == pytest.approx(expected, abs=2e-6)
    logs = Counts(**shared, transform="log").fit(sentences)
    assert logs.vectors.vectors == pytest.approx(np.log1p(matrix_of(counts)), rel=1e-6)


@pytest.mark.parametrize("direction", ["both", "left", "right"])
@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_the_vectors_are_those_of_the_exact_svd(direction, weight):
    options = {"direction": direction, "min_count": 1, "window": 4, "dim": 6}
    model = Counts(**options, eigenvalue_weight=weight).fit(SENTENCES)
    expected = decompose_reference(matrix_of(model), 6, weight)
    # The similarities are compared, because equal singular values may turn their vectors.
    found = model.vectors.vectors.astype(np.float64)
    assert found @ found.T == pytest.approx(expected @ expected.T, abs=1e-4)


def random_matrix(num_words: int, num_cells: int, seed: int) -> tuple[np.ndarray, SparseMatrix]:
    generator = np.random.default_rng(seed)
    dense = np.zeros((num_words, num_words), np.float32)
    rows, columns = (generator.random((2, num_cells)) ** 2 * num_words).astype(int)
    dense[rows, columns] = generator.random(num_cells) * 3
    rows, columns = dense.nonzero()
    starts = np.concatenate(([0], np.cumsum(np.count_nonzero(dense, axis=1))))
    return dense, SparseMatrix(starts, columns.astype(np.int32), dense[rows, columns])


def transposed(matrix: np.ndarray) -> SparseMatrix:
    rows, columns = matrix.T.nonzero()
    starts = np.concatenate(([0], np.cumsum(np.count_nonzero(matrix.T, axis=1))))
    return SparseMatrix(starts, columns.astype(np.int32), matrix.T[rows, columns])


def test_a_large_svd_finds_the_largest_singular_values():
    dense, matrix = random_matrix(400, 10_000, 1)
    matrices = Matrices(matrix, transposed(dense), float((dense**2).sum()))
    vectors, singular = decompose(matrices, 50, 1.0, 1, 2, SILENT)
    exact = np.linalg.svd(dense.astype(np.float64), compute_uv=False)[:50]
    assert singular[:20] == pytest.approx(exact[:20], rel=1e-3)
    # The spectrum of such a matrix is flat, which is the worst case for the last values.
    assert singular == pytest.approx(exact, rel=3e-2) and (singular <= exact * 1.0001).all()
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=0)
    assert lengths == pytest.approx(singular, rel=1e-4)
    again = decompose(matrices, 50, 1.0, 1, 3, SILENT)
    assert np.array_equal(again.vectors, vectors)


def test_more_numbers_than_the_rank_are_zeros():
    model = Counts(dim=50, min_count=1, eigenvalue_weight=0.0).fit([["a", "b"], ["a", "c"]])
    vectors = model.vectors.vectors
    assert vectors.shape == (3, 50) and np.isfinite(vectors).all()
    assert vectors[:, :2].any() and not vectors[:, 3:].any()
    assert model.history[-1]["loss"] == pytest.approx(0, abs=1e-6)


def test_words_without_neighbors():
    model = Counts(dim=3, min_count=1).fit([["a"], ["b"], ["a"]])
    assert not model.vectors.vectors.any()
    assert model.vectors.similarity("a", "b") == 0


def test_sums_of_rows_with_empty_ones(tmp_path):
    writer = MatrixWriter(tmp_path / "m", 5)
    with writer:
        cells = np.array([1, 4, 0], np.int32), np.array([1.5, 2, 4], np.float32)
        writer.add(1, np.array([2, 0, 1]), *cells)
    matrix = writer.matrix()
    assert matrix.row_sums().tolist() == [0, 3.5, 0, 4, 0]
    assert list(matrix.blocks(2)) == [(0, 3), (3, 5)]
    assert matrix.sparse().toarray()[1].tolist() == [0, 1.5, 0, 0, 2]


def test_neither_memory_nor_workers_change_the_vectors():
    generator = np.random.default_rng(3)
    words = (300 * generator.random((400, 30)) ** 3).astype(int)
    sentences = [[f"w{word}" for word in line] for line in words]
    first = Counts(dim=20, min_count=1, workers=1).fit(sentences)
    for options in ({"workers": 3}, {"memory": "200K"}):
        other = Counts(**{"dim": 20, "min_count": 1, "workers": 1, **options}).fit(sentences)
        assert np.array_equal(other.vectors.vectors, first.vectors.vectors)


def test_a_saved_table_opens_again():
    model = lecture_model()
    model.save("model")
    again = Counts.load("model")
    assert str(again.table()) == str(model.table())
    assert np.array_equal(sememe.load("model").vectors, model.vectors.vectors)
    assert json.loads(Path("model/sememe.json").read_text())["dim"] == 8


def test_a_finished_model_is_not_counted_again():
    first = Counts(dim=4, min_count=1).fit(SENTENCES, out="model")
    again = Counts(dim=4, min_count=1, workers=2).fit(SENTENCES, out="model", resume=True)
    assert list(again.history) == list(first.history)
    with pytest.raises(sememe.SememeError, match="other options: dim"):
        Counts(dim=5, min_count=1).fit(SENTENCES, out="model", resume=True)


@pytest.mark.parametrize(
    "bad",
    [
        {"window": 0}, {"weighting": "linear"}, {"direction": "up"}, {"transform": "pmi"},
        {"shift": 0}, {"smoothing": 1.5}, {"dim": -1}, {"dim": 2.5}, {"eigenvalue_weight": 9},
        {"min_count": 0}, {"memory": "much"}, {"workers": -1}, {"shift": float("nan")},
    ],
)  # fmt: skip
def test_options_out_of_range_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        CountsConfig(**bad)


def test_what_cannot_be_done_is_said():
    with pytest.raises(sememe.SememeError, match="memory"):
        Counts(memory="1K", min_count=1).fit(SENTENCES)
    with pytest.raises(sememe.SememeError, match="neither start nor callbacks"):
        Counts(min_count=1).fit(SENTENCES, start="vectors.txt")
    many = [
        [f"w{number}" for number in range(start, start + 100)] for start in range(0, 10_100, 100)
    ]
    with pytest.raises(sememe.SememeError, match="give a dim"):
        Counts(dim=0, min_count=1).fit(many)
    with pytest.raises(sememe.SememeError, match="cannot be read"):
        Counts(dim=2, min_count=1).fit(many).table()


def test_an_interrupt_leaves_nothing_behind(tmp_path, own_cache):
    """Ctrl-C in the middle of the work: no scratch files, no model."""
    generator = np.random.default_rng(3)
    words = (20_000 * generator.random((8_000, 100)) ** 3).astype(int)
    text = "\n".join(" ".join(f"w{word}" for word in line) for line in words)
    (tmp_path / "text.txt").write_text(text)
    command = [
        sys.executable, "-m", "sememe.cli", "train", "counts", "text.txt", "--language", "none",
        "--store", "store/tokens", "--memory", "30M", "--out", "model",
    ]  # fmt: skip
    child = subprocess.Popen(command, env={**os.environ}, stderr=subprocess.PIPE)
    limit = time.monotonic() + 600
    while not list(tmp_path.glob("store/.counts-*/*")) and time.monotonic() < limit:
        time.sleep(0.01)
        assert child.poll() is None, child.stderr.read()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=600)
    assert child.returncode != 0
    assert [path.name for path in (tmp_path / "store").iterdir() if "counts" in path.name] == []
    assert not (tmp_path / "model").exists()
