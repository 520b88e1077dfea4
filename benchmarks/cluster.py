"""Training and counting by several workers, beside one process.

python benchmarks/cluster.py word2vec TEXT --words DIR --results FILE
        word2vec, fastText (--model fasttext) or GloVe by 1, 2, 4 and 8 workers: analogies, word
        pairs, words a second. Each finished run is kept in FILE, and a second call goes on from
        there. The workers are threads of this process, which merge as those of a Ray cluster do,
        to the bit; --cluster local|auto|ray://HOST:PORT takes a cluster.
python benchmarks/cluster.py scaling TEXT --processes 1 2 4 8 16
        the functions that read and count shards of a text: N processes that share the work on N
        times TEXT, beside N independent copies that run at once, each on TEXT. Prints the share of
        the copies' throughput that the N processes reach together, and why it is not more: the
        CPU seconds of both, and of the process that merges. Needs no Ray. Each line is kept in
        --results, and a second call goes on from there; none is started after --stop-after minutes.
        --megabytes 4 --repeats 2 takes about two minutes for 1 and 16 processes on 16 cores.
python benchmarks/cluster.py scaling TEXT --smoke
python benchmarks/cluster.py overhead TEXT MODEL --lines 20000 --repeats 5
        a token store and the vectors of texts, made in this process and on --cluster local of the
        same machine, in turn: seconds, and CPU seconds of all processes together. Starting Ray is
        not counted; its workers start within the first round, which is left out.
python benchmarks/cluster.py networks --rounds 5
        BERT alone and with --cluster local, alternately, each in a process of its own: the seconds
        of the steps, the seconds around them, and the ratio of the medians.

TEXT is plain text, a sentence or paragraph a line. DIR holds google-analogies.txt, wordsim353.txt
and simlex999.txt (pairs separated by tabs).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

PAIRS = ("wordsim353", "simlex999")
TEXTS_AT_ONCE = 256
METRICS = ("analogies", *PAIRS, "loss", "words_per_s")
MODELS = {"word2vec": "Word2Vec", "fasttext": "FastText", "glove": "GloVe"}


# ---- word vectors ---------------------------------------------------------------------------


def measure_vectors(asked: argparse.Namespace) -> None:
    """Train and score what the results lack, then print the table."""
    done = json.loads(asked.results.read_text()) if asked.results.exists() else {}
    options = {"dim": asked.dim, "epochs": asked.epochs, "min_count": asked.min_count}
    if asked.architecture:
        options["architecture"] = asked.architecture
    label = " ".join([asked.model, *(f"{key}={value}" for key, value in options.items())])
    for seed in asked.seeds:
        for num in asked.workers:
            name = f"{label} workers {num} seed {seed}"
            if name not in done:
                done[name] = train(asked, num, {**options, "seed": seed})
                asked.results.write_text(json.dumps(done, indent=1))
                print(name, told(done[name]), flush=True)
    print(f"\n{label}, {len(asked.seeds)} seeds")
    first: dict[str, float] = {}
    for num in asked.workers:
        rows = [done[f"{label} workers {num} seed {seed}"] for seed in asked.seeds]
        means = {key: statistics.mean(row[key] for row in rows) for key in METRICS}
        first = first or means
        lost = ", ".join(f"{key} {means[key] - first[key]:+.2f}" for key in ("analogies", *PAIRS))
        print(f"{num} workers: {told(means)} ({lost})")


def told(row: dict[str, float]) -> str:
    """The metrics of a run."""
    return ", ".join(f"{key} {row[key]:,.2f}" for key in METRICS)


def train(asked: argparse.Namespace, num: int, options: dict[str, Any]) -> dict[str, float]:
    """Train by `num` workers of one thread each; scores, the last loss and words a second."""
    import sememe
    from sememe.cluster.connection import on_cluster
    from sememe.evaluation import evaluate_analogies, evaluate_pairs
    from sememe.executor import Threads, running_on
    from sememe.tokens.caching import open_or_build

    place = asked.results.with_suffix(".store")
    store = open_or_build(asked.text, sememe.TextSettings(), min_count=5, path=place)
    there = on_cluster(asked.cluster, num_workers=num)
    with there if asked.cluster else running_on(Threads(num)):
        model = getattr(sememe, MODELS[asked.model])(workers=1, **options).fit(store)
    last, vectors = model.history.last(), model.vectors
    found = {"analogies": evaluate_analogies(vectors, asked.words / "google-analogies.txt").value}
    for name in PAIRS:
        found[name] = evaluate_pairs(vectors, asked.words / f"{name}.txt", case="fold").value
    scores = {name: 100 * float(value) for name, value in found.items()}
    return {**scores, "loss": last["loss"], "words_per_s": last["words_per_s"]}


_HEAD = 4 << 20  # bytes of the text that warm a process
# ---- scaling --------------------------------------------------------------------------------


class Processes:
    """An executor of plain processes, as `sememe.executor.Threads` is one of threads."""

    cores = 1

    def __init__(self, pool: ProcessPoolExecutor, num: int, memory: int) -> None:
        self._pool, self.num_tasks, self.memory = pool, num, memory

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield work(item) of every item in order."""
        from sememe.machine import in_order

        yield from in_order(self._pool, work, items, 2 * self.num_tasks)


