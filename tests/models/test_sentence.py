"""Training sentence encoders: losses against their reference, batches, gradients, whole runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from presets import bert_config
from sememe.errors import InputError, OptionError
from sememe.examples.pair_batches import Side
from sememe.examples.sentence_rows import SentenceRow, SentenceRows
from sememe.metrics.word_scores import spearman
from sememe.models.bert.model import BERT
from sememe.models.bert.network import BERTNetwork
from sememe.models.sentence import losses, reference, training
from sememe.models.sentence.batches import (
    Examples,
    SentenceBatches,
    encode_rows,
    without_words,
)
from sememe.models.sentence.config import SentenceConfig
from sememe.models.sentence.denoising import Decoder, next_tokens
from sememe.models.sentence.encoders import open_encoder, sequences_of
from sememe.models.sentence.model import SentenceModel
from sememe.models.sentence.objective import SentenceObjective
from sememe.models.sentence.training import with_negatives
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

WIDTH = 16
TEXTS = [
    "the old cat sat on the mat", "a dog ran to the warm house", "the king sees a horse",
    "a bird sings in the tree", "the queen reads a long letter", "fish swim in the cold river",
    "snow falls on the high hill", "a child plays with the red ball", "猫坐在垫子上", "狗跑进房子",
]  # fmt: skip
ANIMALS = ("king", "cat", "river", "horse", "queen")
SMALL = {"batch_size": 4, "length": 16, "device": "cpu", "workers": 1, "steps": 6, "seed": 3}


@pytest.fixture(scope="module")
def bert() -> BERT:
    tokenizer = SubwordTokenizer.train(TEXTS * 9, kind="wordpiece", vocab_size=220)
    sizes = bert_config(
        "tiny",
        vocab_size=tokenizer.vocab_size,
        max_length=32,
        width=WIDTH,
        num_heads=2,
        dropout=0.0,
        attention_dropout=0.0,
    )
    return BERT.around(BERTNetwork(sizes, seed=5).eval(), tokenizer)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(" ".join(f"{text.capitalize()}." for text in TEXTS), encoding="utf-8")
    return path


def some_vectors(num: int, seed: int = 1) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return losses.unit(torch.randn(num, 6, generator=generator))


# ---- losses ---------------------------------------------------------------------------------


def test_losses_equal_their_references():
    first, second, scores = (
        some_vectors(5),
        some_vectors(5, 2),
        torch.tensor([0.1, 0.9, 0.5, 0.5, 0]),
    )
    hidden = torch.zeros(5, 8, dtype=torch.bool)
    hidden[0, 3] = hidden[2, 6] = True
    candidates = torch.cat([second, some_vectors(3, 4)])
    plain = [x.numpy().astype(np.float64) for x in (first, candidates)]
    found, num_right = losses.ranking_loss(first, candidates, hidden, 0.05)
    assert float(found) == pytest.approx(
        reference.ranking_loss(*plain, hidden.numpy(), 0.05), rel=1e-5
    )
    nearest = np.where(hidden.numpy(), -np.inf, plain[0] @ plain[1].T).argmax(1)
    assert int(num_right) == int((nearest == np.arange(5)).sum())
    pair = first.numpy(), second.numpy(), scores.numpy()
    assert float(losses.cosent_loss(first, second, scores, 0.05)) == pytest.approx(
        reference.cosent_loss(*pair, 0.05), rel=1e-5
    )
    assert float(losses.cosine_loss(first, second, scores)) == pytest.approx(
        reference.cosine_loss(*pair), rel=1e-5
    )


@pytest.mark.parametrize("name", ["ranking", "cosent", "cosine"])
def test_gradients_are_those_of_small_differences(name):
    first, second = some_vectors(4).double().requires_grad_(), some_vectors(4, 2).double()
    scores, hidden = torch.tensor([0.1, 0.9, 0.5, 0.2]), torch.eye(4).roll(1, 0) > 0

    def loss(x: Any) -> Any:
        if name == "ranking":
            return losses.ranking_loss(x, second, hidden, 0.3)[0]
        more = (0.3,) if name == "cosent" else ()
        return getattr(losses, f"{name}_loss")(x, second, scores.double(), *more)

    assert torch.autograd.gradcheck(loss, (first,))


def test_equal_texts_are_no_negatives():
    anchors, candidates = ["a", "b", "a", "c"], ["A", "B", "X", "A", "a", "B"]
    numbers = {text: index for index, text in enumerate(sorted({*anchors, *candidates}))}
    found = losses.same_texts(
        *(torch.tensor([numbers[x] for x in xs]) for xs in (anchors, candidates))
    )
    expected = reference.same_texts(anchors, candidates)
    assert np.array_equal(found.numpy(), expected)
    assert expected[0].tolist() == [False, False, True, True, True, False]
    assert expected[1].tolist() == [False, False, False, False, False, True]


# ---- batches --------------------------------------------------------------------------------


def batches(bert: BERT, kind: str = "pairs", **options: Any) -> tuple[Any, SentenceBatches]:
    config = SentenceConfig(**{**SMALL, **options})
    trainable = open_encoder(bert, config)
    num = {"texts": 1, "pairs": 2, "triplets": 3, "scored": 2}[kind]
    rows = [
        SentenceRow(tuple(TEXTS[(index + k) % len(TEXTS)] for k in range(num)), index / 10)
        for index in range(len(TEXTS))
    ]
    examples, _ = encode_rows(SentenceRows(kind, rows), trainable, {})
    return trainable, SentenceBatches(examples, batch_size=4, seed=3)


def test_a_batch_is_a_function_of_the_step(bert):
    _, first = batches(bert)
    _, second = batches(bert)
    second.batch(5)
    for step in range(4):
        for one, two in zip(first.batch(step).columns, second.batch(step).columns, strict=True):
            assert all(np.array_equal(x, y) for x, y in zip(one, two, strict=True))
    assert first.batches_per_epoch == 2


def test_words_are_deleted_as_a_whole():
    is_start = np.array([True, True, True, False, True, True])
    ids = np.array([0, 2, 3, 4, 5, 1])
    kept = np.array([0, 0, 1, 1, 0, 0], bool)
    assert without_words(ids, kept, is_start).tolist() == [0, 4, 1]
    kept = np.array([0, 1, 0, 0, 0, 0], bool)
    assert without_words(ids, kept, is_start).tolist() == [0, 2, 3, 1]
    assert without_words(ids, np.zeros(6, bool), is_start).tolist() == [0, 2, 3, 1]


def test_about_the_given_fraction_of_words_is_deleted(bert):
    trainable, found = batches(bert, "texts")
    found = SentenceBatches(
        found.examples,
        batch_size=10,
        seed=3,
        is_word_start_V=trainable.is_word_start_V,
        deletion=0.6,
    )
    shares = []
    for step in range(60):
        noisy, whole = found.batch(step).columns
        shares.append(sum(len(x) - 2 for x in noisy) / sum(len(x) - 2 for x in whole))
    assert 0.35 < np.mean(shares) < 0.5  # one word always stays


# ---- the objective --------------------------------------------------------------------------


def gradients(objective: Any, prepared: Any) -> tuple[float, dict[str, Any]]:
    objective.zero_grad()
    torch.manual_seed(7)
    counts = {"rows": torch.tensor(4.0), "predicted": torch.tensor(9.0)}
    loss, _ = objective(prepared, counts)
    loss.backward()
    return float(loss.detach()), {
        name: own.grad.clone() for name, own in objective.named_parameters() if own.grad is not None
    }


@pytest.mark.parametrize("kind", ["pairs", "triplets", "scored"])
def test_cached_gradients_are_those_of_the_whole_batch(bert, kind):
    trainable, source = batches(bert, kind, dropout=0.0, matryoshka="8")
    objective = SentenceObjective(
        trainable, SentenceConfig(**SMALL, dropout=0.0, matryoshka="8"), kind=kind
    )
    objective.train()
    batch = source.batch(0)
    whole = gradients(objective, objective.prepare(batch))
    objective.config = replace(objective.config, chunk_size=3)
    prepared = objective.prepare(batch)
    assert len(prepared.chunks) > 1
    cached = gradients(objective, prepared)
    assert cached[0] == pytest.approx(whole[0], rel=1e-5)
    assert cached[1].keys() == whole[1].keys() and len(cached[1]) > 10
    for name, own in whole[1].items():
        torch.testing.assert_close(cached[1][name], own, rtol=1e-4, atol=1e-5)


def test_cached_gradients_repeat_the_dropout_of_the_first_pass(bert, monkeypatch):
    """To the bit: chunks with all activations kept, and chunks computed again."""
    trainable, source = batches(bert, dropout=0.3)
    objective = SentenceObjective(trainable, SentenceConfig(**SMALL, dropout=0.3, chunk_size=3))
    objective.train()
    prepared = objective.prepare(source.batch(0))
    cached = gradients(objective, prepared)
    monkeypatch.setattr(
        "sememe.models.sentence.objective.checkpoint", lambda call, x, use_reentrant: call(x)
    )
    kept = gradients(objective, prepared)
    assert cached[0] == kept[0]
    assert all(torch.equal(cached[1][name], own) for name, own in kept[1].items())


def test_dropout_is_on_even_if_the_network_had_none(bert):
    assert bert.network.config.dropout == 0
    trainable, source = batches(bert, "texts", dropout=0.1)
    objective = SentenceObjective(trainable, SentenceConfig(**SMALL)).train()
    (chunk,) = objective.prepare(source.batch(0)).chunks
    first, second = objective.encode(chunk)[:4], objective.encode(chunk)[4:]
    assert not torch.allclose(first, second)
    objective.eval()
    vectors = objective.encode(chunk)
    torch.testing.assert_close(vectors[:4], vectors[4:])
    assert bert.network.config.dropout == 0  # the model itself is not changed


def test_the_decoder_sees_earlier_tokens_and_shares_the_weights(bert):
    trainable = open_encoder(bert, SentenceConfig(**SMALL))
    network = trainable.encoder.network
    decoder = Decoder(network, seed=1).eval()
    own = {id(x) for x in decoder.parameters()} - {id(x) for x in network.parameters()}
    assert len(own) == len(list(network.stack)) * 6  # value, output and norm, each with a bias
    vectors = torch.randn(2, WIDTH, generator=torch.Generator().manual_seed(1))
    one, two = (
        sequences_of([np.array([2, 7, 8, last, 3]), np.array([2, 9, 3])]) for last in (9, 10)
    )
    hidden: list[Any] = []
    network.masked_logits, plain = (lambda x: hidden.append(x) or plain(x)), network.masked_logits
    targets = next_tokens(one)
    assert targets.tolist() == [7, 8, 9, 3, 9, 3]
    for inputs in (one, two):
        decoder(vectors, inputs, targets)
    torch.testing.assert_close(hidden[0][:3], hidden[1][:3])
    assert not torch.allclose(hidden[0][3], hidden[1][3])
    decoder(vectors.flip(0), one, targets)
    assert not torch.allclose(hidden[0], hidden[2])  # it reads the vector


# ---- hard negatives -------------------------------------------------------------------------


def test_hard_negatives_are_near_but_not_right(bert):
    trainable, source = batches(bert)
    columns = source.examples.columns
    # The first text occurs twice, with two right texts.
    doubled = tuple(Side([*(side[i] for i in range(10)), extra]) for side, extra in zip(
        columns, (columns[0][0], columns[1][4]), strict=True))  # fmt: skip
    objective = SentenceObjective(trainable, SentenceConfig(**SMALL))
    notes: list[str] = []
    found = with_negatives(Examples("pairs", doubled), objective, 2, notes.append)
    assert found.kind == "triplets" and len(found.columns) == 4 and "hard negatives" in notes[0]
    right = {bytes(doubled[1][0]), bytes(doubled[1][4])}
    for column in found.columns[2:]:
        for row in (0, 10):
            assert bytes(column[row]) not in right
        for row in range(11):
            assert bytes(column[row]) != bytes(doubled[1][row]) or not len(column[row])


# ---- whole runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["simcse", "neighbors", "tsdae"])
def test_a_corpus_teaches(bert, corpus, objective):
    model = SentenceModel(
        bert, objective=objective, **{**SMALL, "steps": 60, "learning_rate": 3e-3}
    )
    model.fit(corpus, dev=False)
    first, last = model.history[0]["loss"], model.history.last()["loss"]
    assert last < 0.9 * first
    assert model.config.objective == objective and model.base is not bert


@pytest.mark.parametrize("pool", ["mean", "cls", "max"])
def test_the_folder_opens_in_sentence_transformers(bert, corpus, tmp_path, pool):
    peer = pytest.importorskip("sentence_transformers")
    options = {**SMALL, "pool": pool, "query_prompt": "query: ", "document_prompt": "passage: "}
    ours = SentenceModel(bert, objective="neighbors", **options)
    ours.fit(corpus, out=tmp_path / "out")
    theirs = peer.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    np.testing.assert_allclose(theirs.encode(TEXTS), ours.embed(TEXTS), atol=1e-5)
    for role in ("query", "document"):
        found = theirs.encode(TEXTS, prompt_name=role)
        np.testing.assert_allclose(found, ours.embed(TEXTS, role=role), atol=1e-5)
    assert ours.prompt("query") == "query: " and sememe.load(tmp_path / "out").own_pool == pool
    # It can be trained again.
    again = SentenceModel(tmp_path / "out", **SMALL).fit(pairs=[(x, x + " again") for x in TEXTS])
    assert again.prompts == ours.prompts and again.own_pool == pool


def test_scored_pairs_and_their_correlation(bert):
    rows = [(TEXTS[i], TEXTS[j], 7 - abs(i - j)) for i in range(8) for j in range(8)]
    options = {**SMALL, "steps": 80, "learning_rate": 3e-3, "batch_size": 16}
    for loss in ("cosent", "cosine"):
        model = SentenceModel(bert, score_loss=loss, **options).fit(pairs=rows, dev=rows)
        found = [one for one in model.history if "validation_spearman" in one]
        assert found[-1]["validation_spearman"] > 0.6
        base = SentenceModel(bert).embed([one for one, _, _ in rows])
        cosines = (base * SentenceModel(bert).embed([two for _, two, _ in rows])).sum(1)
        assert spearman(cosines, [score for _, _, score in rows]) < 0.5


def test_matryoshka_trains_the_first_dimensions(bert, tmp_path):
    rows = [(text, f"{text} and more") for text in TEXTS]
    model = SentenceModel(bert, matryoshka="4,8", **SMALL).fit(pairs=rows)
    short = model.truncated(4)
    vectors = model.embed(TEXTS)[:, :4]
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    np.testing.assert_allclose(short.embed(TEXTS), vectors, atol=1e-6)
    short.save(tmp_path / "short")
    np.testing.assert_allclose(sememe.load(tmp_path / "short").embed(TEXTS), vectors, atol=1e-6)
    with pytest.raises(OptionError):
        model.truncated(99)


def test_the_built_in_corpus_gives_summaries_and_bodies(bert, monkeypatch):
    rows = [type("Row", (), {"text": text, "second": f"{text} at length"}) for text in TEXTS]
    monkeypatch.setattr("sememe.models.sentence.training.docstring_pairs", lambda split: rows)
    model = SentenceModel(bert, **SMALL).fit()
    assert model.config.objective == "titles" and model.data["examples"] == len(TEXTS)
    drawn: list[list[str]] = []
    monkeypatch.setattr(training, "_encoded", lambda rows, *_: drawn.append(rows.rows) or 1 / 0)
    for seed in (1, 1, 2):
        with pytest.raises(ZeroDivisionError):
            SentenceModel(bert, **SMALL | {"seed": seed, "max_examples": 5}).fit()
    assert len(drawn[0]) == 5 and drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("options", "data", "word"),
    [
        ({"objective": "simcse", "dropout": 0.0}, {}, "dropout"),
        ({"matryoshka": "4;8"}, {}, "matryoshka"),
        ({"objective": "simcse"}, {"pairs": [("a", "b")] * 9}, "objective"),
        ({"hard_negatives": 1, "objective": "simcse"}, {"corpus": TEXTS}, "hard_negatives"),
        ({}, {"corpus": TEXTS, "pairs": [("a", "b")]}, "corpus and pairs"),
        ({"length": 99}, {"corpus": TEXTS}, "length"),
        ({}, {"pairs": [("a cat", "a dog")]}, "One row"),
        ({}, {"pairs": [("a cat", "a dog", n) for n in range(9)], "dev": [("a cat", "a dog")] * 9},
         "dev rows"),
        ({}, {"pairs": [(text, text, 1) for text in TEXTS]}, "All scores are 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(bert, options, data, word):
    with pytest.raises((OptionError, InputError), match=word):
        SentenceModel(bert, **{**SMALL, **options}).fit(**data)


def test_a_finished_run_that_is_resumed_equals_the_saved_one(bert, tmp_path):
    raw = SentenceModel(bert, normalize=False, prompts={"own": "a cat: "}, default_prompt="own")
    raw.save(tmp_path / "raw")
    rows = [(text, f"{text} and more") for text in TEXTS]
    options = {**SMALL, "normalize": True}
    first = SentenceModel(tmp_path / "raw", **options).fit(pairs=rows, out=tmp_path / "out")
    again = SentenceModel(tmp_path / "raw", **options)
    again.fit(pairs=rows, out=tmp_path / "out", resume=True)
    assert (again.is_normalized, again.default_prompt) == (first.is_normalized, "own")
    np.testing.assert_allclose(again.embed(TEXTS), first.embed(TEXTS), atol=1e-6)


def test_static_vectors_have_mean_pooling_only(golden):
    for pool in ("max", ("mean", "max")):
        with pytest.raises(OptionError, match="mean"):
            SentenceModel(golden / "sentence-static", pool=pool)


def test_a_gpt_has_no_cls_and_no_tsdae(golden):
    for options in ({"pool": "cls", "objective": "simcse"}, {"objective": "tsdae"}):
        with pytest.raises(OptionError, match=r"CLS|tsdae"):
            SentenceModel(golden / "gpt", **SMALL, **options).fit(TEXTS)


@pytest.mark.parametrize(
    "base", ["gpt", "elmo", "ulmfit", "word2vec-skipgram-negative", "sentence-static", "classify"]
)
def test_every_network_can_be_trained(golden, base, tmp_path):
    model = SentenceModel(golden / base, objective="neighbors", **SMALL)
    before = model.embed(["the old king", "a cat"])
    sentences = [f"The old {a} sees a {b}." for a in ANIMALS for b in ANIMALS if a != b]
    model.fit([" ".join(sentences)], out=tmp_path / "out")
    opened = sememe.load(tmp_path / "out")
    found = model.embed(["the old king", "a cat", ""])
    np.testing.assert_allclose(opened.embed(["the old king", "a cat", ""]), found, atol=1e-6)
    assert opened.kind == "sentence" and opened.describe()["dim"] == found.shape[1]
    assert before.shape[1] != found.shape[1] or not np.allclose(before, found[:2])
    np.testing.assert_allclose(np.linalg.norm(found[:2], axis=1), 1, atol=1e-5)
