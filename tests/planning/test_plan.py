"""Plans from recorded measurements: steps, time and memory, what does not fit, and the choice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from sememe.errors import InputError, OptionError
from sememe.planning import calibration, plan as planning
from sememe.planning.calibration import measured_network
from sememe.planning.plan import plan
from sememe.progress import SILENT

FACTS = {
    "prepared_s": 3.0, "rows_per_epoch": 8_000, "precision": "fp32", "device": "cpu",
    "data": {"documents": 900, "sentences": 20_000, "tokens": 1_000_000},
    "is_busy": False, "num_validations": 10,
}  # fmt: skip
METRICS = {"loss": 9.0, "next_loss": 0.7, "unigram_loss": 6.8}


@pytest.fixture
def machine(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A machine of 20 GFLOP/s without its own measurements; gives the tasks of its trials."""
    tasks: list[dict[str, Any]] = []

    def trial(task: dict[str, Any]) -> dict[str, Any]:
        tasks.append(task)
        cls = {"bert": sememe.BERT, "gpt": sememe.GPT, "elmo": sememe.ELMo}[task["kind"]]
        model = cls(**task["options"])
        if not task.get("timed_s", 1):
            return FACTS | {"weights": model.num_weights(), "flops": model.flops_per_step()}
        step_s = 0.002 + model.flops_per_step() / 2e10
        rows = model.training.batch_size
        return FACTS | {
            "weights": model.num_weights(), "flops": model.flops_per_step(),
            "step_s": step_s, "evaluation_s": 10 * step_s,
            "memory_bytes": (300 << 20) + 16 * model.num_weights() + rows * (1 << 20),
            "tokens_per_step": 110.0 * rows, "num_validated": 11, "metrics": METRICS,
        }  # fmt: skip

    monkeypatch.setattr(calibration, "_in_process", trial)
    return tasks


@pytest.fixture
def text(tmp_path: Path) -> str:
    (tmp_path / "text.txt").write_text("The cat sat on the mat.\n" * 100)
    return str(tmp_path / "text.txt")


def test_a_number_of_steps_takes_its_time(machine, text):
    (size,) = plan(sememe.BERT("tiny", steps=200), text).sizes
    assert size.fits and size.steps == 200 and size.preset == "tiny"
    # Ten validations, which take as long as ten steps each.
    assert size.seconds == pytest.approx(300 * size.step_s)
    assert size.epochs == pytest.approx(200 * 16 / 8_000) and size.tokens == 200 * 16 * 110
    assert size.loss is not None and size.loss.low < 6.8 + 0.7


def test_epochs_are_turned_into_steps(machine, text):
    (size,) = plan(sememe.BERT("tiny", epochs=2), text).sizes
    assert size.steps == 1_000


def test_a_budget_is_filled_by_every_size(machine, text):
    found = plan(sememe.BERT("tiny", budget="20m"), text, presets=["mini", "tiny", "large"])
    assert [size.preset for size in found.sizes] == ["tiny", "mini", "large"]
    tiny, mini, large = found.sizes
    assert tiny.steps > mini.steps and not large.fits and "steps" in large.obstacle
    for size in (tiny, mini):
        assert 0.9 * 1_200 < size.seconds <= 1_200
    assert found.best in (tiny, mini) and found.ranked[0] == found.best
    # What is known to be too slow is not measured.
    assert not any(task["options"]["preset"] == "large" for task in machine)


def test_memory_limits_the_choice(machine, text):
    found = plan(sememe.BERT("tiny", steps=100), text, presets=["tiny", "small"], memory=400 << 20)
    assert [size.fits for size in found.sizes] == [True, False]
    assert "memory" in found.sizes[1].obstacle and found.best.preset == "tiny"
    with pytest.raises(OptionError, match="No size fits"):
        _ = plan(sememe.BERT("tiny", steps=100), text, memory=1 << 20).best


def test_measurements_are_kept_until_new_ones_are_wanted(machine, text):
    first = plan(sememe.BERT("tiny", steps=100), text)
    num = len(machine)
    again = plan(sememe.BERT("tiny", steps=900), text)
    assert len(machine) == num and again.sizes[0].measured == first.sizes[0].measured
    plan(sememe.BERT("tiny", steps=100), text, recalibrate=True)
    assert len(machine) > num
    num = len(machine)
    plan(sememe.BERT("tiny", steps=100, length=64), text)
    assert len(machine) > num  # another length is another measurement


def test_a_damaged_measurement_is_made_again(machine, text, own_cache):
    plan(sememe.BERT("tiny", steps=100), text)
    num = len(machine)
    for path in own_cache.glob("plans/measured/*.json"):
        path.write_text("{")
    plan(sememe.BERT("tiny", steps=100), text)
    assert len(machine) == 2 * num


