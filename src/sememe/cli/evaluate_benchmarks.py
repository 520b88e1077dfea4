"""Benchmarks: fine-tune a model on public sets and print the papers' tables with its results.

`features` compares which layers of a network are best for tagging.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.evaluate import app
from sememe.cli.options import Json, Quiet, Recipe, SkipBad, expand, flag, is_typed
from sememe.cli.program import echo, examples, print_json, remark
from sememe.errors import ArtifactError, InputError, OptionError
from sememe.options import MAX_SEEDS
from sememe.progress import Reporter
from sememe.tasks.config import FinetuneConfig

if TYPE_CHECKING:
    from sememe.evaluation.rows import RunSettings

Start = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="BERT or GPT folder to fine-tune, or a fine-tuned model.",
    ),
]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the official files (required).", show_default=False)
]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How often models are fine-tuned, on what, and where results are saved."""

    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            max=MAX_SEEDS,
            help="Runs with different seeds; scores are mean ± standard deviation.",
        ),
    ] = 1
    train: Annotated[
        list[Path] | None,
        typer.Option(help="Training files instead of the official ones; repeatable."),
    ] = None
    max_train: Annotated[
        int, typer.Option(min=0, max=10**12, help="Maximum training rows; 0: all.")
    ] = 0
    skip_bad: SkipBad = False
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Output folder for predictions, submission files and resuming."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class BenchmarkOptions:
    """The options of every command that runs a family of benchmarks."""

    data: Data = None
    only: Annotated[
        list[str] | None, typer.Option(help="Run only this data set; repeatable; default: all.")
    ] = None
    against: Annotated[
        Path | None, typer.Option(help="Earlier result (from --json) to report gains against.")
    ] = None
    choose_on_dev: Annotated[
        bool,
        flag("--choose-on-dev", help="Select the best epoch on the scored dev rows, as published."),
    ] = False
    recipe: Recipe = "default"


@dataclass(frozen=True, kw_only=True)
class TextsOptions(BenchmarkOptions):
    """The options for texts, also in other languages."""

    source: Annotated[
        str, typer.Option(help="XNLI: training language; all languages are evaluated.")
    ] = "en"


def settings_of(
    context: typer.Context,
    config: FinetuneConfig,
    runs: Runs,
    *,
    choose_on_dev: bool = False,
    recipe: str = "default",
) -> RunSettings:
    """The settings of a benchmark run; only options that the user gave override its defaults."""
    from sememe.evaluation.rows import RunSettings

    for path in runs.train or []:
        if not path.is_file():
            raise InputError(f"There is no file {path} to learn from.")
    options = {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name not in ("seed", "baselines") and is_typed(context, field.name)
    }
    return RunSettings(
        seeds=tuple(config.seed + number for number in range(runs.seeds)),
        options=options,
        train=tuple(runs.train or ()),
        max_train=runs.max_train,
        choose_on_dev=choose_on_dev,
        recipe="" if recipe == "default" else recipe,
        skip_bad=runs.skip_bad,
        baselines=config.baselines,
        out=runs.out,
    )


def data_folder(data: Path | None) -> Path:
    """The folder with the data sets, which must be named."""
    if data is None:
        raise OptionError("--data must name the folder that holds the official files.")
    return data


def model_folder(model: Path) -> Path:
    """The path of the model; raises an error before any work if it does not exist."""
    if not model.exists():
        raise ArtifactError(f"There is no model at {model}.")
    return model


def add_command(name: str, asked_class: type[BenchmarkOptions], *, text: str, epilog: str) -> None:
    """Add a command to `evaluate` that runs the benchmarks of that name; `text` is its help."""

    def command(
        *,
        model: Start,
        asked: BenchmarkOptions,
        runs: Runs,
        json: Json = False,
        quiet: Quiet = False,
        context: typer.Context,
        config: FinetuneConfig,
    ) -> None:
        settings = settings_of(
            context, config, runs, choose_on_dev=asked.choose_on_dev, recipe=asked.recipe
        )
        result = _run(name, model, asked, settings, Reporter(quiet=quiet))
        if json:
            print_json(result.to_dict())
            return
        echo(str(result))
        if runs.out is not None and (runs.out / "submission").is_dir():
            remark(f"Files for the test server are in {runs.out / 'submission'}.", quiet)

    command.__doc__, command.__name__ = text, name
    command.__annotations__["asked"] = asked_class
    app.command(name, epilog=epilog)(expand(asked=None, runs=None, config="Fine-tuning")(command))


def _run(
    name: str, model: Path, asked: BenchmarkOptions, settings: RunSettings, reporter: Reporter
) -> Any:
    from sememe.evaluation import suites
    from sememe.evaluation.outcomes import read_outcomes
    from sememe.storage.folder import read_json

    if asked.against is not None and not asked.against.is_file():
        raise InputError(f"Cannot read {asked.against}: there is no such file.")
    earlier = read_outcomes(read_json(asked.against)) if asked.against is not None else []
    more = {"source": asked.source} if isinstance(asked, TextsOptions) else {}
    return getattr(suites, f"evaluate_{name}")(
        model_folder(model), data_folder(asked.data), settings=settings, only=asked.only or (),
        earlier=earlier, reporter=reporter, **more,
    )  # fmt: skip


