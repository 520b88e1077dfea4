"""Networks trained by the workers of a real Ray cluster of two nodes on this machine."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from sememe.cluster.connection import Node
from sememe.cluster.networks import Share, _Shown, fit_on_workers, share_of
from sememe.errors import InputError, OptionError
from sememe.progress import Reporter

GB = 10**9
ONE, TWO = Node("a", "10.0.0.1", 4, 0, GB), Node("b", "10.0.0.2", 4, 0, GB)
GPUS = Node("c", "10.0.0.3", 16, 8, GB)


def test_workers_are_one_per_node_or_per_gpu():
    assert share_of([ONE, TWO]) == Share(2, 4, False)
    assert share_of([ONE, TWO], 3) == Share(3, 2, False)
    assert share_of([ONE, TWO], 8) == Share(8, 1, False)
    assert share_of([ONE, TWO._replace(cores=2)]) == Share(2, 4 // 2, False)
    # A head without cores hosts no worker.
    assert share_of([ONE._replace(cores=0), TWO]) == Share(1, 4, False)
    assert share_of([ONE, GPUS]) == Share(8, 2, True)
    assert share_of([ONE, GPUS], 3) == Share(3, 2, True)
    assert share_of([ONE, GPUS], device="cpu") == Share(2, 4, False)


def test_more_workers_than_the_cluster_has_are_refused():
    with pytest.raises(OptionError, match=r"9.*8 cores"):
        share_of([ONE, TWO], 9)
    with pytest.raises(OptionError, match=r"9.*8 GPUs"):
        share_of([ONE, GPUS], 9)
    with pytest.raises(OptionError, match="no GPU"):
        share_of([ONE, TWO], device="cuda")


def test_what_workers_tell_is_shown_here():
    stream = io.StringIO()
    shown = _Shown(Reporter(stream=stream, line_s=0.0))
    shown.show("note", "Text of 9 tokens")
    shown.show("open", 7, "training", 40, "steps", 0)
    shown.show("update", 7, 40, 20, {"loss": 0.5})
    shown.show("restart", 1)
    shown.show("open", 8, "training", 40, "steps", 10)
    shown.show("close", 8, 40, 40, {"loss": 0.25}, False)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Text of 9 tokens"
    assert any("training stopped: 20 steps" in line for line in lines)
    assert any("number of workers: 1." in line for line in lines)
    assert "loss 0.25" in lines[-1]


# ---- on a cluster -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """A cluster of two nodes with one core each."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_raylet_start_wait_time_s", "120")
        patch.setenv("SEMEME_CACHE", str(tmp_path_factory.mktemp("cache")))
        made = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    lines = (f"the man of town{i % 31} read book{i % 17} . he slept in room{i % 7} !\n\n"
             for i in range(300))  # fmt: skip
    path.write_text("".join(lines))
    return str(path)


def bert(**options):
    from sememe import BERT

    return BERT(
        "tiny", num_layers=2, width=32, num_heads=2, vocab_size=300, length=32,
        workers=1, device="cpu", checkpoint_minutes=0.01, evaluate_batches=3,
        **{"steps": 200, "batch_size": 8} | options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def alone(nodes, corpus):
    """The same training in one process."""
    return bert().fit(corpus)


def train_on(corpus: str, out: Path, model=None) -> tuple[object, str]:
    stream = io.StringIO()
    model = fit_on_workers(
        model or bert(), corpus, num_workers=2, out=out, progress=Reporter(stream=stream)
    )
    return model, stream.getvalue()


def assert_same(found, expected) -> None:
    for name in ("loss", "masked_loss", "validation_loss", "step", "tokens"):
        ours, theirs = ([own[name] for own in model.history if name in own]
                        for model in (found, expected))  # fmt: skip
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, err_msg=name)


def workers_of(process_id: int) -> list[int]:
    """The training workers among the descendants of a process."""
    parents, found = {}, []
    for place in Path("/proc").iterdir():
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            parents[int(place.name)] = int(fields[1])
            if "RayTrainWorker" in (place / "cmdline").read_text():
                found.append(int(place.name))
        except (OSError, ValueError):
            continue

    def is_ours(one: int) -> bool:
        while one in parents and one != process_id:
            one = parents[one]
        return one == process_id

    return [one for one in found if is_ours(one)]


def after_a_checkpoint(out: Path, act: Callable[[], None]) -> threading.Thread:
    def watch() -> None:
        deadline = time.monotonic() + 900
        while not Path(f"{out}.checkpoints/latest.json").exists():
            if time.monotonic() > deadline:
                return
            time.sleep(0.05)
        act()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.slow
def test_a_worker_killed_while_bert_trains_changes_nothing(nodes, corpus, alone, tmp_path):
    killed = []

    def kill() -> None:
        killed.append(workers_of(os.getpid())[-1])
        os.kill(killed[0], signal.SIGKILL)

    thread = after_a_checkpoint(tmp_path / "out", kill)
    model, told = train_on(corpus, tmp_path / "out")
    thread.join()
    assert killed
    assert "A worker was lost" in told
    assert "Resuming at step" in told
    assert_same(model, alone)
    assert [own.name for own in tmp_path.iterdir()] == ["out"]
    texts = ["the man read ."]
    np.testing.assert_allclose(model.embed(texts), alone.embed(texts), atol=1e-3)


@pytest.mark.slow
def test_options_that_cannot_be_trained_are_refused_before_a_worker_starts(nodes, corpus, tmp_path):
    with pytest.raises(OptionError, match="batch_size"):
        train_on(corpus, tmp_path / "out", bert(batch_size=1))
    with pytest.raises(OptionError, match="output folder"):
        fit_on_workers(bert(), corpus)
    with pytest.raises(InputError, match="standard input"):
        fit_on_workers(bert(), ["-"], out=tmp_path / "out")
    with pytest.raises(OptionError, match="2 cores"):
        fit_on_workers(bert(), corpus, num_workers=3, out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_lost_node_leaves_fewer_workers_and_the_same_losses(nodes, corpus, alone, tmp_path):
    import ray

    (other,) = nodes.worker_nodes
    thread = after_a_checkpoint(
        tmp_path / "out", lambda: nodes.remove_node(other, allow_graceful=False)
    )
    # The weights of two workers are divided, and one resumes them.
    model, told = train_on(corpus, tmp_path / "out", bert(sharding="full"))
    thread.join()
    assert sum(own["Alive"] for own in ray.nodes()) == 1
    assert "number of workers: 1." in told
    assert_same(model, alone)
    assert [own.name for own in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
def test_ctrl_c_stops_the_command_and_its_cluster(corpus, tmp_path):
    out, left = tmp_path / "out", {*Path(tempfile.gettempdir()).glob("sememe-ray-*")}
    plain = [
        sys.executable, "-m", "sememe", "train", "bert", corpus, "--out", str(out), "--steps",
        "100000", "--num-layers", "2", "--width", "32", "--num-heads", "2", "--vocab-size", "300",
        "--length", "32", "--batch-size", "8", "--checkpoint-minutes", "0.02",
    ]  # fmt: skip
    environment = os.environ | {"SEMEME_CACHE": str(tmp_path / "cache")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen([*plain, "--cluster", "local"], env=environment, **pipes)
    after_a_checkpoint(out, lambda: process.send_signal(signal.SIGINT)).join()
    try:
        told, _ = process.communicate(timeout=900)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert "Saved step" in told
    assert "--resume" in told
    assert not workers_of(process.pid)
    assert {*Path(tempfile.gettempdir()).glob("sememe-ray-*")} <= left
    assert sorted(own.name for own in tmp_path.iterdir()) == ["cache", "out.checkpoints"]
