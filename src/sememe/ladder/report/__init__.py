"""The report of a ladder: results in; one HTML page, the same in Markdown, and JSON out."""

from sememe.ladder.report.picture import write_picture
from sememe.ladder.report.writing import write_report

__all__ = ["write_picture", "write_report"]
