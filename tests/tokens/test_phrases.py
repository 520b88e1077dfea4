"""Phrases: kernels against plain Python, scores against gensim, joined words in a new store."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from token_texts import build_store

from sememe.errors import ArtifactError, OptionError
from sememe.tokens import phrases, reference
from sememe.tokens.phrases import find_phrases, score_pairs
from sememe.tokens.store import TokenStore

Build = Callable[..., TokenStore]


def sentences_of(store: TokenStore) -> list[list[str | None]]:
    """The text of a store; None stands for a word without an id."""
    words: list[str | None] = [*store.vocabulary, None]
    starts = [0, *store.sentence_ends.tolist()]
    ids = store.ids.tolist()
    return [[words[word_id] for word_id in ids[start:end]] for start, end in pairwise(starts)]


def scores_of(store: TokenStore, **options: float) -> dict[tuple[str, str], float]:
    pairs = score_pairs(store, **options)  # type: ignore[arg-type]
    vocabulary = store.vocabulary
    return {
        (vocabulary[first], vocabulary[second]): score
        for first, second, score in zip(
            *(array.tolist() for array in (pairs.first, pairs.second, pairs.scores)), strict=True
        )
    }


def some_text(num: int = 400, seed: int = 3) -> list[str]:
    rng = random.Random(seed)
    words = [f"w{number}" for number in range(30)]
    fixed = ["new york times", "机器 学习", "ice cream", "new york"]
    return [" ".join(rng.choices([*words, *fixed], k=rng.randint(1, 9))) for _ in range(num)]


@settings(max_examples=30)
@given(
    st.lists(
        st.lists(st.sampled_from(["a", "b", "c", "a_b", "语", "词"]), min_size=1, max_size=8),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 2),
    st.floats(0, 4),
    st.integers(1, 2),
)
def test_phrases_equal_the_plain_reference(
    build: Build, sentences: list[list[str]], min_count: int, threshold: float, store_min: int
) -> None:
    if store_min > max(Counter(chain(*sentences)).values()):
        return
    store = build([" ".join(sentence) for sentence in sentences], min_count=store_min)
    options = {"min_count": min_count, "threshold": threshold}
    text = sentences_of(store)
    expected = reference.score_pairs(text, **options)  # type: ignore[arg-type]
    assert scores_of(store, **options) == expected
    joined = [reference.join_pairs(sentence, expected) for sentence in text]
    counts = {word: sum(s.count(word) for s in joined) for s in joined for word in s}
    kept = [[word if counts[word] >= store_min else None for word in s] for s in joined]
    if not any(word is not None for sentence in kept for word in sentence):
        return
    derived = find_phrases(store, path=store.path.with_name("derived"), **options)  # type: ignore[arg-type]
    assert sentences_of(derived) == kept
    assert derived.document_ends.tolist() == store.document_ends.tolist()


@pytest.mark.parametrize("block", [1, 3, 64])
def test_blocks_do_not_show(build: Build, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    store = build(some_text(60))
    options = {"min_count": 2, "threshold": 3.0}
    expected = reference.score_pairs(sentences_of(store), **options)  # type: ignore[arg-type]
    assert expected
    monkeypatch.setattr(phrases, "_BLOCK", block)
    monkeypatch.setattr(phrases, "_BLOCK", block)
    assert scores_of(store, **options) == expected
    derived = find_phrases(store, **options)  # type: ignore[arg-type]
    assert sentences_of(derived) == [
        reference.join_pairs(sentence, expected) for sentence in sentences_of(store)
    ]
    TokenStore.open(derived.path, verify=True)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_small_memory_changes_nothing(build: Build, workers: int) -> None:
    store = build(some_text(400))
    full = score_pairs(store, min_count=1, threshold=0.5)
    small = score_pairs(store, min_count=1, threshold=0.5, memory=1_000, workers=workers)
    assert len(full.first) > 100  # more than a table of 64 slots can hold
    for one, other in zip(full, small, strict=True):
        assert np.array_equal(one, other)


def test_scores_equal_gensims(build: Build) -> None:
    gensim = pytest.importorskip("gensim.models.phrases")
    text = some_text(1_500)
    store = build(text)
    model = gensim.Phrases(
        [line.split() for line in text], min_count=5, threshold=1e-9, delimiter="_"
    )
    # gensim's factor is its number of words and pairs; word2phrase's and ours the text's length.
    factor = store.num_tokens / len(model.vocab)
    expected = {
        tuple(key.split("_")): score * factor for key, score in model.export_phrases().items()
    }
    ours = scores_of(store, min_count=5, threshold=1e-9 * factor)
    assert len(ours) > 20
    assert ours == pytest.approx(expected, rel=1e-12)
    strict = gensim.Phrases(
        [line.split() for line in text], min_count=5, threshold=2, delimiter="_"
    )
    derived = find_phrases(store, min_count=5, threshold=2 * factor)
    assert sentences_of(derived) == [strict[line.split()] for line in text]
    assert any("机器_学习" in sentence for sentence in sentences_of(derived))


def test_two_passes_find_longer_phrases(build: Build) -> None:
    text = [f"in{n} new york times out{n}" for n in range(20)]
    text += [f"in{n} new york out{n + 1}" for n in range(20)]
    store = build(text)
    once = find_phrases(store, min_count=3, threshold=2)
    assert "new_york" in once.vocabulary and "new_york_times" not in once.vocabulary
    twice = find_phrases(store, min_count=3, threshold=2, passes=2)
    assert "new_york_times" in twice.vocabulary
    again = find_phrases(once, min_count=3, threshold=2)
    assert again.path == twice.path


def test_the_same_phrases_are_found_once(build: Build) -> None:
    store = build(some_text(100))
    derived = find_phrases(store, min_count=2, threshold=3)
    stamp = (derived.path / "sememe.json").stat().st_mtime_ns
    again = find_phrases(store, min_count=2, threshold=3)
    assert (again.path / "sememe.json").stat().st_mtime_ns == stamp
    other = find_phrases(store, min_count=3, threshold=2)
    assert other.path != derived.path
    changed = build(some_text(100, seed=4))
    assert find_phrases(changed, min_count=2, threshold=3).path != derived.path
    assert derived.manifest["fingerprint"]["from"]["content"] == store.manifest["content"]


def test_labels_follow(tmp_path: Path) -> None:
    from token_texts import to_records

    records = [to_records([[["a", "b"]], [["a", "b"]], [["c"]]], ["x", "y", "x"])]
    store = find_phrases(build_store(tmp_path / "s", records), min_count=0, threshold=0)
    assert list(store.vocabulary) == ["a_b", "c"]
    assert store.labels == ["x", "y"]
    assert store.label_ids is not None and store.label_ids.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "options", [{"passes": 0}, {"threshold": float("nan")}, {"threshold": -1}, {"min_count": -1}]
)
def test_absurd_options_are_refused(build: Build, options: dict[str, float]) -> None:
    with pytest.raises(OptionError, match="Phrases need"):
        find_phrases(build(["a b"]), **options)  # type: ignore[arg-type]


def test_a_failed_join_leaves_nothing_behind(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = build(some_text(50))

    def broken(*_: object) -> None:
        raise ArtifactError("broken off")

    monkeypatch.setattr(phrases, "write_manifest", broken)
    with pytest.raises(ArtifactError, match="broken off"):
        find_phrases(store, min_count=2, threshold=3)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
