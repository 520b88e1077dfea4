"""Benchmarks: fine-tune a model on public sets and print the papers' tables with ours in them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.finetuning import SkipBad
from sememe.cli.options import Json, Quiet, expand, flag
from sememe.cli.screen import examples, print_json, remark
from sememe.tasks.config import FinetuneConfig

if TYPE_CHECKING:
    from sememe.evaluation.preparing import RunSettings
    from sememe.progress import Reporter

Start = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="Folder of a BERT or GPT to fine-tune, or of a model that was fine-tuned already.",
    ),
]
Data = Annotated[
    Path | None, typer.Option(help="The folder that holds the official files.", show_default=False)
]
Only = Annotated[
    list[str] | None, typer.Option(help="Run this set alone; may be repeated. Left out: all.")
]
Seeds = Annotated[int, typer.Option(help="Runs with different seeds; mean ± sd is told.")]
Train = Annotated[
    list[Path] | None,
    typer.Option(help="Learn from these files in place of the official ones; may be repeated."),
]
MaxTrain = Annotated[int, typer.Option(help="Learn from this many rows at most; 0: all.")]
ChooseOnDev = Annotated[
    bool,
    flag("--choose-on-dev", help="Let scored dev rows choose the best epoch, as the papers did."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="Keep what each seed gave: predictions, submission files, resuming."
    ),
]
Against = Annotated[
    Path | None, typer.Option(help="Count gains from an earlier result, printed by --json.")
]

GLUE_EXAMPLES = examples(
    "sememe evaluate glue runs/bert --data glue_data",
    "sememe evaluate glue runs/bert --data glue_data --only CoLA --only RTE --seeds 5",
    "sememe evaluate glue bert-base-uncased/ --data glue_data --out runs/glue --json",
)
SQUAD_EXAMPLES = examples(
    "sememe evaluate squad runs/bert --data squad --epochs 2 --seeds 3",
    "sememe evaluate squad runs/answers --data squad --only squad1.1 --json",
    "sememe evaluate squad predictions.json --data squad --only squad2.0",
    "sememe evaluate squad runs/zh --data zh --only cmrc2018 --train zh/drcd/DRCD_dev.json",
)
NER_EXAMPLES = examples(
    "sememe evaluate ner runs/bert --data conll2003 --seeds 5",
    "sememe evaluate ner runs/zh --data zh --only msra --only cluener",
)
TEXTS_EXAMPLES = examples(
    "sememe evaluate texts runs/bert --data tasks --only snli --only sst5",
    "sememe evaluate texts runs/zh --data zh --seeds 3 --out runs/chinese",
    "sememe evaluate texts runs/many --data xnli --only xnli --source en",
    "sememe evaluate texts runs/bert --data tasks --against random.json",
)


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How often models are fine-tuned, on what, and where it is kept."""

    seeds: Seeds = 1
    train: Train = None
    max_train: MaxTrain = 0
    skip_bad: SkipBad = False
    out: Out = None


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of every command that runs a family of benchmarks."""

    data: Data = None
    only: Only = None
    against: Against = None
    choose_on_dev: ChooseOnDev = False


@dataclass(frozen=True, kw_only=True)
class AskedOfTexts(Asked):
    """What is asked of texts, those in other languages among them."""

    source: Annotated[
        str, typer.Option(help="XNLI: the language that is learned; all others are asked.")
    ] = "en"


def settings_of(
    context: typer.Context, config: FinetuneConfig, runs: Runs, *, choose_on_dev: bool = False
) -> RunSettings:
    """How benchmarks are run; only options that were typed take the place of a benchmark's own."""
    from sememe.errors import InputError, OptionError
    from sememe.evaluation.preparing import RunSettings
    from sememe.networks.installed import need_torch

    if runs.seeds < 1:
        raise OptionError(f"--seeds must be 1 or more, not {runs.seeds}.")
    for path in runs.train or []:
        if not path.is_file():
            raise InputError(f"There is no file {path} to learn from.")
    need_torch()
    options = {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name != "seed" and _is_typed(context, field.name)
    }
    return RunSettings(
        seeds=tuple(config.seed + number for number in range(runs.seeds)),
        options=options,
        train=tuple(runs.train or ()),
        max_train=runs.max_train,
        choose_on_dev=choose_on_dev,
        skip_bad=runs.skip_bad,
        out=runs.out,
    )


