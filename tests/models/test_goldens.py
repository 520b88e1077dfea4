"""Numbers that the papers and the released files fix."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from presets import bert_config, gpt_config
from sememe.errors import OptionError
from sememe.models.bert.config import BERT_PRESETS
from sememe.models.bert.model import BERT
from sememe.models.bert.network import BERTNetwork
from sememe.models.gpt.network import GPTNetwork
from sememe.models.huggingface.folder import head_of, places_of, tensors_of
from sememe.nn.attention import attention_weights
from sememe.nn.layers import sinusoidal_table


@pytest.fixture(name="tensors_in_files")
def tensors_in_files_fixture(monkeypatch):
    """Give the tensors of a network's file by name, without memory for their content."""

    def tensors(network_class, config):
        monkeypatch.setattr(network_class, "initialise", lambda self, seed: None)
        with torch.device("meta"):
            network = network_class(config)
        own = tensors_of(network)
        return {name: place.of(own) for name, place in places_of(network).items()}

    return tensors


@pytest.mark.parametrize(
    ("preset", "body", "with_heads"),
    [("base", 109_482_240, 110_106_428), ("large", 335_141_888, 336_226_108)],
)
def test_parameters_of_bert(tensors_in_files, preset, body, with_heads):
    tensors = tensors_in_files(BERTNetwork, bert_config(preset))
    heads = ("masked head", "next head")
    assert sum(t.numel() for name, t in tensors.items() if head_of(name) not in heads) == body
    assert sum(t.numel() for t in tensors.values()) == with_heads


def test_parameters_of_gpt(tensors_in_files):
    for preset, number in (("gpt1", 116_534_784), ("gpt2", 124_439_808)):
        tensors = tensors_in_files(GPTNetwork, gpt_config(preset))
        assert sum(t.numel() for t in tensors.values()) == number


def test_tables_of_bert(tensors_in_files):
    tensors = tensors_in_files(BERTNetwork, bert_config("base"))
    assert tensors["embeddings.word_embeddings.weight"].shape == (30_522, 768)
    assert tensors["embeddings.position_embeddings.weight"].shape == (512, 768)
    assert tensors["embeddings.token_type_embeddings.weight"].shape == (2, 768)
    assert tensors["encoder.layer.0.intermediate.dense.weight"].shape == (3072, 768)
    large = tensors_in_files(BERTNetwork, bert_config("large"))
    assert large["encoder.layer.23.intermediate.dense.weight"].shape == (4096, 1024)


def test_small_presets():
    assert {own.positions for own in BERT_PRESETS.values()} == {"learned"}
    sizes = {name: (own.num_layers, own.width, own.num_heads) for name, own in BERT_PRESETS.items()}
    assert sizes == {
        "tiny": (2, 128, 2), "mini": (4, 256, 4), "small": (4, 512, 8), "medium": (8, 512, 8),
        "base": (12, 768, 12), "large": (24, 1024, 16),
    }  # fmt: skip
    with pytest.raises(OptionError, match="tiny, mini, small"):
        BERT("huge")
    with pytest.raises(OptionError, match="multiple of num_heads"):
        bert_config("tiny", num_heads=3)


def test_scaled_scores_of_112_and_96():
    # Products 112 and 96 of vectors with 64 numbers are divided by 8.
    query = torch.zeros(1, 64)
    query[0, 0] = 16.0
    keys = torch.zeros(2, 64)
    keys[:, 0] = torch.tensor([7.0, 6.0])
    weights = attention_weights(query, keys)
    assert (query @ keys.T).tolist() == [[112.0, 96.0]]
    assert weights[0].tolist() == pytest.approx([0.8808, 0.1192], abs=5e-5)


def test_sine_waves_are_interleaved():
    table = sinusoidal_table(50, 6)
    position, width = 7, 6
    for pair in range(3):
        angle = torch.tensor(position / 10_000 ** (2 * pair / width))
        assert table[position, 2 * pair].item() == pytest.approx(angle.sin().item(), abs=1e-6)
        assert table[position, 2 * pair + 1].item() == pytest.approx(angle.cos().item(), abs=1e-6)
    assert table[0].tolist() == [0.0, 1.0] * 3
    assert sinusoidal_table(4, 5).shape == (4, 5)


def test_first_weights_spread_as_the_papers_say():
    bert = BERTNetwork(bert_config("mini", vocab_size=1000))
    assert bert.embedding.tokens.weight[:1000].std().item() == pytest.approx(0.02, rel=0.05)
    assert not bert.embedding.tokens.weight[1000:].any()
    assert not bert.stack.blocks[0].attention.output.bias.any()
    gpt = GPTNetwork(gpt_config("mini", vocab_size=1000))
    block = gpt.stack.blocks[0]
    assert block.attention.projection.weight.std().item() == pytest.approx(0.02, rel=0.05)
    for part in (block.attention.output, block.feed_forward.output):
        assert part.weight.std().item() == pytest.approx(0.02 / 8**0.5, rel=0.05)


def test_seed_decides_on_the_first_weights():
    first, second, other = (
        BERTNetwork(bert_config("tiny", vocab_size=70), seed=seed) for seed in (4, 4, 5)
    )
    assert torch.equal(first.pooler.weight, second.pooler.weight)
    assert not torch.equal(first.pooler.weight, other.pooler.weight)
