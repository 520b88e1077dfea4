"""Words from GPT's pieces: whole or completed, with the chances of all ways to write them."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from sememe.errors import OptionError
from sememe.models.gpt import next_words
from sememe.models.gpt.next_words import TokenSpellings, WordSearch, _split, suggest

TEXTS = ["The dog ran across the street. The weather was good in the street.",
         "今天我们学习语言模型。我们喜欢学习自然语言处理。"] * 40  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMEME_CACHE", str(tmp_path_factory.mktemp("cache")))
        gpt = sememe.GPT(
            "tiny", width=32, num_layers=1, num_heads=2, vocab_size=400, steps=120, length=32,
            batch_size=8, learning_rate=1e-2, workers=1, evaluate_batches=0,
        )  # fmt: skip
        return gpt.fit(TEXTS)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("the weath", ("the", " weath")),
        ("the ", ("the", " ")),
        ("the, ", ("the,", " ")),
        ("the,", ("the,", "")),
        ("", ("", "")),
        ("  ", ("", "")),
        ("don't", ("", "don't")),
        ("line\nnew", ("line\n", "new")),
    ],
)
def test_the_last_word_is_taken_back(text, parts):
    assert _split(text) == parts


def test_every_piece_writes_its_bytes(bpe):
    pieces = TokenSpellings(bpe)
    for text in ("The cat sat, again", "语言模型 and\nmore"):
        ids = bpe.encode(text).ids
        assert b"".join(pieces.written[one] for one in ids).decode() == text
    assert not pieces.written[bpe.end_id]
    spelled = {pieces.written[one] for one in pieces.spelling(b" the")}
    assert {b" ", b" t", b" the"} & spelled
    assert all(b" the".startswith(one) or one.startswith(b" the") for one in spelled)


def test_the_wordpieces_of_another_tokenizer_write_words_too(wordpiece):
    pieces = TokenSpellings(wordpiece)
    ids = wordpiece.encode("the strawberries 猫").ids
    assert b"".join(pieces.written[one] for one in ids).decode() == " the strawberries猫"


def ways(pieces: TokenSpellings, word: bytes) -> list[list[int]]:
    """Every sequence of tokens that writes the bytes."""
    if not word:
        return [[]]
    found = []
    for size in range(1, len(word) + 1):
        for token in pieces.ids_of.get(word[:size], ()):
            found += [[token, *rest] for rest in ways(pieces, word[size:])]
    return found


def exact_chance(model, pieces: TokenSpellings, given: list[int], word: bytes) -> float:
    """The chance that the word is written in any way and then ends."""
    total = 0.0
    for tokens in ways(pieces, word):
        with torch.no_grad():
            hidden = model.network(torch.tensor([[*given, *tokens]]))
            logits = model.network.next_logits(hidden)[0].float().log_softmax(-1)
        logits = logits[:, : model.tokenizer.vocab_size]
        places = range(len(given) - 1, len(given) - 1 + len(tokens))
        log = sum(float(logits[at, one]) for at, one in zip(places, tokens, strict=True))
        total += math.exp(log + float(logits[-1, ~pieces.goes_on_V].logsumexp(0)))
    return total


def test_chances_add_up_all_ways_to_write_a_word(model, monkeypatch):
    monkeypatch.setattr(next_words, "_BEAM", 200)
    pieces = TokenSpellings(model.tokenizer)
    search = WordSearch(model.network, model.tokenizer, pieces, "The dog ran across", b" the")
    found: dict[bytes, float] = {}
    for hypothesis, chance in search.words():
        found[hypothesis.written] = found.get(hypothesis.written, 0.0) + chance
        if search.highest < 1e-6:
            break
    wanted = exact_chance(model, pieces, search.given, b" the")
    assert found[b" the"] == pytest.approx(wanted, rel=1e-3)
    assert sum(found.values()) <= search.begun_chance * (1 + 1e-4)


def test_whole_words_and_completions(model):
    assert model.next_words("The dog ran across ", count=1)[0].text == "the"
    completed = model.next_words("The dog ran across the str", count=3)
    assert completed[0].text == "street" and completed[0].completes == "str"
    assert all(one.text.startswith("str") and one.text != "str" for one in completed)
    assert model.next_words("The weath", count=1)[0].text == "weather"
    assert model.next_words("", count=2)
    several = model.next_words("The ", count=4)
    chances = [one.probability for one in several]
    assert chances == sorted(chances, reverse=True) and sum(chances) <= 1 + 1e-6


def test_chinese_words_are_whole(model):
    pytest.importorskip("rjieba")
    assert model.next_words("今天我们", count=1)[0].text == "学习"
    completed = model.next_words("今天我们学", count=1)[0]
    assert completed.text == "学习" and completed.completes == "学"


def test_a_long_prompt_and_a_bad_count(model):
    assert model.next_words("The street " * 300, count=1)
    with pytest.raises(OptionError):
        suggest(model.network, model.tokenizer, "The ", count=0)
    with pytest.raises(OptionError, match="call fit first"):
        sememe.GPT().next_words("The ")
