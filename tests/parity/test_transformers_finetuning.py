"""Fine-tuning against a plain loop of `transformers`: the same losses, the same logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

from peers import BATCH, RATE, STEPS, padded, plain_losses

from presets import bert_config, gpt_config
from sememe.errors import ArtifactError
from sememe.models.bert.network import BERTNetwork
from sememe.models.gpt.network import GPTNetwork
from sememe.tasks.classify import Classify, Pairs
from sememe.tasks.texts import Choose, Regress
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

WORDS = ["the", "old", "cat", "sat", "on", "warm", "dog", "ran", "猫", "狗", "很", "好看"]


def texts(num: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(3, 14))) for _ in range(num)]


@pytest.fixture(scope="module")
def model() -> Any:
    tokenizer = SubwordTokenizer.train(
        texts(50, 0), kind="wordpiece", vocab_size=200, min_frequency=1
    )
    config = bert_config(
        "tiny", vocab_size=tokenizer.vocab_size, max_length=48, width=32, dropout=0.0,
        attention_dropout=0.0, initial_std=0.08,
    )  # fmt: skip
    return BERTNetwork(config, seed=3).eval(), tokenizer


NUM = 100
ROWS = {
    "classify": [{"text": t, "label": "abc"[min(2, t.count("cat"))]} for t in texts(NUM, 1)],
    "pairs": [
        {"text": a, "second": b, "label": "yes" if "cat" in a else "no"}
        for a, b in zip(texts(NUM, 1), texts(NUM, 2), strict=True)
    ],
    "regress": [
        {"text": a, "second": b, "score": float(a.count("cat"))}
        for a, b in zip(texts(NUM, 1), texts(NUM, 2), strict=True)
    ],
    "choose": [
        {"text": a, "choices": choices, "label": str(np.argmax([c.count("cat") for c in choices]))}
        for a, *choices in zip(*(texts(NUM, seed) for seed in range(1, 5)), strict=True)
    ],
}  # fmt: skip
TASKS = {"classify": Classify, "pairs": Pairs, "regress": Regress, "choose": Choose}


def fitted(name: str, model: Any, **options: Any) -> Any:
    settings = {
        "steps": STEPS, "batch_size": BATCH, "learning_rate": RATE, "length": 40, "device": "cpu",
        "epsilon": 1e-8, "workers": 1, "seed": 7,
    }  # fmt: skip
    task = TASKS[name](model, **settings | options)
    return task.fit(ROWS[name], dev=False)


def inputs_of(items: list[Any], has_choices: bool, pad_id: int | None = None) -> dict[str, Any]:
    batch = padded(items)
    if pad_id is not None:
        ids, mask = batch["input_ids"], batch["attention_mask"]
        return {"input_ids": ids.masked_fill(mask == 0, pad_id), "attention_mask": mask}
    if has_choices:
        batch = {name: x.view(len(items), -1, x.shape[-1]) for name, x in batch.items()}
    return batch


def their_losses(name: str, task: Any, start: Path) -> list[float]:
    """What a plain loop gives, from the same start."""
    classes = {"choose": transformers.AutoModelForMultipleChoice}
    cls = classes.get(name, transformers.AutoModelForSequenceClassification)
    peer = cls.from_pretrained(start).train()
    pad_id = peer.config.pad_token_id if task.coder.kind == "gpt" else None

    def labelled(batch: list[Any]) -> dict[str, Any]:
        labels = torch.from_numpy(np.stack([item.target for item in batch]))
        return {**inputs_of(batch, name == "choose", pad_id), "labels": labels}

    items = task.encode(task.read(ROWS[name], labelled=True))
    return plain_losses(peer, items, labelled, task.config.sort_batches)


@pytest.mark.parametrize("name", list(TASKS))
def test_the_losses_of_a_hundred_steps_are_those_of_a_plain_loop(name, model, tmp_path):
    start = fitted(name, model, learning_rate=1e-30, steps=1)  # as it is before the first step
    start.save(tmp_path / "start")
    task = fitted(name, model)
    ours = task.history.column("loss")
    assert len(ours) == STEPS
    theirs = their_losses(name, task, tmp_path / "start")
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert ours[-10:].mean() < ours[:10].mean() - 0.01  # it did learn


@pytest.mark.parametrize("name", list(TASKS))
def test_transformers_opens_the_folder_and_says_the_same(name, model, tmp_path):
    task = fitted(name, model, steps=10)
    task.save(tmp_path / "task")
    items = task.encode(task.read(ROWS[name], labelled=True))[:10]
    cls = {
        "choose": transformers.AutoModelForMultipleChoice,
    }.get(name, transformers.AutoModelForSequenceClassification)
    peer, info = cls.from_pretrained(tmp_path / "task", output_loading_info=True)
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    if task.labels:
        assert [peer.config.id2label[i] for i in range(len(task.labels))] == task.labels
    with torch.no_grad():
        logits = peer.eval()(**inputs_of(items, name == "choose")).logits.numpy()
    from sememe.tasks.objective import run_items

    ours = np.stack(run_items(task.objective, items, task.config))
    np.testing.assert_allclose(ours, logits, atol=1e-5)


def small_gpt(norm: str) -> Any:
    tokenizer = SubwordTokenizer.train(texts(50, 0), kind="bpe", vocab_size=300, min_frequency=1)
    config = gpt_config(
        "tiny", vocab_size=tokenizer.vocab_size, max_length=64, width=32, norm=norm, dropout=0.0,
        attention_dropout=0.0, initial_std=0.08,
    )  # fmt: skip
    return GPTNetwork(config), tokenizer


def test_the_losses_of_a_gpt_are_those_of_a_plain_loop(tmp_path):
    model = small_gpt("pre")
    start = fitted("classify", model, learning_rate=1e-30, steps=1, length=60)
    start.save(tmp_path / "start")
    task = fitted("classify", model, length=60)
    ours = task.history.column("loss")
    np.testing.assert_allclose(ours, their_losses("classify", task, tmp_path / "start"), atol=1e-4)
    assert ours[-10:].mean() < ours[:10].mean() - 0.01


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_transformers_opens_a_gpt_that_classifies(norm, tmp_path):
    task = fitted("classify", small_gpt(norm), steps=5, length=60)
    task.save(tmp_path / "task")
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "task")
    from sememe.tasks.objective import run_items

    for item in task.encode(task.read(ROWS["classify"], labelled=True))[:5]:
        ids = torch.from_numpy(item.sequences[0].ids_T.astype(np.int64))[None]
        with torch.no_grad():
            logits = peer.eval()(ids).logits[0].numpy()
        (ours,) = run_items(task.objective, [item], task.config)
        np.testing.assert_allclose(ours, logits, atol=1e-5)
    own = transformers.AutoTokenizer.from_pretrained(tmp_path / "task")
    assert (own.convert_tokens_to_ids("<|extract|>"),) == task.coder.marks.after


def test_a_folder_fine_tuned_by_transformers_is_a_task(model, tmp_path):
    from sememe.tasks.task import Task

    task = fitted("pairs", model, steps=20)
    task.save(tmp_path / "ours")
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours")
    peer.save_pretrained(tmp_path / "theirs")
    transformers.AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(
        tmp_path / "theirs"
    )
    again = Pairs.load(tmp_path / "theirs")
    rows = ROWS["pairs"][:9]
    for ours, theirs in zip(task.predict(rows), again.predict(rows), strict=True):
        assert ours.label == theirs.label
        assert ours.probability == pytest.approx(theirs.probability, abs=1e-5)
    assert type(Task.load(tmp_path / "theirs")) is Classify
    with pytest.raises(ArtifactError, match="fine-tuned for classify, not choose"):
        Choose.load(tmp_path / "theirs")


SETS = [
    {"text": t, "labels": [name for name, word in (("cats", "cat"), ("狗", "狗")) if word in t]}
    for t in texts(NUM, 1)
]  # fmt: skip


def fitted_sets(model: Any, **options: Any) -> Any:
    settings = {
        "steps": STEPS, "batch_size": BATCH, "learning_rate": RATE, "length": 40, "device": "cpu",
        "epsilon": 1e-8, "workers": 1, "seed": 7,
    }  # fmt: skip
    return Classify(model, **settings | options).fit(SETS, dev=False)


@pytest.mark.parametrize("kind", ["bert", "gpt"])
def test_label_sets_are_those_of_transformers(kind, model, tmp_path):
    """Losses of a hundred steps, logits, and predictions by problem_type."""
    model = model if kind == "bert" else small_gpt("pre")
    start = fitted_sets(model, learning_rate=1e-30, steps=1)
    start.save(tmp_path / "start")
    task = fitted_sets(model)
    items = task.encode(task.read(SETS, labelled=True))
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "start")
    assert peer.config.problem_type == "multi_label_classification"
    pad_id = peer.config.pad_token_id if kind == "gpt" else None

    def labelled(batch: list[Any]) -> dict[str, Any]:
        labels = task.objective.head.collate([item.target for item in batch])[:, 0]
        return {**inputs_of(batch, False, pad_id), "labels": labels}

    theirs = plain_losses(peer.train(), items, labelled, task.config.sort_batches)
    ours = task.history.column("loss")
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert ours[-10:].mean() < ours[:10].mean() - 0.01
    assert_same_sets(task, items[:10], tmp_path / "task", pad_id)


def assert_same_sets(task: Any, items: list[Any], folder: Path, pad_id: int | None) -> None:
    """The saved folder opens in transformers, with the same logits and the same labels."""
    task.save(folder)
    peer, info = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, output_loading_info=True
    )
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert peer.config.problem_type == "multi_label_classification"
    with torch.no_grad():
        logits = peer.eval()(**inputs_of(items, False, pad_id)).logits
    rows = [SETS[item.row_index] for item in items]
    for own, one in zip(torch.sigmoid(logits).tolist(), task.predict(rows), strict=True):
        said = dict(zip((peer.config.id2label[i] for i in range(len(own))), own, strict=True))
        assert one.probabilities == pytest.approx(said, abs=1e-5)
        assert {*one.labels} == {name for name, p in said.items() if p >= 0.5}


def test_a_foreign_folder_of_label_sets_is_a_task(model, tmp_path):
    task = fitted_sets(model, steps=20)
    task.save(tmp_path / "ours")
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "ours")
    peer.save_pretrained(tmp_path / "theirs")
    transformers.AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(
        tmp_path / "theirs"
    )
    again = Classify.load(tmp_path / "theirs")
    rows = SETS[:9]
    for ours, theirs in zip(task.predict(rows), again.predict(rows), strict=True):
        assert ours.labels == theirs.labels
        assert ours.probabilities == pytest.approx(theirs.probabilities, abs=1e-5)
    assert again.evaluate(SETS).metrics == pytest.approx(task.evaluate(SETS).metrics)
    tuned = Classify(tmp_path / "theirs", steps=1, length=40, device="cpu").fit(SETS, dev=False)
    assert tuned.has_sets and tuned.labels == task.labels


@pytest.mark.parametrize("kind", ["bert", "gpt"])
def test_calibrated_probabilities_are_those_of_transformers(kind, model, tmp_path):
    """The temperature is in the head's weights, so that others see the same probabilities."""
    model = model if kind == "bert" else small_gpt("pre")
    options = {"calibrate": True, "calibration_share": 0.3, "steps": 40}
    task = fitted_sets(model, **options)
    assert task.learned["calibration"]["temperature"] != 1
    items = task.encode(task.read(SETS, labelled=True))[:10]
    pad_id = task.coder.tokenizer.pad_id if kind == "gpt" else None
    assert_same_sets(task, items, tmp_path / "sets", pad_id)
    one = fitted("classify", model, **options)
    one.save(tmp_path / "one")
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "one").eval()
    items = one.encode(one.read(ROWS["classify"], labelled=True))[:10]
    with torch.no_grad():
        theirs = torch.softmax(peer(**inputs_of(items, False, pad_id)).logits, -1).numpy()
    ours = [[*own.probabilities.values()] for own in one.predict(ROWS["classify"][:10])]
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
