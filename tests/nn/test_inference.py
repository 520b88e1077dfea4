"""Products of inference on a CPU, by oneDNN, beside PyTorch's plain ones."""

from __future__ import annotations

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")

from sememe.nn import layers
from sememe.nn.layers import Linear, activate


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("activation", ["", "relu", "relu2", "gelu", "gelu_tanh"])
@pytest.mark.parametrize("shape", [(1, 24), (3, 24), (5, 24), (64, 24), (2, 9, 24)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_a_product_with_its_activation(shape, activation, dtype, has_bias):
    torch.manual_seed(1)
    layer, x = Linear(24, 40, bias=has_bias), torch.randn(shape).to(dtype)
    weight, bias = layer.weight.to(dtype), None if layer.bias is None else layer.bias.to(dtype)
    plain = torch.nn.functional.linear(x, weight, bias)
    expected = activate(plain, activation) if activation else plain
    with torch.inference_mode():
        found = layer(x, activation)
    tolerance = 1e-6 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(found, expected.detach(), atol=tolerance, rtol=tolerance)
    # With gradients, training takes the plain product to the bit.
    assert torch.equal(layer(x, activation), expected)


def test_the_fast_product_is_taken_for_inference_only(monkeypatch):
    taken = []
    monkeypatch.setattr(layers, "_linear_by_onednn", lambda x, *_: taken.append(len(x)) or x)
    layer, x = Linear(8, 8), torch.randn(6, 8)
    layer(x)
    with torch.no_grad():  # validation, and frozen layers of a training
        layer(x)
    assert not taken
    with torch.inference_mode():
        layer(x[:2])  # too few rows to gain anything
        layer(x)
    assert taken == ([6] if layers._has_onednn else [])


@pytest.mark.skipif(not layers._has_onednn, reason="this PyTorch has no oneDNN")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_rows", [4, 5, 64, 700])
def test_an_ordered_weight_gives_the_same_bits(num_rows, dtype):
    torch.manual_seed(2)
    layer, x = Linear(96, 70), torch.randn(num_rows, 96, dtype=dtype)
    layers.keep_cast(layer.eval(), dtype)
    weight, bias = layers._cast(layer, dtype)
    with torch.inference_mode():
        expected = layers._linear_by_onednn(x, weight, bias, "gelu")
        assert torch.equal(layer(x, "gelu"), expected)
        assert torch.equal(layer(x, "gelu"), expected)
    assert layer.packed is not None
    assert layer.packed.weight.is_mkldnn


def changes_of(layer):
    """Ways to change the weights of a layer."""
    other = Linear(16, 16)

    def step(optimizer):
        layer.train()
        layer(torch.ones(5, 16)).sum().backward()
        optimizer.step()
        layer.eval()

    def assign():
        layer.weight.data = torch.randn(16, 16)

    return {
        "load": lambda: layer.load_state_dict(other.state_dict()),
        "assign": assign,
        "another": lambda: setattr(layer, "weight", other.weight),
        "in place": lambda: torch.nn.init.normal_(layer.weight),
        "sgd": lambda: step(torch.optim.SGD(layer.parameters(), lr=0.5)),
        "adam": lambda: step(torch.optim.AdamW(layer.parameters(), lr=0.5)),
        "fused": lambda: step(torch.optim.AdamW(layer.parameters(), lr=0.5, fused=True)),
    }


@pytest.mark.parametrize("name", [*changes_of(Linear(16, 16))])
def test_changed_weights_are_ordered_again(name):
    layer, x = Linear(16, 16).eval(), torch.randn(8, 16)
    with torch.inference_mode():
        layer(x)
    changes_of(layer)[name]()
    expected = torch.nn.functional.linear(x, layer.weight, layer.bias).detach()
    with torch.inference_mode():
        torch.testing.assert_close(layer(x), expected)


def test_training_and_copies_have_no_ordered_weight():
    layer, x = Linear(16, 16).eval(), torch.randn(8, 16)
    with torch.inference_mode():
        expected = layer(x)
        for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            assert other.packed is None
            assert torch.equal(other(x), expected)
    layer.train()
    assert layer.packed is None
