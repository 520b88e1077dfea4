"""Studies: the same model trained several times, with one thing changed.

`rates` searches a learning rate for any training of a network.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe import __version__
from sememe.cli import training
from sememe.cli.options import Json, Pictures, Quiet, expand
from sememe.cli.program import echo, examples, group, needed, print_json, print_table, remark
from sememe.errors import OptionError
from sememe.localization import translate
from sememe.models.bert.config import BERT_PRESETS, StudyConfig
from sememe.models.translation.config import ReversalConfig
from sememe.progress import Reporter
from sememe.text.settings import TextSettings
from sememe.training.config import RateSearch

if TYPE_CHECKING:
    from sememe.training.rate_search import RateCurve

app = group("study", "Run experiments: masking rate, reversal, learning rate search.")


@app.command(
    epilog=examples(
        "sememe study masking --budget 1m --out runs/masking",
        "sememe study masking my-texts/ --rates 5,15,40,80 --steps 2000 --out runs/masking",
        "sememe study masking news.txt --language zh --out runs/masking-zh --resume",
    )
)
@expand(sizes=training.BLOCK_SIZES, preset=BERT_PRESETS, config="Training", text="Text")
def masking(
    *,
    corpus: training.Corpus = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output folder (required).")
    ] = None,
    rates: Annotated[
        str, typer.Option(help="Masking rates in percent, separated by commas.")
    ] = "5,15,40,80",
    resume: training.Resume = False,
    overwrite: training.Overwrite = False,
    preset: training.SomePreset = "tiny",
    tokenizer: training.Tokenizer = None,
    sizes: training.Sizes,
    json: Json = False,
    quiet: Quiet = False,
    config: StudyConfig,
    text: TextSettings,
) -> None:
    """Pre-train BERT with several masking rates and compare them.

    All rates share corpus, initialisation and number of steps: as many as
    fit into the budget (2m) at the highest rate. Each model is evaluated
    on held-out text at its own rate and at 15 %, and by a linear probe of
    its frozen vectors. The probe predicts the package of a docstring, the
    column --column label=NAME, or the document of a passage.
    """
    from sememe import study_masking

    out = needed(out)
    study = study_masking(
        corpus, config, out=out, rates=_rates(rates), preset=preset, tokenizer=tokenizer,
        sizes=sizes.given(), text=text, resume=resume, overwrite=overwrite,
        progress=Reporter(quiet=quiet),
    )  # fmt: skip
    if json:
        print_json({"path": str(out), **study.facts, "rates": study.rows})
        return
    print_table(study.headings, study.table(), always_headed=True)
    if (facts := study.facts)["question"]:
        line = (
            f"downstream: {facts['question']} ({facts['num_test']:,} rows); an untrained network "
            f"{facts['untrained']:.1%}, the most frequent answer {facts['majority']:.1%}"
        )
        echo(translate(line))
    remark(f"{study.facts['steps']:,} steps each, one seed; table and picture in {out}", quiet)


@app.command(
    epilog=examples(
        "sememe study reversal --out runs/reversal",
        "sememe study reversal --longest 40 --width 256 --budget 10m --out runs/reversal",
        "sememe study reversal --steps 2000 --out runs/reversal --resume",
    )
)
@expand(config="Training")
def reversal(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output folder (required).")
    ] = None,
    resume: training.Resume = False,
    overwrite: training.Overwrite = False,
    json: Json = False,
    quiet: Quiet = False,
    *,
    config: ReversalConfig,
) -> None:
    """Compare models with and without attention at reversing sequences.

    An LSTM with one context vector, an LSTM with attention and a
    Transformer are trained on the same random sequences, 2,000 steps each:
    minutes on a CPU. Accuracy on new sequences is printed and plotted by
    length.
    """
    from sememe import study_reversal

    out = needed(out)
    study = study_reversal(
        config, out=out, resume=resume, overwrite=overwrite, progress=Reporter(quiet=quiet)
    )
    if json:
        print_json({"path": str(out), **study.facts, "right": study.right})
        return
    print_table(study.headings, study.table(), always_headed=True)
    remark(
        f"{config.num_tests:,} sequences of each length, one seed; table and picture in {out}",
        quiet,
    )


def _rates(text: str) -> list[float]:
    try:
        return [float(part) / 100 for part in text.split(",")]
    except ValueError:
        raise OptionError(
            f"--rates must be percentages such as 5,15,40,80, not {text!r}."
        ) from None


Command = Annotated[
    list[str],
    typer.Argument(
        metavar="COMMAND",
        help="Training command to search for, starting with `train` or `finetune`.",
    ),
]


@app.command(
    epilog=examples(
        "sememe study rates train ulmfit reviews.txt --from runs/general",
        "sememe study rates --out rates.svg train bert my-texts/ --preset mini",
        "sememe study rates finetune classify runs/target --train train.tsv --layer-decay 0.3846",
        "sememe study rates --lowest 0.1 --highest 100 train ulmfit --optimizer asgd",
        "sememe study rates --num-steps 400 --json train gpt news.txt --language zh",
    ),
    # Options before the training command belong to this command, those after it to the other.
    context_settings={"allow_interspersed_args": False},
)
@expand(search="Search")
def rates(
    context: typer.Context,
    command: Command,
    out: Pictures = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    search: RateSearch,
) -> None:
    """Search for a learning rate with a range test.

    Put it before any command that trains a network. It trains a few steps
    with a growing learning rate and plots the loss (rates.png); no model
    is saved. It suggests the rate at which the loss falls fastest, and a
    tenth of the rate at which it is lowest.

    In Python: sememe.find_rate(sememe.ULMFiT("tiny"), "text.txt").
    """
    from sememe import plots
    from sememe.plots.style import check_paths
    from sememe.training.rate_search import find_rate_of

    paths = check_paths(out or [Path("rates.png")])
    curve = find_rate_of(lambda: _run(context, command, quiet), search)
    marks = {"steepest": curve.steepest, "a tenth of the lowest": curve.tenth}
    if len(curve.rates) > 1:
        plots.descent(
            curve.rates, curve.losses, curve.smoothed.tolist(), paths,
            marks={name: rate for name, rate in marks.items() if rate is not None},
            title=" ".join(command[:2]),
        )  # fmt: skip
    if json:
        print_json(
            {
                "command": command,
                "pictures": [str(path) for path in paths],
                **curve.to_dict(),
                "version": __version__,
            }
        )
        return
    for line in _words(curve):
        echo(translate(line))
    for path in paths:
        remark(f"Saved {path}", quiet)


def _run(context: typer.Context, command: list[str], quiet: bool) -> None:
    """Start the training that the command line describes; errors are those of the command."""
    root = context.find_root()
    name, *own = command
    groups: Any = root.command.commands  # type: ignore[attr-defined]
    # What trains in the loop may have a budget; the others have fixed, measured rates.
    networks = [
        kind
        for kind, one in groups["train"].commands.items()
        if "budget" in {option.name for option in one.params}
    ]
    if not own or (name != "finetune" and (name != "train" or own[0] not in networks)):
        raise OptionError(
            f"A rate is searched for `train {'|'.join(networks)}` and `finetune`, "
            f"not {' '.join(command[:2])!r}."
        )
    with TemporaryDirectory() as scratch:
        if not any(part.split("=")[0] in ("--out", "-o") for part in own):
            own += ["--out", str(Path(scratch) / "model")]
        if quiet:
            own.append("--quiet")
        with groups[name].make_context(name, own, parent=root) as inner:
            groups[name].invoke(inner)


def _words(curve: RateCurve) -> list[str]:
    tried = f"{len(curve.rates)} rates from {curve.rates[0]:.1e} to {curve.rates[-1]:.1e}"
    end = "the loss diverged there" if curve.has_diverged else "the loss held"
    if curve.steepest is None or curve.tenth is None:
        return [
            f"The loss fell at none of {tried} ({end}): give it more steps (--num-steps), other "
            "rates (--lowest, --highest), or a model that has learned something."
        ]
    return [
        f"tried {tried}; {end}",
        f"the loss falls fastest at {curve.steepest:.1e}",
        f"a tenth of the rate with the lowest loss: {curve.tenth:.1e}",
        f"the rate of these options: {curve.present:.1e}",
    ]
