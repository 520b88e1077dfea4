"""The models that keep the promises, each with small options; a new model is added here."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sememe
from sememe.storage.tensors import read_tensors

ENGLISH = "The old king and the young queen live in a small castle by the sea .\n" * 30
CHINESE = "国王和女王在宫殿里吃早饭，孩子们学习自然语言处理。\n" * 30
_TOPICS = {"royal": ("the old king", "国王在宫殿里"), "food": ("a good breakfast", "女王吃早饭")}


def _labelled(index: int) -> str:
    return "".join(f"__label__{label} {texts[index]}\n" for label, texts in _TOPICS.items()) * 12


def _table(*columns: str, rows: list[tuple[Any, ...]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in [columns, *rows * 12])


def _rows(index: int) -> dict[str, str]:
    """The labelled rows of every task in one language."""
    royal, food = (texts[index] for texts in _TOPICS.values())
    words = list(royal) if index else royal.split()
    tags = [f"{word} {'O' if place else 'B-WHO'}\n" for place, word in enumerate(words)]
    answer = {"question": food, "context": royal, "answer": words[0]}
    choices = [(royal, royal, food, 0), (food, royal, food, 1)]
    pairs = [(royal, royal, "same"), (royal, food, "other")]
    return {
        "classify.tsv": _table("text", "label", rows=[(royal, "royal"), (food, "food")]),
        "pairs.tsv": _table("text", "second", "label", rows=pairs),
        "regress.tsv": _table("text", "score", rows=[(royal, 1.5), (food, 4.0)]),
        "choose.tsv": _table("text", "choice1", "choice2", "label", rows=choices),
        "tag.txt": "".join([*tags, "\n"]) * 12,
        "answer.jsonl": (json.dumps(answer, ensure_ascii=False) + "\n") * 12,
    }


_MORE = (("cat", "dog", "bird", "horse", "fish"), ("猫", "狗", "鸟", "马", "鱼"))


def _sentences(index: int) -> str:
    """Sentences of one document, no two of which are equal."""
    one, two = (
        ("A {} sees the old king .", "the {} lives by the sea ."),
        ("{}在宫殿里。", "国王吃{}。"),
    )
    return "".join(form.format(word) + "\n" for word in _MORE[index] for form in (one, two)[index])


def write_texts(folder: Path) -> None:
    """Write what the models learn from into a folder: english.txt, chinese.classify.tsv, …"""
    for index, (language, text) in enumerate((("english", ENGLISH), ("chinese", CHINESE))):
        files = {"txt": text, "labelled": _labelled(index), "upper": text.upper(), **_rows(index)}
        files["sentences.txt"] = _sentences(index)
        for name, own in files.items():
            (folder / f"{language}.{name}").write_text(own, encoding="utf-8")


@dataclass(frozen=True)
class Promised:
    """A model class with options for a run of about a second, and what it learns from."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    wrong: tuple[str, Any] = ("dim", -1)  # an option out of its range
    files: tuple[str, ...] = ("txt",)  # the endings of the files that it learns from
    kind: str = ""
    reads_lists: bool = True  # whether token lists are as good as a file
    is_counted: bool = False  # there is nothing random in it, and no loss
    needs_language: bool = True  # whether Chinese must be announced
    base: str = ""  # for a task: what it stands on, among the golden fixtures
    knows: Callable[[Any], bool] = lambda model: "国王" in model.words and "自然语言" in model.words

    def make(self, golden: Path, language: str = "english", **more: Any) -> Any:
        """Make an untrained model."""
        base = "word2vec-chinese" if language == "chinese" and self.base else self.base
        return self.model_class(*[golden / base] * bool(base), **{**self.options, **more})

    def data(self, language: str = "english") -> tuple[str, ...]:
        """The files that it learns from."""
        return tuple(f"{language}.{ending}" for ending in self.files)

    def reading(self, language: str = "english") -> dict[str, str]:
        """What `fit` must be told about them."""
        return {"language": "zh"} if language == "chinese" and self.needs_language else {}

    @property
    def model_class(self) -> Any:
        return getattr(sememe, self.name)


