"""A task: labelled rows in, an encoder with a head out; `fit`, `predict`, `evaluate`, `save`.

What a subclass fills in, each described at its method below:

    kind, main_metric       "classify", "accuracy": name in the command, metric that decides
    reads                   what its head needs from an encoder: text, texts, words, question
    has_labels              False for tasks without labels, such as scores and spans
    config_class            FinetuneConfig, or a subclass with the task's own options
    read(data, …)           data in any form → rows (a list with .num_skipped)
    labels_of(rows)         the labels to be learned, in a fixed order; none: []
    encode(rows)            rows → items: sequences of ids (from self.coder) with targets
    make_head(width, …)     the head of nn/heads.py
    activate(output)        the scores of an item → values that an ensemble can average
    decode(row, items, …)   the prediction for a row, from the outputs of its items
    measure(rows, predicted) metrics by name, higher is better, including `main_metric`
    open_rows(data, …)      the tables of data, to be read and predicted in parts
    prediction_line, prediction_columns, prediction_cells   a prediction as text, and in a table
    settle(rows, predicted) what dev rows decide after training, such as a threshold
    adjust(rows, items, …)  what held-out training rows decide, such as a temperature; optional
    explain(rows, predicted) more fields of Scores, such as the confusion matrix; optional
    learn_foreign(config, …) read a config.json of `transformers`; optional

An `Item` gets one output of the head. It has one sequence, or several that are seen together (one
per choice); a long row may become several items, each with the row's index. `self.labels`,
`self.config` and `self.coder` are set when `encode` is called.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence as Several
from copy import deepcopy
from dataclasses import replace
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from sememe.card import part_of, write_manifest
from sememe.contract import KINDS, Model, PredictedRow, Truncation, checked_finite
from sememe.errors import ArtifactError, InputError, OptionError
from sememe.examples.labelled.rows import LabelledRows, Note, silent
from sememe.examples.labelled.texts import Sieve
from sememe.metrics.baselines import (
    UNKNOWN_SEEDS,
    Baselines,
    BaselineScore,
    baselines_of,
    seeds_note,
)
from sememe.metrics.by_name import gold_of, interval_of, said_of
from sememe.models.fitting import Prepared, Request, fit
from sememe.models.huggingface.layout import CONFIG, finetuned_for, read_config
from sememe.models.inference import ModelAt, OnModel, computed, is_spread, spread
from sememe.nn.encoders import Backbone, Coder, Earlier, Reads
from sememe.nn.heads import Head
from sememe.options import changed
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    read_errors,
    read_manifest,
    reads_artifact,
    write_folder,
)
from sememe.tasks.config import FinetuneConfig
from sememe.tasks.objective import Encoded, Item, TaskObjective, row_cuts, run_items
from sememe.tasks.scores import Scores
from sememe.tasks.training import prepare_rows
from sememe.text.settings import TextSettings
from sememe.text.tables import FileTable
from sememe.training.distributed import joined
from sememe.vectors import WordVectors

FORMAT = 1
KIND = "task"  # what sememe.json says
HISTORY, MEMBER = "history.json", "member-{}"
_ROWS_READ, _ROWS_AT_ONCE = 1_024, 256  # rows that are read together, and predicted together


def _by_name(value: Any) -> Any:
    """A prediction as a dict, including those inside lists."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _by_name(part) for name, part in value._asdict().items()}
    return [_by_name(part) for part in value] if isinstance(value, (list, tuple)) else value


def _activated_part(task: Any, items: list[Item]) -> dict[str, np.ndarray]:
    """The outputs of some items, by their numbers."""
    return {str(number): own for number, own in enumerate(task._activated(items))}


