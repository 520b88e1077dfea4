"""Meanings of words: the sets themselves, files, spans in any script, scores, static vectors."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, InputError
from sememe.evaluation.senses import (
    BUILT_IN,
    SETS,
    Occurrence,
    SenseSet,
    find_sets,
    read_senses,
    sense_tables,
)
from sememe.evaluation.senses.evaluating import Representation, represent, score_set
from sememe.evaluation.senses.results import short_names
from sememe.metrics import separation
from sememe.progress import SILENT
from sememe.text.settings import TextSettings
from sememe.vectors import WordVectors
from sememe.vectors.onehot import OneHotVectors

BANKS = """bank\triver\tWe sat on the [[bank]] of a stream
bank\triver\tThe [[bank]] was green near the stream
bank\tmoney\tThe [[bank]] gave us money
bank\tmoney\tPut money into a [[bank]]
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def banks(tmp_path: Path) -> Path:
    return write(tmp_path / "banks.tsv", BANKS)


# ---- the sets --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_every_word_of_the_sets_has_two_senses_with_enough_sentences(name):
    (own,) = find_sets(name)
    assert len(own.words) >= 12
    counts = Counter((one.word, one.sense) for one in own.occurrences)
    assert set(Counter(word for word, _ in counts).values()) == {2}
    assert min(counts.values()) >= 5
    for one in own.occurrences:
        # One form everywhere: case or number would tell senses apart.
        assert one.sentence[one.start : one.end] == one.word
        assert len(one.sentence) > 7 and "[[" not in one.sentence
    sentences = [one.sentence for every in find_sets(None) for one in every.occurrences]
    assert len(set(sentences)) == len(sentences)


def test_the_built_in_files_are_the_sets():
    assert {path.stem for path in BUILT_IN.glob("*.tsv")} == set(SETS)


@pytest.mark.parametrize("name", SETS)
def test_neither_length_nor_place_nor_shared_words_tell_the_senses(name):
    (own,) = find_sets(name)
    found: dict[str, list[float]] = {"length": [], "place": [], "words": []}
    for word in own.words:
        rows = [one for one in own.occurrences if one.word == word]
        senses = [one.sense for one in rows]
        texts = [one.sentence[: one.start] + " " + one.sentence[one.end :] for one in rows]
        split = r"\w" if name == "chinese" else r"\w+"
        bags = [set(re.findall(split, text.lower())) for text in texts]
        words = sorted(set().union(*bags))
        bag_rows = np.array([[word in bag for word in words] for bag in bags], float)
        found["words"].append(separation(bag_rows, senses).nearest)
        for kind, values in (
            ("length", [len(one.sentence) for one in rows]),
            ("place", [one.start / len(one.sentence) for one in rows]),
        ):
            angles = np.array(values, float) / max(values)  # near angles are near values
            units = np.stack([np.cos(angles), np.sin(angles)], 1)
            found[kind].append(separation(units, senses).nearest)
    for kind, shares in found.items():
        assert np.mean(shares) < 0.62, (kind, np.mean(shares))


# ---- files -----------------------------------------------------------------------------------


def test_marks_and_places_give_the_same(banks, tmp_path):
    own = read_senses(banks)
    assert own.name == "banks" and own.words == ["bank"]
    assert own.occurrences[0] == ("bank", "river", "We sat on the bank of a stream", 14, 18)
    lines = [
        "\t".join((one.word, one.sense, str(one.start), str(one.end), one.sentence))
        for one in own.occurrences
    ]
    other = read_senses(write(tmp_path / "placed.tsv", "# comment\n\n" + "\n".join(lines)))
    assert other.occurrences == own.occurrences


