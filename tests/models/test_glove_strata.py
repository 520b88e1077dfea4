"""GloVe in strata: no two updates of a row meet, and the result is that of the plain reference."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

import sememe
from sememe.errors import OptionError
from sememe.models.glove import reference
from sememe.models.glove.config import GloVeConfig
from sememe.models.glove.kernels import COLUMN_BITS
from sememe.models.glove.strata import batches
from sememe.models.glove.training import row_size, step_limits
from sememe.models.static import gpu

NUM_WORDS, DIM, GROUPS = 23, 6, 4
WIDTH = row_size(DIM)


def cells(num: int = 150) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, columns, counts) of different cells."""
    random = np.random.default_rng(0)
    rows, columns = np.divmod(random.permutation(NUM_WORDS**2)[:num], NUM_WORDS)
    return rows, columns, random.uniform(0.5, 40, num).astype(np.float32)


def arranged() -> batches.Arranged:
    rows, columns, counts = cells()
    bases = rows // 10 * 10
    keys = (rows - bases).astype(np.uint32) << COLUMN_BITS | columns.astype(np.uint32)
    given = (keys.view(np.int32), bases, np.log(counts), batches.groups_of(NUM_WORDS, GROUPS))
    return batches.arrange(*map(torch.from_numpy, given), GROUPS, 5)


def tables() -> tuple[batches.Tables, reference.Parameters, reference.Parameters]:
    """The matrices, and the same parameters with their sums for the reference."""
    random = np.random.default_rng(1)
    found = [np.zeros((NUM_WORDS, 2 * WIDTH), np.float32) for _ in range(2)]
    for own in found:
        own[:, : DIM + 2] = random.uniform(-0.5, 0.5, (NUM_WORDS, DIM + 2))
        own[:, WIDTH : WIDTH + DIM] = random.uniform(0, 2, (NUM_WORDS, DIM))
    words, contexts = found
    words[:, DIM + 1] = contexts[:, DIM] = 1
    at, sums = (
        reference.Parameters(
            words[:, part : part + DIM].astype(float), contexts[:, part : part + DIM].astype(float),
            words[:, part + DIM].astype(float), contexts[:, part + DIM + 1].astype(float),
        )
        for part in (0, WIDTH)
    )  # fmt: skip
    rates, limits = step_limits(GloVeConfig(dim=DIM, grad_clip=0.4))
    moved = map(torch.from_numpy, (words, contexts, rates, limits))
    return batches.Tables(*moved, 0.75, float(np.log(10))), at, sums


