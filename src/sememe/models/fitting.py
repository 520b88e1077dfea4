"""The path from data to a saved model, for every kind: word vectors, networks, tasks.

A model's `fit` builds a `Request` and calls `fit` here. The model's `prepare` opens the data and
returns the plan, which identifies the run, with the function that trains. If the run to resume has
already finished, its model is opened instead. After training, the model is saved and its
checkpoints are removed.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from sememe.errors import OptionError
from sememe.progress import SILENT, Reporter
from sememe.storage import remote
from sememe.storage.checkpoints import Checkpoints, check_plan
from sememe.storage.folder import MANIFEST, check_replaceable, manifest_in, verify
from sememe.storage.urls import url_of
from sememe.tokens.store import names_of
from sememe.training.distributed import Processes

# Endings that imply a file: of vectors, n-grams or weights, or a compressed one.
_FILE_ENDINGS = (
    ".bin", ".ftz", ".vec", ".txt", ".glove", ".kv", ".npy", ".npz", ".h5", ".hdf5", ".onnx",
    ".arpa", ".safetensors", ".pt", ".pth", ".gz", ".bz2", ".xz", ".zst", ".zip",
)  # fmt: skip

Plan = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What `fit` needs besides the data; each kind of model reads the fields it knows."""

    out: str | Path | None = None  # the output folder
    resume: bool = False
    overwrite: bool = False  # whether an existing model may be replaced
    reporter: Reporter = SILENT
    processes: Processes = Processes()
    saved_kind: str = ""  # the kind in sememe.json, if it is not the model's kind
    # Word vectors.
    start: Any = None  # pretrained vectors
    phrases: int = 0
    callbacks: Sequence[Any] = ()
    checkpoint_minutes: float = 10.0
    # Models of plain text.
    store: str | Path | None = None  # the path of the token store
    tokenizer: Any = None
    # Models of labelled rows and of pairs.
    dev: Any = None
    reading: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let only one of several processes print."""
        if not self.processes.is_main:
            object.__setattr__(self, "reporter", SILENT)

    @property
    def num_processes(self) -> int:
        """How many processes train together, here or elsewhere."""
        elsewhere = ELSEWHERE.get()
        return self.processes.size if elsewhere is None else elsewhere.num_workers

    def check(self, kind: str) -> None:
        """Raise an error for what cannot succeed, before any data is read."""
        if self.out is not None:
            out = Path(self.out)
            # An earlier version may have used such a name.
            is_begun = (out / MANIFEST).is_file() or Path(f"{out}.checkpoints").is_dir()
            if out.suffix.lower() in _FILE_ENDINGS and not is_begun:
                raise OptionError(
                    f"{out} is the name of a file, and a model is saved as a folder: give `out` a "
                    f"folder, then write the file with `sememe convert FOLDER {out}`."
                )
            check_replaceable(out, kind, overwrite=self.overwrite or self.resume)
        elif self.resume:
            raise OptionError("To resume, `out` must say where the model was to be saved.")
        if not self.checkpoint_minutes >= 0:
            raise OptionError(
                f"checkpoint_minutes must be 0 (never) or more, not {self.checkpoint_minutes}."
            )

    def checkpoints(self, keep: int = 1) -> Checkpoints | None:
        """The checkpoints next to the output folder; None if nothing is saved."""
        return None if self.out is None else Checkpoints(f"{Path(self.out)}.checkpoints", keep=keep)


class Prepared(NamedTuple):
    """A run that is ready to start: what identifies it, and the function that trains the model."""

    plan: Plan
    train: Callable[[], None]
    sizes: Mapping[str, Any] = {}  # of the data, for sememe.json and the model card


class Elsewhere(Protocol):
    """Trains in other processes than this one: in the workers of a cluster."""

    num_workers: int

    def train(self) -> None:
        """Train the model of this context, and save it to its output folder."""


# Set where this process only prepares the data of a training.
ELSEWHERE: ContextVar[Elsewhere | None] = ContextVar("elsewhere", default=None)


class Learner(Protocol):
    """The methods that a model needs so that it can be fitted."""

    plan: Plan
    data: Mapping[str, Any]
    path: Path | None

    @property
    def kind(self) -> str:
        """Its key in `sememe.contract.KINDS`."""

    def prepare(self, data: Any, request: Request) -> Prepared:
        """Open the data; return the run's plan and the function that trains."""

    def take_over(self, other: Any) -> None:
        """Take over the state of another model of the same kind, except for its options."""

    def save(self, folder: str | Path) -> None:
        """Write the model to a folder."""

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a saved model."""


Fitted = TypeVar("Fitted", bound=Learner)


def fit(model: Fitted, data: Any, request: Request) -> Fitted:
    """Train `model` on `data`, save it to the request's output folder, and return it."""
    if (url := url_of(request.out)) is not None:
        with remote.written(url, uploads=request.processes.is_main) as out:
            return fit(model, data, replace(request, out=out))
    request.check(request.saved_kind or model.kind)
    plan, train, sizes = model.prepare(data, request)
    if _take_finished(model, plan, request):
        return model
    if (elsewhere := ELSEWHERE.get()) is not None:
        elsewhere.train()
        _open(model, Path(str(request.out)))
        model.plan = plan
        return model
    has_dev = request.dev is not None and request.dev is not False
    model.data = {
        "train": names_of(data), **({"dev": names_of(request.dev)} if has_dev else {}), **sizes,
    }  # fmt: skip
    train()
    model.plan = plan
    if request.out is not None and request.processes.is_main:
        model.save(request.out)
        Checkpoints(f"{Path(request.out)}.checkpoints").clear()
    return model


def _take_finished(model: Learner, plan: Plan, request: Request) -> bool:
    """Open the finished model of the run to resume, if there is one."""
    checkpoints = request.checkpoints()
    if not request.resume or checkpoints is None or checkpoints.has_one:
        return False
    out = Path(str(request.out))
    if not (out / MANIFEST).exists():
        return False
    verify(out)
    check_plan(out, manifest_in(out).get("plan"), plan)
    request.reporter.note(f"{out} is finished already.")
    _open(model, out)
    return True


def _open(model: Learner, out: Path) -> None:
    """Take over the trained model in a folder."""
    finished = type(model).load(out)
    model.take_over(finished)
    model.data, model.path = finished.data, out
