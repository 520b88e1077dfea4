"""Word vectors by several workers in this process, and workers that are lost."""

import json

import numpy as np
import pytest

from sememe import Counts, FastText, GloVe, Word2Vec
from sememe.cli.training import JointFitting
from sememe.cluster.connection import Node
from sememe.cluster.team import layout_on
from sememe.errors import ClusterError, OptionError
from sememe.executor import Threads, running_on
from sememe.models.static import together
from sememe.models.word2vec import replicas
from sememe.models.word2vec.replicas import merge_share, round_edges
from sememe.teams import Layout, LocalTeam, LostMembersError

OPTIONS = {"dim": 8, "min_count": 1, "workers": 1, "epochs": 2}
TEXT = [f"the node{i % 97} saw n{i % 50} in cafe{i % 13} it ran".split() for i in range(600)]
MODELS = [
    (Word2Vec, {}),
    (Word2Vec, {"architecture": "cbow", "loss": "hierarchical"}),
    (FastText, {"bucket": 500}),
    (GloVe, {}),
]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """Several rounds in a small text, and copies of the matrices that are taken often."""
    monkeypatch.setattr(replicas, "CHUNK", 128)
    monkeypatch.setattr(together, "_COPY_S", 0.02)


def fit(kind, executor=None, **options):
    with running_on(executor):
        return kind(**OPTIONS, **options).fit(TEXT)


def assert_equal(one, other):
    assert sorted(one.tensors) == sorted(other.tensors)
    for name, tensor in one.tensors.items():
        assert np.array_equal(tensor, other.tensors[name]), name


@pytest.mark.parametrize(("kind", "options"), MODELS)
def test_one_worker_gives_the_bits_of_one_process(kind, options):
    assert_equal(fit(kind, **options), fit(kind, Threads(1), **options))


class Losing(Threads):
    """Threads whose team loses members at some calls, with all that they knew."""

    def __init__(self, num: int, calls: set[int]) -> None:
        super().__init__(num)
        self.calls, self.num_lost = calls, 0

    def team(self, make, layout):
        executor, num_calls = self, 0

        class LosingTeam(LocalTeam):
            def _all(self, method, arguments):
                nonlocal num_calls
                num_calls += 1
                if num_calls in executor.calls:
                    executor.num_lost += 1
                    raise LostMembersError([1])
                return super()._all(method, arguments)

            def replace(self, members):
                for number in members:
                    self._members[number] = make(number)

        return LosingTeam(make, layout.num)


@pytest.mark.parametrize(("kind", "options"), MODELS)
def test_lost_workers_change_nothing(kind, options):
    losing = Losing(3, {3, 11, 12, 30})
    assert_equal(fit(kind, Threads(3), **options), fit(kind, losing, **options))
    assert losing.num_lost >= 2


def test_workers_that_are_lost_again_and_again_end_the_training():
    with pytest.raises(ClusterError, match="5 times"):
        fit(Word2Vec, Losing(2, set(range(3, 1_000))))


