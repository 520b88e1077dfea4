"""Bad input: one clear sentence, exit code 2, nothing half-written left behind."""

import errno
import os
from pathlib import Path

import pytest

from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import write_folder, write_json

TRAIN = ("train", "word2vec")
SMALL = ("--dim", 8, "--min-count", 1, "--epochs", 1, "--workers", 1, "--quiet")
LOUD = SMALL[:-1]


@pytest.fixture
def refused(sememe, own_cache, tmp_path):
    """Run a command that must fail with one sentence and change nothing; gives the sentence."""

    def listing() -> set[Path]:
        return {*tmp_path.rglob("*"), *own_cache.glob("stores/*")}

    def run(*arguments: object, **more) -> str:
        before = listing()
        result = sememe(*arguments, fails=True, **more)
        assert result.code == 2, (result.code, result.err, result.exception)
        assert "Traceback" not in result.err
        lines = [line for line in result.err.splitlines() if not line.startswith("reading text")]
        assert len(lines) == 1 and lines[0].startswith("Error: ") and lines[0].endswith((".", ")"))
        left = {path for path in listing() - before if path.suffix != ".lock"}
        assert not left, left
        return lines[0]

    return run


def usage_error(sememe, *arguments: object) -> str:
    result = sememe(*arguments, fails=True)
    assert result.code == 2 and "Traceback" not in result.err
    return result.err


@pytest.mark.parametrize("content", ["", "\n\n  \n", "。！？ … --- !!!\n"])
@pytest.mark.parametrize("language", ["en", "zh", "none"])
def test_an_empty_corpus(refused, tmp_path, content, language):
    if language == "none" and content.strip():
        pytest.skip("marks between spaces are words where nothing is cut")
    (tmp_path / "empty.txt").write_text(content, encoding="utf-8")
    refused(*TRAIN, "empty.txt", "--out", "model", "--language", language, *SMALL)


def test_an_empty_standard_input(refused):
    refused(*TRAIN, "-", "--out", "model", *SMALL, stdin=b"")


@pytest.mark.parametrize("loss", ["negative", "hierarchical", "softmax"])
def test_nothing_above_min_count(refused, corpus, loss):
    options = ("--dim", 8, "--min-count", 100_000, "--loss", loss, "--quiet")
    assert "100,000" in refused(*TRAIN, corpus, "--out", "model", *options)


def test_a_missing_file(refused):
    assert "nowhere.txt" in refused(*TRAIN, "nowhere.txt", "--out", "model", *SMALL)


def test_a_pattern_that_matches_nothing(refused):
    assert "*.jsonl" in refused(*TRAIN, "*.jsonl", "--out", "model", *SMALL)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(refused, corpus):
    corpus.chmod(0)
    assert str(corpus) in refused(*TRAIN, corpus, "--out", "model", *SMALL)


def test_a_file_that_fails_while_it_is_read(refused, corpus, monkeypatch):
    plain_open = Path.open

    def open_or_fail(self, *arguments, **more):
        if self == corpus:
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return plain_open(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", open_or_fail)
    assert str(corpus) in refused(*TRAIN, corpus, "--out", "model", *SMALL)


def test_a_folder_without_text(refused, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "picture.png").write_bytes(b"\x89PNG")
    assert "folder" in refused(*TRAIN, "folder", "--out", "model", *SMALL)


def test_a_wrong_encoding_tells_file_and_byte(refused, tmp_path):
    (tmp_path / "latin.txt").write_bytes("plain words and a café\n".encode("latin-1"))
    told = refused(*TRAIN, "latin.txt", "--out", "model", *SMALL)
    assert "latin.txt" in told and "21" in told and "encoding" in told


def test_a_wrong_encoding_of_chinese(refused, tmp_path):
    (tmp_path / "gb.txt").write_bytes("我喜欢红色的苹果。\n".encode("gb18030"))
    assert "gb18030" in refused(*TRAIN, "gb.txt", "--language", "zh", "--out", "model", *SMALL)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("broken.jsonl", b'{"text": "good"}\n{"text": \n'),
        ("other.jsonl", b'{"body": "no such field"}\n'),
        ("other.csv", b"body,label\nwords,1\n"),
        ("not.parquet", b"this is no parquet file"),
        ("cut.txt.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b"),
    ],
)
def test_a_damaged_text_file(refused, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert name in refused(*TRAIN, name, "--out", "model", *SMALL)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("dim", -5), ("dim", 0), ("dim", 10**9), ("window", 0), ("window", -1), ("negatives", -1),
        ("negatives", 10**7), ("min-count", 0), ("min-count", -3), ("epochs", 0), ("epochs", -1),
        ("sample", -0.5), ("sample", 2), ("sample", "nan"),
        ("learning-rate", -1), ("learning-rate", "inf"), ("min-learning-rate", 1), ("seed", -1),
        ("workers", -1), ("workers", 10**6), ("noise-exponent", "nan"), ("max-words", -1),
        ("encoding", "no-such"), ("language", "!"), ("phrases", -1), ("phrases", 99),
        ("evaluate-every", -5), ("early-stopping", -1),
        ("dictionary", "words.txt"), ("column", "text="), ("column", "body"), ("column", "body=x"),
        ("column", "label=label"),
        ("start", "nowhere.bin"), ("data", "nowhere"),
    ],
)  # fmt: skip
def test_an_option_out_of_its_range(refused, corpus, option, value):
    more = ("--evaluate-every", 100) if option == "data" else ()
    command = (*TRAIN, corpus, "--out", "model", "--quiet", "--min-count", 1, *more)
    refused(*command, f"--{option}", value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("dim", "many"), ("dim", 1.5), ("architecture", "glove"), ("loss", "hinge"),
        ("combine", "max"), ("vectors", "both"), ("layout", "page"), ("errors", "ignore"),
        ("device", "abacus"),
    ],
)  # fmt: skip
def test_an_option_of_another_kind(sememe, corpus, option, value):
    told = usage_error(sememe, *TRAIN, corpus, "--out", "model", f"--{option}", value)
    assert option in told
    assert not corpus.with_name("model").exists()


