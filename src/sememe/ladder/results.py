"""The results of a ladder: corpus, machine, rungs, columns, cells and visuals, as JSON and back.

Scores are in the unit of their column: 63.2 is 63.2 %, or a perplexity of 63.2.
"""

from __future__ import annotations

import math
import types
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from sememe.errors import ArtifactError
from sememe.evaluation.results import plain
from sememe.storage.folder import read_json, write_json


def from_plain(kind: Any, value: Any) -> Any:
    """Build the value of a type hint from JSON."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (types.UnionType, Union):
        return None if value is None else from_plain(parts[0], value)
    if origin is list:
        return [from_plain(parts[0], one) for one in value]
    if origin is dict:
        return {name: from_plain(parts[1], one) for name, one in value.items()}
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        known = {one.name: hints[one.name] for one in fields(kind) if one.name in value}
        return kind(**{name: from_plain(hint, value[name]) for name, hint in known.items()})  # type: ignore[operator]
    if hasattr(kind, "_fields"):
        pairs = zip(get_type_hints(kind).values(), value, strict=True)
        return kind(*(from_plain(hint, one) for hint, one in pairs))
    if kind is float:
        return math.nan if value is None else float(value)
    if (kind in (str, int, bool) and type(value) is not kind) or (parts and value not in parts):
        raise TypeError(f"{value!r} instead of {kind}")
    return value


FORMAT = 1
FILE = "results.json"
_SMALL_NETWORK = 20_000_000  # parameters

Family = Literal["counts", "static", "language model", "contextual"]
State = Literal["waiting", "training", "done", "failed", "left out"]
Group = Literal["words", "sentences", "senses", "language model"]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """The text of every rung; `split` says in a sentence how held-out documents were chosen."""

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
class Budget:
    """The budget of each rung: seconds of training, or tokens."""

    seconds: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine; memory in bytes."""

    cores: int
    memory: int
    processor: str
    gpu: str
    system: str
    gpu_memory: int = 0


