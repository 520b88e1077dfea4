"""Help and usage errors in the language of the user: the texts of the program and of typer."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sememe.localization import VARIABLE, current, preferred, translate, using

# The words of typer itself, which it reads from its module when it prints.
TYPER_WORDS = ("DEFAULT_STRING", "ENVVAR_STRING", "REQUIRED_LONG_STRING", "ARGUMENTS_PANEL_TITLE",
               "OPTIONS_PANEL_TITLE", "COMMANDS_PANEL_TITLE", "ERRORS_PANEL_TITLE",
               "ABORTED_TEXT", "RICH_HELP")  # fmt: skip

# What rich keeps on one line: a Chinese character, or a word of letters, with its punctuation.
_BEFORE, _AFTER, _HAN = (
    "（《「『【“‘",
    "、。，；：？！）》」』】”’…",
    "\u2e80-\u2fff\u3040-\u9fff\uf900-\ufaff",
)
_UNBROKEN = re.compile(
    rf"\s*(?:[{_BEFORE}]*(?:[{_HAN}]|[^\s{_HAN}{_BEFORE}{_AFTER}]+)[{_AFTER}]*|\S)\s*"
)


def requested(arguments: Sequence[str]) -> str:
    """The language of the command line: --lang, then SEMEME_LANG, then the locale."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if argument == "--lang":
            return following
        if argument.startswith("--lang="):
            return argument.removeprefix("--lang=")
    return os.environ.get(VARIABLE) or preferred()


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Speak a language, typer's own words too, until the command has ended."""
    with using(language):
        if current() == "en":
            yield
            return
        from rich import _wrap
        from rich.text import Text
        from typer import rich_utils

        before = {name: getattr(rich_utils, name) for name in TYPER_WORDS}
        changes: dict[Any, Any] = {
            (rich_utils, name): (words, translate(words)) for name, words in before.items()
        }
        changes[_wrap, "re_word"] = (_wrap.re_word, _UNBROKEN)
        # rich counts characters here, not columns, and would cut off the last letters of a line.
        changes[Text, "rstrip_end"] = (Text.rstrip_end, lambda text, size: text.rstrip())
        try:
            for (module, name), (_, own) in changes.items():
                setattr(module, name, own)
            yield
        finally:
            for (module, name), (original, _) in changes.items():
                setattr(module, name, original)


def catalogued(text: str) -> str:
    """A text of the help, paragraph by paragraph, in the language in use."""
    return "\n\n".join(translate(" ".join(part.split())) for part in text.split("\n\n"))


def localize(command: Any, ctx: Any) -> Any:
    """Translate what a command's help shows, in place; each run builds its commands again."""
    if current() == "en":
        return command
    command.help = catalogued(inspect.cleandoc(command.help or ""))
    title, _, rest = (command.epilog or "").partition("\n")
    command.epilog = f"{translate(title)}\n{rest}" if title else None
    command.options_metavar = translate(command.options_metavar)
    for option in command.get_params(ctx):
        option.help = catalogued(option.help or "")
        option.rich_help_panel = catalogued(getattr(option, "rich_help_panel", "") or "")
    usage = type(command).get_usage.__get__(command)
    command.get_usage = lambda ctx: usage(ctx).replace("Usage:", translate("Usage:"), 1)
    return command


@contextmanager
def translated_usage_errors() -> Iterator[None]:
    """Let typer print a usage error (an unknown option, a missing argument) in our words."""
    try:
        yield
    except Exception as error:
        if message := getattr(error, "format_message", None):
            text = translate(message())
            error.format_message = lambda: text  # type: ignore[attr-defined]
        raise
