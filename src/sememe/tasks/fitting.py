"""How a task is fitted: rows, items, an encoder with a head, the loop, a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from sememe.errors import InputError, OptionError
from sememe.examples.randomness import stream_key
from sememe.examples.shuffles import random_order
from sememe.networks.words import WordEncoder
from sememe.progress import SILENT, Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import MANIFEST
from sememe.tasks.config import DEFAULT_EPOCHS, HEAD_RATE, FinetuneConfig, default_rate
from sememe.tasks.items import Item, ItemBatches, fingerprint
from sememe.tasks.objective import TaskObjective, say
from sememe.tasks.opening import Opened, open_encoder, weights_hash, words_hash
from sememe.tasks.words import reads_of
from sememe.training.best import Best
from sememe.training.distributed import Processes, joined
from sememe.training.loop import Loop
from sememe.training.optimizers import RateGroup
from sememe.training.run import Run

if TYPE_CHECKING:
    from sememe.tasks.task import Task

_HELD_OUT = 0x515  # the purpose of a stream of random numbers


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of `fit` asks for beside the rows to learn from."""

    dev: Any = None
    out: Path | None = None
    resume: bool = False
    reporter: Reporter = SILENT
    reading: dict[str, Any] = field(default_factory=dict)


def fit(task: Task, train: Any, request: Request) -> None:
    """Train `task` and save it where the request says so."""
    with joined() as processes:
        if not processes.is_main:  # one of them speaks
            request = replace(request, reporter=SILENT)
        _fit(task, train, request, processes)


def _fit(task: Task, train: Any, request: Request, processes: Processes) -> None:
    reporter = request.reporter
    opened = open_encoder(task.model, task.config, reads_of(task))
    task.coder = opened.coder
    rows, dev_rows = read_rows(task, train, request)
    task.config = resolved(task.config, opened.encoder)
    objective = _objective(task, opened, reporter)
    items = _encoded(task, rows, "training", reporter)
    if isinstance(opened.encoder, WordEncoder):
        generator = torch.Generator().manual_seed(task.config.seed)
        opened.encoder.learn_words(len(opened.encoder.lexicon), generator)
    dev_items = _encoded(task, dev_rows, "dev", reporter)
    if task.config.class_weights == "balanced":
        items = balanced(items, len(task.labels))
    task.plan = _plan(task, objective, items, dev_items)
    if _take_finished(task, request):
        return
    source = ItemBatches(
        items, batch_size=task.config.batch_size, seed=task.config.seed,
        sort_batches=task.config.sort_batches,
    )  # fmt: skip
    reporter.note(_greeting(task, opened, rows, dev_rows))
    task.history = Loop(
        objective, _run(task, objective, source, dev_rows, dev_items, request, processes)
    ).train()
    objective.encoder.uncompile()
    task.objective = objective.eval()
    if not dev_rows:
        task.settle([], [])
    else:
        outputs = task.activated(dev_items)
        task.settle(dev_rows, task.decoded(dev_rows, dev_items, outputs))
        task.scores = task.scored(dev_rows, task.decoded(dev_rows, dev_items, outputs))
    if request.out is not None and processes.is_main:
        task.save(request.out)
        Checkpoints(f"{request.out}.checkpoints").clear()


# ---- rows and items -------------------------------------------------------------------------


def read_rows(task: Task, train: Any, request: Request) -> tuple[list[Any], list[Any]]:
    """The rows to learn from and those to choose by; the labels are known afterwards."""
    reading = {"on_note": request.reporter.note, **request.reading}
    task.labels = list(task.given_labels or [])
    rows = list(task.read(train, labelled=True, **reading))
    task.learned = {}
    learned = task.labels_of(rows)
    task.labels = task.labels or learned
    if request.dev is False:
        dev_rows: list[Any] = []
    elif request.dev is not None:
        dev_rows = list(task.read(request.dev, labelled=True, **reading))
    else:
        rows, dev_rows = held_out(rows, task.config.dev_share)
        if dev_rows:
            request.reporter.note(
                f"No dev rows were given: {len(dev_rows):,} of {len(rows) + len(dev_rows):,} "
                "training rows are held out for that, the same ones in every run."
            )
    if not rows:
        raise InputError("There are no rows to learn from.")
    return rows, dev_rows


