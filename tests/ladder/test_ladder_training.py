"""How long a rung trains: a pilot run measures its speed, and what comes before it counts too."""

from __future__ import annotations

import time

import pytest
from ladder_texts import documents

from sememe.ladder import training
from sememe.ladder.config import LadderConfig
from sememe.ladder.plan import LadderPlan, make_plan, this_machine
from sememe.ladder.rungs import SPECS
from sememe.ladder.text import LadderText, open_text
from sememe.ladder.training import EnoughError, Pilot, Speed, compile_kernels, planned, trained
from sememe.models.glove.cells import CellFile
from sememe.models.glove.training import GloVeRun
from sememe.models.word2vec.training import WindowRun
from sememe.progress import SILENT
from sememe.text.settings import TextSettings


@pytest.fixture
def text(tmp_path) -> LadderText:
    return open_text(documents(120), TextSettings(), tmp_path / "text")


def plan_of(text: LadderText, **options) -> LadderPlan:
    config = LadderConfig(workers=1, min_count=1, device="cpu", **options)
    return make_plan(config, this_machine("cpu")).for_text(text.words.num_tokens)


@pytest.mark.parametrize(
    ("name", "run"), [("skipgram", WindowRun), ("fasttext", WindowRun), ("glove", GloVeRun)]
)
def test_a_pilot_run_stops_no_thread_and_copies_no_vectors(name, run, text, monkeypatch):
    """With 14 threads and 100,000 words that took longer than the training it measured."""
    compile_kernels([name])  # or kernels would be compiled in the time of the rung
    copies: list[bool] = []
    monkeypatch.setattr(run, "hand_over", lambda self, model, *, is_final: copies.append(is_final))
    spec = SPECS[name]
    rung = planned(spec, spec.rung(), plan_of(text, budget="3s"), text, SILENT)
    assert rung.options["epochs"] > 1 and copies == []


def test_a_pilot_leaves_out_what_comes_before_the_training_and_its_first_steps(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pilot = Pilot(seconds=2.0)
    with pilot.task("counting", 10) as task:
        task.update(10)
    now[0] = 5.0
    with pytest.raises(EnoughError), pilot.task("training", 10**9, "words") as task:
        for second, done in ((5.2, 1), (5.7, 1), (5.8, 2), (6.8, 1_002), (7.8, 4_002)):
            now[0] = second
            task.update(done)
    assert pilot.begun_s == 5.0 and pilot.rate == pytest.approx(4_000 / 2)


def test_passes_come_nearest_to_the_budget_and_are_one_at_least():
    assert [Speed(10.0, 0.0).epochs_within(seconds) for seconds in (4, 14, 16, 180)] == [
        1,
        1,
        2,
        18,
    ]
    assert Speed(10.0, 25.0).epochs_within(180) == 16
    assert Speed(10.0, 200.0).epochs_within(180) == 1


def test_a_network_is_given_what_its_skipgram_leaves(text, monkeypatch):
    monkeypatch.setattr(training, "measured", lambda *_: Speed(pass_s=3.1, before_s=0.0))
    spec = SPECS["elmo"]
    for budget, epochs, left in (("40s", 3, "30.7s"), ("4s", 1, "2s")):
        rung = planned(spec, spec.rung(), plan_of(text, budget=budget), text, SILENT)
        assert (rung.options["start_epochs"], rung.options["budget"]) == (epochs, left)


def test_counting_pairs_is_part_of_what_glove_cost(text, tmp_path, monkeypatch):
    plan, spec = plan_of(text, tokens=60_000), SPECS["glove"]
    write = CellFile.write.__func__

    def slow(cls, path, cells, *more):
        return write(cls, path, (time.sleep(0.5) or cell for cell in cells), *more)

    monkeypatch.setattr(CellFile, "write", classmethod(slow))
    rung = planned(spec, spec.rung(), plan, text, SILENT)
    rung = trained(spec, rung, plan, text, tmp_path / "glove", SILENT)
    assert rung.train_s >= 0.5 + rung.history[-1].seconds


@pytest.mark.parametrize("name", ["ngram", "counts", "skipgram", "glove", "elmo"])
def test_a_model_that_was_finished_before_tells_the_time_that_it_took(name, text, tmp_path):
    """A ladder may be killed when a model is saved and not yet in its results."""
    if SPECS[name].is_network:
        pytest.importorskip("torch")
    plan, spec = plan_of(text, tokens=20_000), SPECS[name]
    rung = planned(spec, spec.rung(), plan, text, SILENT)
    first, again = (trained(spec, rung, plan, text, tmp_path / "model", SILENT) for _ in range(2))
    assert again == first
