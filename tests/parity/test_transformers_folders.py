"""Every folder that names a class of `transformers` opens as that class, whole and the same.

Each task over each kind of parent, and the pretrained folders themselves: no weight may be missing,
left over or drawn at random, and what comes out is what ours gives.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from peers import padded

import sememe
from presets import bert_config, gpt_config
from sememe.models.bert.model import BERT
from sememe.models.bert.network import BERTNetwork
from sememe.models.gpt.model import GPT
from sememe.models.gpt.network import GPTNetwork
from sememe.tasks.objective import run_items
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

WORDS = ["the", "old", "cat", "sat", "on", "warm", "dog", "ran", "猫", "狗", "很", "好看"]


def texts(num: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(3, 9))) for _ in range(num)]


TEXTS, OTHERS = texts(12, 1), texts(12, 2)
LABELS = ["cat" if "cat" in text else "none" for text in TEXTS]
ROWS: dict[str, list[Any]] = {
    "Classify": [{"text": a, "label": label} for a, label in zip(TEXTS, LABELS, strict=True)],
    "Pairs": [
        {"text": a, "second": b, "label": label}
        for a, b, label in zip(TEXTS, OTHERS, LABELS, strict=True)
    ],
    "Regress": [{"text": a, "score": float(a.count("cat"))} for a in TEXTS],
    "Regress pairs": [
        {"text": a, "second": b, "score": float(a.count("cat"))}
        for a, b in zip(TEXTS, OTHERS, strict=True)
    ],
    "Choose": [
        {"text": a, "choices": [a, b], "label": "0"} for a, b in zip(TEXTS, OTHERS, strict=True)
    ],
    "Tag": [
        (text.split(), ["B-PET" if word == "cat" else "O" for word in text.split()])
        for text in TEXTS
    ],
    "Answer": [
        {
            "question": "the warm",
            "context": text,
            "answers": {"text": [text.split()[0]], "answer_start": [0]},
        }
        for text in TEXTS
    ],
}  # fmt: skip

UNPOOLED = frozenset({"pooler", "next head"})
BERTS = {  # the heads that no training has seen
    "bert": frozenset[str](), "bert without next sentences": UNPOOLED,
    "bert without masks": frozenset({"masked head"}),
    "bert with a pooler alone": frozenset({"masked head", "next head"}),
    "bert without its next head": frozenset({"next head"}),
    "bert of nothing else": UNPOOLED | {"masked head"},
}  # fmt: skip
CLASSES = {  # for which every weight has been trained
    "bert": "BertForPreTraining", "bert without next sentences": "BertForMaskedLM",
    "bert without masks": "BertForNextSentencePrediction", "bert with a pooler alone": "BertModel",
    "gpt pre": "GPT2LMHeadModel", "gpt post": "OpenAIGPTLMHeadModel",
}  # fmt: skip
THEIRS = {
    "their BertModel": "BertModel", "their BertForMaskedLM": "BertForMaskedLM",
    "their BertForPreTraining": "BertForPreTraining",
}  # fmt: skip
WORD_MODELS = ("elmo", "ulmfit", "nnlm", "word2vec")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of every kind of parent."""
    root, found = tmp_path_factory.mktemp("parents"), {}
    pieces = SubwordTokenizer.train(texts(50, 0), kind="wordpiece", vocab_size=200, min_frequency=1)
    bpe = SubwordTokenizer.train(texts(50, 0), kind="bpe", vocab_size=300, min_frequency=1)
    sizes: dict[str, Any] = {"max_length": 48, "width": 32, "initial_std": 0.08}
    for name, untrained in BERTS.items():
        network = BERTNetwork(bert_config("tiny", vocab_size=pieces.vocab_size, **sizes), seed=3)
        network.untrained = untrained
        found[name] = root / name
        BERT.around(network.eval(), pieces).save(found[name])
    for name, cls in THEIRS.items():
        opened = getattr(transformers, cls).from_pretrained(found["bert"])
        found[name] = root / name
        opened.save_pretrained(found[name])
        pieces.save(found[name])
    for norm in ("pre", "post"):
        config = gpt_config("tiny", vocab_size=bpe.vocab_size, norm=norm, **sizes)
        found[f"gpt {norm}"] = root / f"gpt {norm}"
        GPT.around(GPTNetwork(config).eval(), bpe).save(found[f"gpt {norm}"])
    corpus = [text.split() for text in texts(60, 0)]
    small = {"steps": 2, "min_count": 1, "workers": 1, "evaluate_batches": 0, "device": "cpu"}
    sememe.ELMo(num_cells=16, width=8, **small).fit(corpus, out=root / "elmo")
    sememe.ULMFiT(num_cells=16, width=8, **small).fit(corpus, out=root / "ulmfit")
    sememe.NNLM(dim=8, num_hidden=8, length=16, **small).fit(corpus, out=root / "nnlm")
    sememe.Word2Vec(dim=8, epochs=1, min_count=1, workers=1).fit(corpus, out=root / "word2vec")
    return found | {name: root / name for name in WORD_MODELS}


