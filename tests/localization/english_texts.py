"""Every English text of the program that a person reads, found in its source.

A text is a template: values are `{}`. One with a choice inside, such as
`f"{num} {'row' if num == 1 else 'rows'}"`, gives one template per choice.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import typer
from jinja2 import Environment, nodes

import sememe
from sememe import errors
from sememe.cli import app
from sememe.cli.program import PANELS
from sememe.cli.wording import TYPER_WORDS

SOURCE = Path(sememe.__file__).parent
HOLE = "{}"
_MOST = 64  # templates of one text
_ERRORS = {name for name in vars(errors) if name.endswith("Error")}
# Functions whose first argument, or the argument of that name, is a message.
_MESSAGES = {"note": 0, "remark": 0, "warn": 0, "task": 0, "translate": 0, "say": 0}


def templates(node: ast.AST, known: dict[str, list[ast.AST]] | None = None) -> list[str]:
    """The templates of an expression that gives a text; `{}` where nothing is known."""
    return list(islice(_templates(node, known or {}), _MOST))


def _templates(node: ast.AST, known: dict[str, list[ast.AST]]) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield from _joined([_inside(part, known) for part in parts])
        case ast.IfExp(body=first, orelse=second):
            yield from _templates(first, known)
            yield from _templates(second, known)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            yield from _joined([templates(left, known), templates(right, known)])
        case ast.BinOp(left=left, op=ast.Mult()) if _is_text(left):
            yield from _templates(left, known)
            yield ""
        case ast.BoolOp(values=values):
            for value in values:
                yield from _templates(value, known)
        case ast.Name(id=name) if name in known:
            for value in known[name]:
                yield from _templates(value, {})
        case _:
            yield HOLE


def _inside(part: ast.AST, known: dict[str, list[ast.AST]]) -> list[str]:
    if isinstance(part, ast.FormattedValue):
        is_choice = isinstance(part.value, ast.IfExp | ast.BinOp | ast.Name)
        return templates(part.value, known) if is_choice and part.format_spec is None else [HOLE]
    return templates(part, known)


def _joined(parts: list[list[str]]) -> Iterator[str]:
    yield from ("".join(own) for own in product(*parts))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _functions(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    yield from (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))


def _assigned(function: ast.AST) -> dict[str, list[ast.AST]]:
    """The texts that are assigned to names in a function."""
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return found


def called(path: Path, is_wanted: Callable[[ast.Call, str], ast.AST | None]) -> Iterator[str]:
    """The templates of the arguments that `is_wanted` picks from the calls in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)] or [tree]:
        known = _assigned(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                argument = is_wanted(node, name)
                if argument is not None:
                    yield from templates(argument, known)


def _message(call: ast.Call, name: str) -> ast.AST | None:
    if name in _ERRORS or name in _MESSAGES:
        return call.args[0] if call.args else None
    return None


def messages() -> list[str]:
    """The errors, notes, remarks and titles of tasks in the source."""
    found = [text for path in sorted(SOURCE.rglob("*.py")) for text in called(path, _message)]
    return list(dict.fromkeys(text for text in found if _has_words(text)))


def _has_words(text: str) -> bool:
    return any(char.isalpha() for char in text.replace(HOLE, ""))


def help_texts() -> list[str]:
    """The paragraphs of every command's help, its options and panels, and typer's own words."""
    from typer import rich_utils

    found = [getattr(rich_utils, name) for name in TYPER_WORDS] + list(PANELS)
    pending: list[Any] = [typer.main.get_command(app)]
    while pending:
        command = pending.pop(0)
        pending += getattr(command, "commands", {}).values()
        found += inspect.cleandoc(command.help or "").split("\n\n")
        found += (command.epilog or "").splitlines()[:1] + [command.options_metavar]
        for option in command.params:
            found += [option.help or "", getattr(option, "rich_help_panel", None) or ""]
    shown = [" ".join(text.split()) for text in [*found, "Usage:", "Show this message and exit."]]
    return list(dict.fromkeys(filter(None, shown)))


def page_texts() -> list[str]:
    """The texts that the report's templates and its code give to `say`."""
    report = SOURCE / "ladder" / "report"
    found = []
    for path in sorted([*report.glob("*.html"), *report.glob("*.md")]):
        tree = Environment().parse(path.read_text(encoding="utf-8"))
        for call in tree.find_all(nodes.Call):
            if getattr(call.node, "name", "") == "say":
                found += [one.value for one in _constants(call.args[0])]
        for call in tree.find_all(nodes.Filter):
            if call.name == "plural":
                found += _plurals(call.args[0].value)
    for path in sorted((SOURCE / "ladder").rglob("*.py")):
        found += called(path, lambda call, name: call.args[0] if name == "say" else None)
        for noun in called(path, lambda call, name: call.args[1] if name == "plural" else None):
            found += _plurals(noun)
    return list(dict.fromkeys(text for text in found if _has_words(text) and HOLE not in text))


def _constants(node: nodes.Node) -> list[Any]:
    return (
        [node, *node.find_all(nodes.Const)]
        if isinstance(node, nodes.Const)
        else list(node.find_all(nodes.Const))
    )


def _plurals(noun: str) -> list[str]:
    return [f"{{num:,}} {noun}", f"{{num:,}} {noun}s"]
