"""A task: labelled rows in, an encoder with a head out; `fit`, `predict`, `evaluate`, `save`,
`load`.

What a subclass fills in, each described at its method below:

    name, main_metric       "classify", "accuracy": the command's word, the figure that decides
    has_labels              False where there are none, as for scores and spans
    config_class            FinetuneConfig, or a subclass with options of the task's own
    read(data, …)           data in any form → rows (a list with .num_skipped)
    labels_of(rows)         the labels to be learned, in a fixed order; none: []
    encode(rows)            rows → items: sequences of ids (self.coder makes them) with targets
    make_head(width, …)     the head of networks/heads.py
    activate(output)        the scores of an item → what may be averaged over an ensemble
    decode(row, items, …)   what is predicted for a row, from the outputs of its items
    score(rows, predicted)  figures by name, higher is better, `main_metric` among them
    written(row, predicted) a prediction as a line of text, for the command `predict`
    settle(rows, predicted) what dev rows decide after training, such as a threshold
    explain(rows, predicted) more fields of Scores, such as the confusions; may be left out

An `Item` gets one output of the head. It holds one sequence, or several that are seen together (a
choice each); a long row may become several items, each with the row's index. `self.labels`,
`self.config` and `self.coder` are there when `encode` is called.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as Several
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.networks.installed import need_torch
from sememe.options import changed
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import check_replaceable
from sememe.tasks.config import FinetuneConfig
from sememe.tasks.encoding import Coder
from sememe.tasks.items import Item
from sememe.tasks.scores import Scores

if TYPE_CHECKING:
    from sememe.examples.labelled import Rows
    from sememe.networks.heads import Head
    from sememe.tasks.objective import TaskObjective


class Task:
    """The base of the tasks; see above for what each fills in."""

    name: ClassVar[str]
    main_metric: ClassVar[str]
    config_class: ClassVar[type[FinetuneConfig]] = FinetuneConfig
    has_labels: ClassVar[bool] = True
    kind: ClassVar[str] = "task"  # what sememe.json says

    def __init__(self, model: Any, *, labels: Several[str] | None = None, **options: Any) -> None:
        """Take the model to start from and options of FinetuneConfig.

        `model` is the folder of a BERT or GPT (ours, Hugging Face's, or one that was fine-tuned
        before), of an ELMo, a ULMFiT or word vectors; such a model itself; or a network with its
        tokenizer. `labels` fixes which labels there are and their order; left out, they are those
        of the training rows.
        """
        if labels is not None and not self.has_labels:
            raise OptionError(f"{type(self).__name__} has no labels to give.")
        self.model = model
        self.given_labels = None if labels is None else list(labels)
        self.config = changed(self.config_class(), type(self).__name__, options)
        self.labels: list[str] = list(labels or [])
        self.objective: TaskObjective | None = None
        self.others: list[TaskObjective] = []  # the other members of an ensemble
        self.coder: Coder
        self.history = History()
        self.scores: Scores | None = None  # on the dev rows, with the weights that are kept
        self.plan: dict[str, Any] = {}
        self.precision = ""  # in which it was trained, whatever the options leave open
        self.trials: list[dict[str, Any]] = []  # the runs that this one was chosen from
        # What a subclass learns from rows beside its weights and needs again: JSON's values.
        self.learned: dict[str, Any] = {}

    def __repr__(self) -> str:
        state = "not fitted" if self.objective is None else f"{len(self.labels)} labels"
        state += f", {len(self.others) + 1} members" if self.others else ""
        return f"{type(self).__name__}({state})"

    # ---- what a subclass fills in ---------------------------------------------------------

    def read(self, data: Any, *, labelled: bool, **reading: Any) -> Rows:
        """Read rows from paths or a Python list; `labelled` rows must say what they are.

        `reading` goes on to the reader: columns, skip_bad, encoding, on_note. A label that is not
        in self.labels, once there are some, is an error with file and line.
        """
        raise NotImplementedError

    def labels_of(self, rows: Several[Any]) -> list[str]:
        """The labels of training rows, in the order of their numbers.

        Other things to be learned from the rows go into self.learned here.
        """
        return []

    def encode(self, rows: Several[Any]) -> list[Item]:
        """Turn rows into items; those of rows with labels have targets."""
        raise NotImplementedError

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Head:
        """A new head for vectors of that width; the caller draws its weights."""
        raise NotImplementedError

    def activate(self, output: np.ndarray) -> np.ndarray:
        """Turn the scores of an item into numbers that `decode` takes and ensembles average."""
        return output

    def decode(self, row: Any, items: Several[Item], outputs: Several[np.ndarray]) -> Any:
        """The prediction for a row, from the activated outputs of its items."""
        raise NotImplementedError

    def score(self, rows: Several[Any], predictions: Several[Any]) -> dict[str, float]:
        """Figures by name, the higher the better; `main_metric` is one of them."""
        raise NotImplementedError

    def settle(self, rows: Several[Any], predictions: Several[Any]) -> None:
        """Learn from the dev rows, if any, what the weights do not say, such as a threshold.

        It replaces self.learned (the run is known by what was there before).
        """

    def explain(self, rows: Several[Any], predictions: Several[Any]) -> dict[str, Any]:
        """More fields of Scores."""
        return {}

    def written(self, row: Any, prediction: Any, *, num: int, has_chances: bool) -> str:
        """A prediction as a line of text: its `num` likeliest values, with probabilities if any."""
        raise NotImplementedError

    # ---- the verbs ------------------------------------------------------------------------

    def fit(
        self,
        train: Any,
        *,
        dev: Any = None,
        out: str | Path | None = None,
        resume: bool = False,
        progress: Reporter | bool | None = None,
        **reading: Any,
    ) -> Self:
        """Learn from labelled rows: paths, or a list of rows, tuples or dicts.

        `dev` rows choose the best weights; left out, a share of the training rows is held out for
        that, False: none. With `out` the task is saved there, checkpoints lie beside it while it
        trains, and `resume` continues from the last one. `reading` says how data is read:
        columns={"text": "review"}, skip_bad=True, encoding.
        """
        need_torch()
        from sememe.tasks.fitting import fit
        from sememe.tasks.preparing import Request

        if out is not None:
            check_replaceable(Path(out), self.kind)
        elif resume:
            raise OptionError("To resume, `out` must say where the task was to be saved.")
        request = Request(
            dev=dev, out=None if out is None else Path(out), resume=resume,
            reporter=as_reporter(progress), reading=reading,
        )  # fmt: skip
        fit(self, train, request)
        return self

    def predict(self, data: Any, **reading: Any) -> list[Any]:
        """Predict every row of paths or a list; labels in it, if any, are not looked at."""
        self._need_fit()
        return self.predict_rows(self.read(data, labelled=False, **reading))

    def predict_rows(self, rows: Several[Any]) -> list[Any]:
        """Predict rows that are read already."""
        items = self.encode(rows) if len(rows) else []
        return self.decoded(rows, items, self.activated(items))

    def activated(self, items: Several[Item]) -> list[np.ndarray]:
        """The activated output of each item; an ensemble gives the mean over its members."""
        from sememe.tasks.inference import run

        members = [
            [self.activate(output) for output in run(objective, items, self.config)]
            for objective in (self._need_fit(), *self.others)
        ]
        return (
            [np.mean(own, 0) for own in zip(*members, strict=True)] if self.others else members[0]
        )

    def _need_fit(self) -> TaskObjective:
        if self.objective is None:
            raise OptionError(f"This {type(self).__name__} has not learned yet: call fit first.")
        return self.objective

    def decoded(
        self, rows: Several[Any], items: Several[Item], outputs: Several[np.ndarray]
    ) -> list[Any]:
        """The prediction for each row from the outputs of all items."""
        own: list[list[int]] = [[] for _ in rows]
        for index, item in enumerate(items):
            own[item.row_index].append(index)
        return [
            self.decode(row, [items[i] for i in indices], [outputs[i] for i in indices])
            for row, indices in zip(rows, own, strict=True)
        ]

    def evaluate(self, data: Any, **reading: Any) -> Scores:
        """Score the predictions for labelled rows."""
        self._need_fit()
        rows = self.read(data, labelled=True, **reading)
        begun_s = time.monotonic()
        predictions = self.predict_rows(rows)
        return self.scored(
            rows, predictions, num_skipped=getattr(rows, "num_skipped", 0),
            seconds=round(time.monotonic() - begun_s, 3),
        )  # fmt: skip

    def scored(self, rows: Several[Any], predictions: Several[Any], **more: Any) -> Scores:
        """The scores of predictions."""
        if not len(rows):
            raise InputError("There are no rows to score.")
        figures = self.score(rows, predictions)
        metric = self.config.metric or self.main_metric
        if metric not in figures:
            raise OptionError(f"metric must be one of {', '.join(figures)}, not {metric!r}.")
        explained = self.explain(rows, predictions)
        return Scores(figures=figures, main_metric=metric, num_rows=len(rows), **explained, **more)

    def save(self, folder: str | Path) -> None:
        """Write a folder that appears whole or not at all; `transformers` opens it where it can."""
        from sememe.tasks.folder import save

        save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a task that was saved by `fit` or `save`, or a BERT fine-tuned by transformers."""
        need_torch()
        from sememe.errors import ArtifactError
        from sememe.tasks.folder import load
        from sememe.tasks.foreign import foreign_name, load_foreign

        place = Path(folder)
        task = load_foreign(cls, place) if foreign_name(place) else load(place)
        if not isinstance(task, cls):
            raise ArtifactError(f"{folder} is a task of kind {task.name}, not {cls.name}.")
        return task
