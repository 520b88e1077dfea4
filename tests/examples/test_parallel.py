"""Parallel text: two files, tables, bad pairs; and its batches by tokens."""

from __future__ import annotations

import gzip
import json
import lzma

import numpy as np
import pytest

from sememe.errors import InputError, OptionError
from sememe.examples.pair_batches import PairBatches, PairIds, Side, encode_pairs, is_held_out
from sememe.examples.parallel import Pair, read_pairs

ENGLISH = ["A dog runs.", "Two men talk.", "She reads."]
CHINESE = ["一只狗在跑。", "两个男人在说话。", "她在读书。"]


def texts(pairs):
    return [(pair.source, pair.target) for pair in pairs]


def test_two_files_line_by_line(tmp_path):
    (tmp_path / "a.en.gz").write_bytes(gzip.compress("\n".join(ENGLISH).encode()))
    (tmp_path / "a.zh.xz").write_bytes(lzma.compress(("\r\n".join(CHINESE) + "\r\n").encode()))
    pairs = read_pairs(tmp_path / "a.en.gz", tmp_path / "a.zh.xz")
    assert texts(pairs) == list(zip(ENGLISH, CHINESE, strict=True))
    assert texts(pairs) == texts(pairs)  # as often as asked
    assert next(iter(pairs)).where.endswith("a.en.gz and a.zh.xz, line 1")


def test_other_encodings(tmp_path):
    (tmp_path / "a.en").write_text("\n".join(ENGLISH), encoding="gb18030")
    (tmp_path / "a.zh").write_text("\n".join(CHINESE), encoding="gb18030")
    found = read_pairs(tmp_path / "a.en", tmp_path / "a.zh", encoding="gb18030")
    assert texts(found)[1] == (ENGLISH[1], CHINESE[1])
    with pytest.raises(InputError, match=r"utf-8|UTF-8"):
        list(read_pairs(tmp_path / "a.en", tmp_path / "a.zh"))


@pytest.mark.parametrize("is_longer", ["en", "zh"])
def test_unequal_numbers_of_lines(tmp_path, is_longer):
    for name, lines in (("en", ENGLISH), ("zh", CHINESE)):
        more = ["x", "y"] if name == is_longer else []
        (tmp_path / f"a.{name}").write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    pairs = read_pairs(tmp_path / "a.en", tmp_path / "a.zh", skip_bad=True)
    with pytest.raises(InputError, match=f"a.{is_longer} has 5 lines, .* only 3"):
        list(pairs)


def test_an_empty_side(tmp_path):
    (tmp_path / "a.en").write_text("one\n\nthree\n \n", encoding="utf-8")
    (tmp_path / "a.de").write_text("eins\nzwei\ndrei\n\n", encoding="utf-8")
    places = tmp_path / "a.en", tmp_path / "a.de"
    with pytest.raises(InputError, match=r"line 2: the source is empty.*--skip-bad"):
        list(read_pairs(*places))
    notes = []
    pairs = read_pairs(*places, skip_bad=True, on_note=notes.append)
    assert texts(pairs) == [("one", "eins"), ("three", "drei")]
    assert pairs.num_skipped == 2 and notes[0].startswith("2 bad pairs were left out; the first")
    list(pairs)
    assert len(notes) == 1  # said once, however often it is read


def test_nothing_at_all(tmp_path):
    (tmp_path / "a.en").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="no pairs"):
        list(read_pairs(tmp_path / "a.en", tmp_path / "a.en"))
    with pytest.raises(InputError, match="There is no file"):
        read_pairs(tmp_path / "a.en", tmp_path / "none.de")
    with pytest.raises(InputError, match="standard input"):
        read_pairs("-", tmp_path / "a.en")


