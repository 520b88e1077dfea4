"""Translations of a text, of a file, or of what comes in by standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.opening import Device
from sememe.cli.options import Json, Quiet, expand
from sememe.cli.screen import examples, print_json
from sememe.cli.translation import score_line
from sememe.networks.translation_config import SearchConfig

if TYPE_CHECKING:
    from sememe.tasks.translate import Translator

EXAMPLES = examples(
    'sememe translate runs/de "A dog runs through the snow."',
    "sememe translate runs/de test.en --out test.hyp",
    "sememe translate runs/de test.en --reference test.de --json",
    'sememe translate runs/zh "Where is he?" --beam 10 --n-best 3',
    "cat test.en | sememe translate runs/de - --beam 1",
)

_TEXTS_AT_ONCE = 2_048


@expand(search="Search")
def translate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="Folder of a transformer or seq2seq model."),
    ],
    text: Annotated[
        str,
        typer.Argument(
            metavar="FILE|TEXT", help="A file, a text a line; or a text; - for standard input."
        ),
    ] = "-",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the translations here, a line each.")
    ] = None,
    reference: Annotated[
        Path | None, typer.Option(help="File of true translations: BLEU and chrF are told.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the texts.")] = "utf-8",
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
    *,
    search: SearchConfig,
) -> None:
    """Translate texts; a line of the answer for each line.

    With several translations of each text (--n-best) a line holds the text, the score and a
    translation, separated by tabs. The score is the logarithm of the
    probability, its length made up for.
    """
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe.progress import Reporter
    from sememe.tasks.translation_folder import open_translator

    opened = open_translator(model, device=device)
    references = None if reference is None else list(_lines(str(reference), encoding))
    texts = _texts(text, encoding)
    if references is not None:
        from sememe.metrics.translation import bleu

        texts = iter(given := list(texts))
        bleu(given, references)  # says before hours of work what would be missing after them
    rows = _translated(opened, texts, search, Reporter(quiet=quiet))
    found = list(rows) if json or out or references is not None else rows
    scores = _scores(opened, found, references, search) if references is not None else {}
    if json:
        print_json({"translations": list(found), **scores, **asdict(search)})
    elif out is not None:
        from sememe.storage.folder import write_file

        with write_file(out) as scratch:
            lines = "".join(f"{line}\n" for row in found for line in _shown(row, search))
            scratch.write_text(lines, encoding="utf-8", newline="\n")
    elif not scores:
        for row in found:
            for line in _shown(row, search):
                typer.echo(line)
    if scores and not json:
        typer.echo(score_line(scores))


def _texts(text: str, encoding: str) -> Iterator[str]:
    """The lines of a file or of standard input; a text that is no file's name is itself."""
    if text == "-" or _is_file(text):
        return _lines(text, encoding)
    if not any(char.isspace() for char in text) and Path(text).suffix:
        from sememe.errors import InputError

        raise InputError(f"There is no file {text}; a text to translate has words.")
    return iter([text])


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a name
        return False


def _lines(place: str, encoding: str) -> Iterator[str]:
    from sememe.examples.labelled.records import numbered_lines
    from sememe.text.documents import find_sources
    from sememe.text.readers.sources import Source
    from sememe.text.settings import TextSettings

    for found in find_sources(place):
        lines = numbered_lines(Source(found.path), TextSettings(encoding=encoding))
        yield from (line for _, line in lines)


def _translated(
    model: Translator, texts: Iterator[str], search: SearchConfig, reporter: Any
) -> Iterator[dict[str, Any]]:
    """A row for each text, some thousand at a time."""
    from sememe.progress import SILENT
    from sememe.tasks.translating import translations

    first = 1
    while part := list(islice(texts, _TEXTS_AT_ONCE)):
        # Bars would stand between the lines of a terminal.
        progress = SILENT if len(part) == 1 or sys.stdout.isatty() else reporter
        found = translations(model, part, search, first=first, progress=progress)
        for text, own in zip(part, found, strict=True):
            yield {"text": text, "translations": [asdict(one) for one in own]}
        first += len(part)


def _shown(row: dict[str, Any], search: SearchConfig) -> list[str]:
    if search.n_best == 1:
        return [row["translations"][0]["text"]]
    return [f"{row['text']}\t{one['score']:.4f}\t{one['text']}" for one in row["translations"]]


def _scores(
    model: Translator,
    rows: Sequence[dict[str, Any]] | Iterator[dict[str, Any]],
    references: list[str],
    search: SearchConfig,
) -> dict[str, Any]:
    from sememe.tasks.translating import scores_of

    written = [row["translations"][0]["text"] for row in rows]
    return scores_of(model, written, references) | {"pairs": len(written), "beam": search.beam}
