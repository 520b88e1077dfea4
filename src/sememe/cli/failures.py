"""How a command fails: one sentence on standard error and an exit code; a traceback on request."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer

from sememe.errors import SememeError
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import kind_of_folder

USER_ERROR, INTERRUPTED, PIPE_CLOSED = 2, 130, 141
_OUT: ContextVar[Path | None] = ContextVar("out", default=None)


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"Warning: {message}")


def drop_output() -> None:
    """Let what is still buffered for a reader that has gone vanish without a complaint."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stdout.fileno())


def remember_out(out: Path) -> None:
    """Note where this command writes, for the word on how to go on after an interruption."""
    _OUT.set(out)


def _can_resume() -> bool:
    """Whether the command has left a checkpoint, of one training or of one among several."""
    out = _OUT.get()
    if out is None:
        return False
    # Several runs of a fine-tuning lie in a folder of their own, those of a study in its folder;
    # the skip-gram that an ELMo begins with lies beside it.
    beside = [Path(f"{out}{ending}.checkpoints") for ending in ("", ".start")]
    places = [*beside, *out.glob("*.checkpoints")]
    if Path(f"{out}.trials").is_dir() or kind_of_folder(out) == "ladder":
        return True
    return any(Checkpoints(place).has_one for place in places)


@contextmanager
def tell_failures(ctx: Any) -> Iterator[None]:
    """Turn failures that a user can mend into one sentence, and end with the fitting code."""
    is_debug = bool(ctx.params.get("debug"))
    _OUT.set(None)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(PIPE_CLOSED) from None
        except KeyboardInterrupt:
            if is_debug:
                raise
            hint = " The same command with --resume goes on." if _can_resume() else ""
            _say(f"\nStopped.{hint}")
            raise typer.Exit(INTERRUPTED) from None
        except (SememeError, MemoryError, OSError, RuntimeError) as error:
            is_known = not isinstance(error, RuntimeError) or _lacks_memory(error)
            if is_debug or not is_known:
                raise
            _say(f"Error: {_sentence(error)}")
            raise typer.Exit(USER_ERROR) from None


def _lacks_memory(error: RuntimeError) -> bool:
    """Whether PyTorch, which is not imported here, could not get the memory it asked for."""
    words = ("can't allocate memory", "not enough memory", "out of memory")
    return any(word in str(error) for word in words)


def _sentence(error: Exception) -> str:
    if isinstance(error, SememeError):
        return str(error)
    if isinstance(error, RuntimeError):
        place = "The GPU" if "CUDA" in str(error) or "MPS" in str(error) else "This machine"
        return (
            f"{place} has too little memory for this network and text: take a smaller model, "
            "shorter texts, or another --device."
        )
    if isinstance(error, MemoryError):
        reason = f" ({error})" if str(error) else ""
        return f"This machine has too little memory for these options{reason}; try smaller ones."
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror or error}."
    return f"{error}."
