"""Studies: the same model trained several times, with one thing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sememe.cli import pretraining, training
from sememe.cli.options import Json, Quiet, expand
from sememe.cli.screen import examples, print_json, print_table, remark
from sememe.evaluation.studies.config import StudyConfig
from sememe.evaluation.studies.reversal_config import ReversalConfig
from sememe.text.settings import TextSettings

app = typer.Typer(
    help="Train one model several times, with one thing changed.", no_args_is_help=True
)


@app.command(
    epilog=examples(
        "sememe study masking --budget 1m --out runs/masking",
        "sememe study masking my-texts/ --rates 5,15,40,80 --steps 2000 --out runs/masking",
        "sememe study masking news.txt --language zh --out runs/masking-zh --resume",
    )
)
@expand(sizes=None, config="Training", text="Text")
def masking(
    *,
    corpus: training.Corpus = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write.")] = None,
    rates: Annotated[
        str, typer.Option(help="Shares of the tokens to hide, in per cent.")
    ] = "5,15,40,80",
    resume: training.Resume = False,
    preset: Annotated[
        Literal["tiny", "mini", "small", "medium", "base"],
        typer.Option(help="The size of the network."),
    ] = "tiny",
    tokenizer: pretraining.Tokenizer = None,
    sizes: pretraining.BlockSizes,
    json: Json = False,
    quiet: Quiet = False,
    config: StudyConfig,
    text: TextSettings,
) -> None:
    """Train BERT with more and fewer hidden tokens, and compare what was learned.

    Every rate gets the same text, start and number of steps: those that fit into the budget (2m)
    at the highest rate. Each model is measured on held-out text at its own rate and at 15 %, and
    by how well a linear model tells labels from its frozen vectors: the package of a docstring,
    the column --label-field, or the document that a passage is from.
    """
    from sememe.evaluation.studies.masking import HEADINGS, KIND, study_masking
    from sememe.progress import Reporter

    out = training.checked_out(out, KIND)
    study = study_masking(
        corpus, config, out=out, rates=_rates(rates), preset=preset, tokenizer=tokenizer,
        sizes=sizes.given(), text=text, resume=resume, progress=Reporter(quiet=quiet),
    )  # fmt: skip
    if json:
        print_json({"path": str(out), **study.facts, "rates": study.rows})
        return
    print_table(HEADINGS, study.table(), always_headed=True)
    if study.facts["question"]:
        typer.echo(_downstream(study.facts))
    remark(f"{study.facts['steps']:,} steps each; table and picture in {out}", quiet)


@app.command(
    epilog=examples(
        "sememe study reversal --out runs/reversal",
        "sememe study reversal --longest 40 --width 256 --budget 10m --out runs/reversal",
        "sememe study reversal --steps 2000 --out runs/reversal --resume",
    )
)
@expand(config="Training")
def reversal(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write.")] = None,
    resume: training.Resume = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: ReversalConfig,
) -> None:
    """Turn made sequences round with and without attention, and compare by length.

    An LSTM that keeps a sequence in one vector, the same with attention, and a Transformer learn
    from the same random sequences, 2,000 steps each: minutes on a CPU. The share of new ones of
    each length that they turn round without a mistake is told and drawn.
    """
    from sememe.evaluation.studies.reversal import HEADINGS, KIND, study_reversal
    from sememe.progress import Reporter

    out = training.checked_out(out, KIND)
    study = study_reversal(config, out=out, resume=resume, progress=Reporter(quiet=quiet))
    if json:
        print_json({"path": str(out), **study.facts, "right": study.right})
        return
    print_table(HEADINGS, study.table(), always_headed=True)
    remark(f"{config.num_tests:,} sequences of each length; table and picture in {out}", quiet)


def _rates(text: str) -> list[float]:
    from sememe.errors import OptionError

    try:
        return [float(part) / 100 for part in text.split(",")]
    except ValueError:
        raise OptionError(f"--rates must be per cents such as 5,15,40,80, not {text!r}.") from None


def _downstream(facts: dict[str, Any]) -> str:
    return (
        f"downstream: {facts['question']} ({facts['num_test']:,} asked); an untrained network "
        f"{facts['untrained']:.1%}, the most frequent answer {facts['majority']:.1%}"
    )
