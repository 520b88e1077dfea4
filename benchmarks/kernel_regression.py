"""Attention as regression: a picture of what a query, a key and a value are.

S known points (x, y), T places to predict at. Nadaraya–Watson regression predicts the mean of the
known y, weighted by how near their x lie; with a Gaussian kernel this *is* dot-product attention.
`python benchmarks/kernel_regression.py FOLDER` draws the pictures of docs/attention.md.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sememe.nn.attention import attend
from sememe.plots.style import FAINT, INK, picture


def true_curve(x: Tensor) -> Tensor:
    """What the points scatter around: y = 2 sin x + x^0.8."""
    return 2 * x.sin() + x**0.8


def noisy_points(
    num_points: int = 50, *, noise: float = 0.5, seed: int = 1
) -> tuple[Tensor, Tensor]:
    """Draw points between x = 0 and 5, sorted by x, their y with normal noise, (S,) and (S,)."""
    generator = torch.Generator().manual_seed(seed)
    x_S = (torch.rand(num_points, generator=generator) * 5).sort().values
    return x_S, true_curve(x_S) + noise * torch.randn(num_points, generator=generator)


def average_pooling(queries_T: Tensor, values_S: Tensor) -> Tensor:
    """Predict the mean of all values everywhere: attention that looks at nothing, (T,)."""
    return values_S.mean().expand_as(queries_T)


def kernel_attention(
    queries_T: Tensor,
    keys_S: Tensor,
    values_S: Tensor,
    *,
    sharpness: float | Tensor = 1.0,
    mask_TS: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Predict by attention with a Gaussian kernel of width 1/sharpness, and show the weights.

    -(q - k)²/2 = q k - k²/2 - q²/2, and the softmax over keys does not see q²: so the vectors
    (q, 1) and (k, -k²/2) have the wanted product. Gives (T,) and (T, S).
    """
    queries_T2 = torch.stack([queries_T, torch.ones_like(queries_T)], 1) * sharpness**2
    keys_S2 = torch.stack([keys_S, -(keys_S**2) / 2], 1)
    predictions_T1, weights_TS = attend(
        queries_T2, keys_S2, values_S[:, None], scale=1.0, mask_TS=mask_TS
    )
    return predictions_T1[:, 0], weights_TS


def learn_sharpness(keys_S: Tensor, values_S: Tensor, *, num_steps: int = 200) -> float:
    """Learn how sharply to look, each point being predicted from all the others."""
    sharpness = torch.ones((), requires_grad=True)
    optimizer = torch.optim.Adam([sharpness], lr=0.05)
    is_other_SS = ~torch.eye(len(keys_S), dtype=torch.bool)
    for _ in range(num_steps):
        optimizer.zero_grad()
        predictions_S, _ = kernel_attention(
            keys_S, keys_S, values_S, sharpness=sharpness, mask_TS=is_other_SS
        )
        ((predictions_S - values_S) ** 2).mean().backward()
        optimizer.step()
    return abs(sharpness.item())


def draw(folder: str | Path) -> dict[str, float]:
    """Write attention-curves.svg and attention-weights.svg; give the mean squared errors."""
    keys_S, values_S = noisy_points()
    queries_T = torch.arange(0, 5, 0.1)
    sharpness = learn_sharpness(keys_S, values_S)
    plain_T, weights_TS = kernel_attention(queries_T, keys_S, values_S)
    learned_T, learned_TS = kernel_attention(queries_T, keys_S, values_S, sharpness=sharpness)
    curves = {
        "average pooling": average_pooling(queries_T, values_S),
        "kernel attention": plain_T,
        "learned attention": learned_T,
    }
    _draw_curves(Path(folder) / "attention-curves.svg", keys_S, values_S, queries_T, curves)
    maps = {"kernel attention": weights_TS, f"learned, {sharpness:.1f} × as sharp": learned_TS}
    _draw_weights(Path(folder) / "attention-weights.svg", maps)
    truth_T = true_curve(queries_T)
    return {name: float(((own - truth_T) ** 2).mean()) for name, own in curves.items()}


def _draw_curves(
    path: Path, keys_S: Tensor, values_S: Tensor, queries_T: Tensor, curves: dict[str, Tensor]
) -> None:
    told = f"A curve and its noisy points, predicted in {len(curves)} ways: {', '.join(curves)}."
    with picture([path], curves, 9, 3, told=told, **{"svg.fonttype": "none"}) as figure:
        panels: Any = figure.subplots(1, 3, sharey=True)
        for axes, (name, predictions_T) in zip(panels, curves.items(), strict=True):
            axes.plot(keys_S, values_S, "o", color=FAINT, ms=3, alpha=0.5, mew=0)
            axes.plot(queries_T, true_curve(queries_T), color=INK, lw=1)
            axes.plot(queries_T, predictions_T, color="#c8553d", lw=2)
            axes.set_title(name, fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()


def _draw_weights(path: Path, maps: dict[str, Tensor]) -> None:
    told = f"The attention weights of each query: {', '.join(maps)}."
    with picture([path], maps, 7, 3.2, told=told, **{"svg.fonttype": "none"}) as figure:
        panels: Any = figure.subplots(1, len(maps))
        for axes, (name, weights_TS) in zip(panels, maps.items(), strict=True):
            axes.imshow(weights_TS.numpy(), cmap="Blues", aspect="auto", interpolation="none")
            axes.set_title(name, fontsize=10)
            axes.set_xlabel("known points, by x")
            axes.set_ylabel("places to predict at")
        figure.tight_layout()


if __name__ == "__main__":
    for method, error in draw(sys.argv[1] if len(sys.argv) > 1 else ".").items():
        print(f"{method}: mean squared error {error:.3f}")
