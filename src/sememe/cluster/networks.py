"""Networks trained by the workers of a Ray cluster (Ray Train): a model in, the trained one out.

This process prepares the text. Every worker then calls the model's own `fit`, as a process of
torchrun does, and finds the text prepared. Only files on shared storage connect them: the token
store, the checkpoints, the model. If a worker is lost, Ray Train starts all of them again, fewer if
a node is gone, and they resume from the last checkpoint.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from sememe.cluster.connection import Node, nodes_of
from sememe.cluster.team import first_line
from sememe.errors import ClusterError, InputError, MissingExtraError, OptionError, SememeError
from sememe.localization import VARIABLE
from sememe.machine import cache_dir
from sememe.models.fitting import ELSEWHERE
from sememe.planning.watch import Watch
from sememe.progress import ProgressTask, Reporter, as_reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import scratch_folder
from sememe.storage.urls import url_of
from sememe.training.distributed import joined
from sememe.training.loop import STOPS, Interruption

_MOST_FAILURES = 5
_POLL_S = 0.3  # between two looks of the driver at what the workers have told
_REDRAW_S = 0.5  # between two messages about the progress
_ASKED_S = 1.0  # between two looks of a worker at whether it should stop
_NEVER_S = 1e9
_HERE = "-"  # standard input


class Share(NamedTuple):
    """How many workers train, and the cores and GPUs of each."""

    num_workers: int
    cores: int
    has_gpus: bool


def share_of(nodes: Sequence[Node], num_workers: int = 0, device: str = "auto") -> Share:
    """Divide a cluster among workers: one per GPU or, without GPUs, one per node; or this many."""
    num_gpus = 0 if device == "cpu" else sum(node.gpus for node in nodes)
    if device == "cuda" and not num_gpus:
        raise OptionError("device is cuda, but the cluster has no GPU; take cpu or auto.")
    hosts = [node for node in nodes if node.cores and (node.gpus or not num_gpus)]
    most = num_gpus or sum(node.cores for node in hosts)
    is_one_each = not num_workers and not num_gpus
    num_workers = num_workers or num_gpus or len(hosts)
    if num_workers > most:
        what = "GPUs" if num_gpus else "cores"
        raise OptionError(
            f"--num-workers is {num_workers:,}, but the cluster has {most:,} {what}: take fewer."
        )
    if num_gpus:
        return Share(num_workers, min(node.cores // node.gpus for node in hosts), True)
    cores = (min if is_one_each else max)(node.cores for node in hosts)
    while sum(node.cores // cores for node in hosts) < num_workers:
        cores -= 1
    return Share(num_workers, cores, False)


def fit_on_workers(model: Any, *data: Any, num_workers: int = 0, **options: Any) -> Any:
    """Call model.fit(*data, **options) in the workers of the cluster that is connected."""
    import ray

    try:
        import ray.train.torch
    except ImportError as error:
        raise MissingExtraError(
            "Training on a cluster needs Ray Train and PyTorch: "
            "pip install 'sememe[cluster,neural]', on all nodes."
        ) from error
    if options.get("out") is None:
        raise OptionError("A training on a cluster needs an output folder: the workers save there.")
    if url_of(options["out"]) is not None:
        raise OptionError(
            f"{options['out']} is no folder: the workers of a cluster save checkpoints and model "
            "on storage that all nodes share under one path."
        )
    given = [*data, *options.values()]
    texts = [own for part in given for own in (part.values() if isinstance(part, dict) else [part])]
    names = [one for own in texts for one in (own if isinstance(own, list) else [own])]
    if any(isinstance(one, str) and one == _HERE for one in names):
        raise InputError("The workers of a cluster cannot read standard input: give them a file.")
    share = share_of(nodes_of(ray), num_workers, model.options().get("device", "auto"))
    reporter = as_reporter(options.pop("progress", None))
    workers = _Workers(ray, share, reporter, model, data, options)
    token = ELSEWHERE.set(workers)
    try:
        return type(model).fit(model, *data, **options, progress=reporter)
    finally:
        ELSEWHERE.reset(token)


class _Workers:
    """Trains a model in the workers, and shows what they tell."""

    def __init__(
        self, ray: Any, share: Share, reporter: Reporter, model: Any, data: Any, options: Any
    ) -> None:
        self._ray, self._share, self._reporter = ray, share, reporter
        self.num_workers, self._out = share.num_workers, Path(options["out"]).absolute()
        # As it is before its `fit` begins, which the workers do again.
        self._job = ray.put((model, data, options))

    def train(self) -> None:
        """Train, and save the model to its output folder."""
        ray, shown = self._ray, _Shown(self._reporter)
        strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        # If this node ends, so does this process.
        here = strategy(ray.get_runtime_context().get_node_id(), soft=False)
        near: dict[str, Any] = {"num_cpus": 0, "scheduling_strategy": here}
        board = ray.remote(_Board).options(**near, max_concurrency=1).remote()
        environment = {"SEMEME_CACHE": str(cache_dir())}
        environment |= {name: os.environ[name] for name in (VARIABLE,) if name in os.environ}
        place = str(Path.cwd())
        settings = {"board": board, "job": self._job, "place": place, "environment": environment}
        with scratch_folder(self._out.parent, f".{self._out.name}.ray") as scratch:
            launch = ray.remote(_launch).options(**near, max_retries=0)
            running = launch.remote(settings, self._share, str(scratch))
            try:
                self._watch(running, board, shown)
            finally:
                shown.close()
                with suppress(Exception):  # it may have ended, with its node or the cluster
                    ray.cancel(running, force=True)
                    ray.kill(board)

    def _watch(self, running: Any, board: Any, shown: _Shown) -> None:
        """Show what the workers tell until they have ended; Ctrl-C stops them after their step."""
        ray, has_asked = self._ray, False
        with Interruption() as interruption:
            while True:
                is_over = bool(ray.wait([running], timeout=_POLL_S)[0])
                messages, outcome = ray.get(board.taken.remote())
                for message in messages:
                    shown.show(*message)
                if isinstance(outcome, SememeError):
                    raise outcome
                if interruption.is_asked and not has_asked:
                    has_asked = True
                    ray.get(board.ask_to_stop.remote())
                if is_over:
                    break
        try:
            ray.get(running)
        except ray.exceptions.RayError as error:
            if outcome is None:
                raise ClusterError(
                    f"The training was lost on the cluster: {_reason(error)}. Run the same command "
                    "with --resume to continue from the last checkpoint."
                ) from error
        if outcome == _STOPPED:
            raise KeyboardInterrupt


def _reason(error: Any) -> str:
    """What a worker died of, from the error of Ray Train."""
    cause = getattr(error, "cause", None) or error
    failures = getattr(cause, "worker_failures", None) or {}
    one = next(iter(failures.values()), getattr(cause, "controller_failure", cause))
    lines = [line.strip() for line in str(one).splitlines() if line.strip()]
    # The first line of a traceback says nothing.
    return (lines[-1] if len(lines) > 1 else first_line(one)).rstrip(".")


_DONE, _STOPPED = "done", "stopped"


class _Board:
    """An actor: what the workers tell this process, and what it asks of them."""

    def __init__(self) -> None:
        self._messages: list[tuple[Any, ...]] = []
        self._outcome: Any = None
        self._is_asked = self._has_begun = False
        self._num_starts = 0

    def start(self, num_workers: int) -> tuple[bool, Any]:
        """Whether an earlier start has begun to train, and how the training ended if it did."""
        self._num_starts += 1
        if self._num_starts > 1 and self._outcome is None:
            self._messages.append(("restart", num_workers))
        return self._has_begun, self._outcome

    def tell(self, *message: Any) -> None:
        """Keep a message for this process."""
        # From here on, checkpoints are those of this training.
        self._has_begun |= message[0] == "open" and message[2] == "training"
        self._messages.append(message)

    def taken(self) -> tuple[list[tuple[Any, ...]], Any]:
        """The new messages, and how the training ended if it did."""
        messages, self._messages = self._messages, []
        return messages, self._outcome

    def end(self, outcome: Any) -> None:
        """Note how the training ended: done, stopped, or a user's error."""
        self._outcome = self._outcome or outcome

    def ask_to_stop(self) -> None:
        """Ask the workers to save a checkpoint and stop."""
        self._is_asked = True

    def is_asked(self) -> bool:
        """Whether they should."""
        return self._is_asked


