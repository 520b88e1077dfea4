"""Aligning two languages: the map against SciPy's, CSLS against its formula, words that return."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

import sememe
from sememe.errors import InputError, OptionError
from sememe.vectors import WordVectors
from sememe.vectors.alignment import (
    Space,
    align,
    mean_similarity,
    procrustes,
    read_dictionary,
    refine,
    seed_words,
)
from sememe.vectors.search import unit_rows

NUM, DIM = 300, 16


@pytest.fixture(scope="module")
def languages():
    """English words, and German and Chinese ones that are the same vectors, turned and noisy."""
    random = np.random.default_rng(5)
    english = random.normal(size=(NUM, DIM))
    turn, _ = np.linalg.qr(random.normal(size=(DIM, DIM)))
    order = random.permutation(NUM)
    german = (english @ turn + 0.1 * random.normal(size=(NUM, DIM)))[order]
    return (
        WordVectors([f"de{index}" for index in order], german, range(NUM, 0, -1)),
        WordVectors([f"en{index}" for index in range(NUM)], english, range(NUM, 0, -1)),
    )


def entries(numbers):
    return [(f"de{index}", f"en{index}") for index in numbers]


def num_right(found, target):
    near = target.neighbors_of_many(list(found.vectors.vectors), 1)
    return sum(word[2:] == best[0].word[2:] for word, best in zip(found.vectors, near, strict=True))


def test_the_map_is_that_of_scipy_and_orthogonal():
    random = np.random.default_rng(1)
    source, target = random.normal(size=(2, 50, 7))
    ours, _ = orthogonal_procrustes(source, target)
    found = procrustes(source, target)
    np.testing.assert_allclose(found, ours, atol=1e-12)
    np.testing.assert_allclose(found @ found.T, np.eye(7), atol=1e-12)


def test_the_map_of_align_without_refinement_is_that_of_scipy(languages):
    source, target = languages
    found = align(source, target, dictionary=entries(range(40)), rounds=0)
    rows = [unit_rows(side[[f"{name}{i}" for i in range(40)]])
            for side, name in ((source, "de"), (target, "en"))]  # fmt: skip
    np.testing.assert_allclose(found.matrix_DD, orthogonal_procrustes(*rows)[0], atol=1e-5)
    np.testing.assert_allclose(
        found.vectors.vectors, source.vectors @ found.matrix_DD, rtol=1e-4, atol=1e-5
    )
    assert num_right(found, target) > 0.95 * NUM


def test_csls_is_its_formula(languages):
    source, target = (unit_rows(side.vectors) for side in languages)
    cosines = source @ target.T
    near_source = np.sort(cosines, axis=1)[:, -10:].mean(axis=1)
    near_target = np.sort(cosines, axis=0)[-10:].mean(axis=0)
    np.testing.assert_allclose(mean_similarity(source, target), near_source, rtol=1e-6)
    csls = 2 * cosines - near_source[:, None] - near_target
    ids, scores = Space(target, source).nearest(source, 5)
    np.testing.assert_array_equal(ids, np.argsort(-csls, axis=1)[:, :5])
    np.testing.assert_allclose(
        2 * scores - near_source[:, None], np.take_along_axis(csls, ids, 1), atol=1e-5
    )
    plain, _ = Space(target, source, "cosine").nearest(source, 5)
    np.testing.assert_array_equal(plain, np.argsort(-cosines, axis=1)[:, :5])


def test_blocks_change_nothing(languages, monkeypatch):
    source, target = (unit_rows(side.vectors) for side in languages)
    whole = Space(target, source).nearest(source, 3)
    monkeypatch.setattr("sememe.vectors.alignment._NUM_SCORES", 7 * NUM)
    for ours, theirs in zip(Space(target, source).nearest(source, 3), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_refinement_takes_mutual_neighbors_and_helps(languages):
    source, target = languages
    few = entries(range(12))  # fewer than dimensions
    notes = []
    reporter = type("Notes", (), {"note": lambda self, text: notes.append(text)})()
    rough = align(source, target, dictionary=few, rounds=0, progress=reporter)
    fine = align(source, target, dictionary=few, rounds=10)
    assert "12 pairs for 16 dimensions" in notes[0]
    assert num_right(fine, target) > num_right(rough, target) + 0.05 * NUM
    scores = [own.mean_csls for own in fine.rounds]
    assert fine.taken == int(np.argmax(scores)) > 0
    assert fine.rounds[1].num_pairs > 12
    rounds = refine(*(unit_rows(side.vectors) for side in languages), rough.matrix_DD, 1)
    assert len(rounds) == 2 and rounds[1].mean_csls > rounds[0].mean_csls


def test_identical_strings(languages):
    source, target = languages
    named = [f"x{word[2:]}" if int(word[2:]) < 60 else word for word in source]
    others = [f"x{word[2:]}" if int(word[2:]) < 60 else word for word in target]
    left, right = WordVectors(named, source.vectors), WordVectors(others, target.vectors)
    found = align(left, right, identical=True)
    assert len(found.pairs) == 60 and found.pairs.num_given == 60
    assert all(a == b for a, b in found.seeds)
    assert len(align(left, right, identical=True, num_words=100, rounds=0).pairs) < 60


def test_pairs_without_vectors_are_counted_and_case_is_forgiven(languages):
    source, target = languages
    more = [("nowhere", "en1"), ("de1", "nothing"), ("DE7", "EN7"), ("de7", "en7")]
    found = align(source, target, dictionary=entries(range(1, 5)) + more, rounds=0)
    pairs = found.pairs
    assert (len(pairs), pairs.num_given) == (5, 8)
    assert (pairs.num_unknown_source, pairs.num_unknown_target) == (1, 1)


def test_the_folder_opens_and_knows_its_seeds(languages, tmp_path):
    source, target = languages
    found = align(source, target, dictionary=entries(range(50)))
    found.save(tmp_path / "aligned")
    again = sememe.load(tmp_path / "aligned")
    np.testing.assert_array_equal(again.vectors, found.vectors.vectors)
    assert list(again) == list(source) and again.count("de3") == source.count("de3")
    assert again.about["alignment"]["pairs"] == 50
    assert seed_words(again) == {f"de{index}" for index in range(50)}
    assert seed_words(source) == set()
    assert again.neighbors("de9")


def test_a_dictionary_has_tabs_or_spaces(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(
        "# de en\nHund dog\r\n\nHund\tdog\nguten Tag\thello\n猫 cat\n", encoding="utf-8"
    )
    assert read_dictionary(path) == [("Hund", "dog"), ("guten Tag", "hello"), ("猫", "cat")]


@pytest.mark.parametrize("line", ["dog", "ein guter Hund", "Hund\tdog\tcat", "\tdog"])
def test_a_bad_line_is_named(tmp_path, line):
    path = tmp_path / "pairs.txt"
    path.write_text(f"Hund dog\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"pairs\.txt, line 2"):
        read_dictionary(path)


def test_what_cannot_be_aligned_is_refused(languages, tmp_path):
    source, target = languages
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(InputError, match=r"empty\.txt"):
        align(source, target, dictionary=tmp_path / "empty.txt")
    with pytest.raises(OptionError, match="either"):
        align(source, target)
    with pytest.raises(OptionError, match="either"):
        align(source, target, dictionary=entries([1]), identical=True)
    with pytest.raises(InputError, match="1 of 2 pairs"):
        align(source, target, dictionary=[("de1", "en1"), ("a", "b")])
    narrow = WordVectors(["en1", "en2"], np.ones((2, 3)))
    with pytest.raises(OptionError, match="16 and 3"):
        align(source, narrow, dictionary=entries([1, 2]))
    with pytest.raises(OptionError, match="word vectors"):
        align(source, 5, identical=True)
