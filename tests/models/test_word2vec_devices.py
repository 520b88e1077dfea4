"""Word2Vec on a GPU as its users meet it. The tiles run on the CPU here, by the same PyTorch."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

import sememe
from sememe.errors import DivergedError, OptionError
from sememe.models.static import gpu
from sememe.models.static.loop import Evaluate
from sememe.models.word2vec.tiles import plan
from sememe.progress import Reporter
from sememe.storage.checkpoints import Checkpoints

KINDS = ("fruit", "tool", "color", "river")


def topics(num: int = 30_000, seed: int = 0) -> list[list[str]]:
    """Sentences of eight words, each from one of four topics of 40 words."""
    random = np.random.default_rng(seed)
    chance = 1 / np.arange(1, 41)
    chance /= chance.sum()
    drawn = random.choice(40, (num // 8, 8), p=chance)
    return [[f"{KINDS[n % 4]}{word}" for word in row] for n, row in enumerate(drawn)]


def separation(vectors: sememe.WordVectors) -> float:
    """How much nearer words of one topic are than words of two."""
    rows = [vectors[[f"{kind}{n}" for n in range(20)]] for kind in KINDS]
    units = np.concatenate([own / np.linalg.norm(own, axis=1)[:, None] for own in rows])
    near = (units @ units.T).reshape(4, 20, 4, 20).mean((1, 3))
    return float(near.trace() / 4 - (near.sum() - near.trace()) / 12)


@pytest.fixture
def on_cpu(monkeypatch):
    """Let device cuda mean PyTorch on the CPU, in steps that a small text has several of."""
    monkeypatch.setattr(gpu, "device_of", lambda name: torch.device("cpu"))
    monkeypatch.setattr(plan, "SMALLEST_CHUNK", 1 << 12)


@pytest.fixture
def by_triton(on_cpu, monkeypatch):
    """Let device cuda mean Triton's interpreter."""
    pytest.importorskip("triton", reason="Triton is not installed")
    monkeypatch.setattr(gpu, "runs_triton", lambda device: True)
    monkeypatch.setattr(plan, "SMALLEST_CHUNK", 1 << 9)


def small(**options) -> sememe.Word2Vec:
    defaults = {"dim": 16, "epochs": 10, "min_count": 1, "window": 3, "workers": 1, "seed": 3}
    return sememe.Word2Vec(**(defaults | {"device": "cuda"} | options))


def content(folder: Path) -> str:
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_is_refused_before_the_text_is_read(tmp_path):
    with pytest.raises(OptionError, match="cuda"):
        small().fit(tmp_path / "not there.txt")


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
@pytest.mark.parametrize("loss", ["hierarchical", "softmax"])
def test_softmax_learns_what_the_cpu_learns(loss, architecture):
    options = {"architecture": architecture, "loss": loss, "epochs": 12, "deterministic": True}
    text = topics(10_000)
    tiles, again = small(**options).fit(text), small(**options).fit(text)
    cpu = small(**options, device="cpu").fit(text)
    losses = [model.history[-1]["loss"] for model in (tiles, cpu)]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert tiles.input.tobytes() == again.input.tobytes()
    assert separation(tiles.vectors) > 0.7 * separation(cpu.vectors) > 0.1


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("loss", ["negative", "hierarchical", "softmax"])
def test_matrices_larger_than_the_gpu_are_refused(loss, monkeypatch):
    monkeypatch.setattr(gpu, "free_memory", lambda device: 1 << 20)
    with pytest.raises(OptionError, match="GPU"):
        small(loss=loss).fit(topics(1_600))


def test_deterministic_on_a_cpu_is_one_worker():
    given = {"device": "cpu", "epochs": 2, "workers": 2, "deterministic": True}
    first, second = (small(**given).fit(topics()) for _ in range(2))
    assert first.input.tobytes() == second.input.tobytes()


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(
    ("architecture", "combine"), [("skipgram", "mean"), ("cbow", "mean"), ("cbow", "sum")]
)
def test_tiles_learn_what_the_cpu_learns(architecture, combine):
    options = {"architecture": architecture, "combine": combine}
    tiles, cpu = small(**options), small(**options, device="cpu")
    tiles.fit(topics()), cpu.fit(topics())
    losses = [model.history[-1]["loss"] for model in (tiles, cpu)]
    # The kernels of the CPU count a noise word even where it is the target.
    assert losses[0] == pytest.approx(losses[1], rel=0.1)
    assert separation(tiles.vectors) > 0.8 * separation(cpu.vectors) > 0.2
    assert tiles.history.column("loss")[0] > losses[0]
    assert tiles.history[-1]["words"] == 10 * 30_000
    assert tiles.history[-1]["learning_rate"] == pytest.approx(tiles.config.min_learning_rate)


@pytest.mark.usefixtures("on_cpu")
def test_a_loss_of_chance_before_training():
    model = small(epochs=1, learning_rate=1e-8, min_learning_rate=0, negatives=7).fit(topics())
    # Noise words that are the target do not count.
    assert 7 * np.log(2) < model.history[-1]["loss"] < 8 * np.log(2)


