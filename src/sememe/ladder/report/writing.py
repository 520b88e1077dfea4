"""Writing the report: results in, report.html, report.md with its pictures, results.json out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sememe.ladder.report.attention import attention_panel
from sememe.ladder.report.losses import loss_panels
from sememe.ladder.report.maps import use_panels, word_panels
from sememe.ladder.report.markdown import markdown
from sememe.ladder.report.page import page
from sememe.ladder.report.panels import Panel
from sememe.ladder.report.picture import arranged, standalone
from sememe.ladder.report.quality import Cost, rank_panel, task_panel
from sememe.ladder.results import Results
from sememe.storage.folder import write_file

PAGE, TEXT, PICTURES = "report.html", "report.md", "pictures"


def write_report(results: Results, out: str | Path) -> Path:
    """Write the report into the folder `out`, each file whole or not at all; gives the page."""
    folder = Path(out)
    pictures = _pictures(results)
    for name, panel in pictures.items():
        path = folder / PICTURES / f"{name}.svg"
        if panel is not None:
            _write(path, standalone(panel))
        else:
            path.unlink(missing_ok=True)  # that of an earlier report
    paths = {name: f"{PICTURES}/{name}.svg" for name, panel in pictures.items() if panel}
    _write(folder / TEXT, markdown(results, paths))
    _write(folder / PAGE, page(results))
    results.save(folder)
    return folder / PAGE


def _write(path: Path, text: str) -> None:
    with write_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def _pictures(results: Results) -> dict[str, Panel | None]:
    """The charts of the page, each group of them as one picture for the Markdown."""
    looks = results.looks
    quality: list[Panel | None] = []
    costs: tuple[Cost, Cost] = ("time", "size")
    quality.extend(rank_panel(results, cost) for cost in costs)
    for task in results.tasks:
        quality.extend(task_panel(results, task, cost) for cost in costs)
    groups: dict[str, tuple[str, Sequence[Panel | None], int]] = {
        "quality": ("Quality against training time and megabytes", quality, 2),
        "losses": ("Loss curves", [panel for _, panel in loss_panels(results)], 3),
        "words": (
            "The same words in every model",
            [panel for _, panel in word_panels(results, looks.pca)] if looks.pca else [],
            3,
        ),
        "contexts": (
            f"Uses of “{looks.contexts.word}”" if looks.contexts else "",
            [panel for _, panel in use_panels(results, looks.contexts)] if looks.contexts else [],
            3,
        ),
        "attention": (
            "Attention",
            [attention_panel(results, looks.attention)] if looks.attention else [],
            1,
        ),
    }
    drawn: dict[str, Panel | None] = {}
    for name, (title, panels, columns) in groups.items():
        known = [panel for panel in panels if panel is not None]
        drawn[name] = arranged(title, known, columns) if known else None
    return drawn
