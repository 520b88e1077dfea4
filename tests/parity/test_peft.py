"""LoRA beside PEFT: the same losses, folders that open on both sides, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
peft = pytest.importorskip("peft")
pytest.importorskip("tokenizers")

import families
from peers import BATCH, RATE, STEPS, padded, plain_losses
from test_transformers_finetuning import ROWS, inputs_of, small_gpt, texts

import sememe
from presets import bert_config
from sememe.errors import ArtifactError, OptionError
from sememe.models.bert.network import BERTNetwork
from sememe.models.huggingface.folder import save_folder
from sememe.tasks.objective import run_items
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

OPTIONS: dict[str, Any] = {
    "batch_size": BATCH, "learning_rate": RATE, "length": 40, "device": "cpu", "epsilon": 1e-8,
    "workers": 1, "seed": 7, "lora": 4, "lora_dropout": 0.0,
}  # fmt: skip
TASKS = {"classify": sememe.Classify, "pairs": sememe.Pairs, "regress": sememe.Regress,
         "choose": sememe.Choose}  # fmt: skip
CLASSES = {"choose": "AutoModelForMultipleChoice"}


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    tokenizer = SubwordTokenizer.train(
        texts(50, 0), kind="wordpiece", vocab_size=200, min_frequency=1
    )
    config = bert_config(
        "tiny", vocab_size=tokenizer.vocab_size, max_length=48, width=32, dropout=0.0,
        attention_dropout=0.0, initial_std=0.08,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("models") / "base"
    save_folder(BERTNetwork(config, seed=3), tokenizer, folder)
    return folder


def fitted(name: str, base: Path, **options: Any) -> Any:
    settings = OPTIONS | ({} if "steps" in options else {"steps": 10}) | options
    return TASKS[name](base, **settings).fit(ROWS[name], dev=False)


def opened_by_peft(name: str, base: Path, folder: Path, **options: Any) -> Any:
    cls = getattr(transformers, CLASSES.get(name, "AutoModelForSequenceClassification"))
    labels = json.loads((folder / "config.json").read_text()).get("id2label")
    more = {"num_labels": len(labels)} if labels else {}
    return peft.PeftModel.from_pretrained(cls.from_pretrained(base, **more), folder, **options)


@pytest.mark.parametrize("targets", ["all", "attention", "query-value"])
@pytest.mark.parametrize("name", list(TASKS))
def test_peft_opens_the_folder_and_says_the_same(name, targets, base, tmp_path):
    if name != "classify" and targets != "all":
        pytest.skip("one task is enough for every choice of matrices")
    task = fitted(name, base, lora_targets=targets)
    task.save(tmp_path / "task")
    items = task.encode(task.read(ROWS[name], labelled=True))[:10]
    peer = opened_by_peft(name, base, tmp_path / "task").eval()
    with torch.no_grad():
        logits = peer(**inputs_of(items, name == "choose")).logits.numpy()
    ours = np.stack(run_items(task.objective, items, task.config))
    np.testing.assert_allclose(ours, logits, atol=1e-5)
    again = sememe.load(tmp_path / "task")
    assert again.predict(ROWS[name][:5]) == task.predict(ROWS[name][:5])
    again.save(tmp_path / "again")  # an adapter stays one
    names = ("adapter_config.json", "adapter_model.safetensors")
    for file in names:
        assert (tmp_path / "again" / file).read_bytes() == (tmp_path / "task" / file).read_bytes()
    assert not (tmp_path / "again" / "model.safetensors").exists()


def test_the_losses_are_those_of_a_plain_loop_over_peft(base, tmp_path):
    start = fitted("classify", base, learning_rate=1e-30, steps=1)
    start.save(tmp_path / "start")
    task = fitted("classify", base, steps=STEPS)
    peer = opened_by_peft("classify", base, tmp_path / "start", is_trainable=True).train()
    items = task.encode(task.read(ROWS["classify"], labelled=True))

    def labelled(batch: list[Any]) -> dict[str, Any]:
        labels = torch.from_numpy(np.stack([item.target for item in batch]))
        return {**padded(batch), "labels": labels}

    ours = task.history.column("loss")
    theirs = plain_losses(peer, items, labelled, task.config.sort_batches)
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert ours[-10:].mean() < ours[:10].mean() - 0.01


def test_the_marks_of_a_gpt_are_in_its_adapter(tmp_path):
    network, tokenizer = small_gpt("pre")
    save_folder(network, tokenizer, tmp_path / "gpt")
    task = fitted("classify", tmp_path / "gpt", length=60)
    task.save(tmp_path / "task")
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "gpt", num_labels=3
    )
    peer.resize_token_embeddings(len(task.coder.tokenizer))
    peer = peft.PeftModel.from_pretrained(peer, tmp_path / "task").eval()
    again = sememe.load(tmp_path / "task")
    for item in task.encode(task.read(ROWS["classify"], labelled=True))[:5]:
        ids = torch.from_numpy(item.sequences[0].ids_T.astype(np.int64))[None]
        with torch.no_grad():
            logits = peer(ids).logits[0].numpy()
        for own in (task, again):
            (ours,) = run_items(own.objective, [item], own.config)
            np.testing.assert_allclose(ours, logits, atol=1e-5)


@pytest.mark.parametrize("family", families.FAMILIES)
def test_encoders_of_every_family(family, tmp_path):
    peer = families.write(family, tmp_path / "base")
    rows = [("the old cat", "a"), ("a dog ran", "b")] * 8
    task = sememe.Classify(tmp_path / "base", **OPTIONS | {"steps": 4, "learning_rate": 0.02})
    task.fit(rows, dev=False).save(tmp_path / "task")
    again = sememe.load(tmp_path / "task")
    texts_ = ["the old mat", "a dog"]
    assert again.predict(texts_) == task.predict(texts_)
    content = json.loads((tmp_path / "task" / "adapter_config.json").read_text())
    if content["task_type"] is None:  # no class of theirs has this head
        inner = peft.PeftModel.from_pretrained(
            transformers.AutoModel.from_pretrained(tmp_path / "base"), tmp_path / "task"
        ).eval()
    else:
        inner = opened_by_peft("classify", tmp_path / "base", tmp_path / "task").eval()
        inner = inner.base_model.model.base_model
    network = again.objective.encoder.network
    ids = torch.tensor([again.coder.tokenizer.encode("the old mat").ids.tolist()])
    with torch.no_grad():
        theirs = inner(ids).last_hidden_state
        ours = network(ids)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    before = peer.base_model(ids).last_hidden_state
    assert not torch.allclose(before, theirs, atol=1e-3)  # it did learn


def written_by_peft(base: Path, folder: Path, **options: Any) -> Any:
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    settings = {"r": 3, "lora_alpha": 5, "target_modules": ["query", "dense"]} | options
    peer = peft.get_peft_model(peer, peft.LoraConfig(task_type="SEQ_CLS", **settings))
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in peer.parameters():
            if parameter.requires_grad:
                parameter.add_(0.1 * torch.randn(parameter.shape))
    peer.save_pretrained(folder)
    return peer.eval()


@pytest.mark.parametrize("more", [{}, {"use_rslora": True}, {"modules_to_save": ["pooler"]}])
def test_a_folder_of_peft_opens(more, base, tmp_path):
    if "modules_to_save" in more:
        more = {**more, "target_modules": ["query", "value"]}
    peer = written_by_peft(base, tmp_path / "theirs", **more)
    task = sememe.load(tmp_path / "theirs")
    assert task.kind == "classify" and task.labels == ["LABEL_0", "LABEL_1", "LABEL_2"]
    rows = [row["text"] for row in ROWS["classify"][:6]]
    items = task.encode(task.read(rows, labelled=False))
    with torch.no_grad():
        logits = peer(**padded(items)).logits.numpy()
    np.testing.assert_allclose(
        np.stack(run_items(task.objective, items, task.config)), logits, atol=1e-5
    )
    assert sememe.load(tmp_path / "theirs", able="embed").embed(["old cat"]).shape == (1, 32)


def test_an_adapter_becomes_a_whole_model(base, tmp_path):
    from sememe.models.registry import convert

    task = fitted("classify", base)
    task.save(tmp_path / "task")
    convert(tmp_path / "task", tmp_path / "whole")
    assert not (tmp_path / "whole" / "adapter_config.json").exists()
    rows = ROWS["classify"][:5]
    assert sememe.load(tmp_path / "whole").predict(rows) == task.predict(rows)
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "whole")
    assert peer.config.num_labels == 3


def test_the_base_must_be_there_and_the_same(base, tmp_path):
    import shutil

    shutil.copytree(base, tmp_path / "mine")
    fitted("classify", tmp_path / "mine").save(tmp_path / "task")
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "mine", tmp_path / "elsewhere" / "mine")
    with pytest.raises(ArtifactError, match=r"adapter of .*mine, which is missing"):
        sememe.load(tmp_path / "task")
    shutil.move(tmp_path / "task", tmp_path / "elsewhere" / "task")  # beside it
    assert sememe.load(tmp_path / "elsewhere" / "task").predict(["old cat"])
    config = bert_config("tiny", vocab_size=200, max_length=48, width=32)
    network = BERTNetwork(config, seed=4)
    save_folder(network, SubwordTokenizer.load(base), tmp_path / "mine")
    shutil.rmtree(tmp_path / "elsewhere" / "mine")
    shutil.move(tmp_path / "elsewhere" / "task", tmp_path / "task")
    with pytest.raises(ArtifactError, match="other weights"):
        sememe.load(tmp_path / "task")


def test_what_is_no_plain_lora_is_refused(base, tmp_path):
    written_by_peft(base, tmp_path / "dora", use_dora=True)
    with pytest.raises(ArtifactError, match="use_dora"):
        sememe.load(tmp_path / "dora")
    with pytest.raises(OptionError, match="folder"):
        sememe.Classify(
            (BERTNetwork(bert_config("tiny", vocab_size=200)), SubwordTokenizer.load(base)),
            **OPTIONS,
        ).fit(ROWS["classify"], dev=False)  # fmt: skip
    with pytest.raises(OptionError, match="frozen"):
        sememe.Classify(base, **OPTIONS, freeze=True).fit(ROWS["classify"], dev=False)
    fitted("classify", base).save(tmp_path / "task")
    with pytest.raises(OptionError, match="adapter itself"):
        fitted("classify", tmp_path / "task")


def test_a_continued_bert_and_gpt_are_adapters_of_their_base(base, tmp_path):
    network, tokenizer = small_gpt("pre")
    save_folder(network, tokenizer, tmp_path / "gpt")
    for cls, start, head in (
        (sememe.BERT, base, "AutoModelForPreTraining"),
        (sememe.GPT, tmp_path / "gpt", "AutoModelForCausalLM"),
    ):
        model = cls(
            pretrained=start, lora=4, steps=8, batch_size=4, length=24, workers=1,
            learning_rate=0.01, evaluate_batches=0,
        ).fit(texts(80, 5), out=tmp_path / cls.kind / "more")  # fmt: skip
        again = sememe.load(tmp_path / cls.kind / "more")
        ids = torch.tensor([again.tokenizer.encode("the old cat sat").ids.tolist()])
        peer = peft.PeftModel.from_pretrained(
            getattr(transformers, head).from_pretrained(start), tmp_path / cls.kind / "more"
        ).eval()
        with torch.no_grad():
            theirs = peer(ids, output_hidden_states=True).hidden_states[-1]
            torch.testing.assert_close(again.network(ids), theirs, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(model.network(ids), theirs, atol=1e-5, rtol=1e-4)
    with pytest.raises(OptionError, match="--from"):
        sememe.BERT(lora=4, steps=1).fit(texts(80, 5))
