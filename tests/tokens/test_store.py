"""The token store: whole or refused, one builder at a time, nothing left behind."""

from __future__ import annotations

import json
import multiprocessing
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from token_texts import build_store, to_records

from sememe.errors import ArtifactError, InputError, OptionError, WriteError
from sememe.storage.folder import locked
from sememe.text.settings import TextSettings
from sememe.text.words import Records
from sememe.tokens.caching import open_or_build
from sememe.tokens.store import TokenStore

Build = Callable[..., TokenStore]
TEXT = ["the cat sat on the mat", "猫 坐 在 垫子 上", "the end"]


def labelled(tmp_path: Path) -> TokenStore:
    records = [
        to_records([[["a", "b"]], [["c"]]], ["animals", "动物"]),
        to_records([[["a"]]], ["animals"]),
    ]
    return build_store(tmp_path / "labelled", records)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_words_are_ordered_by_count_and_rare_ones_share_an_id(build: Build) -> None:
    store = build(["b a c a", "b a", "语 d 语"], min_count=2)
    assert list(store.vocabulary) == ["a", "b", "语"]
    assert store.vocabulary.counts.tolist() == [3, 2, 2]
    assert store.ids.tolist() == [1, 0, 3, 0, 1, 0, 2, 3, 2]
    assert store.sentence_ends.tolist() == [4, 6, 9]
    assert store.document_ends.tolist() == [1, 2, 3]
    assert (store.min_count, store.num_tokens) == (2, 9)
    assert store.labels is None and store.label_ids is None


def test_chinese_words_are_found_again(build: Build) -> None:
    store = build(TEXT)
    words = [store.vocabulary[word_id] for word_id in store.ids.tolist()]
    assert words == " ".join(TEXT).split()
    assert store.vocabulary.find("垫子") >= 0


def test_empty_sentences_go_and_empty_documents_stay(tmp_path: Path) -> None:
    records = [to_records([[["a"], [], ["b"]], [], [[]], [["c"]]], ["1", "2", "3", "4"])]
    store = build_store(tmp_path / "store", records)
    assert store.sentence_ends.tolist() == [1, 2, 3]
    assert store.document_ends.tolist() == [2, 2, 2, 3]
    assert store.labels is not None and store.label_ids is not None
    assert [store.labels[label] for label in store.label_ids] == ["1", "2", "3", "4"]


def test_labels_are_kept_and_missing_ones_are_empty(tmp_path: Path) -> None:
    store = labelled(tmp_path)
    assert store.labels == ["animals", "动物"]
    assert store.label_ids is not None and store.label_ids.tolist() == [0, 1, 0]
    mixed = [to_records([[["a"]]]), to_records([[["b"]]], ["x"])]
    store = build_store(tmp_path / "mixed", mixed)
    assert store.labels == ["x", ""]
    assert store.label_ids is not None and store.label_ids.tolist() == [1, 0]


def test_labels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 documents and 2 labels"):
        build_store(tmp_path / "store", [to_records([[["a"]]], ["x", "y"])])
    assert visible(tmp_path) == []


@pytest.mark.parametrize(
    ("num_words", "dtype"), [(65_534, np.uint16), (65_535, np.uint32), (70_000, np.uint32)]
)
def test_ids_widen_with_the_vocabulary(tmp_path: Path, num_words: int, dtype: type) -> None:
    words = [f"w{number:05}" for number in range(num_words)]
    store = build_store(tmp_path / "store", [to_records([[words, ["rare"], words]])], min_count=2)
    assert store.ids.dtype == dtype
    assert len(store.vocabulary) == num_words
    assert store.ids[num_words] == num_words  # the rare word, the largest id that must fit
    assert np.array_equal(store.ids[:num_words], store.ids[num_words + 1 :])
    assert [store.vocabulary[word_id] for word_id in store.ids[:3]] == words[:3]
    TokenStore.open(store.path, verify=True)


