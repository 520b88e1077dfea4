"""Every English text of the program that a person reads, found in its source.

A text is a template: values are `{}`. One with a choice inside, such as
`f"{num} {'row' if num == 1 else 'rows'}"`, gives one template per choice.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
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
from sememe.localization import catalogue

SOURCE = Path(sememe.__file__).parent
HOLE = "{}"
_MOST = 64  # templates of one text
_ERRORS = {name for name in vars(errors) if name.endswith("Error")}
Known = Mapping[str, Sequence[ast.AST]]  # what names stand for
# Functions whose first argument is a message, and functions that return messages.
_MESSAGES = {"note", "on_note", "_on_note", "remark", "warn", "task", "translate"}
_SPEAKING = {
    "few_remark", "interval_line", "baseline_remark", "remark", "verdict", "caption", "caveat",
    "summary",
    "_word_line", "_lines", "_words", "said", "notes_beforehand", "notes_of", "_sense_notes",
    "_note_lanes", "_sentence", "note", "start_message", "description", "_shape", "_knows",
}  # fmt: skip


def templates(node: ast.AST, known: Known | None = None) -> list[str]:
    """The templates of an expression that gives a text; `{}` where nothing is known."""
    return list(dict.fromkeys(islice(_templates(node, known or {}), _MOST)))


def _templates(node: ast.AST, known: Known) -> Iterator[str]:
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
        case ast.BoolOp(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _templates(part, known)
        case ast.Starred(value=part):
            yield from _templates(part, known)
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            if name not in known:
                yield HOLE
            for value in known.get(name, ()):
                yield from _templates(
                    value, {key: own for key, own in known.items() if key != name}
                )
        case _:
            yield HOLE


def _inside(part: ast.AST, known: Known) -> list[str]:
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


def _assigned(function: ast.AST) -> Known:
    """The values that names get in a function."""
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "append":
            found.setdefault(getattr(node.func.value, "id", ""), []).append(node.args[0])
    return found


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {one.name: one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)}


def _returned(function: ast.FunctionDef) -> list[ast.AST]:
    found = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)]
    return [one for one in found if one is not None]


def called(path: Path, argument_of: Callable[[ast.Call, str], ast.AST | None]) -> Iterator[str]:
    """The templates of the arguments that `argument_of` picks from the calls in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = _functions(tree)
    results = {name: _returned(own) for name, own in functions.items()}
    for function in [tree, *functions.values()]:
        known = {**results, **_assigned(function)}
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                argument = argument_of(node, name)
                if argument is not None:
                    yield from templates(argument, known)
        if argument_of is _message and getattr(function, "name", "") in _SPEAKING:
            for value in results[function.name]:
                yield from templates(value, known)


def _message(call: ast.Call, name: str) -> ast.AST | None:
    if name == "ResultTable":  # which translates its title and notes
        own = [one.value for one in call.keywords if one.arg in ("title", "notes")]
        return ast.List(elts=own)
    is_message = name in _ERRORS or name in _MESSAGES
    return call.args[0] if is_message and call.args else None


@cache
def messages() -> list[str]:
    """The errors, notes, remarks, titles of tasks and lines of results in the source."""
    found = [text for path in sorted(SOURCE.rglob("*.py")) for text in called(path, _message)]
    said = {*page_texts(), *catalogue("zh", "templates")}
    return list(dict.fromkeys(text for text in found if _has_words(text) and text not in said))


def _has_words(text: str) -> bool:
    return any(char.isalpha() for char in re.sub(r"\{[^{}]*\}", "", text))


@cache
def help_texts() -> list[str]:
    """The paragraphs of every command's help, its options and panels, and typer's own words."""
    from typer import rich_utils

    found = [getattr(rich_utils, name) for name in TYPER_WORDS] + list(PANELS)
    pending: list[Any] = [typer.main.get_command(app)]
    while pending:
        command = pending.pop(0)
        pending += getattr(command, "commands", {}).values()
        found += inspect.cleandoc(command.help or "").split("\n\n")
        found += [*(command.epilog or "").splitlines()[:1], command.options_metavar]
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
    return [f"{{num:,}} {noun}", f"{{num:,}} {noun}s"] if noun.isascii() and noun else []


@cache
def literals() -> str:
    """Every literal text of the program, of the report's templates and of typer, to search in."""
    found = [path.read_text(encoding="utf-8") for path in (SOURCE / "ladder").rglob("*.[hm]*")]
    roots = (SOURCE, Path(typer.__file__).parent)
    for path in (path for root in roots for path in root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                # Names of metrics are shown with spaces.
                found += [node.value, " ".join(node.value.split()), node.value.replace("_", " ")]
    return "\n".join(found)
