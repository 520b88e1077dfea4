"""The sets of benchmarks/finetuning.py: files in; rows, hyper-parameters, official scores out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

OURS, COMPILED, THEIRS = "sememe", "sememe compiled", "transformers"
LEARNED, RANDOM = "pre-trained", "random weights"
# The two sides of each comparison; tables show the second one minus the first.
SIDES = {"scores": (THEIRS, OURS), "pretrained": (RANDOM, LEARNED)}


@dataclass(frozen=True)
class Set:
    """A set of the comparison: its name among the benchmarks, length of rows, passes over them."""

    name: str
    length: int = 128
    epochs: float = 3.0


# Names are tagged in rows long enough that none is cut: the peer does not cut them into windows.
SETS = {
    "sst2": Set("SST-2"), "mrpc": Set("MRPC"), "stsb": Set("STS-B"), "rte": Set("RTE"),
    "cola": Set("CoLA"), "conll": Set("conll2003", 256), "squad": Set("squad1.1", 384, 2.0),
}  # fmt: skip


class Material:
    """The rows of a set, read once, and the task that they are for."""

    def __init__(self, key: str, options: argparse.Namespace) -> None:
        from sememe.contract import KINDS
        from sememe.evaluation.benchmarks import ANSWER_SETS, GLUE, TAG_SETS
        from sememe.evaluation.rows import DataFolder, read_rows

        self.key, self.set, self.options = key, SETS[key], options
        self.benchmark = {**GLUE, **TAG_SETS, **ANSWER_SETS}[self.set.name]
        self.kind, self.task_class = self.benchmark.kind, KINDS[self.benchmark.kind].cls()
        self.length = options.length or self.set.length
        holdings = DataFolder(options.data).holdings(self.benchmark)
        if holdings.train is None or "dev" not in holdings.parts:
            raise SystemExit(f"{options.data} lacks files of {key}: {', '.join(holdings.missing)}")
        train = list(read_rows(self.benchmark, holdings.train, is_learned=True))
        dev = list(read_rows(self.benchmark, holdings.parts["dev"]))
        self.train, self.dev = train[: options.max_train], dev[: options.max_dev]

    @property
    def hyper(self) -> Any:
        """The hyper-parameters of the command line."""
        from finetuning_peer import Hyper

        options = self.options
        return Hyper(
            length=self.length, batch_size=options.batch_size, epsilon=options.epsilon,
            learning_rate=options.learning_rate, steps=options.steps,
            epochs=0.0 if options.steps else options.epochs or self.set.epochs,
        )  # fmt: skip

    @cached_property
    def labels(self) -> list[str]:
        """The labels in the order of their numbers."""
        return self.task_class("").labels_of(self.learned)

    @cached_property
    def learned(self) -> list[Any]:
        """The training rows as our task reads them: tags in its scheme."""
        return list(self.task_class("").read(self.train, labelled=True))

    def fitted(self, model: Any, hyper: Any, **more: Any) -> Any:
        """Our task with these hyper-parameters, trained on all of the rows."""
        settings = {name: value for name, value in asdict(hyper).items() if value}
        settings |= {"device": self.options.device, "workers": self.options.threads}
        task = self.task_class(model, **settings, **more)
        return task.fit(self.train, dev=False)

    def scored(self, predict: Callable[[list[Any]], list[Any]]) -> dict[str, float]:
        """The official scores of what is said of the dev rows, where there are any."""
        from sememe.metrics.by_name import gold_of, score_all

        if not self.dev:
            return {}
        gold, said = gold_of(self.kind, self.dev), predict(self.dev)
        return score_all(self.benchmark.metrics, gold, said, self.benchmark.positive)


def circumstances(options: argparse.Namespace) -> dict[str, Any]:
    """What must be the same for results to be put together."""
    import torch

    from sememe.training.device import choose_device

    is_gpu = choose_device(options.device).type == "cuda"
    return {
        "model": options.name or options.model.resolve().name,
        "device": torch.cuda.get_device_name() if is_gpu else "CPU",
        "versions": {name: version(name) for name in ("torch", "transformers")},
        "is_compiled": bool(getattr(options, "compile", False)),
        "rows": [options.max_train, options.max_dev],
    }