def test_blocks_give_ids_and_ends(build: Build) -> None:
    store = build(TEXT)
    for size in (1, 2, 5, 100):
        blocks = list(store.blocks(size))
        assert np.concatenate([ids for ids, _ in blocks]).tolist() == store.ids.tolist()
        ends = [ends + size * index for index, (_, ends) in enumerate(blocks)]
        assert np.concatenate(ends).tolist() == store.sentence_ends.tolist()
        assert all(ids.dtype == np.uint32 for ids, _ in blocks)


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    for records in ([], [to_records([])], [to_records([[], [[]]])]):
        with pytest.raises(InputError, match="The corpus has no words"):
            build_store(tmp_path / "store", records)
    assert visible(tmp_path) == []


def test_nothing_above_min_count_names_the_highest_count(build: Build, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"3 times.*--min-count"):
        build(["a b a a"], min_count=10)
    assert visible(tmp_path) == []


@pytest.mark.parametrize(
    "options", [{"min_count": 0}, {"workers": -1}, {"memory": 10}], ids=lambda o: next(iter(o))
)
def test_absurd_options_are_refused(build: Build, options: dict[str, int]) -> None:
    with pytest.raises(OptionError, match="must be at least"):
        build(TEXT, **options)


def test_only_a_token_store_is_replaced(tmp_path: Path, build: Build) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(OptionError, match="something else"):
        build(TEXT, name="mine")
    (tmp_path / "file").write_text("x")
    with pytest.raises(OptionError, match="something else"):
        build(TEXT, name="file")
    assert visible(tmp_path / "mine") == ["thesis.txt"]
    build(TEXT, name="store")
    assert build(["x y"], name="store").num_tokens == 2


