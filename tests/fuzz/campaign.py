"""Runs cases of damage in child processes and tells how each ended.

A case is a subject and a number; its random generator starts from both, so `KIND:NUMBER` makes it
again. `Campaign` starts servers (`python campaign.py FOLDER`) that import everything once and fork
a child for every batch. The child says which case it begins before it begins, so that a crash of
the interpreter is laid to the right one; the rest of the batch goes to a new child.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import queue
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from filelock import FileLock

HERE = Path(__file__).parent
SOURCES = Path(__file__).parents[2] / "src"
MAX_SECONDS, MAX_GROWTH = 10.0, 1 << 30
SLACK = 3  # where other programs have the core: more of the clock's time, not of the processor's
PATIENCE_S = 60.0  # for a child that does not even answer the alarm
BATCH_SIZE = 200
# What a child may map beyond what the server has: a bomb ends there, and not the machine.
_ROOM = 4 << 30
ACCEPTED = ("answered", "refused")


class Outcome(NamedTuple):
    """How one case ended: answered, refused, or one of what must not be."""

    case: str
    ending: str
    damage: str = ""
    message: str = ""
    where: str = ""  # the innermost line of ours
    seconds: float = 0.0
    growth: int = 0  # bytes of memory above what there was before the case

    @property
    def is_accepted(self) -> bool:
        """Whether it is a clean error or a right result, in little time and memory."""
        return self.ending in ACCEPTED

    @property
    def signature(self) -> str:
        """What failures with the same cause share."""
        message = re.sub(r"[\d.,]+|'[^']*'|\S*/\S*", "…", self.message.partition("\n")[0])
        subject = self.case.rpartition(":")[0]
        return f"{self.ending} at {self.where or subject}: {message[:60]}"


class _TimeLimitError(BaseException):
    """Raised by the alarm in the midst of a case that takes too long."""


# ---- one case ------------------------------------------------------------------------------


def _where(lines: Iterable[str]) -> str:
    """The last line of our own sources among `file:line`s."""
    own = [line for line in lines if "/sememe/" in line and "site-packages" not in line]
    return own[-1].rpartition("/sememe/")[2] if own else ""


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1_024


def _memory_before() -> int:
    """What is in memory now; the peak is counted from here."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _is_near(ours: Any, theirs: Any) -> bool:
    """Whether two answers are the same, numbers within what an order of sums may change."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) <= 1e-4 * max(1.0, abs(theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_is_near(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_is_near, ours, theirs))
    return ours == theirs


class Cases:
    """The cases of the subjects below a folder, run in this process."""

    def __init__(self, root: Path) -> None:
        import subjects

        self.room = subjects
        self.root, self.subjects = root, subjects.subjects(root)
        files = sorted(path for path in (root / "models").rglob("*") if path.is_file())
        self.files = files
        self._whole: dict[str, dict[str, Any]] = {}

    def whole(self, name: str) -> dict[str, Any]:
        """What the undamaged subject answers."""
        if name not in self._whole:
            subject = self.subjects[name]
            with FileLock(self.root / "lock"):  # one server makes what several need
                if not subject.place.exists():
                    self.room.MAKERS[name](self.root, subject.place)
            copy = self._copy(subject)
            self._whole[name] = self.room.answers(subject, copy, subject.questions)
            self._remove()
        return self._whole[name]

    def _copy(self, subject: Any) -> Path:
        place = self.root / f"case-{os.getpid()}" / subject.place.name
        self._remove()
        place.parent.mkdir()
        if subject.place.is_dir():
            shutil.copytree(subject.place, place)
        else:
            shutil.copyfile(subject.place, place)
        return place

    def _remove(self) -> None:
        shutil.rmtree(self.root / f"case-{os.getpid()}", ignore_errors=True)

    def run(self, case: str, tell: Callable[[str], None], slack: int = 1) -> Outcome:
        """Damage a copy, ask it, and give what came of it; `tell` hears of the damage before.

        With slack the clock may go on for so many times the limit, the processor may not.
        """
        from mutation import damage

        from sememe.errors import SememeError

        name = case.rpartition(":")[0]
        subject, rng = self.subjects[name], Random(case)
        whole = self.whole(name)
        copy = self._copy(subject)
        done = damage(copy, rng, self.files, subject.is_stream)
        tell(done.told)
        questions = rng.sample(sorted(whole), min(3, len(whole)))
        ending = message = where = ""
        before, begun, worked = _memory_before(), time.monotonic(), time.process_time()
        signal.setitimer(signal.ITIMER_REAL, slack * MAX_SECONDS)
        try:
            found = self.room.answers(subject, copy, questions)
            signal.setitimer(signal.ITIMER_REAL, 0)
            ending, where, message = self._judged(subject, done.is_neutral, found, whole)
        except SememeError as error:
            ending, message = "refused", f"{type(error).__name__}: {error}"
            if not str(error).strip() or "\n" in str(error).strip():
                ending = "bad message"
        except _TimeLimitError as error:
            ending, where = "too slow", self._place(error)
        except BaseException as error:  # a panic of a Rust library is no Exception
            ending, message = type(error).__name__, str(error)
            where = self._place(error)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        seconds, growth = time.monotonic() - begun, max(0, _peak() - before)
        if ending in ACCEPTED and growth > MAX_GROWTH:
            message, ending = f"{growth >> 20} MiB after: {ending} {message}", "too much memory"
        if ending in ACCEPTED and time.process_time() - worked > MAX_SECONDS:
            ending = "too slow"
        if ending == "too slow":
            message = f"longer than {MAX_SECONDS:.0f} s"
        self._remove()
        return Outcome(case, ending, done.told, message[:300], where, round(seconds, 3), growth)

    def _judged(
        self, subject: Any, is_neutral: bool, found: dict[str, Any], whole: dict[str, Any]
    ) -> tuple[str, str, str]:
        for name, answer in found.items():
            if not self.room.is_finite(answer):
                return "not finite", name, f"{subject.name} {str(answer)[:100]}"
            if (is_neutral or subject.is_checked) and not _is_near(answer, whole[name]):
                return "wrong result", name, f"{subject.name} {str(answer)[:100]}"
        return "answered", "", ""

    def _place(self, error: BaseException) -> str:
        frames = traceback.extract_tb(error.__traceback__)
        return _where(f"{frame.filename}:{frame.lineno} ({frame.name})" for frame in frames)


# ---- the server and its children -------------------------------------------------------------


def _alarm(*_: Any) -> None:
    raise _TimeLimitError


def _child(cases: Cases, names: list[str], pipe: int, crash_log: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    faulthandler.enable(crash_log)
    signal.signal(signal.SIGALRM, _alarm)
    virtual = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (virtual + _ROOM, virtual + _ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    gc.freeze()

    def send(message: list[Any]) -> None:
        os.write(pipe, json.dumps(message).encode() + b"\n")

    for name in names:
        send(["begin", name])
        outcome = cases.run(name, lambda told: send(["damage", told]))
        if outcome.ending == "too slow":  # or the machine was: only what is slow twice counts
            send(["begin", name])
            outcome = cases.run(name, lambda told: send(["damage", told]), SLACK)
        send(["end", outcome._asdict()])


def _lines(pipe: int, patience_s: float) -> Iterator[str]:
    """The lines of a pipe until it is closed; the last is empty if it says nothing for too long."""
    rest = b""
    while select.select([pipe], [], [], patience_s)[0]:
        data = os.read(pipe, 65_536)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n")
        yield from (line.decode() for line in whole)
    yield ""


def _batch(cases: Cases, names: list[str]) -> Iterator[Outcome]:
    """Run cases in a child, and those behind a crash in another."""
    waiting = list(names)
    while waiting:
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as log:
            child = os.fork()
            if not child:
                code = 1
                try:
                    os.close(reading)
                    _child(cases, waiting, writing, log.fileno())
                    code = 0
                finally:
                    os._exit(code)
            os.close(writing)
            damage, is_hanging = "", False
            for line in _lines(reading, SLACK * MAX_SECONDS + PATIENCE_S):
                match json.loads(line or "null"):
                    case None:
                        is_hanging = True
                        os.kill(child, signal.SIGABRT)  # it writes down where it is
                    case ["damage", damage]:
                        pass
                    case ["end", outcome]:
                        waiting.pop(0)
                        yield Outcome(**outcome)
            os.close(reading)
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            shutil.rmtree(cases.root / f"case-{child}", ignore_errors=True)
            if waiting:
                log.seek(0)
                where = _crash_place(log.read().decode("utf-8", "replace"))
                ending = "hang" if is_hanging else "crash"
                yield Outcome(waiting.pop(0), ending, damage, f"left with {code}", where)


def _crash_place(log: str) -> str:
    # The innermost frame comes first in what faulthandler writes.
    frames = re.findall(r'File "([^"]+)", line (\d+) in (\w+)', log)
    return _where(f"{file}:{line} ({name})" for file, line, name in reversed(frames))


def serve(root: Path, core: int) -> None:
    """Answer lines of cases on standard input with lines of outcomes, until there are no more."""
    # With one core PyTorch starts no threads, which a forked child would wait for in vain.
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})
    out = os.fdopen(os.dup(1), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    sys.path[:0] = [str(SOURCES), str(HERE)]
    warnings.simplefilter("ignore")
    import numpy as np
    import torch

    np.seterr(all="ignore")
    torch.set_num_threads(1)
    import subjects

    with FileLock(root / "lock"):
        if not (root / "done").exists():
            subjects.prepare(root)
            (root / "done").touch()
    cases = Cases(root)
    for line in sys.stdin:
        match json.loads(line):
            case ["subjects"]:
                print(json.dumps(list(cases.subjects)), file=out, flush=True)
            case ["open", *names]:
                for name in names:
                    cases.whole(name)
            case ["run", *names]:
                for outcome in _batch(cases, names):
                    print(json.dumps(outcome._asdict()), file=out, flush=True)
                print("", file=out, flush=True)


def _send(server: subprocess.Popen[str], message: list[str]) -> None:
    print(json.dumps(message), file=server.stdin, flush=True)


class Campaign:
    """Servers beside this process, each on one core, that run batches of cases."""

    def __init__(self, jobs: int = 1, folder: Path | None = None) -> None:
        fast = Path("/dev/shm")  # files in memory, where there is room for such
        has_room = fast.is_dir() and shutil.disk_usage(fast).free > 2 << 30
        self.root = Path(tempfile.mkdtemp(prefix="sememe-fuzz-", dir=fast if has_room else None))
        cache = self.root / "cache"
        cache.mkdir()
        from sememe.machine import cache_dir

        for name in ("kernels", "library"):  # take long to make, and never change
            real = (cache_dir() / name).resolve()
            real.mkdir(parents=True, exist_ok=True)
            (cache / name).symlink_to(real)
        environment = {
            **os.environ, "SEMEME_CACHE": str(cache), "TMPDIR": str(self.root),
            "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "MKL_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false",
        }  # fmt: skip
        self.servers = [
            subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(self.root), str(core)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
            )
            for core in range(jobs)
        ]  # fmt: skip

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: Any) -> None:
        for server in self.servers:
            with server:  # which waits for it and closes its pipes
                server.kill()
        shutil.rmtree(self.root, ignore_errors=True)

    def subjects(self) -> list[str]:
        """The names of all that can be damaged."""
        _send(self.servers[0], ["subjects"])
        return json.loads(self.servers[0].stdout.readline())

    def run(self, cases: Iterable[str]) -> Iterator[Outcome]:
        """Run cases, and give how each ended as soon as that is known."""
        names = list(cases)
        for server in self.servers:
            # Kernels are compiled here, and not in a case of ten seconds that meets them first.
            _send(server, ["open", *dict.fromkeys(name.rpartition(":")[0] for name in names)])
        batches = iter([names[at : at + BATCH_SIZE] for at in range(0, len(names), BATCH_SIZE)])
        found: queue.Queue[Outcome | BaseException | None] = queue.Queue()
        lock = threading.Lock()

        def work(server: subprocess.Popen[str]) -> None:
            try:
                while True:
                    with lock:
                        batch = next(batches, None)
                    if batch is None:
                        break
                    _send(server, ["run", *batch])
                    while line := server.stdout.readline().strip():
                        found.put(Outcome(**json.loads(line)))
                    if server.poll() is not None:
                        raise RuntimeError(
                            f"A server of the campaign left with {server.returncode}."
                        )
                found.put(None)
            except BaseException as error:
                found.put(error)

        threads = [threading.Thread(target=work, args=(one,), daemon=True) for one in self.servers]
        for thread in threads:
            thread.start()
        left = len(threads)
        while left:
            outcome = found.get()
            if isinstance(outcome, BaseException):
                raise outcome
            if outcome is None:
                left -= 1
            else:
                yield outcome


def spread(subjects: list[str], num: int, first: int = 0) -> Iterator[str]:
    """`num` cases over all subjects, in rounds in which every subject has a batch.

    The cases of a subject are numbered from `first` on: a campaign that starts where another one
    ended repeats none of its cases.
    """
    share, more = divmod(num, len(subjects))
    # Heavy and light subjects stand beside each other in the list: mixed, two servers end at once.
    mixed = Random(0).sample(subjects, len(subjects))
    for start in range(0, share + 1, BATCH_SIZE):
        for index, name in enumerate(mixed):
            end = min(start + BATCH_SIZE, share + (index < more))
            yield from (f"{name}:{number}" for number in range(first + start, first + end))


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
