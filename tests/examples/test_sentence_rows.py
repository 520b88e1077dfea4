"""Rows for sentence encoders: what a corpus gives, and what the columns of a table mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from sememe.errors import InputError, OptionError
from sememe.examples.sentence_rows import corpus_rows, table_rows
from sememe.text.settings import TextSettings

WIKI = (
    "= Cats =\nCats sleep a lot. They eat fish and like warm places.\nMost cats are small.\n\n"
    "= Dogs =\nDogs run with people. They guard the house at night.\n\n"
    "= Birds =\nBirds can fly. Some of them sing in the morning.\n"
)
CHINESE = (
    "= 猫 =\n猫喜欢睡觉。它们吃鱼，也喜欢温暖的地方。\n\n= 狗 =\n狗和人一起跑步。它们晚上看家。\n"
)


def of_corpus(text: str, objective: str, tmp_path: Path, language: str = "en", **options):
    path = tmp_path / "corpus.txt"
    path.write_text(text, encoding="utf-8")
    return corpus_rows(path, objective, TextSettings(language=language), **options)


def test_titles_and_bodies(tmp_path):
    rows, objective = of_corpus(WIKI, "titles", tmp_path)
    assert objective == "titles" and rows.kind == "pairs"
    assert [row.texts[0] for row in rows.rows] == ["Cats", "Dogs", "Birds"]
    assert rows.rows[0].texts[1].endswith("Most cats are small.")


def test_neighboring_sentences_stay_in_their_document(tmp_path):
    rows, _ = of_corpus(WIKI, "neighbors", tmp_path)
    pairs = [row.texts for row in rows.rows]
    assert ("Cats sleep a lot.", "They eat fish and like warm places.") in pairs
    assert not any("Most cats" in one and "Dogs" in two for one, two in pairs)


def test_auto_takes_neighbors_or_simcse(tmp_path):
    notes: list[str] = []
    assert of_corpus("A cat sleeps.\nA dog runs.\n", "auto", tmp_path)[1] == "simcse"
    text = "A cat sleeps. It dreams of fish.\nA dog runs. It barks loudly.\n"
    _, objective = of_corpus(text, "auto", tmp_path, on_note=notes.append)
    assert objective == "neighbors" and "neighbors" in notes[0] and "A cat sleeps" in notes[-1]


def test_chinese(tmp_path):
    rows, _ = of_corpus(CHINESE, "neighbors", tmp_path, "zh")
    assert ("猫喜欢睡觉。", "它们吃鱼，也喜欢温暖的地方。") in [row.texts for row in rows.rows]


def test_a_sample_is_random_and_repeats(tmp_path):
    text = "\n".join(f"This is the sentence number {index}." for index in range(500))
    notes: list[str] = []
    few, _ = of_corpus(text, "simcse", tmp_path, most=50, seed=3, on_note=notes.append)
    again, _ = of_corpus(text, "simcse", tmp_path, most=50, seed=3)
    other, _ = of_corpus(text, "simcse", tmp_path, most=50, seed=4)
    assert len(few) == 50 and few.rows == again.rows != other.rows
    places = [int(row.texts[0].split()[-1].strip(".")) for row in few.rows]
    assert places == sorted(places) and places[-1] > 400 and "500" in notes[0]


def test_a_corpus_without_what_is_needed(tmp_path):
    with pytest.raises(InputError, match="first line"):
        of_corpus("One line alone.\n", "titles", tmp_path)


# ---- tables ---------------------------------------------------------------------------------


def of_table(content: str, tmp_path: Path, name: str = "rows.tsv", **options):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return table_rows(path, **options)


PAIR = ("A man is eating food in the kitchen.", "Somebody has a meal at home today.")
TABLES = {
    "pairs": ("", ""),
    "scored": ("\tscore", "\t{}.5"),
    "triplets": ("\tnegative", "\tThe red car number {} is parked far away."),
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("has_names", [True, False])
def test_the_columns_show_the_kind(kind, has_names, tmp_path):
    name, cell = TABLES[kind]
    head = f"anchor\tpositive{name}\n" if has_names else ""
    body = "".join(f"{n} {PAIR[0]}\t{PAIR[1]} {n}{cell.format(n)}\n" for n in range(12))
    notes: list[str] = []
    found = of_table(head + body, tmp_path, on_note=notes.append)
    assert found.kind == kind and len(found) == 12 and PAIR[0][:10] in notes[0]
    if kind == "scored":
        assert (found.lowest, found.highest) == (0.5, 11.5)
    assert len(found.rows[0].texts) == (3 if kind == "triplets" else 2)


@pytest.mark.parametrize(
    "labels", [("entailment", "contradiction", "neutral"), ("蕴含", "矛盾", "中立")]
)
def test_inference_rows(labels, tmp_path):
    texts = [
        ("A man eats.", "Somebody eats.", labels[0]), ("A man eats.", "Nobody eats.", labels[1]),
        ("A man eats.", "A tall man eats.", labels[2]), ("A dog runs.", "It moves.", labels[0]),
    ]  # fmt: skip
    rows = "premise\thypothesis\tlabel\n" + "".join("\t".join(row) + "\n" for row in texts)
    found = of_table(rows, tmp_path)
    assert found.kind == "triplets"
    assert [row.texts for row in found.rows] == [
        ("A man eats.", "Somebody eats.", "Nobody eats."), ("A dog runs.", "It moves.", ""),
    ]  # fmt: skip


def test_named_columns(tmp_path):
    rows = "a\tb\tc\n" + "".join(f"text {n}\tother {n}\tthird {n}\n" for n in range(9))
    found = of_table(rows, tmp_path, columns={"text": "c", "second": "a", "third": "b"})
    assert found.rows[0].texts == ("third 0", "text 0", "other 0")
    with pytest.raises(OptionError, match="no part"):
        of_table(rows, tmp_path, columns={"first": "c"})


def test_rows_in_python():
    assert table_rows([("a cat", "a dog")] * 3).kind == "pairs"
    assert table_rows([("a cat", "a dog", 0.5), ("a", "b", 1)]).kind == "scored"
    assert table_rows([{"query": "a", "positive": "b", "negative": "c"}] * 3).kind == "triplets"
    with pytest.raises(InputError, match="Row 0"):
        table_rows(["a text alone"])


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("premise\thypothesis\tlabel\nA b.\tH e.\t0\nA b.\tC d.\t1\nE f.\tG h.\t2\n", "entailment"),
        ("text\tsecond\tlabel\nA man eats.\tHe eats.\tyes\nA dog.\tA cat.\tno\n", "not clear"),
        ("one text alone in a line\nand another one\n", "not clear"),
        ("text\tsecond\nA man eats.\t\n", "empty"),
        ("text\tsecond\tscore\n" + "A man.\tHe eats.\t1\n" * 3 + "A dog.\tA cat.\tmuch\n", "not"),
    ],
)  # fmt: skip
def test_what_is_unclear_is_refused(content, word, tmp_path):
    with pytest.raises(InputError, match=word):
        of_table(content, tmp_path)


def test_bad_rows_can_be_skipped(tmp_path):
    notes: list[str] = []
    content = "text\tsecond\n" + "A man eats.\tHe eats.\n" * 3 + "A dog.\t\n"
    found = of_table(content, tmp_path, skip_bad=True, on_note=notes.append)
    assert len(found) == 3 and "1 rows" in notes[-1]
