"""Word vectors trained by several workers of a real Ray cluster of two nodes on this machine."""

import os
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from sememe import Counts, FastText, GloVe, TextSettings, Word2Vec
from sememe.cluster.connection import nodes_of
from sememe.cluster.tasks import RayTasks
from sememe.errors import OptionError
from sememe.executor import Threads, running_on
from sememe.models.static import together
from sememe.tokens.caching import open_or_build

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster

pytestmark = pytest.mark.slow
OPTIONS = {"dim": 16, "min_count": 1, "workers": 1, "epochs": 3}


@pytest.fixture
def nodes(monkeypatch, tmp_path):
    """A cluster of two nodes with one core each."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False},
    )
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def store(tmp_path):
    """Animals stand near animals, tools near tools, and sometimes anything near anything."""
    rng = np.random.default_rng(1)
    groups = [[f"{name}{i}" for i in range(20)] for name in ("animal", "tool", "color", "town")]
    everything = [word for group in groups for word in group]
    lines = (
        " ".join([*rng.choice(groups[i % 4], 8), *rng.choice(everything, 2)]) + "\n"
        for i in range(8_000)
    )
    path = tmp_path / "corpus.txt"
    path.write_text("".join(lines))
    return open_or_build(path, TextSettings(), path=tmp_path / "store", min_count=1)


def on_ray(num: int, notes=None) -> RayTasks:
    return RayTasks(ray, partial(nodes_of, ray), num, [].append if notes is None else notes.append)


def fit(kind, store, executor=None, **options):
    with running_on(executor):
        return kind(**OPTIONS, **options).fit(store)


def knows_groups(model) -> bool:
    """Whether the neighbors of every word are of its group."""
    return all(
        near.word.rstrip("0123456789") == word.rstrip("0123456789")
        for word in model.vocabulary
        for near in model.vectors.neighbors(word, num=5)
    )


@pytest.mark.parametrize("kind", [Word2Vec, FastText, GloVe])
def test_one_worker_gives_the_bits_of_one_process(nodes, store, kind):
    expected, found = fit(kind, store), fit(kind, store, on_ray(1))
    assert sorted(expected.tensors) == sorted(found.tensors)
    for name, tensor in expected.tensors.items():
        assert np.array_equal(tensor, found.tensors[name]), name


@pytest.mark.parametrize("kind", [Word2Vec, GloVe])
def test_two_workers_learn_what_one_process_does(nodes, store, kind):
    one, two = fit(kind, store), fit(kind, store, on_ray(2))
    assert knows_groups(one)
    assert knows_groups(two)
    losses = [model.history.last()["loss"] for model in (one, two)]
    assert abs(losses[1] - losses[0]) < 0.1 * losses[0]
    # The same members in threads of this process are the reference.
    same = fit(kind, store, Threads(2))
    for name, tensor in two.tensors.items():
        assert np.array_equal(tensor, same.tensors[name]), name


def test_counts_of_two_nodes_are_those_of_one_process(nodes, store):
    options = {"dim": 8, "min_count": 1}
    one = Counts(**options).fit(store)
    with running_on(on_ray(2)):
        two = Counts(**options).fit(store)
    for name, tensor in one.tensors.items():
        assert np.array_equal(tensor, two.tensors[name]), name


@pytest.mark.parametrize("kind", [Word2Vec, GloVe])
def test_a_node_killed_while_training_changes_nothing(nodes, store, tmp_path, monkeypatch, kind):
    expected = fit(kind, store, Threads(3))
    doomed = nodes.add_node(num_cpus=1)
    notes: list[str] = []
    killed = threading.Event()
    advance = together.JointRun.step

    def step(self, *arguments):
        """A step, before the second of which a node dies."""
        if self._since and not killed.is_set():
            killed.set()
            nodes.remove_node(doomed, allow_graceful=False)
        advance(self, *arguments)

    monkeypatch.setattr(together.JointRun, "step", step)
    found = fit(kind, store, on_ray(3, notes))
    assert killed.is_set()
    assert any("lost" in note for note in notes)
    for name, tensor in expected.tensors.items():
        assert np.array_equal(tensor, found.tensors[name]), name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "store"]
    assert not ray.util.list_named_actors()


def test_more_workers_than_cores_are_refused(nodes, store):
    with pytest.raises(OptionError, match=r"2 workers .* not for 9"):
        fit(Word2Vec, store, on_ray(9))
    with pytest.raises(OptionError, match="GB"):
        on_ray(1).layout(1, 10**15)


def test_a_killed_training_resumes(tmp_path):
    """The command on a cluster, killed after its first checkpoint, and resumed."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(
        "".join(f"the node{i % 97} saw n{i % 500} in cafe{i % 13}\n" for i in range(40_000))
    )
    environment = os.environ | {"SEMEME_CACHE": str(tmp_path / "cache")}
    command = [
        sys.executable, "-m", "sememe", "train", "word2vec", str(corpus), "--cluster", "local",
        "--num-workers", "2", "--dim", "16", "--epochs", "40", "--workers", "1",
        "--checkpoint-minutes", "0.01",
    ]  # fmt: skip

    def run(*words: str) -> str:
        done = subprocess.run(
            [*command, *words], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    begun = subprocess.Popen([*command, "--out", str(tmp_path / "two")], env=environment)
    pointer = tmp_path / "two.checkpoints" / "latest.json"
    while not pointer.exists() and begun.poll() is None:
        time.sleep(0.05)
    begun.kill()
    begun.wait()
    assert pointer.exists()
    told = run("--out", str(tmp_path / "two"), "--resume")
    assert "Resuming" in told
    run("--out", str(tmp_path / "one"))
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]
    assert not (tmp_path / "two.checkpoints").exists()
