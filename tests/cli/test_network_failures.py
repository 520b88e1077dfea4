"""What goes wrong with networks: one sentence each, exit code 2, nothing half-written."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from untrained import write_bert

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from sememe.models.huggingface.folder import load_folder
from sememe.storage.tensors import read_tensors, write_tensors

TEXTS = ["The animal didn't cross the street because it was too tired.", "国王和女王吃早饭。"] * 3
TINY = (
    "--num-layers", 1, "--width", 32, "--num-heads", 2, "--max-length", 32, "--length", 32,
    "--batch-size", 8, "--workers", 1, "--evaluate-batches", 1, "--validation-share", 0.1,
    "--device", "cpu", "--quiet",
)  # fmt: skip
TENSOR = "bert.encoder.layer.1.output.dense.bias"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a small BERT that has learned nothing."""
    folder = tmp_path_factory.mktemp("whole") / "bert"
    return write_bert(folder, TEXTS, vocab_size=220, max_length=24, width=32)


@pytest.fixture
def bert(whole, tmp_path):
    """A copy of it that a test may damage."""
    return Path(shutil.copytree(whole, tmp_path / "bert"))


def refused(result, *says):
    assert result.code == 2 and "Traceback" not in result.err
    assert result.err.count("\n") == 1 and result.err.startswith("Error: ")
    for words in says:
        assert words in result.err


def change_tensor(folder, change):
    tensors = {name: np.array(x) for name, x in read_tensors(folder / "model.safetensors").items()}
    change(tensors)
    write_tensors(folder / "model.safetensors", tensors)


def make_pickle(folder, content):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")


def test_a_long_text_is_split_and_never_cut(sememe, bert, tmp_path):
    middle = "the street was too tired . " * 20
    shown = sememe("fill", bert, f"[MASK] {middle} [MASK]", "--num", 1, "--json").json
    assert len(shown["masks"]) == 2
    alone = sememe("fill", bert, "[MASK] street", "--num", 1, "--json").json
    assert len(alone["masks"]) == 1
    rows = [f"{middle} tired", f"{middle} street", "国王和女王吃早饭。" * 20 + "街", "国王"]
    (tmp_path / "rows.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    sememe("embed", bert, "rows.txt", "--out", "v.npy", "--quiet")
    vectors = np.load("v.npy")
    assert vectors.shape == (4, 32)
    assert not np.allclose(vectors[0], vectors[1], atol=1e-6), "the last word must count"
    refused(
        sememe("next", bert, middle, "It was tired.", fails=True),
        "sees no more than 24 at once", "give the end of the first and the start",
    )  # fmt: skip


def test_a_missing_tensor_and_one_of_another_shape(sememe, bert):
    change_tensor(bert, lambda tensors: tensors.update({TENSOR: np.zeros(5, np.float32)}))
    refused(sememe("fill", bert, "A [MASK].", fails=True), TENSOR, "is 5", "needs 32")
    change_tensor(bert, lambda tensors: tensors.pop(TENSOR))
    refused(sememe("fill", bert, "A [MASK].", fails=True), f"lacks the tensor {TENSOR}")
    refused(sememe("embed", bert, "rows.txt", "--out", "v.npy", fails=True))


def test_the_weights_of_another_model(sememe, bert):
    write_tensors(bert / "model.safetensors", {"h.0.attn.weight": np.zeros((2, 2), np.float32)})
    refused(sememe("next", bert, "A", "B", fails=True), "holds another model")
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps(config | {"model_type": "t5"}))
    refused(sememe("fill", bert, "A [MASK].", fails=True), "'t5'", "bert, roberta")


def test_a_vocabulary_without_special_tokens(sememe, bert, corpus):
    lines = (bert / "vocab.txt").read_text(encoding="utf-8").splitlines()
    bare = [line for line in lines if line not in ("[MASK]", "[CLS]")]
    (bert / "tokenizer.json").unlink()
    (bert / "vocab.txt").write_text("\n".join(bare) + "\n", encoding="utf-8")
    says = ("lacks [CLS], [MASK]", "[PAD]")
    refused(sememe("fill", bert, "A [MASK].", fails=True), *says)
    options = ("--tokenizer", bert, "--steps", 2, "--out", "model", *TINY)
    refused(sememe("train", "bert", corpus, *options, fails=True), *says)
    assert not Path("model").exists()


