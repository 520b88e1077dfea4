"""Meanings of words as networks keep them apart: layers at the word, what is expected there."""

from __future__ import annotations

import numpy as np
import pytest

import sememe
from sememe.errors import OptionError
from sememe.evaluation.senses import Occurrence, SenseSet, find_sets
from sememe.evaluation.senses.evaluating import represent
from sememe.progress import SILENT


@pytest.fixture(scope="module")
def tokenizers():
    pytest.importorskip("torch")
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    texts = [one.sentence for own in find_sets(["english", "chinese"]) for one in own.occurrences]
    sizes = {"wordpiece": 2_000, "bpe": 600}
    return {
        kind: SubwordTokenizer.train(texts, kind=kind, vocab_size=size, min_frequency=1)  # type: ignore[arg-type]
        for kind, size in sizes.items()
    }


def model_of(tokenizer, kind: str):
    """A BERT or GPT of random weights."""
    import torch

    from presets import bert_config, gpt_config
    from sememe.models.bert.network import BERTNetwork
    from sememe.models.gpt.network import GPTNetwork

    torch.manual_seed(0)
    sizes = {"vocab_size": tokenizer.vocab_size, "max_length": 96, "width": 32}
    if kind == "bert":
        return sememe.BERT.around(BERTNetwork(bert_config("tiny", **sizes)).eval(), tokenizer)
    return sememe.GPT.around(GPTNetwork(gpt_config("tiny", **sizes)).eval(), tokenizer)


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
    model = model_of(tokenizers[pieces], kind)
    found = represent(model, MIXED.occurrences, [], SILENT)
    assert [one.name for one in found[2:-1]] == ["layer 0", "layer 1", "layer 2"]
    assert [one.is_last for one in found] == [False] * 4 + [True, False]
    for layer in range(3):
        for index, one in enumerate(MIXED.occurrences):
            assert one.sentence[one.start : one.end] == one.word
            spans = [np.array([[one.start, one.end]])]
            (alone,) = model.embed_spans([one.sentence], spans, layers=layer)
            np.testing.assert_allclose(
                found[2 + layer].vectors_ND[index], alone.vectors_WD[0], atol=1e-5
            )


def test_a_network_reads_the_context_and_its_embedding_does_not(tokenizers):
    model = model_of(tokenizers["wordpiece"], "bert")
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
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    tokenizer = SubwordTokenizer.train(["only english here"] * 3, kind="wordpiece", vocab_size=130)
    result = sememe.evaluate_senses(model_of(tokenizer, "bert"), "chinese")
    assert {score.coverage for score in result.scores if score.role == "layer"} == {0}


@pytest.fixture(scope="module")
def elmo(tmp_path_factory) -> sememe.ELMo:
    pytest.importorskip("torch")
    sentences = [one.sentence for one in find_sets("english")[0].occurrences]
    return sememe.ELMo(
        "tiny", num_cells=24, width=12, filters="1:8 2:8 3:8", num_highways=1, steps=2,
        min_count=1, length=12, batch_size=4, workers=1, device="cpu", evaluate_batches=0,
    ).fit(sentences, store=tmp_path_factory.mktemp("elmo") / "store")  # fmt: skip


def test_elmo_reads_words_in_context(elmo):
    result = sememe.evaluate_senses(elmo, "english")
    zeroth = next(score for score in result.scores if score.name == "layer 0")
    assert zeroth.nearest == pytest.approx(zeroth.chance) and zeroth.auc == 0.5
    assert result.scores[-2].is_last and result.scores[-2].auc != 0.5
    assert result.scores[-1].role == "place" and result.scores[-1].coverage == 1
    chinese = sememe.evaluate_senses(elmo, "chinese", language="zh")
    assert chinese.scores[-1].coverage == 1


