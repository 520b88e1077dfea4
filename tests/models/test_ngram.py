"""The n-gram model: against plain dicts, sums of one, bounds of memory, files, suggestions."""

from __future__ import annotations

import errno
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import sememe
from sememe.errors import ArtifactError, InputError, OptionError, UnsupportedError, WriteError
from sememe.models.ngram import counting
from sememe.models.ngram.config import NGramConfig
from sememe.models.ngram.model import NGram
from sememe.models.ngram.reference import ReferenceModel
from sememe.tokens.prompts import Prompt, suggest_words

LINES = [
    line.split()
    for line in (
        "the old king and the young queen live in a small castle by the sea",
        "the young king saw the old castle and the sea",
        "the weather by the sea is good",
        "国王 和 女王 在 宫殿 里 吃 早饭",
        "孩子 和 国王 在 宫殿 里 学习",
        "a queen and a king eat breakfast by the sea",
    )
]

pytestmark = pytest.mark.usefixtures("place")


def fitted(sentences: list[list[str]], **options: object) -> NGram:
    return NGram(**{"workers": 1, "validation_share": 0.0, **options}).fit(sentences)


def check_against_reference(model: NGram, sentences: list[list[str]], contexts: list[list[str]]):
    config = model.config
    reference = ReferenceModel(
        sentences, config.order, words=list(model.vocabulary), cuts=config.cuts
    )
    for context in contexts:
        found = model.distribution(context)
        known = [word if word in model.vocabulary else "<unk>" for word in context]
        wanted = [reference.probability(word, ("<s>", *known)) for word in reference.words]
        assert found == pytest.approx(wanted, rel=2e-6)
        assert found.sum() == pytest.approx(1.0, abs=2e-6)
        # Reading word by word takes another way through the tree.
        ids = np.arange(len(found), dtype=np.uint32)
        read = [
            model.trie.advance(model.trie.state(model.ids_of(context)), ids[one : one + 1])[0]
            for one in ids
        ]
        assert 10.0 ** np.array(read) == pytest.approx(wanted, rel=2e-6)


@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_the_arrays_equal_the_dicts(order):
    model = fitted(LINES, order=order, min_count=2)
    assert "weather" not in model.vocabulary
    contexts = [[], ["the"], ["the", "weather"], ["by", "the", "sea"], ["国王", "在", "宫殿", "里"]]
    check_against_reference(model, LINES, contexts)


words = st.sampled_from("abcdefg")
texts = st.lists(st.lists(words, min_size=1, max_size=7), min_size=1, max_size=25)


@settings(max_examples=25, deadline=None)
@given(texts, st.integers(1, 4), st.lists(words, max_size=4), st.sampled_from(["0", "0,1", "0,2"]))
def test_any_text_equals_the_dicts(tmp_path_factory, sentences, order, context, prune):
    prune = "0" if order == 1 else prune
    check_against_reference(fitted(sentences, order=order, prune=prune), sentences, [context])


def test_blocks_on_disk_give_the_same_bits(monkeypatch, place):
    whole = fitted(LINES * 3, order=4)
    monkeypatch.setattr(counting, "_MIN_BLOCK", 16)
    parts = fitted(LINES * 3, order=4, memory="1K", workers=2)
    for name, tensor in whole.tensors.items():
        assert np.array_equal(tensor, parts.tensors[name]), name
    assert not list(place.rglob("*.rows"))


def test_a_full_disk_is_told_while_blocks_are_merged(monkeypatch, place):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(counting, "_MIN_BLOCK", 16)
    monkeypatch.setattr(counting.Growing, "add", refuse)
    with pytest.raises(WriteError):
        fitted(LINES * 3, order=4, memory="1K", workers=2)
    assert not list(place.rglob(".ngrams-*"))


def test_held_out_documents_are_not_counted_and_are_measured():
    sentences = [[f"w{index % 7}", f"v{index % 5}", f"u{index % 3}"] for index in range(300)]
    model = fitted(sentences, order=2, validation_share=0.1)
    from sememe.tokens.store import is_held_out

    is_held = is_held_out(np.arange(300), 0.1)
    assert 10 < is_held.sum() < 60
    own = [line for line, held in zip(sentences, is_held, strict=True) if not held]
    check_against_reference(model, own, [["w1"], ["w1", "v2"]])
    metrics = model.history.last()
    assert metrics["validation_words"] == 4 * int(is_held.sum())
    held = [line for line, held in zip(sentences, is_held, strict=True) if held]
    logs = [model.word_scores(line).sum() for line in held]
    wanted = 10 ** (-sum(logs) / metrics["validation_words"])
    assert metrics["validation_perplexity"] == pytest.approx(wanted, rel=1e-5)