def test_no_place_to_write_to(refused, corpus):
    assert "--out" in refused(*TRAIN, corpus, *SMALL)


def test_a_folder_of_something_else_is_not_replaced(refused, corpus, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "child.jpg").write_bytes(b"dear")
    refused(*TRAIN, corpus, "--out", "photos", *SMALL)
    assert (tmp_path / "photos" / "child.jpg").read_bytes() == b"dear"


def test_nothing_to_resume_from_other_options(sememe, refused, corpus):
    sememe(*TRAIN, corpus, "--out", "model", *SMALL)
    options = (*SMALL, "--resume", "--dim", 9)
    assert "dim was" in refused(*TRAIN, corpus, "--out", "model", *options)


def test_nothing_to_resume_from_other_text(sememe, refused, corpus, tmp_path):
    sememe(*TRAIN, corpus, "--out", "model", *SMALL)
    assert "finished already" in sememe(*TRAIN, corpus, "--out", "model", *LOUD, "--resume").err
    other = tmp_path / "other.txt"
    other.write_text(corpus.read_text().replace("cat", "dog"))
    sememe(*TRAIN, other, "--out", "second", *SMALL)  # keeps its token store
    assert "other text" in refused(*TRAIN, other, "--out", "model", *SMALL, "--resume")


@pytest.mark.parametrize("where", ["store", "model"])
def test_a_full_disk(refused, corpus, monkeypatch, where, sememe):
    if where == "model":  # the store is there already; the vectors find no room
        sememe(*TRAIN, corpus, "--out", "first", *SMALL)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "disk is full" in refused(*TRAIN, corpus, "--out", "model", *SMALL)


