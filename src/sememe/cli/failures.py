"""How a command fails: one sentence on standard error and an exit code; a traceback on request."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from sememe.errors import SememeError

USER_ERROR, INTERRUPTED, PIPE_CLOSED = 2, 130, 141


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"Warning: {message}")


def drop_output() -> None:
    """Let what is still buffered for a reader that has gone vanish without a complaint."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, sys.stdout.fileno())


@contextmanager
def tell_failures(ctx: Any) -> Iterator[None]:
    """Turn failures that a user can mend into one sentence, and end with the fitting code."""
    is_debug = bool(ctx.params.get("debug"))
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
            can_resume = ctx.invoked_subcommand == "train"
            _say("\nStopped." + (" The same command with --resume goes on." if can_resume else ""))
            raise typer.Exit(INTERRUPTED) from None
        except (SememeError, MemoryError, OSError) as error:
            if is_debug:
                raise
            _say(f"Error: {_sentence(error)}")
            raise typer.Exit(USER_ERROR) from None


def _sentence(error: Exception) -> str:
    if isinstance(error, SememeError):
        return str(error)
    if isinstance(error, MemoryError):
        reason = f" ({error})" if str(error) else ""
        return f"This machine has too little memory for these options{reason}; try smaller ones."
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror or error}."
    return f"{error}."