def held_out(rows: list[Any], share: float) -> tuple[list[Any], list[Any]]:
    """Split rows at random, always the same way, into those to learn from and a share of them.

    Questions about the same context stay together: having learned one helps with the others.
    """
    num_dev = round(share * len(rows))
    groups: dict[Any, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(getattr(row, "context", index), []).append(index)
    together, chosen = list(groups.values()), set[int]()
    for number in random_order(len(together), stream_key(1, _HELD_OUT)):
        if len(chosen) >= num_dev:
            break
        chosen.update(together[number])
    if len(chosen) == len(rows):
        return rows, []
    kept = [row for index, row in enumerate(rows) if index not in chosen]
    return kept, [rows[index] for index in sorted(chosen)]


def _encoded(task: Task, rows: list[Any], name: str, reporter: Reporter) -> list[Item]:
    items = task.encode(rows) if rows else []
    num_cut = len({item.row_index for item in items if item.is_cut})
    if num_cut:
        reporter.note(
            f"{num_cut:,} of {len(rows):,} {name} rows are longer than {task.config.length} tokens "
            "(length) and were cut."
        )
    return items


def balanced(items: Several[Item], num_labels: int) -> list[Item]:
    """The items with weights that make every class count the same."""
    if any(item.target is None or item.target.ndim for item in items) or num_labels < 2:
        raise OptionError("class_weights needs one label for each row, of several.")
    counts = Counter(int(item.target) for item in items)  # type: ignore[arg-type]
    share = len(items) / len(counts)
    return [replace(item, weight=share / counts[int(item.target)]) for item in items]  # type: ignore[arg-type]


# ---- network and options ----------------------------------------------------------------------


def resolved(config: FinetuneConfig, encoder: Any) -> FinetuneConfig:
    """The options with every 0 that means "by default" filled in."""
    if isinstance(encoder, WordEncoder):
        rate, epochs = encoder.default_rate, encoder.default_epochs
    else:
        rate = HEAD_RATE if config.is_frozen else default_rate(encoder.network.config.width)
        epochs = DEFAULT_EPOCHS
    if config.steps or config.budget:
        epochs = 0.0
    return replace(
        config, learning_rate=config.learning_rate or rate, epochs=config.epochs or epochs
    )


def _objective(task: Task, opened: Opened, reporter: Reporter) -> TaskObjective:
    encoder, config = opened.encoder, task.config
    head = task.make_head(encoder.width, dropout=encoder.dropout, has_bias=encoder.has_bias)
    head.initialise(encoder.initial_std, torch.Generator().manual_seed(config.seed))
    earlier = opened.earlier
    if earlier is not None:
        has_same = earlier.labels == task.labels and type(earlier.head) is type(head)
        has_same = has_same and earlier.encoder.width == encoder.width
        if has_same:
            head.load_state_dict(earlier.head.state_dict())
            reporter.note("The model was fine-tuned on the same labels: its head is kept.")
        else:
            reporter.note("The model was fine-tuned on another task or labels: the head is new.")
    return TaskObjective(encoder, head, lm_weight=config.lm_weight)


def _plan(
    task: Task, objective: TaskObjective, items: list[Item], dev_items: list[Item]
) -> dict[str, Any]:
    """What identifies a run: the options that shape it, the weights it starts from, its rows."""
    return {
        "training": task.config.lasting(),
        "task": {"name": task.name, "labels": task.labels, "learned": task.learned},
        "content": {
            "weights": weights_hash(objective),
            **words_hash(objective),
            "train": fingerprint(items),
            "dev": fingerprint(dev_items),
        },
    }


def _take_finished(task: Task, request: Request) -> bool:
    """Open the task that a run to be resumed has finished already, where there is one."""
    out = request.out
    if not request.resume or out is None or not (out / MANIFEST).exists():
        return False
    if Checkpoints(f"{out}.checkpoints").latest() is not None:
        return False
    finished = type(task).load(out)
    if finished.plan != task.plan:
        return False
    request.reporter.note(f"{out} is finished already.")
    task.objective, task.coder = finished.objective, finished.coder
    task.history, task.scores = finished.history, finished.scores
    task.learned = finished.learned
    return True


def _greeting(task: Task, opened: Opened, rows: list[Any], dev_rows: list[Any]) -> str:
    config = task.config
    labels = f", {len(task.labels):,} labels" if task.labels else ""
    frozen = "frozen, " if config.is_frozen else ""
    return (
        f"{opened.description}: {frozen}{len(rows):,} rows to learn from, {len(dev_rows):,} dev "
        f"rows{labels}; batches of {config.batch_size}, learning rate {config.learning_rate:g}"
    )


# ---- the run ------------------------------------------------------------------------------------


def _run(
    task: Task,
    objective: TaskObjective,
    source: ItemBatches,
    dev_rows: list[Any],
    dev_items: list[Item],
    request: Request,
    processes: Processes,
) -> Run:
    config = task.config
    metric = config.metric or task.main_metric
    epochs = config.epochs or config.steps / source.batches_per_epoch
    best = Best(metric, config.patience) if dev_rows and config.keep_best else None
    if config.patience and best is None:
        raise OptionError("patience needs dev rows and keep_best: it waits for a better score.")
    keeper = None
    if request.out is not None:
        keeper = Checkpoints(f"{request.out}.checkpoints", keep=config.keep)
    has_rates = config.layer_decay < 1 or config.unfreeze_every
    return Run(
        source=source,
        config=config,
        validation=_dev_figures(task, dev_rows, dev_items) if dev_rows else None,
        num_validations=max(1, round(epochs)) if epochs else 10,
        best=best,
        rate_groups=rate_groups(objective, source, config) if has_rates else None,
        watches_rises=False,  # batches are small, and their losses jump
        shown=(f"validation_{metric}",),
        reporter=request.reporter,
        keeper=keeper,
        resume=request.resume,
        plan=task.plan,
        processes=processes,
    )


def _dev_figures(
    task: Task, rows: list[Any], items: list[Item]
) -> Callable[[Any, Any, Processes], dict[str, float]]:
    """A function that scores dev rows with the weights of the moment; every process does."""
    config = task.config
    if config.evaluate_batches:
        rows = rows[: config.evaluate_batches * config.batch_size]
        items = [item for item in items if item.row_index < len(rows)]

    def figures(objective: Any, device: Any, processes: Processes) -> dict[str, float]:
        said = say(objective, items, device)
        outputs = [task.activate(output) for output in said.outputs]
        scores = task.scored(rows, task.decoded(rows, items, outputs))
        return {"loss": said.loss, **scores.figures}

    return figures


def rate_groups(
    objective: TaskObjective, source: ItemBatches, config: FinetuneConfig
) -> Callable[[int], list[RateGroup]]:
    """A function that gives the layers as groups: lower ones learn more slowly, or later.

    Layer-wise decay and gradual unfreezing, one layer more from the top down each time
    (Howard & Ruder 2018, 3.3); the head learns from the start.
    """
    encoder = objective.encoder
    top = encoder.num_depths - 1

    def factor_at(depth: int) -> Callable[[int], float]:
        share = config.layer_decay ** (top - depth)
        first_step = config.unfreeze_every * (top - depth) * source.batches_per_epoch
        return lambda step: share if step >= first_step else 0.0

    def groups(num_steps: int) -> list[RateGroup]:
        by_depth: dict[int, list[Any]] = {}
        for name, parameter in encoder.named_parameters():
            by_depth.setdefault(encoder.depth_of(name), []).append(parameter)
        by_depth.setdefault(top, []).extend(objective.head.parameters())
        return [RateGroup(own, factor_at(depth)) for depth, own in sorted(by_depth.items())]

    return groups
