"""LSTM layers: rows of vectors in, rows of vectors out, from the first position to the last.

T positions, B rows, D inputs, H cells, P outputs, N = T × B entries. Rows are (T, B, …), as cuDNN
needs them. Short rows are padded at their ends, so that a forward layer reads the padding last; a
backward layer gets reversed rows.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional


class State(NamedTuple):
    """The state of a layer: its last output, and its cells."""

    output_BP: Tensor
    cells_BH: Tensor


class LSTMLayer(nn.Module):
    """One LSTM layer, optionally with projected outputs (Sak et al. 2014).

    It computes in float32 in any precision, because a state passes through many steps; tensor cores
    round its products to TF32 anyway. With a clip the cells and outputs are clipped to ± that value
    at every step, as in the released ELMo; cuDNN cannot clip projected outputs, so those layers run
    step by step.
    """

    def __init__(
        self,
        input_width: int,
        num_cells: int,
        output_width: int = 0,
        *,
        cell_clip: float = 0.0,
        output_clip: float = 0.0,
    ) -> None:
        """Outputs are the cells themselves if `output_width` is 0 or equal to the cells."""
        super().__init__()
        projected = output_width if 0 < output_width < num_cells else 0
        self.num_cells, self.output_width = num_cells, output_width or num_cells
        self.cell_clip, self.output_clip = cell_clip, output_clip
        self.lstm = nn.LSTM(input_width, num_cells, proj_size=projected)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw weights evenly as PyTorch does; gates that forget start open (Gers et al. 2000)."""
        bound = 1 / math.sqrt(self.num_cells)
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)
            else:
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
        bias_G: Any = self.lstm.bias_ih_l0
        nn.init.ones_(bias_G[self.num_cells : 2 * self.num_cells])

    def forward(self, x_TBD: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The outputs (T, B, P), and the state after the last position."""
        x_TBD = x_TBD.float()
        if self.cell_clip or self.output_clip:
            return self.forward_stepwise(x_TBD, state)
        given = None if state is None else (state.output_BP[None], state.cells_BH[None])
        with _without_onednn(x_TBD):
            outputs_TBP, (output_1BP, cells_1BH) = self.lstm(x_TBD, given)
        return outputs_TBP, State(output_1BP[0], cells_1BH[0])

    def forward_stepwise(self, x_TBD: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """The result of `forward`, position by position, with clipping."""
        weights: Any = self.lstm
        num_rows = x_TBD.shape[1]
        if state is None:
            state = State(
                x_TBD.new_zeros(num_rows, self.output_width),
                x_TBD.new_zeros(num_rows, self.num_cells),
            )
        bias_G = weights.bias_ih_l0 + weights.bias_hh_l0
        seen_TBG = functional.linear(x_TBD, weights.weight_ih_l0, bias_G)
        outputs = []
        for seen_BG in seen_TBG:
            gates_BG = seen_BG + state.output_BP @ weights.weight_hh_l0.t()
            input_BH, forget_BH, new_BH, output_BH = gates_BG.chunk(4, 1)
            cells_BH = forget_BH.sigmoid() * state.cells_BH + input_BH.sigmoid() * new_BH.tanh()
            cells_BH = _clipped(cells_BH, self.cell_clip)
            said_BP = output_BH.sigmoid() * cells_BH.tanh()
            if weights.proj_size:
                said_BP = _clipped(said_BP @ weights.weight_hr_l0.t(), self.output_clip)
            outputs.append(said_BP)
            state = State(said_BP, cells_BH)
        return torch.stack(outputs), state


@contextmanager
def _without_onednn(x_TBD: Tensor) -> Iterator[None]:
    """Disable oneDNN, which has no projected layers and warns about it."""
    onednn: Any = torch.backends.mkldnn
    had_onednn = x_TBD.device.type == "cpu" and onednn.enabled
    if had_onednn:
        onednn.set_flags(False)
    try:
        yield
    finally:
        if had_onednn:
            onednn.set_flags(True)


def _clipped(x: Tensor, limit: float) -> Tensor:
    return x.clamp(-limit, limit) if limit else x


def reversed_positions(lengths_B: Tensor, num_positions: int) -> Tensor:
    """The new index of each of N entries when every row is reversed within its length, int64."""
    positions_T1 = torch.arange(num_positions, device=lengths_B.device)[:, None]
    partners_TB = torch.where(positions_T1 < lengths_B, lengths_B - 1 - positions_T1, positions_T1)
    rows_B = torch.arange(len(lengths_B), device=lengths_B.device)
    return (partners_TB * len(lengths_B) + rows_B).flatten()


class _ReversedRows(torch.autograd.Function):
    """Reversed rows; reversing is its own inverse, so the gradient is reversed the same way."""

    @staticmethod
    def forward(ctx: Any, x_NP: Tensor, places_N: Tensor) -> Tensor:
        """Take every vector from its mirrored position."""
        ctx.save_for_backward(places_N)
        return x_NP.index_select(0, places_N)

    @staticmethod
    def backward(ctx: Any, gradient_NP: Tensor) -> tuple[Tensor, None]:
        """Reverse the gradients."""
        (places_N,) = ctx.saved_tensors
        return gradient_NP.index_select(0, places_N), None


def reverse_rows(x_TBP: Tensor, places_N: Tensor) -> Tensor:
    """Rows reversed, each within its own length; `reversed_positions` gives the indices."""
    return _ReversedRows.apply(x_TBP.flatten(0, 1), places_N).view_as(x_TBP)
