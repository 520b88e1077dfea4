"""How well networks foretell a text: against plain loops, in pieces of any length."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from sememe import GPT, ELMo, ULMFiT
from sememe.examples.word_rows import BEGIN_ID, END_ID, NOTHING, NUM_MARKS, UNKNOWN_ID, word_streams
from sememe.models.gpt.model import _rows, token_log_probs
from sememe.models.language import word_reading
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build

TEXT = [
    "The red cat sat on the old mat . A blue dog ran over the field .",
    "Every dog and every cat likes the warm field . The cat sat .",
    "红色 的 猫 喜欢 牛奶 。",
] * 4
UNSEEN = ["The red zebra sat on the mat . A dog ran .", "猫 喜欢 苹果"]
QUICK: dict[str, Any] = {
    "steps": 3, "batch_size": 4, "length": 12, "min_count": 2, "workers": 1, "device": "cpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def ulmfit() -> ULMFiT:
    return ULMFiT(num_cells=12, width=8, num_layers=2, **QUICK).fit(TEXT)


def plainly(model: Any, sentences: list[list[str]], hidden_of: Any) -> tuple[float, int, int]:
    """The sum of logarithms over one run of sentences, word by word, words and unknown ones."""
    total, num, unknown = 0.0, 0, 0
    words = [one for own in sentences for one in ("<S>", *own, "</S>")]
    marks = {"<S>": BEGIN_ID, "</S>": END_ID}
    for place in range(1, len(words)):
        if words[place] == "<S>":
            continue
        found = model.vocabulary.find(words[place])
        target = marks.get(words[place], UNKNOWN_ID if found < 0 else NUM_MARKS + found)
        with torch.no_grad():
            logits_V = model.network.next_logits(hidden_of(words[:place])[None])[0]
        total += float(logits_V.double().log_softmax(0)[target]) / math.log(10)
        num, unknown = num + 1, unknown + (target == UNKNOWN_ID)
    return total, num, unknown


def cut(texts: list[str], settings: TextSettings) -> list[list[str]]:
    from sememe.tokens.prompts import cut_sentences

    return [own for text in texts for own in cut_sentences(text, settings)]


def test_ulmfit_reads_on_word_by_word(ulmfit):
    def hidden_of(words: list[str]) -> Any:
        marks = {"<S>": BEGIN_ID, "</S>": END_ID}
        ids = [marks[w] if w in marks else int(ulmfit.ids_of([w])[0]) for w in words]
        return ulmfit.network(torch.tensor(ids)[:, None]).dropped_TBE[-1, 0]

    score = ulmfit.evaluate(UNSEEN)
    total, num, unknown = plainly(ulmfit, cut(UNSEEN, ulmfit.text), hidden_of)
    assert (score.num_words, score.num_unknown) == (num, unknown) and unknown > 1
    assert score.log10 == pytest.approx(total, rel=1e-5)
    assert ulmfit.perplexity(UNSEEN) == score.perplexity
    assert ulmfit.score(UNSEEN[1]) < 0.0 == ulmfit.score("")


@pytest.mark.parametrize("kind", ["characters", "words"])
def test_elmo_reads_forwards_word_by_word(kind):
    sizes = {"num_cells": 12, "width": 8, "num_layers": 2, "input": kind}
    model = ELMo(**sizes, **QUICK).fit(TEXT)
    from sememe.models.elmo.encoder import inputs_of

    def hidden_of(words: list[str]) -> Any:
        inputs = inputs_of([words], model.opened.forms)
        vectors = model.network.words(inputs.form).index_select(0, inputs.index_N)[:, None]
        return model.network.reads_forward(vectors)[0][-1][-1, 0]

    score = model.evaluate(UNSEEN)
    total, num, unknown = plainly(model, cut(UNSEEN, model.text), hidden_of)
    assert (score.num_words, score.num_unknown) == (num, unknown)
    assert score.log10 == pytest.approx(total, rel=1e-5)


def test_the_length_of_pieces_changes_nothing(ulmfit, monkeypatch):
    logs = []
    for length in (1, 7, 500):
        monkeypatch.setattr(word_reading, "_LENGTH", length)
        logs.append(ulmfit.evaluate(TEXT).log10)
    assert logs == pytest.approx([logs[0]] * 3, rel=1e-6)


def test_streams_hold_every_sentence_once():
    store = open_or_build(TEXT, TextSettings(), min_count=1, workers=1)
    for num_streams, length in ((1, 5), (3, 4), (8, 100)):
        pieces = list(word_streams(store, num_streams, length))
        joined = [np.concatenate([piece[:-1, b] for piece in pieces]) for b in range(num_streams)]
        for before, after in pairwise(pieces):
            np.testing.assert_array_equal(before[-1], after[0])
        ids = np.concatenate([own[own != NOTHING] for own in joined])
        # The last of a stream is foretold and read no more, if it is the last of a piece.
        assert (ids >= NUM_MARKS).sum() == store.num_tokens
        assert (ids == BEGIN_ID).sum() == len(store.sentence_ends)
        np.testing.assert_array_equal(ids[ids >= NUM_MARKS] - NUM_MARKS, np.asarray(store.ids))


def test_gpt_is_asked_for_every_piece_once():
    model = GPT(
        vocab_size=300, num_layers=1, width=16, num_heads=2, max_length=32,
        steps=3, batch_size=4, length=16, workers=1, device="cpu",
    ).fit(TEXT)  # fmt: skip
    text = " ".join(TEXT[:2])
    ids = [int(one) for one in model.tokenizer.encode_batch([text])[0].ids]
    end = model.tokenizer.end_id
    assert len(ids) > 40

    def plainly(size: int) -> float:
        given, total = [end, *ids, end], 0.0
        for place in range(1, len(given)):
            # Rows begin at 0, then every half of one; a piece is asked in the first that has it.
            start = 0 if place <= size else (place - 1 - size // 2) // (size - size // 2)
            first = start * (size - size // 2) if place > size else 0
            with torch.no_grad():
                hidden = model.network(torch.tensor(given[first:place])[None])[0, -1:]
                logs = model.network.next_logits(hidden)[0].double().log_softmax(0)
            total += float(logs[given[place]])
        return total

    for size in (16, 31):
        (found,) = token_log_probs(model.network, model.tokenizer, [text], length=size)
        assert len(found) == len(ids) + 1
        assert found.sum() == pytest.approx(plainly(size), rel=1e-5)
    score = model.evaluate([text, "", TEXT[2]])
    words = cut([text, TEXT[2]], model.text)
    assert score.num_words == sum(len(own) + 1 for own in words)
    both = token_log_probs(model.network, model.tokenizer, [text, TEXT[2]], length=16)
    assert score.log10 == pytest.approx(sum(map(sum, both)) / math.log(10), rel=1e-5)
    assert model.score(text) == pytest.approx(sum(both[0]) / math.log(10), rel=1e-5)
    assert model.perplexity([text]) > 1


@pytest.mark.parametrize("num", [0, 1, 7, 8, 9, 11, 12, 13, 40])
def test_rows_ask_for_each_piece_once(num):
    ids = np.arange(1, num + 1)
    asked = [target for row in _rows(0, ids, 0, 8) for target in row.targets[row.first :].tolist()]
    assert asked == [*range(1, num + 1), 0]
    for row in _rows(0, ids, 0, 8):
        assert len(row.ids) == len(row.targets) <= 8 and len(row.targets) > row.first
