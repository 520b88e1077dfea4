"""Word vectors trained by several workers of a real Ray cluster of two nodes on this machine."""

import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from ray_nodes import lose, wait_for

from sememe import Counts, FastText, GloVe, TextSettings, Word2Vec
from sememe.cluster import team
from sememe.cluster.connection import nodes_of
from sememe.cluster.tasks import RayTasks
from sememe.errors import ClusterError, OptionError
from sememe.executor import Threads, running_on
from sememe.models.static import together
from sememe.teams import Layout, LostMembersError
from sememe.tokens.caching import open_or_build

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.slow
# Classes of this file go to the workers as code: they cannot import it.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
OPTIONS = {"dim": 16, "min_count": 1, "workers": 1, "epochs": 3}


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


class Member:
    """A member of a team that knows where it is."""

    def __init__(self, number):
        self.number = number

    def node(self):
        return ray.get_runtime_context().get_node_id()


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
def test_a_node_killed_while_training_changes_nothing(
    nodes, doomed, store, tmp_path, monkeypatch, kind
):
    expected = fit(kind, store, Threads(3))
    notes: list[str] = []
    killed = threading.Event()
    advance = together.JointRun.step

    def step(self, *arguments):
        """A step, before the second of which a node dies."""
        if self._since and not killed.is_set():
            killed.set()
            lose(nodes, doomed)
        advance(self, *arguments)

    monkeypatch.setattr(together.JointRun, "step", step)
    found = fit(kind, store, on_ray(3, notes))
    assert killed.is_set()
    assert any("lost" in note for note in notes)
    for name, tensor in expected.tensors.items():
        assert np.array_equal(tensor, found.tensors[name]), name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.txt", "store"]
    assert not ray.util.list_named_actors()


def test_members_have_their_memory_to_themselves(nodes, doomed, monkeypatch):
    monkeypatch.setattr(team, "_PATIENCE_S", 2.0)
    memory = int(0.6 * min(node.memory for node in nodes_of(ray)))
    free = ray.available_resources()["memory"]
    own = on_ray(3).team(Member, Layout(3, 1, memory))
    try:
        wait_for(lambda: ray.available_resources()["memory"] <= free - 3 * memory)
        (number,) = (n for n, node in enumerate(own.ask("node")) if node == doomed.node_id)
        lose(nodes, doomed)
        with pytest.raises(LostMembersError):
            own.ask("node")
        # Cores can be shared by members, memory cannot.
        with pytest.raises(ClusterError, match="no room for 3 workers"):
            own.replace([number])
    finally:
        own.close()


def test_more_workers_than_cores_are_refused(nodes, store):
    with pytest.raises(OptionError, match=r"2 workers .* not for 9"):
        fit(Word2Vec, store, on_ray(9))
    with pytest.raises(OptionError, match="GB"):
        on_ray(1).layout(1, 10**15)


def test_a_killed_training_resumes(tmp_path, own_tmp):
    """The command on a cluster, killed after its first checkpoint, and resumed."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(
        "".join(f"the node{i % 97} saw n{i % 500} in cafe{i % 13}\n" for i in range(40_000))
    )
    environment = os.environ | {"SEMEME_CACHE": str(tmp_path / "cache"), "TMPDIR": str(own_tmp)}
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
    wait_for(lambda: pointer.exists() or begun.poll() is not None)
    begun.kill()
    begun.wait()
    assert pointer.exists()
    assert list(own_tmp.glob("sememe-ray-*"))
    told = run("--out", str(tmp_path / "two"), "--resume")
    assert "Resuming" in told
    run("--out", str(tmp_path / "one"))
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]
    assert not (tmp_path / "two.checkpoints").exists()
    assert not list(own_tmp.glob("sememe-ray-*"))
