"""Chinese words: cuts, the user's dictionary, worker processes and their failures."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import InputError, SememeError
from sememe.text import chinese
from sememe.text.reference import chinese_sentences, encode_documents
from sememe.text.settings import TextSettings
from sememe.text.words import decode_documents
from sememe.text.worker_processes import WorkerProcess

PIECES = [
    "我爱北京", "天安门", "研究生命起源", "。", "！", "？", "…", "……", "；", "，", "、", "\n",
    "\r\n", "ABC", "def", " ", "\u3000", "ＡＢＣ", "１２", "３.5", "é", "caf", "Привет", "T恤",
    "C++", "12.5%", "(", "）", "?", "!", "𠀀", "-", "..", "《红楼梦》", "1998年", "か", "한국",
]  # fmt: skip
mixed = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
MODES = [
    TextSettings(language="zh"),
    TextSettings(language="zh", lowercase=False),
    TextSettings(language="zh", sentences=False),
]


def cut(documents, chosen, workers=1):
    encoded = [document.encode() for document in documents]
    ends = np.cumsum([len(document) for document in encoded], dtype=np.int64)
    with chinese.ChineseSegmenter(chosen, workers) as segmenter:
        return segmenter.segment(b"".join(encoded), ends, None).data


@pytest.mark.parametrize("chosen", MODES, ids=str)
@given(documents=st.lists(mixed, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_kernel_equals_reference(chosen, documents):
    expected = [chinese_sentences(document, chosen) for document in documents]
    assert cut(documents, chosen) == encode_documents(expected)


def test_sentences_and_case(words_of):
    found = words_of(
        iter(["我来到北京清华大学。他用ＡＢＣ和Python编程！\n第二行……café"]), language="zh"
    )
    assert found == [
        [
            ["我", "来到", "北京", "清华大学"],
            ["他用", "abc", "和", "python", "编程"],
            ["第二行"],
            ["café"],
        ]
    ]


def test_separators_in_the_text_do_no_harm(words_of):
    assert words_of(iter(["北\x1d京\x1f大\x1e学"]), language="zh") == [[["北", "京", "大", "学"]]]


def test_processes_give_the_same_in_order(tmp_path, words_of, monkeypatch):
    monkeypatch.setattr(chinese, "_SMALL_SIZE", 0)
    path = tmp_path / "a.txt"
    path.write_text("".join(f"第{i}行，我来到北京清华大学。\n" for i in range(60_000)), "utf-8")
    assert path.stat().st_size > 2 << 20
    assert words_of(path, language="zh", workers=2) == words_of(path, language="zh", workers=1)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_dictionary_adds_words(tmp_path, words_of, monkeypatch, workers):
    monkeypatch.setattr(chinese, "_SMALL_SIZE", 0)
    dictionary = tmp_path / "words.txt"
    dictionary.write_text("\ufeff石墨烯 100 n\n\n云计算平台\n凱特琳 nz\n", "utf-8")
    found = words_of(
        iter(["石墨烯和云计算平台"]), language="zh", dictionary=str(dictionary), workers=workers
    )
    assert found == [[["石墨烯", "和", "云计算平台"]]]


def test_full_width_letters_of_the_dictionary_are_read_as_those_of_the_text(tmp_path, words_of):
    dictionary = tmp_path / "words.txt"
    dictionary.write_text("Ｘ光片机\n", "utf-8")
    for text in ("看Ｘ光片机", "看X光片机"):
        found = words_of(iter([text]), language="zh", dictionary=str(dictionary))
        assert found == [[["看", "x光片机"]]]


@pytest.mark.parametrize(
    ("line", "part"),
    [("词 很多 n", "line 2: '词 很多 n' is not"), ("词 5 n x", "line 2: "), ("词 -5", "line 2: ")],
)
def test_wrong_dictionary_lines_are_named(tmp_path, line, part):
    dictionary = tmp_path / "words.txt"
    dictionary.write_text(f"好 3\n{line}\n", "utf-8")
    with pytest.raises(InputError, match=rf"words\.txt, {part}"):
        chinese.read_dictionary(dictionary)


def test_unreadable_dictionaries_are_named(tmp_path, words_of):
    with pytest.raises(InputError, match=r"Cannot read .*none.txt"):
        words_of(iter(["好"]), language="zh", dictionary=str(tmp_path / "none.txt"))
    (tmp_path / "gb.txt").write_bytes("北京".encode("gb18030"))
    with pytest.raises(InputError, match=r"gb\.txt is not UTF-8"):
        chinese.read_dictionary(tmp_path / "gb.txt")


def test_a_worker_that_fails_or_dies_is_explained():
    worker = WorkerProcess("sememe.text.chinese", "segments Chinese text", [])
    with pytest.raises(SememeError, match="segments Chinese text failed: UnicodeDecodeError"):
        worker.ask(b"\xff")
    assert worker.ask("北京".encode()) == "北京".encode()
    worker._process.kill()
    with pytest.raises(SememeError, match="ended with code -9"):
        worker.ask(b"x" * 1_000_000)
    worker.close()


def test_a_worker_ends_with_its_pipe():
    command = [sys.executable, "-m", "sememe.text.chinese"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.close()
        assert process.wait(timeout=600) == 0


def test_a_script_without_a_main_guard_works(tmp_path):
    (tmp_path / "corpus.txt").write_text("我来到北京清华大学。\n" * 60_000, "utf-8")
    # A file of the working folder must not shadow a module either.
    (tmp_path / "struct.py").write_text("raise SystemExit(3)")
    script = tmp_path / "code" / "script.py"
    script.parent.mkdir()
    script.write_text(
        "from sememe.text import stream\nfrom sememe.text.settings import TextSettings\n"
        "chosen = TextSettings(language='zh')\n"
        "records = stream.segment('corpus.txt', chosen, workers=2)\n"
        "print(sum(record.data.count(b'\\x1d') for record in records))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=1_200
    )
    assert (done.stdout.strip(), done.stderr) == ("60000", "")


def test_labels_follow_their_documents():
    with chinese.ChineseSegmenter(MODES[0], 1) as segmenter:
        text = "好。！人".encode()
        records = segmenter.segment(text, np.array([3, 9, 12], np.int64), ["a", "b", "c"])
    assert records.labels == ["a", "c"]
    assert len(list(decode_documents(records.data))) == 2


@pytest.mark.parametrize("what", ["/dev/zero", "FIFO", "gigabytes", "frequency"])
def test_a_dictionary_is_a_small_file(tmp_path, what):
    path = tmp_path / "words.txt"
    if what == "FIFO":
        os.mkfifo(path)
    elif what == "gigabytes":
        with path.open("wb") as file:
            file.truncate(1 << 33)
    elif what == "frequency":
        path.write_text("青霉素 99999999999999999999\n", encoding="utf-8")
    else:
        path.symlink_to(what)
    with pytest.raises(InputError, match=r"words\.txt"):
        chinese.read_dictionary(path)
