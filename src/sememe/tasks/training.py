"""Prepare a task's training: labelled rows in; items, an encoder with a head, and a run out."""

from __future__ import annotations

from collections.abc import Callable, Sequence as Several
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from sememe.contract import Model
from sememe.errors import InputError, OptionError
from sememe.examples.labelled.class_weights import class_weights
from sememe.metrics.baselines import baselines_of
from sememe.models.fitting import Plan, Prepared, Request
from sememe.models.language.encoder import TransformerBackbone
from sememe.models.registry import load
from sememe.nn.encoders import Backbone
from sememe.progress import Reporter
from sememe.randomness import stream_key
from sememe.tasks.config import FinetuneConfig
from sememe.tasks.objective import (
    Encoded,
    Item,
    ItemBatches,
    TaskObjective,
    fingerprint,
    random_order,
    say,
)
from sememe.training.distributed import Processes
from sememe.training.loop import Loop
from sememe.training.optimizers import RateGroup, groups_by_depth
from sememe.training.run import TrainingRun, check_tensorboard
from sememe.training.weights import Best, weights_hash

if TYPE_CHECKING:
    from sememe.tasks.task import Task

_HELD_OUT = 0x515  # the purpose of a random stream
_MUCH_UNKNOWN = 0.2  # of the tokens: text in the model's own language has far fewer


class Ready(NamedTuple):
    """What a run needs: the model, and its training items."""

    objective: TaskObjective
    rows: list[Any]
    items: list[Item]
    dev_rows: list[Any]
    dev_items: list[Item]
    held: Encoded  # training rows that are not trained on, for `Task.adjust`


def prepare_rows(task: Task, train: Any, request: Request) -> Prepared:
    """Open the model, read and encode the rows; return the plan and the function that trains."""
    check_tensorboard(task.config.tensorboard)
    reporter = request.reporter
    backbone = task.backbone = open_backbone(task, reporter)
    task.config = _with_known_positions(task.config, backbone, reporter)
    rows, dev_rows, held_rows = read_rows(task, train, request)
    task.baselines = baselines_of(task.kind, rows) if task.config.baselines else None
    task.config = resolved(task.config, backbone)
    objective = _objective(task, reporter)
    items = _encoded(task, rows, "training", reporter)
    backbone.learn_rows(task.config.seed)
    dev_items = _encoded(task, dev_rows, "dev", reporter)
    if task.config.class_weights != "none":
        items = weighted(items, task.labels, task.config.class_weights)
    held = Encoded(held_rows, _encoded(task, held_rows, "held-out", reporter))
    ready = Ready(objective, rows, items, dev_rows, dev_items, held)
    plan = _plan(task, ready)
    sizes = {"base": task.base, "rows": len(rows), "dev_rows": len(dev_rows)}
    return Prepared(plan, lambda: _learn(task, ready, plan, request), sizes)


def open_backbone(task: Task, reporter: Reporter) -> Backbone:
    """The backbone of the given model, which is not changed."""
    model, name = task.model, ""
    place = model if isinstance(model, str | Path) else getattr(model, "path", None)
    if isinstance(model, str | Path):
        name, model = Path(model).absolute().name, load(model)
    if isinstance(model, tuple) and len(model) == 2:
        network, tokenizer = model
        backbone: Backbone = TransformerBackbone.of_network(
            network, tokenizer, task.reads, task.config
        )
    elif isinstance(model, Model):
        task.base = {"kind": model.kind, "name": name}
        if model.data:  # trained by sememe, with settings that are known
            task.base |= {"train": model.data.get("train"), "language": model.text.language}
        backbone = model.encoder(task.reads, task.config)
    else:
        raise OptionError(
            "The model to start from must be a model of sememe, its folder or file, or a network "
            f"with its tokenizer, not {type(model).__name__}."
        )
    if task.config.lora:
        reporter.note(backbone.adapt(place, task.config))
    return backbone


# ---- rows and items -------------------------------------------------------------------------


def read_rows(task: Task, train: Any, request: Request) -> tuple[list[Any], ...]:
    """The training rows, the dev rows and the rows for `adjust`; the labels are set afterwards."""
    reading = {"on_note": request.reporter.note, **request.reading}
    task.labels, task.columns, task.is_defined = list(task.given_labels or []), {}, False
    read = task.read(train, labelled=True, **reading)
    rows, task.columns = list(read), {**(request.reading.get("columns") or {}), **read.columns}
    task.encoding, task.learned = str(request.reading.get("encoding") or "utf-8"), {}
    learned = task.labels_of(rows)
    if missing := [label for label in task.labels if label not in learned]:
        request.reporter.note(f"No training row has the label {', '.join(missing[:10])}.")
    task.labels, task.is_defined = task.labels or learned, True
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
        raise InputError("There are no training rows.")
    rows, held_rows = task.hold_out(rows)
    return rows, dev_rows, held_rows


