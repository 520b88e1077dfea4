"""Folders of sentence-transformers and model2vec: both programs give the same vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
peer = pytest.importorskip("sentence_transformers")
model2vec = pytest.importorskip("model2vec")
pytest.importorskip("tokenizers")

from sentence_transformers.base.modules import Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, StaticEmbedding
from tokenizers import Tokenizer

import sememe
from presets import bert_config
from sememe.errors import ArtifactError, OptionError, UnsupportedError
from sememe.models.bert.model import BERT
from sememe.models.bert.network import BERTNetwork
from sememe.models.sentence.model import SentenceModel
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

WIDTH = 16
TEXTS = ["The old cat sat on the mat.", "", "猫坐在垫子上。", "A dog", "[MASK] and [SEP] are text"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("bert") / "bert"
    corpus = [*TEXTS, "the dog ran to the warm mat", "a cat ran"] * 9
    tokenizer = SubwordTokenizer.train(corpus, kind="wordpiece", vocab_size=200)
    sizes = bert_config("tiny", vocab_size=tokenizer.vocab_size, max_length=32, width=WIDTH)
    network = BERTNetwork(sizes, seed=5)
    BERT.around(network.eval(), tokenizer).save(folder)
    return folder


def encoder(bert: Path, folder: Path, pool: Any = "mean", *more: Any, **options: Any) -> Any:
    base = Transformer(str(bert))
    parts = [base, Pooling(base.get_embedding_dimension(), pooling_mode=pool), *more]
    made = peer.SentenceTransformer(modules=parts, device="cpu", **options)
    made.save(str(folder))
    return made


@pytest.mark.parametrize("pool", ["mean", "cls", "max", ("cls", "max", "mean"), ("mean", "cls")])
@pytest.mark.parametrize("is_normalized", [False, True])
def test_pooling(pool, is_normalized, bert, tmp_path):
    theirs = encoder(bert, tmp_path / "st", pool, *([Normalize()] if is_normalized else []))
    ours = sememe.load(tmp_path / "st")
    assert ours.kind == "sentence" and ours.is_normalized == is_normalized
    np.testing.assert_allclose(ours.embed(TEXTS), theirs.encode(TEXTS), atol=1e-5)
    ours.save(tmp_path / "ours")
    again = peer.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS), theirs.encode(TEXTS), atol=1e-6)
    assert np.array_equal(sememe.load(tmp_path / "ours").embed(TEXTS), ours.embed(TEXTS))


@pytest.mark.parametrize("name", ["Tanh", "ReLU", "GELU", "Sigmoid", "Identity"])
def test_a_dense_layer_with_its_activation(name, bert, tmp_path):
    torch.manual_seed(3)

    layers = [
        Dense(WIDTH, 7, activation_function=getattr(torch.nn, name)()),
        Dense(7, 5, bias=False, activation_function=torch.nn.Identity()),
    ]
    theirs = encoder(bert, tmp_path / "st", "mean", *layers)
    ours = sememe.load(tmp_path / "st")
    assert ours.dim == 5 and ours.describe()["dense"] == [7, 5]
    np.testing.assert_allclose(ours.embed(TEXTS), theirs.encode(TEXTS), atol=1e-5)
    ours.save(tmp_path / "ours")
    again = peer.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS), theirs.encode(TEXTS), atol=1e-6)


def test_prompts(bert, tmp_path):
    prompts = {"query": "the cat: ", "document": "a dog: "}
    theirs = encoder(bert, tmp_path / "st", "mean", prompts=prompts, default_prompt_name="document")
    ours = sememe.load(tmp_path / "st")
    for role in prompts:
        expected = theirs.encode(TEXTS, prompt_name=role)
        np.testing.assert_allclose(ours.embed(TEXTS, role=role), expected, atol=1e-5)
    np.testing.assert_allclose(ours.embed(TEXTS), theirs.encode(TEXTS), atol=1e-5)
    assert ours.prompt() == ours.prompt("document") == "a dog: "


@pytest.mark.parametrize(
    ("prompts", "default"),
    [
        ({"query": "the cat: ", "document": "a dog: "}, "query"),
        ({"query": "the cat: "}, "query"),
        ({"passage": "a dog: ", "corpus": "the mat: "}, None),
        ({"passage": "a dog: ", "other": "the mat: "}, "other"),
    ],
)
def test_prompts_of_queries_and_documents(prompts, default, bert, tmp_path):
    encoder(bert, tmp_path / "st", "mean", prompts=prompts, default_prompt_name=default)
    settings = tmp_path / "st" / "config_sentence_transformers.json"
    # As earlier versions wrote them: without empty prompts.
    told = json.loads(settings.read_text()) | {"prompts": prompts}
    settings.write_text(json.dumps(told))
    theirs, ours = (
        peer.SentenceTransformer(str(tmp_path / "st"), device="cpu"),
        sememe.load(tmp_path / "st"),
    )
    for role, encode in (("query", theirs.encode_query), ("document", theirs.encode_document)):
        np.testing.assert_allclose(ours.embed(TEXTS, role=role), encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(ours.embed(TEXTS), theirs.encode(TEXTS), atol=1e-5)


def test_static_tokens(bert, tmp_path):
    tokenizer = Tokenizer.from_file(str(bert / "tokenizer.json"))
    module = StaticEmbedding(tokenizer, embedding_dim=6)
    theirs = peer.SentenceTransformer(modules=[module, Normalize()], device="cpu")
    theirs.save(str(tmp_path / "st"))
    ours = sememe.load(tmp_path / "st")
    np.testing.assert_allclose(ours.embed(TEXTS), theirs.encode(TEXTS), atol=1e-6)
    with pytest.raises(UnsupportedError):
        ours.attention("a cat")
    with pytest.raises(OptionError):
        ours.embed(TEXTS, pool="cls")
    ours.save(tmp_path / "ours")
    again = peer.SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    np.testing.assert_allclose(again.encode(TEXTS), theirs.encode(TEXTS), atol=1e-6)


@pytest.mark.parametrize("has_weights", [False, True])
def test_model2vec(has_weights, bert, tmp_path):
    tokenizer = Tokenizer.from_file(str(bert / "tokenizer.json"))
    random, size = np.random.default_rng(1), tokenizer.get_vocab_size()
    table = random.normal(size=(size, 6)).astype(np.float32)
    weights = random.random(size) if has_weights else None
    theirs = model2vec.StaticModel(
        table, tokenizer, config={"model_type": "model2vec", "normalize": True}, weights=weights
    )
    theirs.save_pretrained(tmp_path / "m2v")
    texts = [*TEXTS, "∮ unknown ∰ signs"]
    expected = model2vec.StaticModel.from_pretrained(tmp_path / "m2v").encode(texts)
    np.testing.assert_allclose(sememe.load(tmp_path / "m2v").embed(texts), expected, atol=1e-6)


def test_a_long_text_is_read_whole(bert, tmp_path):
    encoder(bert, tmp_path / "st", "mean")
    ours = sememe.load(tmp_path / "st")
    long = "the cat sat on the warm mat " * 30
    assert not np.allclose(ours.embed([long]), ours.embed([long + "a dog ran " * 9]), atol=1e-4)


def test_what_is_not_computed_is_refused(bert, tmp_path):
    encoder(bert, tmp_path / "st", "mean", Normalize())
    place = tmp_path / "st" / "modules.json"
    modules = json.loads(place.read_text())
    for changed, said in (
        ([{**modules[0], "type": "sentence_transformers.models.CLIPModel"}], "CLIPModel"),
        ([modules[0], {**modules[1], "type": "x.LSTM"}], "LSTM"),
        ([modules[0]], "pooling"),
        ([modules[0], {**modules[1], "path": "../elsewhere"}], "outside"),
        ([], "modules"), ({}, "modules"), ([3], "type"),
    ):  # fmt: skip
        place.write_text(json.dumps(changed))
        with pytest.raises(ArtifactError, match=said):
            sememe.load(tmp_path / "st")
    place.write_text(json.dumps(modules))
    pooling = tmp_path / "st" / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps({"pooling_mode": "weightedmean"}))
    with pytest.raises(ArtifactError, match="pooling"):
        sememe.load(tmp_path / "st")


def test_an_encoder_is_made_of_a_network(bert, tmp_path):
    model = SentenceModel(sememe.load(bert), pool="cls", prompts={"query": "q "})
    model.save(tmp_path / "made")
    theirs = peer.SentenceTransformer(str(tmp_path / "made"), device="cpu")
    np.testing.assert_allclose(model.embed(TEXTS), theirs.encode(TEXTS), atol=1e-5)
    np.testing.assert_allclose(
        model.embed(TEXTS, role="query"), theirs.encode(TEXTS, prompt_name="query"), atol=1e-5
    )
