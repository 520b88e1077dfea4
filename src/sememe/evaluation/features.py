"""Which layers make the best features for tagging? The six choices of Devlin et al. 2019, 5.3."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sememe import plots
from sememe.evaluation.benchmarks.published import BERT, FEATURES, FINE_TUNED_F1
from sememe.evaluation.finetuning import run_benchmark
from sememe.evaluation.outcomes import Outcome, ours_note
from sememe.evaluation.results import PUBLISHED_MARK, ResultTable, SystemRow, format_score, plain
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
                    *(outcome.parts[part].format_score(metric) for part in parts),
                    format_score(printed[name]),
                ],
            )
            for name, outcome in self.outcomes.items()
        ]
        return ResultTable(
            title=f"{first.description.title}: entity F1 by the layers that a tagger reads",
            headings=["layers", *parts, f"BERT base, dev {PUBLISHED_MARK}"],
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
    if not choices:
        # Layer 0 is the input vectors.
        is_shallow = 1 < len(opened(model).layer_widths) <= 4
        choices = [name for name in CHOICES if not (is_shallow and name.endswith("four"))]
        if is_shallow:
            reporter.note("The network has fewer than four layers; choices of four are left out.")
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