def held_out(rows: list[Any], share: float, key: int | None = None) -> tuple[list[Any], list[Any]]:
    """Split rows at random into training rows and held-out rows, always alike for the same key.

    Questions about the same context stay together, because each helps with the others.
    """
    num_dev = round(share * len(rows))
    groups: dict[Any, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(getattr(row, "context", index), []).append(index)
    together, chosen = list(groups.values()), set[int]()
    for number in random_order(len(together), stream_key(1, _HELD_OUT) if key is None else key):
        if len(chosen) >= num_dev:
            break
        chosen.update(together[number])
    if len(chosen) == len(rows):
        return rows, []
    kept = [row for index, row in enumerate(rows) if index not in chosen]
    return kept, [rows[index] for index in sorted(chosen)]


def _encoded(task: Task, rows: list[Any], name: str, reporter: Reporter) -> list[Item]:
    items = task.encode(rows) if rows else []
    num_cut = len({item.row_index for item in items if item.cut})
    if num_cut:
        reporter.note(
            f"{num_cut:,} of {len(rows):,} {name} rows are longer than {task.config.length} tokens "
            "and were cut; --length sets the limit."
        )
    share = _share_unknown(task, items)
    if share > _MUCH_UNKNOWN:
        reporter.note(
            f"{share:.0%} of the tokens of the {name} rows are unknown to this model: it was "
            "trained on text of another kind or language."
        )
    return items


def _share_unknown(task: Task, items: list[Item]) -> float:
    """The fraction of unknown tokens; 0 for models that can spell every word."""
    if task.coder.kind != "bert" or not items:
        return 0.0
    ids = np.concatenate([own.ids_T for item in items for own in item.sequences])
    return float(np.mean(ids == task.coder.unknown_id))


def weighted(items: Several[Item], labels: Several[str], choice: str) -> list[Item]:
    """The items with the weights of their classes; of label sets, each label has its own."""
    targets = [item.target for item in items if item.target is not None and item.target.ndim != 1]
    if len(targets) < len(items) or len(labels) < 2:
        raise OptionError("class_weights needs rows with labels, of which there are several.")
    is_one = not targets[0].ndim
    if is_one:
        num_true = np.bincount(targets, minlength=len(labels))
    else:
        ids = np.concatenate([target[:, 0] for target in targets]).astype(np.int64)
        num_true = np.bincount(ids, minlength=len(labels))
    chosen = class_weights(choice, labels, num_true.tolist(), len(items), is_one=is_one)
    weights_C = np.array(chosen, np.float32)
    if is_one:
        return [replace(item, weight=float(weights_C[item.target])) for item in items]
    return [
        replace(item, target=np.column_stack([own[:, 0], weights_C[own[:, 0].astype(np.int64)]]))
        for item, own in zip(items, targets, strict=True)
    ]


# ---- network and options ----------------------------------------------------------------------


def _with_known_positions(
    config: FinetuneConfig, backbone: Backbone, reporter: Reporter
) -> FinetuneConfig:
    """The options with the coder's maximum length; notes which positions are untrained."""
    known, length = backbone.seen_length, backbone.coder.length
    if known is None or config.length <= known:
        return config
    if length < config.length:
        reporter.note(
            f"Windows have {length} tokens instead of {config.length}: "
            "the rows that the network was trained on had no more."
        )
        return replace(config, length=length)
    reporter.note(
        f"The rows that the network was trained on had {known} tokens: what its later positions, "
        f"up to {config.length} (length), mean is learned from the labelled rows alone."
    )
    return config


def resolved(config: FinetuneConfig, backbone: Backbone) -> FinetuneConfig:
    """The options with every 0 that means "default" filled in."""
    rate, epochs = backbone.defaults(config)
    if config.steps or config.budget:
        epochs = 0.0
    return replace(
        config, learning_rate=config.learning_rate or rate, epochs=config.epochs or epochs,
        layer_decay=1.0 if config.layer_decay is None else config.layer_decay,
    )  # fmt: skip


def _objective(task: Task, reporter: Reporter) -> TaskObjective:
    encoder, config = task.backbone.encoder, task.config
    head = task.make_head(encoder.width, dropout=encoder.dropout, has_bias=encoder.has_bias)
    head.initialise(encoder.initial_std, torch.Generator().manual_seed(config.seed))
    earlier = task.backbone.earlier
    if earlier is not None:
        has_same = earlier.labels == task.labels and type(earlier.head) is type(head)
        has_same = has_same and earlier.width == encoder.width
        if has_same:
            head.load_state_dict(earlier.head.state_dict())
            reporter.note("The model was fine-tuned on the same labels: its head is kept.")
        else:
            reporter.note("The model was fine-tuned on another task or labels: the head is new.")
    return TaskObjective(encoder, head, lm_weight=config.lm_weight)


def _plan(task: Task, ready: Ready) -> Plan:
    """What identifies a run: the options that affect the result, its initial weights, its rows."""
    return {
        "training": task.config.lasting(),
        "task": {"name": task.kind, "labels": task.labels, "learned": task.learned},
        "content": {
            "weights": weights_hash(ready.objective),
            **task.backbone.fingerprints(),
            "train": fingerprint(ready.items),
            "dev": fingerprint(ready.dev_items),
            **({"held": fingerprint(ready.held.items)} if ready.held.items else {}),
        },
    }


# ---- the run ------------------------------------------------------------------------------------


def _learn(task: Task, ready: Ready, plan: Plan, request: Request) -> None:
    request.reporter.note(_start_message(task, ready))
    loop = Loop(ready.objective, _run(task, ready, plan, request))
    task.history, task.precision = loop.train(), loop.precision
    ready.objective.encoder.uncompile()
    task.backbone.finish_adapter()
    task.objective = ready.objective.eval()
    if ready.held.rows:
        dev = Encoded(ready.dev_rows, ready.dev_items)
        task.adjust(ready.held, dev, request.reporter.note)
    task.settle_by(ready.dev_rows, ready.dev_items)


def _start_message(task: Task, ready: Ready) -> str:
    config = task.config
    num_rows, num_dev = len(ready.rows), len(ready.dev_rows)
    labels = f", {len(task.labels):,} labels" if task.labels else ""
    frozen = "frozen, " if config.is_frozen else ""
    return (
        f"{task.backbone.description}: {frozen}{num_rows:,} training rows, {num_dev:,} dev "
        f"rows{labels}; batches of {config.batch_size}, learning rate {config.learning_rate:g}"
    )


def _run(task: Task, ready: Ready, plan: Plan, request: Request) -> TrainingRun:
    config, dev_rows = task.config, ready.dev_rows
    source = ItemBatches(
        ready.items, batch_size=config.batch_size, seed=config.seed,
        sort_batches=config.sort_batches,
    )  # fmt: skip
    metric = config.metric or task.main_metric
    epochs = config.epochs or config.steps / source.batches_per_epoch
    best = Best(metric, config.patience) if dev_rows and config.keep_best else None
    if config.patience and best is None:
        raise OptionError("patience needs dev rows and keep_best: it waits for a better score.")
    has_rates = config.layer_decay != 1 or config.unfreeze_every
    return TrainingRun(
        source=source,
        config=config,
        validation=_dev_metrics(task, dev_rows, ready.dev_items) if dev_rows else None,
        num_validations=max(1, round(epochs)) if epochs else 10,
        best=best,
        rate_groups=rate_groups(ready.objective, source, config) if has_rates else None,
        watches_rises=False,  # batches are small, and their losses noisy
        shown=(f"validation_{metric}",),
        reporter=request.reporter,
        keeper=request.checkpoints(config.keep),
        resume=request.resume,
        plan=plan,
        processes=request.processes,
    )


def _dev_metrics(
    task: Task, rows: list[Any], items: list[Item]
) -> Callable[[Any, Any, Processes], dict[str, float]]:
    """A function that scores dev rows with the current weights; every process calls it."""
    config = task.config
    if config.evaluate_batches:
        rows = rows[: config.evaluate_batches * config.batch_size]
        items = [item for item in items if item.row_index < len(rows)]

    def metrics(objective: Any, device: Any, processes: Processes) -> dict[str, float]:
        said = say(objective, items, device)
        outputs = [task.activate(output) for output in said.outputs]
        scores = task.measured(rows, task.decoded(rows, items, outputs))
        return {"loss": said.loss, **scores.metrics}

    return metrics


def rate_groups(
    objective: TaskObjective, source: ItemBatches, config: FinetuneConfig
) -> Callable[[int], list[RateGroup]]:
    """A function that gives the layers as groups: lower ones have lower rates, or start later.

    Layer-wise decay and gradual unfreezing, one more layer from the top down each time (Howard &
    Ruder 2018, 3.3); the head is trained from the start.
    """
    encoder = objective.encoder
    top, decay = encoder.num_depths - 1, config.layer_decay
    assert decay is not None  # `resolved` has filled it in

    def factor_at(depth: int) -> Callable[[int], float]:
        share = decay ** (top - depth)
        first_step = config.unfreeze_every * (top - depth) * source.batches_per_epoch
        return lambda step: share if step >= first_step else 0.0

    def groups(num_steps: int) -> list[RateGroup]:
        own = [(encoder.depth_of(name), one) for name, one in encoder.named_parameters()]
        return groups_by_depth(
            [*own, *((top, one) for one in objective.head.parameters())], factor_at
        )

    return groups
