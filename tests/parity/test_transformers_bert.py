"""Our BERT beside that of transformers: outputs, gradients and folders, both ways."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from peers import assert_equal_gradients

from sememe.examples.batches import Batch
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.network import BERTNetwork
from sememe.models.huggingface.folder import Weights, fill, load_network, tensors_of, write_network
from sememe.nn.rows import bert_inputs

SIZES = {
    "narrow": {"vocab_size": 70, "num_layers": 2, "width": 32, "num_heads": 4, "max_length": 24},
    "odd": {"vocab_size": 131, "num_layers": 3, "width": 48, "num_heads": 3, "inner_size": 80,
            "max_length": 17, "activation": "gelu_tanh", "num_segments": 3, "norm_eps": 1e-6},
    "squared": {"vocab_size": 70, "num_layers": 2, "width": 32, "num_heads": 4, "max_length": 20,
                "activation": "relu2"},
}  # fmt: skip


@pytest.fixture(params=SIZES, name="config")
def config_fixture(request) -> BERTConfig:
    return BERTConfig(**SIZES[request.param])


@pytest.fixture(name="folder")
def folder_fixture(config, tmp_path):
    network = BERTNetwork(config, seed=3)
    with torch.no_grad():
        for parameter in network.parameters():  # biases too, so that each one matters
            parameter.add_(0.05 * torch.randn(parameter.shape))
    write_network(network, tmp_path)
    return tmp_path


def draw_batch(config: BERTConfig, rng: np.random.Generator) -> Batch:
    rows, length = 5, config.max_length
    ids = rng.integers(0, config.vocab_size, (rows, length)).astype(np.int32)
    lengths = rng.integers(3, length + 1, rows).astype(np.int32)
    lengths[0] = length
    is_token = np.arange(length) < lengths[:, None]
    hidden = np.flatnonzero(is_token & (rng.random((rows, length)) < 0.3))
    return Batch(
        ids_BT=ids,
        lengths_B=lengths,
        num_tokens=int(lengths.sum()),
        segments_BT=rng.integers(0, config.num_segments, (rows, length)).astype(np.int8),
        hidden_N=hidden,
        targets_N=rng.integers(0, config.vocab_size, len(hidden)).astype(np.int32),
        is_next_B=np.append(rng.integers(0, 2, rows - 1), -1).astype(np.int8),
    )


def their_inputs(batch: Batch) -> dict:
    length = batch.ids_BT.shape[1]
    labels = np.full(batch.ids_BT.size, -100, np.int64)
    labels[batch.hidden_N] = batch.targets_N
    return {
        "input_ids": torch.from_numpy(batch.ids_BT.astype(np.int64)),
        "token_type_ids": torch.from_numpy(batch.segments_BT.astype(np.int64)),
        "attention_mask": torch.from_numpy(
            (np.arange(length) < batch.lengths_B[:, None]).astype(np.int64)
        ),
        "labels": torch.from_numpy(labels.reshape(batch.ids_BT.shape)),
        "next_sentence_label": torch.from_numpy(np.array([1, 0, -100])[batch.is_next_B]),
    }


def test_loss_and_gradients_equal_theirs(config, folder):
    batch = draw_batch(config, np.random.default_rng(1))
    theirs = transformers.BertForPreTraining.from_pretrained(folder).eval()
    ours = load_network(folder)
    their_output = theirs(**their_inputs(batch))
    our_loss, _ = ours.loss(bert_inputs(batch))
    assert our_loss.item() == pytest.approx(their_output.loss.item(), abs=1e-5)

    their_output.loss.backward()
    our_loss.backward()
    assert_equal_gradients(ours, theirs)


def test_every_output_equals_theirs(config, folder):
    batch = draw_batch(config, np.random.default_rng(2))
    inputs = their_inputs(batch)
    theirs = transformers.BertForPreTraining.from_pretrained(folder, attn_implementation="eager")
    output = theirs.eval()(**inputs, output_hidden_states=True, output_attentions=True)
    ours = load_network(folder)
    arguments = inputs["input_ids"], inputs["token_type_ids"], torch.from_numpy(batch.lengths_B)
    is_token = inputs["attention_mask"].bool()
    with torch.no_grad():
        hidden = ours(*arguments)
        layers = ours.layers(*arguments)
        maps = ours.maps(*arguments)
        logits = ours.masked_logits(hidden.flatten(0, 1))
        follows = ours.next_logits(ours.pool(hidden[:, 0]))
    for mine, other in zip(layers, output.hidden_states, strict=True):
        torch.testing.assert_close(mine[is_token], other[is_token], atol=1e-5, rtol=1e-5)
    for mine, other in zip(maps, output.attentions, strict=True):
        rows = is_token[:, None, :].expand(mine.shape[:3])
        torch.testing.assert_close(mine[rows], other[rows], atol=1e-5, rtol=1e-5)
    their_logits = output.prediction_logits.flatten(0, 1)
    token_rows = is_token.flatten()
    assert logits.shape == their_logits.shape
    torch.testing.assert_close(logits[token_rows], their_logits[token_rows], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(follows, output.seq_relationship_logits, atol=1e-5, rtol=1e-5)


def test_their_folder_opens_here(config, tmp_path):
    theirs = transformers.BertForPreTraining(
        transformers.BertConfig(
            vocab_size=config.vocab_size, hidden_size=config.width,
            num_attention_heads=config.num_heads, num_hidden_layers=config.num_layers,
            intermediate_size=config.inner_width,
            max_position_embeddings=config.max_length, type_vocab_size=config.num_segments,
        )
    ).eval()  # fmt: skip
    theirs.save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    ids = torch.randint(0, config.vocab_size, (2, config.max_length))
    with torch.no_grad():
        ours = load_network(tmp_path)(ids)
        torch.testing.assert_close(ours, theirs.bert(ids)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("opens", ["AutoModel", "AutoModelForMaskedLM", "AutoModelForPreTraining"])
def test_their_classes_open_our_folder(folder, opens, config):
    theirs, report = getattr(transformers, opens).from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and not report["mismatched_keys"]
    assert theirs.config.num_hidden_layers == config.num_layers
    assert "positions" not in json.loads((folder / "config.json").read_text())


def test_body_alone_opens_and_says_what_is_untrained(config, folder, tmp_path):
    body = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False)
    body.save_pretrained(tmp_path / "body")
    network = load_network(tmp_path / "body")
    assert network.untrained == {"pooler", "masked head", "next head"}
    ids = torch.randint(0, config.vocab_size, (2, 5))
    with torch.no_grad():
        torch.testing.assert_close(network(ids), body.eval()(ids)[0], atol=1e-5, rtol=1e-5)


def test_old_names_and_buffers_are_understood(config, folder, tmp_path):
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    old = {"bert.embeddings.position_ids": torch.arange(config.max_length)[None]}
    for name, tensor in tensors.items():
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        old["module." + name.replace("LayerNorm.bias", "LayerNorm.beta")] = tensor
    save_file(old, tmp_path / "model.safetensors")
    first, second = BERTNetwork(config, seed=1), BERTNetwork(config, seed=2)
    fill(first, Weights(folder))
    fill(second, Weights(tmp_path))
    for name, tensor in tensors_of(first).items():
        assert torch.equal(tensor, tensors_of(second)[name]), name
