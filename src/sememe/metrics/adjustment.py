"""Adjust a trained classifier on rows that were held out of its training.

The caller says how its scores are scaled and what its probabilities are then; this module decides
which scaling and which thresholds, and says what they change.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sememe.errors import OptionError
from sememe.examples.labelled.label_options import LabelOptions
from sememe.metrics.calibration import calibration_text
from sememe.metrics.decisions import MOST_CLASSES, Scaling, best_thresholds

_TOLD = 10  # thresholds that are named


def adjusted(
    options: LabelOptions,
    labels: Sequence[str],
    is_true_NC: np.ndarray,
    *,
    is_one: bool,
    fit: Callable[[], Scaling],
    chances: Callable[[Scaling], np.ndarray],
    measure: Callable[[Scaling], dict[str, float]],
    measured_on: str,
    note: Callable[[str], None],
) -> tuple[Scaling, dict[str, Any]]:
    """The scaling of a classifier's scores, and what is saved about it: calibration, thresholds.

    `fit` finds the scaling, `chances` gives the probabilities of the held-out rows with it,
    `measure` their calibration on the rows that `measured_on` names. `is_one`: one label per row.
    """
    num_rows, scaling, learned = len(is_true_NC), Scaling(), dict[str, Any]()
    if options.calibrate:
        scaling = fit()
        before, after = measure(Scaling()), measure(scaling)
        learned["calibration"] = {
            "num_rows": num_rows, "temperature": 1 / scaling.scale, "bias": scaling.bias,
            "measured_on": measured_on, "before": before, "after": after,
        }  # fmt: skip
        bias = f", bias {scaling.bias:.3g}" if scaling.bias else ""
        note(
            f"Calibrated on {num_rows:,} held-out training rows: temperature "
            f"{1 / scaling.scale:.3g}{bias}; {measured_on} rows before: "
            f"{calibration_text(before)}; after: {calibration_text(after)}."
        )
    if options.thresholds != "default":
        if is_one and len(labels) > MOST_CLASSES:
            raise OptionError(
                f"thresholds of labels that exclude each other are chosen for up to {MOST_CLASSES} "
                f"labels; there are {len(labels):,}."
            )
        found = best_thresholds(chances(scaling), is_true_NC, is_one=is_one).tolist()
        learned["thresholds"] = dict(zip(labels, found, strict=True))
        told = [f"{label} {value:.3g}" for label, value in [*learned["thresholds"].items()][:_TOLD]]
        more = f" and {len(labels) - _TOLD:,} more" if len(labels) > _TOLD else ""
        note(f"Thresholds by F1 on {num_rows:,} held-out training rows: {', '.join(told)}{more}.")
    return scaling, learned