def test_a_stratum_shares_no_row_and_all_strata_have_every_block_once():
    found = [batches.blocks_of(stratum, GROUPS) for stratum in range(GROUPS)]
    for blocks in found:
        assert len(set(blocks // GROUPS)) == len(set(blocks % GROUPS)) == GROUPS
    assert sorted(np.concatenate(found)) == list(range(GROUPS**2))


def test_cells_are_arranged_by_block_and_shuffled_within():
    own, (rows, columns, counts) = arranged(), cells()
    groups = batches.groups_of(NUM_WORDS, GROUPS)
    for block in range(GROUPS**2):
        part = slice(own.edges[block], own.edges[block + 1])
        assert set(groups[own.rows[part]]) <= {block // GROUPS}
        assert set(groups[own.columns[part]]) <= {block % GROUPS}
    found = zip(own.rows.tolist(), own.columns.tolist(), own.logs.tolist(), strict=True)
    expected = zip(rows.tolist(), columns.tolist(), np.log(counts).tolist(), strict=True)
    assert sorted(found) == sorted(expected)
    places = [own.rows[own.edges[n] : own.edges[n + 1]].tolist() for n in range(GROUPS**2)]
    assert any(rows != sorted(rows) for rows in places)


@pytest.mark.parametrize("path", ["pytorch", "triton"])
def test_updates_are_those_of_the_reference(path):
    train = batches.train_strata
    if path == "triton":
        pytest.importorskip("triton", reason="Triton is not installed")
        from sememe.models.glove.strata.kernels import train_strata as train
    own, (table, at, sums) = arranged(), tables()
    strata = batches.strata_order(GROUPS, 1, 0)
    stats = train(own, strata, table)
    blocks = np.concatenate([batches.blocks_of(stratum, GROUPS) for stratum in strata])
    order = np.concatenate([np.arange(own.edges[n], own.edges[n + 1]) for n in blocks])
    rows, columns, logs = (part.numpy()[order] for part in own[:3])
    loss = reference.train_cells(
        rows, columns, np.exp(logs.astype(float)), at, sums, x_max=10, alpha=0.75, rate=0.05,
        clip=0.4,
    )  # fmt: skip
    for part, expected in ((0, at), (WIDTH, sums)):
        words, contexts = table.words.numpy()[:, part:], table.contexts.numpy()[:, part:]
        np.testing.assert_allclose(words[:, :DIM], expected.words, atol=1e-5)
        np.testing.assert_allclose(contexts[:, :DIM], expected.contexts, atol=1e-5)
        np.testing.assert_allclose(words[:, DIM], expected.word_biases, atol=1e-4)
        np.testing.assert_allclose(contexts[:, DIM + 1], expected.context_biases, atol=1e-4)
    assert (table.words[:, DIM + 1] == 1).all()
    assert stats.tolist() == pytest.approx([loss, 150, 150], rel=1e-5)


def test_sizes_follow_from_the_cells():
    small, large = batches.make_plan(100, 30), batches.make_plan(150_000_000, 77_000)
    assert small == (1, 1, 1)
    assert large == (batches.MOST_GROUPS, 3, batches.PIECES)
    assert batches.make_plan(10**6, 5).num_groups == 5, "no group is without words"
    assert sorted(n for piece in range(8) for n in large.strata(piece)) == list(range(1_024))
    sizes = np.bincount(batches.groups_of(1_000, 64), np.arange(1_000)[::-1])
    assert sizes.max() < 1.2 * sizes.min()
    parts = batches.parts_of(100, 3, 1)
    assert sorted(np.concatenate(parts)) == list(range(100))


def topics(num: int = 8_000) -> list[list[str]]:
    """Sentences of eight words, each from one of four topics of 40 words."""
    random = np.random.default_rng(0)
    drawn = (random.zipf(1.3, (num // 8, 8)) - 1).clip(max=39)
    return [[f"{'abcd'[n % 4]}{word}" for word in row] for n, row in enumerate(drawn)]


def small(**options) -> sememe.GloVe:
    defaults = {"dim": 8, "epochs": 12, "min_count": 1, "x_max": 10, "workers": 1, "seed": 3}
    return sememe.GloVe(**(defaults | {"device": "cuda", "window": 5} | options))


def last_epoch(history) -> float:
    """The mean loss of the records of the last epoch."""
    last = history[-1]["epoch"]
    return float(np.mean([one["loss"] for one in history if one["epoch"] > last - 1]))


@pytest.fixture
def on_cpu(monkeypatch):
    """Let device cuda mean PyTorch on the CPU."""
    monkeypatch.setattr(gpu, "device_of", lambda name: torch.device("cpu"))


def content(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("largest", [1 << 26, 2_000])
def test_strata_learn_what_the_cpu_learns(largest, monkeypatch):
    """Also in several parts, of which only two fit the GPU."""
    monkeypatch.setattr(batches, "LARGEST_PART", largest)
    if largest == 2_000:
        monkeypatch.setattr(gpu, "free_memory", lambda device: 400_000)
    strata, cpu = small().fit(topics()), small(device="cpu").fit(topics())
    losses = [last_epoch(model.history) for model in (strata, cpu)]
    assert losses[0] == pytest.approx(losses[1], rel=0.02)
    assert strata.history.column("loss")[0] > 2 * losses[0]
    near = strata.vectors.neighbors("a1", num=5)
    assert sum(one.word.startswith("a") for one in near) >= 4


@pytest.mark.usefixtures("on_cpu")
def test_triton_learns_the_same_and_twice_with_the_same_bits(monkeypatch):
    pytest.importorskip("triton", reason="Triton is not installed")
    torch_model = small(epochs=1, deterministic=True).fit(topics(240))
    monkeypatch.setattr(gpu, "runs_triton", lambda device: True)
    first, second = (small(epochs=1, deterministic=True).fit(topics(240)) for _ in range(2))
    assert first.input.tobytes() == second.input.tobytes()
    np.testing.assert_allclose(first.input, torch_model.input, atol=1e-5)


@pytest.mark.usefixtures("on_cpu")
def test_a_stopped_run_resumes_with_the_same_bits(tmp_path):
    class Interrupt:
        every_words = 30_000

        def __call__(self, model, record):
            os.kill(os.getpid(), signal.SIGINT)

    small().fit(topics(), out=tmp_path / "whole")
    out = tmp_path / "model"
    with pytest.raises(KeyboardInterrupt):
        small().fit(topics(), out=out, callbacks=[Interrupt()])
    with pytest.raises(OptionError, match="device"):
        small(device="cpu").fit(topics(), out=out, resume=True)
    small().fit(topics(), out=out, resume=True)
    assert content(out) == content(tmp_path / "whole")


def test_deterministic_on_a_cpu_is_one_worker():
    given = {"device": "cpu", "workers": 2, "deterministic": True, "epochs": 2}
    first, second = (small(**given).fit(topics()) for _ in range(2))
    assert first.input.tobytes() == second.input.tobytes()


@pytest.mark.usefixtures("on_cpu")
def test_matrices_larger_than_the_gpu_are_refused(monkeypatch):
    monkeypatch.setattr(gpu, "free_memory", lambda device: 1_000)
    with pytest.raises(OptionError, match="GPU"):
        small().fit(topics(1_600))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_refused_before_the_text_is_read(tmp_path):
    with pytest.raises(OptionError, match="cuda"):
        small().fit(tmp_path / "not there.txt")
