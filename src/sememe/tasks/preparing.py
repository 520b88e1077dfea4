"""What comes before a task learns: rows, items, an encoder with a head, and which run it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from sememe.errors import InputError, OptionError
from sememe.examples.randomness import stream_key
from sememe.networks.awd_encoder import AWDEncoder
from sememe.networks.words import WordEncoder
from sememe.progress import SILENT, Reporter
from sememe.tasks.config import DEFAULT_EPOCHS, HEAD_RATE, FinetuneConfig, default_rate
from sememe.tasks.items import Item, fingerprint, random_order
from sememe.tasks.objective import TaskObjective
from sememe.tasks.opening import Opened, open_encoder, words_hash
from sememe.tasks.words import reads_of
from sememe.training.weights import weights_hash

if TYPE_CHECKING:
    from sememe.tasks.task import Task

_HELD_OUT = 0x515  # the purpose of a stream of random numbers
_MUCH_UNKNOWN = 0.2  # of the tokens: text of the model's own language has far fewer


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of `fit` asks for beside the rows to learn from."""

    dev: Any = None
    out: Path | None = None
    resume: bool = False
    reporter: Reporter = SILENT
    reading: dict[str, Any] = field(default_factory=dict)


class Ready(NamedTuple):
    """All that a run needs: what learns, and what it learns from."""

    opened: Opened
    objective: TaskObjective
    rows: list[Any]
    items: list[Item]
    dev_rows: list[Any]
    dev_items: list[Item]


def make_ready(task: Task, train: Any, request: Request) -> Ready:
    """Open the model, read and encode the rows; `task.plan` says afterwards which run this is."""
    reporter = request.reporter
    opened = open_encoder(task.model, task.config, reads_of(task))
    task.coder = opened.coder
    task.config = _with_known_positions(task.config, opened, reporter)
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
    return Ready(opened, objective, rows, items, dev_rows, dev_items)


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
    share = _share_unknown(task, items)
    if share > _MUCH_UNKNOWN:
        reporter.note(
            f"{share:.0%} of the tokens of the {name} rows are unknown to this model: it was "
            "trained on text of another kind or language, and does not see them."
        )
    return items


def _share_unknown(task: Task, items: list[Item]) -> float:
    """The share of unknown tokens; 0 for models that spell every word."""
    if task.coder.kind != "bert" or not items:
        return 0.0
    ids = np.concatenate([own.ids_T for item in items for own in item.sequences])
    return float(np.mean(ids == task.coder.unknown_id))


def balanced(items: Several[Item], num_labels: int) -> list[Item]:
    """The items with weights that make every class count the same."""
    if any(item.target is None or item.target.ndim for item in items) or num_labels < 2:
        raise OptionError("class_weights needs one label for each row, of several.")
    counts = Counter(int(item.target) for item in items)  # type: ignore[arg-type]
    share = len(items) / len(counts)
    return [replace(item, weight=share / counts[int(item.target)]) for item in items]  # type: ignore[arg-type]


# ---- network and options ----------------------------------------------------------------------


def _with_known_positions(
    config: FinetuneConfig, opened: Opened, reporter: Reporter
) -> FinetuneConfig:
    """The options with the length that the coder has; what a network cannot know yet is said."""
    known = getattr(getattr(opened.encoder, "network", None), "seen_length", config.length)
    if config.length <= known:
        return config
    if opened.coder.length < config.length:
        reporter.note(
            f"Windows have {opened.coder.length} tokens instead of {config.length}: "
            "the rows that the network was trained on had no more."
        )
        return replace(config, length=opened.coder.length)
    reporter.note(
        f"The rows that the network was trained on had {known} tokens: what its later positions, "
        f"up to {config.length} (length), mean is learned from the labelled rows alone."
    )
    return config


def resolved(config: FinetuneConfig, encoder: Any) -> FinetuneConfig:
    """The options with every 0 that means "by default" filled in."""
    if isinstance(encoder, WordEncoder | AWDEncoder):
        rate, epochs = encoder.default_rate, encoder.default_epochs
    else:
        sizes = encoder.network.config
        rate = HEAD_RATE if config.is_frozen else default_rate(sizes.width, sizes.num_layers)
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