def learned(model: Any) -> dict[str, np.ndarray]:
    """What two equal trainings must share, to the bit: every array that is saved."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        files = sorted(Path(folder).rglob("*.safetensors"))
        arrays = [(file, read_tensors(file)) for file in files]
        return {
            f"{file.relative_to(folder)}:{name}": np.array(array)
            for file, own in arrays
            for name, array in own.items()
        }


_SEED = {"workers": 1, "seed": 3}
_STATIC = {"dim": 12, "min_count": 2, "epochs": 2, **_SEED}
_RUN = {"steps": 6, "batch_size": 4, "length": 16, "device": "cpu", **_SEED}
_LSTM = {"num_layers": 1, "num_cells": 12, "width": 8, "min_count": 2, **_RUN}
_BLOCKS = {"num_layers": 1, "width": 16, "num_heads": 2, "max_length": 32, **_RUN}
_PAIRS = {"steps": 6, "num_layers": 1, "width": 16, "vocab_size": 300, "dropout": 0.1,
          "max_length": 80, "length": 80, "batch_size": 256, "bleu_pairs": 2, "device": "cpu",
          **_SEED}  # fmt: skip
_TASK = {"epochs": 1, "batch_size": 8, "length": 24, "device": "cpu", **_SEED}

MODELS = {
    f"word2vec-{architecture}-{loss}": Promised(
        "Word2Vec", {"architecture": architecture, "loss": loss, **_STATIC}
    )
    for architecture in ("skipgram", "cbow")
    for loss in ("negative", "hierarchical", "softmax")
}
MODELS["onehot"] = Promised("OneHot", {"min_count": 2}, wrong=("min_count", 0), is_counted=True)
MODELS["fasttext"] = Promised("FastText", {"bucket": 1_000, **_STATIC})
MODELS["counts"] = Promised("Counts", {"dim": 12, "min_count": 2, **_SEED})
MODELS["glove"] = Promised("GloVe", {"window": 5, **_STATIC})
MODELS["doc2vec"] = Promised("Doc2Vec", _STATIC)
MODELS["doc2vec-dm"] = Promised("Doc2Vec", {"method": "dm", "combine": "concat", **_STATIC})
MODELS["sif"] = Promised(
    "SIF", {"workers": 1}, wrong=("a", 0), is_counted=True, reads_lists=False,
    base="word2vec-skipgram-negative", knows=lambda model: "国王" in model.words,
)  # fmt: skip
MODELS["ngram"] = Promised(
    "NGram", {"order": 3, "min_count": 1, "workers": 1}, wrong=("order", 0), is_counted=True,
    knows=lambda model: model.score("国王和女王") > model.score("我们的朋友"),
)  # fmt: skip
MODELS["nnlm"] = Promised("NNLM", {"dim": 12, "min_count": 2, **_RUN})
MODELS["elmo"] = Promised(
    "ELMo", {"filters": "1:4 2:4", "num_highways": 1, **_LSTM}, wrong=("width", 0)
)
MODELS["ulmfit"] = Promised("ULMFiT", _LSTM, wrong=("width", 0))
MODELS["gpt"] = Promised(
    "GPT", {"vocab_size": 300, **_BLOCKS}, wrong=("width", 0), reads_lists=False,
    knows=lambda model: np.abs(model.embed(["国王"])).max() > 0,
)  # fmt: skip
MODELS["bert"] = Promised(
    "BERT", {"vocab_size": 200, **_BLOCKS}, wrong=("width", 0), reads_lists=False,
    knows=lambda model: "国" in model.words,
)  # fmt: skip
for name, more in (("Seq2Seq", {"embedding_size": 12}), ("Transformer", {"num_heads": 2})):
    MODELS[name.lower()] = Promised(
        name, _PAIRS | more, wrong=("width", 0), files=("txt", "upper"), reads_lists=False,
        needs_language=False, knows=lambda model: isinstance(model.translate("国王"), str),
    )  # fmt: skip
MODELS["classifier"] = Promised(
    "FastTextClassifier", {"dim": 8, "epochs": 3, "bucket": 50, **_SEED}, files=("labelled",),
    kind="fasttext-classifier", reads_lists=False,
    knows=lambda model: model.predict(["国王在宫殿里"])[0] in _TOPICS,
)  # fmt: skip
MODELS["sentence"] = Promised(
    "SentenceModel", {**_RUN, "objective": "simcse"}, wrong=("batch_size", 1),
    files=("sentences.txt",), kind="sentence", reads_lists=False, base="bert",
    knows=lambda model: np.isfinite(model.embed(["国王"])).all(),
)  # fmt: skip
for name, ending, row in (
    ("Classify", "classify.tsv", "国王"),
    ("Pairs", "pairs.tsv", ("国王", "女王")),
    ("Regress", "regress.tsv", "国王"),
    ("Choose", "choose.tsv", {"context": "国王", "choices": ["在", "吃"]}),
    ("Tag", "tag.txt", ["国", "王"]),
    ("Answer", "answer.jsonl", {"question": "国王", "context": "国王在宫殿里"}),
):
    MODELS[name.lower()] = Promised(
        name, _TASK, wrong=("length", 0), files=(ending,), reads_lists=False,
        needs_language=False, base="word2vec-skipgram-negative",
        knows=lambda model, row=row: len(model.predict([row])) == 1,
    )  # fmt: skip

every_model = pytest.mark.parametrize("promised", MODELS.values(), ids=MODELS)
