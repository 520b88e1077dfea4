"""The report of a ladder: results in; one HTML page, the same in Markdown, and JSON out."""

from pathlib import Path

from sememe.ladder.report.language import in_language
from sememe.ladder.report.pages import markdown, page
from sememe.ladder.report.picture import chart_groups, standalone
from sememe.ladder.results import Results
from sememe.storage.folder import write_text

PAGE, TEXT, PICTURES = "report.html", "report.md", "pictures"


def write_report(results: Results, out: str | Path) -> Path:
    """Write the report into the folder `out`, each file atomically; return the page's path."""
    folder, shown = Path(out), in_language(results)
    paths = {}
    for name, panel in chart_groups(shown).items():
        place = f"{PICTURES}/{name}.svg"
        if panel is None:
            (folder / place).unlink(missing_ok=True)  # that of an earlier report
        else:
            paths[name] = place
            write_text(folder / place, standalone(panel))
    write_text(folder / TEXT, markdown(shown, paths))
    write_text(folder / PAGE, page(shown))
    results.save(folder)
    return folder / PAGE