def test_pickles(sememe, bert, tmp_path, monkeypatch):
    network, _ = load_folder(bert)
    tensors = {name: torch.from_numpy(x) for name, x in tensors_of(bert).items()}
    make_pickle(bert, tensors)
    refused(sememe("fill", bert, "A [MASK].", fails=True), "pickle", f"sememe convert {bert}")
    sememe("convert", bert, "safe")
    again, _ = load_folder("safe")
    assert torch.equal(again.pooler.weight, network.pooler.weight)
    make_harmful(bert)
    refused(sememe("convert", bert, "harmful", fails=True), "not a file of tensors alone")
    assert not Path("harmful").exists()


def tensors_of(folder):
    return {name: np.array(x) for name, x in read_tensors(folder / "model.safetensors").items()}


class Harmful:
    def __reduce__(self):
        return (print, ("this must never run",))


def make_harmful(folder):
    torch.save({"weight": Harmful()}, folder / "pytorch_model.bin")


def test_the_checkpoint_of_another_training(sememe, corpus, monkeypatch):
    from sememe.training.loop import Loop

    def stop_at_two(self, *_):
        if self.step == 2:
            self._stop()
        return original(self, *_)

    original = Loop._agreed
    with monkeypatch.context() as patch:
        patch.setattr(Loop, "_agreed", stop_at_two)
        ran = sememe(
            "train", "bert", corpus, "--vocab-size", 160, "--steps", 6, "--out", "m", *TINY,
            fails=True,
        )  # fmt: skip
    assert ran.code == 130 and "--resume" in ran.err
    again = ("train", "bert", corpus, "--steps", 6, "--out", "m", "--resume", *TINY)
    other = sememe(*again, "--vocab-size", 160, "--learning-rate", 0.5, fails=True)
    refused(other, "learning_rate was 0.002, is 0.5", "without resume")
    refused(sememe(*again, "--vocab-size", 170, fails=True), "vocab_size was 160, is 170")
    text = Path("other.txt")
    text.write_text(corpus.read_text().replace("cat", "cow"))
    swapped = tuple(text if item is corpus else item for item in again)
    refused(sememe(*swapped, "--vocab-size", 160, fails=True), "other text")
    gpt = ("train", "gpt", corpus, "--steps", 6, "--vocab-size", 300, "--out", "m", "--resume")
    refused(sememe(*gpt, *TINY, fails=True), "other options")
    (checkpoint,) = Path("m.checkpoints").glob("step-*")
    change_tensor(checkpoint, lambda tensors: tensors.popitem())
    refused(sememe(*again, "--vocab-size", 160, fails=True), "checksum")
    (checkpoint / "SHA256SUMS").unlink()  # as an earlier version wrote it
    refused(sememe(*again, "--vocab-size", 160, fails=True), "of another network")


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB"), "the GPU"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "this machine"),
        (MemoryError("Unable to allocate 9 GiB"), "this machine"),
    ],
)
def test_too_little_memory_names_what_to_lower(sememe, corpus, bert, monkeypatch, error, place):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("sememe.models.bert.network.MaskedObjective.forward", fail)
    options = ("--vocab-size", 160, "--steps", 3, "--out", "m", *TINY)
    refused(
        sememe("train", "bert", corpus, *options, fails=True),
        f"The memory of {place} is too small for 8 rows of 32 tokens", "raise accumulate (it is 1",
        "switch recompute on", "lower batch_size, length or the preset",
    )  # fmt: skip
    monkeypatch.setattr("sememe.models.bert.network.BERTNetwork.forward", fail)
    refused(sememe("fill", bert, "A [MASK].", fails=True), "memory")


def test_other_failures_of_pytorch_are_not_hidden(sememe, bert, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr("sememe.models.bert.network.BERTNetwork.forward", fail)
    result = sememe("fill", bert, "A [MASK].", fails=True)
    assert isinstance(result.exception, RuntimeError)
