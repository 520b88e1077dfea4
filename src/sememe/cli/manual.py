"""The page of all commands, made from the program: `python -m sememe.cli.manual` prints it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer

from sememe.cli.app import app

INTRODUCTION = """# Commands

*Made by `make docs` from the program itself.* Every command also tells this with `--help`. `MODEL`
is a model folder or a vector file of any format. A mistake gives one sentence and exit code 2;
`sememe --debug …` shows where it came from.
"""


def write_manual() -> str:
    """Describe every command in Markdown, in the order of `sememe --help`."""
    root = typer.main.get_command(app)
    parts = [INTRODUCTION]
    parts += [_describe(path, command) for path, command in _walk("sememe", root)]
    return "\n".join(parts)


def _walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    context = typer.Context(command, info_name=path)
    for name in command.list_commands(context):
        yield from _walk(f"{path} {name}", children[name])


def _describe(path: str, command: Any) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    options = [param for param in command.params if param.param_type_name == "option"]
    usage = " ".join([path, *map(_argument, arguments), "[OPTIONS]"])
    lines = [f"## {path}", "", inspect.cleandoc(command.help or ""), "", f"    {usage}", ""]
    lines += [f"- `{_argument(param)}`: {param.help}" for param in arguments]
    lines += [f"- {_names(param)}: {_plain(param.help)}{_default(param)}" for param in options]
    examples = _plain(command.epilog or "").splitlines()[1:]
    return "\n".join(
        [*lines, "", "```console", *(f"$ {line.strip()}" for line in examples), "```", ""]
    )


def _plain(text: str | None) -> str:
    """Take the markup of the terminal out of a text."""
    return re.sub(r"(?<!\\)\[/?\w+\]", "", text or "").replace(r"\[", "[")


def _argument(param: Any) -> str:
    name = (param.metavar or param.name.upper()) + "..." * (param.nargs == -1)
    return name if param.required else f"[{name}]"


def _names(param: Any) -> str:
    names = " / ".join([*param.opts, *param.secondary_opts])
    choices = getattr(param.type_descriptor, "choices", None)
    if choices:
        return f"`{names} {'|'.join(choices)}`"
    return f"`{names}`"


def _default(param: Any) -> str:
    value = param.default
    if value is False or value in (None, "", []) or param.name == "help":
        return ""
    if value is True:
        return f" Default: `{param.opts[0]}`."
    return f" Default: `{value}`."


if __name__ == "__main__":
    print(write_manual(), end="")
