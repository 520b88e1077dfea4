"""Text work on a real Ray cluster of two nodes on this machine."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from ray_nodes import PATIENCE_S, wait_for

from sememe.cluster.connection import nodes_of
from sememe.cluster.tasks import RayTasks
from sememe.errors import ClusterError, InputError
from sememe.examples.cooccurrence import counting
from sememe.examples.cooccurrence.config import PairSettings
from sememe.executor import running_on
from sememe.models.ngram import counting as ngrams
from sememe.models.ngram.model import NGram
from sememe.text import shards
from sememe.text.settings import TextSettings
from sememe.tokens import phrases
from sememe.tokens.caching import open_or_build

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow
# Functions of this file go to the workers as code: they cannot import it.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "corpus.txt"
    lines = (f"The node{i % 97} saw n{i % 1_000} in café{i % 13}. It ran!\n" for i in range(40_000))
    path.write_text("".join(lines))
    return path


def executor() -> RayTasks:
    return RayTasks(ray, partial(nodes_of, ray))


def build(corpus, place, on=None, size=60_000):
    with pytest.MonkeyPatch.context() as patch, running_on(on):
        patch.setattr(shards.cut_shards, "__defaults__", (size,))
        return open_or_build(corpus, TextSettings(), path=place, min_count=2)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def cells_of(store, scratch):
    pairs = counting.count_pairs(store, 500, PairSettings(), memory=1 << 27, scratch=scratch)
    cells = list(pairs)
    return [np.concatenate([own[column] for own in cells]) for column in range(3)]


def test_counts_of_two_nodes_are_those_of_one_process(nodes, corpus, tmp_path, monkeypatch):
    one = build(corpus, tmp_path / "one")
    many = build(corpus, tmp_path / "many", executor())
    assert files_of(one.path) == files_of(many.path)

    monkeypatch.setattr(phrases, "SHARD_TOKENS", 50_000)
    options = {"min_count": 2, "threshold": 3.0, "passes": 1}
    joined = phrases.find_phrases(one, path=tmp_path / "joined", **options)
    with running_on(executor()):
        same = phrases.find_phrases(many, path=tmp_path / "same", **options)
    assert joined.manifest["num_phrases"] > 0
    assert files_of(joined.path) == files_of(same.path)

    monkeypatch.setattr(counting, "SHARD_TOKENS", 50_000)
    monkeypatch.setattr(ngrams, "SHARD_TOKENS", 50_000)
    expected = cells_of(one, tmp_path)
    NGram(order=3, min_count=2).fit(one).write_arpa(tmp_path / "one.arpa")
    with running_on(executor()):
        found = cells_of(many, tmp_path)
        NGram(order=3, min_count=2).fit(many).write_arpa(tmp_path / "many.arpa")
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
    assert (tmp_path / "one.arpa").read_text() == (tmp_path / "many.arpa").read_text()


def test_a_node_killed_while_counting_changes_nothing(
    nodes, doomed, corpus, tmp_path, tmp_path_factory
):
    one = build(corpus, tmp_path / "one")
    met, doomed_id = tmp_path_factory.mktemp("marks") / "met", doomed.node_id

    class Waiting(RayTasks):
        """Tasks that wait until one of them runs on the doomed node, which ends while it waits."""

        def map(self, work, items):
            def waiting(item):
                if ray.get_runtime_context().get_node_id() == doomed_id:
                    met.touch()
                    time.sleep(PATIENCE_S)
                while not met.exists():
                    time.sleep(0.05)
                return work(item)

            return super().map(waiting, items)

    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(
            lambda: wait_for(met.exists) and nodes.remove_node(doomed, allow_graceful=False)
        )
        many = build(corpus, tmp_path / "many", Waiting(ray, partial(nodes_of, ray)), size=30_000)
    ended.result()
    wait_for(lambda: len(nodes_of(ray)) == 2)
    assert files_of(one.path) == files_of(many.path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "many", "one"]


def test_errors_of_tasks_are_told_here(nodes, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"good words here\n" * 20_000 + b"caf\xe9 \xff\n")
    with pytest.raises(InputError, match="320,003"):
        build(path, tmp_path / "store", executor())
    assert sorted(own.name for own in tmp_path.iterdir()) == ["bad.txt"]

    def dies(item):
        os._exit(1)

    with pytest.raises(ClusterError, match="lost"):
        list(executor().map(dies, [1]))

    def fails(item):
        raise RuntimeError("a fault")

    with pytest.raises(ClusterError, match="a fault"):
        list(executor().map(fails, [1]))


def test_the_command_on_a_local_cluster(tmp_path, own_tmp):
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"one two three{i % 9} four. five six!\n" for i in range(3_000)))
    environment = os.environ | {"SEMEME_CACHE": str(tmp_path / "cache"), "TMPDIR": str(own_tmp)}

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "sememe", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    plain = ["--dim", "8", "--min-count", "1", "--workers", "1"]
    run("train", "counts", str(corpus), "--out", str(tmp_path / "one"), *plain)
    (tmp_path / "cache").rename(tmp_path / "other")
    told = run(
        "train", "counts", str(corpus), "--out", str(tmp_path / "two"), *plain, "--cluster", "local"
    )
    assert "Cluster: " in told
    one, two = (files_of(tmp_path / name) for name in ("one", "two"))
    tensors = [name for name in one if name.endswith(".safetensors")]
    assert tensors
    assert all(one[name] == two[name] for name in tensors)
    found = json.loads(run("cluster", "status", "--cluster", "local", "--json"))
    assert len(found) == 1
    assert found[0]["cores"] >= 1
    assert not list(own_tmp.glob("sememe-ray-*"))