class Alone:
    """An executor that does one task after the other."""

    cores = num_tasks = 1

    def __init__(self, memory: int) -> None:
        self.memory = memory

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield work(item) of every item in order."""
        yield from map(work, items)


def _store(folder: Path, text: Path) -> None:
    from sememe import TextSettings
    from sememe.tokens.caching import open_or_build

    open_or_build(text, TextSettings(language="none"), min_count=5, path=folder / "store")


def _opened(folder: Path) -> Any:
    from sememe.tokens.store import TokenStore

    return TokenStore.open(folder / "store")


def _pairs(folder: Path, text: Path) -> None:
    from sememe.examples.cooccurrence.config import PairSettings
    from sememe.examples.cooccurrence.counting import count_pairs

    for _ in count_pairs(_opened(folder), 100_000, PairSettings(), memory=2 << 30, scratch=folder):
        pass


def _ngrams(folder: Path, text: Path) -> None:
    from sememe import NGram

    NGram(order=3, min_count=5).fit(_opened(folder))


def _subwords(folder: Path, text: Path) -> None:
    from sememe import SubwordTokenizer

    SubwordTokenizer.train(text, kind="wordpiece", vocab_size=8_000)


FUNCTIONS = {
    "vocabulary and token store": _store,
    "co-occurrences": _pairs,
    "n-grams": _ngrams,
    "sub-word vocabulary": _subwords,
}


def _copy(task: tuple[str, str, str, int]) -> float:
    """Do one function over one text in this process alone; when it ended."""
    from sememe.executor import running_on

    name, folder, text, memory = task
    with running_on(Alone(memory)):  # type: ignore[arg-type]
        FUNCTIONS[name](Path(folder), Path(text))
    return time.monotonic()


def _warm(task: tuple[str, str]) -> None:
    """Import and compile everything in a process; the pause lets every process have its turn."""
    for name in FUNCTIONS:
        _copy((name, *task, 1 << 28))
    time.sleep(3.0)


def measure_scaling(asked: argparse.Namespace) -> None:
    """Print the throughput of N processes together, that of N copies, and their ratio."""
    if asked.smoke:
        asked.processes, asked.repeats, asked.megabytes = [1, 2], 1, 0.3
        asked.results = Path(tempfile.gettempdir()) / f"cluster-smoke-{os.getpid()}.json"
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(asked.results.read_text()) if asked.results.exists() else {}
    begun_s = time.monotonic()
    for num in asked.processes:
        names = [name for name in FUNCTIONS if f"{name}, {num} processes" not in rows]
        if not names or time.monotonic() - begun_s > 60 * asked.stop_after:
            continue
        with workplace(asked.text, asked.megabytes, num) as folder, pool_of(num, folder) as pool:
            for name in names:
                if time.monotonic() - begun_s > 60 * asked.stop_after:
                    print("Time is over: run the same command again to go on.", flush=True)
                    return
                found = [
                    shared_and_alone(pool, num, name, folder, is_shared_first=bool(turn % 2))
                    for turn in range(asked.repeats)
                ]
                row = {key: statistics.median(own[key] for own in found) for key in found[0]}
                row["share"] = row["copies_s"] / row["together_s"]
                rows[f"{name}, {num} processes"] = row
                rates = [row["mb"] / row[key] for key in ("together_s", "copies_s")]
                print(f"{name:28} {num:3} processes: {rates[0]:8.1f} MB/s together, "
                      f"{rates[1]:8.1f} as copies, share {row['share']:.0%}; CPU "
                      f"{row['together_cpu_s']:.1f} s, of it {row['merging_cpu_s']:.1f} s merging, "
                      f"and {row['copies_cpu_s']:.1f} s", flush=True)  # fmt: skip
                asked.results.write_text(json.dumps(rows, indent=1))


def cpu_seconds(process_ids: Iterable[int]) -> float:
    """The CPU seconds of some processes until now (Linux)."""
    ticks = 0
    for process_id in process_ids:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])  # of the user, of the system
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def workplace(text: Path, megabytes: float, num: int) -> Iterator[Path]:
    """A folder with N copies of the text's first megabytes, and places for the results."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if megabytes:
            with text.open("rb") as file:
                content = file.read(round(megabytes * 1e6))
            text = folder / "text.txt"
            text.write_bytes(content[: content.rfind(b"\n") + 1])
        (folder / "texts").mkdir()
        for number in range(num):
            (folder / f"copy-{number}").mkdir()
            shutil.copy(text, folder / "texts" / f"{number:03}.txt")
            (folder / f"warm-{number}").mkdir()
        (folder / "together").mkdir()
        (folder / "head.txt").write_bytes(text.read_bytes()[:_HEAD])
        yield folder