def test_a_full_disk_while_converting(refused, vector_file, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for target in ("folder", "out.bin", "out.txt.gz"):
        assert "disk is full" in refused("convert", vector_file, target)
    assert "disk is full" in refused("plot", "pca", vector_file, "king", "man", "boy")


def test_a_damaged_store_is_noticed(sememe, corpus, tmp_path):
    sememe(*TRAIN, corpus, "--out", "first", "--store", "store", *SMALL)
    manifest = tmp_path / "store" / "sememe.json"
    manifest.write_text(manifest.read_text()[:-20])
    result = sememe("info", "store", fails=True)
    assert result.code == 2 and "store" in result.err
    # Training from the text again mends it, and says so.
    again = sememe(*TRAIN, corpus, "--out", "second", "--store", "store", *LOUD)
    assert "again" in again.err
    assert sememe("info", "store", "--json").json["documents"] == 160


DAMAGED = {
    "empty.txt": b"",
    "header.txt": b"2 3\n",
    "lies.txt": b"3 2\na 1 2\nb 3 4\n",
    "short.bin": b"2 4\nword " + b"\x00" * 7,
    "words.txt": b"this is a text and not a vector file\n" * 3,
    "nan.txt": b"2 2\na 1 nan\nb 1 2\n",
    "bytes.txt": b"1 2\n\xff\xfe 1 2\n",
    "picture.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize(
    "command",
    [("neighbors", "a"), ("info",), ("convert", "out.bin"), ("evaluate words",), ("plot pca", "a")],
    ids=lambda command: command[0],
)
def test_a_damaged_vector_file(refused, tmp_path, name, command):
    (tmp_path / name).write_bytes(DAMAGED[name])
    assert name in refused(*command[0].split(), name, *command[1:])


@pytest.mark.parametrize("missing", ["sememe.json", "model.safetensors"])
def test_a_folder_that_lost_a_file(sememe, refused, vector_file, tmp_path, missing):
    sememe("convert", vector_file, "folder")
    (tmp_path / "folder" / missing).unlink()
    assert missing in refused("neighbors", "folder", "king")
    refused("info", "folder")


def test_a_changed_bit_is_found_when_asked(sememe, refused, corpus, vector_file, tmp_path):
    sememe("convert", vector_file, "folder")
    assert sememe("info", "folder", "--verify", "--json").json["verified_files"] == 2
    path = tmp_path / "folder" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[8 + int.from_bytes(content[:8], "little")] ^= 1  # in the first vector
    path.write_bytes(content)
    sememe("info", "folder")
    assert "model.safetensors" in refused("info", "folder", "--verify")
    (tmp_path / "folder" / "SHA256SUMS").unlink()
    assert "no checksums" in refused("info", "folder", "--verify")
    assert "no checksums" in refused("info", vector_file, "--verify")
    sememe(*TRAIN, corpus, "--out", "model", "--store", "store", *SMALL)
    assert sememe("info", "store", "--verify", "--json").json["verified_files"] > 2


def test_a_changed_bit_of_a_checkpoint_is_found_when_asked(sememe, refused, tmp_path):
    keeper = Checkpoints(tmp_path / "model.checkpoints")
    with keeper.write(7) as folder:
        (folder / "weights").write_bytes(bytes(100))
    assert sememe("info", "model.checkpoints", "--verify", "--json").json["verified_files"] == 1
    assert "--resume" in refused("info", "model") and "--resume" in refused(
        "neighbors", "model", "a"
    )
    (tmp_path / "model.checkpoints" / "step-7" / "weights").write_bytes(bytes(99) + b"\1")
    assert "step-7/weights" in refused("info", "model.checkpoints", "--verify")
    with write_folder(tmp_path / "model") as folder:
        write_json(folder / "sememe.json", {"kind": "word2vec"})
    assert "step-7/weights" in refused("info", "model", "--verify")


def test_a_folder_with_a_cut_tensor_file(sememe, refused, vector_file, tmp_path):
    sememe("convert", vector_file, "folder")
    path = tmp_path / "folder" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert "model.safetensors" in refused("neighbors", "folder", "king")


@pytest.mark.parametrize(
    "arguments",
    [
        ("neighbors", "nowhere", "king"),
        ("analogy", "toy.txt", "king", "nothing", "queen"),
        ("odd", "toy.txt", "king", "queen"),
        ("evaluate", "words", "toy.txt", "--data", "nowhere"),
        ("plot", "pca", "toy.txt", "king", "queen"),
        ("plot", "pca", "toy.txt", "king", "queen", "man", "--out", "picture.jpg"),
        ("plot", "pca", "toy.txt", "--pairs", "king:queen:man"),
        ("plot", "pca", "toy.txt", "--pairs", "nowhere.txt"),
        ("plot", "heatmap", "toy.txt", "king -"),
        ("plot", "history", "nowhere"),
        ("convert", "nowhere", "out"),
        ("info", "nowhere"),
    ],
    ids=" ".join,
)
def test_questions_that_cannot_be_answered(refused, vector_file, arguments):
    refused(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("neighbors", "toy.txt", "king", "--num", "0"),
        ("neighbors", "toy.txt", "king", "--num", "-4"),
        ("neighbors", "toy.txt", "king", "--restrict-vocab", "0"),
        ("neighbors", "toy.txt", "king", "--limit", "-1"),
        ("plot", "heatmap", "toy.txt", "king", "--scale", "0"),
        ("convert", "toy.txt", "out", "--limit", "0"),
        (*TRAIN, "toy.txt", "--out", "model", "--checkpoint-minutes", "-1"),
    ],
    ids=" ".join,
)
def test_a_number_out_of_its_range_is_a_usage_error(sememe, vector_file, arguments):
    told = usage_error(sememe, *arguments)
    assert f"Invalid value for '{arguments[-2]}'" in told
