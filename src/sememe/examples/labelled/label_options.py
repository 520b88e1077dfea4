"""What all classifiers are told about labels: how they are read, weighed, and decided for."""

from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.examples.labelled.class_weights import as_option, parse_weights
from sememe.options import Config, option

# Values of label_separator: detected, one label per cell; and what is remembered of lists.
AUTO, NONE, LISTS = "auto", "none", "list"


@dataclass(frozen=True, kw_only=True)
class LabelOptions(Config):
    """Options about labels, of fine-tuned models and of fastText's classifier."""

    label_separator: str = option(AUTO, "Separator of several labels in a cell; none: one label.")
    class_weights: str = option(
        "none", "Class weights: balanced (rarer labels weigh more), or LABEL=WEIGHT,…"
    )
    calibrate: bool = option(False, "Calibrate probabilities on held-out training rows.")
    thresholds: Literal["default", "f1"] = option(
        "default", "Decision thresholds; f1: the best ones on held-out training rows."
    )
    calibration_share: float = option(
        0.1, "Fraction of training rows held out for --calibrate and --thresholds.", 0.01, 0.9
    )

    def __post_init__(self) -> None:
        """Raise OptionError for weights and separators that are not well-formed."""
        object.__setattr__(self, "class_weights", as_option(self.class_weights))
        super().__post_init__()
        parse_weights(self.class_weights)
        if not self.label_separator:
            raise OptionError("label_separator must be auto, none, or the characters themselves.")

    @property
    def holds_out(self) -> bool:
        """Whether some training rows are held out to adjust probabilities or thresholds."""
        return self.calibrate or self.thresholds != "default"
