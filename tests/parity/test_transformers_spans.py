"""Tags and answers against a plain loop of `transformers`: the same losses, the same logits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from sememe.networks.bert import BERTNetwork  # noqa: E402
from sememe.networks.presets import bert_config  # noqa: E402
from sememe.tasks.answer import Answer  # noqa: E402
from sememe.tasks.items import ItemBatches  # noqa: E402
from sememe.tasks.tag import Tag  # noqa: E402
from sememe.tokens.subword_training import train_tokenizer  # noqa: E402

WORDS = ["the", "old", "cat", "sat", "on", "warm", "dog", "ran", "catalogue", "猫", "狗", "很"]
STEPS, RATE, BATCH = 100, 1e-3, 8


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
    tokenizer = train_tokenizer(texts, kind="wordpiece", vocab_size=142, min_frequency=1)
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


def padded(items: list[Any]) -> dict[str, Any]:
    sequences = [sequence for item in items for sequence in item.sequences]
    width = max(len(sequence.ids_T) for sequence in sequences)
    ids, segments, mask = (torch.zeros(len(sequences), width, dtype=torch.long) for _ in range(3))
    for row, sequence in enumerate(sequences):
        size = len(sequence.ids_T)
        ids[row, :size] = torch.from_numpy(sequence.ids_T.astype(np.int64))
        segments[row, :size] = torch.from_numpy(sequence.segments_T.astype(np.int64))
        mask[row, :size] = 1
    return {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask}


def targets(name: str, items: list[Any], width: int) -> dict[str, Any]:
    if name == "answer":
        pairs = torch.from_numpy(np.stack([item.target for item in items]))
        return {"start_positions": pairs[:, 0], "end_positions": pairs[:, 1]}
    labels = torch.full((len(items), width), -100)
    for row, item in enumerate(items):
        labels[row, : len(item.target)] = torch.from_numpy(item.target)
    return {"labels": labels}


def plain_losses(name: str, items: list[Any], start: Any) -> list[float]:
    """What a loop that anybody would write gives, from the same start and in the same order."""
    peer = PEERS[name].from_pretrained(start).train()
    source = ItemBatches(items, batch_size=BATCH, seed=7, sort_batches=16)
    decayed = [p for n, p in peer.named_parameters() if "bias" not in n and "LayerNorm" not in n]
    plain = [p for n, p in peer.named_parameters() if "bias" in n or "LayerNorm" in n]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
        lr=RATE, betas=(0.9, 0.999), eps=1e-8,
    )  # fmt: skip
    losses = []
    for step in range(STEPS):
        batch = [items[index] for index in source.order(step)]
        inputs = padded(batch)
        loss = peer(**inputs, **targets(name, batch, inputs["input_ids"].shape[1])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        rising = 0.1 * STEPS
        share = (step + 1) / rising if step < rising else (STEPS - step) / (STEPS - rising)
        for group in optimizer.param_groups:
            group["lr"] = RATE * share
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses


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
    np.testing.assert_allclose(ours, plain_losses(name, items, tmp_path / "start"), atol=1e-4)
    assert len(ours) == STEPS and ours[-10:].mean() < ours[:10].mean() - 0.01  # it did learn


@pytest.mark.parametrize("name", list(TASKS))
def test_transformers_opens_the_folder_and_says_the_same(name, model, tmp_path):
    from sememe.tasks.inference import run

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
    for theirs, ours in zip(logits.numpy(), run(task.objective, items, task.config), strict=True):
        np.testing.assert_allclose(ours, theirs[: len(ours)], atol=1e-5)
