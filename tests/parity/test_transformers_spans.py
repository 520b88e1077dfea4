"""Tags and answers against a plain loop of `transformers`: the same losses, the same logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from peers import BATCH, RATE, STEPS, padded, plain_losses

from presets import bert_config
from sememe.models.bert.network import BERTNetwork
from sememe.tasks.answer import Answer
from sememe.tasks.tag import Tag
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

WORDS = ["the", "old", "cat", "sat", "on", "warm", "dog", "ran", "catalogue", "猫", "狗", "很"]


def sentences(num: int, seed: int, low: int, high: int) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [list(random.choice(WORDS, random.integers(low, high))) for _ in range(num)]


def tagged(words: list[str]) -> tuple[list[str], list[str]]:
    kinds = {"cat": "B-PET", "dog": "B-PET", "猫": "B-PET", "catalogue": "B-THING"}
    return words, [kinds.get(word, "O") for word in words]


def question(words: list[str], index: int) -> dict[str, Any]:
    context = " ".join(words)
    place = len(" ".join(words[:index])) + (index > 0)
    answer = {"text": [words[index]], "answer_start": [place]}
    return {"question": f"{words[index]} the warm", "context": context, "answers": answer}


# Rows of one length for answers: the peer's softmax runs over padding too.
ROWS = {
    "tag": [tagged(words) for words in sentences(60, 1, 3, 30)],
    "answer": [
        question(words, index % 20) for index, words in enumerate(sentences(60, 2, 20, 21))
    ],
}  # fmt: skip
TASKS = {"tag": Tag, "answer": Answer}
PEERS = {
    "tag": transformers.BertForTokenClassification,
    "answer": transformers.BertForQuestionAnswering,
}


@pytest.fixture(scope="module")
def model() -> Any:
    texts = [" ".join(words) for words in sentences(40, 0, 3, 14)]
    tokenizer = SubwordTokenizer.train(texts, kind="wordpiece", vocab_size=142, min_frequency=1)
    assert len(tokenizer.encode("catalogue").ids) > 1
    config = bert_config(
        "tiny", vocab_size=tokenizer.vocab_size, max_length=80, width=32, dropout=0.0,
        attention_dropout=0.0, initial_std=0.08,
    )  # fmt: skip
    return BERTNetwork(config, seed=3).eval(), tokenizer


def fitted(name: str, model: Any, **options: Any) -> Any:
    settings = {
        "steps": STEPS, "batch_size": BATCH, "learning_rate": RATE, "device": "cpu",
        "epsilon": 1e-8, "workers": 1, "seed": 7, "length": 24 if name == "tag" else 80,
    }  # fmt: skip
    return TASKS[name](model, **settings | options).fit(rows_of(name, model), dev=False)


def rows_of(name: str, model: Any) -> list[Any]:
    if name == "tag":
        return ROWS[name]
    # As many tokens in each, whatever pieces the words have.
    _, tokenizer = model
    rows = []
    for row in ROWS[name]:
        size = len(tokenizer.encode(row["question"] + " " + row["context"]).ids)
        rows.append({**row, "context": row["context"] + " on" * (70 - size)})
    return rows


def targets(name: str, items: list[Any], width: int) -> dict[str, Any]:
    if name == "answer":
        pairs = torch.from_numpy(np.stack([item.target for item in items]))
        return {"start_positions": pairs[:, 0], "end_positions": pairs[:, 1]}
    labels = torch.full((len(items), width), -100)
    for row, item in enumerate(items):
        labels[row, : len(item.target)] = torch.from_numpy(item.target)
    return {"labels": labels}


def their_losses(name: str, items: list[Any], start: Any) -> list[float]:
    """What a plain loop gives, from the same start."""

    def inputs_of(batch: list[Any]) -> dict[str, Any]:
        inputs = padded(batch)
        return {**inputs, **targets(name, batch, inputs["input_ids"].shape[1])}

    return plain_losses(PEERS[name].from_pretrained(start).train(), items, inputs_of, 16)


@pytest.mark.parametrize("name", list(TASKS))
def test_the_losses_of_a_hundred_steps_are_those_of_a_plain_loop(name, model, tmp_path):
    torch.set_num_threads(1)
    start = fitted(name, model, learning_rate=1e-30, steps=1)  # as it is before the first step
    start.save(tmp_path / "start")
    task = fitted(name, model)
    items = task.encode(task.read(rows_of(name, model), labelled=True))
    if name == "tag":
        assert len(items) > len(ROWS[name])  # some sentences are longer than the sequences
    else:
        assert len({item.num_tokens for item in items}) == 1
    ours = task.history.column("loss")
    np.testing.assert_allclose(ours, their_losses(name, items, tmp_path / "start"), atol=1e-4)
    assert len(ours) == STEPS and ours[-10:].mean() < ours[:10].mean() - 0.01  # it did learn


@pytest.mark.parametrize("name", list(TASKS))
def test_transformers_opens_the_folder_and_says_the_same(name, model, tmp_path):
    from sememe.tasks.objective import run_items

    task = fitted(name, model, steps=5)
    task.save(tmp_path / "task")
    peer, info = PEERS[name].from_pretrained(tmp_path / "task", output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    items = task.encode(task.read(rows_of(name, model), labelled=True))[:6]
    with torch.no_grad():
        said = peer.eval()(**padded(items))
    if name == "tag":
        assert [peer.config.id2label[i] for i in range(len(task.labels))] == task.labels
        logits = said.logits
    else:
        logits = torch.stack([said.start_logits, said.end_logits], -1)
    for theirs, ours in zip(
        logits.numpy(), run_items(task.objective, items, task.config), strict=True
    ):
        np.testing.assert_allclose(ours, theirs[: len(ours)], atol=1e-5)
