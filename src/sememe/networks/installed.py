"""What an installation may lack: PyTorch, without which `sememe` serves static models alone."""

from __future__ import annotations

from importlib.util import find_spec

from sememe.errors import MissingExtraError


def need_torch() -> None:
    """Say what to install where PyTorch is missing."""
    if find_spec("torch") is None:
        raise MissingExtraError("Networks need PyTorch: pip install sememe[neural].")
