"""One reading for all rungs: documents split, nothing held out is trained on, words and pieces."""

import gzip
import json
import os

import pytest
from ladder_texts import chinese_documents, documents, write

from sememe.errors import ArtifactError, InputError
from sememe.ladder.tasks import next_sentence_rows, origin_rows
from sememe.ladder.text import open_text, words_in
from sememe.text.settings import TextSettings


def read(path):
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("language", "make"), [("en", documents), ("zh", chinese_documents)], ids=["en", "zh"]
)
def test_documents_are_split_and_none_is_lost(tmp_path, language, make):
    texts = make(60)
    corpus = write(tmp_path / "text.jsonl", texts)
    text = open_text(corpus, TextSettings(language=language), tmp_path / "t")
    train, heldout = read(text.train), read(text.heldout)
    assert sorted(train + heldout) == sorted(texts) and heldout and len(heldout) < len(train)
    assert text.documents == {"train": len(train), "heldout": len(heldout)}
    assert text.words.num_tokens > 10 * text.heldout_words.num_tokens / 3
    assert sorted(text.heldout_documents()) == sorted(heldout) and text.name == "text.jsonl"


def test_it_is_read_once_and_again_when_something_changes(tmp_path):
    corpus = write(tmp_path / "text.jsonl", documents(40))
    settings = TextSettings()
    open_text(corpus, settings, tmp_path / "t")
    stamp = (tmp_path / "t" / "train.jsonl").stat().st_mtime_ns
    open_text(corpus, settings, tmp_path / "t")
    assert (tmp_path / "t" / "train.jsonl").stat().st_mtime_ns == stamp
    other = open_text(corpus, settings, tmp_path / "t", max_words=1_000)
    assert other.documents["train"] < 20 and "fits the budget" in other.split


@pytest.mark.parametrize("name", ["train.jsonl", "heldout.jsonl"])
@pytest.mark.parametrize("damage", ["word", "bytes", "FIFO", "missing"])
def test_a_damaged_text_is_not_read_on(tmp_path, name, damage):
    corpus = write(tmp_path / "text.jsonl", documents(40))
    open_text(corpus, TextSettings(), tmp_path / "t")
    path = tmp_path / "t" / name
    whole = path.read_bytes()
    path.unlink()
    if damage == "FIFO":
        os.mkfifo(path)
    elif damage != "missing":
        path.write_bytes(whole[:40] + (b"x" if damage == "word" else b"\xff") + whole[41:])
    with pytest.raises(ArtifactError, match=name):
        open_text(corpus, TextSettings(), tmp_path / "t")
    assert open_text(corpus, TextSettings(), tmp_path / "t", seed=2).words.num_tokens


def test_encoding_and_fields_are_those_of_the_corpus_alone(tmp_path):
    texts = chinese_documents(40)
    lines = [json.dumps({"body": text, "kind": "x"}, ensure_ascii=False) for text in texts]
    (tmp_path / "text.jsonl").write_text("\n".join(lines), encoding="gb18030")
    settings = TextSettings(
        language="zh", encoding="gb18030", columns={"text": "body", "label": "kind"}, layout="line"
    )
    text = open_text(tmp_path / "text.jsonl", settings, tmp_path / "t")
    assert sorted(read(text.train) + read(text.heldout)) == sorted(texts)
    assert text.words.num_tokens > 0 and "的" in text.heldout_words.vocabulary
    again = open_text(tmp_path / "text.jsonl", settings, tmp_path / "t")
    assert again.settings == text.settings and again.settings.language == "zh"


def test_a_document_that_comes_twice_is_on_one_side(tmp_path):
    text = open_text(documents(60) * 3, TextSettings(), tmp_path / "t")
    train, heldout = read(text.train), read(text.heldout)
    assert len(train + heldout) == 180 and len(heldout) >= 3 and not set(train) & set(heldout)


def test_of_one_long_document_pieces_are_drawn(tmp_path):
    (tmp_path / "long.txt").write_text(" ".join(documents(400)), encoding="utf-8")
    text = open_text(tmp_path / "long.txt", TextSettings(), tmp_path / "t", max_words=20_000)
    assert 10_000 < text.words.num_tokens + text.heldout_words.num_tokens < 40_000
    assert "run of 20 sentences" in text.split and "fits the budget" in text.split


def test_a_text_of_few_documents_is_split_by_sentences(tmp_path):
    long = " ".join(documents(20))
    text = open_text([long], TextSettings(), tmp_path / "t")
    assert "run of 20 sentences" in text.split and text.documents["heldout"] >= 1
    kept = " ".join([*read(text.train), *read(text.heldout)])
    assert sorted(kept.split()) == sorted(long.split())


@pytest.mark.parametrize(
    ("texts", "said"),
    [(["  "], "empty"), (["One sentence."], "too short"), (["The same."] * 40, "too short")],
)
def test_too_little_text_is_refused(tmp_path, texts, said):
    with pytest.raises(InputError, match=said):
        open_text(texts, TextSettings(), tmp_path / "t")
    assert not (tmp_path / "t" / "text.json").exists()


@pytest.mark.parametrize(
    ("language", "make"), [("en", documents), ("zh", chinese_documents)], ids=["en", "zh"]
)
def test_tasks_are_made_from_held_out_text_alone(tmp_path, language, make):
    text = open_text(make(400, sentences=30), TextSettings(language=language), tmp_path / "t")
    heldout = "\n".join(read(text.heldout))
    train, test = next_sentence_rows(text, 60, 30)
    assert {row.label for row in train} == {row.label for row in test} == {"follows", "other"}
    assert all(row.text in heldout and row.second in heldout for row in train + test)
    pairs = [{(row.text, row.second) for row in rows} for rows in (train, test)]
    assert not pairs[0] & pairs[1]
    follows = [row for row in train if row.label == "follows"]
    joined = heldout.replace(" ", "")
    assert all((row.text + row.second).replace(" ", "") in joined for row in follows)
    train, test = origin_rows(text, 200, 50)
    assert {row.label for row in test} <= {row.label for row in train} and len(test) >= 20


def test_packed_files_are_as_long_as_what_is_in_them(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(3):
        part = "\n\n".join(documents(40, seed=number)).encode()
        (folder / f"{number}.txt.gz").write_bytes(gzip.compress(part))
    packed = sum(file.stat().st_size for file in folder.iterdir())
    files = sorted(map(str, folder.iterdir()))
    assert words_in(folder) == words_in(str(folder)) == words_in(files) == 3 * packed // 6
    (folder / "more.txt").write_bytes(b"x" * 600)
    assert words_in(folder) == (3 * packed + 600) // 6
    assert words_in(iter(["a text"])) is None
    text = open_text(folder, TextSettings(), tmp_path / "t", max_words=words_in(folder))
    assert "fits the budget" not in text.split


def test_the_built_in_text_is_not_read_to_be_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path / "cache"))
    assert 10**6 < words_in(None) < 10**7
    assert not (tmp_path / "cache").exists()
