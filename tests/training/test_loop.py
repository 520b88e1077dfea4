"""The loop on a toy network: learning, resume to the bit, parts of a step, budgets, divergence."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.errors import ArtifactError, DivergedError, OptionError
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.training import TrainingConfig, device as devices
from sememe.training.device import Validation, choose_device
from sememe.training.loop import Loop
from sememe.training.run import TrainingRun

sys.path.insert(0, str(Path(__file__).parent))
from toys import ToyObjective, ToySource, assert_equal, weights


def config(**options: Any) -> TrainingConfig:
    small = {"batch_size": 16, "learning_rate": 0.02, "device": "cpu", "workers": 1}
    amount = {} if "budget" in options or "epochs" in options else {"steps": 40}
    return TrainingConfig(**small | amount | options)


class StopAfter(ToySource):
    """Presses Ctrl-C when a step is prepared, the first time or a later one."""

    def __init__(self, step: int, time: int = 1) -> None:
        super().__init__()
        self.step, self.time = step, time

    def batch(self, step: int) -> Any:
        if step == self.step:
            self.time -= 1
            if self.time == 0:
                os.kill(os.getpid(), signal.SIGINT)
        return super().batch(step)


def run(objective: Any = None, source: Any = None, **options: Any) -> tuple[Any, Loop]:
    places = {
        name: options.pop(name)
        for name in list(options)
        if name in TrainingRun.__dataclass_fields__
    }
    objective = objective or ToyObjective()
    loop = Loop(
        objective, TrainingRun(source=source or ToySource(), config=config(**options), **places)
    )
    loop.train()
    return objective, loop


def test_it_learns_and_keeps_a_history():
    validation = Validation(ToySource(seed=9), 8)
    _, loop = run(steps=200, validation=validation)
    first, last = loop.history[0], loop.history.last()
    assert first["loss"] > 1.0 > 0.4 > last["loss"]
    assert last["validation_class_accuracy"] > 0.85
    assert last["tokens"] == 200 * 16 and last["step"] == 200
    assert sum("validation_loss" in record for record in loop.history) == 10


def test_a_recorded_loss_is_the_mean_over_all_steps_since_the_last_record(monkeypatch):
    _, every = run()
    monkeypatch.setattr("sememe.training.loop._RECORDS", 4)
    _, rare = run()
    losses = every.history.column("loss")
    num_asked = np.array([ToySource().batch(step).is_asked_B.sum() for step in range(40)])
    sums = (losses * num_asked).reshape(4, 10).sum(1)
    means = sums / num_asked.reshape(4, 10).sum(1)
    np.testing.assert_allclose(rare.history.column("loss"), means, rtol=1e-5)
    assert abs(losses[-1] - means[-1]) > 1e-3  # one batch says something else


def test_the_same_seed_gives_the_same_bits_and_another_one_other_dropout():
    first, again, other = (run(seed=seed)[0] for seed in (3, 3, 4))
    assert_equal(first, again)
    with pytest.raises(AssertionError):
        assert_equal(first, other)


def test_validation_and_random_numbers_in_between_change_nothing():
    plain, _ = run()
    validated, _ = run(validation=Validation(ToySource(seed=9), 3), evaluate_every=3)
    assert_equal(plain, validated)


def test_a_validation_may_come_before_the_first_record(monkeypatch):
    monkeypatch.setattr("sememe.training.loop.LEAST_PERIOD", {"cpu": 5})
    _, loop = run(validation=Validation(ToySource(seed=9), 3), evaluate_every=3)
    assert [record["step"] for record in loop.history][:3] == [3, 5, 6]


def test_budgets_become_steps():
    from sememe.training.duration import StepSpeed

    speed = StepSpeed(step_s=0.1, evaluation_s=1.0)
    assert speed.extent_within(100, 0)[:2] == (900, 90)  # ten validations fit
    assert speed.extent_within(30, 0)[:2] == (270, 90)  # three do
    assert speed.extent_within(100, 50)[:2] == (833, 50)
    assert speed.extent_within(0.5, 0).num_steps == 1


def test_a_stall_does_not_count_as_speed(monkeypatch):
    from sememe.training import duration

    now = [0.0]
    monkeypatch.setattr(duration.time, "monotonic", lambda: now[0])

    def step(index: int) -> None:
        now[0] += 30.0 if index == duration.WARM_STEPS + 12 else 0.1

    speed = duration.measure(step, lambda: None, lambda: None, budget_s=2_000)
    assert speed.step_s == pytest.approx(0.1)
    assert now[0] > 30


def test_the_callers_random_numbers_and_settings_stay():
    objective = ToyObjective()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    run(objective)
    assert torch.equal(torch.rand(3), expected)
    assert not torch.are_deterministic_algorithms_enabled()


def test_parts_of_a_step_give_the_same_weights():
    whole, _ = run(ToyObjective(dropout=0))
    parts, loop = run(ToyObjective(dropout=0), accumulate=4)
    for name, value in weights(whole).items():
        np.testing.assert_allclose(value, weights(parts)[name], atol=2e-6)
    assert loop.history.last()["tokens"] == 40 * 16


@pytest.mark.parametrize("step", [1, 7, 33])
def test_ctrl_c_saves_and_resume_goes_on_to_the_bit(tmp_path, step):
    whole, _ = run()
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run(source=StopAfter(step), keeper=keeper)
    assert keeper.latest() is not None
    resumed, loop = run(keeper=keeper, resume=True)
    assert_equal(whole, resumed)
    assert [record["step"] for record in loop.history] == list(range(1, 41))


def test_the_history_of_a_resumed_run_is_that_of_a_whole_one(tmp_path):
    _, whole = run(steps=450)
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run(source=StopAfter(151), steps=450, keeper=keeper)  # between two records
    _, resumed = run(steps=450, keeper=keeper, resume=True)
    for name in ("step", "loss", "class_accuracy", "learning_rate", "tokens"):
        np.testing.assert_array_equal(whole.history.column(name), resumed.history.column(name))


def test_resume_refuses_other_options_and_other_text(tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    plan = {"training": {"learning_rate": 0.02}, "content": {"hash": "a"}}
    with pytest.raises(KeyboardInterrupt):
        run(source=StopAfter(5), keeper=keeper, plan=plan)
    with pytest.raises(OptionError, match=r"learning_rate was 0.02, is 0.1"):
        run(keeper=keeper, resume=True, plan=plan | {"training": {"learning_rate": 0.1}})
    with pytest.raises(ArtifactError, match="other text"):
        run(keeper=keeper, resume=True, plan=plan | {"content": {"hash": "b"}})
    with pytest.raises(ArtifactError, match="another network"):
        run(ToyObjective(width=8), keeper=keeper, resume=True, plan=plan)


def test_an_optimizer_state_of_another_shape_is_refused(tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run(source=StopAfter(5), keeper=keeper)
    latest = keeper.latest()
    (latest / "SHA256SUMS").unlink()  # as an earlier version left it
    state = {
        name: np.array(own) for name, own in read_tensors(latest / "optimizer.safetensors").items()
    }
    name = next(name for name, own in state.items() if own.ndim == 2)
    (latest / "optimizer.safetensors").unlink()
    write_tensors(latest / "optimizer.safetensors", state | {name: state[name][:0]})
    with pytest.raises(ArtifactError, match="another shape"):
        run(keeper=keeper, resume=True)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run(source=StopAfter(5), keeper=keeper)
    (keeper.latest() / "state.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"state\.json|without resume"):
        run(keeper=keeper, resume=True)


def test_a_changed_bit_of_a_checkpoint_is_refused(tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run(source=StopAfter(5), keeper=keeper)
    files = list(keeper.latest().glob("*.safetensors"))
    assert len(files) > 1
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # of a weight: still a number
        with pytest.raises(ArtifactError, match=file.name):
            run(keeper=keeper, resume=True)
        file.write_bytes(whole)
    run(keeper=keeper, resume=True)


def test_a_budget_of_few_steps_is_warned_of():
    from sememe.training.duration import budget_message

    assert budget_message(1_200) == "1,200 steps fit into the budget."
    assert budget_message(1).startswith("Only 1 step fits") and "too few" in budget_message(19)


def test_ctrl_c_while_the_speed_is_measured(tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run(source=StopAfter(2), budget="1s", keeper=keeper)
    assert keeper.latest() is None


def test_a_budget_ends_about_in_time():
    _, loop = run(budget="3s", validation=Validation(ToySource(seed=9), 8))
    # Other work on the machine may stretch the time.
    assert 0.5 < loop.history.last()["seconds"] < 60
    assert loop.history.last()["learning_rate"] < 0.02 * 0.05


def test_epochs_are_turned_into_steps():
    _, loop = run(epochs=1.2)
    assert loop.num_steps == 30 and loop.history.last()["epoch"] == pytest.approx(1.2)


class Poisoned(ToySource):
    """Gives numbers that are none from a step on."""

    def batch(self, step: int) -> Any:
        batch = super().batch(step)
        if step >= 20:
            batch.rows_BD[0, 0] = np.nan
        return batch


def test_broken_numbers_are_said_and_the_last_good_weights_kept(tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(DivergedError, match=r"step 2\d.*last good weights"):
        run(source=Poisoned(), keeper=keeper, checkpoint_minutes=1e-9)
    kept = np.fromfile(keeper.latest() / "model.safetensors", np.uint8)
    assert kept.size and keeper.latest().name <= "step-20"
    _, loop = run(keeper=keeper, resume=True)
    assert loop.history.last()["step"] == 40


class Flipped(ToySource):
    """Turns the lesson round from a step on and shouts."""

    def batch(self, step: int) -> Any:
        batch = super().batch(step)
        if step >= 150:
            batch.classes_B[:] = (batch.classes_B + 1) % 3
            batch.rows_BD[:] *= 50
        return batch


def test_a_loss_that_runs_away_is_caught():
    with pytest.raises(DivergedError, match=r"loss rose to .* lower learning_rate"):
        run(source=Flipped(), steps=300, learning_rate=0.05)


def test_too_little_memory_names_the_settings(monkeypatch):
    def forward(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    objective = ToyObjective()
    monkeypatch.setattr(objective, "forward", forward)
    with pytest.raises(OptionError, match=r"16 rows of 128 tokens.*raise accumulate"):
        run(objective)


def test_checkpoints_by_time_rotate(tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints", keep=2)
    run(keeper=keeper, checkpoint_minutes=1e-9)
    names = sorted(path.name for path in keeper.folder.iterdir())
    assert names == ["latest.json", "plan.json", "step-38", "step-39"]


def test_biases_and_norms_do_not_decay():
    from sememe.training.optimizers import parameter_groups

    decaying, others = parameter_groups(ToyObjective(), 0.1)
    assert decaying["weight_decay"] == 0.1 and others["weight_decay"] == 0
    assert sorted(p.ndim for p in decaying["params"]) == [2, 2]
    assert sorted(p.ndim for p in others["params"]) == [1, 1, 1, 1]


def test_fp16_is_refused_on_a_cpu():
    with pytest.raises(OptionError, match="fp16 needs a GPU"):
        run(precision="fp16")


def test_a_run_in_fp16_does_not_go_on_on_a_cpu(tmp_path):
    keeper = Checkpoints(tmp_path / "run.checkpoints")
    with pytest.raises(KeyboardInterrupt):
        run(source=StopAfter(5), keeper=keeper)
    place = keeper.folder / "plan.json"
    kept = json.loads(place.read_text())
    assert kept.pop("checksum") and kept["precision"] == "fp32"
    for name, error, said in (
        ("fp16", OptionError, "began in fp16, which needs a GPU"),
        ("fp8", ArtifactError, "'fp8', unknown here"),
    ):
        place.write_text(json.dumps(kept | {"precision": name}))
        with pytest.raises(error, match=said):
            run(keeper=keeper, resume=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_gpu_that_is_not_there():
    with pytest.raises(OptionError, match="no GPU"):
        run(device="cuda")


def test_a_cpu_with_products_of_bf16_may_be_told_to_use_them(monkeypatch):
    cpu = torch.device("cpu")
    for multiplies, chosen in ((True, "bf16"), (False, "fp32")):
        monkeypatch.setattr(devices, "multiplies_bf16", lambda is_fast=multiplies: is_fast)
        assert devices.choose_precision("auto", cpu) == "fp32"
        assert devices.choose_precision("auto", cpu, fast_cpu="bf16") == chosen
        assert devices.choose_precision("fp32", cpu, fast_cpu="bf16") == "fp32"


def test_a_device_that_nobody_knows_is_named():
    with pytest.raises(OptionError, match="'nonsense'"):
        choose_device("nonsense")
