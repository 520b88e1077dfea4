"""Weights of classes in the loss, for data in which some labels are rare.

`none`, `balanced`, or weights by name: `spam=5,ham=1`; labels without one have weight 1.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sememe.errors import OptionError

NONE, BALANCED = "none", "balanced"
_ENTRY = re.compile(r"\s*(.+?)\s*=\s*([^=,]*?)\s*(?:,|$)")


def as_option(weights: Any) -> Any:
    """Weights given in Python as a dict, in the form of the option; anything else unchanged."""
    if not isinstance(weights, Mapping):
        return weights
    return ",".join(f"{label}={weight}" for label, weight in weights.items()) or NONE


def parse_weights(choice: str) -> dict[str, float]:
    """The weights that the option names, by label; raises OptionError if it is not well-formed."""
    if choice in (NONE, BALANCED):
        return {}
    found: dict[str, float] = {}
    place = 0
    while place < len(choice):
        match = _ENTRY.match(choice, place)
        try:
            weight = float(match[2]) if match else math.nan
        except ValueError:
            weight = math.nan
        if match is None or not 0 < weight < math.inf or match[1] in found:
            break
        found[match[1]], place = weight, match.end()
    if place < len(choice) or not found:
        raise OptionError(
            "class_weights must be none, balanced, or positive weights of labels such as "
            f"spam=5,ham=1, not {choice!r}."
        )
    return found


def class_weights(
    choice: str, labels: Sequence[str], num_true: Sequence[int], num_rows: int, *, is_one: bool
) -> list[float]:
    """The weight of each label, from the number of training rows that have it.

    With one label per row, balanced weights give every label the same total and a row the mean
    weight 1, as in scikit-learn. With several (not `is_one`) they weigh the rows that have a label
    against those that lack it: the number of the latter by that of the former.
    """
    if choice == BALANCED and is_one:
        num_labels = sum(num > 0 for num in num_true)
        return [num_rows / (num_labels * num) if num else 1.0 for num in num_true]
    if choice == BALANCED:
        return [(num_rows - num) / num if 0 < num < num_rows else 1.0 for num in num_true]
    named = parse_weights(choice)
    if unknown := sorted(named.keys() - {*labels}):
        known = ", ".join(labels[:20]) + (" …" if len(labels) > 20 else "")
        raise OptionError(
            f"class_weights names {unknown[0]!r}, but the labels of the training rows are {known}."
        )
    return [named.get(label, 1.0) for label in labels]