def test_score_and_perplexity_agree():
    model = NGram(order=3, workers=1).fit(["The king saw the sea. The sea is old."] * 20)
    text = "The king is old. The sea!"
    one = model.evaluate([text])
    assert one.num_words == 8
    assert model.score(text) == pytest.approx(one.log10, rel=1e-5)
    assert model.perplexity([text]) == pytest.approx(10 ** (-one.log10 / 8))
    unknown = model.evaluate(["the whale"])
    assert unknown.num_unknown == 1
    assert math.isfinite(unknown.perplexity) and unknown.known_perplexity < unknown.perplexity


def test_suggestions_for_the_next_word_and_for_one_begun():
    model = NGram(order=3, workers=1).fit(
        ["the weather is good. the weather was bad. the week is long"] * 20
    )
    assert model.next_words("the ", count=1)[0].text == "weather"
    assert [one.text for one in model.next_words("The wea", count=9)] == ["weather"]
    two = model.next_words("the we", count=9)
    assert {one.text for one in two} == {"weather", "week"}
    assert sum(one.probability for one in two) == pytest.approx(1.0)
    assert all(one.completes == "we" for one in two)
    # After the end of a sentence a new one begins.
    assert model.next_words("the week is long.", count=1)[0].text == "the"
    assert model.next_words("xyz", count=3) == []
    with pytest.raises(OptionError):
        model.next_words("the ", count=0)


def test_chinese_suggestions_need_no_space():
    pytest.importorskip("rjieba")
    model = NGram(order=3, workers=1).fit(["国王喜欢学习。", "孩子喜欢苹果。"] * 20, language="zh")
    assert model.next_words("国王", count=3)[0].text == "喜欢"
    completed = model.next_words("国王喜", count=3)
    assert completed[0].text == "喜欢" and completed[0].completes == "喜"
    # What is whole may go on with the next word: 喜欢 is followed by both.
    assert {one.text for one in model.next_words("喜欢", count=2)} == {"学习", "苹果"}
    assert model.next_words("国王喜欢学习。", count=2)[0].text in ("国王", "孩子")


def test_words_that_are_the_start_of_a_longer_one():
    lines = [["北京", "很", "大"], ["他", "在", "北京大学"], ["她", "在", "北京"]] * 10
    model = NGram(order=2, workers=1).fit(lines)
    found = suggest_words(
        model.vocabulary, Prompt(["在", "北京"], "大", True), model.distribution, 3
    )
    assert found[0] == ("北京大学", pytest.approx(found[0].probability), "北京大")
    assert found[0].probability > 0.5
    chances = [model.distribution(words) for words in ([], ["在"], ["在", "北京"])]
    ids = model.ids_of(["在", "北京", "大", "北京大学"]).tolist()
    joined = chances[0][ids[0]] * chances[1][ids[3]]
    apart = chances[0][ids[0]] * chances[1][ids[1]] * chances[2][ids[2]]
    assert found[0].probability == pytest.approx(joined / (joined + apart))


def test_generated_text_depends_on_the_seed_alone():
    model = fitted(LINES, order=2)
    first = model.generate("the", max_words=20, seed=3)
    assert first == model.generate("the", max_words=20, seed=3)
    assert any(model.generate("the", seed=seed) != first for seed in range(4, 12))
    assert all(word in model.vocabulary for word in first)


def test_save_load_and_resume(place):
    model = NGram(order=3, workers=1).fit(LINES, out="model")
    opened = NGram.load("model")
    assert opened.next_words("the old ", count=3) == model.next_words("the old ", count=3)
    assert opened.config == model.config and opened.text == model.text
    manifest = json.loads((place / "model" / "sememe.json").read_text())
    assert manifest["kind"] == "ngram" and manifest["ngrams"] == model.trie.sizes
    stamp = (place / "model" / "sememe.json").stat().st_mtime_ns
    NGram(order=3, workers=1).fit(LINES, out="model", resume=True)
    assert (place / "model" / "sememe.json").stat().st_mtime_ns == stamp
    with pytest.raises(UnsupportedError, match="word2vec"):
        _ = opened.vectors
    assert isinstance(sememe.load("model"), NGram)


def test_a_damaged_folder_is_refused(place):
    fitted(LINES, order=2).save("model")
    from sememe.storage.tensors import read_tensors, write_tensors

    path = place / "model" / "model.safetensors"
    whole = {name: np.array(tensor) for name, tensor in read_tensors(path).items()}
    for name, broken in (
        ("starts", whole["starts"][::-1].copy()),
        ("probs", whole["probs"][:-1]),
        ("level_ends", whole["level_ends"] + 1),
    ):
        write_tensors(path, {**whole, name: broken})
        with pytest.raises(ArtifactError):
            NGram.load("model")
    write_tensors(path, {name: tensor for name, tensor in whole.items() if name != "words"})
    with pytest.raises(ArtifactError, match="words"):
        NGram.load("model")


