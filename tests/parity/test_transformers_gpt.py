"""Our GPT beside GPT-2 and GPT-1 of transformers: outputs, gradients and folders, both ways."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from peers import assert_equal_gradients

from sememe.examples.batches import Batch
from sememe.models.gpt.config import GPTConfig
from sememe.models.gpt.generation import generate
from sememe.models.gpt.network import GPTNetwork
from sememe.models.huggingface.folder import load_folder, load_network, save_folder, write_network
from sememe.nn.rows import gpt_inputs
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

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


TEXTS = [
    "The animal did not cross the street because it was too tired.",
    "The cat sat on the mat; the dog ran across the street again and again.",
    "国王和女王在宫殿里吃早饭。",
] * 3
PROMPTS = ["The cat", "The animal did not cross", "国王和", "the dog ran"]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_their_generation_stops_and_pads_as_ours(kind, tmp_path):
    """The folder alone says how: nothing is told to their tokenizer and network."""
    tokenizer = SubwordTokenizer.train(TEXTS, kind=kind, vocab_size=330, min_frequency=1)
    sizes = SIZES | {"vocab_size": tokenizer.vocab_size, "max_length": 64}
    network = GPTNetwork(GPTConfig(**sizes, initial_std=0.3), seed=7).eval()
    with torch.no_grad():  # ends are so likely that rows have different lengths
        network.embedding.tokens.weight[tokenizer.end_id] *= 1.5
    save_folder(network, tokenizer, tmp_path / "gpt")

    peer = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gpt").eval()
    cut = transformers.AutoTokenizer.from_pretrained(tmp_path / "gpt", padding_side="left")
    inputs = cut(PROMPTS, padding=True, return_tensors="pt", add_special_tokens=False)
    ids = inputs["input_ids"]
    assert ids[0, 0] == tokenizer.pad_id == peer.config.pad_token_id
    with torch.no_grad():
        theirs = peer.generate(**inputs, do_sample=False, max_new_tokens=30)[:, ids.shape[1] :]
    sizes_B = [[*own.tolist(), tokenizer.end_id].index(tokenizer.end_id) for own in theirs]
    assert len(set(sizes_B)) > 2 and min(sizes_B) < 30
    for own, size in zip(theirs.tolist(), sizes_B, strict=True):
        assert set(own[size + 1 :]) <= {tokenizer.pad_id}

    reopened = load_folder(tmp_path / "gpt")
    ours = generate(*reopened, PROMPTS, max_tokens=30, temperature=0)
    for prompt, text, own in zip(PROMPTS, ours, theirs, strict=True):
        whole = tokenizer.decode([*tokenizer.encode(prompt).ids, *own])
        assert whole.endswith(text) and (text or own[0] == tokenizer.end_id)
