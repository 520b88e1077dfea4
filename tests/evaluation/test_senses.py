"""Meanings of words: the sets themselves, files, spans in any script, static vectors, networks."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.errors import ArtifactError, InputError, OptionError
from sememe.evaluation.senses import Occurrence, SenseSet, read_senses, sense_tables
from sememe.evaluation.senses.evaluating import score_set
from sememe.evaluation.senses.files import BUILT_IN, SETS, find_sets
from sememe.evaluation.senses.representations import Representation
from sememe.evaluation.senses.results import short_names
from sememe.evaluation.senses.static import represent_words
from sememe.metrics import separation
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
        (BANKS + "\nbank\tmoney\tWe sat on the [[bank]] of a stream\n", 6, "stands on line 1"),
    ],
)
def test_a_bad_line_is_named(text, line, message, tmp_path):
    path = write(tmp_path / "bad.tsv", text)
    with pytest.raises(InputError, match=rf"bad\.tsv:{line}: .*{message}"):
        read_senses(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"no file of words.*english, chinese, python"):
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
    context = represent_words(WordVectors(["bank"], np.ones((1, 2))), None, occurrences)[0]
    assert not context.is_known_N.any()


def test_one_hot_vectors_count_shared_words(banks):
    vectors = OneHotVectors(["bank", "stream", "money", "the", "a", "of"])
    context, _, word = sememe.evaluate_senses(vectors, banks).scores
    assert 0 < context.nearest <= 1 and word.nearest == pytest.approx(word.chance)


@pytest.mark.parametrize("settings", [None, TextSettings(language="zh"), TextSettings()])
def test_chinese_spans_whatever_the_segmenter_cuts(settings):
    (own,) = find_sets("chinese")
    characters = {char for one in own.occurrences for char in one.sentence}
    known = sorted({*characters, *own.words})
    vectors = WordVectors(known, np.random.default_rng(0).normal(size=(len(known), 16)))
    context, _, word = represent_words(vectors, settings, own.occurrences)
    assert word.is_known_N.all() and context.is_known_N.any()
    for one, row in zip(own.occurrences, word.vectors_ND, strict=True):
        np.testing.assert_allclose(row, vectors[one.word], atol=1e-6)  # 长 in 长得 is still 长


def test_a_word_that_only_its_characters_make_up():
    (own,) = find_sets("chinese")
    vectors = WordVectors(["意", "思"], np.array([[1, 0], [0, 3.0]]))
    *_, word = represent_words(vectors, TextSettings(), own.occurrences)
    index = [row.word for row in own.occurrences].index("意思")
    assert word.vectors_ND[index].tolist() == [0.5, 1.5] and word.is_known_N.sum() == 10


def test_an_unknown_word_is_not_asked(banks):
    result = sememe.evaluate_senses(WordVectors(["shore"], np.ones((1, 2))), banks)
    assert [score.coverage for score in result.scores] == [0, 0, 0]
    assert "knows none of the words" in str(result)


# ---- networks --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizers():
    pytest.importorskip("torch")
    from sememe.tokens.subword_training import train_tokenizer

    texts = [one.sentence for own in find_sets(["english", "chinese"]) for one in own.occurrences]
    sizes = {"wordpiece": 2_000, "bpe": 600}
    return {
        kind: train_tokenizer(texts, kind=kind, vocab_size=size, min_frequency=1)  # type: ignore[arg-type]
        for kind, size in sizes.items()
    }


def network(tokenizer, kind: str):
    import torch

    from sememe.networks.bert import BERTNetwork
    from sememe.networks.gpt import GPTNetwork
    from sememe.networks.presets import bert_config, gpt_config

    torch.manual_seed(0)
    if kind == "bert":
        config = bert_config("tiny", vocab_size=tokenizer.vocab_size, max_length=96, width=32)
        return BERTNetwork(config).eval()
    return GPTNetwork(
        gpt_config("tiny", vocab_size=tokenizer.vocab_size, max_length=96, width=32)
    ).eval()


MIXED = SenseSet(
    "mixed",
    [
        Occurrence("bank", "river", "the muddy bank 😀", 10, 14),
        Occurrence("行", "line", "👩‍👩‍👧第三行（ＡＢＣ）", 7, 8),
        Occurrence("意思", "fun", "真没意思。", 2, 4),
    ],
)


@pytest.mark.parametrize(("kind", "pieces"), [("bert", "wordpiece"), ("gpt", "bpe")])
def test_a_span_is_the_mean_over_its_pieces_on_every_layer(kind, pieces, tokenizers):
    from sememe.evaluation.senses.opening import open_model
    from sememe.networks.features import embed_words
    from sememe.progress import SILENT

    own = network(tokenizers[pieces], kind)
    speaker = open_model(
        (own, tokenizers[pieces]), layers=[], language="", limit=None, device="cpu", reporter=SILENT
    )
    found = speaker.represent(MIXED.occurrences)
    assert [one.name for one in found[2:-1]] == ["layer 0", "layer 1", "layer 2"]
    assert [one.is_last for one in found] == [False] * 4 + [True, False]
    for layer in range(3):
        for index, one in enumerate(MIXED.occurrences):
            assert one.sentence[one.start : one.end] == one.word
            spans = [np.array([[one.start, one.end]])]
            (alone,) = embed_words(
                own, tokenizers[pieces], [one.sentence], spans=spans, layers=layer
            )
            np.testing.assert_allclose(
                found[2 + layer].vectors_ND[index], alone.vectors_WD[0], atol=1e-5
            )


def test_a_network_reads_the_context_and_its_embedding_does_not(tokenizers):
    model = (network(tokenizers["wordpiece"], "bert"), tokenizers["wordpiece"])
    result = sememe.evaluate_senses(model, "english")
    assert [score.name for score in result.scores][2:-1] == ["layer 0", "layer 1", "layer 2"]
    assert result.kind == "bert" and all(score.coverage == 1 for score in result.scores)
    zeroth = result.scores[2]
    assert zeroth.auc == pytest.approx(0.5, abs=0.04)  # the word and its place: nothing of sense
    assert set(result.gains("english")) == {"other words, mean", "other words, centered"}
    chosen = sememe.evaluate_senses(model, "english", layers=["last", -1, "sum-all"])
    assert [score.name for score in chosen.scores][2:-1] == ["layer 2", "layer 2", "sum-all"]
    assert chosen.scores[2].nearest == result.scores[-2].nearest


def test_characters_that_a_network_cannot_write_are_not_asked(tokenizers):
    from sememe.tokens.subword_training import train_tokenizer

    tokenizer = train_tokenizer(["only english here"] * 3, kind="wordpiece", vocab_size=130)
    result = sememe.evaluate_senses((network(tokenizer, "bert"), tokenizer), "chinese")
    assert {score.coverage for score in result.scores if score.role == "layer"} == {0}


def test_elmo_reads_words_in_context(tmp_path):
    pytest.importorskip("torch")
    sentences = [one.sentence for one in find_sets("english")[0].occurrences]
    model = sememe.ELMo(
        "tiny", num_cells=24, width=12, filters="1:8 2:8 3:8", num_highways=1, steps=2,
        min_count=1, length=12, batch_size=4, workers=1, device="cpu", evaluate_batches=0,
    ).fit(sentences, store=tmp_path / "store")  # fmt: skip
    result = sememe.evaluate_senses(model, "english")
    zeroth = next(score for score in result.scores if score.name == "layer 0")
    assert zeroth.nearest == pytest.approx(zeroth.chance) and zeroth.auc == 0.5
    assert result.scores[-2].is_last and result.scores[-2].auc != 0.5
    assert result.scores[-1].role == "place" and result.scores[-1].coverage == 1
    chinese = sememe.evaluate_senses(model, "chinese", language="zh")
    assert chinese.scores[-1].coverage == 1


def places(model, *marked: str) -> np.ndarray:
    """What is expected in the place of the word in [[ ]], one row a sentence."""
    from sememe.evaluation.senses.opening import open_model
    from sememe.progress import SILENT

    speaker = open_model(
        model, layers=[], language="", limit=None, device="cpu", reporter=SILENT
    )  # fmt: skip
    occurrences = []
    for text in marked:
        before, rest = text.split("[[")
        word, after = rest.split("]]")
        end = len(before) + len(word)
        occurrences.append(Occurrence(word, "any", before + word + after, len(before), end))
    (found,) = [own for own in speaker.represent(occurrences) if own.role == "place"]
    return found.vectors_ND


SEEN = "They sat on the [[bank]] and looked at the river."
SWAPPED = "They sat on the [[pitcher]] and looked at the river."
OTHER_LEFT = "They slept on the [[bank]] and looked at the river."
OTHER_RIGHT = "They sat on the [[bank]] and looked at the money."


@pytest.mark.parametrize(("kind", "pieces"), [("bert", "wordpiece"), ("gpt", "bpe")])
def test_what_is_expected_in_a_place_does_not_hang_on_the_word_there(kind, pieces, tokenizers):
    model = (network(tokenizers[pieces], kind), tokenizers[pieces])
    seen, swapped, left, right = places(model, SEEN, SWAPPED, OTHER_LEFT, OTHER_RIGHT)
    np.testing.assert_allclose(seen, swapped, atol=1e-5)
    assert np.abs(seen - left).max() > 1e-3
    assert (np.abs(seen - right).max() > 1e-3) == (kind == "bert")  # GPT reads no further
    (first,) = places(model, "[[Bank]] holidays")
    assert first.any() == (kind == "bert")


def test_both_directions_of_elmo_expect_the_word_in_its_place(tmp_path):
    pytest.importorskip("torch")
    sentences = [one.sentence for one in find_sets("english")[0].occurrences]
    model = sememe.ELMo(
        "tiny", num_cells=24, width=12, filters="1:8 2:8 3:8", num_highways=1, steps=2,
        min_count=1, length=12, batch_size=4, workers=1, device="cpu", evaluate_batches=0,
    ).fit(sentences, store=tmp_path / "store")  # fmt: skip
    seen, swapped, left, right = places(model, SEEN, SWAPPED, OTHER_LEFT, OTHER_RIGHT)
    np.testing.assert_allclose(seen, swapped, atol=1e-6)
    assert np.abs(seen - left).max() > 1e-6 and np.abs(seen - right).max() > 1e-6
    words = ["They", "sat", "on", "the", "bank", "and", "looked", "at", "the", "river"]
    last_WD = model.layers([words])[0][-1]
    np.testing.assert_allclose(seen, last_WD[3, :12] + last_WD[5, 12:], atol=1e-6)


def test_choices_that_cannot_be(tokenizers, banks):
    model = (network(tokenizers["wordpiece"], "bert"), tokenizers["wordpiece"])
    with pytest.raises(OptionError, match="between 0 and 2"):
        sememe.evaluate_senses(model, banks, layers=7)
    with pytest.raises(OptionError, match="not both"):
        sememe.evaluate_senses(model, banks, layers=["all", 1])
    with pytest.raises(OptionError, match="must be a folder"):
        sememe.evaluate_senses(3, banks)


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