FILES = ["ids.bin", "sentence_ends.bin", "document_ends.bin", "label_ids.bin", "labels.json",
         "vocabulary.safetensors", "sememe.json"]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_every_missing_or_cut_file_is_noticed(tmp_path: Path, name: str) -> None:
    store = labelled(tmp_path)
    assert sorted(FILES) == visible(store.path)
    file = store.path / name
    content = file.read_bytes()
    for broken in (content[:-2], content[: len(content) // 2], b"", content + b"\0"):
        file.write_bytes(broken)
        with pytest.raises(ArtifactError, match=r"store|labelled"):
            TokenStore.open(store.path)
    file.unlink()
    with pytest.raises(ArtifactError, match=name):
        TokenStore.open(store.path)


@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_is_noticed(tmp_path: Path, name: str) -> None:
    store = labelled(tmp_path)
    TokenStore.open(store.path, verify=True)
    file = store.path / name
    content = bytearray(file.read_bytes())
    for index in range(0, len(content), max(1, len(content) // 40)):
        changed = bytearray(content)
        changed[index] ^= 1
        file.write_bytes(changed)
        with pytest.raises(ArtifactError):
            TokenStore.open(store.path, verify=True)


@pytest.mark.parametrize("name", ["ids.bin", "sentence_ends.bin", "document_ends.bin"])
def test_a_damaged_store_is_not_trained_on(build: Build, name: str) -> None:
    """An id or an end that points nowhere would lead a kernel out of its arrays."""
    store = build(TEXT)
    content = bytearray((store.path / name).read_bytes())
    content[0] = 0xEE
    (store.path / name).write_bytes(content)
    with pytest.raises(ArtifactError, match=name):
        open_or_build(TokenStore.open(store.path), TextSettings(), min_count=1)


def test_vocabulary_and_manifest_are_checked_without_verify(build: Build) -> None:
    store = build(TEXT)
    for name in ("vocabulary.safetensors", "sememe.json"):
        file = store.path / name
        content = file.read_bytes()
        file.write_bytes(
            content.replace(b"1", b"2", 1) if name == "sememe.json" else content[:-1] + b"\7"
        )
        with pytest.raises(ArtifactError):
            TokenStore.open(store.path)
        file.write_bytes(content)
    TokenStore.open(store.path)


def test_other_kinds_and_formats_are_refused(build: Build, tmp_path: Path) -> None:
    store = build(TEXT)
    manifest = json.loads((store.path / "sememe.json").read_text())
    (store.path / "sememe.json").write_text(json.dumps(manifest | {"format": 99}))
    with pytest.raises(ArtifactError, match=r"format is 99.*build it again"):
        TokenStore.open(store.path)
    (store.path / "sememe.json").write_text(json.dumps(manifest | {"kind": "word2vec"}))
    with pytest.raises(ArtifactError, match="not a token store"):
        TokenStore.open(store.path)
    with pytest.raises(ArtifactError, match="no token store"):
        TokenStore.open(tmp_path / "nowhere")


def many_words(num: int) -> Iterator[Records]:
    for batch in range(num):
        yield to_records([[[f"word-{batch}-{number}" for number in range(2_000)]]])


BUILD_WITH_SMALL_FILES = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_store import many_words
from sememe.errors import WriteError
from token_texts import build_store
from sememe.tokens.store import TokenStore
folder = Path(sys.argv[1])
build_store(folder / "warm", many_words(1))  # compile before files are kept small
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
try:
    build_store(folder / "store", many_words(60), memory=1 << 20)
except WriteError as error:
    print("WriteError", error)
print(sorted(path.name for path in folder.iterdir()))
"""


@pytest.mark.parametrize("limit", [20_000, 120_000, 1_000_000])
def test_a_disk_that_refuses_leaves_nothing_behind(tmp_path: Path, limit: int) -> None:
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", BUILD_WITH_SMALL_FILES, str(tmp_path), str(limit), here],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    error, names = done.stdout.splitlines()
    assert error.startswith("WriteError Cannot write"), done.stdout
    assert names == "['warm']"


def test_a_full_disk_says_so_and_keeps_the_old_store(
    tmp_path: Path, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(TEXT)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sememe.tokens.building.os.pwrite", full)
    with pytest.raises(WriteError, match="the disk is full"):
        build(["another text"])
    assert visible(tmp_path) == ["store"]
    assert TokenStore.open(tmp_path / "store", verify=True).num_tokens == 13


def test_what_a_killed_build_left_goes_at_the_next(tmp_path: Path, build: Build) -> None:
    script = (
        "import os, sys, time\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_store import many_words\nfrom token_texts import build_store\n"
        "def records():\n    yield from many_words(3)\n    print('here', flush=True)\n"
        "    time.sleep(60)\n"
        f"build_store({str(tmp_path / 'store')!r}, records())\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"here\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    left = visible(tmp_path)
    assert ".store.lock" in left and any("scratch" in name for name in left)
    assert not (tmp_path / "store").exists()
    build(TEXT)  # takes over the lock of the dead process
    assert visible(tmp_path) == ["store"]


def test_a_second_builder_waits_for_the_first(tmp_path: Path) -> None:
    notes: list[str] = []
    order: list[str] = []

    def second() -> None:
        build_store(tmp_path / "store", [to_records([[["b"]]])], note=notes.append)
        order.append("second")

    with locked(tmp_path / "store", notes.append):
        thread = threading.Thread(target=second)
        thread.start()
        while not notes:
            time.sleep(0.01)
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert len(notes) == 1 and "another process" in notes[0]
    assert visible(tmp_path) == ["store"]


def _build_often(path: Path, number: int) -> None:
    for _ in range(3):
        build_store(path, [to_records([[[f"word{number}"] * 50]])])


def test_processes_that_build_one_store_do_not_mix(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    crew = [context.Process(target=_build_often, args=(tmp_path / "store", n)) for n in range(2)]
    for process in crew:
        process.start()
    for process in crew:
        process.join()
    assert [process.exitcode for process in crew] == [0, 0]
    assert TokenStore.open(tmp_path / "store", verify=True).num_tokens == 50
    assert visible(tmp_path) == ["store"]