def test_arpa_files_there_and_back(place):
    model = fitted(LINES, order=4, prune="0,0,1")
    for name in ("model.arpa", "model.arpa.gz"):
        model.write_arpa(name)
        read = NGram.load(name)
        assert read.trie.sizes == model.trie.sizes
        for words in LINES:
            assert read.word_scores(words) == pytest.approx(model.word_scores(words), abs=1e-5)


ARPA = "\\data\\\nngram 1=4\nngram 2=2\n\n\\1-grams:\n-1\t<unk>\n-99\t<s>\t-0.3\n-0.5\t</s>\n"
ARPA += "-0.4\ta\t-0.2\n\n\\2-grams:\n-0.1\t<s> a\n-0.6\ta </s>\n\n\\end\\\n"


def test_a_small_arpa_file_is_read_as_it_stands(place):
    Path("good.arpa").write_text("written by hand\n" + ARPA)
    model = NGram.load("good.arpa")
    assert model.word_scores(["a"]) == pytest.approx([-0.1, -0.6])
    assert model.word_scores(["a", "b"]) == pytest.approx([-0.1, -0.2 - 1, -0.5])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("\\data\\", "data", "no line"),
        ("ngram 2=2", "ngram 2=3", "line 15"),
        ("-0.1\t<s> a", "-0.1\t<s> b", "is not among"),
        ("-0.6\ta </s>", "-0.6\t<s> a", "twice"),
        ("-0.6", "zero", "a number was expected"),
        ("-0.6", "nan", "a number was expected"),
        ("-0.2", "inf", "a number was expected"),
        ("ngram 1=4", f"ngram 1={'9' * 5000}", "ngram 1=…"),
        ("ngram 1=4", "ngram 1=1000000000000", "were expected"),
        ("\\end\\\n", "", "end"),
        ("ngram 1=4", "ngram 1=x", "ngram 1=…"),
        ("-0.4\ta\t-0.2", "-0.4\t<s>\t-0.2", "is there already"),
    ],
)
def test_a_broken_arpa_file_is_named_with_its_line(place, old, new, said):
    Path("bad.arpa").write_text(ARPA.replace(old, new))
    with pytest.raises(ArtifactError, match=r"bad\.arpa") as caught:
        NGram.load("bad.arpa")
    assert said in str(caught.value)


def test_an_arpa_file_in_another_encoding_is_named(place):
    content = ARPA.encode().replace(b"\ta", b"\t\xe9").replace(b" a", b" \xe9")
    Path("latin.arpa").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"latin\.arpa.*UTF-8"):
        NGram.load("latin.arpa")


def test_an_ngram_without_its_beginning_is_refused(place):
    text = ARPA.replace("ngram 2=2", "ngram 2=2\nngram 3=1")
    text = text.replace("\\end\\", "\\3-grams:\n-0.1\ta a </s>\n\n\\end\\")
    Path("gap.arpa").write_text(text)
    with pytest.raises(ArtifactError, match="a a </s>"):
        NGram.load("gap.arpa")


@pytest.mark.parametrize("prune", ["1", "0,2,1", "x", "0,0,0,0", "-1", ""])
def test_bad_pruning_is_refused(prune):
    with pytest.raises(OptionError, match="prune"):
        NGramConfig(order=3, prune=prune)


def test_bad_input():
    with pytest.raises(InputError, match="No word occurs"):
        fitted(LINES, min_count=99)
    with pytest.raises(OptionError, match="order"):
        NGram(order=7)
    with pytest.raises(OptionError, match="call fit first"):
        NGram().next_words("a")
    with pytest.raises(OptionError, match="step by step"):
        NGram().fit(LINES, start="vectors.txt")
    with pytest.raises(ArtifactError):
        NGram.load("nowhere")


def test_the_contract_of_a_model_without_vectors(place):
    model = fitted(LINES, order=3)
    model.write_arpa("model.arpa.gz")
    opened = sememe.load("model.arpa.gz")
    text = "the old king"
    assert opened.kind == "ngram" and opened.score(text) == pytest.approx(model.score(text), 1e-5)
    assert model.capabilities == {"next_words", "score", "generate"}
    assert model.describe()["ngrams"] == model.trie.sizes and "plan" not in model.describe()
    for call in (lambda: model.embed([text]), lambda: model.words, lambda: model.encoder(0, 0)):
        with pytest.raises(UnsupportedError, match="word2vec"):
            call()
    places = np.array([[0, 3], [4, 7], [8, 12]])
    (found,) = model.word_log_probs([(text, [places, places[:0]])])
    assert found == pytest.approx(model.word_scores(text.split())[:-1] * math.log(10))
