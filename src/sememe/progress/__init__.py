"""What long work shows while it runs, and the figures it keeps."""

from sememe.progress.history import History
from sememe.progress.reporter import SILENT, Reporter, Task, as_reporter

__all__ = ["SILENT", "History", "Reporter", "Task", "as_reporter"]
