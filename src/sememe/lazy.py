"""The names of a package, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def lazily(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """A package's `__getattr__` that finds each name in its module: {"Word2Vec": "model"}."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return find
