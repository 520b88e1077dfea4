"""Every kind is opened by `sememe.load` and answers what it says it can; the rest is refused.

The models are the golden fixtures: folders and files of every kind, ours and other programs'.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("h5py")

import sememe
from sememe.contract import CAPABILITIES, KINDS, kinds_that
from sememe.errors import ArtifactError, InputError, UnsupportedError
from sememe.models.registry import convert

ARCHIVE = Path(__file__).parents[1] / "golden" / "fixtures.tar.xz"
sys.path.insert(0, str(ARCHIVE.parent))  # xdist may not have done it yet

NOT_MODELS = {"tokenizer-wordpiece", "tokenizer-bpe"}
TEXTS = ["The cat sat on the mat.", "A dog ran."]


def names() -> list[str]:
    """What the archive holds: one name a folder or file of a model."""
    with tarfile.open(ARCHIVE) as archive:
        found = {member.name.partition("/")[0] for member in archive.getmembers()}
    return sorted(name for name in found if name not in NOT_MODELS and not name.endswith(".json"))


def is_vectors(rows: Any, count: int) -> bool:
    """Whether there is one finite vector for each of some things."""
    return rows.shape[0] == count and rows.ndim == 2 and bool(np.isfinite(rows).all())


def _embed(model: Any) -> bool:
    empty = model.embed([])
    for wrong in ("one text", [None], [TEXTS]):
        with pytest.raises(InputError):
            model.embed(wrong)
    return is_vectors(model.embed(TEXTS), 2) and empty.shape[0] == 0


def _words(model: Any) -> bool:
    words = model.words
    word = next(iter(words), "cat")  # a table of hashed n-grams lists no words
    return words.words is words and words[word].shape == (words.dim,)


def _embed_words(model: Any) -> bool:
    found = model.embed_words([["the", "cat"], ["dog"]])
    return [len(own) for own in found] == [2, 1] and all(own.ndim == 2 for own in found)


def _embed_expected(model: Any) -> bool:
    nothing = model.embed_expected([], []).shape[0] == model.embed_expected([""], [(0, 0)])[1:].size
    return nothing and is_vectors(model.embed_expected(TEXTS, [(4, 7), (2, 5)]), 2)


def _fill(model: Any) -> bool:
    ((first, *_),) = model.fill("The [MASK] sat.", top=3)
    return 0 < first.probability <= 1


def _next_words(model: Any) -> bool:
    found = model.next_words("the ", count=2)
    return 0 < len(found) <= 2


def _attention(model: Any) -> bool:
    found = model.attention("The cat sat.")
    weights_TS = found.of()
    is_whole = weights_TS.shape == (len(found.target), len(found.source)) and len(weights_TS) > 0
    return is_whole and np.allclose(weights_TS.sum(-1), 1, atol=1e-3)


def _encoder(model: Any) -> bool:
    from sememe.tasks.config import FinetuneConfig

    return model.encoder("texts", FinetuneConfig(length=16)) is not None


def _predict(model: Any) -> bool:
    rows = ROWS.get(model.kind, TEXTS)
    return len(model.predict(rows)) == len(rows) and len(model.predict([])) == 0


ROWS: dict[str, list[Any]] = {
    "pairs": [("The cat sat.", "A dog ran."), ("A dog ran.", "The cat sat.")],
    "choose": [{"context": "The cat", "choices": ["sat.", "ran."]}] * 2,
    "tag": [["The", "cat"], ["A", "dog"]],
    "answer": [{"question": "Who sat?", "context": "The cat sat."}] * 2,
}
CHECKS: dict[str, Callable[[Any], bool]] = {
    "embed": _embed,
    "words": _words,
    "embed_words": _embed_words,
    "embed_expected": _embed_expected,
    "fill": _fill,
    "follows": lambda model: 0 <= model.follows(*TEXTS) <= 1,
    "generate": lambda model: isinstance(model.generate("The cat"), str | list),
    "next_words": _next_words,
    "score": lambda model: model.score("the cat sat") < 0,
    "attention": _attention,
    "positions": lambda model: is_vectors(model.positions, len(model.positions)),
    "translate": lambda model: [*map(type, model.translate(TEXTS))] == [str, str],
    "predict": _predict,
    "score_pairs": lambda model: len(model.score_pairs([("a cat", "a dog"), ("a", "b")])) == 2,
    "encoder": _encoder,
}
CALLS: dict[str, Callable[[Any], Any]] = CHECKS | {"words": lambda model: model.words}


def test_every_capability_has_a_check_and_every_kind_a_fixture(golden: Path):
    assert set(CAPABILITIES) <= set(CHECKS)
    assert {sememe.load(golden / name).kind for name in names()} == set(KINDS)


@pytest.mark.parametrize("name", names())
def test_a_model_does_what_it_says(name: str, golden: Path):
    model = sememe.load(golden / name)
    assert model.kind in KINDS and model.capabilities <= set(KINDS[model.kind].capabilities)
    for capability in sorted(model.capabilities):
        assert CHECKS[capability](model), capability


@pytest.mark.parametrize("name", names())
def test_what_it_cannot_do_names_the_kinds_that_can(name: str, golden: Path):
    model = sememe.load(golden / name)
    for capability in sorted(set(CAPABILITIES) - model.capabilities):
        with pytest.raises(UnsupportedError) as caught:
            CALLS[capability](model)
        assert all(kind in str(caught.value) for kind in kinds_that(capability)), capability
        # A model of a kind that can says why it cannot.
        assert ("(" in str(caught.value)) == (model.kind in kinds_that(capability)), capability


@pytest.mark.parametrize("name", names())
def test_a_model_tells_what_it_is(name: str, golden: Path):
    model = sememe.load(golden / name)
    told = model.describe()
    assert told["kind"] == model.kind and told["capabilities"] == sorted(model.capabilities)
    json.dumps(told, allow_nan=False)
    assert "<script" not in model._repr_html_() and model.kind in model._repr_html_()


BROKEN = {
    "bert": ("embed", "embed_words", "embed_expected", "fill", "follows", "attention"),
    "gpt": ("embed", "embed_words", "generate", "next_words", "score", "evaluate"),
    "elmo": ("embed", "embed_words", "next_words", "score", "evaluate"),
    "ulmfit": ("embed", "embed_words", "score", "evaluate"),
    "nnlm": ("score", "evaluate"),
    "seq2seq": ("embed", "translate"),
    "transformer": ("embed", "translate"),
    "classify": ("predict", "embed"),
    "tag-crf": ("predict",),
    "answer-words": ("predict",),
    "word2vec-cbow-negative": ("embed", "words", "embed_words"),
    "doc2vec": ("embed", "words"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_weights_are_an_error_and_never_nan(name: str, golden: Path, tmp_path: Path):
    from safetensors.numpy import load_file, save_file

    shutil.copytree(golden / name, tmp_path / name)
    for path in (tmp_path / name).rglob("*.safetensors"):
        tensors = load_file(path)
        for own in tensors.values():
            if own.dtype.kind == "f":
                own[...] = np.nan
        save_file(tensors, path)
    for call in BROKEN[name]:
        with pytest.raises(ArtifactError):
            model = sememe.load(tmp_path / name)
            if call == "evaluate":
                model.evaluate(TEXTS)
            else:
                CHECKS[call](model)


@pytest.mark.parametrize(
    "name",
    ["bert-chinese", "huggingface-classify", "classify-words", "elmo-released", "classifier.bin",
     "doc2vec"],
)  # fmt: skip
def test_a_converted_folder_is_the_same_model(name: str, golden: Path, tmp_path: Path):
    convert(golden / name, tmp_path / "copy")
    model, copy = sememe.load(golden / name), sememe.load(tmp_path / "copy")
    assert (copy.kind, copy.capabilities, copy.text) == (model.kind, model.capabilities, model.text)
    for capability in sorted({"embed", "predict"} & model.capabilities):
        own, other = (getattr(each, capability)(TEXTS) for each in (model, copy))
        assert repr(own) == repr(other)