def claimed(folder: Path) -> str | None:
    """The class that config.json names, if any."""
    if not (folder / "config.json").exists():
        return None
    names = json.loads((folder / "config.json").read_text("utf-8")).get("architectures")
    return names[0] if names else None


def opened_whole(folder: Path, name: str, caplog: pytest.LogCaptureFixture) -> Any:
    """What `transformers` opens as that class, without a word on its weights."""
    transformers.logging.enable_propagation()
    with caplog.at_level(logging.WARNING):
        peer, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    kinds = ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")
    assert not {kind: info[kind] for kind in kinds if info.get(kind)}
    assert not [record for record in caplog.records if "LOAD REPORT" in record.getMessage()]
    return peer.eval()


def their_outputs(peer: Any, item: Any, kind: str, pad_id: int | None) -> np.ndarray:
    """What a peer says of one item, as ours says it."""
    batch = padded([item])
    if pad_id is not None:
        batch.pop("token_type_ids")
        batch["input_ids"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, pad_id)
    if kind == "Choose":
        batch = {name: x[None] for name, x in batch.items()}
    with torch.no_grad():
        found = peer(**batch)
    if kind == "Answer":
        return torch.stack([found.start_logits[0], found.end_logits[0]], 1).numpy()
    return found.logits[0].numpy()


def fitted(kind: str, parent: Path, **options: Any) -> Any:
    settings: dict[str, Any] = {
        "steps": 2,
        "batch_size": 4,
        "length": 40,
        "device": "cpu",
        "workers": 1,
    }
    return getattr(sememe, kind.split()[0])(parent, **settings | options).fit(ROWS[kind], dev=False)


def same_there(task: Any, kind: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Save a task; where its folder names a class, that class must say the same."""
    task.save(folder)
    name = claimed(folder)
    if name is None:
        return
    peer = opened_whole(folder, name, caplog)
    if hasattr(peer, "get_output_embeddings") and "For" not in name:
        return
    items = task.encode(task.read(ROWS[kind], labelled=True))[:4]
    pad_id = task.coder.tokenizer.pad_id if task.coder.is_gpt else None
    for item, ours in zip(items, run_items(task.objective, items, task.config), strict=True):
        np.testing.assert_allclose(ours, their_outputs(peer, item, kind, pad_id), atol=2e-5)


PARENTS = [*BERTS, *THEIRS, "gpt pre", "gpt post", *WORD_MODELS]


@pytest.mark.parametrize("kind", list(ROWS))
@pytest.mark.parametrize("parent", PARENTS)
def test_a_task_is_there_what_it_is_here(parent, kind, folders, tmp_path, caplog):
    task = fitted(kind, folders[parent])
    same_there(task, kind, tmp_path / "task", caplog)
    if parent in BERTS | THEIRS:  # all of BERT's heads have a class there
        assert claimed(tmp_path / "task") is not None


@pytest.mark.parametrize(
    "options", [{"features": "mix"}, {"features": "last", "reader_width": 8}, {"freeze": True}]
)
@pytest.mark.parametrize("parent", ["bert", "bert without next sentences", "gpt pre"])
@pytest.mark.parametrize("kind", ["Classify", "Tag"])
def test_a_task_over_frozen_layers(parent, kind, options, folders, tmp_path, caplog):
    same_there(fitted(kind, folders[parent], **options), kind, tmp_path / "task", caplog)


def test_a_tagger_with_a_crf(folders, tmp_path, caplog):
    parent = folders["bert without next sentences"]
    same_there(fitted("Tag", parent, crf=True), "Tag", tmp_path / "crf", caplog)


def test_a_task_that_goes_on_from_another(folders, tmp_path, caplog):
    """What the first did not teach is not taken for taught."""
    fitted("Tag", folders["bert without next sentences"]).save(tmp_path / "tag")
    same_there(fitted("Classify", tmp_path / "tag"), "Classify", tmp_path / "task", caplog)
    again = sememe.load(tmp_path / "task")
    same_there(again, "Classify", tmp_path / "again", caplog)


@pytest.mark.parametrize("parent", [*BERTS, "gpt pre", "gpt post"])
def test_a_pretrained_folder_opens_as_what_it_says(parent, folders, tmp_path, caplog):
    sememe.load(folders[parent]).save(tmp_path / "again")
    for folder in (folders[parent], tmp_path / "again"):
        name = claimed(folder)
        assert name == CLASSES.get(parent)
        if name is None:  # without its pooler no class of theirs is whole
            continue
        peer = opened_whole(folder, name, caplog)
        model = sememe.load(folder)
        ids = torch.tensor([[int(one) for one in model.tokenizer.encode(TEXTS[0]).ids]])
        with torch.no_grad():
            theirs = peer(ids, output_hidden_states=True).hidden_states[-1]
            ours = model.network(ids)
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=2e-5)
