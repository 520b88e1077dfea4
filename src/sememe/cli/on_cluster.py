"""Where --cluster lets a command do its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sememe.errors import OptionError
from sememe.progress import Reporter


@contextmanager
def on_cluster(address: str | None, progress: Reporter, num_workers: int = 0) -> Iterator[None]:
    """Let the work within this context run where --cluster says."""
    if address is None:  # and Ray is not needed
        yield
        return
    from sememe.cluster.connection import on_cluster as on

    with on(address, progress, num_workers):
        yield


@contextmanager
def spread_inference(
    address: str | None, out: Path | None, *, resume: bool, progress: Reporter
) -> Iterator[None]:
    """Let a model compute where --cluster says; finished parts are kept in OUT.parts."""
    from sememe.models.inference import keeping

    if resume and out is None:
        raise OptionError("--resume needs --out: what is printed is not kept.")
    folder = Path(f"{out}.parts") if out is not None and (resume or address) else None
    with on_cluster(address, progress), keeping(folder, resume=resume):
        yield
