"""What banded attention costs against the length of a row: dense, banded by a mask, by blocks.

python benchmarks/banded_attention.py [--band 128] [--tokens 4096] [--threads 2]
A step is attention forward and backward over the same number of tokens, in rows of each length, as
in training on a CPU (fp32, 4 heads of 32 dimensions). The last two columns are whole training steps
of a GPT of four layers (width 128), dense and alternating. Medians of interleaved runs.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from sememe.models.gpt.config import GPTConfig
from sememe.models.gpt.network import GPTNetwork
from sememe.nn.attention import attend, attend_rows, causal_mask, near_mask
from sememe.nn.rows import GPTInputs, unpadded_rows

LENGTHS, HEADS, SIZE, RUNS = (256, 512, 1_024, 2_048, 4_096), 4, 32, 3


def masked(projected: torch.Tensor, num_rows: int, length: int, band: int) -> torch.Tensor:
    """Banded attention with a mask over all scores."""
    heads = projected.unflatten(0, (num_rows, length)).permute(2, 0, 3, 1, 4)
    mask = causal_mask(length, length) & near_mask(length, band)
    return attend(*heads, mask_TS=mask)[0]


def attention_steps(length: int, tokens: int, band: int) -> dict[str, Callable[[], None]]:
    """One step of each way."""
    num_rows = tokens // length
    rows = unpadded_rows(np.full(num_rows, length), length)
    projected = torch.randn(tokens, 3, HEADS, SIZE, requires_grad=True)
    ways: dict[str, Callable[[], torch.Tensor]] = {
        "dense": lambda: attend_rows(projected, rows, is_causal=True),
        "mask": lambda: masked(projected, num_rows, length, band),
        "blocks": lambda: attend_rows(projected, rows, is_causal=True, window=band),
    }

    def step(compute: Callable[[], torch.Tensor]) -> None:
        projected.grad = None
        compute().sum().backward()

    return {name: lambda own=own: step(own) for name, own in ways.items()}


def network_steps(length: int, tokens: int, band: int) -> dict[str, Callable[[], None]]:
    """One training step of a GPT, without the optimizer."""
    steps = {}
    num_rows = tokens // length
    rows = unpadded_rows(np.full(num_rows, length), length)
    ids = torch.randint(0, 8_000, (tokens,))
    places = torch.arange(tokens)
    has_next = places % length < length - 1
    inputs = GPTInputs(
        ids, places % length, rows, places[has_next], ids.roll(-1)[has_next],
        torch.tensor(float(has_next.sum())),
    )  # fmt: skip
    for pattern in ("dense", "alternating"):
        options: Any = {"attention": pattern, "band": band}
        config = GPTConfig(
            vocab_size=8_000, num_layers=4, width=128, num_heads=4, max_length=length,
            dropout=0.0, attention_dropout=0.0, **options,
        )  # fmt: skip
        network = GPTNetwork(config).train()

        def step(network: GPTNetwork = network) -> None:
            network.zero_grad(set_to_none=True)
            network.loss(inputs)[0].backward()

        steps[f"GPT {pattern}"] = step
    return steps


def medians(steps: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Milliseconds of each step, interleaved."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for run in range(RUNS + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if run:
                times[name].append(1_000 * (time.perf_counter() - start))
    return {name: statistics.median(own) for name, own in times.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--band", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=4_096)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    print("| length | dense ms | mask ms | blocks ms | GPT dense ms | GPT alternating ms |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for length in [own for own in LENGTHS if own <= given.tokens]:
        found = medians(attention_steps(length, given.tokens, given.band))
        found |= medians(network_steps(length, given.tokens, given.band))
        print(
            f"| {length} | " + " | ".join(f"{own:.0f}" for own in found.values()) + " |", flush=True
        )


if __name__ == "__main__":
    main()
