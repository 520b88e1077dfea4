"""Which layers of a network a tagger reads best."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sememe.cli.evaluate_benchmarks import (
    Data,
    Runs,
    Start,
    data_folder,
    model_folder,
    settings_of,
)
from sememe.cli.options import Json, Quiet, expand
from sememe.cli.screen import examples, print_json, remark
from sememe.tasks.config import FinetuneConfig

EXAMPLES = examples(
    "sememe evaluate features runs/bert --data conll2003 --picture layers.png",
    "sememe evaluate features runs/zh --data zh --only msra --choice last --choice sum-all",
)


@expand(runs=None, config="Fine-tuning")
def features(
    *,
    model: Start,
    data: Data = None,
    only: Annotated[str, typer.Option(help="conll2003, msra or cluener.")] = "conll2003",
    choice: Annotated[
        list[str] | None,
        typer.Option(help="Layers to try; may be repeated. Left out: the six of the paper."),
    ] = None,
    fine_tuning: Annotated[
        bool, typer.Option("--fine-tuning/--no-fine-tuning", help="Fine-tune the whole as well.")
    ] = True,
    picture: Annotated[
        list[Path] | None,
        typer.Option(help="Draw the bars here, ending in .png or .svg; may be repeated."),
    ] = None,
    runs: Runs,
    json: Json = False,
    quiet: Quiet = False,
    context: typer.Context,
    config: FinetuneConfig,
) -> None:
    """Compare which layers of a frozen network a tagger reads best: table and bars.

    The six choices of the BERT paper, each read by a BiLSTM, beside the network fine-tuned.
    """
    from sememe.errors import OptionError
    from sememe.evaluation.benchmarks import TAG_SETS
    from sememe.evaluation.families import choose
    from sememe.evaluation.features import CHOICES, compare_features
    from sememe.evaluation.finding import DataFolder
    from sememe.plots.style import check_paths
    from sememe.progress import Reporter

    for name in choice or []:
        if name not in CHOICES:
            raise OptionError(f"--choice must be one of {', '.join(CHOICES)}, not {name!r}.")
    paths = check_paths(picture) if picture else []
    (benchmark,) = choose(TAG_SETS, [only])
    settings = settings_of(context, config, runs)
    result = compare_features(
        model_folder(model), DataFolder(data_folder(data)).holdings(benchmark), settings,
        choices=tuple(choice or ()), with_fine_tuning=fine_tuning,
        reporter=Reporter(quiet=quiet),
    )  # fmt: skip
    if paths:
        result.draw(paths)
    if json:
        print_json(result.to_dict())
        return
    typer.echo(str(result.table()))
    for path in paths:
        remark(f"Saved {path}", quiet)
