"""An option that nothing reads would change nothing: there is none."""

from __future__ import annotations

import ast
import dis
import inspect
import typing
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sememe
from sememe.cli import app

# `train fasttext --supervised` is led to another command before this one is called.
READ_BY_THE_GROUP = {"supervised"}


def commands(group: Any, *path: str) -> typing.Iterator[tuple[str, Any]]:
    for one in group.registered_commands:
        yield " ".join([*path, one.name or one.callback.__name__]), inspect.unwrap(one.callback)
    for one in group.registered_groups:
        yield from commands(one.typer_instance, *path, one.name)


COMMANDS = dict(commands(app))


def unread_parameters(function: Any) -> set[str]:
    loaded = {one.argval for one in dis.get_instructions(function) if one.opname.startswith("LOAD")}
    return set(inspect.signature(function).parameters) - loaded


@cache
def read_attributes() -> set[str]:
    """The names that stand behind a dot anywhere in the package, and are not assigned to."""
    found = set()
    for path in Path(sememe.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                found.add(node.attr)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_read(name):
    function = COMMANDS[name]
    assert unread_parameters(function) <= READ_BY_THE_GROUP
    for kind in typing.get_type_hints(function).values():
        if is_dataclass(kind):
            unread = {field.name for field in fields(kind)} - read_attributes()
            assert not unread, f"nothing reads {unread} of {kind.__name__}"


def test_an_option_that_nothing_reads_is_found():
    def command(corpus: str, device: str = "cpu") -> Any:
        return lambda: corpus  # read by a function inside counts

    assert unread_parameters(command) == {"device"}
    assert "min_count" in read_attributes() and "read_by_nothing_at_all" not in read_attributes()
