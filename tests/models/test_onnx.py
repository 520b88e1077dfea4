"""ONNX folders compute the same vectors and predictions, in float32; int8 says what it costs."""

from __future__ import annotations

import builtins
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import sememe
from sememe.errors import ArtifactError, MissingExtraError, OptionError
from sememe.models.bert.network import BERTNetwork
from sememe.models.huggingface import onnx as graphs
from sememe.models.registry import convert, describe

SAMPLE = [f"{a} {b} {c}" for a in ("the", "old") for b in ("king", "cat") for c in ("sees", "in")]
_NUMBER = re.compile(r"[0-9.]+(?:e-?[0-9]+)?")
TEXTS = ["The old king sees a cat.", "", "a bird", "the river " * 60]


@pytest.fixture(autouse=True)
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "sample_texts", lambda: SAMPLE)


@pytest.mark.parametrize("name", ["bert", "bert-chinese", "sentence", "huggingface-bert-body"])
def test_vectors_are_the_same(name: str, golden: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    texts = [*TEXTS, "国王喜欢小猫。"]
    written = convert(golden / name, tmp_path / "graph", "onnx")
    plain, fast = sememe.load(golden / name), sememe.load(tmp_path / "graph")
    np.testing.assert_allclose(fast.embed(texts), plain.embed(texts), atol=1e-5)
    for ours, own in zip(fast.embed_words(texts), plain.embed_words(texts), strict=True):
        np.testing.assert_allclose(ours, own, atol=1e-5)
    assert fast.kind == plain.kind and fast.capabilities == plain.capabilities
    assert written.sizes["cosine"] == pytest.approx(1)
    assert describe(tmp_path / "graph")["onnx"]["precision"] == "float32"


@pytest.mark.parametrize("name", ["classify", "huggingface-tag"])
def test_predictions_are_the_same(name: str, golden: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    convert(golden / name, tmp_path / "graph", "onnx")
    rows: Any = [["The", "cat"], ["A", "dog"]] if "tag" in name else ["a lovely book", "bad"]
    ours, own = (sememe.load(path).predict(rows) for path in (tmp_path / "graph", golden / name))
    assert [_NUMBER.sub("", str(one)) for one in ours] == [_NUMBER.sub("", str(one)) for one in own]
    found, expected = (
        [float(number) for one in both for number in _NUMBER.findall(str(one))]
        for both in (ours, own)
    )
    assert found == pytest.approx(expected, abs=1e-5)


def test_the_square_of_relu_is_the_same(golden: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    plain = sememe.load(golden / "bert")
    config = replace(plain.config, activation="relu2")
    network = BERTNetwork(config).eval()
    sememe.BERT.around(network, plain.tokenizer).save(tmp_path / "squared")
    convert(tmp_path / "squared", tmp_path / "graph", "onnx")
    own, fast = (sememe.load(tmp_path / name).embed(TEXTS) for name in ("squared", "graph"))
    np.testing.assert_allclose(fast, own, atol=1e-5)
    network.config = replace(config, activation="relu")
    for block in network.stack:
        block.feed_forward.activation = "relu"
    assert np.abs(sememe.BERT.around(network, plain.tokenizer).embed(TEXTS) - own).max() > 1e-4


def test_int8_is_near_and_says_how_near(golden: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    written = convert(golden / "sentence", tmp_path / "int8", "onnx", int8=True)
    plain, fast = sememe.load(golden / "sentence"), sememe.load(tmp_path / "int8")
    assert 0 < np.abs(fast.embed(TEXTS[:1]) - plain.embed(TEXTS[:1])).max() < 0.2
    assert 0.9 < written.sizes["cosine"] < 1 and "int8" in written.told
    assert written.sizes["speed_ratio"] > 0


def test_a_graph_alone_runs_elsewhere(golden: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    convert(golden / "bert", tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    ids = np.array([[2, 7, 3]])
    feed = {"input_ids": ids, "attention_mask": ids * 0 + 1, "token_type_ids": ids * 0}
    (found,) = session.run(None, feed)
    network = sememe.load(golden / "bert").network
    with torch.no_grad():
        expected = network(torch.from_numpy(ids)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_cannot_become_onnx_says_so(golden: Path, tmp_path: Path) -> None:
    for name in ("gpt", "word2vec-cbow-negative", "sentence-static"):
        with pytest.raises(OptionError, match="ONNX"):
            convert(golden / name, tmp_path / "model.onnx")
    with pytest.raises(OptionError, match="int8"):
        convert(golden / "bert", tmp_path / "folder", int8=True)
    assert not list(tmp_path.iterdir())


def test_a_damaged_graph_is_an_error_of_ours(golden: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    convert(golden / "sentence", tmp_path / "graph", "onnx")
    graph = tmp_path / "graph" / "model.onnx"
    graph.write_bytes(graph.read_bytes()[:500])
    with pytest.raises(ArtifactError, match=r"model\.onnx"):
        sememe.load(tmp_path / "graph")


def test_a_graph_of_another_program_is_left_alone(golden: Path, tmp_path: Path) -> None:
    shutil.copytree(golden / "sentence", tmp_path / "model")
    (tmp_path / "model" / "model.onnx").write_bytes(b"of another program")
    found = sememe.load(tmp_path / "model").embed(TEXTS)
    np.testing.assert_array_equal(found, sememe.load(golden / "sentence").embed(TEXTS))


def test_a_model_with_a_graph_is_fine_tuned_by_its_weights(golden: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    convert(golden / "bert", tmp_path / "graph", "onnx")
    rows = [("a lovely book", "good"), ("a bad cat", "bad")] * 4
    ours, own = (
        sememe.Classify(path, epochs=2, length=32, seed=1).fit(rows, dev=rows)
        for path in (tmp_path / "graph", golden / "bert")
    )
    assert ours.predict(["a book"])[0].probabilities == pytest.approx(
        own.predict(["a book"])[0].probabilities
    )
    encoder = sememe.SentenceModel(tmp_path / "graph", steps=2, batch_size=4, length=32)
    encoder.fit([text for text, _ in rows[:2]] * 20)
    encoder.save(tmp_path / "encoder")
    again = sememe.load(tmp_path / "encoder")
    np.testing.assert_allclose(again.embed(TEXTS), encoder.embed(TEXTS), atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_graph_gives_vectors_to_a_network_on_a_gpu(golden: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    convert(golden / "sentence", tmp_path / "graph", "onnx")
    plain, fast = sememe.load(golden / "sentence"), sememe.load(tmp_path / "graph", device="cuda")
    np.testing.assert_allclose(fast.embed(TEXTS), plain.embed(TEXTS), atol=1e-5)


def test_a_missing_library_is_named(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without(name: str, *more: Any, **options: Any) -> Any:
        if name.partition(".")[0] in ("onnx", "onnxruntime"):
            raise ModuleNotFoundError(name=name)
        return original(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"sememe\[onnx\]"):
        convert(golden / "bert", tmp_path / "model.onnx")


def test_bf16_is_near_or_refused(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sememe.models.language import subword_model

    monkeypatch.setattr(subword_model, "multiplies_bf16", lambda: False)
    with pytest.raises(OptionError, match="bfloat16"):
        sememe.load(golden / "sentence").in_precision("bf16")
    monkeypatch.setattr(subword_model, "multiplies_bf16", lambda: True)
    plain, fast = (sememe.load(golden / "sentence").in_precision(own) for own in ("fp32", "bf16"))
    difference = np.abs(plain.embed(TEXTS) - fast.embed(TEXTS)).max()
    assert 0 < difference < 0.1
    np.testing.assert_array_equal(fast.in_precision("fp32").embed(TEXTS), plain.embed(TEXTS))
    with pytest.raises(OptionError, match="fp32"):
        sememe.load(golden / "glove").in_precision("bf16")


def test_a_damaged_graph_is_not_run(golden, tmp_path, caplog):
    pytest.importorskip("onnxruntime")
    convert(golden / "sentence", tmp_path / "graph", "onnx", int8=True)
    assert not caplog.records  # onnxruntime's own warnings would reach the user
    graph = tmp_path / "graph" / "model.onnx"
    content = bytearray(graph.read_bytes())
    content[len(content) // 2] ^= 1
    graph.write_bytes(content)
    with pytest.raises(ArtifactError, match="checksum"):
        sememe.load(tmp_path / "graph")
