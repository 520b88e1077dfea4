"""Text files, folders, globs and pipes: what is a document, what is found, what is refused."""

import io
import os
import sys

import pytest

from sememe.errors import InputError
from sememe.text import documents, sources, stream
from sememe.text.settings import TextSettings

LINES = "one two\nthree\n"
BLOCKS = "one\ntwo\n\n \nthree\r\n\r\nfour"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("layout", "text", "num_documents"),
    [
        ("line", LINES, 2), ("line", BLOCKS, 4), ("paragraph", BLOCKS, 3), ("file", BLOCKS, 1),
        ("auto", LINES, 2), ("auto", BLOCKS, 3), ("auto", LINES + "\n\n", 2),
        ("paragraph", LINES, 1), ("line", "no newline", 1),
    ],
)  # fmt: skip
def test_layouts(tmp_path, words_of, layout, text, num_documents):
    found = words_of(write(tmp_path / "a.txt", text), layout=layout)
    assert len(found) == num_documents


def test_segmented_text_is_a_document_a_line_unless_told(tmp_path, words_of):
    path = write(tmp_path / "a.txt", BLOCKS)
    assert len(words_of(path, language="none")) == 4
    found = words_of(path, language="none", layout="paragraph")
    assert found == [[["one"], ["two"]], [["three"]], [["four"]]]


def test_a_folder_of_files_has_a_document_a_file(tmp_path, words_of):
    write(tmp_path / "b.txt", LINES)
    write(tmp_path / "sub" / "c.md", "five")
    write(tmp_path / "a.txt", "zero")
    write(tmp_path / ".hidden.txt", "no")
    write(tmp_path / ".git" / "x.txt", "no")
    write(tmp_path / "picture.png", b"\x89PNG\xff")
    assert words_of(tmp_path) == [[["zero"]], [["one", "two"], ["three"]], [["five"]]]
    assert len(words_of(tmp_path, layout="line")) == 4


def test_links_are_followed_but_never_twice(tmp_path, words_of):
    for name in ("texts", "more"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / f"{name}.txt", name)
    (tmp_path / "texts" / "more").symlink_to(tmp_path / "more")
    (tmp_path / "texts" / "again").symlink_to(tmp_path / "texts")
    assert words_of(tmp_path / "texts") == [[["more"]], [["texts"]]]


def test_a_glob_is_sorted_and_a_file_of_any_name_is_read(tmp_path, words_of):
    for name in ("c.dat", "a.dat", "b.dat"):
        write(tmp_path / name, name[0] * 2)
    found = words_of(str(tmp_path / "*.dat"))
    assert found == [[["aa"]], [["bb"]], [["cc"]]]
    assert words_of([tmp_path / "c.dat", str(tmp_path / "a.dat")]) == [[["cc"]], [["aa"]]]


def test_standard_input(monkeypatch, words_of):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINES.encode())))
    assert words_of("-") == [[["one", "two"]], [["three"]]]


@pytest.mark.parametrize(
    ("corpus", "part"),
    [
        ("missing.txt", "There is no file or folder .*missing.txt"),
        ("*.nothing", r"No file matches .*\*.nothing"),
        ("empty", "No text in .*empty: a folder is searched for .txt"),
        ("empty.txt", "There is no word in .*empty.txt"),
        ("marks.txt", "There is no word in .*marks.txt"),
    ],
)
def test_nothing_to_read_is_said(tmp_path, words_of, corpus, part):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty.txt", "")
    write(tmp_path / "marks.txt", "...\n\n!?\n")
    with pytest.raises(InputError, match=part):
        words_of(str(tmp_path / corpus))


def test_no_corpus_and_two_pipes_are_refused():
    with pytest.raises(InputError, match="name at least one"):
        sources.find_sources([])
    with pytest.raises(InputError, match="once only"):
        sources.find_sources(["-", "-"])
    with pytest.raises(InputError, match="empty"):  # "$CORPUS" without a value
        sources.find_sources("")
    assert not sources.exists("")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_permission_is_named(tmp_path, words_of):
    path = write(tmp_path / "a.txt", "x")
    path.chmod(0)
    with pytest.raises(InputError, match=r"Cannot read .*a.txt: Permission denied"):
        words_of(path)


def test_refusals_of_the_system_are_named(tmp_path, words_of, monkeypatch):
    write(tmp_path / "folder" / "a.txt", "x")

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied", "folder")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputError, match=r"Cannot read the folder .*: Permission denied"):
        words_of(tmp_path / "folder")
    monkeypatch.undo()
    monkeypatch.setattr(type(tmp_path), "open", refuse)
    with pytest.raises(InputError, match=r"Cannot read .*a.txt: Permission denied"):
        words_of(tmp_path / "folder" / "a.txt")


def test_plain_text_has_no_labels(tmp_path, words_of):
    with pytest.raises(InputError, match="no column 'kind' for labels"):
        words_of(write(tmp_path / "a.txt", "x"), columns={"label": "kind"})


def test_columns_of_plain_text_are_not_ignored(tmp_path, words_of):
    path = write(tmp_path / "a.txt", "id\ttext\n7\tsome words\n")
    with pytest.raises(InputError, match=r"a\.txt: plain text has no columns"):
        words_of(path, columns={"text": "text"})
    write(tmp_path / "b.tsv", "id\tbody\n7\tother words\n")
    found = words_of([path, tmp_path / "b.tsv"], columns={"text": "body"})
    assert found[-1] == [["other", "words"]]


def test_documents_survive_block_borders(tmp_path, words_of, monkeypatch):
    text = "".join(f"wörd{i} 中文。\n" + ("\n" if i % 7 == 0 else "") for i in range(500))
    path = write(tmp_path / "a.txt", text)
    whole = {layout: words_of(path, layout=layout) for layout in ("line", "paragraph", "file")}
    for module in (documents, sources):
        monkeypatch.setattr(module, "BATCH_SIZE", 61)
    monkeypatch.setattr(sources, "_COMPRESSED_SIZE", 13)
    for layout, expected in whole.items():
        assert words_of(path, layout=layout) == expected


def test_an_endless_document_is_cut(tmp_path, words_of, monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_DOCUMENT", 1 << 16)
    text = "ab " * 100_000
    found = words_of(write(tmp_path / "a.txt", text), layout="file")
    assert len(found) > 1
    assert sum(len(sentence) for document in found for sentence in document) == 100_000
    long_word = words_of(write(tmp_path / "b.txt", "é" * 200_000), layout="line")
    assert "".join(word for document in long_word for words in document for word in words) == (
        "é" * 200_000
    )


def test_sizes_are_told_for_progress(tmp_path):
    path = write(tmp_path / "a.txt", "one two three\n" * 300_000)
    seen = []
    for _ in stream.segment(path, TextSettings(), workers=2, on_bytes=seen.append):
        pass
    assert sum(seen) == path.stat().st_size == stream.total_bytes(path)
    assert len(seen) > 1


def test_a_pipe_in_a_folder_is_left_out(tmp_path, words_of):
    write(tmp_path / "a.txt", "x")
    os.mkfifo(tmp_path / "b.txt")
    assert words_of(tmp_path) == [[["x"]]]


def test_a_lost_link_in_a_folder_is_told_of(tmp_path, words_of):
    write(tmp_path / "a.txt", "x")
    (tmp_path / "b.txt").symlink_to(tmp_path / "gone.txt")
    with pytest.raises(InputError, match=r"b\.txt"):
        words_of(tmp_path)
