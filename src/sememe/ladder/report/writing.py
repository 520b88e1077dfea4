"""Writing the report: results in, report.html, report.md with its pictures, results.json out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sememe.ladder.report.attention import attention_panel
from sememe.ladder.report.losses import loss_panels
from sememe.ladder.report.maps import is_one_point, style_entries, use_panels, word_panels
from sememe.ladder.report.markdown import markdown
from sememe.ladder.report.page import page
from sememe.ladder.report.panels import HEIGHT, WIDTH, Panel
from sememe.ladder.report.picture import arranged, stacked, standalone
from sememe.ladder.report.quality import Cost, family_entries, rank_panel, task_panel
from sememe.ladder.results import ContextsLook, Results
from sememe.storage.folder import write_file

PAGE, TEXT, PICTURES = "report.html", "report.md", "pictures"
NAMES = ("quality", "losses", "words", "contexts", "attention")


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
    quality.extend(rank_panel(results, cost, width=WIDTH, height=HEIGHT) for cost in costs)
    for task in results.tasks:
        quality.extend(task_panel(results, task, cost) for cost in costs)
    drawn = {
        "quality": _one("Quality and cost", quality, 2, family_entries(results)),
        "losses": _one("Loss curves", [panel for _, panel in loss_panels(results)], 3),
    }
    if looks.pca:
        words = [panel for _, panel in word_panels(results, looks.pca)]
        entries = style_entries(list(looks.pca.groups))
        drawn["words"] = _one("The same words in every model", words, 3, entries)
    if looks.contexts:
        drawn["contexts"] = _uses(results, looks.contexts)
    if looks.attention:
        drawn["attention"] = _one("Attention", [attention_panel(results, looks.attention)], 1)
    return {name: drawn.get(name) for name in NAMES}


def _uses(results: Results, look: ContextsLook) -> Panel | None:
    """Models with a vector for each use first, then, small, those with one for all."""
    drawn = use_panels(results, look)
    many = [panel for rung, panel in drawn if not is_one_point(look, rung)]
    single = [panel for rung, panel in drawn if is_one_point(look, rung)]
    title = f"Uses of “{look.word}”"
    entries = style_entries([use.sense for use in look.sentences])
    blocks = [_one(title, many, 3, entries), _one(title, single, 5)]
    known = [block for block in blocks if block is not None]
    return stacked(title, known) if known else None


def _one(
    title: str,
    panels: Sequence[Panel | None],
    columns: int,
    entries: Sequence[tuple[str, str, str]] = (),
) -> Panel | None:
    known = [panel for panel in panels if panel is not None]
    return arranged(title, known, columns, entries) if known else None
