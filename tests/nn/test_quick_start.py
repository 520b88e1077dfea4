"""First weights for small networks: what they are, and that attention says something with them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import sememe
from presets import bert_config
from sememe.errors import OptionError
from sememe.models.bert.network import BERTNetwork
from sememe.nn.layers import sinusoidal_table


def network(start: str, seed: int = 1) -> BERTNetwork:
    return BERTNetwork(bert_config("tiny", vocab_size=500, start=start), seed=seed).eval()


def felt(network: BERTNetwork) -> float:
    """How much of a token's vector changes, of all there is, with the token beside it."""
    ids_BT = torch.arange(10, 42)[None]
    other_BT = ids_BT.clone()
    other_BT[0, 12] = 300
    with torch.no_grad():
        one_D, two_D = network(ids_BT)[0, 11], network(other_BT)[0, 11]
    return float((one_D - two_D).norm() / one_D.norm())


def test_spreads_of_a_quick_start() -> None:
    quick = network("quick")
    table_VD, waves_TD = quick.embedding.tokens.weight, quick.embedding.positions.weight
    assert table_VD[:500].std().item() == pytest.approx(0.049, rel=0.02)
    assert not table_VD[500:].any()
    # Positions are as long as tokens and only begin as waves: they are learned.
    assert waves_TD.norm(dim=1).mean().item() == pytest.approx(0.02 * 768**0.5, rel=1e-3)
    assert torch.allclose(waves_TD / waves_TD[0, 1], sinusoidal_table(512, 128), atol=1e-5)
    assert isinstance(waves_TD, torch.nn.Parameter)
    for block in quick.stack:
        queries, keys, values = block.attention.projection.weight.chunk(3)
        assert queries.std().item() == pytest.approx(0.02, rel=0.05)
        assert keys.std().item() == pytest.approx(0.02, rel=0.05)
        assert values.std().item() == pytest.approx(128**-0.5, rel=0.05)
        assert block.attention.output.weight.std().item() == pytest.approx(128**-0.5, rel=0.05)


def test_the_papers_start_has_one_spread() -> None:
    paper = network("paper")
    for weight in (
        paper.embedding.tokens.weight[:500], paper.embedding.positions.weight,
        *(block.attention.output.weight for block in paper.stack),
    ):  # fmt: skip
        assert weight.std().item() == pytest.approx(0.02, rel=0.05)


def test_attention_says_something_from_the_first_step() -> None:
    assert felt(network("quick")) > 10 * felt(network("paper"))


def test_a_seed_fixes_the_start() -> None:
    one, same, other = network("quick"), network("quick"), network("quick", seed=2)
    for name, weight in one.state_dict().items():
        assert torch.equal(weight, same.state_dict()[name]), name
    table = "embedding.tokens.weight"
    assert not torch.equal(one.state_dict()[table], other.state_dict()[table])


def test_small_presets_start_quickly_unless_told_otherwise() -> None:
    assert sememe.BERT(preset="tiny").config.start == "quick"
    assert sememe.BERT(preset="base").config.start == "paper"
    assert sememe.BERT(preset="tiny", start="paper").config.start == "paper"
    with pytest.raises(OptionError, match="start must be one of"):
        sememe.BERT(preset="tiny", start="soon")
