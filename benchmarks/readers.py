"""Readers beside writers: every load must give one saved model whole, whatever is being saved.

python benchmarks/readers.py [--loads 100000] [--saves 2000] [--processes 2] [--threads 2]

Two writers, one a process and one a thread, save models of ever new generations over each other
in two folders: word vectors, and a word2vec with its options, plan and history. Processes and
threads load both all the while. All parts of a generation bear its number, so a load that mixes
two is seen; a load that fails is counted, too. The writers wait for the readers, so that the
loads are spread evenly over the saves.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import sememe
from sememe.progress import History
from sememe.tokens.vocabulary import Vocabulary

NUM_WORDS, DIM = 200, 16
SPAWN = get_context("spawn")


def save_vectors(place: Path, generation: int) -> None:
    """Write word vectors of one generation."""
    words = [f"{generation}-{number}" for number in range(NUM_WORDS)]
    vectors = np.full((NUM_WORDS, DIM), generation, np.float32)
    sememe.WordVectors(words, vectors).save(place / "vectors")


def save_model(place: Path, generation: int) -> None:
    """Write a word2vec of one generation."""
    words = [f"{generation}-{number}" for number in range(NUM_WORDS)]
    rows = np.full((NUM_WORDS, DIM), generation, np.float32)
    model = sememe.Word2Vec(dim=DIM, min_count=1)
    model.adopt(Vocabulary.from_words(words), input=rows, output=rows)
    model.plan, model.history = {"content": generation}, History([{"words": generation}])
    model.save(place / "model")


def load_vectors(place: Path) -> list[Any]:
    """Load the vectors; the generations that their parts are of."""
    vectors = sememe.load(place / "vectors")
    words = [vectors.vocabulary[number].split("-")[0] for number in (0, NUM_WORDS // 2, -1)]
    return [*words, *np.unique(vectors.vectors)]


def load_model(place: Path) -> list[Any]:
    """Load the model; the generations that its parts are of."""
    model = sememe.Word2Vec.load(place / "model")
    words = [model.vocabulary[number].split("-")[0] for number in (0, NUM_WORDS // 2, -1)]
    facts = [model.plan["content"], model.history[0]["words"]]
    return [*words, *facts, *np.unique(model.tensors["input"]), *np.unique(model.tensors["output"])]


class Shared:
    """What the readers and writers of all processes count together."""

    def __init__(self, num_loads: int, num_saves: int) -> None:
        self.num_loads, self.num_saves = num_loads, num_saves
        self.loads, self.saves, self.wrong, self.failed = (SPAWN.Value("q", 0) for _ in range(4))
        self.failures = SPAWN.SimpleQueue()

    def add(self, name: str, num: int = 1) -> int:
        """Count; the answer is the sum before."""
        value = getattr(self, name)
        with value.get_lock():
            value.value += num
            return int(value.value) - num

    @contextmanager
    def counting_failures(self) -> Iterator[None]:
        """Count what fails, whatever it is: neither readers nor writers may see any of it."""
        try:
            yield
        except Exception as error:
            self.add("failed")
            self.failures.put(f"{type(error).__name__}: {error}")


def write(place: Path, shared: Shared) -> None:
    """Save until enough has been saved, never far ahead of the readers."""
    while (generation := shared.add("saves") + 1) <= shared.num_saves:
        while shared.loads.value * shared.num_saves < (generation - 1) * shared.num_loads:
            time.sleep(0.0005)
        with shared.counting_failures():
            (save_vectors, save_model)[generation % 2](place, generation)
    shared.add("saves", -1)


def read(place: Path, shared: Shared) -> None:
    """Load until the writers are done and enough has been loaded."""
    turn = 0
    while shared.add("loads") < shared.num_loads:
        turn += 1
        with shared.counting_failures():
            generations = {int(part) for part in (load_vectors, load_model)[turn % 2](place)}
            if len(generations) != 1:
                shared.add("wrong")
                shared.failures.put(f"mixed generations {sorted(generations)}")


def run_threads(work: Any, place: Path, shared: Shared, num: int) -> None:
    """Do the work in several threads of this process."""
    threads = [threading.Thread(target=work, args=(place, shared)) for _ in range(num)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure(num_loads: int, num_saves: int, num_processes: int, num_threads: int) -> dict[str, Any]:
    """Count the loads, saves, failures and mixtures of one campaign."""
    shared, begun_s = Shared(num_loads, num_saves), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        save_vectors(place, 0)
        save_model(place, 0)
        others = [
            SPAWN.Process(target=run_threads, args=(read, place, shared, num_threads))
            for _ in range(num_processes)
        ]
        others.append(SPAWN.Process(target=write, args=(place, shared)))
        for process in others:
            process.start()
        writer = threading.Thread(target=write, args=(place, shared))
        writer.start()
        run_threads(read, place, shared, num_threads)
        writer.join()
        for process in others:
            process.join()
        left = sorted(path.name for path in place.iterdir())
    failures = []
    while not shared.failures.empty():
        failures.append(shared.failures.get())
    return {
        "loads": num_loads, "saves": shared.saves.value, "wrong": shared.wrong.value,
        "failed": shared.failed.value, "exit_codes": [process.exitcode for process in others],
        "left": left, "failures": failures[:20], "seconds": time.perf_counter() - begun_s,
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--loads", type=int, default=100_000)
    parser.add_argument("--saves", type=int, default=2_000)
    parser.add_argument("--processes", type=int, default=2, help="readers beside this process")
    parser.add_argument("--threads", type=int, default=2, help="readers in every process")
    asked = parser.parse_args()
    found = measure(asked.loads, asked.saves, asked.processes, asked.threads)
    print(json.dumps(found, indent=2))
