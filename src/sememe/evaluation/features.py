"""Which layers make the best features for tagging? The six choices of Devlin et al. 2019, 5.3."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sememe import plots
from sememe.errors import OptionError
from sememe.evaluation.benchmarks.published import BERT, FEATURES, FINE_TUNED_F1
from sememe.evaluation.finetuning import run_benchmark
from sememe.evaluation.outcomes import Outcome, ours_note
from sememe.evaluation.results import (
    PUBLISHED_MARK,
    ResultTable,
    SystemRow,
    format_percents,
    format_score,
    plain,
)
from sememe.evaluation.rows import Holdings, RunSettings
from sememe.models.registry import opened
from sememe.plots.style import Paths
from sememe.progress import SILENT, Reporter

CHOICES = tuple(FEATURES)
FINE_TUNED = "fine-tuned"
# The paper's BiLSTM has 768 units in each of two layers; so has ours, both directions together.
READER_WIDTH = 384

TITLES = {
    "first": "embeddings",
    "second-to-last": "second-to-last layer",
    "last": "last layer",
    "sum-last-four": "sum of the last four",
    "concat-last-four": "last four, side by side",
    "sum-all": "sum of all layers",
    FINE_TUNED: "fine-tuned",
}


@dataclass(frozen=True, kw_only=True)
class FeaturesResult:
    """The outcomes of the choices, by name, in the order in which they were run."""

    outcomes: dict[str, Outcome]

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        return plain(
            {
                "benchmark": "features",
                "choices": {name: outcome.to_dict() for name, outcome in self.outcomes.items()},
                "published": {**FEATURES, FINE_TUNED: FINE_TUNED_F1},
                "published_source": f"{BERT}, Table 7, CoNLL-2003 dev",
            }
        )

    def table(self) -> ResultTable:
        """Entity F1 of each choice next to the published one."""
        first = next(iter(self.outcomes.values()))
        parts, metric = list(first.parts), first.description.main_metric
        printed = {**FEATURES, FINE_TUNED: FINE_TUNED_F1}
        rows = [
            SystemRow(
                TITLES[name],
                [
                    *(
                        cell
                        for part in parts
                        for cell in (
                            outcome.parts[part].format_score(metric),
                            outcome.parts[part].format_interval(metric),
                        )
                    ),
                    format_score(printed[name]),
                ],
            )
            for name, outcome in self.outcomes.items()
        ]
        rows += _baseline_rows(first, parts)
        return ResultTable(
            title=f"{first.description.title}: entity F1 by the layers that a tagger reads",
            headings=[
                "layers",
                *(cell for part in parts for cell in (part, "95 % interval")),
                f"BERT base, dev {PUBLISHED_MARK}",
            ],
            rows=rows,
            notes=[
                f"{PUBLISHED_MARK} published, not measured here: {BERT}, Table 7, CoNLL-2003.",
                ours_note(first),
            ],
        )

    def draw(self, path: Paths) -> None:
        """Draw the choices as bars, with the fine-tuned model as a line if it was run."""
        first = next(iter(self.outcomes.values()))
        part, metric = next(iter(first.parts)), first.description.main_metric
        spreads = {n: one.parts[part].spread(metric) for n, one in self.outcomes.items()}
        line = spreads.pop(FINE_TUNED, None)
        plots.bars(
            [TITLES[name] for name in spreads],
            [100 * found.mean for found in spreads.values()],
            path,
            errors=[100 * found.sd for found in spreads.values()],
            reference=None if line is None else (TITLES[FINE_TUNED], 100 * line.mean),
            title=f"{first.description.title}: {part} F1 of {first.model} by layers",
        )


def _baseline_rows(outcome: Outcome, parts: Sequence[str]) -> list[SystemRow]:
    """The baselines, which are the same whatever the tagger reads."""
    found: dict[str, list[str]] = {}
    for part in parts:
        for one in outcome.parts[part].baselines:
            if one["score"] is not None:
                cells = [format_score(100 * one["score"]), format_percents(one["interval"])]
                found[one["name"]] = found.get(one["name"], []) + cells
    return [SystemRow(name, [*cells, ""]) for name, cells in found.items()]


def compare_features(
    model: str | Path,
    holdings: Holdings,
    settings: RunSettings,
    *,
    choices: Sequence[str] = (),
    with_fine_tuning: bool = True,
    reporter: Reporter = SILENT,
) -> FeaturesResult:
    """Train a tagger on each choice of frozen layers, and fine-tune the full network to compare.

    The default is the six choices of the paper, without those of four layers if there are fewer.
    """
    outcomes = {}
    num_layers = len(opened(model).layer_widths) - 1  # without the input vectors
    is_shallow = 0 < num_layers < 4
    possible = [name for name in CHOICES if not (is_shallow and name.endswith("four"))]
    if is_shallow:
        if refused := [name for name in choices if name not in possible]:
            raise OptionError(
                f"{refused[0]} needs four layers, and this network has {num_layers}; it offers "
                f"{', '.join(possible)}."
            )
        before = "the input vectors" if num_layers == 1 else f"layer {num_layers - 1}"
        reporter.note(
            f"This network is shallow: first is its input vectors, second-to-last {before}, last "
            f"layer {num_layers}, sum-all their sum. Choices of four layers need four and are left "
            "out; few layers differ less than the twelve of the paper."
        )
    choices = choices or possible
    for choice in [*choices, *([FINE_TUNED] if with_fine_tuning else [])]:
        options = dict(settings.options)
        if choice != FINE_TUNED:
            options |= {"features": choice}
            options.setdefault("reader_width", READER_WIDTH)
        else:
            # Settings for a small head on frozen layers would damage the layers.
            for name in ("reader_width", "learning_rate"):
                options.pop(name, None)
        own = replace(
            settings, options=options, out=settings.out / choice if settings.out else None
        )
        reporter.note(f"{TITLES[choice]}:")
        outcomes[choice] = run_benchmark(model, holdings, own, reporter=reporter)
    return FeaturesResult(outcomes=outcomes)
