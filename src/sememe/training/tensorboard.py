"""TensorBoard's event files: a folder in, a writer of figures out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sememe.errors import MissingExtraError


def check_tensorboard(folder: str) -> None:
    """Refuse a folder for event files where TensorBoard is not installed."""
    if folder:
        try:
            import torch.utils.tensorboard  # noqa: F401
        except ImportError:
            message = "TensorBoard is not installed: pip install tensorboard."
            raise MissingExtraError(message) from None


@contextmanager
def events_in(folder: str) -> Iterator[Any]:
    """A writer into a folder that is closed at the end; None where no folder is given."""
    if not folder:
        yield None
        return
    check_tensorboard(folder)
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder)
    try:
        yield writer
    finally:
        writer.close()