@pytest.mark.parametrize("kind", [Word2Vec, GloVe])
def test_a_stopped_training_resumes(kind, tmp_path):
    class Stop:
        every_words = 4_000

        def __call__(self, model, record):
            raise KeyboardInterrupt

    expected = fit(kind, Threads(2))
    with running_on(Threads(2)):
        with pytest.raises(KeyboardInterrupt):
            kind(**OPTIONS).fit(TEXT, out=tmp_path / "own", callbacks=[Stop()])
        found = kind(**OPTIONS).fit(TEXT, out=tmp_path / "own", resume=True)
    assert_equal(expected, found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


@pytest.mark.parametrize(("first", "then"), [(None, 3), (2, 3), (2, None)])
def test_another_number_of_workers_resumes_where_the_last_one_stopped(tmp_path, first, then):
    class Stop:
        every_words = 4_000

        def __call__(self, model, record):
            raise KeyboardInterrupt

    def executor(num):
        return None if num is None else Threads(num)

    with running_on(executor(first)), pytest.raises(KeyboardInterrupt):
        Word2Vec(**OPTIONS).fit(TEXT, out=tmp_path / "own", callbacks=[Stop()])
    (state,) = tmp_path.glob("own.checkpoints/step-*/state.json")
    words = json.loads(state.read_text())["words"]
    seen = []

    class Look:
        every_words = 1

        def __call__(self, model, record):
            seen.append(record["words"])

    with running_on(executor(then)):
        Word2Vec(**OPTIONS).fit(TEXT, out=tmp_path / "own", resume=True, callbacks=[Look()])
    assert seen[0] > words
    assert seen[-1] == 2 * sum(map(len, TEXT))


def test_another_number_of_workers_cannot_resume_glove(tmp_path):
    class Stop:
        every_words = 1_000

        def __call__(self, model, record):
            raise KeyboardInterrupt

    with running_on(Threads(2)), pytest.raises(KeyboardInterrupt):
        GloVe(**OPTIONS).fit(TEXT, out=tmp_path / "own", callbacks=[Stop()])
    with running_on(Threads(3)), pytest.raises(OptionError, match="num_workers was 2, is 3"):
        GloVe(**OPTIONS).fit(TEXT, out=tmp_path / "own", resume=True)


def test_training_continues_with_new_text():
    with running_on(Threads(2)):
        model = Word2Vec(**OPTIONS).fit(TEXT)
        model.continue_fit([["the", "new", "words"]] * 200)
    assert "new" in model.vocabulary
    assert all(np.isfinite(tensor).all() for tensor in model.tensors.values())


def test_products_by_row_blocks_are_those_of_one_process(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path))

    class Apart(Threads):
        """Tasks that get what they need as a cluster sends it."""

        memory = 1 << 30

    options = {"dim": 6, "min_count": 1, "workers": 1}
    one = Counts(**options).fit(TEXT)
    with running_on(Apart(2)):
        other = Counts(**options).fit(TEXT)
    assert_equal(one, other)
    assert not list(tmp_path.rglob("*.panels"))


def test_rows_of_rare_words_are_added_and_those_of_frequent_words_averaged():
    share = merge_share(np.array([0.0, 1e-3, 1e6]), 4, 0.5)
    np.testing.assert_allclose(share, [1, 1, 0.25], atol=1e-3)
    # Four members who go half of the way that is left, one after another.
    half = merge_share(np.array([np.log(2) / 0.5]), 4, 0.5)
    np.testing.assert_allclose(4 * half * 0.5, 1 - 0.5**4, rtol=1e-6)


def test_rounds_grow_and_end_with_the_run():
    edges = round_edges(100_000, 4_096, 4)
    sizes = np.diff(edges)[1:]
    assert edges[0] == 0
    assert edges[-1] == 100_000
    assert (np.diff(sizes[:-1]) >= 0).all()
    assert (sizes[:-1] % 4 == 0).all()
    assert sizes.max() <= 4 * replicas.MOST_WORDS // 4_096


NODES = [Node("a", "1", 4, 0, 8 * 10**9), Node("b", "2", 2, 0, 8 * 10**9)]


def test_layouts():
    assert layout_on(NODES, 0, 0, 10**9) == Layout(2, 2, 10**9)
    assert layout_on(NODES, 3, 0, 10**9) == Layout(3, 2, 10**9)
    assert layout_on(NODES, 6, 0, 10**9) == Layout(6, 1, 10**9)
    assert layout_on(NODES, 1, 3, 10**9) == Layout(1, 3, 10**9)


@pytest.mark.parametrize(
    ("num", "threads", "memory", "told"),
    [(7, 0, 1, "not for 7"), (2, 3, 1, "not for 2"), (1, 0, 10**11, "100.0 GB")],
)
def test_workers_without_room_are_refused(num, threads, memory, told):
    with pytest.raises(OptionError, match=told):
        layout_on(NODES, num, threads, memory)


def test_gpu_training_and_workers_without_a_cluster_are_refused():
    with pytest.raises(OptionError, match="device cuda"):
        fit(Word2Vec, Threads(2), device="cuda")
    with pytest.raises(OptionError, match="--cluster"):
        JointFitting(num_workers=2)