class Task(Model, ABC):
    """The base of all tasks; the module docstring lists what a subclass fills in."""

    main_metric: str
    reads: ClassVar[Reads] = "texts"
    config_class: ClassVar[type[FinetuneConfig]] = FinetuneConfig
    has_labels: ClassVar[bool] = True
    learns: ClassVar[tuple[str, ...]] = ()  # keys that self.learned must have

    def __init__(self, model: Any, *, labels: Several[str] | None = None, **options: Any) -> None:
        """Take the model to start from and options of FinetuneConfig.

        `model` is a folder: of a BERT or GPT (of sememe, Hugging Face, or an earlier fine-tuning),
        of an ELMo, a ULMFiT or word vectors; or such a model itself; or a network with its
        tokenizer. `labels` fixes the labels and their order; by default they are those of the
        training rows.
        """
        if labels is not None and not self.has_labels:
            raise OptionError(f"{type(self).__name__} takes no labels.")
        self.model = model
        self.given_labels = None if labels is None else list(labels)
        self.config = changed(self.config_class(), type(self).__name__, options)
        self.columns: dict[str, Any] = {}  # columns of the training rows, by role
        self.encoding = "utf-8"  # of the training files
        self.text = TextSettings()  # how `embed` and `embed_words` tokenize texts
        self.labels: list[str] = list(labels or [])
        self.objective: TaskObjective | None = None
        self.others: list[TaskObjective] = []  # the other members of an ensemble
        self.backbone: Backbone  # the encoder and its tokenizer, once there is one
        self.history = History()
        self.scores: Scores | None = None  # on the dev rows, with the final weights
        self.plan: dict[str, Any] = {}
        self.base: dict[str, Any] = {}  # the kind, name and corpus of the model it starts from
        self.precision = ""  # of the training, even if the options say "auto"
        self.trials: list[dict[str, Any]] = []  # the runs from which this one was chosen
        self.searched: dict[str, Any] = {}  # what a recipe chose, and from which candidates
        self.is_foreign = False  # whether another program trained it
        self.baselines: Baselines | None = None  # of the training rows, after `fit`
        self.is_defined = False  # whether labels and the like are fixed, by rows or by a folder
        # What a subclass learns from rows besides its weights, as JSON values.
        self.learned: dict[str, Any] = {}

    def options(self) -> dict[str, Any]:
        """The options of the constructor, by name."""
        labels = {"labels": self.given_labels} if self.has_labels else {}
        return {"model": self.model, **labels, **super().options()}

    @property
    def is_fitted(self) -> bool:
        """Whether there is a head."""
        return self.objective is not None

    def __repr__(self) -> str:
        state = "not fitted" if self.objective is None else f"{len(self.labels)} labels"
        state += f", {len(self.others) + 1} members" if self.others else ""
        return f"{type(self).__name__}({state})"

    @property
    def coder(self) -> Coder:
        """What turns texts into ids."""
        return self.backbone.coder

    def to(self, device: str) -> Self:
        """Use a device (cpu, cuda, auto) from now on."""
        self.config = changed(self.config, "to", {"device": device})
        return self

    def describe(self) -> dict[str, Any]:
        """The task, its encoder, its options and its dev scores."""
        if self.objective is None:
            return {**super().describe(), "options": self.config.to_dict()}
        return {**self.manifest(), **super().describe()}

    def lacking(self) -> dict[str, str]:
        """Vectors and attention, unless the encoder is a BERT or GPT."""
        if self.objective is not None and self.backbone.has_model:
            return {}
        reason = "its encoder is not a BERT or GPT"
        if self.objective is None:
            reason = "it is not trained yet"
        others = {*KINDS[self.kind].capabilities} - {"predict", "encoder", "score_pairs"}
        return dict.fromkeys(others, reason)

    def answering(self, capability: str) -> Model:
        """The fine-tuned network as a model of its own kind, for vectors and attention."""
        self.require(capability)
        self._need_fit().precision = torch.float32  # the precision of every model's vectors
        base: Model = self.backbone.model().to(self.config.device)
        base.text = self.text
        return base

    @property
    def words(self) -> WordVectors:
        """One vector per word of the fine-tuned network."""
        return self.answering("words").words

    def attention(self, text: str, other: str | None = None, **options: Any) -> Any:
        """The attention of the fine-tuned network over a text, or between a text and another."""
        return self.answering("attention").attention(text, other, **options)

    def encoder(self, reads: Reads, config: FinetuneConfig) -> Backbone:
        """The fine-tuned encoder and its head, for another task to continue from."""
        objective = self._need_fit()
        backbone = self.backbone.again(objective.encoder, reads, config)
        head = deepcopy(objective.head)
        backbone.earlier = Earlier(head, list(self.labels), objective.encoder.width)
        return backbone

    # ---- what a subclass fills in ---------------------------------------------------------

    @abstractmethod
    def read(self, data: Any, *, labelled: bool, **reading: Any) -> LabelledRows:
        """Read rows from paths or a Python list; with `labelled`, every row needs its label.

        `reading` is passed to the reader: columns, skip_bad, encoding, on_note. The default columns
        are those of the training rows, self.columns. Once self.labels is set, an unknown label is
        an error with file and line.
        """

    @abstractmethod
    def open_rows(
        self, data: Any, *, encoding: str, columns: Any = None, on_note: Note = silent
    ) -> Iterable[FileTable]:
        """The tables of data without labels; `read` reads each of them entirely or in parts."""

    def labels_of(self, rows: Several[Any]) -> list[str]:
        """The labels of training rows, in the order of their ids.

        Anything else to be learned from the rows goes into self.learned.
        """
        return []

    @abstractmethod
    def encode(self, rows: Several[Any]) -> list[Item]:
        """Turn rows into items, with targets if the rows have labels."""

    @abstractmethod
    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Head:
        """A new head for vectors of that width; the caller initializes its weights."""

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Turn the scores of an item into values for `decode` that an ensemble can average."""
        return output

    @abstractmethod
    def decode(self, row: Any, items: Several[Item], outputs: Several[np.ndarray]) -> Any:
        """The prediction for a row, from the activated outputs of its items."""

    @abstractmethod
    def measure(self, rows: Several[Any], predictions: Several[Any]) -> dict[str, float]:
        """Metrics by name, the higher the better; `main_metric` is one of them."""

    def settle(self, rows: Several[Any], predictions: Several[Any]) -> None:
        """Learn from the dev rows, if any, what the weights do not contain, such as a threshold.

        It replaces self.learned; the value before identifies the run.
        """

    def hold_out(self, rows: list[Any]) -> tuple[list[Any], list[Any]]:
        """Split training rows into those to train on and those for `adjust`, if it needs any."""
        return rows, []

    def adjust(self, held: Encoded, dev: Encoded, note: Note) -> None:  # optional
        """Learn after training from rows that were held out of it; `dev` only shows the effect."""

    def explain(self, rows: Several[Any], predictions: Several[Any]) -> dict[str, Any]:
        """More fields of Scores."""
        return {}

    def check_learned(self) -> None:  # optional
        """Raise an error if self.learned, read from a file, is damaged."""

    def learn_foreign(self, content: dict[str, Any], folder: Path) -> None:
        """Set self.learned from a config.json of `transformers` and the files next to it."""

    # ---- the verbs ------------------------------------------------------------------------

    def fit(
        self,
        train: Any,
        *,
        dev: Any = None,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: Reporter | bool | None = None,
        **reading: Any,
    ) -> Self:
        """Fine-tune on labelled rows: paths, or a list of rows, tuples or dicts.

        `dev` rows choose the best weights; by default some of the training rows are held out, with
        False none. With `out` the task is saved there, with checkpoints next to it during training;
        `resume` continues from the last one; `overwrite` allows replacing an existing task.
        `reading` says how data is read: columns={"text": "review"}, skip_bad=True, encoding.
        """
        with joined() as processes:
            request = Request(
                dev=dev, out=out, resume=resume, overwrite=overwrite, reading=reading,
                reporter=as_reporter(progress), processes=processes, saved_kind=KIND,
            )  # fmt: skip
            return fit(self, train, request)

    def prepare(self, train: Any, request: Request) -> Prepared:
        """Open the model and the rows; return the run's plan and the function that trains."""
        return prepare_rows(self, train, request)

    def settle_by(self, rows: Several[Any], items: Several[Item]) -> None:
        """Call `settle` with the dev rows, and score their predictions."""
        if not rows:
            self.settle([], [])
            return
        outputs = self.activated(items)
        self.settle(rows, self.decoded(rows, items, outputs))
        self.scores = self.scored(rows, self.decoded(rows, items, outputs))

    def take_over(self, other: Self) -> None:
        """Take over the state of another task of the same kind, except for its options."""
        self.is_defined = other.is_defined
        self.objective, self.backbone = other.objective, other.backbone
        self.history, self.scores, self.plan = other.history, other.scores, other.plan
        self.precision, self.learned = other.precision, other.learned
        self.trials, self.others, self.baselines = other.trials, other.others, other.baselines
        self.searched = other.searched
        self.columns, self.encoding = other.columns, other.encoding

    def predict(self, data: Any, **reading: Any) -> list[Any]:
        """Predict every row of paths or of a list; labels in them are ignored.

        An empty line, or a bad row that `skip_bad` skips, gets None.
        """
        self._need_fit()
        if isinstance(data, list | tuple | deque) and not data:
            return []
        rows = self.read(data, labelled=False, **self._encoded(reading))
        return [value for _, value in rows.aligned(self.predict_rows(rows))]

    def truncations(self, rows: Several[Any]) -> list[Truncation | None]:
        """What `predict` cuts from each row; of several choices, from the longest one."""
        self._need_fit()
        if not len(rows):
            return []
        own = self.read(deque(rows), labelled=False, **self._encoded({}))  # never names of files
        cuts = row_cuts(len(own), self.encode(own) if len(own) else [])
        return [cut for _, cut in own.aligned(cuts)]

    def predict_rows(self, rows: Several[Any]) -> list[Any]:
        """Predict rows that have already been read."""
        items = self.encode(rows) if len(rows) else []
        return self.decoded(rows, items, self.activated(items))

    def predict_stream(
        self,
        data: Any,
        *,
        k: int = 1,
        threshold: float = 0.0,
        has_cells: bool = False,
        skip_bad: bool = False,
        on_note: Note = silent,
        **reading: Any,
    ) -> Iterator[PredictedRow]:
        """Every row with its prediction; a row that is empty or skipped has None."""
        if (k == 0 and self.own_k) or k < -1:
            raise OptionError(f"k must be a number of labels, or -1 for all, not {k}.")
        self._need_fit()
        task = self.with_threshold(threshold) if threshold else self
        sieve, num_read, num_cut = Sieve(skip_bad, on_note), 0, 0

        def predicted(rows: Several[Any]) -> list[Any]:
            nonlocal num_read, num_cut
            items = self.encode(rows)
            num_read += len(rows)
            num_cut += sum(map(bool, row_cuts(len(rows), items)))
            return task.decoded(rows, items, task.activated(items))

        reading = self._encoded({**reading, "on_note": on_note})
        for table in self.open_rows(data, **reading):
            records, is_first = iter(table.records), True
            while (part := list(islice(records, spread(_ROWS_READ)))) or is_first:
                table.records, is_first = part, False
                rows = self.read(table, labelled=False, sieve=sieve, **reading)
                at_once = spread(_ROWS_AT_ONCE)
                starts = range(0, len(rows), at_once)
                predictions = (predicted(rows[at : at + at_once]) for at in starts)
                for cells, own in rows.aligned(chain.from_iterable(predictions)):
                    yield PredictedRow(cells, own, table.name)
        sieve.finish()
        if num_cut:
            on_note(
                f"{num_cut:,} of {num_read:,} rows are longer than this model reads, and were cut."
            )

    def with_threshold(self, threshold: float) -> Self:
        """The task that predicts every label from this probability on."""
        raise OptionError("threshold is for fastText classifiers and for several labels per row.")

    def prediction_json(self, prediction: Any) -> Any:
        """A prediction as a dict."""
        return _by_name(prediction)

    def activated(self, items: Several[Item]) -> list[np.ndarray]:
        """The activated output of each item, averaged over the members of an ensemble.

        On a cluster, or where results are kept, the items of some rows are computed at a time.
        """
        if self.path is None or not is_spread():
            return self._activated(items)
        at = ModelAt(str(Path(self.path).absolute()), device=self.config.device)
        parts = (
            list(own) for _, own in groupby(items, lambda item: item.row_index // _ROWS_AT_ONCE)
        )
        found = computed(OnModel(at, _activated_part, self), parts)
        return [part[str(number)] for part in found for number in range(len(part))]

    def _activated(self, items: Several[Item]) -> list[np.ndarray]:
        members = [
            [self.activate(output) for output in run_items(objective, items, self.config)]
            for objective in (self._need_fit(), *self.others)
        ]
        outputs = (
            [np.mean(own, 0) for own in zip(*members, strict=True)] if self.others else members[0]
        )
        return checked_finite(KINDS[self.kind].title, outputs)

    def _encoded(self, reading: dict[str, Any]) -> dict[str, Any]:
        """How rows are read: in the encoding of the training rows, unless another is given."""
        if "encoding" not in reading and self.encoding != "utf-8" and "on_note" in reading:
            reading["on_note"](f"Rows are read as {self.encoding}, as in training (--encoding).")
        return {"encoding": self.encoding, **reading}

    def _need_fit(self) -> TaskObjective:
        if self.objective is None:
            raise OptionError(f"This {type(self).__name__} has not learned yet: call fit first.")
        return self.objective

    def decoded(
        self, rows: Several[Any], items: Several[Item], outputs: Several[np.ndarray]
    ) -> list[Any]:
        """Each row's prediction, from the outputs of all items."""
        own: list[list[int]] = [[] for _ in rows]
        for index, item in enumerate(items):
            own[item.row_index].append(index)
        return [
            self.decode(row, [items[i] for i in indices], [outputs[i] for i in indices])
            for row, indices in zip(rows, own, strict=True)
        ]

    def evaluate(
        self,
        data: Any,
        *,
        k: int | None = None,
        threshold: float = 0.0,
        train: Any = None,
        **reading: Any,
    ) -> Scores:
        """Score the predictions for labelled rows.

        `train`, the training rows, adds the scores of baselines that learn from them, as those of
        `fit` do.
        """
        if k not in (None, self.own_k):
            raise OptionError("k is only for fastText classifiers; a task has its own answers.")
        if threshold:
            return self.with_threshold(threshold).evaluate(data, train=train, **reading)
        self._need_fit()
        if train is not None:
            taught = self.read(train, labelled=True, **self._encoded(reading))
            self.baselines = baselines_of(self.kind, taught)
        rows = self.read(data, labelled=True, **self._encoded(reading))
        begun_s = time.monotonic()
        predictions = self.predict_rows(rows)
        return self.scored(
            rows, predictions, num_skipped=rows.num_skipped,
            seconds=round(time.monotonic() - begun_s, 3),
        )  # fmt: skip

    def scored(self, rows: Several[Any], predictions: Several[Any], **more: Any) -> Scores:
        """The scores of predictions, with their interval and the baselines."""
        found = self.measured(rows, predictions)
        metric, gold = self.metric_names(rows).get(found.main_metric), gold_of(self.kind, rows)
        interval: list[float] | None = None
        beside: list[BaselineScore] = []
        if metric is not None:
            positive = self.labels[1] if len(self.labels) > 1 else "1"
            own = interval_of(metric, gold, said_of(self.kind, predictions), positive)
            interval = list(own) if all(map(math.isfinite, own)) else None
            if self.baselines is not None:
                beside = self.baselines.scores(rows, gold, metric, positive)
        return replace(
            found, interval=interval, seeds=self.seeds,
            baselines=[one.to_dict() for one in beside], **more,
        )  # fmt: skip

    @property
    def seeds(self) -> str:
        """The runs that the scores of this task are from."""
        if self.is_foreign:
            return UNKNOWN_SEEDS
        if self.others:
            return seeds_note(len(self.others) + 1, is_ensemble=True)
        return seeds_note(len({trial["options"].get("seed") for trial in self.trials}))

    def metric_names(self, rows: Several[Any]) -> Mapping[str, str]:
        """The names in METRICS of the task's own metrics, for the intervals of their scores."""
        return {}

    def measured(self, rows: Several[Any], predictions: Several[Any]) -> Scores:
        """The scores of predictions alone."""
        if not len(rows):
            raise InputError("There are no rows to score.")
        metrics = self.measure(rows, predictions)
        metric = self.config.metric or self.main_metric
        if metric not in metrics:
            raise OptionError(f"metric must be one of {', '.join(metrics)}, not {metric!r}.")
        explained = self.explain(rows, predictions)
        return Scores(metrics=metrics, main_metric=metric, num_rows=len(rows), **explained)

    def merge(self) -> Self:
        """Save the whole network from now on, not an adapter to the model that LoRA began with."""
        self.backbone.drop_adapter([self._need_fit(), *self.others])
        return self

    def save(self, folder: str | Path) -> None:
        """Write a folder atomically; `transformers` can open it if it has the same head.

        It holds the files of the backbone, the head, and further members of an ensemble.
        """
        check_replaceable(Path(folder), KIND)
        if self.objective is None:
            raise OptionError("This task has nothing to save yet: call fit first.")
        with write_folder(Path(folder)) as scratch:
            self.backbone.write_member(self.objective, scratch, self.labels)
            for number, objective in enumerate(self.others, 2):
                member = scratch / MEMBER.format(number)
                member.mkdir()
                self.backbone.write_member(objective, member, self.labels)
            self.backbone.write(scratch)
            self.history.save(scratch / HISTORY)
            write_manifest(scratch, self.manifest())

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the task."""
        return {
            **self.backbone.manifest(self.objective),
            "kind": KIND,
            "format": FORMAT,
            "task": self.kind,
            "labels": self.labels,
            "columns": self.columns,
            "encoding": self.encoding,
            "learned": self.learned,
            "members": len(self.others) + 1,
            "options": self.config.to_dict(),
            "precision": self.precision,
            "scores": None if self.scores is None else self.scores.to_dict(),
            "trials": self.trials,
            **({"searched": self.searched} if self.searched else {}),
            "metrics": self.history.last(),
            "data": self.data,
            "plan": self.plan,
        }

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path) -> Self:
        """Open a task saved by `fit` or `save`, or a BERT fine-tuned with transformers."""
        folder = Path(folder)
        if (name := finetuned_for(folder)) is not None:
            return cls._load_foreign(KINDS[name].cls(), folder)
        manifest = read_manifest(folder, FORMAT, KIND)
        with read_errors(folder / MANIFEST):
            # The device of the training does not fix that of later calls.
            options = manifest["options"] | {"device": "auto", "precision": "auto", "workers": 0}
            own = KINDS[manifest["task"]].cls()
            task = own(folder, labels=manifest["labels"] or None, **options)
            scores = manifest["scores"]
            task.scores = Scores.from_dict(scores) if scores else None
            task.learned, task.trials = dict(manifest["learned"]), manifest["trials"]
            task.is_defined = True
            if missing := {*own.learns} - {*task.learned}:
                raise KeyError(*missing)
            task.check_learned()
            task.searched = dict(manifest.get("searched", {}))
            task.columns = dict(manifest.get("columns", {}))
            task.encoding = str(manifest.get("encoding", "utf-8"))
            num_members = int(manifest["members"])
            backbone = KINDS[manifest["network"]].backbone_class()
        if not isinstance(task, cls):
            raise ArtifactError(f"{folder} is a task of kind {task.kind}, not {cls.kind}.")
        task.backbone = backbone.read(folder, manifest, task.config)
        task.objective = task._member(task.backbone.encoder, folder)
        for number in range(2, num_members + 1):
            place = folder / MEMBER.format(number)
            encoder = task.backbone.new_encoder(place, task.config)
            task.others.append(task._member(encoder, place))
        task.history = History.load(folder / HISTORY)
        task.plan, task.precision = manifest.get("plan", {}), manifest.get("precision", "")
        task.data = part_of(manifest, "data")
        return task

    def _member(self, encoder: Any, folder: Path) -> TaskObjective:
        """An encoder with the task's head, with the weights of a folder."""
        head = self.make_head(encoder.width, dropout=encoder.dropout, has_bias=encoder.has_bias)
        objective = TaskObjective(encoder, head, lm_weight=self.config.lm_weight).eval()
        self.backbone.fill(objective, folder)
        return objective

    @classmethod
    def _load_foreign(cls, own: type[Task], folder: Path) -> Self:
        # Their files do not say whether a label is of one text or of two; the caller must.
        chosen: Any = cls if issubclass(cls, own) else own
        if not issubclass(chosen, cls):
            raise ArtifactError(f"{folder} was fine-tuned for {own.kind}, not {cls.kind}.")
        content = read_config(folder)
        longest = int(content.get("max_position_embeddings", 512))
        length = min(longest, max(chosen.config_class().length, 512))
        labels = _labels(content, folder) if chosen.has_labels else None
        task: Self = chosen(folder, labels=labels, length=length)
        task.is_defined = task.is_foreign = True
        task.learn_foreign(content, folder)
        task.backbone = KINDS["bert"].backbone_class().read(folder, {}, task.config)
        task.objective = task._member(task.backbone.encoder, folder)
        return task


def _labels(content: dict[str, Any], folder: Path) -> list[str]:
    names = content.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}  # what theirs are then
    try:
        labels = [names[number] for number in sorted(names, key=int)]
        if any(isinstance(label, (dict, list)) for label in labels):
            raise TypeError
        return labels
    except (TypeError, ValueError) as error:
        raise ArtifactError(f"{folder / CONFIG} names its labels in no order.") from error
