"""The validation loss to expect of a training: a model of losses that were measured.

A loss is taken relative to that of predicting by frequency alone, which a trial reports for the
text itself: r = loss / loss by frequency. Over a training r falls from about 1 along a sigmoid in
the logarithm of the steps, so

    ln(r / (1.05 - r)) = a + b ln(steps) + c ln(tokens per step) + d ln(weights)

is fitted to the runs in losses.json by Bayesian linear regression: each kind has its own a; b, c
and d are shared, and every kind may deviate from them a little. Its posterior gives the range of a
prediction, which grows with the distance to the runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

HIGHEST = 1.05  # r of the first steps, which can be worse than by frequency
# Centers of the logarithms, so that the intercepts are those of a usual training.
_CENTERS = np.log([500.0, 2_000.0, 1.5e6])
# Prior standard deviations: of an intercept, a shared slope, and a kind's deviation from it.
_INTERCEPT, _SLOPE, _DEVIATION = 10.0, 0.5, 0.15
_PRIOR_SLOPES = np.array([-0.6, -0.3, -0.1])
_LEAST_NOISE = 0.05
_NEXT_LOSS = math.log(2)  # of the next sentence, which short trainings do not learn
_Z = 1.64  # nine of ten losses are in the range
# A prediction is uncertain if its range is wider than this fraction of it.
_WIDE = 0.1


class Setting(NamedTuple):
    """What the loss of a training depends on."""

    kind: str
    steps: int
    tokens_per_step: float
    weights: int
    by_frequency: float  # the loss by frequency alone
    language: str = "en"
    has_next: bool = False  # whether the loss includes that of the next sentence


class Expected(NamedTuple):
    """An expected loss with its range, and why it is uncertain, if it is."""

    loss: float
    low: float
    high: float
    doubts: tuple[str, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether its digits mean something."""
        return not self.doubts

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; an uncertain loss has only its range."""
        found: dict[str, Any] = {"low": round(self.low, 3), "high": round(self.high, 3)}
        if self.is_certain:
            found = {"loss": round(self.loss, 3), **found}
        return found | {"uncertain": list(self.doubts)}


class LossModel:
    """The posterior of the coefficients, and the runs that they were fitted to."""

    def __init__(self, runs: Sequence[Mapping[str, Any]], kept: Mapping[str, Any]) -> None:
        self.runs, self.kinds = runs, list(kept["kinds"])
        self.mean = np.array(kept["mean"])
        self.covariance = np.array(kept["covariance"])
        self.noise = float(kept["noise"])

    def expected(self, setting: Setting) -> Expected | None:
        """The expected loss and its range; None for a kind that was never measured."""
        if setting.kind not in self.kinds:
            return None
        row = _row(setting, self.kinds)
        spread = math.sqrt(float(row @ self.covariance @ row) + self.noise**2)
        center = float(row @ self.mean)
        low, loss, high = (_loss(center + step * _Z * spread, setting) for step in (-1.0, 0.0, 1.0))
        doubts = tuple(self._doubts(setting))
        if not doubts and high - low > 2 * _WIDE * loss:
            doubts = ("few trainings like it were measured",)
        return Expected(loss, low, high, doubts)

    def _doubts(self, setting: Setting) -> list[str]:
        """How a training differs from all that were measured."""
        own = [run for run in self.runs if run["kind"] == setting.kind]
        doubts = []
        for name, title in (
            ("steps", "steps"), ("tokens_per_step", "tokens per step"), ("weights", "weights"),
        ):  # fmt: skip
            values = [run[name] for run in own]
            value = getattr(setting, name)
            if not min(values) / 2 <= value <= 2 * max(values):
                doubts.append(f"measured with {min(values):,.0f} to {max(values):,.0f} {title}")
        if setting.language not in {run["language"] for run in self.runs}:
            doubts.append(f"no text in this language ({setting.language}) was measured")
        values = [run["by_frequency"] for run in own]
        if not 0.85 * min(values) <= setting.by_frequency <= 1.15 * max(values):
            doubts.append("its tokens are unlike those that were measured")
        return doubts


def _loss(place: float, setting: Setting) -> float:
    ratio = HIGHEST / (1 + math.exp(-place))
    return ratio * setting.by_frequency + (_NEXT_LOSS if setting.has_next else 0.0)


def _row(setting: Setting, kinds: Sequence[str]) -> np.ndarray:
    """The row of the design matrix: intercepts of the kinds, shared slopes, own slopes."""
    logs = np.log([setting.steps, setting.tokens_per_step, setting.weights]) - _CENTERS
    is_own = np.array([kind == setting.kind for kind in kinds], float)
    return np.concatenate([is_own, logs, np.outer(is_own, logs).ravel()])


def fitted(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The posterior of the coefficients for some runs, as JSON values."""
    kinds = sorted({run["kind"] for run in runs})
    rows = np.array([_row(_setting_of(run), kinds) for run in runs])
    ratios = np.array([run["loss"] / run["by_frequency"] for run in runs])
    ratios = ratios.clip(0.02, HIGHEST - 0.01)
    places = np.log(ratios / (HIGHEST - ratios))
    num = len(kinds)
    center = np.concatenate([np.zeros(num), _PRIOR_SLOPES, np.zeros(3 * num)])
    sizes = np.repeat([_INTERCEPT, _SLOPE, _DEVIATION], [num, 3, 3 * num])
    noise = _LEAST_NOISE
    for _ in range(20):  # the noise follows from the residuals, and the coefficients from it
        covariance = np.linalg.inv(rows.T @ rows / noise**2 + np.diag(sizes**-2.0))
        mean = covariance @ (rows.T @ places / noise**2 + center / sizes**2)
        free = max(1.0, len(runs) - float(np.trace(rows @ covariance @ rows.T)) / noise**2)
        noise = max(_LEAST_NOISE, math.sqrt(float(((places - rows @ mean) ** 2).sum()) / free))
    return {
        "kinds": kinds, "mean": mean.round(6).tolist(),
        "covariance": covariance.round(8).tolist(), "noise": round(noise, 6),
    }  # fmt: skip


def _setting_of(run: Mapping[str, Any]) -> Setting:
    return Setting(**{name: run[name] for name in Setting._fields if name in run})


@cache
def loss_model() -> LossModel:
    """The fitted model that comes with this version."""
    content = (files(__package__) / "losses.json").read_text(encoding="utf-8")
    kept = json.loads(content)
    return LossModel(kept["runs"], kept["coefficients"])