TABLES = {
    "plain.tsv": "A dog.\t一只狗。\tby somebody\nA cat.\t一只猫。\tby another\n",
    "named.tsv": "id\tsource\ttarget\n1\tA dog.\t一只狗。\n2\tA cat.\t一只猫。\n",
    "codes.csv": 'en,zh\nA dog.,一只狗。\n"A cat.",一只猫。\n',
    "lines.jsonl": "".join(
        json.dumps({"target": zh, "source": en}, ensure_ascii=False) + "\n"
        for en, zh in (("A dog.", "一只狗。"), ("A cat.", "一只猫。"))
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path, name):
    (tmp_path / name).write_text(TABLES[name], encoding="utf-8")
    notes = []
    found = read_pairs(tmp_path / name, on_note=notes.append)
    assert texts(found) == [("A dog.", "一只狗。"), ("A cat.", "一只猫。")]
    assert "source = " in notes[0] and len(notes) == 1


# Names that nobody could list, and pairs that could be taken for names.
HEADED = {
    "sentences.csv": "English sentence,German sentence\nHi,Hallo\nI see,Ich verstehe\n",
    "camel.csv": "sourceSentence,targetSentence\nHi,Hallo\nI see,Ich verstehe\n",
    "script.csv": "Question,Answer\nHi,你好\nI see,我明白了\n",
    "chinese.csv": "英语句子,汉语句子\nHi,你好\nI see,我明白了\n",
    "other.csv": "甲,乙\nHi,Hallo\nI see,Ich verstehe\n",
    "under.tsv": "left_text\tright_text\nHi\tHallo\nI see\tIch verstehe\n",
    "ended.csv": "Anfang,Ende\n" + "Hi.,Hallo.\nI see!,Ich verstehe!\n" * 3,
    "numbered.csv": "nr,Anfang,Ende\n17,Hi,Hallo\n18,I see,Ich verstehe\n",
    "split.csv": "part,links,Ende_\n" + "train,Hi,Hallo\ntrain,I see,Ich verstehe\n" * 6,
}
HEADLESS = {
    "short.tsv": "Hi.\tHallo!\nI see.\tIch verstehe.\n",
    "words.tsv": "dog\tHund\ncat\tKatze\nhorse\tPferd\n",
    "links.tsv": "17\tHi.\t99\tHallo!\n18\tI see.\t98\tIch verstehe.\n",
    "again.tsv": "Hi\tHallo\n" * 9 + "I see.\tIch verstehe.\n",
    "notes.tsv": "Go.\tGeh.\tCC-BY 2.0 #1\nGo.\tGehen Sie.\tCC-BY 2.0 #2\n" * 40,
}


@pytest.mark.parametrize("name", HEADED)
def test_unknown_names_are_no_pair(tmp_path, name):
    (tmp_path / name).write_text(HEADED[name], encoding="utf-8")
    notes = []
    found = texts(read_pairs(tmp_path / name, on_note=notes.append))
    assert found[0][0].startswith("Hi") and found[1][0].startswith("I see"), notes
    assert found[0][1].startswith(("Hallo", "你好")) and "no header" not in notes[0]


@pytest.mark.parametrize("name", HEADLESS)
def test_a_first_pair_is_no_header(tmp_path, name):
    (tmp_path / name).write_text(HEADLESS[name], encoding="utf-8")
    notes = []
    found = texts(read_pairs(tmp_path / name, on_note=notes.append))
    assert len(found) == HEADLESS[name].count("\n") and "no header" in notes[0]
    assert found[0] in [("Hi.", "Hallo!"), ("dog", "Hund"), ("Hi", "Hallo"), ("Go.", "Geh.")]


def test_named_columns(tmp_path):
    place = tmp_path / "named.tsv"
    place.write_text(TABLES["named.tsv"], encoding="utf-8")
    turned = read_pairs(place, columns={"source": "target", "target": "2"})
    assert texts(turned)[0] == ("一只狗。", "A dog.")
    with pytest.raises(InputError, match="no column 'de'"):
        list(read_pairs(place, columns={"source": "de"}))
    with pytest.raises(OptionError, match="no part 'left'"):
        read_pairs(place, columns={"left": "de"})


def test_bad_rows_of_a_table(tmp_path):
    place = tmp_path / "a.tsv"
    place.write_text("one\teins\ntwo\n\tdrei\nfour\tvier\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 2"):
        list(read_pairs(place))
    pairs = read_pairs(place, skip_bad=True)
    assert texts(pairs) == [("one", "eins"), ("four", "vier")] and pairs.num_skipped == 2
    (tmp_path / "a.csv").write_text("en,de\none,eins\nyes, two,zwei\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"line 3.*3 columns"):
        list(read_pairs(tmp_path / "a.csv"))
    (tmp_path / "b.tsv").write_text("one\ntwo\n", encoding="utf-8")
    with pytest.raises(InputError, match="one column"):
        list(read_pairs(tmp_path / "b.tsv"))


def test_pairs_from_python():
    assert texts(read_pairs([("a", "b"), {"source": "c", "target": "d"}])) == [
        ("a", "b"), ("c", "d"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="line 2: 'x' is not"):
        read_pairs([("a", "b"), "x"])
    with pytest.raises(InputError, match="iterable of"):
        read_pairs(3)


def test_held_out_pairs_keep_translations_of_one_text_together():
    sources = [f"text {number}" for number in range(2_000)]
    share = sum(is_held_out(source, 0.1) for source in sources) / 2_000
    assert 0.08 < share < 0.12
    assert is_held_out("same", 0.5) == is_held_out(" same ", 0.5)


# ---- batches --------------------------------------------------------------------------------


def made(num=300, seed=0):
    draws = np.random.default_rng(seed)
    lengths = draws.integers(1, 40, (2, num))
    sides = [Side(np.full(length, index) for index, length in enumerate(own)) for own in lengths]
    return PairIds(*sides)


def test_a_batch_holds_as_many_tokens_as_fit():
    pairs = made()
    source = PairBatches(pairs, batch_tokens=200, seed=1)
    num = source.batches_per_epoch
    orders = [source.order(step) for step in range(num)]
    assert sorted(np.concatenate(orders)) == list(range(300))
    longest = np.maximum(pairs.sources.lengths, pairs.targets.lengths)
    sums = [int(longest[order].sum()) for order in orders]
    assert max(sums) <= 200 and np.mean(sums) > 170
    # Of like length: a batch spans far less than the set does.
    spans = [np.ptp(pairs.sources.lengths[order]) for order in orders]
    assert np.mean(spans) < 5
    batch = source.batch(0)
    assert [row[0] for row in batch.sources] == orders[0].tolist()
    assert batch.num_targets == sum(len(row) - 1 for row in batch.targets)


def test_batches_are_a_function_of_seed_and_step():
    pairs = made()
    source = PairBatches(pairs, batch_tokens=200, seed=1)
    steps = source.num_steps(3)
    forwards = [source.order(step).tolist() for step in range(steps)]
    again = PairBatches(pairs, batch_tokens=200, seed=1)
    assert [again.order(step).tolist() for step in reversed(range(steps))] == forwards[::-1]
    other = PairBatches(pairs, batch_tokens=200, seed=2)
    assert other.order(0).tolist() != forwards[0]
    ends = [source.num_steps(epochs) for epochs in (1, 2, 3)]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        assert sorted(np.concatenate(forwards[start:end])) == list(range(300))
    assert forwards[: ends[0]] != forwards[ends[0] : ends[1]]
    assert source.num_steps(1.5) == ends[0] + -(-(ends[1] - ends[0]) // 2)


def test_fixed_batches_return():
    source = PairBatches(made(), batch_tokens=200, seed=1, is_fixed=True)
    num = source.batches_per_epoch
    assert source.order(2).tolist() == source.order(num + 2).tolist()


def test_a_pair_longer_than_a_batch_is_one_of_its_own():
    sides = [Side([np.zeros(500), np.zeros(3), np.zeros(4)]) for _ in range(2)]
    source = PairBatches(PairIds(*sides), batch_tokens=10, seed=1)
    assert sorted(source.order(step).tolist() for step in range(2)) == [[0], [1, 2]]


def test_parts_of_a_batch():
    batch = PairBatches(made(3), batch_tokens=1_000, seed=1).batch(0)
    parts = [batch.part(index, 4) for index in range(4)]
    assert [len(part.sources) for part in parts] == [1, 1, 1, 1]
    assert [part.weight for part in parts] == [1.0, 1.0, 1.0, 0.0]
    assert sum(part.num_tokens * part.weight for part in parts) == batch.num_tokens


def test_long_pairs_are_left_out_and_counted():
    pairs = [Pair("a b c", "x"), Pair("a", "x y"), Pair("a", "x y z w")]

    def encode(texts):
        return [np.arange(len(text.split())) for text in texts]

    found = encode_pairs(pairs, encode, encode, 3)
    assert len(found) == 2 and found.num_long == 1
    assert found.targets[1].tolist() == [0, 1] and found.num_tokens == 7
    with pytest.raises(InputError, match="No pair is left"):
        encode_pairs(pairs, encode, encode, 0)
    other = encode_pairs(pairs[:2][::-1], encode, encode, 3)
    assert other.fingerprint != found.fingerprint