class Point(NamedTuple):
    """One point of a training curve."""

    seconds: float
    tokens: int
    loss: float | None


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One model: its kind, its training, its cost."""

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
class Column:
    """One column: its task and metric, and its baselines."""

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
class Cell:
    """The score of one rung on one task, one score per seed; or `why` there is none.

    `num` is the number of questions or rows (0: an older file does not say), and `interval` that of
    95 % over them.
    """

    rung: str
    task: str
    scores: list[float] = field(default_factory=list)
    mean: float | None = None
    sd: float | None = None
    interval: list[float] | None = None
    num: int = 0
    few_questions: bool = False  # fewer than 30: much of it is chance
    why: str = ""
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)


class WordPoint(NamedTuple):
    """A word in the two-dimensional projection."""

    word: str
    group: str
    x: float
    y: float


class NearWord(NamedTuple):
    """A neighbor with its cosine."""

    word: str
    similarity: float


class UsePoint(NamedTuple):
    """One use of the ambiguous word in the projection; `sentence` counts from 0."""

    sentence: int
    sense: str
    x: float
    y: float


class Use(NamedTuple):
    """A sentence with the ambiguous word, its character span, and its sense."""

    text: str
    sense: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class WordsVisual:
    """The same words in every model, projected by principal components."""

    groups: dict[str, list[str]]
    points: dict[str, list[WordPoint]]


@dataclass(frozen=True, kw_only=True)
class ContextsVisual:
    """One ambiguous word in its sentences, model by model."""

    word: str
    sentences: list[Use]
    points: dict[str, list[UsePoint]]


@dataclass(frozen=True, kw_only=True)
class AttentionVisual:
    """The weights of one attention head: row i has those of token i, and sums to one."""

    rung: str
    layer: int
    head: int
    tokens: list[str]
    weights: list[list[float]]
    num_heads: int = 0  # of the model, from which this one was chosen; 0: an older file
    share: float = 0.0  # mean over the tokens of the largest weight on another token


@dataclass(frozen=True, kw_only=True)
class Visuals:
    """What the report shows besides the scores."""

    pca: WordsVisual | None = None
    neighbors: dict[str, dict[str, list[NearWord]]] = field(default_factory=dict)
    contexts: ContextsVisual | None = None
    attention: AttentionVisual | None = None

    def joined(self, more: Visuals) -> Visuals:
        """These visuals joined with those of other rungs."""
        return Visuals(
            pca=_with_points(self.pca, more.pca),
            neighbors={
                word: {**self.neighbors.get(word, {}), **more.neighbors.get(word, {})}
                for word in {**self.neighbors, **more.neighbors}
            },
            contexts=_with_points(self.contexts, more.contexts),
            attention=more.attention or self.attention,
        )


def _with_points(own: Any, more: Any) -> Any:
    if own is None or more is None:
        return own or more
    return replace(own, points={**own.points, **more.points})


@dataclass(frozen=True, kw_only=True)
class Results:
    """All results of a ladder; `notes` are sentences that the report must print."""

    title: str
    corpus: Corpus
    budget: Budget
    machine: Machine
    versions: dict[str, str]
    seeds: list[int]
    started: str
    command: str
    rungs: list[Rung] = field(default_factory=list)
    tasks: list[Column] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    looks: Visuals = field(default_factory=Visuals)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    format: int = FORMAT

    def rung(self, name: str) -> Rung:
        """The rung of this name."""
        return next(rung for rung in self.rungs if rung.name == name)

    def task(self, name: str) -> Column:
        """The task of this name."""
        return next(task for task in self.tasks if task.name == name)

    def cell(self, rung: str, task: str) -> Cell | None:
        """The score of a rung on a task, or None if there is none yet."""
        return next((one for one in self.cells if (one.rung, one.task) == (rung, task)), None)

    @property
    def caveat(self) -> str:
        """Name the contextual models that had too little time to be useful; empty if none.

        A model that wins several columns against static ones is useful.
        """
        static = {rung.name for rung in self.rungs if rung.family != "contextual"}
        contested = {cell.task for cell in self.cells if cell.rung in static and cell.mean}
        wins = Counter(
            name for task in self.tasks if task.name in contested for name in self.best(task.name)
        )
        small = [
            rung.title
            for rung in self.rungs
            if rung.family == "contextual" and rung.state == "done" and rung.tokens
            if rung.parameters < _SMALL_NETWORK and wins[rung.name] < 2
        ]
        seconds = self.budget.seconds or math.inf
        if not small or seconds >= 3_600:
            return ""
        time = f"{seconds:g} seconds" if seconds < 120 else f"{seconds / 60:.3g} minutes"
        names = " or ".join(filter(None, (", ".join(small[:-1]), small[-1])))
        return f"{time} is too short to train a useful {names}."

    def best(self, task: str) -> list[str]:
        """The rungs with the best printed mean of a task; several if they are equal."""
        sign = 1 if self.task(task).higher_is_better else -1
        means = {
            cell.rung: sign * round(cell.mean, 1)
            for cell in self.cells
            if cell.task == task and cell.mean is not None
        }
        return [name for name, mean in means.items() if mean == max(means.values())]

    def to_dict(self) -> dict[str, Any]:
        """The results for JSON: NaN becomes null, tuples lists."""
        return plain(asdict(self))

    def save(self, folder: str | Path) -> Path:
        """Write results.json into a folder atomically."""
        path = Path(folder) / FILE
        write_json(path, self.to_dict())
        return path

    @classmethod
    def load(cls, path: str | Path) -> Results:
        """Read results.json, given its path or its folder."""
        path = Path(path) / FILE if Path(path).is_dir() else Path(path)
        return cls.from_dict(read_json(path), str(path))

    @classmethod
    def from_dict(cls, content: Any, name: str = "this") -> Results:
        """Read the output of `to_dict`; `name` is the file in errors."""
        if not isinstance(content, Mapping) or "format" not in content:
            raise ArtifactError(f"{name} is not a results file of a ladder.")
        if content["format"] != FORMAT:
            raise ArtifactError(
                f"{name} has format {content['format']}, this version of sememe reads {FORMAT}; "
                "run the ladder again."
            )
        try:
            return from_plain(cls, content)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ArtifactError(f"{name} is not a complete ladder result ({error}).") from error