def _is_typed(context: typer.Context, name: str) -> bool:
    """Whether the user gave an option, be it with the value that it has by default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def data_folder(data: Path | None) -> Path:
    """The folder with the data sets, which must be named."""
    from sememe.errors import OptionError

    if data is None:
        raise OptionError("--data must name the folder that holds the official files.")
    return data


def model_folder(model: Path) -> Path:
    """Where the model lies, refused before any work if it is not there."""
    from sememe.errors import ArtifactError

    if not model.exists():
        raise ArtifactError(f"There is no model at {model}.")
    return model


def _command(name: str, text: str, asked_class: type[Asked]) -> Any:
    """A command that runs the family of benchmarks of that name; `text` is its help."""

    def command(
        *,
        model: Start,
        asked: Asked,
        runs: Runs,
        json: Json = False,
        quiet: Quiet = False,
        context: typer.Context,
        config: FinetuneConfig,
    ) -> None:
        from sememe.progress import Reporter

        settings = settings_of(context, config, runs, choose_on_dev=asked.choose_on_dev)
        result = _run(name, model, asked, settings, Reporter(quiet=quiet))
        if json:
            print_json(result.to_dict())
            return
        typer.echo(str(result))
        if runs.out is not None and (runs.out / "submission").is_dir():
            remark(f"Files for the test server are in {runs.out / 'submission'}.", quiet)

    command.__doc__, command.__name__ = text, name
    command.__annotations__["asked"] = asked_class
    return expand(asked=None, runs=None, config="Fine-tuning")(command)


def _run(name: str, model: Path, asked: Asked, settings: RunSettings, reporter: Reporter) -> Any:
    from sememe.evaluation import families
    from sememe.evaluation.outcomes import read_outcomes

    run: Any = {
        "glue": families.evaluate_glue, "squad": families.evaluate_squad,
        "ner": families.evaluate_ner, "texts": families.evaluate_texts,
    }[name]  # fmt: skip
    earlier = read_outcomes(_json_of(asked.against)) if asked.against is not None else []
    more = {"source": asked.source} if isinstance(asked, AskedOfTexts) else {}
    return run(
        model_folder(model), data_folder(asked.data), settings=settings, only=asked.only or (),
        earlier=earlier, reporter=reporter, **more,
    )  # fmt: skip


def _json_of(path: Path) -> Any:
    import json

    from sememe.errors import InputError

    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {path}: {error}.") from error


GLUE = """Fine-tune on the tasks of GLUE and print the papers' table with ours in it.

Each task is scored on its dev set by its official metric. Tasks whose files are missing are named
and left out. With --out the test sets are answered in files that the server takes.
"""
SQUAD = """Score answers on SQuAD 1.1 and 2.0, CMRC 2018 and DRCD as their official scripts do.

Exact match and F1; CMRC and DRCD by their own scorer for Chinese. In place of a model, a json file
of answers by question can be scored.
"""
NER = """Score names on CoNLL-2003, MSRA and CLUENER: entity F1 as conlleval counts it."""
TEXTS = """Score sets of texts, pairs and choices, English and Chinese, in their official files.

snli, scitail, sst5, imdb, agnews, race, swag, storycloze, xnli, chnsenticorp, thucnews, lcqmc,
ocnli: those whose files are there. XNLI is learned in one language and asked in all.
"""


def register(app: typer.Typer) -> None:
    """Add the commands to `sememe evaluate`."""
    for name, text, asked_class, epilog in (
        ("glue", GLUE, Asked, GLUE_EXAMPLES),
        ("squad", SQUAD, Asked, SQUAD_EXAMPLES),
        ("ner", NER, Asked, NER_EXAMPLES),
        ("texts", TEXTS, AskedOfTexts, TEXTS_EXAMPLES),
    ):
        app.command(name, epilog=epilog)(_command(name, text, asked_class))
