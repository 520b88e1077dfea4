"""A trial in a process of its own: a training that ends after a few real steps.

A task comes in as JSON on standard input; its measurements go out as one line of JSON: seconds of a
step and of a validation, peak memory, the amount of text, and what is known of the text before any
training. Networks stop where the training loop would begin; models without that loop, such as
word2vec, train for some seconds.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from sememe.contract import KINDS
from sememe.errors import SememeError
from sememe.machine import COMPILATION, clock, is_busy
from sememe.planning.watch import peak_memory, restart_peak_memory
from sememe.progress import ProgressTask, Reporter

# Fewer seconds of steps vary by more than a few percent.
_TIMED_S = 6.0


class _Done(Exception):  # noqa: N818
    """Not an error: carries the measurements out of the training that was started."""

    def __init__(self, found: dict[str, Any]) -> None:
        super().__init__()
        self.found = found


class _Pilot(Reporter):
    """Watches a training without a loop of steps for some seconds, then stops it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(quiet=True)
        self._limit_s, self._begun_s, self._made_s = seconds, 0.0, clock()
        self._marks: list[tuple[float, int]] = []

    def _open(self, task: ProgressTask) -> None:
        if task.title == "training":
            restart_peak_memory()
            self._begun_s = clock()

    def _redraw(self, task: ProgressTask, now_s: float) -> float:
        if task.title == "training":
            if not self._marks or task.done > self._marks[-1][1]:
                self._marks.append((clock(), task.done))
            if len(self._marks) > 2 and clock() - self._marks[0][0] > self._limit_s:
                raise _Done(self.found(task))
        return 0.1

    def _close(self, task: ProgressTask, has_failed: bool) -> None:
        if task.title == "training" and not has_failed:  # it ended before the time was over
            raise _Done(self.found(task))

    def found(self, task: ProgressTask) -> dict[str, Any]:
        """The measurements so far."""
        # The first units are slow: kernels are loaded, and memory is touched.
        (first_s, first), (last_s, last) = self._marks[0], self._marks[-1]
        if last == first:
            (first_s, first), (last_s, last) = (self._begun_s, 0), (clock(), task.done)
        return {
            "unit": task.unit, "total": task.total,
            "unit_s": (last_s - first_s) / max(1, last - first),
            "before_s": self._begun_s - self._made_s, "memory_bytes": peak_memory(),
        }  # fmt: skip


def _measured_loop(loop: Any, model: Any, begun_s: float, timed_s: float) -> dict[str, Any]:
    """Seconds of a step and a validation, memory, and facts of a training that is ready."""
    from sememe.training.duration import measure
    from sememe.training.optimizers import rate_at

    prepared_s, source = time.monotonic() - begun_s, loop.run.source
    facts = {
        "prepared_s": prepared_s, "rows_per_epoch": source.num_steps(1.0) * loop.config.batch_size,
        "precision": loop.precision, "device": str(loop.device),
        "weights": sum(own.numel() for own in loop.objective.parameters()),
        "flops": model.flops_per_step(),
    }  # fmt: skip
    if not timed_s:
        return facts
    restart_peak_memory()
    lowest, num_steps, metrics = rate_at(0, 1 << 40, loop.config), 0, {}
    with loop.rehearsed() as do:

        def step(index: int) -> None:
            nonlocal num_steps
            num_steps += 1
            do(index, lowest)

        speed = measure(
            step, lambda: metrics.update(loop.validate()), loop.recorder.wait, 25 * timed_s
        )
    # The copy of the weights that a rehearsal restores is not part of the training; a GPU has none.
    copied_bytes = 4 * facts["weights"] if loop.device.type == "cpu" else 0
    memory_bytes = max(0, peak_memory() - copied_bytes)
    return facts | {
        "step_s": speed.step_s, "evaluation_s": speed.evaluation_s, "memory_bytes": memory_bytes,
        "tokens_per_step": loop.recorder.tokens / num_steps,
        "num_validations": loop.run.num_validations,
        "num_validated": getattr(loop.run.validation, "num_batches", 0), "metrics": metrics,
    }  # fmt: skip


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Start the training that the task describes, and return what was measured."""
    cls = KINDS[task["kind"]].cls()
    model, timed_s = cls(**task["options"]), task.get("timed_s", _TIMED_S)
    options = dict(task["fit"])
    if task["text"] is not None:
        options["text"] = type(model.text).from_dict(task["text"])
    if hasattr(cls, "training_class"):
        _stop_before_steps(model, timed_s)
    try:
        model.fit(*task["data"], progress=_Pilot(timed_s), **options)
    except _Done as done:
        return {
            **done.found, "data": dict(model.data), "is_busy": is_busy(),
            "num_compiled": COMPILATION.num_kernels,
        }  # fmt: skip
    raise AssertionError("the training did not begin")


def _stop_before_steps(model: Any, timed_s: float) -> None:
    """Let the training loop end before its first step, with the measurements of a few others."""
    # Word vectors need no PyTorch, and their memory is without it.
    from sememe.training.loop import INSTEAD

    begun_s = time.monotonic()

    def instead(loop: Any) -> None:
        raise _Done(_measured_loop(loop, model, begun_s, timed_s))

    INSTEAD.set(instead)


def main() -> None:
    """Read a task, run it, print its measurements; a user's error is part of the answer."""
    task = json.load(sys.stdin)
    try:
        answer = run(task)
    except SememeError as error:
        answer = {"error": str(error), "class": type(error).__name__}
    print("\n" + json.dumps(answer))


if __name__ == "__main__":
    main()
