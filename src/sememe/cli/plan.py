"""The command `plan`: a training command in; steps, time, memory and loss of each size out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sememe.cli import training
from sememe.cli.options import Json, Quiet, flag, is_typed
from sememe.cli.program import app, echo, examples, print_json, print_table, remark
from sememe.errors import OptionError
from sememe.localization import say, translate
from sememe.options import parse_size
from sememe.progress import Reporter, format_count, format_duration

if TYPE_CHECKING:
    from sememe.planning.plan import Plan, PlannedSize

# What can be planned, by the names of `sememe train`.
PLANNED = (
    "bert", "gpt", "elmo", "ulmfit", "nnlm", "seq2seq", "transformer", "word2vec", "fasttext",
    "glove", "doc2vec",
)  # fmt: skip

Command = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL CORPUS",
        help="As in `sememe train`: a model, its corpus and its options.",
        show_default=False,
    ),
]


@app.command(
    epilog=examples(
        "sememe plan bert my-texts/ --budget 20m",
        "sememe plan gpt my-texts/ --preset mini --steps 20000",
        "sememe plan bert news.txt --language zh --budget 1h --memory 4G",
        "sememe plan word2vec my-texts/ --dim 300 --epochs 5 --json",
    ),
    # The options of the training command are read by that command.
    context_settings={"ignore_unknown_options": True},
)
def plan(
    context: typer.Context,
    command: Command,
    memory: Annotated[
        str, typer.Option(help="Memory for the training, such as 4G; default: the machine's.")
    ] = "",
    recalibrate: Annotated[
        bool, flag("--recalibrate", help="Measure again instead of using earlier measurements.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Plan a training: size, steps, time, memory and validation loss.

    Takes the arguments of `sememe train` and trains nothing: it reads the
    corpus or a sample of it, and times a few real steps of every size, or
    of --preset alone. The same training afterwards compares itself with
    its plan.

    In Python: sememe.plan(sememe.BERT("mini", budget="20m"), "text.txt").
    """
    from sememe.planning.plan import plan as make
    from sememe.planning.planned import keep, key_of_training

    reporter, limit = Reporter(quiet=quiet), parse_size(memory) if memory else 0

    with _training(context, command) as trainer:
        has_size = is_typed(trainer, "preset") and trainer.params["preset"] != training.AUTO

        def planning(model: Any, *data: Any, text: Any = None, **more: Any) -> None:
            found = make(
                model, *data, presets=[] if has_size else _presets(model), memory=limit,
                text=text, recalibrate=recalibrate, progress=reporter, **more,
            )  # fmt: skip
            for size in found.sizes:
                keep(key_of_training(found.model_of(size), data, text), size)
            if json:
                print_json(found.to_dict())
            else:
                _print(found, quiet)

        token = training.PLANNING.set(planning)
        try:
            trainer.command.invoke(trainer)
        finally:
            training.PLANNING.reset(token)


def _presets(model: Any) -> list[str]:
    """The sizes to compare; a model whose training is continued has its own."""
    options = model.options()
    is_continued = bool(options.get("pretrained"))
    return [] if is_continued else list(getattr(model, "presets", ()))


@contextmanager
def _training(context: typer.Context, command: list[str]) -> Iterator[Any]:
    """The context of the training that the command line describes."""
    root = context.find_root()
    groups: Any = root.command.commands  # type: ignore[attr-defined]
    name, *own = command
    if name not in PLANNED:
        raise OptionError(f"A plan is made for {', '.join(PLANNED)}, not {name!r}.")
    trainer = groups["train"].get_command(context, name)
    with trainer.make_context(name, own, parent=root) as inner:
        yield inner


def _print(found: Plan, quiet: bool) -> None:
    """The table, and what it was made from."""
    text, machine = found.text, found.machine
    best = found.ranked[:1]
    print_table(
        ["", "size", "weights", "steps", "epochs", "step", "time", "memory", "validation loss"],
        [_row(size, is_best=size in best) for size in found.sizes],
        always_headed=True,
    )
    for size in found.sizes:
        if size.obstacle:
            echo(say("{preset}: {reason}", preset=size.preset, reason=translate(size.obstacle)))
        if size.loss is not None:
            for doubt in size.loss.doubts:
                echo(say("{preset}: the loss is uncertain: {reason}", preset=size.preset,
                         reason=translate(doubt)))  # fmt: skip
    if quiet:
        return
    if "tokens" in text:
        sizes = {name: format_count(text[name], "B") for name in ("bytes", "bytes_read")}
        tokens = format_count(text["tokens"])
        if text["is_whole"]:
            echo(say("Text: {tokens} tokens, {bytes}", tokens=tokens, bytes=sizes["bytes"]))
        else:
            echo(
                say(
                    "Text: about {tokens} tokens, estimated from {bytes_read} of {bytes}",
                    tokens=tokens, **sizes,
                )
            )  # fmt: skip
    echo(
        say(
            "Machine: {processor}, {cores} cores, {memory}; device {device}",
            processor=machine["processor"], cores=machine["cores"],
            memory=format_count(machine["memory_bytes"], "B"), device=found.device,
        )
    )  # fmt: skip
    dates = sorted({size.measured[:10] for size in found.sizes if size.measured})
    if dates:
        echo(say("Measured: {dates}", dates=", ".join(dates)))
    if any(size.was_busy for size in found.sizes):
        remark("Other programs used the cores meanwhile, so the times are too long; "
               "--recalibrate measures again.", quiet)  # fmt: skip


def _row(size: PlannedSize, *, is_best: bool) -> list[str]:
    from sememe.planning.planned import written

    def shown(value: Any, write: Any) -> str:
        return "–" if value is None else write(value)

    return [
        "*" if is_best else "",
        size.preset or "–",
        shown(size.weights or None, format_count),
        shown(size.steps, lambda value: f"{value:,}"),
        shown(size.epochs, lambda value: f"{value:.2g}"),
        shown(size.step_s, lambda value: f"{1000 * value:.0f} ms"),
        shown(size.seconds, format_duration),
        shown(size.memory_bytes, lambda value: format_count(value, "B")),
        shown(size.loss, written),
    ]
