"""Counting and encoding: the kernels against plain Python, with and without spills."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from token_texts import build_store, to_records

from sememe.errors import WriteError
from sememe.executor import Threads
from sememe.text.words import Records
from sememe.tokens import kernels, reference
from sememe.tokens.counting import count_words, merge, tally
from sememe.tokens.store import TokenStore

CHARACTERS = st.characters(blacklist_characters="\x1d\x1e\x1f", blacklist_categories=["Cs"])
# Few letters make collisions, repeats and long common prefixes likely; NUL and Chinese included.
WORDS = st.one_of(
    st.text(st.sampled_from("ab\0语"), min_size=1, max_size=20),
    st.text(CHARACTERS, min_size=1, max_size=12),
    st.integers(6, 18).map("a".__mul__),
)
DOCUMENTS = st.lists(st.lists(st.lists(WORDS, max_size=6), max_size=4), max_size=6)
TEXTS = st.lists(DOCUMENTS, max_size=4)


def read(store: TokenStore) -> reference.ReferenceStore:
    words = [word.encode("utf-8", "surrogatepass") for word in store.vocabulary]
    arrays = (store.vocabulary.counts, store.ids, store.sentence_ends, store.document_ends)
    return reference.ReferenceStore(words, *(array.tolist() for array in arrays))


def random_words(num: int, distinct: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [f"词{int(distinct * rng.random() ** 3)}-word" for _ in range(num)]


def in_batches(words: list[str], size: int = 500) -> list[Records]:
    return [to_records([[words[at : at + size]]]) for at in range(0, len(words), size)]


@settings(max_examples=60)
@given(TEXTS, st.integers(1, 3), st.integers(1, 3))
def test_store_equals_the_plain_reference(
    tmp_path: Path, texts: list, min_count: int, workers: int
) -> None:
    records = [to_records(text) for text in texts]
    expected = reference.encode(records, min_count)
    if not expected.words:
        return
    options = {"min_count": min_count, "workers": workers}
    store = build_store(tmp_path / "store", records, **options)
    assert read(store) == expected
    ordered = [store.vocabulary[word_id] for word_id in store.vocabulary.order.tolist()]
    assert [word.encode() for word in ordered] == sorted(expected.words)


@pytest.mark.parametrize("min_count", [1, 2, 7])
@pytest.mark.parametrize("workers", [1, 3])
def test_counts_stay_exact_when_tables_spill(tmp_path: Path, min_count: int, workers: int) -> None:
    words = random_words(40_000, 9_000)
    records = in_batches(words)
    options = {"workers": workers, "memory": 1 << 16}
    found = tally(records, tmp_path, keep_ids=False, **options)
    assert sum(len(worker.generations) for worker in found) > 5
    executor = Threads(workers)
    vocabulary = merge(found, min_count=min_count, memory=1 << 16, executor=executor).vocabulary
    expected = {word: num for word, num in Counter(words).items() if num >= min_count}
    assert dict(zip(vocabulary, vocabulary.counts.tolist(), strict=True)) == expected

    store = build_store(tmp_path / "store", records, min_count=min_count, **options)
    assert read(store) == reference.encode(records, min_count)


def test_nothing_depends_on_workers_memory_or_batches(tmp_path: Path) -> None:
    words = random_words(20_000, 4_000)
    sentences = [[words[at : at + 10]] for at in range(0, len(words), 10)]
    manifests = []
    for index, (workers, memory, size) in enumerate(
        [(1, 1 << 28, 100), (2, 1 << 28, 7), (4, 1 << 16, 33), (3, 1 << 17, 2_000)]
    ):
        records = [to_records(sentences[at : at + size]) for at in range(0, len(sentences), size)]
        store = build_store(
            tmp_path / str(index), records, min_count=2, workers=workers, memory=memory
        )
        manifests.append(store.manifest)
    assert all(manifest == manifests[0] for manifest in manifests)


def test_words_with_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # In plain Python the long words' hash can be made constant: only the bytes are left.
    monkeypatch.setattr(kernels, "load", kernels.load.py_func)
    monkeypatch.setattr(kernels, "find_end", kernels.find_end.py_func)
    monkeypatch.setattr(kernels, "end_offset", kernels.end_offset.py_func)
    monkeypatch.setattr(kernels, "is_same", kernels.is_same.py_func)
    monkeypatch.setattr(kernels, "find_word", kernels.find_word.py_func)
    monkeypatch.setattr(kernels, "hash_word", kernels.hash_word.py_func)
    monkeypatch.setattr(kernels, "fast_mix", lambda key: np.uint64(key) & np.uint64(0))
    words = ["longer-than-eight-1", "longer-than-eight-2", "longer-than-eight", "longer-than-8"]
    text = [*words, *words[:2], words[0]]
    data = np.frombuffer(to_records([[text]]).data, np.uint8)
    table = (np.zeros(64, np.uint64), *(np.zeros(16, np.int64) for _ in range(2)))
    arena, state = np.zeros(400, np.uint8), np.zeros(kernels.STATE_SIZE, np.int64)
    outputs = [np.zeros(20, np.uint32) for _ in range(3)]
    with np.errstate(over="ignore"):
        kernels.scan.py_func(data, 0, np.empty(0, np.int64), *outputs, *table, arena, state)
    assert state[kernels.NUM_WORDS] == 4
    assert outputs[0][:7].tolist() == [0, 1, 2, 3, 0, 1, 0]
    assert table[1][:4].tolist() == [3, 2, 1, 1]


def test_a_word_larger_than_the_memory_is_counted(tmp_path: Path) -> None:
    huge = "语" * 200_000
    records = [to_records([[["a", huge, "b", huge + "x", "a", huge]]])]
    vocabulary = count_words(records, memory=1 << 16, workers=1, scratch=tmp_path)
    assert dict(zip(vocabulary, vocabulary.counts.tolist(), strict=True)) == {
        huge: 2, "a": 2, "b": 1, huge + "x": 1,
    }  # fmt: skip


def test_an_error_of_the_text_comes_through_and_scratch_goes(tmp_path: Path) -> None:
    def broken() -> Iterator[Records]:
        yield to_records([[["a"]]])
        raise RuntimeError("the text broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        build_store(tmp_path / "store", broken(), workers=2)
    assert list(tmp_path.iterdir()) == []


def test_a_document_that_is_not_closed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="whole documents"):
        build_store(tmp_path / "store", [Records(b"a\x1f\x1e", None)])


def test_an_error_of_a_worker_comes_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sememe.tokens.counting.Generation.__init__", full)
    with pytest.raises(OSError, match="No space") as caught:
        build_store(tmp_path / "store", in_batches(random_words(9_000, 9_000)), memory=1 << 16)
    assert not isinstance(caught.value, WriteError)
    assert list(tmp_path.iterdir()) == []


MEASURE_MEMORY = """
import re, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from token_texts import distinct_words
from token_texts import build_store
from sememe.tokens.store import TokenStore
peaks = []
for num in (100_000, 3_000_000):
    store = build_store(sys.argv[1], distinct_words(num), min_count=2, memory=16 << 20)
    assert store.manifest["num_distinct"] == num + 1 and list(store.vocabulary) == ["again"]
    # What getrusage tells includes the process that started this one.
    status = Path("/proc/self/status").read_text()
    peaks.append(int(re.search("VmHWM:[^0-9]+([0-9]+)", status)[1]) // 1024)
print(peaks[1] - peaks[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from Linux")
def test_memory_does_not_grow_with_distinct_words(tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE_MEMORY, str(tmp_path / "store"), here],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    # In one table three million words would take some 250 MB.
    assert int(done.stdout) < 100