def test_full_width_text_and_emoji_keep_their_characters(tmp_path):
    text = "".join(
        f"行\t{sense}\t{sentence}\n"
        for sense, sentence in (
            ("line", "👩‍👩‍👧第三[[行]]（ＡＢＣ）"),
            ("line", "每[[行]]五个字。"),
            ("fine", "“不[[行]]！”他说"),
            ("fine", "明天也[[行]]😀"),
        )
    )
    for one in read_senses(write(tmp_path / "zh.tsv", text)).occurrences:
        assert one.sentence[one.start : one.end] == "行"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("bank river We sat\n", 1, "between tabs"),
        ("bank\triver\t\n", 1, "between tabs"),
        (BANKS + "bank\triver\tno mark here\n", 5, "not 0"),
        (BANKS + "bank\triver\ta [[bank]] and a [[bank]]\n", 5, "not 2"),
        (BANKS + "bank\triver\t3\tx\ta bank\n", 5, "two numbers"),
        (BANKS + "bank\triver\t2\t7\ta bank\n", 5, "6 characters"),
        (BANKS + "bank\triver\t4\t4\ta bank\n", 5, "hold no word"),
        (BANKS + "bat\tanimal\tA [[bat]] flew\nbat\tanimal\tThe [[bat]] slept\n", 5, "one meaning"),
        (BANKS + "bank\tdata\tA memory [[bank]]\n", 5, "only one sentence"),
        (BANKS + "\nbank\tmoney\tWe sat on the [[bank]] of a stream\n", 6, "is on line 1"),
    ],
)
def test_a_bad_line_is_named(text, line, message, tmp_path):
    path = write(tmp_path / "bad.tsv", text)
    with pytest.raises(InputError, match=rf"bad\.tsv:{line}: .*{message}"):
        read_senses(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"There is no file .*english, chinese, python"):
        find_sets("nothing")
    with pytest.raises(InputError, match="is empty"):
        read_senses(write(tmp_path / "empty.tsv", "\n"))


# ---- scores ----------------------------------------------------------------------------------


def made_set(num_words: int = 6) -> SenseSet:
    rows = [
        Occurrence(f"w{word}", sense, f"{word} {sense} {number}", 0, 1)
        for word in range(num_words)
        for sense in ("one", "two")
        for number in range(4)
    ]
    return SenseSet("made", rows)


def made_vectors(own: SenseSet, noise: float) -> np.ndarray:
    random = np.random.default_rng(0)
    centers = {
        key: random.normal(size=20) for key in dict.fromkeys(row[:2] for row in own.occurrences)
    }
    rows = np.stack([centers[row[:2]] for row in own.occurrences])
    return rows + noise * random.normal(size=rows.shape)


def test_perfect_vectors_and_unknown_ones():
    own = made_set()
    vectors = made_vectors(own, 0.01)
    is_known = np.ones(len(vectors), bool)
    whole = score_set(own, Representation("layer 1", "layer", vectors, is_known))
    assert (whole.nearest, whole.auc, whole.coverage) == (1.0, 1.0, 1.0)
    assert whole.interval == (1.0, 1.0) and whole.chance == pytest.approx(3 / 7)
    is_known[:4] = False  # w0 keeps one sense only
    is_known[8:11] = False  # w1 keeps one sentence of its first sense
    part = score_set(own, Representation("layer 1", "layer", vectors, is_known))
    assert [word.word for word in part.words] == ["w2", "w3", "w4", "w5"]
    assert (part.num_asked, part.coverage) == (32, 32 / 48)
    none = score_set(own, Representation("x", "layer", vectors, np.zeros(48, bool)))
    assert math.isnan(none.nearest) and none.coverage == 0


def test_a_word_counts_as_much_as_another():
    own = made_set(2)
    rows = [*own.occurrences, *(row._replace(sentence=row.sentence + "x") for row in own[1][8:])]
    own = SenseSet("uneven", rows)
    vectors = made_vectors(own, 0.01)
    vectors[:8] = 1.0  # the first word has one vector
    score = score_set(own, Representation("layer 1", "layer", vectors, np.ones(24, bool)))
    assert score.nearest == pytest.approx((3 / 7 + 1) / 2)
    assert score.num_asked == 24


