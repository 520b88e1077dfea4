"""All commands in one program. Command modules import what they need when they run."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sememe.cli import (
    classify,
    compare,
    convert,
    embed,
    evaluate,
    evaluate_benchmarks,
    evaluate_features,
    evaluate_perplexity,
    evaluate_senses,
    fill,
    finetune,
    generate,
    info,
    ladder,
    next_sentence,
    plot,
    plot_attention,
    study,
    study_rates,
    suggest,
    train,
    translate,
    words,
)
from sememe.cli.failures import drop_output, tell_failures
from sememe.cli.options import flag
from sememe.cli.screen import examples

ORDER = (
    "ladder", "train", "neighbors", "analogy", "similarity", "odd", "fill", "next", "generate",
    "suggest", "translate", "embed", "finetune", "predict", "evaluate", "compare", "study", "plot",
    "convert", "info",
)  # fmt: skip


class Program(TyperGroup):
    """The root of the commands: every failure below it leaves by one door."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Name the commands in the order in which a newcomer meets them."""
        return sorted(self.commands, key=ORDER.index)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command and turn what a user can mend into one sentence."""
        with tell_failures(ctx):
            return super().invoke(ctx)


app = typer.Typer(
    cls=Program,
    name="sememe",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "sememe ladder",
        "sememe train word2vec my-texts/ --out runs/mine",
        "sememe neighbors runs/mine contract",
        "sememe train word2vec news.txt --language zh --out runs/news",
    ),
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from sememe import __version__

        typer.echo(f"sememe {__version__}")
        raise typer.Exit


@app.callback()
def sememe(
    version: Annotated[
        bool,
        flag("--version", help="Print the version.", callback=_print_version, is_eager=True),
    ] = False,
    debug: Annotated[
        bool, flag("--debug", help="Show where a failure came from.", envvar="SEMEME_DEBUG")
    ] = False,
) -> None:
    """Text representations on your own text: train, compare, look inside."""


app.command("ladder", epilog=ladder.EXAMPLES)(ladder.ladder)
app.add_typer(train.app, name="train")
words.register(app)
app.command("fill", epilog=fill.EXAMPLES)(fill.fill)
app.command("next", epilog=next_sentence.EXAMPLES)(next_sentence.next_sentence)
app.command("generate", epilog=generate.EXAMPLES)(generate.generate)
app.command("translate", epilog=translate.EXAMPLES)(translate.translate)
app.command("suggest", epilog=suggest.EXAMPLES)(suggest.suggest)
app.command("embed", epilog=embed.EXAMPLES)(embed.embed)
app.add_typer(finetune.app, name="finetune")
app.command("predict", epilog=classify.PREDICT_EXAMPLES)(classify.predict)
evaluate.app.command("labels", epilog=classify.LABELS_EXAMPLES)(classify.labels)
evaluate_benchmarks.register(evaluate.app)
evaluate.app.command("features", epilog=evaluate_features.EXAMPLES)(evaluate_features.features)
evaluate.app.command("perplexity", epilog=evaluate_perplexity.EXAMPLES)(
    evaluate_perplexity.perplexity
)
evaluate.app.command("senses", epilog=evaluate_senses.EXAMPLES)(evaluate_senses.senses)
app.add_typer(evaluate.app, name="evaluate")
study.app.command("rates", epilog=study_rates.EXAMPLES, context_settings=study_rates.SETTINGS)(
    study_rates.rates
)
app.add_typer(study.app, name="study")
app.command("compare", epilog=compare.EXAMPLES)(compare.compare)
plot.app.command("attention", epilog=plot_attention.EXAMPLES)(plot_attention.attention)
app.add_typer(plot.app, name="plot")
app.command("convert", epilog=convert.EXAMPLES)(convert.convert)
app.command("info", epilog=info.EXAMPLES)(info.info)


def run() -> None:
    """Run the program on the arguments of this process and leave it with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a mark in its place, not a failure.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    # Where the locale knows ASCII only, Python hides the bytes of other words in surrogates.
    sys.argv[1:] = [os.fsencode(word).decode("utf-8", "replace") for word in sys.argv[1:]]
    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            drop_output()
