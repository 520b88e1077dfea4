"""The command that climbs the whole line: a corpus in, a table and a report out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememe.cli.failures import remember_out
from sememe.cli.options import Json, Quiet, expand, flag
from sememe.cli.screen import console, examples, print_json, remark
from sememe.cli.training import Corpus, Resume
from sememe.ladder.config import LadderConfig
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.ladder.results import Results

EXAMPLES = examples(
    "sememe ladder",
    "sememe ladder my-texts/ --budget 5m --out runs/my-ladder",
    "sememe ladder news.txt --language zh --budget 1m --rungs counts,skipgram,fasttext,bert",
    "sememe ladder my-texts/ --rungs -elmo,runs/my-bert --task classify=train.tsv,dev.tsv",
    "sememe ladder my-texts/ --budget 5m --out runs/my-ladder --resume",
)


@expand(config="Ladder", text="Text")
def ladder(
    corpus: Corpus = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for models, results and the report.")
    ] = Path("runs/ladder"),
    resume: Resume = False,
    anew: Annotated[
        bool,
        flag(
            "--anew",
            help="Remove the ladder that is in --out and begin again; without this or --resume "
            "one that is there is never touched.",
        ),
    ] = False,
    words: Annotated[
        list[str] | None,
        typer.Option(
            help="File or folder of word pairs, analogies, odd ones out or groups; may be "
            "repeated. Left out: built-in ones for the built-in text."
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            metavar="KIND=TRAIN,TEST",
            help="Labelled files of a kind: classify, pairs, tag or answer; may be repeated, with "
            "names: news:classify=a.tsv,b.tsv.",
        ),
    ] = None,
    senses: Annotated[
        list[str] | None,
        typer.Option(help="File of ambiguous words in sentences; may be repeated."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: LadderConfig,
    text: TextSettings,
) -> None:
    """Train every model of the line on the same text, ask all of them the same, write a report.

    Each model is a rung, with the same budget: onehot, counts, cbow, skipgram, glove, fasttext,
    ngram, nnlm, elmo, gpt, bert; --rungs chooses among these names, and may add untrained, a BERT
    that has learned nothing. Stopped at any moment, the same command with --resume goes on.
    """
    from sememe.ladder.report import write_report
    from sememe.ladder.running import Ladder
    from sememe.ladder.tasks import parse_tasks
    from sememe.ladder.view import View

    remember_out(out)
    climber = Ladder(config, words=words, tasks=parse_tasks(task or []), senses=senses)
    command = " ".join(["sememe", *map(shlex.quote, sys.argv[1:])])
    results = climber.run(
        corpus or None, out=out, text=text, resume=resume, anew=anew,
        progress=View(quiet=quiet), command=command,
    )  # fmt: skip
    write_report(results, out)
    if json:
        print_json(results.to_dict())
    else:
        _show(results, out, quiet)


def _show(results: Results, out: Path, quiet: bool) -> None:
    from sememe.ladder.view import score_tables
    from sememe.progress.figures import format_duration

    screen = console()
    if not screen.is_terminal:  # a log is read later, on a screen of today
        screen.width = max(screen.width, 120)
    for table in score_tables(results, screen.width):
        screen.print(table)
    for rung in results.rungs:
        if rung.state in ("failed", "left out"):
            typer.echo(f"{rung.title}: {rung.state}. {rung.why}")
    remark(f"Took {format_duration(results.seconds)}. Report: {out / 'report.html'}", quiet)
