"""The page of all commands, made from the program: `python docs/hooks/commands.py` prints it."""

import inspect
import re
from dataclasses import fields
from functools import partial
from textwrap import fill
from typing import Any

import typer

from sememe.cli import app, evaluate_benchmarks, finetune, train_translation, training
from sememe.cli.program import PANELS
from sememe.models.translation.config import TranslationTrainingConfig
from sememe.tasks.config import FinetuneConfig
from sememe.text.settings import TextSettings
from sememe.training.config import TrainingConfig

INTRODUCTION = """# Commands

*Written by `make docs` from the program.* `sememe COMMAND --help` shows the same. `MODEL` is a
model folder, or a vector file in any format. A user error prints one sentence and exits with
code 2; `sememe --debug …` adds the traceback.

Many commands take the same options, so these are listed once, under
[shared options](#shared-options). Each command links to its groups. If an option is listed twice,
the command's own list comes first, then its groups in the order of the links. Options that mean the
same as in an earlier command are named with a link to it.

## Shell completion

`sememe --install-completion` lets the Tab key complete commands, options and their values in bash,
zsh, fish and PowerShell. Open a new terminal afterwards. `sememe --show-completion` prints the
script instead, to install it by hand. Both need `sememe` on your path.
"""


def _names_of(*classes: Any) -> set[str]:
    return {field.name for own in classes for field in fields(own)}


# Options that several commands share, as the command in the first place describes them. A specific
# group comes before the general one whose options it describes differently.
GROUPS = {
    "Translation options": (
        "train transformer",
        _names_of(train_translation.TranslationOptions, TranslationTrainingConfig),
    ),
    "Benchmark options": ("evaluate glue", _names_of(evaluate_benchmarks.BenchmarkOptions)),
    "Run options": ("evaluate glue", _names_of(evaluate_benchmarks.Runs)),
    "Labelled data options": ("finetune classify", _names_of(finetune.FinetuneOptions)),
    "Fine-tuning options": ("finetune classify", _names_of(FinetuneConfig)),
    "Network training options": ("train bert", _names_of(TrainingConfig)),
    "Word vector training options": ("train word2vec", _names_of(training.Fitting)),
    "Text options": ("train word2vec", _names_of(TextSettings)),
    "Saving options": ("train word2vec", _names_of(training.SavingOptions)),
    "Output options": ("train word2vec", {"json", "quiet"}),
}
_wrapped = partial(fill, width=100, subsequent_indent="  ", break_on_hyphens=False)


def write_manual() -> str:
    """Describe every command in Markdown, in the order of `sememe --help`, then shared options."""
    commands = _commands("sememe", typer.main.get_command(app))
    lines = {path: _lines(command) for path, command in commands.items()}
    shared = {
        title: {name: line for name, line in lines[f"sememe {path}"].items() if name in names}
        for title, (path, names) in GROUPS.items()
    }
    own = _refer({path: _own(options, shared) for path, options in lines.items()})
    parts = [
        INTRODUCTION,
        _contents(list(commands)),
        *(_describe(path, command, own[path]) for path, command in commands.items()),
        "## Shared options\n",
        *("\n".join([f"### {key}", "", *_own(own, shared), ""]) for key, own in shared.items()),
    ]
    return "\n".join(parts)


def _commands(path: str, command: Any) -> dict[str, Any]:
    """The commands below one, by what is typed to call them."""
    if not hasattr(command, "commands"):
        return {path: command}
    below = (
        _commands(f"{path} {name}", command.commands[name]) for name in command.list_commands(None)
    )
    return {path: own for found in below for path, own in found.items()}


def _contents(paths: list[str]) -> str:
    """Links to the commands, by purpose."""
    lines = ["## Commands by purpose", ""]
    for panel, names in PANELS.items():
        own = [path.removeprefix("sememe ") for path in paths if path.split()[1] in names]
        links = ", ".join(f"[{name}](#{_anchor(f'sememe {name}')})" for name in own)
        lines.append(_wrapped(f"- **{panel}:** {links}"))
    return "\n".join([*lines, ""])


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _lines(command: Any) -> dict[str, str]:
    """A line for each option of a command, by its name."""
    return {
        param.name: _wrapped(f"- {_names(param)}: {_plain(param.help)}{_default(param)}")
        for param in command.params
        if param.param_type_name == "option" and param.name != "help"
    }


def _own(lines: dict[str, str], shared: dict[str, dict[str, str]]) -> list[str]:
    """The lines that no shared group has, then links to the groups that are within these lines."""
    titles = [title for title, group in shared.items() if group.keys() < lines.keys()]
    known = {name: line for title in reversed(titles) for name, line in shared[title].items()}
    links = ", ".join(f"[{title.lower()}](#{_anchor(title)})" for title in titles)
    own = [line for name, line in lines.items() if known.get(name) != line]
    return [*own, *[_wrapped(f"- and {links}")] * bool(links)]


def _refer(lines: dict[str, list[str]]) -> dict[str, list[str]]:
    """Describe an option once: later commands name it and link to the earlier command."""
    described: dict[str, list[str]] = {}
    shown = {}
    for path, own in lines.items():
        rest = [line for line in own if line.startswith("- `")]
        groups = own[len(rest) :]
        references = []
        while same := _most_shared(rest, described):
            earlier, known = same
            names = ", ".join(f"`{_first_name(line)}`" for line in known)
            link = f"[{earlier.removeprefix('sememe ')}](#{_anchor(earlier)})"
            references.append(_wrapped(f"- {names}: as in {link}."))
            rest = [line for line in rest if line not in known]
        if path != "sememe ladder":  # so that word2vec, right after it, is described in full
            described[path] = rest
        shown[path] = [*rest, *references, *groups]
    return shown


def _most_shared(lines: list[str], described: dict[str, list[str]]) -> tuple[str, list[str]] | None:
    """The command that describes most of these lines, two or more, and the lines it describes."""
    known = {path: [line for line in lines if line in own] for path, own in described.items()}
    best = max(known, key=lambda path: len(known[path]), default="")
    return (best, known[best]) if best and len(known[best]) > 1 else None


def _first_name(line: str) -> str:
    return re.split(r"[ `]", line.removeprefix("- `"))[0]


def _describe(path: str, command: Any, options: list[str]) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    usage = " ".join([path, *map(_argument, arguments), "[OPTIONS]"])
    lines = [f"## {path}", "", inspect.cleandoc(command.help or ""), "", f"    {usage}", ""]
    lines += [_wrapped(f"- `{_argument(param)}`: {param.help}") for param in arguments]
    examples = (f"$ {line.strip()}" for line in _plain(command.epilog).splitlines()[1:])
    return "\n".join([*lines, *options, "", "```console", *examples, "```", ""])


def _plain(text: str | None) -> str:
    """Take the markup of the terminal out of a text."""
    return re.sub(r"(?<!\\)\[/?\w+\]", "", text or "").replace(r"\[", "[")


def _argument(param: Any) -> str:
    name = (param.metavar or param.name.upper()) + "..." * (param.nargs == -1)
    return name if param.required else f"[{name}]"


def _names(param: Any) -> str:
    names = " / ".join([*param.opts, *param.secondary_opts])
    choices = getattr(param.type_descriptor, "choices", None)
    return f"`{names} {'|'.join(choices)}`" if choices else f"`{names}`"


def _default(param: Any) -> str:
    value = param.opts[0] if param.default is True else param.default
    return "" if value is False or value in (None, "", []) else f" Default: `{value}`."


if __name__ == "__main__":
    print(write_manual(), end="")
