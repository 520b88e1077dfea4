"""The fine-tuning commands: a model and labelled rows in, a task out.

Their options, their runs, and their summary at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli.options import (
    Column,
    Recipe,
    SkipBad,
    expand,
    flag,
    paths_of,
    reading_of,
)
from sememe.cli.program import (
    examples,
    group,
    needed,
    print_json,
    print_scores,
    print_table,
    remark,
)
from sememe.cli.training import NetworkSaving, fitted_where
from sememe.contract import KINDS
from sememe.errors import OptionError
from sememe.localization import say
from sememe.options import MAX_SEEDS
from sememe.progress import Reporter, format_score
from sememe.tasks.config import (
    PAPER_GRID,
    AnswerConfig,
    ClassifyConfig,
    FinetuneConfig,
    TagConfig,
    grid,
)

if TYPE_CHECKING:
    from sememe.tasks.scores import Scores
    from sememe.tasks.task import Task

app = group("finetune", "Fine-tune a model on your labelled rows.")


def tell(task: Task, out: Path, test_scores: Scores | None, *, as_json: bool, quiet: bool) -> None:
    """Print what was saved and its scores."""
    from sememe.tasks.trials import settings_of

    settings = settings_of(task.trials) if task.trials else []
    if as_json:
        print_json(
            {
                "path": str(out),
                "task": task.kind,
                "labels": task.labels,
                **{
                    name: scores and {**scores.to_dict(), "remark": scores.remark}
                    for name, scores in (("dev", task.scores), ("test", test_scores))
                },
                "learned": task.learned,
                "trials": task.trials,
                "searched": task.searched,
                "settings": [setting._asdict() for setting in settings],
                "metrics": task.history.last(),
            }
        )
        return
    if task.searched:
        tell_search(task.searched)
    rows = []
    for one in settings:
        tried = [f"{v:g}" if isinstance(v, float) else str(v) for v in one.options.values()]
        spread = f"{format_score(one.mean)} ± {format_score(one.deviation)}"
        rows.append((*tried, spread, ", ".join(map(format_score, one.values))))
    if rows:
        metric = task.trials[0]["scores"]["main_metric"].replace("_", " ")
        headings = (*settings[0].options, f"{metric}, mean ± sd", "each seed")
        print_table(headings, rows, title=say("dev rows"), always_headed=True)
    for name, scores in (("dev", task.scores), ("test", test_scores)):
        if scores is not None:
            print_scores(scores, name)
    remark(f"Saved to {out}", quiet)


def tell_search(searched: dict[str, Any]) -> None:
    """Print what a recipe tried on held-out training rows."""
    trials = searched["trials"]
    if not trials:
        return
    metric = searched["metric"].replace("_", " ")
    rows = [
        (
            *(f"{value:g}" for value in one["options"].values()),
            format_score(one["mean"]), ", ".join(map(format_score, one["values"])),
        )
        for one in trials
    ]  # fmt: skip
    headings = (*trials[0]["options"], f"{metric}, mean", "each part")
    title = say("search on {num:,} held-out training rows", num=searched["num_held_out"])
    print_table(headings, rows, title=title, always_headed=True)


Start = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="BERT, GPT, ELMo or ULMFiT folder, word vectors, or fine-tuned model.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions(NetworkSaving):
    """The options of every fine-tuning command besides the options of its task."""

    train: Annotated[
        list[str] | None,
        typer.Option(
            help="Labelled rows (required): tsv, csv, jsonl …, or builtin:NAME; repeatable."
        ),
    ] = None
    dev: Annotated[
        list[str] | None,
        typer.Option(help="Validation rows; repeatable; default: a fraction of the training rows."),
    ] = None
    test: Annotated[
        list[str] | None, typer.Option(help="Test rows, scored at the end; repeatable.")
    ] = None
    recipe: Recipe = "default"
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_SEEDS,
            help="Runs with different seeds; the best is saved; default: 1, small-data: 5.",
            show_default=False,
        ),
    ] = None
    ensemble: Annotated[
        bool,
        flag("--ensemble", help="Save all seeds as one ensemble, not only the best run."),
    ] = False
    sweep: Annotated[
        str,
        typer.Option(
            help="Grid search: paper, or 'learning_rate=5e-5,2e-5 batch_size=16,32'.",
            show_default=False,
        ),
    ] = ""
    column: Column = None
    labels: Annotated[
        str,
        typer.Option(
            help="Comma-separated labels in order; default: those of the rows.",
            show_default=False,
        ),
    ] = ""
    skip_bad: SkipBad = False
    encoding: Annotated[str, typer.Option(help="Encoding of the files.")] = "utf-8"


def add_command(name: str, config_class: type[FinetuneConfig], *, text: str, epilog: str) -> None:
    """Add a command that fine-tunes the task of that name; `text` is its help."""

    def command(model: Start, *, asked: FinetuneOptions, config: FinetuneConfig) -> None:
        finetune(name, model, asked, config)

    command.__doc__, command.__name__ = text, name
    command.__annotations__["config"] = config_class
    app.command(name, epilog=epilog)(expand(asked=None, config="Fine-tuning")(command))


def finetune(name: str, model: Path, asked: FinetuneOptions, config: FinetuneConfig) -> None:
    """Fit a task with these options, and print the result."""
    from sememe.tasks.small_data import NUM_SEEDS, fit_small_data
    from sememe.tasks.trials import fit_trials

    if not asked.train:
        raise OptionError("--train must name a file of labelled rows.")
    out = needed(asked.out)
    known = split_labels(asked.labels) if asked.labels else None

    def make(own: dict[str, Any]) -> Task:
        return KINDS[name].cls()(model, labels=known, **config.to_dict() | own)

    train = paths_of(asked.train)
    reading = reading_of(asked.column, asked.skip_bad, encoding=asked.encoding)
    request: dict[str, Any] = {
        "dev": paths_of(asked.dev), "out": out, "resume": asked.resume,
        "overwrite": asked.overwrite,
        "progress": Reporter(quiet=asked.quiet), **reading,
    }  # fmt: skip
    if asked.recipe == "small-data":
        if asked.sweep:
            raise OptionError("--recipe small-data searches by itself: leave out --sweep.")
        if asked.cluster is not None:
            raise OptionError(
                "--cluster trains one run: leave out --recipe small-data, or --cluster."
            )
        task = fit_small_data(make, train, seeds=asked.seeds or NUM_SEEDS, **request)
    elif asked.seeds in (None, 1) and not asked.sweep:
        if asked.ensemble:
            raise OptionError("--ensemble needs several runs: give --seeds 5.")
        with fitted_where(asked) as fit:
            task = fit(make({}), train, **request)
    elif asked.cluster is not None:
        raise OptionError("--cluster trains one run: leave out --seeds and --sweep, or --cluster.")
    else:
        trials = grid(asked.seeds or 1, config.seed, **parse_grid(asked.sweep))
        task = fit_trials(make, trials, train, ensemble=asked.ensemble, **request)
    scores = task.evaluate(paths_of(asked.test), **reading) if asked.test else None
    tell(task, out, scores, as_json=asked.json, quiet=asked.quiet)


def parse_grid(text: str) -> dict[str, tuple[Any, ...]]:
    """Turn 'learning_rate=5e-5,2e-5 batch_size=16,32' into choices by option."""
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
    """Labels separated by commas, as a list."""
    labels = [label.strip() for label in text.split(",")]
    if len(set(labels)) != len(labels) or not all(labels):
        raise OptionError(f"--labels must be different names with commas between, not {text!r}.")
    return labels


add_command(
    "classify", ClassifyConfig,
    text="""Fine-tune a text classifier; prints a confusion matrix.

    In Python:
    sememe.Classify("runs/bert", epochs=3).fit("train.tsv", dev="dev.tsv").
    """,
    epilog=examples(
        "sememe finetune classify runs/bert --train train.tsv --dev dev.tsv --out runs/topics",
        "sememe finetune classify runs/bert --train 评论.csv --column text=评论 --out runs/reviews",
        "sememe finetune classify runs/bert --train train.tsv --seeds 5 --ensemble --out runs/five",
        "sememe finetune classify runs/bert --train train.tsv --sweep paper --out runs/best",
        "sememe finetune classify runs/vectors --train builtin:packages --out runs/packages",
    ),
)  # fmt: skip
add_command(
    "pairs", ClassifyConfig,
    text="""Fine-tune on text pairs: entailment, paraphrase, relevance.

    In Python:
    sememe.Pairs("runs/bert", epochs=3).fit("train.tsv", dev="dev.tsv").
    """,
    epilog=examples(
        "sememe finetune pairs runs/bert --train train.tsv --dev dev.tsv --out runs/follows",
        "sememe finetune pairs runs/gpt --train same.jsonl --both-orders yes --lm-weight 0.5 -o r",
    ),
)  # fmt: skip
add_command(
    "regress", FinetuneConfig,
    text="""Fine-tune on scores, such as text similarity.

    In Python:
    sememe.Regress("runs/bert", epochs=3).fit("train.tsv", dev="dev.tsv").
    """,
    epilog=examples(
        "sememe finetune regress runs/bert --train sts.tsv --dev dev.tsv --out runs/similar",
        "sememe finetune regress runs/bert --train sts.tsv --features mix --out runs/similar",
    ),
)  # fmt: skip
add_command(
    "choose", FinetuneConfig,
    text="""Fine-tune on multiple choice.

    In Python:
    sememe.Choose("runs/bert", epochs=3).fit("train.csv", dev="dev.csv").
    """,
    epilog=examples(
        "sememe finetune choose runs/bert --train swag.csv --dev val.csv --out runs/endings",
        "sememe finetune choose runs/bert --train race/train --length 256 --batch-size 8 --out r",
    ),
)  # fmt: skip
add_command(
    "tag", TagConfig,
    text="""Fine-tune a tagger: named entities, parts of speech.

    In Python:
    sememe.Tag("runs/bert", epochs=3).fit("eng.train", dev="eng.testa").
    """,
    epilog=examples(
        "sememe finetune tag runs/bert --train eng.train --dev eng.testa --out runs/names",
        "sememe finetune tag runs/bert --train eng.train --features concat-last-four "
        "--reader-width 768 --out runs/frozen",
    ),
)  # fmt: skip
add_command(
    "answer", AnswerConfig,
    text="""Fine-tune extractive question answering.

    In Python:
    sememe.Answer("runs/bert", epochs=2).fit("train.json", dev="dev.json").
    """,
    epilog=examples(
        "sememe finetune answer runs/bert --train train.json --dev dev.json --out runs/spans",
    ),
)  # fmt: skip
