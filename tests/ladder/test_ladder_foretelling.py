"""Chances of words from pieces: rows of the training's length, pieces over several words."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from sememe.examples.word_rows import NUM_MARKS
from sememe.ladder.foretelling import Document, foretell
from sememe.ladder.reading import Opened, Words
from sememe.tokens.subwords import Encoding

torch = pytest.importorskip("torch")


class Pieces:
    """A tokenizer of given pieces, with ids from 1 to 7; 0 ends a text."""

    end_id = 0

    def __init__(self, pieces: list[str]) -> None:
        ends = np.cumsum([len(piece) for piece in pieces])
        starts = ends - [len(piece) for piece in pieces]
        ids = np.arange(len(pieces)) % 7 + 1
        self.encoding = Encoding(ids, starts, ends, np.ones(len(pieces), bool))

    def encode_batch(self, texts):
        return [self.encoding for _ in texts]


class Even(torch.nn.Module):
    """Every one of so many tokens is equally likely; keeps how long its rows were."""

    def __init__(self, num_tokens: int, seen_length: int) -> None:
        super().__init__()
        self.embedding = SimpleNamespace(tokens=torch.nn.Embedding(num_tokens, 1))
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.num_tokens, self.seen_length = num_tokens, seen_length
        self.config = SimpleNamespace(max_length=512)
        self.rows: list[int] = []

    def forward(self, ids_BT):
        self.rows.append(ids_BT.shape[1])
        return torch.zeros(*ids_BT.shape, 1)

    def next_logits(self, hidden_TD):
        return torch.zeros(len(hidden_TD), self.num_tokens)


def told(pieces, words, known, seen_length=64):
    text = "".join(pieces)
    starts, place = [], 0
    for word in words:
        starts.append(text.index(word, place))
        place = starts[-1] + len(word)
    ends = np.array(starts) + [len(word) for word in words]
    network = Even(8, seen_length)
    opened = Opened("gpt", None, None, None, network, Pieces(pieces))
    document = Document(text, [Words(text, np.array(starts), ends, words)])
    return foretell(opened, [document], frozenset(known)), network


def test_the_chance_of_a_word_is_the_product_over_its_pieces():
    found, _ = told(["ab", "c", " de", "."], ["abc", "de"], ["abc", "de"])
    assert found.num == 2 and found.log == pytest.approx(-3 * math.log(8))


def test_a_piece_over_a_known_and_an_unknown_word_is_shared():
    found, _ = told(["的美国", "人"], ["的", "美国", "人"], ["的"])
    assert found.num == 1 and found.log == pytest.approx(-math.log(8) / 2)
    found, _ = told(["的美国", "人"], ["的", "美国", "人"], ["的", "美国", "人"])
    assert found.log == pytest.approx(-2 * math.log(8))


def test_long_texts_are_read_in_rows_of_the_training():
    pieces = [f" w{index:03}" for index in range(200)]
    words = [piece.strip() for piece in pieces]
    found, network = told(pieces, words, words, seen_length=16)
    assert max(network.rows) == 16 and found.log == pytest.approx(-200 * math.log(8))


def test_elmo_is_asked_for_many_words_at_once(monkeypatch):
    from sememe import ELMo
    from sememe.ladder import foretelling
    from sememe.networks.elmo_reading import next_chances

    sentences = [["the", "ship", "sails"], ["a", "farmer", "sees", "the", "ship"], ["sails"]] * 3
    model = ELMo("tiny", steps=2, device="cpu", min_count=1, max_words=20, workers=1)
    model.fit(sentences * 20)
    known = frozenset({"ship", "sees", "sails"})
    documents = [Document("", [Words("", np.empty(0), np.empty(0), own) for own in sentences])]
    wanted = [
        math.log(next_chances(model.opened, own[:place])[NUM_MARKS + model.vocabulary.id(word)])
        for own in sentences
        for place, word in enumerate(own)
        if word in known
    ]
    opened = Opened("elmo", model, None, None)
    for at_once in (1 << 24, 60):  # all words of a group together, and a few
        monkeypatch.setattr(foretelling, "_SCORES_AT_ONCE", at_once)
        found = foretell(opened, documents, known)
        assert found.num == len(wanted) and found.log == pytest.approx(sum(wanted), rel=1e-4)
    assert foretell(opened, documents, frozenset({"nobody"})).num == 0
