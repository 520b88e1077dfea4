"""Model folders: whole, opened again, and refused with a word when something is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from presets import bert_config, gpt_config
from sememe.errors import ArtifactError, WriteError
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.network import BERTNetwork
from sememe.models.gpt.config import GPTConfig
from sememe.models.gpt.network import GPTNetwork
from sememe.models.huggingface.folder import (
    convert_pickles,
    load_folder,
    load_network,
    save_folder,
    write_network,
)
from sememe.models.huggingface.layout import (
    from_huggingface,
    is_pickled,
    network_kind,
    to_huggingface,
)
from sememe.models.registry import describe
from sememe.storage.tensors import read_tensors, write_tensors


@pytest.fixture(name="folder")
def folder_fixture(bert, wordpiece, tmp_path):
    save_folder(bert, wordpiece, tmp_path / "model", {"plan": {"steps": 3}})
    return tmp_path / "model"


def change(folder, **values):
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(content | values))


def test_there_and_back(bert, wordpiece, gpt, bpe, tmp_path):
    for network, tokenizer in ((bert, wordpiece), (gpt, bpe)):
        folder = tmp_path / type(network).__name__
        save_folder(network, tokenizer, folder)
        again, pieces = load_folder(folder)
        assert again.config == network.config and not again.training
        assert (
            pieces.encode("The cat 猫").ids.tolist() == tokenizer.encode("The cat 猫").ids.tolist()
        )
        for name, tensor in network.state_dict().items():
            assert torch.equal(tensor, again.state_dict()[name]), name


def test_manifest_lies_beside_a_pure_config(folder):
    manifest = json.loads((folder / "sememe.json").read_text())
    assert manifest["kind"] == "bert" and manifest["plan"] == {"steps": 3}
    config = json.loads((folder / "config.json").read_text())
    assert not {"width", "num_heads", "positions", "kind"} & set(config)
    assert config["architectures"] == ["BertForPreTraining"]


def test_padded_vocabulary_never_reaches_a_file(folder, bert):
    tensors = read_tensors(folder / "model.safetensors")
    assert bert.embedding.tokens.weight.shape[0] % 64 == 0
    assert bert.embedding.tokens.weight.shape[0] != bert.config.vocab_size
    for name in ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias"):
        assert len(tensors[name]) == bert.config.vocab_size


def test_sine_positions_survive(wordpiece, tmp_path):
    config = bert_config(
        "tiny", vocab_size=wordpiece.vocab_size, width=32, positions="sinusoidal", max_length=40,
        start="quick",
    )  # fmt: skip
    save_folder(BERTNetwork(config), wordpiece, tmp_path / "waves")
    again, _ = load_folder(tmp_path / "waves")
    assert again.config == config
    assert describe(tmp_path / "waves")["config"] == config.to_dict()
    assert "embedding.positions.weight" not in dict(again.named_parameters())


@pytest.mark.parametrize(
    "config",
    [
        BERTConfig(vocab_size=99, width=48, num_heads=3, inner_size=100, activation="relu"),
        GPTConfig(vocab_size=99, norm="pre", inner_size=30, dropout=0.2),
        gpt_config("gpt1"),
    ],
)
def test_configs_there_and_back(config):
    again = from_huggingface(to_huggingface(config), "config.json")
    assert again.inner_width == config.inner_width
    assert again.to_dict() | {"inner_size": 0} == config.to_dict() | {"inner_size": 0}


def test_another_model_is_refused(folder):
    change(folder, model_type="t5")
    with pytest.raises(ArtifactError, match="'t5'; sememe opens bert, roberta"):
        load_network(folder)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"hidden_act": "silu"}, "activation 'silu'"),
        ({"num_attention_heads": 5}, "multiple of num_heads"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings"),
        ({"vocab_size": 977}, "word_embeddings.weight is .* but config.json needs 977"),
        ({"num_hidden_layers": 3}, r"lacks the tensor bert.encoder.layer.2"),
    ],
)
def test_configs_that_do_not_fit_are_refused(folder, values, said):
    change(folder, **values)
    with pytest.raises(ArtifactError, match=said):
        load_network(folder)


def test_tensors_of_another_model_are_refused(folder, gpt, tmp_path):
    write_network(gpt, tmp_path)
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(ArtifactError, match="holds another model"):
        load_network(tmp_path)


def test_missing_tensor_is_named(folder):
    name = "bert.encoder.layer.1.output.dense.bias"
    tensors = {own: np.array(x) for own, x in read_tensors(folder / "model.safetensors").items()}
    del tensors[name]
    write_tensors(folder / "model.safetensors", tensors)
    with pytest.raises(ArtifactError, match=f"lacks the tensor {name}"):
        load_network(folder)


def test_damaged_files_are_named(folder, tmp_path):
    with pytest.raises(ArtifactError, match="no model folder"):
        load_network(tmp_path / "nowhere")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])
    with pytest.raises(ArtifactError, match=r"model\.safetensors cannot be used"):
        load_network(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ArtifactError, match="is missing"):
        load_network(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ArtifactError, match="cannot be used"):
        load_network(folder)


def test_missing_shard_is_named(folder):
    index = {"weight_map": {"bert.pooler.dense.bias": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ArtifactError, match=r"00002\.safetensors is missing"):
        load_network(folder)


def test_tokenizer_with_too_many_tokens_is_refused(wordpiece, tmp_path):
    network = BERTNetwork(bert_config("tiny", vocab_size=wordpiece.vocab_size - 1, width=32))
    with pytest.raises(ArtifactError, match="do not belong together"):
        save_folder(network, wordpiece, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_folder_of_another_kind_is_not_replaced(folder, gpt, bpe):
    with pytest.raises(WriteError, match="not a gpt model"):
        save_folder(gpt, bpe, folder)


def make_pickle(folder, target, content):
    target.mkdir()
    for name in ("config.json", "tokenizer.json", "vocab.txt"):
        (target / name).write_bytes((folder / name).read_bytes())
    torch.save(content, target / "pytorch_model.bin")


def test_pickles_are_refused_and_converted(folder, tmp_path, bert):
    tensors = {
        name: torch.from_numpy(np.array(array))
        for name, array in read_tensors(folder / "model.safetensors").items()
    }
    tied = tensors["bert.embeddings.word_embeddings.weight"]
    pickled = tmp_path / "pickled"
    make_pickle(folder, pickled, tensors | {"cls.predictions.decoder.weight": tied})
    with pytest.raises(ArtifactError, match="sememe convert"):
        load_network(pickled)
    assert is_pickled(pickled) and not is_pickled(folder)
    assert network_kind(folder) == "bert" and network_kind(tmp_path) is None
    convert_pickles(pickled, tmp_path / "safe")
    assert not list((tmp_path / "safe").glob("*.bin"))
    again, _ = load_folder(tmp_path / "safe")
    ids = torch.randint(0, bert.config.vocab_size, (2, 7))
    with torch.no_grad():
        assert torch.equal(again(ids), bert(ids))
    with pytest.raises(WriteError, match="not empty"):
        convert_pickles(pickled, tmp_path / "safe")


class Harmful:
    def __reduce__(self):
        return (print, ("this must never run",))


def test_pickle_that_runs_something_is_refused(folder, tmp_path, capsys):
    make_pickle(folder, tmp_path / "harmful", {"weight": Harmful()})
    with pytest.raises(ArtifactError, match="not a file of tensors alone"):
        convert_pickles(tmp_path / "harmful", tmp_path / "safe")
    assert not (tmp_path / "safe").exists()
    assert "never run" not in capsys.readouterr().out


def test_gpt_without_its_prefix_opens(gpt, tmp_path):
    write_network(gpt, tmp_path)
    tensors = read_tensors(tmp_path / "model.safetensors")
    plain = {name.removeprefix("transformer."): np.array(x) for name, x in tensors.items()}
    plain["h.0.attn.bias"] = np.tril(np.ones((1, 1, 24, 24), np.float32))
    write_tensors(tmp_path / "model.safetensors", plain)
    again = load_network(tmp_path)
    assert isinstance(again, GPTNetwork)
    ids = torch.randint(0, gpt.config.vocab_size, (1, 7))
    with torch.no_grad():
        assert torch.equal(again(ids), gpt(ids))