@contextmanager
def pool_of(num: int, folder: Path) -> Iterator[ProcessPoolExecutor]:
    """N processes that are warm, each with one thread in the libraries."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
        os.environ[name] = "1"
    with ProcessPoolExecutor(num, get_context("spawn")) as pool:
        head = str(folder / "head.txt")
        list(pool.map(_warm, [(str(folder / f"warm-{number}"), head) for number in range(num)]))
        yield pool


def shared_and_alone(
    pool: ProcessPoolExecutor, num: int, name: str, folder: Path, *, is_shared_first: bool
) -> dict[str, float]:
    """Seconds of N processes over N texts together and of N copies over one each; CPU seconds."""
    from sememe.executor import running_on

    memory = (4 << 30) // num
    texts = sorted((folder / "texts").iterdir())
    places = [folder / f"copy-{number}" for number in range(num)]
    if FUNCTIONS[name] is _store:
        for place in [*places, folder / "together"]:
            shutil.rmtree(place / "store", ignore_errors=True)

    def together() -> float:
        begun = time.monotonic()
        with running_on(Processes(pool, num, memory)):  # type: ignore[arg-type]
            FUNCTIONS[name](folder / "together", folder / "texts")
        return time.monotonic() - begun

    def copies() -> float:
        begun = time.monotonic()
        pairs = zip(places, texts, strict=True)
        jobs = [(name, str(place), str(text), memory) for place, text in pairs]
        return max(pool.map(_copy, jobs)) - begun

    found = {"mb": sum(text.stat().st_size for text in texts) / 1e6}
    workers = list(pool._processes)
    for key, work in [("together", together), ("copies", copies)][:: 1 if is_shared_first else -1]:
        before_s = cpu_seconds(workers), cpu_seconds([os.getpid()])
        found[f"{key}_s"] = work()
        merging_s = cpu_seconds([os.getpid()]) - before_s[1]
        found[f"{key}_cpu_s"] = cpu_seconds(workers) - before_s[0] + merging_s
        if work is together:
            found["merging_cpu_s"] = merging_s
    return found


# ---- a cluster of this machine ---------------------------------------------------------------


def part_vectors(model: Any, texts: list[str]) -> dict[str, Any]:
    """The vectors of a part, as `sememe embed` computes them."""
    return {"rows": model.embed(texts)}


def measure_overhead(arguments: argparse.Namespace) -> None:
    """Compare this process with a cluster of this machine on the same work."""
    from sememe.cluster.connection import connected, nodes_of
    from sememe.cluster.tasks import RayTasks
    from sememe.models.inference import ModelAt, OnModel, computed
    from sememe.text.settings import TextSettings
    from sememe.tokens.caching import open_or_build

    corpus = Path(arguments.corpus).absolute()
    with corpus.open(encoding="utf-8", errors="replace") as file:
        texts = [line.strip() for line in islice(file, arguments.lines) if line.strip()]
    parts = [texts[at : at + TEXTS_AT_ONCE] for at in range(0, len(texts), TEXTS_AT_ONCE)]
    at = ModelAt(str(Path(arguments.model).absolute()))
    here = OnModel(at, part_vectors, at.open())

    def store(place: Path) -> None:
        open_or_build(corpus, TextSettings(), path=place / "store", min_count=5)

    def embed(place: Path) -> None:
        for _ in computed(here, parts):
            pass

    with connected("local") as ray:
        executor = RayTasks(ray, lambda: nodes_of(ray))
        for name, work in (("store", store), ("embed", embed)):
            in_turn(name, work, executor, arguments.repeats)


def in_turn(name: str, work: Callable[[Path], None], executor: Any, repeats: int) -> None:
    """Time work in this process and on a cluster, in turn."""
    from sememe.executor import running_on

    found: dict[str, list[tuple[float, float]]] = {"process": [], "cluster": []}
    for number in range(repeats + 1):
        for place in list(found)[:: -1 if number % 2 else 1]:
            folder = Path(tempfile.mkdtemp(prefix="sememe-overhead-"))
            with running_on(executor) if place == "cluster" else nullcontext():
                begun_s, begun_cpu_s = time.monotonic(), cpu_seconds(own_processes())
                work(folder)
                taken_s = time.monotonic() - begun_s
                found[place].append((taken_s, cpu_seconds(own_processes()) - begun_cpu_s))
            shutil.rmtree(folder)
        told = (
            f"{place} {own[-1][0]:.2f} s (CPU {own[-1][1]:.2f})" for place, own in found.items()
        )
        print(f"{name} {number}: {', '.join(told)}, load {os.getloadavg()[0]:.1f}", flush=True)
    for unit, what in enumerate(("seconds", "CPU seconds")):
        here, there = (statistics.median(own[unit] for own in found[place][1:]) for place in found)
        print(f"{name}, {what}: process {here:.2f}, cluster {there:.2f}, {there / here:.2f} times")


def own_processes() -> list[int]:
    """This process and those below it (Linux)."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            parents[int(place.name)] = int(fields[1])

    def is_ours(one: int) -> bool:
        while one in parents and one != os.getpid():
            one = parents[one]
        return one == os.getpid()

    return [one for one in parents if is_ours(one)]