class _Shown:
    """Shows the messages of the workers as if their work were done here."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._tasks: dict[int, ProgressTask] = {}

    def show(self, what: str, *more: Any) -> None:
        """Show a message."""
        if what == "note":
            self._reporter.note(more[0])
        elif what == "restart":
            self.close()
            self._reporter.note(
                "A worker was lost. Training continues from the last checkpoint; "
                f"number of workers: {more[0]:,}."
            )
        elif what == "open":
            key, title, total, unit, start = more
            self._tasks[key] = self._reporter.task(title, total, unit, start=start)
            self._tasks[key].__enter__()
        elif (task := self._tasks.get(more[0])) is not None:
            _, task.total, done, metrics, *failed = more
            task.update(done, **metrics)
            if what == "close":
                del self._tasks[more[0]]
                task.__exit__(RuntimeError if failed[0] else None)

    def close(self) -> None:
        """Close the tasks whose worker has ended without a word."""
        for key in list(self._tasks):
            self._tasks.pop(key).__exit__(RuntimeError)


class Forwarding(Watch):
    """The reporter of a worker: it measures, and sends what it would show."""

    def __init__(self, send: Callable[..., Any]) -> None:
        super().__init__(quiet=True)
        self._send, self._is_closing = send, False

    def note(self, text: str) -> None:
        """Send a line; the summary of a task is written where it is shown."""
        if not self._is_closing:
            self._send("note", text)

    def _open(self, task: ProgressTask) -> None:
        super()._open(task)
        self._send("open", id(task), task.title, task.total, task.unit, task.done)

    def _redraw(self, task: ProgressTask, now_s: float) -> float:
        self._send("update", id(task), task.total, task.done, dict(task.metrics))
        return _REDRAW_S

    def _close(self, task: ProgressTask, has_failed: bool) -> None:
        self._is_closing = True
        try:
            super()._close(task, has_failed)
        finally:
            self._is_closing = False
        self._send("close", id(task), task.total, task.done, dict(task.metrics), has_failed)


def _launch(settings: dict[str, Any], share: Share, storage: str) -> None:
    """Run Ray Train on the cluster, so that a client of it needs no more than a connection."""
    os.environ |= {"RAY_CHDIR_TO_TRIAL_DIR": "0", "RAY_TRAIN_METRICS_ENABLED": "0"}
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    num = share.num_workers
    scaling: dict[str, Any] = {
        # Fewer after the loss of a node; they are not stopped again if it returns.
        "num_workers": (1, num) if num > 1 else 1,
        "elastic_resize_monitor_interval_s": _NEVER_S,
        "use_gpu": share.has_gpus,
        "placement_strategy": "PACK" if share.has_gpus else "SPREAD",
        "resources_per_worker": {"CPU": share.cores} | ({"GPU": 1} if share.has_gpus else {}),
    }
    TorchTrainer(
        _work,
        train_loop_config=settings,
        scaling_config=ScalingConfig(**scaling),
        torch_config=TorchConfig("cpu:gloo,cuda:nccl" if share.has_gpus else "gloo"),
        run_config=RunConfig(
            name="sememe",
            storage_path=storage,
            failure_config=FailureConfig(max_failures=_MOST_FAILURES),
        ),
    ).fit()


def _work(settings: dict[str, Any]) -> None:
    """Train in a worker: Ray Train has connected the processes, as torchrun does."""
    import ray

    os.environ |= settings["environment"]
    board = settings["board"]
    with joined() as processes:
        begun, outcome = processes.decided(
            ray.get(board.start.remote(processes.size)) if processes.is_main else (False, None)
        )
        if outcome is not None:  # an error that another attempt would meet again
            return
        try:
            os.chdir(settings["place"])  # paths may be relative
            _fit(board, *ray.get(settings["job"]), has_begun=begun, is_main=processes.is_main)
        except KeyboardInterrupt:
            ray.get(board.end.remote(_STOPPED))
            return
        except OSError as error:
            told = ClusterError(f"A worker on {os.uname().nodename} failed: {first_line(error)}.")
            ray.get(board.end.remote(told))
            raise
        except SememeError as error:
            ray.get(board.end.remote(error))
            raise
        if processes.is_main:
            ray.get(board.end.remote(_DONE))


def _fit(
    board: Any, model: Any, data: Any, options: dict[str, Any], *, has_begun: bool, is_main: bool
) -> None:
    if has_begun and Checkpoints(f"{Path(options['out'])}.checkpoints").has_one:
        options = options | {"resume": True}
    if not is_main:
        model.fit(*data, **options)
        return
    import ray

    reporter = Forwarding(board.tell.remote)
    if model.forecast:
        model.forecast = {**model.forecast, "actual": reporter.actual}
    is_asked, is_over = threading.Event(), threading.Event()

    def look() -> None:
        with suppress(ray.exceptions.RayError):
            while not is_over.wait(_ASKED_S):
                if ray.get(board.is_asked.remote()):
                    is_asked.set()

    threading.Thread(target=look, daemon=True).start()
    token = STOPS.set(is_asked.is_set)
    try:
        model.fit(*data, **options, progress=reporter)
    finally:
        STOPS.reset(token)
        is_over.set()
