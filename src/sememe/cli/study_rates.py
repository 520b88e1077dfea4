"""The command that searches a learning rate for any training of a network."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.options import Json, Pictures, Quiet, expand
from sememe.cli.screen import examples, print_json, remark
from sememe.training.rate_search import RateSearch

if TYPE_CHECKING:
    from sememe.training.rate_search import RateCurve

EXAMPLES = examples(
    "sememe study rates train ulmfit reviews.txt --from runs/general",
    "sememe study rates --out rates.svg train bert my-texts/ --preset mini",
    "sememe study rates finetune classify runs/target --train train.tsv --layer-decay 0.3846",
    "sememe study rates --lowest 0.1 --highest 100 train ulmfit --optimizer asgd",
    "sememe study rates --num-steps 400 --json train gpt news.txt --language zh",
)
# What trains in the loop; the others have rates that were measured once for all.
NETWORKS = ("nnlm", "elmo", "ulmfit", "gpt", "bert", "seq2seq", "transformer")
# Options of the command itself stand before the one that trains, which has its own.
SETTINGS = {"allow_interspersed_args": False}

Command = Annotated[
    list[str],
    typer.Argument(
        metavar="COMMAND",
        help="The command that would train, from `train` or `finetune` on; --out may be left out.",
    ),
]


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
    """Search a learning rate: train a few steps at rates that grow, and show where the loss falls.

    Put it before any command that trains a network. Nothing is trained or saved but the picture
    (rates.png). Two rates are told: that at which the loss falls fastest, and a tenth of that at
    which it is lowest; take one of them for --learning-rate.

    The options carry the names of the Python call:
    sememe.find_rate(sememe.ULMFiT("tiny"), "text.txt").
    """
    from sememe import plots
    from sememe.networks.installed import need_torch
    from sememe.plots.style import check_paths
    from sememe.training.rate_search import find_rate_of

    paths = check_paths(out or [Path("rates.png")])
    need_torch()
    curve = find_rate_of(lambda: _run(context, command, quiet), search)
    marks = {"steepest": curve.steepest, "a tenth of the lowest": curve.tenth}
    if len(curve.rates) > 1:
        plots.descent(
            curve.rates, curve.losses, curve.smoothed.tolist(), paths,
            marks={name: rate for name, rate in marks.items() if rate is not None},
            title=" ".join(command[:2]),
        )  # fmt: skip
    if json:
        print_json({"command": command, "pictures": [str(path) for path in paths], **_facts(curve)})
        return
    for line in _words(curve):
        typer.echo(line)
    for path in paths:
        remark(f"Saved {path}", quiet)


def _run(context: typer.Context, command: list[str], quiet: bool) -> None:
    """Begin the training that the command line describes; failures are those of the command."""
    from sememe.errors import OptionError

    root = context.find_root()
    name, *own = command
    if not own or (name != "finetune" and (name != "train" or own[0] not in NETWORKS)):
        raise OptionError(
            f"A rate is searched for `train {'|'.join(NETWORKS)}` and `finetune`, "
            f"not {' '.join(command[:2])!r}."
        )
    with TemporaryDirectory() as scratch:
        if not any(part.split("=")[0] in ("--out", "-o") for part in own):
            own += ["--out", str(Path(scratch) / "model")]
        if quiet:
            own.append("--quiet")
        group: Any = root.command.commands[name]  # type: ignore[attr-defined]
        with group.make_context(name, own, parent=root) as inner:
            group.invoke(inner)


def _facts(curve: RateCurve) -> dict[str, Any]:
    from sememe import __version__

    return {**curve.to_dict(), "version": __version__}


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
