"""How a model is fitted: from the start, from its last checkpoint, or not at all when finished."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import ArtifactError, OptionError
from sememe.progress import SILENT, History, Reporter
from sememe.static.callbacks import Callback, Evaluate
from sememe.static.loop import HISTORY, STATE, TENSORS, Driver, Run
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import MANIFEST, check_replaceable, read_json
from sememe.storage.tensors import read_tensors
from sememe.tokens.store import TokenStore

if TYPE_CHECKING:
    from sememe.static.model import StaticModel

# Options that may change between a run and its continuation.
_PASSING = ("workers", "vectors", "memory")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of `fit` asks for beside the text."""

    start: Any = None
    out: str | Path | None = None
    resume: bool = False
    checkpoint_minutes: float = 10.0
    callbacks: Sequence[Callback] = ()
    reporter: Reporter = SILENT

    def check(self, kind: str) -> None:
        """Refuse what cannot come to a good end before any text is read."""
        if self.resume and self.out is None:
            raise OptionError("To resume, `out` must say where the model was to be saved.")
        if self.out is not None:
            check_replaceable(Path(self.out), kind)
        if not self.checkpoint_minutes >= 0:
            raise OptionError(
                f"checkpoint_minutes must be 0 (never) or more, not {self.checkpoint_minutes}."
            )

    @property
    def keeper(self) -> Checkpoints | None:
        """Where the checkpoints lie: beside the model to be."""
        return Checkpoints(f"{Path(self.out)}.checkpoints") if self.out is not None else None


def fit(
    model: StaticModel,
    request: Request,
    content: dict[str, Any],
    prepare: Callable[[], Run],
    begin: Callable[[Run], None],
) -> None:
    """Train `model` and save it where the request says so.

    `content` identifies the text; `prepare` makes the run with its matrices, `begin` fills them
    with the numbers that training starts from.
    """
    plan = plan_of(model, content)
    keeper, reporter = request.keeper, request.reporter
    found = keeper.latest() if keeper is not None and request.resume else None
    if found is None and take_finished(model, request, plan):
        return
    model.history = History()
    run = prepare()
    try:
        step, seconds = 0, 0.0
        if found is not None:
            step, seconds = _restore(found, plan, run, model)
            for callback in request.callbacks:
                if isinstance(callback, Evaluate):
                    callback.restore(model.history)
            reporter.note(f"Resuming at step {step:,} from {found}.")
        else:
            if keeper is not None and keeper.latest() is not None:
                reporter.note(f"Starting anew: the checkpoint in {keeper.folder} is removed.")
                keeper.clear()
            begin(run)
        driver = Driver(
            model, run, reporter, callbacks=request.callbacks, keeper=keeper, plan=plan,
            seconds=seconds,
        )  # fmt: skip
        driver.drive(step, request.checkpoint_minutes * 60 or math.inf)
    finally:
        run.close()
    model.plan = plan
    if request.out is not None:
        model.save(request.out)
    if keeper is not None:
        keeper.clear()


def plan_of(model: StaticModel, content: dict[str, Any]) -> dict[str, Any]:
    """What identifies a run: the options that shape it, and its text."""
    return {"config": _lasting(model.config), **content}


def take_finished(model: StaticModel, request: Request, plan: dict[str, Any]) -> bool:
    """Open the model that a run to be resumed has finished already, where there is one."""
    finished = Path(str(request.out)) / MANIFEST
    if not request.resume or not finished.exists():
        return False
    request.reporter.note(f"{request.out} is finished: there is nothing to resume.")
    _check_plan(finished.parent, read_json(finished).get("plan"), plan)
    model.take_over(type(model).load(finished.parent))
    return True


def content_of(tokens: TokenStore, num_words: int) -> dict[str, Any]:
    """What identifies the text of a run: its tokens and how many words of them are trained."""
    return {
        "content": tokens.manifest.get("content"),
        "tokens": tokens.num_tokens,  # fewer where phrases were joined
        "words": num_words,
    }


def _lasting(config: Any) -> dict[str, Any]:
    """The options that must not change between a run and its continuation."""
    return {name: value for name, value in config.to_dict().items() if name not in _PASSING}


def _check_plan(place: Path, old: Any, plan: dict[str, Any]) -> None:
    """Refuse to go on with what was made with other options or from other text."""
    if not isinstance(old, dict) or not isinstance(old.get("config"), dict):
        raise ArtifactError(f"{place} does not say how it was made; start again without resume.")
    other = [
        f"{name} was {value}, is {plan['config'].get(name)}"
        for name, value in old["config"].items()
        if plan["config"].get(name) != value
    ]
    if other:
        raise OptionError(
            f"{place} was made with other options: {'; '.join(other)}. "
            "Take those again, or start anew without resume."
        )
    if old != plan:
        raise ArtifactError(f"{place} was made from other text; start again without resume.")


def _restore(found: Path, plan: dict[str, Any], run: Run, model: StaticModel) -> tuple[int, float]:
    """Read a checkpoint into the matrices, after checking that it belongs to this run."""
    state = read_json(found / STATE)
    if not isinstance(state, dict):
        raise ArtifactError(f"{found / STATE} is damaged: start again without resume.")
    _check_plan(found, state.get("plan"), plan)
    tensors = read_tensors(found / TENSORS)
    for name, rows in run.matrices.items():
        if name not in tensors or tensors[name].shape != rows.shape:
            raise ArtifactError(f"The checkpoint {found} does not hold the matrices of this run.")
        rows[:] = tensors[name]
    try:
        model.history = History.load(found / HISTORY)
        return int(state["step"]), float(state["seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{found / STATE} is damaged ({error}).") from error
