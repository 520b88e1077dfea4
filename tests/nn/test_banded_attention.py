"""Banded attention: blocks against the plain mask, and a GPT with a band in every second layer."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from sememe.errors import OptionError
from sememe.models.gpt.config import GPTConfig
from sememe.models.gpt.generation import generate
from sememe.models.gpt.network import GPTNetwork
from sememe.models.huggingface.folder import load_folder, save_folder
from sememe.nn.attention import attend, attend_in_band, attend_rows, causal_mask, near_mask
from sememe.nn.rows import unpadded_rows
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

TEXTS = ["the old king sees a cat in the garden", "a cat likes the river and the king"] * 8


def plain(queries, keys, values, window):
    length = queries.shape[-2]
    mask = causal_mask(length, length) & near_mask(length, window)
    return attend(queries, keys, values, mask_TS=mask)[0]


@pytest.mark.parametrize(("length", "window"), [(1, 3), (5, 8), (12, 4), (13, 4), (50, 7), (9, 1)])
def test_blocks_equal_the_plain_mask_in_values_and_gradients(length, window):
    random = torch.Generator().manual_seed(length)
    heads = torch.randn(3, 2, 3, length, 5, generator=random, dtype=torch.float64)
    goal = torch.randn(2, 3, length, 5, generator=random, dtype=torch.float64)
    gradients = []
    for compute in (
        lambda *own: attend_in_band(*own, window=window),
        lambda *own: plain(*own, window),
    ):
        own = heads.clone().requires_grad_()
        found = compute(*own)
        (found * goal).sum().backward()
        gradients.append((found.detach(), own.grad))
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("is_learning", [True, False])
@pytest.mark.parametrize("window", [2, 5, 30])
def test_rows_of_different_lengths(window, is_learning):
    lengths = np.array([17, 3, 11])
    rows = unpadded_rows(lengths, 17)
    projected = torch.randn(31, 3, 2, 4, generator=torch.Generator().manual_seed(1))
    with torch.set_grad_enabled(is_learning):
        found = attend_rows(
            projected.clone().requires_grad_(is_learning), rows, is_causal=True, window=window
        )
    start = 0
    for length in lengths:
        own = projected[start : start + length].permute(1, 2, 0, 3)
        expected = plain(*own, window).transpose(0, 1)
        torch.testing.assert_close(found[start : start + length], expected, atol=1e-5, rtol=1e-4)
        start += length


def test_dropout_keeps_the_mean_and_the_band():
    heads = torch.randn(3, 1, 1, 20, 4, generator=torch.Generator().manual_seed(2))
    torch.manual_seed(3)
    draws = [attend_in_band(*heads, window=4, dropout=0.3) for _ in range(400)]
    expected = attend_in_band(*heads, window=4)
    torch.testing.assert_close(torch.stack(draws).mean(0), expected, atol=0.15, rtol=0.0)
    changed = heads.clone()
    changed[:, :, :, :10] += 5  # out of the band of the last tokens
    torch.testing.assert_close(
        attend_in_band(*changed, window=4)[..., 15:, :], expected[..., 15:, :]
    )


@pytest.fixture(scope="module")
def bpe():
    return SubwordTokenizer.train(TEXTS, kind="bpe", vocab_size=300, min_frequency=1)


def network(bpe, **options):
    config = GPTConfig(
        vocab_size=bpe.vocab_size, num_layers=4, width=16, num_heads=2, max_length=64, dropout=0.0,
        attention_dropout=0.0, initial_std=0.3, **options,
    )  # fmt: skip
    return GPTNetwork(config).eval()


def test_every_second_layer_has_the_band(bpe):
    banded = network(bpe, attention="alternating", band=3)
    assert banded.config.windows == (0, 3, 0, 3)
    ids = torch.randint(0, bpe.vocab_size, (1, 20), generator=torch.Generator().manual_seed(1))
    for index, weights in enumerate(banded.maps(ids)):
        is_seen = weights[0].sum(0) > 0
        expected = causal_mask(20, 20) & near_mask(20, 3) if index % 2 else causal_mask(20, 20)
        assert torch.equal(is_seen, expected)
    dense = network(bpe)
    dense.load_state_dict(banded.state_dict())
    assert not torch.allclose(dense(ids), banded(ids), atol=1e-3)
    wide = network(bpe, attention="alternating", band=19)
    wide.load_state_dict(banded.state_dict())
    torch.testing.assert_close(dense(ids), wide(ids), atol=1e-4, rtol=1e-4)


def test_generation_from_the_cache_honours_the_band(bpe):
    banded = network(bpe, attention="alternating", band=2)
    prompts = ["the old king sees a cat", "a"]
    options = {"max_tokens": 80, "temperature": 0.0}
    cached = generate(banded, bpe, prompts, **options)
    assert cached == generate(banded, bpe, prompts, use_cache=False, **options)
    dense = network(bpe)
    dense.load_state_dict(banded.state_dict())
    assert cached != generate(dense, bpe, prompts, **options)


def test_the_folder_states_it_and_transformers_refuses(bpe, tmp_path):
    banded = network(bpe, attention="alternating", band=5)
    save_folder(banded, bpe, tmp_path / "gpt")
    config = json.loads((tmp_path / "gpt" / "config.json").read_text())
    assert config["model_type"] == "gpt2-banded" and config["band"] == 5
    assert "architectures" not in config
    again, _ = load_folder(tmp_path / "gpt")
    assert again.config == banded.config
    ids = torch.randint(0, bpe.vocab_size, (2, 30), generator=torch.Generator().manual_seed(4))
    torch.testing.assert_close(again(ids), banded(ids))
    assert sememe.load(tmp_path / "gpt").kind == "gpt"
    transformers = pytest.importorskip("transformers")
    with pytest.raises(ValueError, match="gpt2-banded"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "gpt")


def test_it_trains_and_resumes_as_stated(bpe, tmp_path):
    model = sememe.GPT(
        "tiny", attention="alternating", band=4, vocab_size=300, num_layers=2, width=16,
        num_heads=2, max_length=32, length=24, steps=6, batch_size=4, workers=1, device="cpu",
        precision="fp32",
    ).fit(TEXTS, out=tmp_path / "gpt")  # fmt: skip
    assert sememe.load(tmp_path / "gpt").config.windows == (0, 4)
    assert model.history.last()["loss"] > 0


def test_bad_options():
    with pytest.raises(OptionError, match="norm pre"):
        GPTConfig(attention="alternating", norm="post")
    with pytest.raises(OptionError, match="band"):
        GPTConfig(attention="alternating", band=0)