@pytest.fixture(scope="module")
def ulmfit(tmp_path_factory) -> sememe.ULMFiT:
    pytest.importorskip("torch")
    sentences = [one.sentence for one in find_sets("english")[0].occurrences]
    return sememe.ULMFiT(
        "tiny", num_cells=24, width=12, steps=2, min_count=1, length=12, batch_size=4, workers=1,
        device="cpu", evaluate_batches=0,
    ).fit(sentences, store=tmp_path_factory.mktemp("ulmfit") / "store")  # fmt: skip


def test_ulmfit_reads_words_in_context_in_memory_and_from_its_folder(ulmfit, tmp_path):
    result = sememe.evaluate_senses(ulmfit, "english")
    assert result.kind == "ulmfit"
    names = [score.name for score in result.scores][2:-1]
    assert names == [f"layer {number}" for number in range(len(ulmfit.layer_widths))]
    zeroth = result.scores[2]
    assert zeroth.nearest == pytest.approx(zeroth.chance) and zeroth.auc == 0.5
    assert result.scores[-2].is_last and result.scores[-2].auc != 0.5
    assert result.scores[-1].role == "place" and result.scores[-1].coverage == 1
    ulmfit.save(tmp_path / "ulmfit")
    again = sememe.evaluate_senses(tmp_path / "ulmfit", "english", device="cpu")
    for own, other in zip(result.scores, again.scores, strict=True):
        assert other.nearest == pytest.approx(own.nearest)


def places(model, *marked: str) -> np.ndarray:
    """What is expected in the place of the word in [[ ]], one row a sentence."""
    occurrences = []
    for text in marked:
        before, rest = text.split("[[")
        word, after = rest.split("]]")
        end = len(before) + len(word)
        occurrences.append(Occurrence(word, "any", before + word + after, len(before), end))
    (found,) = [own for own in represent(model, occurrences, [], SILENT) if own.role == "place"]
    return found.vectors_ND


SEEN = "They sat on the [[bank]] and looked at the river."
SWAPPED = "They sat on the [[pitcher]] and looked at the river."
OTHER_LEFT = "They slept on the [[bank]] and looked at the river."
OTHER_RIGHT = "They sat on the [[bank]] and looked at the money."


@pytest.mark.parametrize(("kind", "pieces"), [("bert", "wordpiece"), ("gpt", "bpe")])
def test_what_is_expected_in_a_place_does_not_hang_on_the_word_there(kind, pieces, tokenizers):
    model = model_of(tokenizers[pieces], kind)
    seen, swapped, left, right = places(model, SEEN, SWAPPED, OTHER_LEFT, OTHER_RIGHT)
    np.testing.assert_allclose(seen, swapped, atol=1e-5)
    assert np.abs(seen - left).max() > 1e-3
    assert (np.abs(seen - right).max() > 1e-3) == (kind == "bert")  # GPT reads no further
    (first,) = places(model, "[[Bank]] holidays")
    assert first.any() == (kind == "bert")


def test_both_directions_of_elmo_expect_the_word_in_its_place(elmo):
    seen, swapped, left, right = places(elmo, SEEN, SWAPPED, OTHER_LEFT, OTHER_RIGHT)
    np.testing.assert_allclose(seen, swapped, atol=1e-6)
    assert np.abs(seen - left).max() > 1e-6 and np.abs(seen - right).max() > 1e-6
    words = ["They", "sat", "on", "the", "bank", "and", "looked", "at", "the", "river"]
    last_WD = elmo.layers([words])[0][-1]
    np.testing.assert_allclose(seen, last_WD[3, :12] + last_WD[5, 12:], atol=1e-6)


def test_choices_that_cannot_be(tokenizers):
    model = model_of(tokenizers["wordpiece"], "bert")
    with pytest.raises(OptionError, match="between 0 and 2"):
        sememe.evaluate_senses(model, "english", layers=7)
    with pytest.raises(OptionError, match="not both"):
        sememe.evaluate_senses(model, "english", layers=["all", 1])
    with pytest.raises(OptionError, match="not int"):
        sememe.evaluate_senses(3, "english")
