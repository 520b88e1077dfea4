"""Options that are defined once: the fields of a frozen dataclass become options of a command."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

Function = TypeVar("Function", bound=Callable[..., Any])

Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model folder or a vector file.")]


def flag(*names: str, help: str, **more: Any) -> Any:
    """An option that is there or not; its help shows no type."""
    return typer.Option(*names, help=help, metavar="", **more)


Json = Annotated[bool, flag("--json", help="Print the figures as JSON.")]
Quiet = Annotated[
    bool,
    flag(
        "--quiet",
        "-q",
        help="Print results and warnings only: no progress, no word on what was saved.",
    ),
]
Limit = Annotated[
    int | None, typer.Option(help="Read only this many words, the first of the file.")
]
RestrictVocab = Annotated[
    int | None, typer.Option(help="Look among this many words only, the most frequent.")
]
Pictures = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        help="Where to save, ending in .png or .svg; may be repeated. Left out: a .png with the "
        "name of the command, in this folder.",
    ),
]

# Said of every command alike, so they stand behind the options of its own.
_LAST = ("json", "quiet")
# A switch is clearer when its other side has a name of its own.
_SWITCHES = {
    "keep_best": "--keep-best/--keep-last",
    "lowercase": "--lowercase/--keep-case",
    "next_sentence": "--next-sentence/--no-next-sentence",
    "sentences": "--sentences/--no-sentences",
}


def _parameter(field: Any, kind: Any, panel: str) -> inspect.Parameter:
    name = _SWITCHES.get(field.name, "--" + field.name.replace("_", "-"))
    option = typer.Option(
        name,
        help=field.metadata["help"].replace("[", r"\["),  # brackets would be markup
        rich_help_panel=panel,
        show_default=field.default != "",
        metavar="" if kind is bool else None,
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[kind, option],
    )


def named(given: list[str] | None, option: str, example: str) -> Iterator[tuple[str, str]]:
    """Cut in two what an option is given, such as text=review; `example` is shown to others."""
    from sememe.errors import OptionError

    for item in given or []:
        what, _, name = item.partition("=")
        if not (what and name):
            raise OptionError(
                f"{option} takes two parts with = between, such as {example}, not {item!r}."
            )
        yield what, name


def expand(**panels: str | None) -> Callable[[Function], Function]:
    """Replace parameters that hold a dataclass by one option for each of its fields.

    `expand(config="Model")` gives the command the options of the class that annotates `config`,
    in a panel of that name, and calls the function with the dataclass made from them. Of a class
    whose fields are annotated as options already, `expand(asked=None)` puts them in its place.
    """

    def decorate(function: Function) -> Function:
        hints = typing.get_type_hints(function, include_extras=True)
        kept, added = [], []
        for parameter in inspect.signature(function).parameters.values():
            own, panel = hints[parameter.name], panels.get(parameter.name)
            if parameter.name not in panels:
                kept.append(parameter.replace(annotation=own, kind=inspect.Parameter.KEYWORD_ONLY))
            elif panel is None:
                kept += _annotated(own)
            else:
                types = typing.get_type_hints(own)
                added += [_parameter(field, types[field.name], panel) for field in fields(own)]

        kept.sort(key=lambda parameter: parameter.name in _LAST)

        @functools.wraps(function)
        def call(**values: Any) -> Any:
            for name in panels:
                own = hints[name]
                values[name] = own(**{field.name: values.pop(field.name) for field in fields(own)})
            return function(**values)

        parameters = [*kept, *added]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return typing.cast(Function, call)

    return decorate


def _annotated(group: type) -> list[inspect.Parameter]:
    """The fields of a class as parameters, which their annotations describe."""
    types = typing.get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=types[field.name],
        )
        for field in fields(group)
    ]
