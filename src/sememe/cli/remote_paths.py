"""Options that name files on other file systems (`--out s3://bucket/runs/mine`).

A command writes to a copy in the cache, which is uploaded when it has ended without an error; it
reads a model from such a copy. What it prints names the URL.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from sememe.errors import OptionError
from sememe.machine import torchrun_ranks
from sememe.storage import remote
from sememe.storage.urls import url_of

_WRITTEN = ("out", "index", "removed", "picture")
_MAPPED = ("store",)  # memory-mapped while a command runs
_URLS: ContextVar[dict[str, str]] = ContextVar("urls")


def with_urls(command: Any) -> Any:
    """Let a command take URLs where it takes paths; groups stay as they are."""
    if not hasattr(command, "commands"):
        command.invoke = partial(_invoke, type(command).invoke.__get__(command))
    return command


def as_typed(text: str) -> str:
    """A message with the URLs that the user gave, not the places of their copies."""
    for place, url in _URLS.get({}).items():
        text = text.replace(place, url)
    return text


def _invoke(invoke: Callable[[Any], Any], ctx: Any) -> Any:
    _URLS.set({})
    with ExitStack() as copies:
        for name, value in ctx.params.items():
            ctx.params[name] = _here(name, value, copies)
        return invoke(ctx)


def _here(name: str, value: Any, copies: ExitStack) -> Any:
    if isinstance(value, list | tuple):
        return [_here(name, one, copies) for one in value]
    if not isinstance(value, Path) or (url := url_of(value)) is None:
        return value
    if name in _MAPPED:
        raise OptionError(f"--{name} is read in place and must be on this machine, not at {url}.")
    if name in _WRITTEN:
        path = copies.enter_context(remote.written(url, uploads=not torchrun_ranks()[0]))
    else:
        path = remote.here(value)
    _URLS.get()[str(path)] = url
    return path
