"""Sizes follow the budget and the machine; choices of rungs are read, bad ones named."""

import math
from dataclasses import fields, replace
from types import SimpleNamespace

import pytest

from sememe.errors import OptionError
from sememe.ladder.config import LadderConfig
from sememe.ladder.plan import Load, estimated_s, make_plan
from sememe.ladder.results import Machine
from sememe.ladder.rungs import LINE, SPECS, choose
from sememe.ladder.running import notes_beforehand, notes_of, said
from sememe.ladder.training import planned

SMALL = Machine(cores=2, memory=8 << 30, processor="x", gpu="", system="Linux")
LARGE = Machine(
    cores=16, memory=128 << 30, processor="x", gpu="H200", gpu_memory=139 << 30, system="Linux"
)


def plan_of(machine=SMALL, **options):
    return make_plan(LadderConfig(workers=machine.cores, **options), machine)


def test_larger_budgets_and_machines_make_larger_networks():
    assert plan_of(budget="25s").preset == "tiny"
    assert plan_of(budget="1h").preset == "mini"
    assert plan_of(LARGE, budget="2m").preset == "small"
    assert plan_of(LARGE, budget="10m").preset == "medium"
    assert plan_of(tokens=1_000_000).preset == "tiny"
    assert plan_of(tokens=10**9).preset == "small"
    assert plan_of(LARGE, budget="2m", preset="tiny").preset == "tiny"


def test_small_budgets_read_less_text_and_ask_fewer_rows():
    smoke, usual = plan_of(budget="2s"), plan_of(budget="25s")
    assert smoke.num_rows < usual.num_rows and smoke.max_words < usual.max_words
    assert plan_of(budget="25s", rows=77).num_rows == 77
    assert plan_of(budget="1h", max_words=1_000).max_words == 1_000
    assert plan_of(tokens=5_000).max_words == 5_000


def test_rare_words_count_in_short_texts():
    plan = plan_of(budget="25s")
    assert plan.for_text(100_000).min_count == 3 and plan.for_text(10_000_000).min_count == 5
    chinese = make_plan(LadderConfig(budget="25s", workers=2), SMALL, is_chinese=True)
    assert chinese.vocab_size == 8_192 > plan.vocab_size
    assert "8,192 sub-word" in " ".join(said(chinese, SMALL, 3))
    assert plan_of(budget="25s", min_count=9).for_text(100).min_count == 9


def test_the_plan_is_said_with_an_estimate():
    config = LadderConfig(budget="30s", workers=2)
    load = Load([SPECS[name].rung() for name in LINE], 4, 0, 4)
    seconds = estimated_s(make_plan(config, SMALL), load, config)
    assert 8 * 30 < seconds < 12 * 60
    words = " ".join(said(make_plan(config, SMALL), SMALL, len(LINE)))
    assert "11 rungs, 0:30 of training for each, on 2 cores, 8 GB" in words
    assert "minutes" in notes_beforehand(make_plan(config, SMALL), LINE, seconds)[-1]
    tokens = LadderConfig(tokens=2_000_000)
    assert "2.00 M tokens" in said(make_plan(tokens, SMALL), SMALL, 3)[0]
    assert notes_beforehand(make_plan(tokens, SMALL), ["counts"], 0.0) == []
    assert "37 seconds" in notes_beforehand(make_plan(config, SMALL), LINE, 37.2)[-1]


def test_a_gpu_gets_large_steps_and_helpers():
    small, large = plan_of(budget="3m"), plan_of(LARGE, budget="3m")
    assert small.num_helpers == 0 and large.num_helpers == 12
    assert plan_of(replace(LARGE, gpu_memory=13 << 30), budget="3m").num_helpers == 2
    options = SPECS["bert"].options(large)
    assert options["batch_size"] == 512 and options["compile"] == "auto"
    assert options["dropout"] == 0.0
    assert SPECS["gpt"].options(large)["batch_size"] == 512
    assert "batch_size" not in SPECS["bert"].options(small)
    assert SPECS["bert"].options(plan_of(LARGE, budget="1m"))["compile"] == "no"


def test_lanes_and_fine_tuning_are_estimated():
    def seconds(machine, **options):
        config = LadderConfig(budget="3m", workers=machine.cores, **options)
        load = Load([SPECS[name].rung() for name in LINE], 4, 30_000_000, 5)
        return estimated_s(make_plan(config, machine), load, config)

    # Four networks, and beside them four others, then a few minutes of questions.
    assert 4 * 3 * 60 < seconds(LARGE, finetune=True, rows=12_000, seeds=2) < 25 * 60
    assert seconds(SMALL) > 8 * 3 * 60
    assert seconds(SMALL, finetune=True, rows=2_000) > seconds(SMALL, finetune=True, rows=500)


