"""LSTM layers against PyTorch's cell and a plain one; rows turned round; gradients."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.nn.lstm import LSTMLayer, State, reverse_rows, reversed_positions


def layer_of(output_width: int = 3, **clips: float) -> LSTMLayer:
    layer = LSTMLayer(4, 5, output_width, **clips)
    layer.initialise(torch.Generator().manual_seed(1))
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(3)  # far from zero, where every mistake shows
    return layer


def plain(layer: LSTMLayer, x_TBD: np.ndarray) -> np.ndarray:
    """The equations of an LSTM with a projection, position by position, in NumPy."""
    w = {name: value.detach().numpy() for name, value in layer.lstm.named_parameters()}
    num_rows = x_TBD.shape[1]
    said, cells = np.zeros((num_rows, layer.output_width)), np.zeros((num_rows, 5))

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    outputs = []
    for x_BD in x_TBD:
        gates = x_BD @ w["weight_ih_l0"].T + w["bias_ih_l0"]
        gates += said @ w["weight_hh_l0"].T + w["bias_hh_l0"]
        own, forget, new, output = np.split(gates, 4, 1)
        cells = sigmoid(forget) * cells + sigmoid(own) * np.tanh(new)
        if layer.cell_clip:
            cells = np.clip(cells, -layer.cell_clip, layer.cell_clip)
        said = sigmoid(output) * np.tanh(cells)
        if "weight_hr_l0" in w:
            said = said @ w["weight_hr_l0"].T
            if layer.output_clip:
                said = np.clip(said, -layer.output_clip, layer.output_clip)
        outputs.append(said)
    return np.stack(outputs)


@pytest.mark.parametrize("width", [3, 5])
@pytest.mark.parametrize("clips", [{}, {"cell_clip": 0.4, "output_clip": 0.2}])
def test_a_layer_computes_the_equations_of_an_lstm(width, clips):
    layer = layer_of(width, **clips)
    x_TBD = torch.randn(7, 2, 4, generator=torch.Generator().manual_seed(2))
    found, state = layer(x_TBD)
    np.testing.assert_allclose(found.detach(), plain(layer, x_TBD.numpy()), atol=1e-6)
    assert torch.equal(state.output_BP, found[-1])
    if clips and width == 3:
        assert float(found.detach().abs().max()) == pytest.approx(0.2)


def test_without_projection_a_layer_is_a_row_of_pytorchs_cells():
    layer = layer_of(5)
    cell = torch.nn.LSTMCell(4, 5)
    cell.load_state_dict(
        {name.removesuffix("_l0"): value for name, value in layer.lstm.state_dict().items()}
    )
    x_TBD = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(3))
    said = cells = torch.zeros(3, 5)
    for position, x_BD in enumerate(x_TBD):
        said, cells = cell(x_BD, (said, cells))
        torch.testing.assert_close(layer(x_TBD)[0][position], said)
    torch.testing.assert_close(layer(x_TBD)[1].cells_BH, cells)


def test_a_layer_goes_on_from_where_it_stood():
    layer = layer_of()
    x_TBD = torch.randn(8, 2, 4, generator=torch.Generator().manual_seed(4))
    whole, end = layer(x_TBD)
    first, state = layer(x_TBD[:5])
    second, last = layer(x_TBD[5:], state)
    torch.testing.assert_close(torch.cat([first, second]), whole)
    torch.testing.assert_close(last.cells_BH, end.cells_BH)


def test_stepwise_and_fast_layers_have_the_same_gradients():
    layer = layer_of()
    x_TBD = torch.randn(5, 2, 4, generator=torch.Generator().manual_seed(5))
    gradients = []
    for forward in (layer, layer.forward_stepwise):
        layer.zero_grad()
        own = x_TBD.clone().requires_grad_()
        forward(own)[0].square().sum().backward()
        gradients.append([own.grad, *(parameter.grad.clone() for parameter in layer.parameters())])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_gradients_agree_with_differences():
    layer = layer_of(cell_clip=50.0).double()
    x_TBD = torch.randn(3, 2, 4, dtype=torch.float64, requires_grad=True)
    state = State(torch.zeros(2, 3).double(), torch.zeros(2, 5).double())
    weights = tuple(layer.lstm.parameters())
    assert torch.autograd.gradcheck(
        lambda x, *_: layer.forward_stepwise(x, state)[0], (x_TBD, *weights)
    )


def test_forget_gates_start_open():
    layer = LSTMLayer(4, 5, 3)
    layer.initialise(torch.Generator().manual_seed(1))
    bias = layer.lstm.bias_ih_l0 + layer.lstm.bias_hh_l0
    assert bias.tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 10


def test_rows_turn_round_within_their_lengths_and_so_do_gradients():
    x_TB1 = torch.arange(8.0).view(4, 2, 1).requires_grad_()
    places = reversed_positions(torch.tensor([4, 2]), 4)
    turned = reverse_rows(x_TB1, places)
    assert turned[:, 0, 0].tolist() == [6, 4, 2, 0]
    assert turned[:, 1, 0].tolist() == [3, 1, 5, 7]  # the filling stays where it is
    torch.testing.assert_close(reverse_rows(turned, places), x_TB1)
    turned[0].sum().backward()
    assert x_TB1.grad[:, :, 0].tolist() == [[0, 0], [0, 1], [0, 0], [1, 0]]
