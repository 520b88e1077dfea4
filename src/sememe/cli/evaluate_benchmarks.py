"""Benchmarks: fine-tune a model on public sets and print the papers' tables with ours in them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.options import Json, Quiet, expand, flag
from sememe.cli.screen import examples, print_json
from sememe.tasks.config import FinetuneConfig

if TYPE_CHECKING:
    from sememe.evaluation.preparing import RunSettings

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
SkipBad = Annotated[bool, flag("--skip-bad", help="Leave bad rows out and count them.")]
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


def settings_of(
    context: typer.Context,
    config: FinetuneConfig,
    seeds: int,
    train: list[Path] | None,
    max_train: int,
    choose_on_dev: bool,
    skip_bad: bool,
    out: Path | None,
) -> RunSettings:
    """How benchmarks are run; only options that were typed take the place of a benchmark's own."""
    from sememe.errors import InputError, OptionError
    from sememe.evaluation.preparing import RunSettings
    from sememe.networks.installed import need_torch

    if seeds < 1:
        raise OptionError(f"--seeds must be 1 or more, not {seeds}.")
    for path in train or []:
        if not path.is_file():
            raise InputError(f"There is no file {path} to learn from.")
    need_torch()
    options = {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name != "seed" and _is_typed(context, field.name)
    }
    return RunSettings(
        seeds=tuple(config.seed + number for number in range(seeds)),
        options=options,
        train=tuple(train or ()),
        max_train=max_train,
        choose_on_dev=choose_on_dev,
        skip_bad=skip_bad,
        out=out,
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


def _shape(
    model: Start,
    data: Data = None,
    only: Only = None,
    seeds: Seeds = 1,
    train: Train = None,
    max_train: MaxTrain = 0,
    choose_on_dev: ChooseOnDev = False,
    skip_bad: SkipBad = False,
    out: Out = None,
    against: Against = None,
    json: Json = False,
    quiet: Quiet = False,
    *,
    context: typer.Context,
    config: FinetuneConfig,
) -> None:
    """The options of every command that runs a family of benchmarks."""


def _run(
    run: Callable[..., Any],
    *,
    model: Path,
    data: Path | None,
    only: list[str] | None,
    seeds: int,
    train: list[Path] | None,
    max_train: int,
    choose_on_dev: bool,
    skip_bad: bool,
    out: Path | None,
    against: Path | None,
    json: bool,
    quiet: bool,
    context: typer.Context,
    config: FinetuneConfig,
    **more: Any,
) -> None:
    """Run benchmarks as the options say and print what came out."""
    from sememe.evaluation.outcomes import read_outcomes
    from sememe.progress import Reporter

    settings = settings_of(context, config, seeds, train, max_train, choose_on_dev, skip_bad, out)
    earlier = read_outcomes(_json_of(against)) if against is not None else []
    result = run(
        model_folder(model), data_folder(data), settings=settings, only=only or (), earlier=earlier,
        reporter=Reporter(quiet=quiet), **more,
    )  # fmt: skip
    if json:
        print_json(result.to_dict())
        return
    typer.echo(str(result))
    if out is not None and (out / "submission").is_dir():
        typer.echo(f"Files for the test server are in {out / 'submission'}.")


def _json_of(path: Path) -> Any:
    import json

    from sememe.errors import InputError

    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {path}: {error}.") from error


def _command(name: str, text: str, run: Callable[..., Any], *added: inspect.Parameter) -> Any:
    """A command of that name with the options of `_shape` and some of its own."""

    def command(**values: Any) -> None:
        _run(run, **values)

    shape = inspect.signature(_shape)
    parameters = [*shape.parameters.values()]
    parameters[3:3] = added
    command.__doc__, command.__name__ = text, name
    command.__signature__ = shape.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {
        **_shape.__annotations__,
        **{parameter.name: parameter.annotation for parameter in added},
    }
    return expand(config="Fine-tuning")(command)


def _glue(*arguments: Any, **more: Any) -> Any:
    from sememe.evaluation.families import evaluate_glue

    return evaluate_glue(*arguments, **more)


def _squad(*arguments: Any, **more: Any) -> Any:
    from sememe.evaluation.families import evaluate_squad

    return evaluate_squad(*arguments, **more)


def _ner(*arguments: Any, **more: Any) -> Any:
    from sememe.evaluation.families import evaluate_ner

    return evaluate_ner(*arguments, **more)


def _texts(*arguments: Any, **more: Any) -> Any:
    from sememe.evaluation.families import evaluate_texts

    return evaluate_texts(*arguments, **more)


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
SOURCE = inspect.Parameter(
    "source",
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    default="en",
    annotation=Annotated[
        str, typer.Option(help="XNLI: the language that is learned; all others are asked.")
    ],
)


def register(app: typer.Typer) -> None:
    """Add the commands to `sememe evaluate`."""
    for name, text, run, added, epilog in (
        ("glue", GLUE, _glue, (), GLUE_EXAMPLES),
        ("squad", SQUAD, _squad, (), SQUAD_EXAMPLES),
        ("ner", NER, _ner, (), NER_EXAMPLES),
        ("texts", TEXTS, _texts, (SOURCE,), TEXTS_EXAMPLES),
    ):
        app.command(name, epilog=epilog)(_command(name, text, run, *added))
