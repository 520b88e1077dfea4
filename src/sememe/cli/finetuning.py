"""What the fine-tuning commands share: their options and the runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.finetuned import tell
from sememe.cli.options import Json, Quiet, expand, flag, named
from sememe.cli.training import checked_out
from sememe.tasks.config import FinetuneConfig

if TYPE_CHECKING:
    from sememe.tasks.task import Task

Start = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A BERT or GPT, ours or of Hugging Face, an ELMo or ULMFiT, word vectors, or an "
        "earlier fine-tuning.",
    ),
]
Train = Annotated[
    list[str] | None,
    typer.Option(
        help="Labelled rows to learn from (needed): tsv, csv, jsonl …, or builtin:NAME; may be "
        "repeated."
    ),
]
Dev = Annotated[
    list[str] | None,
    typer.Option(help="Rows that choose the best weights; left out: a share of the training rows."),
]
Test = Annotated[list[str] | None, typer.Option(help="Rows to score at the end.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="The model folder to write; a training needs one."),
]
Resume = Annotated[bool, flag("--resume", help="Go on where a run into --out was stopped.")]
Seeds = Annotated[
    int, typer.Option(help="Runs with different seeds; the best is kept, mean ± sd is told.")
]
IsEnsemble = Annotated[
    bool, flag("--ensemble", help="Keep the runs of all seeds as one model, not the best alone.")
]
Sweep = Annotated[
    str,
    typer.Option(
        help="Try a grid: paper, or such as 'learning_rate=5e-5,2e-5 batch_size=16,32'.",
        show_default=False,
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(help="Which column is what, such as text=review; may be repeated."),
]
Labels = Annotated[
    str,
    typer.Option(
        help="The labels and their order, with commas between; left out: those of the rows.",
        show_default=False,
    ),
]
SkipBad = Annotated[bool, flag("--skip-bad", help="Leave bad rows out and count them.")]
Encoding = Annotated[str, typer.Option(help="How the files write characters.")]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of every fine-tuning command beside the options of its task."""

    train: Train = None
    dev: Dev = None
    test: Test = None
    out: Out = None
    resume: Resume = False
    seeds: Seeds = 1
    ensemble: IsEnsemble = False
    sweep: Sweep = ""
    column: Column = None
    labels: Labels = ""
    skip_bad: SkipBad = False
    encoding: Encoding = "utf-8"
    json: Json = False
    quiet: Quiet = False


def add_command(
    app: typer.Typer, name: str, config_class: type[FinetuneConfig], *, text: str, epilog: str
) -> None:
    """Give the program a command that teaches the task of that name; `text` is its help."""

    def command(model: Start, *, asked: Asked, config: FinetuneConfig) -> None:
        finetune(name, model, asked, config)

    command.__doc__, command.__name__ = text, name
    command.__annotations__["config"] = config_class
    app.command(name, epilog=epilog)(expand(asked=None, config="Fine-tuning")(command))


def finetune(name: str, model: Path, asked: Asked, config: FinetuneConfig) -> None:
    """Fit a task as the options say, and tell how it went."""
    from sememe.errors import OptionError
    from sememe.networks.installed import need_torch
    from sememe.progress import Reporter

    if not asked.train:
        raise OptionError("--train must name the labelled rows to learn from.")
    out = checked_out(asked.out, "task")
    need_torch()
    from sememe.tasks.folder import task_class
    from sememe.tasks.trials import fit_trials, grid

    known = split_labels(asked.labels) if asked.labels else None

    def make(own: dict[str, Any]) -> Task:
        return task_class(name)(model, labels=known, **config.to_dict() | own)

    train = paths_of(asked.train)
    reading = reading_of(asked.column, asked.skip_bad, asked.encoding)
    request: dict[str, Any] = {
        "dev": paths_of(asked.dev), "out": out, "resume": asked.resume,
        "progress": Reporter(quiet=asked.quiet), **reading,
    }  # fmt: skip
    if asked.seeds == 1 and not asked.sweep:
        if asked.ensemble:
            raise OptionError("--ensemble needs several runs: give --seeds 5.")
        task = make({}).fit(train, **request)
    else:
        trials = grid(asked.seeds, config.seed, **parse_grid(asked.sweep))
        task = fit_trials(make, trials, train, ensemble=asked.ensemble, **request)
    scores = task.evaluate(paths_of(asked.test), **reading) if asked.test else None
    tell(task, out, scores, as_json=asked.json, quiet=asked.quiet)


def paths_of(names: list[str] | None) -> Any:
    """What was named on the command line, as paths even where there is nothing of that name."""
    if not names:
        return None
    return names[0] if len(names) == 1 else [Path(name) for name in names]


def parse_grid(text: str) -> dict[str, tuple[Any, ...]]:
    """Turn 'learning_rate=5e-5,2e-5 batch_size=16,32' into choices by option."""
    from dataclasses import fields

    from sememe.errors import OptionError
    from sememe.tasks.trials import PAPER_GRID

    if text in ("", "paper"):
        return PAPER_GRID if text else {}
    kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(FinetuneConfig)}
    found: dict[str, tuple[Any, ...]] = {}
    for part in text.split():
        name, has_values, values = part.partition("=")
        name = name.lstrip("-").replace("-", "_")
        if not has_values or kinds.get(name) not in (int, float, str):
            raise OptionError(
                f"--sweep takes options with their values, such as batch_size=16,32, not {part!r}."
            )
        try:
            found[name] = tuple(kinds[name](value) for value in values.split(","))
        except ValueError:
            raise OptionError(f"--sweep: {values!r} is not a list of numbers.") from None
    return found


def split_labels(text: str) -> list[str]:
    """Labels as a command gives them, with commas between."""
    from sememe.errors import OptionError

    labels = [label.strip() for label in text.split(",")]
    if len(set(labels)) != len(labels) or not all(labels):
        raise OptionError(f"--labels must be different names with commas between, not {text!r}.")
    return labels


def reading_of(column: list[str] | None, skip_bad: bool, encoding: str) -> dict[str, Any]:
    """How rows are read, as Task.fit takes it."""
    columns: dict[str, Any] = {}
    for role, name in named(column, "--column", "text=review"):
        if role in columns:  # the choices of a question stand in several columns
            before = columns[role]
            columns[role] = [*(before if isinstance(before, list) else [before]), name]
        else:
            columns[role] = name
    return {"columns": columns or None, "skip_bad": skip_bad, "encoding": encoding}
