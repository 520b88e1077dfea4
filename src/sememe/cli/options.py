"""Define options once: the fields of a frozen dataclass become options of a command."""

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from sememe.errors import OptionError

Function = TypeVar("Function", bound=Callable[..., Any])

Model = Annotated[str, typer.Argument(metavar="MODEL", help="Model folder or vector file.")]
LanguageModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Language model folder (n-gram, NNLM, ELMo, ULMFiT, GPT) or ARPA file.",
    ),
]


def is_typed(context: typer.Context, name: str) -> bool:
    """Whether the user gave an option, even with its default value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def flag(*names: str, help: str, **more: Any) -> Any:
    """A boolean option; its help shows no type."""
    return typer.Option(*names, help=help, metavar="", **more)


Recipe = Annotated[
    Literal["default", "small-data"],
    typer.Option(help="small-data: more epochs; rate and epochs searched on held-out rows."),
]
Json = Annotated[bool, flag("--json", help="Print results as JSON.")]
Quiet = Annotated[
    bool,
    flag(
        "--quiet",
        "-q",
        help="Print only results and warnings, no progress.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(min=1, max=2**40, help="Load only the first N words of the file."),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda", "mps"],
    typer.Option(help="Device; auto: GPU if available."),
]
RestrictVocab = Annotated[
    int | None,
    typer.Option(min=1, max=2**40, help="Search only the N most frequent words."),
]
Pictures = Annotated[
    list[Path] | None,
    typer.Option(
        "--out",
        "-o",
        help="Output .png or .svg file; repeatable; default: COMMAND.png.",
    ),
]

Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Read the corpus on a Ray cluster: local, auto or ray://HOST:PORT.",
    ),
]

InferenceCluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Compute on a Ray cluster: local, auto or ray://HOST:PORT."
    ),
]
ResumeParts = Annotated[
    bool, flag("--resume", help="Keep finished parts in OUT.parts, and continue from them.")
]

Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="Column of a table by role, such as text=review; repeatable.",
    ),
]
SkipBad = Annotated[bool, flag("--skip-bad", help="Skip invalid rows and report how many.")]

# The same in every command, so they come after its own options.
_LAST = ("json", "quiet")
# A switch is clearer if its other side has a name of its own.
_SWITCHES = {
    "keep_best": "--keep-best/--keep-last",
    "lowercase": "--lowercase/--keep-case",
    "next_sentence": "--next-sentence/--no-next-sentence",  # also where it is off by default
}


def _switch(field: Any) -> str:
    """The name of an option; one that is on by default gets `--no-…`."""
    name = field.name.replace("_", "-")
    both = f"--{name}/--no-{name}" if field.default is True else f"--{name}"
    return _SWITCHES.get(field.name, both)


def _parameter(field: Any, kind: Any, panel: str) -> inspect.Parameter:
    name, metavar, default = _switch(field), "" if kind is bool else None, field.default
    if field.name == "columns":
        name, metavar, default, kind = "--column", "ROLE=NAME", None, list[str] | None
    option = typer.Option(
        name,
        help=field.metadata["help"].replace("[", r"\["),  # brackets would be markup
        rich_help_panel=panel,
        show_default=default != "",
        metavar=metavar,
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, option],
    )


def named(given: list[str] | None, option: str, example: str) -> Iterator[tuple[str, str]]:
    """Split an option's value such as text=review; `example` is shown in errors."""
    for item in given or []:
        what, _, name = item.partition("=")
        if not (what and name):
            raise OptionError(
                f"{option} takes two parts with = between, such as {example}, not {item!r}."
            )
        yield what, name


def columns_of(column: list[str] | None) -> dict[str, Any]:
    """The columns of each role given by --column."""
    columns: dict[str, Any] = {}
    for role, name in named(column, "--column", "text=review"):
        if role in columns:  # the choices of a question are in several columns
            before = columns[role]
            columns[role] = [*(before if isinstance(before, list) else [before]), name]
        else:
            columns[role] = name
    return columns


def reading_of(column: list[str] | None, skip_bad: bool, **more: Any) -> dict[str, Any]:
    """How rows are read, as arguments for Task.fit."""
    return {"columns": columns_of(column) or None, "skip_bad": skip_bad, **more}


def paths_of(names: list[str] | None) -> Any:
    """The arguments as paths, even if nothing exists there."""
    if not names:
        return None
    return names[0] if len(names) == 1 else [Path(name) for name in names]


def expand(**panels: Any) -> Callable[[Function], Function]:
    """Replace parameters that hold a dataclass by one option for each of its fields.

    `expand(config="Model")` gives the command the options of the class that annotates `config`, in
    a panel of that name, and calls the function with the dataclass. For a class whose fields are
    already annotated as options, use `expand(asked=None)`; `expand(sizes=BLOCKS)` uses those of the
    class BLOCKS. `expand(preset=PRESETS)` restricts the option `preset` to the keys of that table.
    """

    def decorate(function: Function) -> Function:
        hints = typing.get_type_hints(function, include_extras=True)
        kept, added = [], []
        grouped: dict[str, Any] = {}
        for parameter in inspect.signature(function).parameters.values():
            own, panel = hints[parameter.name], panels.get(parameter.name)
            if isinstance(panel, dict):
                own = Annotated[Literal[tuple(panel)], *own.__metadata__]
            elif parameter.name in panels:
                grouped[parameter.name] = own = panel if isinstance(panel, type) else own
            if parameter.name not in grouped:
                kept.append(parameter.replace(annotation=own, kind=inspect.Parameter.KEYWORD_ONLY))
            elif isinstance(panel, str):
                added += _made(own, panel)
            else:
                kept += _annotated(own)
        kept.sort(key=lambda parameter: parameter.name in _LAST)

        @functools.wraps(function)
        def call(**values: Any) -> Any:
            for name, own in grouped.items():
                given = {field.name: values.pop(field.name) for field in fields(own)}
                if "columns" in given:
                    given["columns"] = columns_of(given["columns"])
                values[name] = own(**given)
            return function(**values)

        parameters = [*kept, *added]
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return typing.cast(Function, call)

    return decorate


@functools.cache
def _made(config: type, panel: str) -> list[inspect.Parameter]:
    """The fields of a class as options in a panel; several commands share those of one class."""
    types = typing.get_type_hints(config)
    return [_parameter(field, types[field.name], panel) for field in fields(config)]


@functools.cache
def _annotated(group: type) -> list[inspect.Parameter]:
    """The fields of a class as parameters, described by their annotations."""
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
