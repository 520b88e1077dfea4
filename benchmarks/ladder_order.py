"""Whether a ladder's report shows the papers' order: BERT ahead in tagging and in answers.

    python benchmarks/ladder_order.py runs/ladder --task names squad

Reads results.json of a ladder, prints the columns from the best rung down, and ends with code 1
unless the rung is first in each of them, by more than the deviations of both together.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from sememe.ladder.results import Cell, Results


def is_ahead(cells: list[Cell], rung: str) -> bool:
    """Whether a rung leads the others, best first, by more than chance would let it."""
    first, second = cells[:2]
    if first.rung != rung:
        return False
    assert first.mean is not None and second.mean is not None
    return first.mean - second.mean > math.hypot(first.sd or 0.0, second.sd or 0.0)


def column(results: Results, task: str) -> list[Cell]:
    """The figures of a task, the best first."""
    sign = -1 if results.task(task).higher_is_better else 1
    known = [cell for cell in results.cells if cell.task == task and cell.mean is not None]
    return sorted(known, key=lambda cell: sign * (cell.mean or 0.0))


def main() -> int:
    """Print the order of each column and compare it with the papers'."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("ladder", type=Path, help="folder of a ladder, or its results.json")
    parser.add_argument("--rung", default="bert")
    parser.add_argument("--task", nargs="+", required=True, help="names of the columns")
    given = parser.parse_args()
    results = Results.load(given.ladder)
    is_right = True
    for task in given.task:
        cells = column(results, task)
        shown = [f"{c.rung} {c.mean:.1f}" + (f" ± {c.sd:.1f}" if c.sd else "") for c in cells]
        ahead = len(cells) > 1 and is_ahead(cells, given.rung)
        print(f"{task}: {', '.join(shown)}\n  {given.rung} is {'' if ahead else 'NOT '}ahead")
        is_right &= ahead
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
