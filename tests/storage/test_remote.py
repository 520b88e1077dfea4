"""Files on other file systems: read as streams, models whole or not at all, one clear sentence."""

import gzip
import json
import sys
from pathlib import Path

import fsspec
import numpy as np
import pytest
from typer.testing import CliRunner

import sememe
from sememe.cli import app
from sememe.errors import InputError, MissingExtraError, SememeError, WriteError
from sememe.storage import remote
from sememe.storage.folder import write_folder
from sememe.storage.urls import url_of
from sememe.text import shards
from sememe.text.settings import TextSettings
from sememe.text.sources import find_sources, names_files
from sememe.text.stream import fingerprint
from sememe.tokens.caching import open_or_build

LINES = "".join(f"the cat{i % 7} sat on mat{i % 11}. it ran!\n" for i in range(2_000))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def memory():
    """The file system of one process, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("s3://bucket/texts/*.gz", "s3://bucket/texts/*.gz"),
        (Path("s3://bucket/runs/mine"), "s3://bucket/runs/mine"),
        (Path("file:///tmp/texts"), "file:///tmp/texts"),
        (Path("memory://texts/a"), "memory:///texts/a"),
        ("https://example.org/a.txt", None),
        ("texts/a.txt", None),
        ("C:/texts", None),
        ("note: / and //", None),
        (Path("/tmp/s3:/x"), None),
        (None, None),
    ],
)
def test_urls_are_told_from_paths_and_texts(name, url):
    assert url_of(name) == url


def test_texts_and_patterns_and_folders_are_read(memory, tmp_path):
    memory.pipe_file("/texts/b.txt", LINES.encode())
    memory.pipe_file("/texts/a.txt.gz", gzip.compress(LINES.encode()))
    memory.pipe_file("/texts/.hidden.txt", b"hidden")
    memory.pipe_file("/texts/notes.bin", b"\0\0")
    row = json.dumps({"text": "the cat0 sat"}) + "\n"
    memory.pipe_file("/rows/a.jsonl", row.encode() * 100)
    names = [own.path.name for own in find_sources("memory://texts")]
    assert names == ["a.txt.gz", "b.txt"]
    assert [own.path.name for own in find_sources("memory://texts/*.gz")] == ["a.txt.gz"]
    assert names_files("memory://texts/*.txt")
    assert not names_files("memory://texts/*.csv")

    (tmp_path / "one.txt").write_text(LINES * 2)
    settings = TextSettings(layout="line")
    here = open_or_build(tmp_path / "one.txt", settings, min_count=1)
    there = open_or_build("memory://texts", settings, min_count=1)
    assert here.manifest["content"] == there.manifest["content"]
    rows = open_or_build("memory://rows/a.jsonl", TextSettings(), min_count=1)
    assert rows.num_tokens == 300


def test_parquet_is_read_by_columns(memory):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    with memory.open("/t.parquet", "wb") as file:
        pq.write_table(pa.table({"text": ["the cat sat"] * 50, "n": range(50)}), file)
    assert open_or_build("memory://t.parquet", TextSettings(), min_count=1).num_tokens == 150


def test_shards_of_a_remote_file_are_read_from_their_offsets(memory, monkeypatch):
    memory.pipe_file("/big.txt", LINES.encode())
    settings = TextSettings()
    own = shards.cut_shards("memory://big.txt", settings, size=20_000)
    assert len(own) > 3
    texts = [b"".join(own.open().blocks()) for shard in own for own in shard]
    assert b"".join(texts) == LINES.encode()
    assert all(text.endswith(b"\n") for text in texts)


def test_a_changed_file_is_another_text(memory):
    memory.pipe_file("/t.txt", b"one two three\n")
    before = fingerprint("memory://t.txt", TextSettings())
    assert before == fingerprint("memory://t.txt", TextSettings())
    memory.pipe_file("/t.txt", b"one two four!\n")
    assert fingerprint("memory://t.txt", TextSettings()) != before


def test_a_model_is_written_and_opened(memory, tmp_path):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(LINES)
    own = sememe.Counts(dim=4, min_count=1).fit(corpus, out="memory://runs/mine")
    assert memory.exists("/runs/mine/sememe.json")
    assert not Path("memory:").exists()
    there = sememe.load("memory://runs/mine")
    word = there.vocabulary[3]
    assert np.array_equal(there[word], own.vectors[word])
    with pytest.raises(WriteError, match="holds a model already"):
        sememe.Counts(dim=4, min_count=1).fit(corpus, out="memory://runs/mine")
    # A replaced model is downloaded again, the old copy is gone.
    sememe.Counts(dim=3, min_count=1).fit(corpus, out="memory://runs/mine", overwrite=True)
    assert sememe.load("memory://runs/mine").dim == 3
    assert len([*(tmp_path / "cache" / "remote").iterdir()]) == 1
    with pytest.raises(WriteError, match="another file system"):
        own.save("memory://runs/other")


def test_a_model_is_whole_or_not_there(memory, tmp_path, monkeypatch):
    source = tmp_path / "m"
    source.mkdir()
    for name in ("sememe.json", "model.safetensors", "SHA256SUMS"):
        (source / name).write_text("{}")
    put = type(memory).put_file
    order = []

    def failing(self, local, target, *more, **options):
        order.append(target)
        if target.endswith("SHA256SUMS") and len(order) == 2:
            raise OSError("the line is cut")
        return put(self, local, target, *more, **options)

    monkeypatch.setattr(type(memory), "put_file", failing)
    cut = pytest.raises(WriteError, match="the line is cut")
    with cut, remote.working_copy("memory://runs/m") as path:
        path.mkdir()
        for file in source.iterdir():
            (path / file.name).write_bytes(file.read_bytes())
    assert not memory.exists("/runs/m/sememe.json")
    assert remote.copy_of("memory://runs/m").exists()  # what was made is kept
    with remote.working_copy("memory://runs/m") as path:
        (path / "sememe.json").write_text('{"kind": "mine"}')
    assert order[-1].endswith("sememe.json")
    assert remote.read_manifest("memory://runs/m") == {"kind": "mine"}


def test_what_is_not_there_or_damaged_is_one_sentence(memory, tmp_path):
    with pytest.raises(InputError, match=r"no file or folder memory://no"):
        find_sources("memory://no")
    with pytest.raises(SememeError, match="memory://no"):
        sememe.load("memory://no/model")
    with (
        pytest.raises(WriteError, match="after its bucket"),
        remote.working_copy("memory://bucket"),
    ):
        pass
    memory.pipe_file("/m/sememe.json", b'{"kind": "counts"}')
    memory.pipe_file("/m/model.safetensors", b"x")
    memory.pipe_file("/m/SHA256SUMS", b"0  model.safetensors\n")
    with pytest.raises(SememeError, match="damaged"):
        sememe.load("memory://m")


def test_a_name_that_leaves_its_folder_is_refused(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))
    file = remote.RemoteFile("memory:///m/../../../evil.txt", 1, "")
    with pytest.raises(InputError, match="evil"):
        remote._download("memory://m", [file], tmp_path / "here" / "m", is_folder=True)
    assert not list(tmp_path.rglob("evil*"))


def test_what_could_not_be_uploaded_is_kept(memory, tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))

    def write(path):
        with write_folder(path) as folder:
            (folder / "sememe.json").write_text('{"kind": "mine"}')

    def fails(*_):
        raise OSError("no network")

    with (
        monkeypatch.context() as patch,
        pytest.raises(WriteError, match="complete in"),
        remote.working_copy("memory://runs/m") as path,
    ):
        patch.setattr(type(memory), "put_file", fails)
        write(path)
    # A command that fails later does not remove it, nor does another content at the URL.
    with pytest.raises(ValueError), remote.working_copy("memory://runs/m") as again:
        assert (again / "sememe.json").exists()
        raise ValueError
    assert (path / "sememe.json").exists()
    memory.pipe_file("/runs/m/other.txt", b"x")
    with pytest.raises(ValueError), remote.working_copy("memory://runs/m"):
        raise ValueError
    assert list((tmp_path / "cache").rglob("kept-*/m/sememe.json"))


def test_texts_of_unknown_schemes_are_texts():
    assert not remote.exists("steam://run/440") and not remote.exists("magnet://x")


def test_missing_drivers_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    fsspec.registry._registry.pop("s3", None) if hasattr(fsspec.registry, "_registry") else None
    with pytest.raises(MissingExtraError, match=r"sememe\[s3\]"):
        remote.file_system("s3://bucket/x")
    with pytest.raises(InputError, match="nosuch"):
        remote.file_system("nosuch://bucket/x")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingExtraError, match=r"sememe\[s3\]"):
        remote.file_system("memory://x")


def test_commands_read_and_write_s3(s3, tmp_path):
    s3.pipe_file("bucket/texts/a.txt.gz", gzip.compress(LINES.encode()))
    s3.pipe_file("bucket/texts/b.txt", LINES.encode())

    def run(*words):
        done = CliRunner().invoke(app, [*words])
        assert done.exit_code == 0, done.output
        return done.output

    told = run(
        "train", "counts", "s3://bucket/texts/*", "--dim", "4", "--min-count", "1",
        "--out", "s3://bucket/runs/counts",
    )  # fmt: skip
    assert "s3://bucket/runs/counts" in told
    assert str(tmp_path) not in told
    assert s3.exists("bucket/runs/counts/sememe.json")
    assert "cat" in run("neighbors", "s3://bucket/runs/counts", "cat1")
    run("embed", "s3://bucket/runs/counts", "s3://bucket/texts/b.txt", "-o", "s3://bucket/v.npy")
    with s3.open("bucket/v.npy") as file:
        assert np.load(file).shape == (2_000, 4)
    run("search", "s3://bucket/texts/b.txt", "cat1", "--index", "s3://bucket/index", "-q")
    assert s3.exists("bucket/index/sememe.json")
    assert "cat1" in run("search", "s3://bucket/index", "cat1", "-q")
    done = CliRunner().invoke(app, ["embed", "s3://bucket/none", "a text"])
    assert done.exit_code == 2
    assert "s3://bucket/none" in done.output
    assert not any(own.name.startswith("s3:") for own in Path().iterdir())
