"""A campaign of damaged files: every case must end in a clean error or a right result.

    python benchmarks/fuzz.py --cases 200000 --jobs 2 --log fuzz.jsonl
    python benchmarks/fuzz.py --case bert:17

The log keeps every outcome; a campaign with the same log goes on where it was stopped. The table
at the end has a row for each kind of subject. The tests in tests/fuzz run a part of it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fuzz"))

from campaign import Campaign, Outcome, spread


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--cases", type=int, default=200_000, help="how many cases in all")
    options.add_argument("--first", type=int, default=0, help="the number of the first case")
    options.add_argument("--jobs", type=int, default=2, help="processes beside this one")
    options.add_argument("--kind", nargs="*", help="these subjects alone")
    options.add_argument("--case", nargs="*", help="KIND:NUMBER, to see one case again")
    options.add_argument("--log", type=Path, help="where outcomes are kept, one JSON a line")
    options.add_argument("--minutes", type=float, help="stop after so many minutes")
    return options


def table(outcomes: dict[str, Counter[str]]) -> str:
    """Outcomes by kind as a table of Markdown; failures have a column together."""
    lines = [
        "| kind | cases | answered | refused | failed |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    total: Counter[str] = Counter()
    for name, counts in sorted(outcomes.items()):
        total += counts
        lines.append(_row(name, counts))
    return "\n".join([*lines, _row("all", total)])


def _row(name: str, counts: Counter[str]) -> str:
    num, answered, refused = counts.total(), counts["answered"], counts["refused"]
    return f"| {name} | {num:,} | {answered:,} | {refused:,} | {num - answered - refused:,} |"


def show(outcome: Outcome) -> None:
    """One outcome on two lines."""
    memory = f"{outcome.growth / 2**20:.0f} MiB, {outcome.seconds:.2f} s"
    print(f"{outcome.case}  {outcome.ending}  ({memory})  {outcome.damage}")
    print(f"    {outcome.where}  {outcome.message}", flush=True)


def main() -> None:
    """Run the campaign and print its table."""
    given = parser().parse_args()
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    failures: dict[str, list[Outcome]] = defaultdict(list)
    done: set[str] = set()
    slowest_s, largest = 0.0, 0
    if given.log and given.log.exists():
        for line in given.log.read_text("utf-8").splitlines():
            outcome = Outcome(**json.loads(line))
            done.add(outcome.case)
            counted[outcome.case.rpartition(":")[0]][outcome.ending] += 1
            if not outcome.is_accepted:
                failures[outcome.signature].append(outcome)
    begun = time.monotonic()
    with Campaign(1 if given.case else given.jobs) as campaign:
        names = given.kind or campaign.subjects()
        cases = given.case or [
            case for case in spread(names, given.cases, given.first) if case not in done
        ]
        log = given.log.open("a", encoding="utf-8") if given.log else None
        for num, outcome in enumerate(campaign.run(cases), 1):
            counted[outcome.case.rpartition(":")[0]][outcome.ending] += 1
            slowest_s, largest = max(slowest_s, outcome.seconds), max(largest, outcome.growth)
            if log:
                print(json.dumps(outcome._asdict()), file=log, flush=True)
            if given.case or (not outcome.is_accepted and outcome.signature not in failures):
                show(outcome)
            if not outcome.is_accepted:
                failures[outcome.signature].append(outcome)
            if given.minutes and time.monotonic() - begun > 60 * given.minutes:
                break
            if num % 1_000 == 0:
                rate = num / (time.monotonic() - begun)
                print(f"{num:,} of {len(cases):,} cases, {rate:.0f} a second", flush=True)
    print(table(counted))
    print(f"Slowest case {slowest_s:.1f} s, largest growth {largest / 2**20:.0f} MiB.")
    for signature, found in sorted(failures.items(), key=lambda item: -len(item[1])):
        examples = " ".join(outcome.case for outcome in found[:3])
        print(f"{len(found):6,}  {signature}   {examples}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