@pytest.mark.parametrize(
    ("options", "said_of_it"),
    [
        ({"budget": "soon"}, "budget"),
        ({"budget": "5m", "tokens": 5}, "budget or tokens"),
        ({"seeds": 0}, "seeds"),
        ({"preset": "huge"}, "preset"),
        ({"tokens": -1}, "tokens"),
    ],
)
def test_bad_options_are_named(options, said_of_it):
    with pytest.raises(OptionError, match=said_of_it):
        LadderConfig(**options)


def test_rungs_are_chosen_left_out_and_added(tmp_path):
    assert choose("").names == LINE and "untrained" not in LINE
    assert choose("bert, counts").names == ["counts", "bert"]  # the order of the line
    left = choose("-elmo,-gpt").names
    assert "elmo" not in left and "gpt" not in left and "bert" in left
    own = tmp_path / "mine.vec"
    own.write_text("1 2\na 0 1\n")
    assert choose(f"{own}") == (LINE, [own])
    assert choose(f"skipgram,{own}") == (["skipgram"], [own])
    assert choose("untrained").names == ["untrained"]


def test_an_unknown_rung_is_refused():
    with pytest.raises(OptionError, match=r"'word3vec' is neither a rung"):
        choose("skipgram,word3vec")
    with pytest.raises(OptionError, match="every rung"):
        choose(",".join(f"-{name}" for name in LINE))


class _Text:
    """As much of a text as a plan by tokens asks for."""

    class words:  # noqa: N801
        num_tokens = 1_000


def test_tokens_fix_epochs_before_anything_is_trained():
    plan = plan_of(tokens=5_200).for_text(1_000)
    rung = planned(SPECS["skipgram"], SPECS["skipgram"].rung(), plan, _Text, None)
    assert rung.state == "training" and rung.options["epochs"] == 5
    assert rung.options["architecture"] == "skipgram" and rung.options["min_count"] == 3


@pytest.mark.parametrize("name", SPECS)
def test_the_class_of_every_rung_is_where_it_is_looked_for(name):
    if SPECS[name].is_network:
        pytest.importorskip("torch")
    assert isinstance(SPECS[name].model_class, type)


TEXT = SimpleNamespace(split="by lot", is_built_in=False)


def test_plan_and_report_say_which_rung_begins_with_skipgram():
    def told(config: LadderConfig, *names: str) -> bool:
        plan = make_plan(config, SMALL)
        before = " ".join(notes_beforehand(plan, names, 60.0))
        after = " ".join(notes_of(TEXT, plan, config, names))
        is_said = "ELMo starts from skip-gram" in before
        assert is_said == ("ELMo started from skip-gram" in after)
        return is_said

    assert told(LadderConfig(budget="25s"), "skipgram", "elmo", "gpt", "bert")
    assert not told(LadderConfig(budget="25s"), "skipgram", "gpt", "bert")
    assert not told(LadderConfig(budget="25s", preset="small"), "elmo")  # it has time of its own


@pytest.mark.parametrize(
    ("names", "before", "after"),
    [
        (["counts", "bert"], "on the GPU, and at the same time the other rungs on the CPU",
         "networks had the GPU to themselves, and CPU models had 14 threads;"),
        (["bert"], "on the GPU; then", "networks had the GPU to themselves; only"),
        (["counts", "skipgram"], "Rungs are trained in turn on the CPU; then",
         "During training CPU models had 16 threads; only"),
    ],
)  # fmt: skip
def test_what_is_said_of_cores_and_gpu_holds_for_the_rungs_that_train(names, before, after):
    config = LadderConfig(budget="3m", workers=16)
    plan = make_plan(config, LARGE)
    assert before in " ".join(notes_beforehand(plan, names, 60.0))
    assert after in " ".join(notes_of(TEXT, plan, config, names))
    # A report says nothing of what will be.
    assert "will take" not in " ".join(
        [*said(plan, LARGE, 3), *notes_of(TEXT, plan, config, names)]
    )


NUMERIC = {
    field.name: type(field.default) for field in fields(LadderConfig)
    if isinstance(field.default, int) and not isinstance(field.default, bool)
}  # fmt: skip


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize("value", [-1, 10**18, 10**30, math.nan, math.inf, -math.inf, ""])
def test_a_number_out_of_its_range_is_refused_with_the_range(name, value):
    """No option takes 10^18 but the seed, which is one of 2^62."""
    if name == "seed" and value == 10**18:
        assert LadderConfig(seed=value).seed == value
        return
    with pytest.raises(OptionError, match=f"{name} must "):
        LadderConfig(**{name: value})


@pytest.mark.parametrize(
    "budget", ["0s", "-1m", "1e18h", "nan", "inf", f"{10**18}h", "9" * 400 + "h", "soon"]
)
def test_a_budget_out_of_its_range_is_refused(budget):
    with pytest.raises(OptionError, match="budget must be"):
        LadderConfig(budget=budget)
