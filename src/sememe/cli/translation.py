"""What the commands that train translation share: their options, and their closing words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.options import Json, Quiet, flag, named
from sememe.cli.screen import print_json, remark
from sememe.cli.training import Out, Resume, checked_out

if TYPE_CHECKING:
    from sememe.tasks.translate import Translator

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE",
        help="File of texts, one a line; or a table (tsv, csv, jsonl, parquet) with both sides.",
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="File of their translations, line by line."),
]
DevSource = Annotated[
    str | None,
    typer.Option(help="Pairs to choose the weights by: texts, or a table. Left out: a share."),
]
DevTarget = Annotated[str | None, typer.Option(help="The translations of --dev-source.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="Column of a table that is the source or the target: source=en; may be repeated.",
    ),
]
SkipBad = Annotated[
    bool, flag("--skip-bad", help="Leave out pairs with an empty side, and say how many.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of the texts.")]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of the commands that learn from pairs of texts."""

    out: Out = None
    resume: Resume = False
    dev_source: DevSource = None
    dev_target: DevTarget = None
    column: Columns = None
    skip_bad: SkipBad = False
    encoding: Encoding = "utf-8"
    json: Json = False
    quiet: Quiet = False


def train(
    model: Translator,
    source: str,
    target: str | None,
    asked: Asked,
    tokenizer: Path | None,
) -> None:
    """Fit a model that translates as the options say, and tell how it went."""
    from sememe.errors import OptionError
    from sememe.progress import Reporter

    dev: Any = asked.dev_source
    if asked.dev_target is not None:
        if dev is None:
            raise OptionError("--dev-target needs --dev-source.")
        dev = dev, asked.dev_target
    out = checked_out(asked.out, model.kind)
    columns = dict(named(asked.column, "--column", "source=en"))
    model.fit(
        source, target, dev=dev, columns=columns or None, skip_bad=asked.skip_bad,
        encoding=asked.encoding, tokenizer=tokenizer, out=out, resume=asked.resume,
        progress=Reporter(quiet=asked.quiet),
    )  # fmt: skip
    figures = model.history.last()
    if asked.json:
        print_json({"path": str(out), "figures": figures, "scores": model.scores})
        return
    remark(f"Saved {type(model).__name__} {model.preset} to {out}", asked.quiet)
    if "validation_perplexity" in figures:
        typer.echo(
            f"dev pairs: loss {figures['validation_loss']:.3f} a token, perplexity "
            f"{figures['validation_perplexity']:,.2f}, {figures['validation_token_accuracy']:.1%} "
            "of the tokens right"
        )
    if model.scores:
        typer.echo(score_line(model.scores))


def score_line(scores: dict[str, Any]) -> str:
    """BLEU and chrF in words, each with its signature."""
    return (
        f"BLEU {scores['bleu']:.2f} ({scores['bleu_signature']}), "
        f"chrF {scores['chrf']:.2f} ({scores['chrf_signature']}) on {scores['pairs']:,} pairs, "
        f"beam {scores['beam']}"
    )
