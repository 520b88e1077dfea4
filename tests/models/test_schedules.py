"""Masking rates, row lengths and numbers of rows that change over a run; recipes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from animal_sentences import SENTENCES
from recorded_notes import Notes
from stopping import assert_equal, ctrl_c_at

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from sememe.errors import OptionError
from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.scheduled import Schedule, ScheduledBatches
from sememe.models.bert.config import RECIPES, StudyConfig
from sememe.training.duration import Extent

SMALL = {
    "num_layers": 1, "width": 32, "num_heads": 2, "max_length": 64, "length": 32, "batch_size": 8,
    "workers": 1, "steps": 40, "evaluate_batches": 2, "validation_share": 0.2, "device": "cpu",
    "vocab_size": 160,
}  # fmt: skip
DOCUMENTS = [f"{own} " * 3 for own in SENTENCES] * 4
CHANGING = {"rate": 0.4, "last_rate": 0.1, "short_length": 16, "batch_warmup": 0.25}


def bert(**options: Any) -> Any:
    return sememe.BERT("tiny", **{**SMALL, **options})


def batches_of(model: Any, num_steps: int) -> list[Any]:
    """The batches that a run sees."""
    seen = []

    class Seeing(type(model)):  # type: ignore[misc]
        def objective(self) -> Any:
            found = super().objective()
            prepare, own = found.prepare, []

            def remember(batch: Any) -> Any:
                own.append(batch)
                return prepare(batch)

            found.prepare = remember
            seen.append(own)
            return found

    model.__class__ = Seeing
    model.fit(DOCUMENTS)
    return seen[0][:num_steps]


def test_batches_change_as_the_options_say():
    model = bert(next_sentence=False, evaluate_batches=0, **CHANGING)
    found = batches_of(model, 40)
    rates = [len(batch.targets_N) / batch.num_tokens for batch in found]
    assert rates[0] == pytest.approx(0.4, abs=0.06) and rates[-1] == pytest.approx(0.1, abs=0.03)
    assert np.corrcoef(rates, np.arange(40))[0, 1] < -0.9
    widths = [batch.ids_BT.shape[1] for batch in found]
    assert max(widths[:32]) <= 16 and min(widths[32:]) > 16
    rows = [len(batch.ids_BT) for batch in found]
    # Eighths of 16 short rows over the first ten steps, then all; 8 long ones have as many tokens.
    assert rows[:10] == [2, 2, 4, 6, 8, 10, 10, 12, 14, 16] and rows[10:32] == [16] * 22
    assert rows[32:] == [8] * 8


def test_a_schedule_is_a_function_of_what_is_done():
    schedule = Schedule(0.3, 0.15, 0.5, 0.2)
    assert schedule.rate(0.0) == 0.3 and schedule.rate(1.0) == pytest.approx(0.15)
    shares = [schedule.rows_share(done) for done in (0, 0.024, 0.026, 0.1, 0.19, 0.2, 1)]
    assert shares == [1 / 8, 1 / 8, 2 / 8, 5 / 8, 1.0, 1.0, 1.0]
    assert Schedule(0.15, 0.15).rows_share(0.0) == 1.0


def test_part_of_a_batch_has_its_own_targets():
    source = bert()
    source.tokenizer = bert(steps=1).fit(DOCUMENTS).tokenizer
    from sememe.tokens.subwords.store import open_or_build_subwords

    whole = source.source(open_or_build_subwords(DOCUMENTS, source.tokenizer), "train").batch(3)
    part = whole.first(3)
    num = int((whole.hidden_N // whole.ids_BT.shape[1] < 3).sum())
    assert len(part.targets_N) == num and np.array_equal(part.hidden_N, whole.hidden_N[:num])
    assert part.num_tokens == whole.lengths_B[:3].sum() and len(part.is_next_B) == 3
    assert whole.first(99) is whole


@pytest.mark.parametrize(
    ("step", "more"),
    [(3, {}), (33, {"objective": "rtd"}), (20, {"accumulate": 2, "optimizer": "muon"})],
)
def test_it_resumes_to_the_bit(step, more, tmp_path, own_cache):
    options = CHANGING | more
    whole, out = bert(**options).fit(DOCUMENTS), tmp_path / "model"
    with ctrl_c_at(step, MaskedBatches):
        bert(**options).fit(DOCUMENTS, out=out)
    assert_equal(whole, bert(**options).fit(DOCUMENTS, out=out, resume=True))


def test_validation_is_at_the_last_rate_and_full_length():
    model = bert(steps=1, **CHANGING).fit(DOCUMENTS)
    store = model.open_text(DOCUMENTS, sememe.models.fitting.Request(tokenizer=model.tokenizer))
    source = store.validation(model, Notes()).source
    batch = source.batch(0)
    assert len(batch.targets_N) / batch.num_tokens == pytest.approx(0.1, abs=0.03)
    assert batch.ids_BT.shape[1] > 16


def test_several_languages_change_together():
    model = bert(**CHANGING)
    model.fit({"en": DOCUMENTS, "zh": ["国王喜欢苹果。猫喜欢鱼。", "北京是首都。雨下了。"] * 40})
    assert set(model.languages) == {"en", "zh"} and model.history.last()["step"] == 40


def test_a_corrected_length_counts_later_for_batches():
    extent = Extent(100, 10, 100).corrected(25, 50.0, 100.0)
    assert extent.num_steps == 50
    assert extent.place(30) > 30 == extent.place(30, 32)
    assert extent.place(40, 10) == extent.place(40)


def test_a_source_that_is_not_followed_is_at_its_start():
    class Source:
        rate = 0.0

        def batch(self, step: int) -> Any:
            raise KeyError(self.rate)

    with pytest.raises(KeyError, match=r"0\.3"):
        ScheduledBatches([Source()], Schedule(0.3, 0.15)).batch(7)


def test_what_is_refused():
    for options, word in (
        ({"short_length": 32}, "short_length"), ({"short_share": 0.5}, "short_share"),
        ({"last_rate": 1.5}, "last_rate"), ({"batch_warmup": 0.95}, "batch_warmup"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=word):
            bert(**options)
    with pytest.raises(OptionError, match="last_rate"):
        StudyConfig(last_rate=0.1)
    with pytest.raises(OptionError, match="rtd"):
        StudyConfig(objective="rtd")
    with pytest.raises(OptionError, match="recipe"):
        sememe.BERT(recipe="old")


def test_a_recipe_sets_what_is_not_given_and_says_so(tmp_path):
    notes = Notes()
    model = bert(recipe="modern", optimizer="adamw", steps=4)
    model.fit(DOCUMENTS, out=tmp_path / "model", progress=notes)
    told = next(line for line in notes.lines if "recipe" in line)
    assert "objective rtd" in told and "optimizer" not in told
    for name, value in RECIPES["modern"].items():
        own = model.masking if name == "rate" else model.training
        assert getattr(own, name) == ("adamw" if name == "optimizer" else value)
    assert model.generator is not None and model.config.is_modern
    again = sememe.load(tmp_path / "model")
    assert again.training == model.training and again.masking == model.masking
    assert sememe.BERT(recipe="modern", length=512).training.short_length == 128
    assert sememe.BERT(recipe="modern", length=512, short_length=64).training.short_length == 64
    more = sememe.BERT(pretrained=model, recipe="modern")
    assert more.training.objective == "masked" and more.training.optimizer == "muon"
