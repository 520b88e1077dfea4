"""Networks trained by the workers of a real Ray cluster of two nodes on this machine."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from ray_nodes import PATIENCE_S, is_alive, lose, processes_below, wait_for

from sememe import BERT
from sememe.cluster.connection import Node
from sememe.cluster.networks import Share, _Shown, fit_on_workers, share_of
from sememe.errors import InputError, OptionError
from sememe.progress import Reporter
from sememe.storage.checkpoints import Checkpoints

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
def corpus(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    lines = (f"the man of town{i % 31} read book{i % 17} . he slept in room{i % 7} !\n\n"
             for i in range(300))  # fmt: skip
    path.write_text("".join(lines))
    return str(path)


def bert(kind=BERT, **options):
    return kind(
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


class WaitingBERT(BERT):
    """A BERT whose training waits after its first checkpoint, until the test has acted."""

    acted: Path

    def fit(self, corpus, **options):
        write, acted = Checkpoints.write, self.acted

        @contextmanager
        def writing(checkpoints, step):
            with write(checkpoints, step) as folder:
                yield folder
            while not acted.exists():
                time.sleep(0.05)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkpoints, "write", writing)
            return super().fit(corpus, **options)


def train_until(
    act: Callable[[], None], corpus: str, out: Path, place: Path, **options: Any
) -> tuple[object, str]:
    """Train on the cluster, and act after the first checkpoint while the training waits."""
    import ray

    # The workers cannot import this file: they are sent the class.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    model = bert(WaitingBERT, **options)
    model.acted = place / "acted"

    def watch() -> None:
        wait_for(Path(f"{out}.checkpoints/latest.json").exists)
        act()
        model.acted.touch()

    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(watch)
        found = train_on(corpus, out, model)
        acting.result()
    return found


def assert_same(found, expected) -> None:
    for name in ("loss", "masked_loss", "validation_loss", "step", "tokens"):
        ours, theirs = ([own[name] for own in model.history if name in own]
                        for model in (found, expected))  # fmt: skip
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, err_msg=name)


def workers_of(process_id: int) -> list[int]:
    """The training workers among the descendants of a process."""
    return processes_below(process_id, "RayTrainWorker")


@pytest.mark.slow
def test_a_worker_killed_while_bert_trains_changes_nothing(
    nodes, corpus, alone, tmp_path, tmp_path_factory
):
    def kill() -> None:
        os.kill(workers_of(os.getpid())[-1], signal.SIGKILL)

    model, told = train_until(kill, corpus, tmp_path / "out", tmp_path_factory.mktemp("place"))
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
def test_a_lost_node_leaves_fewer_workers_and_the_same_losses(
    nodes, corpus, alone, tmp_path, tmp_path_factory
):
    (other,) = nodes.worker_nodes

    def lose_one() -> None:
        lose(nodes, other)
        wait_for(lambda: not is_alive(other))

    # The weights of two workers are divided, and one resumes them.
    place = tmp_path_factory.mktemp("place")
    model, told = train_until(lose_one, corpus, tmp_path / "out", place, sharding="full")
    assert "number of workers: 1." in told
    assert_same(model, alone)
    assert [own.name for own in tmp_path.iterdir()] == ["out"]


@pytest.mark.slow
def test_ctrl_c_stops_the_command_and_its_cluster(corpus, tmp_path, own_tmp):
    out = tmp_path / "out"
    plain = [
        sys.executable, "-m", "sememe", "train", "bert", corpus, "--out", str(out), "--steps",
        "100000", "--num-layers", "2", "--width", "32", "--num-heads", "2", "--vocab-size", "300",
        "--length", "32", "--batch-size", "8", "--checkpoint-minutes", "0.02",
    ]  # fmt: skip
    environment = os.environ | {"SEMEME_CACHE": str(tmp_path / "cache"), "TMPDIR": str(own_tmp)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen([*plain, "--cluster", "local"], env=environment, **pipes)
    try:
        pointer = Path(f"{out}.checkpoints/latest.json")
        wait_for(lambda: pointer.exists() or process.poll() is not None)
        workers = workers_of(process.pid)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert "Saved step" in told
    assert "--resume" in told
    assert workers
    wait_for(lambda: not any(Path(f"/proc/{own}").exists() for own in workers))
    assert not list(own_tmp.glob("sememe-ray-*"))
    assert sorted(own.name for own in tmp_path.iterdir()) == ["cache", "out.checkpoints"]
