"""The command `ladder`: a corpus in, a table and a report out."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sememe.cli.on_cluster import on_cluster
from sememe.cli.options import InferenceCluster, Json, Quiet, expand, flag
from sememe.cli.program import app, console, echo, examples, needed, print_json, remark
from sememe.cli.training import Corpus, Resume
from sememe.contract import KINDS
from sememe.ladder.config import LadderConfig
from sememe.localization import say
from sememe.progress import Reporter, format_duration
from sememe.text.settings import TextSettings

if TYPE_CHECKING:
    from sememe.ladder.results import Results


# A registered kind is also a rung.
_REGISTERED = "".join(f", {name}" for name, kind in KINDS.items() if kind.family)


@app.command(
    help=f"""
    Train all models on one corpus and write a comparison report.

    Every model gets the same budget: onehot, counts, cbow, skipgram, glove,
    fasttext, ngram, nnlm, elmo, gpt, bert{_REGISTERED}. Choose among them with
    --rungs, which also takes your own models, and untrained, a BERT with
    random weights. After an interruption, --resume continues.

    A task is KIND=TRAIN,TEST, or NAME:KIND=TRAIN,TEST for several of a kind.
    """,
    epilog=examples(
        "sememe ladder",
        "sememe ladder my-texts/ --budget 5m --out runs/my-ladder",
        "sememe ladder news.txt --language zh --budget 1m --rungs counts,skipgram,fasttext,bert",
        "sememe ladder my-texts/ --rungs -elmo,runs/my-bert --task classify=train.tsv,dev.tsv",
        "sememe ladder my-texts/ --budget 5m --out runs/my-ladder --resume",
    ),
)
@expand(config="Ladder", text="Text")
def ladder(
    corpus: Corpus = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Output folder for models, results and report.")
    ] = Path("runs/ladder"),
    resume: Resume = False,
    overwrite: Annotated[
        bool,
        flag(
            "--overwrite",
            help="Delete the ladder in --out and start over.",
        ),
    ] = False,
    words: Annotated[
        list[str] | None,
        typer.Option(
            help="Word question file or folder; repeatable; default: built-in, if they fit."
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            "--task",
            metavar="KIND=TRAIN,TEST",
            help="Labelled files of a task: classify, pairs, tag, answer; repeatable.",
        ),
    ] = None,
    senses: Annotated[
        list[str] | None,
        typer.Option(help="File of ambiguous words in sentences; repeatable."),
    ] = None,
    cluster: InferenceCluster = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: LadderConfig,
    text: TextSettings,
) -> None:
    """Train all models on one corpus and write a comparison report."""
    from sememe.ladder.report import write_report
    from sememe.ladder.running import Ladder
    from sememe.ladder.tasks import parse_tasks
    from sememe.ladder.view import View

    needed(out)
    ladder_run = Ladder(config, words=words, tasks=parse_tasks(task or []), senses=senses)
    command = " ".join(["sememe", *map(shlex.quote, sys.argv[1:])])
    with on_cluster(cluster, Reporter(quiet=quiet)):
        results = ladder_run.run(
            corpus or None, out=out, text=text, resume=resume, overwrite=overwrite,
            progress=View(quiet=quiet), command=command,
        )  # fmt: skip
    write_report(results, out)
    if json:
        print_json(results.to_dict())
    else:
        _show(results, out, quiet)


def _show(results: Results, out: Path, quiet: bool) -> None:
    from sememe.ladder.report.language import in_language
    from sememe.ladder.view import score_tables

    results = in_language(results)
    screen = console()
    if not screen.is_terminal:  # a log is read later, on a screen of today
        screen.width = max(screen.width, 120)
    for table in score_tables(results, screen.width):
        screen.print(table)
    for rung in results.rungs:
        if rung.state in ("failed", "left out"):
            state = say(rung.state)
            echo(say("{rung}: {state}. {why}", rung=rung.title, state=state, why=rung.why))
    remark(f"Took {format_duration(results.seconds)}. Report: {out / 'report.html'}", quiet)