@pytest.mark.usefixtures("on_cpu")
def test_a_run_of_tiles_that_is_stopped_resumes_with_the_same_bits(tmp_path):
    def fit(out: Path, **options) -> sememe.Word2Vec:
        return small(deterministic=True).fit(topics(), out=out, **options)

    class Interrupt:
        every_words = 100_000

        def __call__(self, model, record):
            os.kill(os.getpid(), signal.SIGINT)

    whole = fit(tmp_path / "whole")
    out = tmp_path / "model"
    with pytest.raises(KeyboardInterrupt):
        fit(out, callbacks=[Interrupt()])
    assert Checkpoints(f"{out}.checkpoints").latest() is not None
    with pytest.raises(OptionError, match="device"):
        small(device="cpu").fit(topics(), out=out, resume=True)
    fit(out, resume=True)
    assert content(out) == content(tmp_path / "whole")
    assert sememe.Word2Vec.load(out).config == whole.config


@pytest.mark.usefixtures("on_cpu")
def test_callbacks_see_the_current_vectors_and_stop_the_run():
    seen: list[np.ndarray] = []

    def score(vectors: sememe.WordVectors) -> float:
        seen.append(vectors["fruit0"].copy())
        return -len(seen)

    model = small().fit(topics(), callbacks=[Evaluate(score, every_words=30_000, patience=2)])
    assert len(seen) == 3
    assert not np.array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(model.vectors["fruit0"], seen[0])  # which had the best score


@pytest.mark.usefixtures("on_cpu")
def test_new_words_and_pretrained_vectors():
    first = small().fit(topics())
    old = first.vectors["fruit0"].copy()
    start = small(epochs=1, learning_rate=1e-6, min_learning_rate=0)
    start.fit(topics(), start=first.vectors)
    np.testing.assert_allclose(start.vectors["fruit0"], old, atol=1e-3)
    text = [["kiwi", *row] if row[0].startswith("fruit") else row for row in topics(seed=1)]
    first.continue_fit(text, epochs=5)
    assert first.vectors.neighbors("kiwi")[0].word.startswith("fruit")


@pytest.mark.usefixtures("on_cpu")
def test_a_rate_too_high_is_a_diverged_training():
    with pytest.raises(DivergedError, match="10"):
        small(learning_rate=10, epochs=20).fit(topics())


@pytest.mark.usefixtures("by_triton")
@pytest.mark.parametrize("architecture", ["skipgram", "cbow"])
def test_triton_learns_what_pytorch_learns_and_says_so(architecture):
    options = {"architecture": architecture, "epochs": 2, "dim": 8}
    lines: list[str] = []
    reporter = Reporter(quiet=True)
    reporter.note = lines.append
    model = small(**options).fit(topics(1_600), progress=reporter)
    exact = small(**options, deterministic=True).fit(topics(1_600), progress=reporter)
    assert model.history[-1]["loss"] == pytest.approx(exact.history[-1]["loss"], rel=0.02)
    assert not np.array_equal(model.input, exact.input)
    taken = [line for line in lines if "in flight" in line]
    assert "(Triton)" in taken[0]
    assert "(PyTorch, deterministic)" in taken[1]


@pytest.mark.usefixtures("by_triton")
def test_a_run_of_triton_that_is_stopped_resumes(tmp_path):
    """The interpreter runs the programs in order, so that even the bits are the same."""

    def fit(out: Path, **options) -> sememe.Word2Vec:
        return small(dim=8, epochs=2).fit(topics(1_600), out=out, **options)

    class Interrupt:
        every_words = 1_200

        def __call__(self, model, record):
            os.kill(os.getpid(), signal.SIGINT)

    fit(tmp_path / "whole")
    out = tmp_path / "model"
    with pytest.raises(KeyboardInterrupt):
        fit(out, callbacks=[Interrupt()])
    fit(out, resume=True)
    assert content(out) == content(tmp_path / "whole")


@pytest.mark.usefixtures("by_triton")
def test_where_triton_fails_pytorch_trains(monkeypatch):
    from sememe.models.word2vec.tiles import launching

    def fail(*given):
        raise RuntimeError("Failed to find C compiler.\nSet CC.")

    monkeypatch.setattr(launching, "try_out", fail)
    lines: list[str] = []
    reporter = Reporter(quiet=True)
    reporter.note = lines.append
    small(epochs=1).fit(topics(1_600), progress=reporter)
    assert any("(PyTorch; Triton failed: Failed to find C compiler.)" in line for line in lines)


def subwords(**options) -> sememe.FastText:
    defaults = {"dim": 16, "epochs": 10, "min_count": 1, "window": 3, "workers": 1, "bucket": 500}
    return sememe.FastText(**(defaults | {"device": "cuda", "minn": 2, "maxn": 4} | options))


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("hash_count", [0, 2])
def test_fasttext_in_tiles_learns_what_the_cpu_learns(hash_count):
    tiles, cpu = subwords(hash_count=hash_count), subwords(hash_count=hash_count, device="cpu")
    tiles.fit(topics()), cpu.fit(topics())
    losses = [model.history[-1]["loss"] for model in (tiles, cpu)]
    assert losses[0] == pytest.approx(losses[1], rel=0.1)
    assert separation(tiles.vectors) > 0.8 * separation(cpu.vectors) > 0.2
    assert tiles.input.shape == cpu.input.shape
    assert tiles.vectors["fruit99"].shape == (16,)


@pytest.mark.usefixtures("by_triton")
def test_fasttext_by_triton():
    options = {"epochs": 2, "dim": 8}
    model = subwords(**options).fit(topics(1_000))
    exact = subwords(**options, deterministic=True).fit(topics(1_000))
    assert model.history[-1]["loss"] == pytest.approx(exact.history[-1]["loss"], rel=0.02)
    assert not np.array_equal(model.input, exact.input)