def test_vectors_that_are_no_numbers():
    own = made_set()
    with pytest.raises(ArtifactError, match="damaged"):
        score_set(own, Representation("x", "layer", np.full((48, 2), np.nan), np.ones(48, bool)))


# ---- static vectors --------------------------------------------------------------------------


def test_word_vectors_cannot_tell_but_their_neighbors_can(banks):
    words = ["bank", "stream", "money", "the", "of"]
    rows = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], np.float32)
    result = sememe.evaluate_senses(WordVectors(words, rows), banks)
    mean, centered, word = result.scores
    assert (mean.role, word.role) == ("context", "word")
    assert mean.nearest == centered.nearest == 1.0
    assert word.nearest == pytest.approx(word.chance) and word.auc == 0.5
    assert result.gains("banks") == {} and result.kind == "vectors"
    assert "one vector for all senses" in str(result)


def test_the_marked_word_is_no_part_of_its_context(banks):
    occurrences = read_senses(banks).occurrences
    context = represent(WordVectors(["bank"], np.ones((1, 2))), occurrences, [], SILENT)[0]
    assert not context.is_known_N.any()


def test_one_hot_vectors_count_shared_words(banks):
    vectors = OneHotVectors(["bank", "stream", "money", "the", "a", "of"])
    context, _, word = sememe.evaluate_senses(vectors, banks).scores
    assert 0 < context.nearest <= 1 and word.nearest == pytest.approx(word.chance)


@pytest.mark.parametrize("settings", [TextSettings(language="zh"), TextSettings()])
def test_chinese_spans_whatever_the_segmenter_cuts(settings):
    (own,) = find_sets("chinese")
    characters = {char for one in own.occurrences for char in one.sentence}
    known = sorted({*characters, *own.words})
    vectors = WordVectors(known, np.random.default_rng(0).normal(size=(len(known), 16)))
    vectors.text = settings
    context, _, word = represent(vectors, own.occurrences, [], SILENT)
    assert word.is_known_N.all() and context.is_known_N.any()
    for one, row in zip(own.occurrences, word.vectors_ND, strict=True):
        np.testing.assert_allclose(row, vectors[one.word], atol=1e-6)  # 长 in 长得 is still 长


def test_a_word_that_only_its_characters_make_up():
    (own,) = find_sets("chinese")
    vectors = WordVectors(["意", "思"], np.array([[1, 0], [0, 3.0]]))
    *_, word = represent(vectors, own.occurrences, [], SILENT)
    index = [row.word for row in own.occurrences].index("意思")
    assert word.vectors_ND[index].tolist() == [0.5, 1.5] and word.is_known_N.sum() == 10


def test_an_unknown_word_is_not_asked(banks):
    result = sememe.evaluate_senses(WordVectors(["shore"], np.ones((1, 2))), banks)
    assert [score.coverage for score in result.scores] == [0, 0, 0]
    assert "knows none of the words" in str(result)


# ---- tables ----------------------------------------------------------------------------------


def test_short_names_are_told_apart():
    assert short_names(["runs/bert", "other/gpt"]) == ["bert", "gpt"]
    assert short_names(["a/x/model", "b/x/model"]) == ["a/x/model", "b/x/model"]
    assert short_names(["model"]) == ["model"]


def test_tables_put_models_below_each_other(banks):
    vectors = WordVectors(["bank", "money"], np.eye(2, dtype=np.float32))
    result = sememe.evaluate_senses(vectors, banks)
    (table,) = sense_tables([result, result])
    assert "banks: 1 words, 4 sentences" in str(table)
    assert "– – –" not in str(table)
    content = result.to_dict()
    assert content["scores"][2]["nearest"] == pytest.approx(1 / 3)
    assert content["scores"][2]["words"][0]["word"] == "bank"
    assert content["gains"] == {"banks": {}}
