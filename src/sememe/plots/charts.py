"""Charts: bars of scores, the history of a training, a learning-rate search, a varied setting."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.plots.style import BLUE, FAINT, INK, PAPER, RED, Paths, check_paths, picture, spoken
from sememe.progress import History


def history(
    records: Sequence[dict[str, Any]],
    path: Paths,
    *,
    metric: str = "loss",
    title: str = "",
    half_life: float = 5.0,
) -> Any:
    """Draw one metric of a history over the words seen: records faint, the smoothed line bold.

    Without a metric `words` or `step` in the records, their number is the horizontal axis.
    """
    paths = check_paths(path)
    kept = History(records)
    values = kept.column(metric)
    if not np.isfinite(values).any():
        raise InputError(f"The history has no metric “{metric}” to draw.")
    x_name = next((name for name in ("words", "step") if name in kept[0]), "record")
    x = np.arange(1, len(kept) + 1) if x_name == "record" else kept.column(x_name)
    known = values[np.isfinite(values)]
    told = (
        f"{metric.replace('_', ' ').capitalize()} over {len(known):,} records: from {known[0]:.4g} "
        f"to {known[-1]:.4g}."
    )
    with picture(paths, [title, metric], 8, 4.4, told=told) as figure:
        from matplotlib.ticker import EngFormatter, MaxNLocator

        axes = figure.add_axes((0.085, 0.125, 0.88, 0.775 if title else 0.83))
        axes.plot(x, values, color=BLUE, alpha=0.28, lw=1.0, solid_joinstyle="round")
        axes.plot(x, _smooth_both_ways(kept, metric, half_life), color=BLUE, lw=1.9, zorder=3)
        for edge in _epoch_edges(kept, x):
            axes.axvline(edge, color="#d8d8dc", lw=0.8, ls=(0, (2, 3)), zorder=0)
        axes.xaxis.set_major_formatter(EngFormatter())
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.margins(x=0.01)
        x_name = "reports" if x_name == "record" else x_name
        _dress(axes, x_name, metric.replace("_", " "), title)
    return figure


def _dress(axes: Any, x_name: str, y_name: str, title: str) -> None:
    """Faint rules across, one line below, names at the ends of the axes."""
    axes.grid(axis="y", color="#ebebee", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0, pad=5)
    axes.set_xlabel(spoken(x_name), loc="left", color=FAINT)
    axes.set_ylabel(spoken(y_name), loc="top", color=FAINT)
    axes.set_title(title, pad=12)


def _epoch_edges(kept: History, x: np.ndarray) -> list[float]:
    """The boundaries between epochs, if the records have them."""
    changes = np.flatnonzero(np.diff(np.floor(kept.column("epoch"))) > 0)
    return [float((x[index] + x[index + 1]) / 2) for index in changes]


def _smooth_both_ways(kept: History, name: str, half_life: float) -> np.ndarray:
    """Smooth from both ends, so that the line does not lag behind a falling loss."""
    backward = History(reversed(kept)).smooth(name, half_life)[::-1]
    return (kept.smooth(name, half_life) + backward) / 2


# The height of a divergence would flatten what came before it.
_ROOM = 0.6


def descent(
    rates: Sequence[float],
    losses: Sequence[float],
    smoothed: Sequence[float],
    path: Paths,
    *,
    marks: Mapping[str, float] | None = None,
    title: str = "",
) -> Any:
    """Draw the loss at each rate faint, the smoothed line bold, and the named rates as marks."""
    paths = check_paths(path)
    if len(rates) < 2:
        raise InputError("A curve needs the losses of two rates at least.")
    line = np.asarray(smoothed, np.float64)
    named = ", ".join(f"{label} {rate:.1e}" for label, rate in (marks or {}).items())
    told = f"Loss over learning rates from {min(rates):.1e} to {max(rates):.1e}. {named}"
    with picture(paths, [title, *(marks or {})], 8, 4.4, told=told) as figure:
        from matplotlib.ticker import FuncFormatter

        axes = figure.add_axes((0.085, 0.135, 0.88, 0.765 if title else 0.82))
        axes.set_xscale("log")
        axes.plot(rates, losses, color=BLUE, alpha=0.28, lw=1.0, solid_joinstyle="round")
        axes.plot(rates, line, color=BLUE, lw=1.9, zorder=3)
        for (label, rate), color in zip(
            (marks or {}).items(), cycle((RED, INK, FAINT)), strict=False
        ):
            height = float(np.interp(np.log(rate), np.log(rates), line))
            axes.axvline(rate, color=color, lw=1.0, ls=(0, (4, 2)), zorder=2)
            axes.plot(
                [rate], [height], "o", color=color, ms=6, zorder=4, label=f"{label}: {rate:.1e}"
            )
        fallen = max(line[0] - line.min(), 0.02 * abs(line[0]))
        top = min(line[0] + _ROOM * fallen, line.max() + 0.15 * fallen)
        axes.set_ylim(line.min() - 0.15 * fallen, top)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.minorticks_off()
        _dress(axes, "learning rate", "loss", title)
        if marks:
            axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower left")
    return figure


@dataclass(frozen=True)
class RatePanel:
    """One panel: a metric of every rate as a line, and reference levels."""

    title: str
    lines: Mapping[str, Sequence[float]]
    levels: Mapping[str, float] = field(default_factory=dict)
    is_share: bool = False  # written in percent


def draw_rates(
    rates: Sequence[float],
    panels: Sequence[RatePanel],
    path: Paths,
    *,
    name: str = "tokens hidden",
    is_share: bool = True,
) -> Any:
    """Draw the panels over the rates, which are fractions unless `is_share` is off."""
    paths = check_paths(path)
    texts = [name, *(text for panel in panels for text in (panel.title, *panel.lines))]
    width = 4.1 * len(panels) + (0 if is_share else 1.5)
    told = ". ".join(
        f"{panel.title}: "
        + "; ".join(
            f"{label} {', '.join(f'{value:.3g}' for value in values)}"
            for label, values in {
                **panel.lines, **{label: [level] for label, level in panel.levels.items()},
            }.items()
        )
        for panel in panels
    )  # fmt: skip
    with picture(paths, texts, width, 3.9, told=told) as figure:
        from matplotlib.ticker import FixedLocator, MaxNLocator, PercentFormatter

        every: Any = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(every, panels, strict=True):
            looks = zip(cycle((BLUE, RED, INK)), cycle("ooosss^^^DDD"), strict=False)
            for (label, values), (color, shape) in zip(panel.lines.items(), looks, strict=False):
                axes.plot(rates, values, f"{shape}-", color=color, lw=1.9, ms=5, label=label,
                          zorder=3)  # fmt: skip
            for dash, (label, level) in enumerate(panel.levels.items(), start=1):
                style = (0, (4, 2)) if dash == 1 else (0, (1, 2))
                axes.axhline(level, color=FAINT, lw=1.2, ls=style, label=label, zorder=2)
            if is_share:
                axes.xaxis.set_major_locator(FixedLocator(list(rates)))
                axes.xaxis.set_major_formatter(PercentFormatter(1.0, 0))
            else:
                axes.xaxis.set_major_locator(MaxNLocator(12, integer=True))
            axes.yaxis.set_major_locator(MaxNLocator(5))
            if panel.is_share:
                axes.yaxis.set_major_formatter(PercentFormatter(1.0, None))
                axes.set_ylim(bottom=0)
            _dress(axes, name, "", "")
            axes.set_title(panel.title, fontsize=10, pad=10)
            if len([*panel.lines, *panel.levels]) > 1:
                axes.legend(
                    frameon=False, fontsize=8.5, labelcolor=INK, loc="upper center", ncols=2,
                    bbox_to_anchor=(0.5, -0.16), columnspacing=1.2,
                )  # fmt: skip
        figure.tight_layout(w_pad=2.5)
    return figure


def bars(
    names: Sequence[str],
    values: Sequence[float],
    path: Paths,
    *,
    errors: Sequence[float] | None = None,
    reference: tuple[str, float] | None = None,
    title: str = "",
) -> Any:
    """Draw one bar per name, the first on top, with its value, optionally ± an error.

    `reference` is a name and a value to compare with, drawn as a line. The axis begins a little
    below the smallest value, not at zero, where the differences would vanish; the values in the
    bars show their size.
    """
    paths = check_paths(path)
    known = [value for value in values if math.isfinite(value)]
    if not known or len(names) != len(values):
        raise InputError("Bars need at least one value and a name for each.")
    ends = [*known, *([reference[1]] if reference else [])]
    span = max(max(ends) - min(ends), 1e-9 + abs(max(ends)) * 0.02)
    low, high = min(ends) - 0.45 * span, max(ends) + 0.1 * span
    texts = [title, *names, *([reference[0]] if reference else [])]
    height = 1.3 + 0.42 * len(names)
    told = "; ".join(f"{name} {value:.1f}" for name, value in zip(names, values, strict=True))
    with picture(paths, texts, 8, height, told=told) as figure:
        axes = figure.add_axes((0.26, 0.55 / height, 0.70, 1 - (1.15 if title else 0.8) / height))
        places = range(len(names))
        axes.barh(places, [max(v, low) - low for v in values], left=low, color=BLUE, height=0.62)
        for place, value in zip(places, values, strict=True):
            if not math.isfinite(value):
                continue
            error = errors[place] if errors is not None else math.nan
            if math.isfinite(error):
                axes.errorbar(value, place, xerr=error, color=INK, lw=1.0, capsize=2.5)
            text = f"{value:.1f}" + (f" ± {error:.1f}" if math.isfinite(error) else "")
            axes.text(
                low + 0.012 * (high - low), place, text, va="center", fontsize=8.5, color=PAPER
            )
        if reference:
            axes.axvline(reference[1], color=RED, lw=1.2, ls=(0, (4, 3)), zorder=0)
            axes.text(
                reference[1], -0.75, f"{reference[0]} {reference[1]:.1f}", color=RED, fontsize=8.5,
                ha="center", va="bottom",
            )  # fmt: skip
        axes.set_yticks(list(places), list(names))
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(low, high)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(length=0, pad=5, labelcolor=INK)
        axes.tick_params(axis="x", labelcolor=FAINT)
        if title:
            figure.text(0.02, 1 - 0.32 / height, title, fontsize=12, color=INK)
    return figure
