"""The whole stream: order, bounded memory, Python iterables, fingerprints."""

import json
import threading

import pytest

from sememe.errors import InputError
from sememe.text import stream
from sememe.text.reference import encode_documents
from sememe.text.settings import TextSettings
from sememe.text.words import decode_documents

DEFAULT = TextSettings()
LONG = "long" * 12


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_order_does_not_depend_on_workers(tmp_path, words_of, workers):
    names = []
    for part in range(3):
        names.append(tmp_path / f"{part}.txt")
        names[-1].write_text("".join(f"{part} {i} {LONG}\n" for i in range(50_000)))
    found = words_of(names, workers=workers)
    expected = [[[str(p), str(i), LONG]] for p in range(3) for i in range(50_000)]
    assert found == expected


def test_an_endless_iterable_is_read_as_needed():
    num_read = 0

    def endless():
        nonlocal num_read
        while True:
            num_read += 1
            yield "some words of a document. " * 40

    records = stream.segment(endless(), DEFAULT, workers=2)
    next(records)
    records.close()
    assert num_read < 20_000


def test_a_reader_stops_when_nobody_listens(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"word " * 5_000_000)
    sizes = []
    records = stream.segment(path, DEFAULT, workers=1, on_bytes=sizes.append)
    next(records)
    records.close()
    assert sum(sizes) < path.stat().st_size
    for thread in threading.enumerate():
        if thread.name == "sememe-reader":
            thread.join(timeout=120)
            assert not thread.is_alive()


def test_documents_from_python(words_of):
    expected = [[["one", "two"], ["three"]], [["four"]]]
    assert words_of(text for text in ["One two. Three", "!", "four"]) == expected
    assert words_of(["One two. Three", "!", "four"]) == expected


def test_token_lists_are_taken_as_they_are(words_of):
    lists = [["The", "new york", "É"], [], ["", "a\x1fb", "c\x1e\x1d"], ("tuple",), ["\x1f"]]
    expected = [[["The", "new york", "É"]], [["ab", "c"]], [["tuple"]]]
    assert words_of(lists) == expected
    assert words_of(iter(lists)) == expected


def test_many_token_lists_come_in_several_records():
    lists = ([f"w{i}", "x" * 100] for i in range(30_000))
    records = list(stream.segment(lists, DEFAULT))
    assert len(records) > 1
    assert sum(record.data.count(b"\x1d") for record in records) == 30_000


@pytest.mark.parametrize(
    ("corpus", "part"),
    [
        ([["a"], "b"], "Item 1 of the iterable is of type str; each must be a list of str"),
        ([["a"], 7], "Item 1 of the iterable is of type int"),
        ([["a"], ["b", 5]], "Sentence 1 of the iterable holds a word of type int: 5"),
        (iter(["a", ["b"]]), "Item 1 of the iterable is of type list; all must be str"),
        (iter(["a\ud800"]), "Document 0 of the iterable cannot be written as UTF-8 at character 1"),
        ([], "no word in the iterable"),
        (iter([[]]), "no word in the iterable"),
        ([7], "Item 0 of the iterable is of type int"),
        (7, "is of type int"),
    ],
)
def test_wrong_iterables_are_explained(words_of, corpus, part):
    with pytest.raises(InputError, match=part):
        words_of(corpus)


def test_a_list_of_names_that_are_missing_is_not_taken_for_text(words_of):
    with pytest.raises(InputError, match=r"There is no file or folder corpus.txt"):
        words_of(["corpus.txt", "other.txt"])


def test_an_error_in_the_middle_reaches_the_caller(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine line\n" * 500_000 + b"\xff\n")
    records = stream.segment(path, DEFAULT, workers=2)
    with pytest.raises(InputError, match="byte 5,000,000"):
        for record in records:
            assert record.data


def test_fingerprint_knows_text_and_settings(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")
    first = stream.fingerprint(path, DEFAULT)
    assert json.loads(json.dumps(first)) == first == stream.fingerprint(str(path), DEFAULT)
    assert first != stream.fingerprint(path, TextSettings(lowercase=False))
    path.write_text("other")
    assert first != stream.fingerprint(path, DEFAULT)
    assert stream.fingerprint(iter(["a"]), DEFAULT) is None
    assert stream.fingerprint([["a"]], DEFAULT) is None
    assert stream.fingerprint("-", DEFAULT) is None


def test_fingerprint_knows_the_dictionary(tmp_path):
    (tmp_path / "a.txt").write_text("好")
    words = tmp_path / "words.txt"
    words.write_text("好人")
    chosen = TextSettings(language="zh", dictionary=str(words))
    first = stream.fingerprint(tmp_path / "a.txt", chosen)
    words.write_text("好人 5")
    assert first != stream.fingerprint(tmp_path / "a.txt", chosen)


def test_records_round_trip():
    documents = [[["a", "b"], ["中"]], [["c"]]]
    assert list(decode_documents(encode_documents(documents))) == documents
    assert encode_documents([[[]], [], [["", "a"]]]) == b"a\x1f\x1e\x1d"