def test_a_slow_step_is_measured_with_fewer_rows(machine, own_cache):
    task = {"kind": "bert", "options": {"preset": "small"}, "data": [], "fit": {}, "text": None}
    model = sememe.BERT("small")
    slow_s = model.flops_per_step() / 2e10
    found = measured_network(task, expected_s=slow_s, batch_size=128, accumulate=1, reporter=SILENT)
    rows = [own["options"]["batch_size"] for own in machine]
    assert len(rows) == 2 and max(rows) < 128 and found["is_scaled"]
    assert found["step_s"] == pytest.approx(0.002 + slow_s, rel=0.01)
    expected = (300 << 20) + 16 * model.num_weights() + 128 * (1 << 20)
    assert found["memory_bytes"] == pytest.approx(expected, rel=0.01)
    assert found["tokens_per_step"] == pytest.approx(110 * 128)
    # The next size is expected by these operations in these seconds.
    assert found["flops"] == pytest.approx(model.flops_per_step())


def test_rows_are_never_more_than_a_part_of_a_step_has(machine, own_cache):
    task = {"kind": "bert", "options": {"preset": "tiny"}, "data": [], "fit": {}, "text": None}
    measured_network(task, expected_s=10.0, batch_size=64, accumulate=8, reporter=SILENT)
    assert [own["options"]["batch_size"] for own in machine] == [4, 8]


def test_a_gpu_limits_memory_by_its_own(machine, text, monkeypatch):
    monkeypatch.setattr(planning, "_device_of", lambda *_: "cuda")
    monkeypatch.setattr(planning, "gpu", lambda: ("A small GPU", 350 << 20))
    found = plan(sememe.BERT("tiny", steps=100), text, presets=["tiny", "mini"])
    assert found.memory_bytes == 350 << 20 and found.machine["gpu"] == "A small GPU"
    assert [size.fits for size in found.sizes] == [True, False]
    assert found.device == "cuda" and machine[-1]["gpu"] == "A small GPU"


def test_word_vectors_on_a_cpu_are_planned_without_pytorch(monkeypatch):
    monkeypatch.setattr(planning, "imported", lambda *_: pytest.fail("PyTorch is imported"))
    for model in (sememe.GloVe(), sememe.Word2Vec(), sememe.FastText(device="cpu")):
        assert planning._device_of(model, is_network=False) == "cpu"


def test_a_system_that_does_not_tell_its_memory_limits_nothing(machine, text, monkeypatch):
    monkeypatch.setattr(planning, "memory_size", lambda: 0)
    (size,) = plan(sememe.BERT("tiny", steps=100), text).sizes
    assert size.fits and size.memory_bytes
    untold = calibration._in_process

    def trial(task: dict[str, Any]) -> dict[str, Any]:
        return untold(task) | {"memory_bytes": 0}

    monkeypatch.setattr(calibration, "_in_process", trial)
    (size,) = plan(sememe.BERT("tiny", steps=100), text, memory=1 << 30, recalibrate=True).sizes
    assert size.fits and size.memory_bytes is None


def test_a_trial_that_compiled_is_made_again(machine, text, monkeypatch):
    once, nums = calibration._in_process, iter((3, 3, 0))

    def trial(task: dict[str, Any]) -> dict[str, Any]:
        return once(task) | {"num_compiled": next(nums)}

    monkeypatch.setattr(calibration, "_in_process", trial)
    plan(sememe.BERT("tiny", steps=100), text)
    # Once for the facts of the text, twice for the memory.
    assert [own.get("timed_s", 1) for own in machine] == [0, 1, 1] and next(nums, None) is None


def test_bad_text_is_an_error_and_no_obstacle_of_a_size(own_cache, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(InputError, match="empty"):
        plan(sememe.BERT("tiny", steps=100), tmp_path / "empty.txt", presets=["tiny", "mini"])


def test_operations_of_a_step():
    """BERT base: 12 blocks of 12 D² weights, scores of positions, 15 % of the tokens predicted."""
    width, length = 768, 128
    blocks = 12 * (2 * 12 * width**2 + 4 * length * width)
    heads = 2 * (0.15 * 30_528 * width + 2 * width**2)
    forward = 256 * length * (blocks + heads)
    assert sememe.BERT("base").flops_per_step() == pytest.approx(3 * forward, rel=0.01)
    # All tokens are predicted; twice the rows or twice the layers are twice the work.
    one, two = (sememe.GPT("mini", batch_size=num) for num in (8, 16))
    assert two.flops_per_step() == 2 * one.flops_per_step()
    per_token = 4 * (2 * 12 * 256**2 + 4 * 128 * 256) + 2 * 8_192 * 256
    assert one.flops_per_step() == pytest.approx(3 * 8 * 128 * per_token, rel=0.01)


@pytest.mark.parametrize("model", [sememe.BERT("tiny"), sememe.GPT("tiny")])
def test_weights_are_counted_without_making_them(model):
    assert model.num_weights() == sum(own.numel() for own in model.new_network().parameters())
