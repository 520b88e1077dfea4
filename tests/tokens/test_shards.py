"""A text in shards, counted apart by tasks that share nothing but files, is that of one pass."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from sememe.errors import InputError
from sememe.examples.cooccurrence import counting
from sememe.examples.cooccurrence.config import PairSettings
from sememe.executor import running_on
from sememe.models.ngram import counting as ngrams
from sememe.models.ngram.model import NGram
from sememe.text import documents, shards, stream
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build
from sememe.tokens.subwords.store import open_or_build_subwords
from sememe.tokens.subwords.tokenizer import SubwordTokenizer


class FarAway:
    """An executor whose tasks and results travel as bytes, and whose first tries are lost."""

    num_tasks, cores, memory = 2, 2, 1 << 18

    def __init__(self) -> None:
        self.num_run = 0

    def map(self, work: Callable, items: Iterable) -> Iterator:
        for index, item in enumerate(items):
            data = pickle.dumps((work, item))
            for _ in range(1 + (index == 0)):  # the result of the first one never arrives
                found_work, found_item = pickle.loads(data)
                result = pickle.dumps(found_work(found_item))
            self.num_run += 1
            yield pickle.loads(result)


SENTENCES = [
    f"The {word} of node{i % 97} saw n{i} in café{i % 13}. It was a {word}!"
    for i, word in enumerate(["cat", "dog", "tree", "Haus", "été"] * 600)
]


@pytest.fixture
def corpus(tmp_path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(SENTENCES))
    (folder / "b.jsonl").write_text("".join(f'{{"text": "row {i} of b"}}\n' for i in range(50)))
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.name != "manifest.json" and not path.name.startswith(".")
    }


def assert_equal_stores(one, many):
    assert files_of(one.path) == files_of(many.path)
    assert one.manifest == many.manifest


def build_both(corpus, tmp_path, settings, size=9_000, **options):
    """The store of one pass, and the one of shards with the number of their tasks."""
    one = open_or_build(corpus, settings, path=tmp_path / "one", min_count=2, **options)
    executor = FarAway()
    with pytest.MonkeyPatch.context() as patch, running_on(executor):
        patch.setattr(shards.cut_shards, "__defaults__", (size,))
        many = open_or_build(corpus, settings, path=tmp_path / "many", min_count=2, **options)
    return one, many, executor


@pytest.mark.parametrize("layout", ["line", "paragraph", "auto"])
def test_a_store_built_in_shards_is_that_of_one_pass(tmp_path, layout):
    text = "".join(own + ("\n\n \n" if i % 3 else "\n") for i, own in enumerate(SENTENCES))
    path = tmp_path / "a.txt"
    path.write_text("\ufeff" + text, encoding="utf-8")
    settings = TextSettings(layout=layout)
    assert len(shards.cut_shards(path, settings, 9_000)) > 10
    one, many, executor = build_both(path, tmp_path, settings)
    assert executor.num_run > 20
    assert_equal_stores(one, many)


def test_files_of_several_formats_and_chinese(corpus, tmp_path):
    (corpus / "c.txt").write_text(
        "我们在北京大学学习自然语言处理。\n天气很好，我们去公园。\n" * 200
    )
    settings = TextSettings(language="zh")
    one, many, _ = build_both(corpus, tmp_path, settings, size=3_000)
    assert_equal_stores(one, many)


def test_labels_of_rows_are_those_of_one_pass(tmp_path):
    for number in range(6):
        rows = [f'{{"text": "w{i} w{i + 1}", "label": "l{i * number % 5}"}}\n' for i in range(40)]
        (tmp_path / f"{number}.jsonl").write_text("".join(rows))
    settings = TextSettings(columns={"text": "text", "label": "label"})
    names = sorted(tmp_path.glob("*.jsonl"))
    one, many, _ = build_both(names, tmp_path, settings, size=100)
    assert one.labels == many.labels
    assert len(one.labels) == 5
    assert_equal_stores(one, many)


def texts_of(sources, settings) -> list[bytes]:
    """The documents that have any text."""
    found = []
    for batch in documents.read(sources, settings):
        starts = [0, *batch.ends[:-1]]
        found += [batch.text[a:b].strip() for a, b in zip(starts, batch.ends, strict=True)]
    return [text for text in found if text]


def test_shards_are_the_documents_of_the_file_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_DOCUMENT", 1 << 12)
    text = ("x" * 10_000 + "\n\n") + "\n\n\n".join(SENTENCES[:300]) + "\n\n" + "y z " * 5_000
    path = tmp_path / "a.txt"
    path.write_text(text)
    for layout in ("line", "paragraph"):
        settings = TextSettings(layout=layout)
        parts = shards.cut_shards(path, settings, 3_000)
        assert len(parts) > 3
        found = [text for part in parts for text in texts_of(part, settings)]
        assert found == texts_of(shards.find_sources(path), settings)


@pytest.mark.parametrize(
    ("name", "content", "settings"),
    [
        ("a.txt", "é\n".encode("utf-16") * 5_000, TextSettings()),
        ("a.txt", "é\n".encode("latin-1") * 5_000, TextSettings(encoding="latin-1")),
        ("a.txt", b"one two\r" * 5_000, TextSettings()),
        ("a.csv", b"text\n" + b"a b c\n" * 5_000, TextSettings()),
        ("a.txt", b"a b c\n" * 5_000, TextSettings(layout="file")),
    ],
)
def test_what_cannot_be_cut_stays_whole(tmp_path, name, content, settings):
    path = tmp_path / name
    path.write_bytes(content)
    assert [[part.end for part in shard] for shard in shards.cut_shards(path, settings, 100)] == [
        [None]
    ]


def test_a_wrong_byte_is_named_by_its_place_in_the_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"good words here\n" * 100_000 + b"caf\xe9 \xff\n" + b"more\n" * 1_000)
    with running_on(FarAway()), pytest.MonkeyPatch.context() as patch:
        patch.setattr(shards.cut_shards, "__defaults__", (100_000,))
        with pytest.raises(InputError, match="1,600,003"):
            open_or_build(path, TextSettings(), path=tmp_path / "store", min_count=1)
    assert [own.name for own in tmp_path.iterdir()] == ["a.txt"]


def test_text_that_is_not_in_files_is_read_here(tmp_path):
    executor = FarAway()
    with running_on(executor):
        store = open_or_build(["a b c", "a b d"], TextSettings(), path=tmp_path / "s", min_count=1)
    assert store.num_tokens == 6
    assert not executor.num_run
    assert stream.as_names(["a b c"]) is None


@pytest.mark.parametrize("memory", [1 << 18, 1 << 26])
def test_pairs_counted_in_shards_are_those_of_one_pass(corpus, tmp_path, memory, monkeypatch):
    monkeypatch.setattr(counting, "SHARD_TOKENS", 3_000)
    store = open_or_build(corpus, TextSettings(), path=tmp_path / "store", min_count=2)
    parts = store.sentence_shards(3_000)
    assert len(parts) > 5
    assert [own for part in parts for own in part] == list(range(len(store.sentence_ends)))

    def pairs():
        options = {"memory": 1 << 26, "scratch": tmp_path}
        return list(counting.count_pairs(store, 900, PairSettings(window=4), **options))

    expected = pairs()
    executor = FarAway()
    executor.memory = memory
    with running_on(executor):
        found = pairs()
    assert executor.num_run == len(parts)
    for name in ("rows", "columns", "values"):
        one, many = (
            np.concatenate([getattr(cells, name) for cells in own]) for own in (expected, found)
        )
        assert np.array_equal(one, many)
    assert sorted(own.name for own in tmp_path.iterdir()) == ["corpus", "store"]


@pytest.mark.parametrize(
    ("kind", "language"), [("wordpiece", "en"), ("bpe", "en"), ("wordpiece", "zh")]
)
def test_sub_words_trained_and_cut_in_shards_are_those_of_one_pass(
    corpus, tmp_path, kind, language
):
    if language == "zh":
        text = "我们在北京大学学习自然语言处理。天气很好，我们去公园。\n"
        (corpus / "c.txt").write_text(text * 200)
    settings = TextSettings(language=language, layout="line")
    options = {"kind": kind, "vocab_size": 400, "text": settings}
    one = SubwordTokenizer.train(corpus, **options)
    expected = open_or_build_subwords(corpus, one, text=settings, path=tmp_path / "one")
    executor = FarAway()
    executor.memory = 1 << 20
    with pytest.MonkeyPatch.context() as patch, running_on(executor):
        patch.setattr(shards.cut_shards, "__defaults__", (9_000,))
        many = SubwordTokenizer.train(corpus, **options)
        num_run = executor.num_run
        found = open_or_build_subwords(corpus, many, text=settings, path=tmp_path / "many")
    assert num_run > 5
    assert executor.num_run > num_run + 5
    assert one.to_json() == many.to_json()
    assert_equal_stores(expected, found)


def test_n_grams_counted_in_shards_are_those_of_one_pass(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(ngrams, "SHARD_TOKENS", 3_000)
    store = open_or_build(corpus, TextSettings(), path=tmp_path / "store", min_count=2)
    one = NGram(order=3, workers=2, min_count=2).fit(store)
    executor = FarAway()
    with running_on(executor):
        many = NGram(order=3, workers=2, min_count=2).fit(store)
    assert executor.num_run == len(store.sentence_shards(3_000)) > 5
    for model, name in ((one, "one"), (many, "many")):
        model.write_arpa(tmp_path / f"{name}.arpa")
    assert (tmp_path / "one.arpa").read_text() == (tmp_path / "many.arpa").read_text()
