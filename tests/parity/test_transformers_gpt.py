"""Our GPT beside GPT-2 and GPT-1 of transformers: outputs, gradients and folders, both ways."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from peers import assert_equal_gradients

from sememe.examples.batches import Batch
from sememe.models.gpt.config import GPTConfig
from sememe.models.gpt.network import GPTNetwork
from sememe.models.huggingface.folder import load_network, write_network
from sememe.nn.rows import gpt_inputs

SIZES = {"vocab_size": 83, "num_layers": 2, "width": 32, "num_heads": 4, "max_length": 20}
CLASSES = {"pre": "GPT2LMHeadModel", "post": "OpenAIGPTLMHeadModel"}


@pytest.fixture(params=["pre", "post"], name="norm")
def norm_fixture(request) -> str:
    return request.param


@pytest.fixture(name="folder")
def folder_fixture(norm, tmp_path):
    network = GPTNetwork(GPTConfig(**SIZES, norm=norm), seed=3)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    write_network(network, tmp_path)
    return tmp_path


def test_loss_and_gradients_equal_theirs(norm, folder):
    rng = np.random.default_rng(1)
    lengths = np.array([20, 7, 12], np.int32)
    ids = rng.integers(0, 83, (3, 20)).astype(np.int32)
    batch = Batch(ids_BT=ids, lengths_B=lengths, num_tokens=int(lengths.sum()))
    is_token = torch.from_numpy(np.arange(20) < lengths[:, None])
    their_ids = torch.from_numpy(ids.astype(np.int64))
    theirs = getattr(transformers, CLASSES[norm]).from_pretrained(folder).eval()
    output = theirs(input_ids=their_ids, labels=their_ids.masked_fill(~is_token, -100))
    ours = load_network(folder)
    loss, _ = ours.loss(gpt_inputs(batch))
    assert loss.item() == pytest.approx(output.loss.item(), abs=1e-5)

    output.loss.backward()
    loss.backward()
    assert_equal_gradients(ours, theirs)


def test_every_output_equals_theirs(norm, folder):
    ids = torch.randint(0, 83, (2, 20))
    theirs = getattr(transformers, CLASSES[norm]).from_pretrained(
        folder, attn_implementation="eager"
    )
    output = theirs.eval()(ids, output_hidden_states=True, output_attentions=True)
    ours = load_network(folder)
    with torch.no_grad():
        logits = ours.next_logits(ours(ids))
        layers, maps = ours.layers(ids), ours.maps(ids)
    torch.testing.assert_close(logits, output.logits, atol=1e-5, rtol=1e-5)
    for mine, other in zip(layers, output.hidden_states, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5)
    for mine, other in zip(maps, output.attentions, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5)


def test_their_folder_opens_here(norm, tmp_path):
    sizes = {"vocab_size": 83, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 20}
    if norm == "pre":
        theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, n_inner=48))
    else:
        theirs = transformers.OpenAIGPTLMHeadModel(transformers.OpenAIGPTConfig(**sizes))
    theirs.eval().save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    ids = torch.randint(0, 83, (2, 9))
    ours = load_network(tmp_path)
    with torch.no_grad():
        logits = ours.next_logits(ours(ids))
        torch.testing.assert_close(logits, theirs(ids).logits, atol=1e-5, rtol=1e-5)


def test_auto_class_opens_our_folder(norm, folder):
    theirs, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True
    )
    assert type(theirs).__name__ == CLASSES[norm]
    assert not report["missing_keys"] and not report["mismatched_keys"]
