"""What a ladder found: corpus, machine, rungs, tasks, cells and looks, as JSON and back.

Scores stand in the unit of their task: 63.2 is 63.2 %, or a perplexity of 63.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sememe.errors import ArtifactError
from sememe.ladder.records import Record, from_plain
from sememe.storage.folder import read_json, write_json

FORMAT = 1
FILE = "results.json"

Family = Literal["counts", "static", "language model", "contextual"]
State = Literal["waiting", "training", "done", "failed", "left out"]
Group = Literal["words", "sentences", "senses", "language model"]


@dataclass(frozen=True, kw_only=True)
class Corpus(Record):
    """The text every rung read; `split` says in a sentence how held-out documents were chosen."""

    name: str
    language: str
    documents: int
    words: int
    train_documents: int
    train_words: int
    heldout_documents: int
    heldout_words: int
    vocabulary: int = 0
    subwords: int = 0
    split: str = ""


@dataclass(frozen=True, kw_only=True)
class Budget(Record):
    """What each rung was given: seconds of training, or tokens to see."""

    seconds: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Machine(Record):
    """Where it ran; memory in bytes."""

    cores: int
    memory: int
    processor: str
    gpu: str
    system: str
    gpu_memory: int = 0


class Point(NamedTuple):
    """One point of the curve of a training."""

    seconds: float
    tokens: int
    loss: float | None


@dataclass(frozen=True, kw_only=True)
class Rung(Record):
    """One model: what it is, how it was made, what it cost."""

    name: str
    title: str
    family: Family
    state: State = "waiting"
    why: str = ""
    path: str = ""
    command: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    train_s: float = 0.0
    tokens: int = 0
    tokens_per_s: float = 0.0
    parameters: int = 0
    megabytes: float = 0.0
    history: list[Point] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Task(Record):
    """One column: what is asked and how, and what somebody who understands nothing gets."""

    name: str
    title: str
    group: Group
    what: str
    metric: str
    unit: str = "%"
    higher_is_better: bool = True
    baselines: dict[str, float] = field(default_factory=dict)
    num_train: int = 0
    num_test: int = 0
    how: str = ""
    is_named: bool = False  # by the user


@dataclass(frozen=True, kw_only=True)
class Cell(Record):
    """The figure of one rung on one task, a score a seed; or `why` there is none."""

    rung: str
    task: str
    scores: list[float] = field(default_factory=list)
    mean: float | None = None
    sd: float | None = None
    why: str = ""
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)


class WordPoint(NamedTuple):
    """A word on the plane."""

    word: str
    group: str
    x: float
    y: float


class NearWord(NamedTuple):
    """A neighbor with its cosine."""

    word: str
    similarity: float


class UsePoint(NamedTuple):
    """One use of the ambiguous word on the plane; `sentence` counts from 0."""

    sentence: int
    sense: str
    x: float
    y: float


class Use(NamedTuple):
    """A sentence with the ambiguous word, which stands between two characters, and its sense."""

    text: str
    sense: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class WordsLook(Record):
    """The same words in every model, laid on the plane by principal components."""

    groups: dict[str, list[str]]
    points: dict[str, list[WordPoint]]


@dataclass(frozen=True, kw_only=True)
class ContextsLook(Record):
    """One ambiguous word in its sentences, model by model."""

    word: str
    sentences: list[Use]
    points: dict[str, list[UsePoint]]


@dataclass(frozen=True, kw_only=True)
class AttentionLook(Record):
    """Where one head looks: row i holds the weights of token i, and sums to one."""

    rung: str
    layer: int
    head: int
    tokens: list[str]
    weights: list[list[float]]


@dataclass(frozen=True, kw_only=True)
class Looks(Record):
    """What there is to see beside the figures."""

    pca: WordsLook | None = None
    neighbors: dict[str, dict[str, list[NearWord]]] = field(default_factory=dict)
    contexts: ContextsLook | None = None
    attention: AttentionLook | None = None

    def joined(self, more: Looks) -> Looks:
        """These looks with those at other rungs."""
        neighbors = {
            word: {**self.neighbors.get(word, {}), **more.neighbors.get(word, {})}
            for word in {**self.neighbors, **more.neighbors}
        }
        return Looks(
            pca=_with_points(self.pca, more.pca),
            neighbors=neighbors,
            contexts=_with_points(self.contexts, more.contexts),
            attention=more.attention or self.attention,
        )


def _with_points(own: Any, more: Any) -> Any:
    if own is None or more is None:
        return own or more
    return replace(own, points={**own.points, **more.points})


@dataclass(frozen=True, kw_only=True)
class Results(Record):
    """Everything a ladder found; `notes` are sentences that the report must print."""

    title: str
    corpus: Corpus
    budget: Budget
    machine: Machine
    versions: dict[str, str]
    seeds: list[int]
    started: str
    command: str
    rungs: list[Rung] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    looks: Looks = field(default_factory=Looks)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    format: int = FORMAT

    def rung(self, name: str) -> Rung:
        """The rung of this name."""
        return next(rung for rung in self.rungs if rung.name == name)

    def task(self, name: str) -> Task:
        """The task of this name."""
        return next(task for task in self.tasks if task.name == name)

    def cell(self, rung: str, task: str) -> Cell | None:
        """The figure of a rung on a task, or None while there is none."""
        own = (cell for cell in self.cells if (cell.rung, cell.task) == (rung, task))
        return next(own, None)

    def best(self, task: str) -> list[str]:
        """The rungs with the best mean of a task as it is printed; several where they are equal."""
        sign = 1 if self.task(task).higher_is_better else -1
        means = {
            cell.rung: sign * round(cell.mean, 1)
            for cell in self.cells
            if cell.task == task and cell.mean is not None
        }
        return [name for name, mean in means.items() if mean == max(means.values())]

    def save(self, folder: str | Path) -> Path:
        """Write results.json into a folder, whole or not at all."""
        path = Path(folder) / FILE
        write_json(path, self.to_dict())
        return path

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read results.json, or the folder that holds it."""
        path = Path(path)
        path = path / FILE if path.is_dir() else path
        return cls.from_dict(read_json(path), str(path))

    @classmethod
    def from_dict(cls, content: Any, name: str = "this") -> Results:
        """Read what `to_dict` gave; `name` is said where it cannot be."""
        if not isinstance(content, Mapping) or "format" not in content:
            raise ArtifactError(f"{name} does not hold the results of a ladder.")
        if content["format"] != FORMAT:
            raise ArtifactError(
                f"{name} has format {content['format']}, this version of sememe reads {FORMAT}; "
                "run the ladder again."
            )
        try:
            return from_plain(cls, content)
        except (KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{name} is not a whole result of a ladder ({error}).") from error
