"""open_or_build: a store is used again while its text and settings are the same, never after."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recorded_notes import Notes
from sememe.errors import InputError, OptionError
from sememe.progress import Reporter
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build
from sememe.tokens.store import TokenStore

SETTINGS = TextSettings(language="none")
TEXT = "the cat sat\non the mat\n猫 坐 着\n"

pytestmark = pytest.mark.usefixtures("stores")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def rebuilds(heard: Notes) -> list[str]:
    return [note for note in heard.lines if note.startswith("Building")]


def stamp(store: TokenStore) -> int:
    return (store.path / "sememe.json").stat().st_mtime_ns


def test_the_same_text_is_read_once(text: Path, stores: Path) -> None:
    first = open_or_build(text, SETTINGS, min_count=1)
    assert first.vocabulary[0] == "the"
    assert first.path.parent == stores
    heard = Notes()
    for min_count in (1, 2):
        again = open_or_build(str(text), SETTINGS, min_count=min_count, progress=heard)
        assert (again.path, stamp(again)) == (first.path, stamp(first))
    assert heard.lines == []
    assert len(list(stores.iterdir())) == 1


def test_changed_text_is_read_again(text: Path, stores: Path) -> None:
    open_or_build(text, SETTINGS, min_count=1)
    text.write_text("another text", encoding="utf-8")
    heard = Notes()
    store = open_or_build(text, SETTINGS, min_count=1, progress=heard)
    assert list(store.vocabulary) == ["another", "text"]
    assert len(rebuilds(heard)) == 1 and "files changed" in heard.lines[0]
    assert len(list(stores.iterdir())) == 1  # the old one made room


def test_a_lower_min_count_needs_the_text_again(text: Path) -> None:
    open_or_build(text, SETTINGS, min_count=2)
    heard = Notes()
    store = open_or_build(text, SETTINGS, min_count=1, progress=heard)
    assert store.min_count == 1
    assert "leaves out words below 2" in rebuilds(heard)[0]


def test_other_settings_have_another_place(text: Path) -> None:
    text.write_text("Cat cat", encoding="utf-8")
    lower = open_or_build(text, SETTINGS, min_count=1)
    kept = open_or_build(text, TextSettings(language="none", lowercase=False), min_count=1)
    assert (list(lower.vocabulary), sorted(kept.vocabulary)) == (["cat"], ["Cat", "cat"])
    assert lower.path != kept.path
    TokenStore.open(lower.path, verify=True)


def test_other_settings_at_a_given_place_are_noticed(text: Path, tmp_path: Path) -> None:
    place, heard = tmp_path / "here", Notes()
    open_or_build(text, SETTINGS, min_count=1, path=place)
    other = TextSettings(language="none", lowercase=False)
    store = open_or_build(text, other, min_count=1, path=place, progress=heard)
    assert store.path == place
    assert "settings changed" in rebuilds(heard)[0]


def test_a_broken_store_is_made_again(text: Path) -> None:
    store = open_or_build(text, SETTINGS, min_count=1)
    (store.path / "ids.bin").write_bytes(b"")
    heard = Notes()
    store = open_or_build(text, SETTINGS, min_count=1, progress=heard)
    assert "ids.bin has 0 bytes" in rebuilds(heard)[0]
    TokenStore.open(store.path, verify=True)


@pytest.mark.parametrize("name", ["ids.bin", "sentence_ends.bin"])
def test_a_changed_byte_is_noticed_before_the_store_serves(text: Path, name: str) -> None:
    path = open_or_build(text, SETTINGS, min_count=1).path / name
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    heard = Notes()
    open_or_build(text, SETTINGS, min_count=1, progress=heard)
    assert f"{name} was changed" in rebuilds(heard)[0]
    assert path.read_bytes() == content


def test_lists_of_words_have_a_store_while_it_is_used(stores: Path) -> None:
    store = open_or_build((words.split() for words in TEXT.splitlines()), SETTINGS, min_count=1)
    assert store.num_tokens == 9 and "猫" in store.vocabulary
    path = store.path
    assert path.exists()
    del store
    gc.collect()
    assert not path.exists()
    assert list(stores.iterdir()) == []


def test_temporary_stores_of_dead_processes_go(stores: Path) -> None:
    store = open_or_build([["a", "b"]], SETTINGS, min_count=1)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    dead = store.path.name.replace(f"-{os.getpid()}-", f"-{process.pid}-")
    for name in (dead, f".{dead}.scratch-1"):
        (stores / name).mkdir(parents=True)
    (stores / f".{dead}.lock").touch()
    other = open_or_build([["c", "d"]], SETTINGS, min_count=1)
    names = sorted(path.name for path in stores.iterdir())
    assert names == sorted([store.path.name, other.path.name])


def test_lists_of_words_at_a_given_place_stay(tmp_path: Path) -> None:
    place = tmp_path / "mine"
    open_or_build([["a", "b"]], SETTINGS, min_count=1, path=place)
    gc.collect()
    heard = Notes()
    store = open_or_build([["c"]], SETTINGS, min_count=1, path=place, progress=heard)
    assert list(store.vocabulary) == ["c"]  # nobody can tell that the first list was the same
    assert len(rebuilds(heard)) == 1


def test_a_store_stands_for_its_text(text: Path) -> None:
    store = open_or_build(text, SETTINGS, min_count=2)
    assert open_or_build(store, SETTINGS, min_count=5) is store
    with pytest.raises(OptionError, match="min_count cannot be 1"):
        open_or_build(store, SETTINGS, min_count=1)


def test_nothing_is_kept_of_a_text_that_fails(tmp_path: Path, stores: Path) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("", encoding="utf-8")
    wrong = tmp_path / "wrong.txt"
    wrong.write_bytes(b"a b\xff c\n" * 3)
    for path in (empty, wrong, tmp_path / "missing.txt"):
        with pytest.raises(InputError):
            open_or_build(path, SETTINGS, min_count=1)
    assert not stores.exists() or list(stores.iterdir()) == []


def test_progress_hears_of_the_reading(text: Path) -> None:
    stream = io.StringIO()
    open_or_build(text, SETTINGS, min_count=1, progress=Reporter(stream=stream))
    assert "reading text" in stream.getvalue()


def test_chinese_text_is_cut_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "zh.txt"
    path.write_text("我们在北京学习自然语言处理。\n北京是中国的首都。\n" * 3, encoding="utf-8")
    store = open_or_build(path, TextSettings(language="zh"), min_count=2)
    assert store.vocabulary.counts[store.vocabulary.id("北京")] == 6
    assert len(store.sentence_ends) == 6
    assert "".join(store.vocabulary[word_id] for word_id in store.ids[:3]).startswith("我们在北京")
    assert open_or_build(path, TextSettings(language="zh"), min_count=2).path == store.path


@pytest.mark.parametrize(
    ("language", "words", "is_told"),
    [
        ("en", "国王在早上看见了女王。\n", True),
        ("zh", "国王在早上看见了女王。\n", False),
        ("none", "国 王 在 早 上\n", False),
        ("en", "王は猫を見た。\n", False),
        ("en", "The word for king is 王.\n", False),
        ("zh", "国王在早上看见了女王。\n".encode("gb18030").decode("latin-1"), True),
    ],
    ids=["uncut", "cut", "blanks", "japanese", "english", "wrong encoding"],
)
def test_chinese_that_is_not_cut_is_told_of(tmp_path, language, words, is_told):
    path, heard = tmp_path / "text.txt", Notes()
    path.write_text(words * 3, encoding="utf-8")
    open_or_build(path, TextSettings(language=language), min_count=1, progress=heard)
    assert any("--language zh" in note for note in heard.lines) == is_told


def test_words_of_the_dictionary_that_the_text_lacks_are_named(tmp_path):
    path, words, heard = tmp_path / "text.txt", tmp_path / "words.txt", Notes()
    path.write_text("医生看了ＣＴ检查单和云计算平台。\n医生。\n", encoding="utf-8")
    words.write_text("CT检查单 9 n\n云计算平台\n干扰素β\n", encoding="utf-8")
    settings = TextSettings(language="zh", dictionary=str(words))
    open_or_build(path, settings, min_count=1, progress=heard)
    assert f"{words}: 2 of its 3 words are in the text; without: 干扰素β" in heard.lines
    open_or_build(path, settings, min_count=2, path=tmp_path / "rare", progress=heard)
    assert "0 of its 3 words are in the text 2 times or more; without: CT" in heard.lines[-1]
    open_or_build(path, TextSettings(language="zh"), min_count=1, progress=(quiet := Notes()))
    assert not any("words are in the text" in note for note in quiet.lines)