# ---- networks -------------------------------------------------------------------------------

_PAGES = Path(__file__).parents[1] / "docs"


def measure_networks(asked: argparse.Namespace) -> None:
    """Compare a training alone with one by a worker of a local cluster."""
    found: dict[str, list[tuple[float, float]]] = {"alone": [], "cluster": []}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SEMEME_CACHE"] = f"{folder}/cache"
        out = Path(folder) / "out"
        train_network(out, 1, asked.threads)  # prepares the text
        for number in range(asked.rounds):
            for name in list(found)[:: -1 if number % 2 else 1]:
                more = ("--cluster", "local") if name == "cluster" else ()
                found[name].append(train_network(out, asked.steps, asked.threads, *more))
                steps_s, all_s = found[name][-1]
                print(f"{name:8} {steps_s:7.2f} s of steps, {all_s - steps_s:6.1f} s around")
    steps = {name: statistics.median(own for own, _ in times) for name, times in found.items()}
    pairs = zip(found["cluster"], found["alone"], strict=True)
    ratios = sorted(there / here for (there, _), (here, _) in pairs)
    print(
        f"medians: {steps['alone']:.2f} s alone, {steps['cluster']:.2f} s on a local cluster: "
        f"{steps['cluster'] / steps['alone']:.3f} times as long; of the pairs {ratios[0]:.3f} to "
        f"{ratios[-1]:.3f}, median {statistics.median(ratios):.3f}"
    )


def train_network(out: Path, steps: int, threads: int, *more: str) -> tuple[float, float]:
    """The seconds of the steps of a tiny BERT, and those of the whole command."""
    command = [
        sys.executable, "-m", "sememe", "train", "bert", str(_PAGES), "--out", str(out), "--json",
        "--quiet", "--overwrite", "--steps", str(steps), "--workers", str(threads), "--preset",
        "tiny", "--vocab-size", "2000", "--evaluate-batches", "0", "--checkpoint-minutes", "0",
        *more,
    ]  # fmt: skip
    begun_s = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    metrics = json.loads(done.stdout)["metrics"]
    return float(metrics["seconds"]), time.monotonic() - begun_s


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    vectors = commands.add_parser("word2vec")
    vectors.add_argument("text", type=Path)
    vectors.add_argument("--words", type=Path, required=True)
    vectors.add_argument("--model", choices=MODELS, default="word2vec")
    vectors.add_argument("--architecture", default="")
    vectors.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    vectors.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    vectors.add_argument("--dim", type=int, default=100)
    vectors.add_argument("--epochs", type=int, default=5)
    vectors.add_argument("--min-count", type=int, default=5)
    vectors.add_argument("--cluster")
    vectors.add_argument("--results", type=Path, default=Path("cluster-vectors.json"))
    vectors.set_defaults(run=measure_vectors)
    scaling = commands.add_parser("scaling")
    scaling.add_argument("text", type=Path)
    scaling.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    scaling.add_argument("--repeats", type=int, default=3)
    scaling.add_argument("--megabytes", type=float, default=0.0, help="of TEXT; 0: all")
    scaling.add_argument("--stop-after", type=float, default=8.0, help="minutes")
    scaling.add_argument("--smoke", action="store_true", help="a little of everything")
    scaling.add_argument("--results", type=Path, default=Path("cluster-scaling.json"))
    scaling.set_defaults(run=measure_scaling)
    own = commands.add_parser("overhead")
    own.add_argument("corpus", type=Path)
    own.add_argument("model", type=Path)
    own.add_argument("--lines", type=int, default=20_000)
    own.add_argument("--repeats", type=int, default=5)
    own.set_defaults(run=measure_overhead)
    networks = commands.add_parser("networks")
    networks.add_argument("--rounds", type=int, default=5)
    networks.add_argument("--steps", type=int, default=100)
    networks.add_argument("--threads", type=int, default=2)
    networks.set_defaults(run=measure_networks)
    asked = parser.parse_args()
    asked.run(asked)


if __name__ == "__main__":
    main()