add_command(
    "glue", BenchmarkOptions,
    text="""Fine-tune on GLUE and compare with published scores.

    Each task is scored on its dev set with the official metric. Tasks
    without files are skipped and listed. With --out, test set predictions
    are written in the submission format.
    """,
    epilog=examples(
        "sememe evaluate glue runs/bert --data glue_data",
        "sememe evaluate glue runs/bert --data glue_data --only CoLA --only RTE --seeds 5",
        "sememe evaluate glue runs/bert --data glue_data --recipe small-data --seeds 5",
        "sememe evaluate glue bert-base-uncased/ --data glue_data --out runs/glue --json",
    ),
)  # fmt: skip
add_command(
    "squad", BenchmarkOptions,
    text="""Evaluate on SQuAD 1.1 and 2.0, CMRC 2018 and DRCD.

    Reports exact match and F1 like the official scripts; CMRC and DRCD use
    their own scoring for Chinese. A json file of answers by question id
    can take the place of the model.
    """,
    epilog=examples(
        "sememe evaluate squad runs/bert --data squad --epochs 2 --seeds 3",
        "sememe evaluate squad runs/answers --data squad --only squad1.1 --json",
        "sememe evaluate squad predictions.json --data squad --only squad2.0",
        "sememe evaluate squad runs/zh --data zh --only cmrc2018 --train zh/drcd/DRCD_dev.json",
    ),
)  # fmt: skip
add_command(
    "ner", BenchmarkOptions,
    text="""Evaluate entity F1 on CoNLL-2003, MSRA and CLUENER.

    Entities are scored like conlleval.
    """,
    epilog=examples(
        "sememe evaluate ner runs/bert --data conll2003 --seeds 5",
        "sememe evaluate ner runs/zh --data zh --only msra --only cluener",
    ),
)  # fmt: skip
add_command(
    "texts", TextsOptions,
    text="""Evaluate on classification, pair and choice data sets.

    snli, scitail, sst5, imdb, agnews, race, swag, storycloze, xnli,
    chnsenticorp, thucnews, lcqmc, ocnli: those with files in --data. XNLI
    is trained in one language and evaluated in all.
    """,
    epilog=examples(
        "sememe evaluate texts runs/bert --data tasks --only snli --only sst5",
        "sememe evaluate texts runs/zh --data zh --seeds 3 --out runs/chinese",
        "sememe evaluate texts runs/many --data xnli --only xnli --source en",
        "sememe evaluate texts runs/bert --data tasks --against random.json",
    ),
)  # fmt: skip


@app.command(
    epilog=examples(
        "sememe evaluate features runs/bert --data conll2003 --picture layers.png",
        "sememe evaluate features runs/zh --data zh --only msra --choice last --choice sum-all",
    ),
)
@expand(runs=None, config="Fine-tuning")
def features(
    *,
    model: Start,
    data: Data = None,
    only: Annotated[str, typer.Option(help="Data set: conll2003, msra or cluener.")] = "conll2003",
    choice: Annotated[
        list[str] | None,
        typer.Option(help="Layer choice to evaluate; repeatable; default: the paper's six."),
    ] = None,
    fine_tuning: Annotated[
        bool,
        typer.Option("--fine-tuning/--no-fine-tuning", help="Also fine-tune the whole network."),
    ] = True,
    picture: Annotated[
        list[Path] | None,
        typer.Option(help="Output .png or .svg bar chart; repeatable."),
    ] = None,
    runs: Runs,
    json: Json = False,
    quiet: Quiet = False,
    context: typer.Context,
    config: FinetuneConfig,
) -> None:
    """Compare which layers of a frozen network suit a tagger best.

    Trains a BiLSTM tagger on each of the BERT paper's six layer choices,
    and fine-tunes the whole network for comparison.
    """
    from sememe.evaluation.benchmarks import TAG_SETS
    from sememe.evaluation.features import CHOICES, compare_features
    from sememe.evaluation.rows import DataFolder
    from sememe.evaluation.suites import choose, find_holdings
    from sememe.plots.style import check_paths

    for name in choice or []:
        if name not in CHOICES:
            raise OptionError(f"--choice must be one of {', '.join(CHOICES)}, not {name!r}.")
    paths = check_paths(picture) if picture else []
    (benchmark,) = choose(TAG_SETS, [only])
    settings, reporter = settings_of(context, config, runs), Reporter(quiet=quiet)
    held = find_holdings(DataFolder(data_folder(data)), [benchmark], reporter)
    result = compare_features(
        model_folder(model), held[benchmark.name], settings, choices=tuple(choice or ()),
        with_fine_tuning=fine_tuning, reporter=reporter,
    )  # fmt: skip
    if paths:
        result.draw(paths)
    if json:
        print_json(result.to_dict())
        return
    echo(str(result.table()))
    for path in paths:
        remark(f"Saved {path}", quiet)
