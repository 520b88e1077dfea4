"""Products of inference on a CPU, by oneDNN, beside PyTorch's plain ones."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from sememe.nn import layers
from sememe.nn.layers import Linear, activate


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("activation", ["", "relu", "gelu", "gelu_tanh"])
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
