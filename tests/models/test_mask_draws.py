"""Masks of one text, drawn as in pretraining."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import sememe
from sememe.errors import InputError, OptionError
from sememe.models.bert.mask_draws import KEPT, MASKED, REPLACED, VISIBLE, draw_masks

TEXT = "The old king sees a lovely giraffe near the river. It is good."


def test_every_draw_masks_round_of_fifteen_percent(golden: Path) -> None:
    model = sememe.load(golden / "bert")
    draws = draw_masks(model, TEXT, num=1_000)
    ids = model.tokenizer.encode(TEXT).ids
    assert draws.tokens == ["[CLS]", *(model.tokenizer.token(int(one)) for one in ids), "[SEP]"]
    hidden_N = (draws.fates_NT != VISIBLE).sum(1)
    assert (hidden_N == round(0.15 * len(draws.tokens))).all()
    assert not draws.fates_NT[:, [0, -1]].any()  # special tokens are never hidden
    counts, shares = draws.counts(), draws.shares()
    assert sum(counts.values()) == hidden_N.sum()
    assert shares["masked"] == pytest.approx(0.8, abs=0.02)
    assert shares["replaced"] == pytest.approx(0.1, abs=0.02)
    assert shares["kept"] == pytest.approx(0.1, abs=0.02)


def test_what_the_network_sees_agrees_with_the_fates(golden: Path) -> None:
    draws = draw_masks(sememe.load(golden / "bert"), TEXT, num=50)
    for draw, fates in enumerate(draws.fates_NT):
        for token, seen, fate in zip(draws.tokens, draws.seen(draw), fates, strict=True):
            if fate == MASKED:
                assert seen == "[MASK]"
            elif fate == REPLACED:
                assert seen not in (token, "[MASK]")
            else:
                assert fate in (VISIBLE, KEPT) and seen == token


def test_seeds_and_shares(golden: Path) -> None:
    model = sememe.load(golden / "bert")
    one, again, other = (draw_masks(model, TEXT, num=20, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.seen_NT, again.seen_NT)
    assert not np.array_equal(one.seen_NT, other.seen_NT)
    assert draw_masks(model, TEXT, num=20, mask_share=1.0, random_share=0.0).counts()["masked"]
    assert draw_masks(model, TEXT, num=20, rate=0.5).fates_NT.astype(bool).mean() > 0.4
    with pytest.raises(OptionError):
        draw_masks(model, TEXT, rate=3.0)


@pytest.mark.parametrize(
    ("name", "text"), [("bert", TEXT), ("bert-chinese", "早上国王喜欢自然语言。")]
)
def test_whole_words_are_hidden_together(golden: Path, name: str, text: str) -> None:
    model = sememe.load(golden / name)
    draws = draw_masks(model, text, num=100, unit="word")
    words = np.cumsum(draws.is_word_start_T)
    for fates in draws.fates_NT != VISIBLE:
        for word in np.unique(words):
            assert len(set(fates[words == word])) == 1
    apart = draw_masks(model, text, num=100, unit="token").fates_NT != VISIBLE
    assert any(len(set(fates[words == word])) > 1 for fates in apart for word in np.unique(words))


def test_words_of_one_token_and_bad_texts(golden: Path, tmp_path: Path) -> None:
    model = sememe.load(golden / "bert")
    assert draw_masks(model, "the", num=3, unit="word").counts()["masked"] >= 0
    with pytest.raises(InputError):
        draw_masks(model, " \n ")
    with pytest.raises(InputError, match="tokens"):
        draw_masks(model, "the " * 600)
    file = tmp_path / "secret.txt"
    file.write_text("hidden words", "utf-8")
    assert "hidden" not in draw_masks(model, str(file)).tokens  # a path is a text like any other
