"""Ctrl-C between two steps: a step is finished before the state is saved."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

# A cluster that takes a machine back sends SIGTERM first.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Notes that the user, or the machine, wants the run to stop; a second time stops at once."""

    def __init__(self) -> None:
        self.is_asked = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interruption:
        """Listen; only the main thread of a program can."""
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._ask) for number in _SIGNALS}
        return self

    def __exit__(self, *_: Any) -> None:
        """Let others listen again."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.is_asked:
            raise KeyboardInterrupt
        self.is_asked = True
