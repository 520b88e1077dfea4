"""The folder of a study of several trainings: measurements so far, a table and pictures."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sememe.errors import ArtifactError
from sememe.machine import provenance
from sememe.plots.charts import RatePanel, draw_rates
from sememe.storage.checkpoints import check_plan
from sememe.storage.folder import MANIFEST, read_json, write_json, write_text

PICTURES, TABLE = ("study.png", "study.svg"), "study.md"


def kept_in(out: Path, plan: dict[str, Any], nothing: dict[str, Any]) -> dict[str, Any]:
    """The measurements of a stopped study by the names in `nothing`, or `nothing` itself."""
    if not (out / MANIFEST).exists():
        return nothing
    manifest = read_json(out / MANIFEST)
    try:
        kept = {name: type(empty)(manifest[name]) for name, empty in nothing.items()}
        before = manifest["plan"]
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{out / MANIFEST} is damaged ({error}): start again without resume."
        ) from error
    check_plan(out / MANIFEST, before, plan)
    return kept


def keep_in(out: Path, kind: str, plan: dict[str, Any], content: dict[str, Any]) -> None:
    """Write the measurements so far, so that a stopped study can be resumed."""
    write_json(out / MANIFEST, {"kind": kind, **content, "plan": plan, "provenance": provenance()})


def draw_study(
    out: Path,
    headings: Sequence[str],
    table: Iterable[Sequence[Any]],
    rates: Sequence[float],
    panels: Sequence[RatePanel],
    **axis: Any,
) -> None:
    """Draw the metrics of a finished study, and write them as a Markdown table."""
    draw_rates(rates, panels, [out / name for name in PICTURES], **axis)
    lines = [headings, ["---"] * len(headings), *table]
    write_text(out / TABLE, "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines))
