"""How much code there is, how much of it a command runs through, and how fast it starts.

python benchmarks/structure.py size              statements, docstrings, files, import cycles
python benchmarks/structure.py flow              files executed and room switches, by command
python benchmarks/structure.py time              seconds of `import sememe` and `sememe --help`
python benchmarks/structure.py all --json > X    all three, as JSON
python benchmarks/structure.py compare X [Y]     X, then Y (left out: this tree, measured now)

--source measures another tree (its folder src), --names tells what is behind the figures, such as
the files that each command ran through. What is counted how stands in structure_size.py and
structure_flow.py. structure_before.json holds the figures from before the models were redesigned.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from structure_flow import measure_flow, watch_command
from structure_size import measure_size

SOURCE = Path(__file__).resolve().parents[1] / "src"
NUM_STARTS = 7
STARTS = {
    "python": "pass",
    "import sememe": "import sememe",
    "sememe --help": "import sys; sys.argv = ['sememe', '--help']; "
    "from sememe.cli import main; main()",
}


def measure_times(source: Path) -> dict[str, float]:
    """Median seconds of starts, each in a new process, in turns; the first of each is dropped."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    seconds: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(NUM_STARTS + 1):
        for name, code in STARTS.items():
            begun = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", code], env=environment, check=True, capture_output=True
            )
            seconds[name].append(time.perf_counter() - begun)
    return {name: round(statistics.median(times[1:]), 3) for name, times in seconds.items()}


def measure(parts: list[str], source: Path) -> dict[str, Any]:
    """The figures of a tree below "figures", by part, and below "names" what is behind them."""
    metrics: dict[str, Any] = {}
    names: dict[str, Any] = {}
    if "size" in parts:
        size = measure_size(source)
        metrics["size"], names["size"] = size["figures"], size["names"]
    if "time" in parts:
        metrics["time"] = measure_times(source)
    if "flow" in parts:
        flow = measure_flow(source)
        metrics["flow"] = {command: seen["figures"] for command, seen in flow.items()}
        names["flow"] = {command: seen["names"] for command, seen in flow.items()}
    return {"figures": metrics, "names": names}


def _print_table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join(cells))
    print()


def tell(metrics: dict[str, Any]) -> None:
    """Print the figures of a tree."""
    for part in ("size", "time"):
        if part in metrics:
            _print_table([[name, f"{value:,}"] for name, value in metrics[part].items()])
    if "flow" in metrics:
        columns = list(next(iter(metrics["flow"].values())))
        rows = [[name, *(f"{seen[column]:,}" for column in columns)]
                for name, seen in metrics["flow"].items()]  # fmt: skip
        _print_table([["command", *columns], *rows])


def _flat(metrics: dict[str, Any]) -> dict[str, float]:
    flat = {**metrics.get("size", {}), **metrics.get("time", {})}
    for column in ("files", "crossings", "switches"):
        for command, seen in metrics.get("flow", {}).items():
            flat[f"{command}: {column}"] = seen[column]
    return flat


def compare(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Print two trees' figures side by side, and the change in percent."""
    old, new = _flat(before), _flat(after)
    rows = [["", "before", "after", "change"]]
    for name in [*old, *(name for name in new if name not in old)]:
        both = [old.get(name), new.get(name)]
        change = (
            f"{100 * (both[1] / both[0] - 1):+.1f} %" if both[0] and both[1] is not None else ""
        )
        rows.append([name, *("–" if value is None else f"{value:,}" for value in both), change])
    _print_table(rows)


def _metrics_of(path: str) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return metrics


def main() -> None:
    """Measure, or compare what was measured."""
    if sys.argv[1:2] == ["child"]:
        source, out, arguments = sys.argv[2:]
        watch_command(Path(source), out, json.loads(arguments))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["size", "flow", "time", "all", "compare"])
    parser.add_argument("results", nargs="*", help="compare: one or two files of figures")
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder src to measure")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--names", action="store_true", help="print what is behind the figures")
    asked = parser.parse_args()
    if (asked.what == "compare") != (len(asked.results) in (1, 2)):
        parser.error("compare takes one or two files of figures, the others none")
    source = asked.source.resolve()
    if not (source / "sememe").is_dir():
        parser.error(f"{source} holds no sememe; --source is the folder src of a tree")
    if asked.what == "compare":
        before = _metrics_of(asked.results[0])
        after = (
            _metrics_of(asked.results[1])
            if asked.results[1:]
            else measure(list(before), source)["figures"]
        )
        compare(before, after)
        return
    parts = ["size", "time", "flow"] if asked.what == "all" else [asked.what]
    found = measure(parts, source)
    if asked.json:
        print(json.dumps(found if asked.names else found["figures"], indent=1))
    else:
        tell(found["figures"])
        if asked.names:
            print(json.dumps(found["names"], indent=1))


if __name__ == "__main__":
    main()
