"""Extractive answers as a whole: windows, exact characters, the best spans, no answer."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe import Answer, Classify
from sememe.errors import InputError, OptionError
from sememe.examples.labelled.rows import AnswerRow, AnswerSpan
from sememe.progress import Reporter

GOOD = ("good", "great", "lovely", "fine", "nice")
THINGS = ("film", "story", "song", "book")
FILLER = "the old cat sat on a warm mat and slept all day long"
QUICK = {
    "device": "cpu", "workers": 1, "length": 24, "stride": 8, "batch_size": 8,
    "learning_rate": 3e-3, "epochs": 4.0,
}  # fmt: skip
# The paragraph of the paper that asked first, told in other words.
CLOUD = (
    "Rain, snow and hail have one source: vapour that turns into water and falls under its own "
    "weight. Small drops meet other drops or ice within a cloud until they are heavy enough. Short "
    "and intense falls over a small place are called showers."
)


def row(index, has_answer=True):
    """A text with one phrase of praise somewhere, which is the answer."""
    words = FILLER.split()
    phrase = f"{GOOD[index % 5]} {THINGS[index % 4]}"
    words[index % 11 : index % 11] = [phrase] if has_answer else []
    return ("what is praised", " ".join(words), phrase if has_answer else "")


ROWS = [row(index) for index in range(40)]
MIXED = [row(index, index % 2 == 0) for index in range(60)]


@pytest.fixture(scope="module")
def praise(bert, tmp_path_factory):
    """A task that has learned to find praise, or that there is none, and its folder."""
    out = tmp_path_factory.mktemp("tasks") / "praise"
    return Answer(bert, **QUICK).fit(MIXED, dev=MIXED[:20], out=out), out


def overfitted(bert, question, context, answer, **options):
    """A task that knows one row by heart."""
    rows = [{"question": question, "context": context, "answer": answer}] * 2
    return Answer(bert, **QUICK | {"epochs": 0.0, "steps": 40} | options).fit(rows, dev=False)


def test_answers_are_learned_saved_and_given_again(praise):
    task, out = praise
    assert task.labels == [] and task.scores.main_metric == "f1" and task.scores.value > 0.8
    again = Answer.load(out)
    assert again.predict(ROWS[:5]) == task.predict(ROWS[:5])
    assert again.evaluate(MIXED).value == pytest.approx(task.evaluate(MIXED).value)


def test_no_answer_is_preferred_above_a_threshold_that_dev_rows_choose(praise):
    task, out = praise
    threshold = task.learned["threshold"]
    assert Answer.load(out).threshold == threshold
    predictions = task.predict_rows(task.read(MIXED, labelled=True))
    for said in predictions:
        assert (said.text == "") == (said.no_answer > threshold) == (said.start == -1)
        assert 0 <= said.probability <= 1 and said.candidates
    rows = task.read(MIXED[:20], labelled=True)
    best = max(_f1_at(task, rows, predictions[:20], one.no_answer) for one in predictions[:20])
    none = np.mean([row.is_impossible for row in rows])
    assert task.scores.value == pytest.approx(max(best, none))
    finished = Answer(task.model, **QUICK).fit(MIXED, dev=MIXED[:20], out=out, resume=True)
    assert finished.learned == task.learned  # it is taken from the folder, not learned again
    only = Answer.load(out)
    only.learned = {**only.learned, "threshold": -math.inf}
    assert all(said.text == "" for said in only.predict(MIXED[:3]))


def _f1_at(task, rows, predictions, threshold):
    from sememe.metrics import score_answer_or_none

    said = ["" if one.no_answer > threshold else one.best_text for one in predictions]
    golds = [[answer.text for answer in row.answers] for row in rows]
    return np.mean([score_answer_or_none(*pair).f1 for pair in zip(said, golds, strict=True)])


def test_scored_rows_do_not_choose_the_threshold_of_a_task_without_dev_rows(bert):
    task = Answer(bert, **QUICK | {"epochs": 0.2}).fit(MIXED, dev=False)
    assert task.learned["threshold"] == 0
    rows = task.read(MIXED, labelled=True)
    expected = _f1_at(task, rows, task.predict_rows(rows), 0.0)
    assert task.evaluate(MIXED).value == pytest.approx(expected)


def test_a_foreign_model_of_squad_2_may_say_that_there_is_no_answer(praise, tmp_path):
    task, _ = praise
    for name, card in (("plain", ""), ("squad2-bert", ""), ("card", "datasets:\n- squad_v2\n")):
        task.save(tmp_path / name)
        (tmp_path / name / "sememe.json").unlink()
        (tmp_path / name / "README.md").write_text(f"# A reader\n{card}")
        taken = "that does not" if name == "plain" else "that does, for its name or card says"
        with pytest.warns(UserWarning, match=f"taken as one {taken}"):
            foreign = Answer.load(tmp_path / name)
        said = foreign.predict(MIXED)
        assert all(one.text for one in said) == (name == "plain")
        if name != "plain":
            assert {one.text == "" for one in said} == {one.no_answer > 0 for one in said}


def test_nothing_beats_answering_nothing(bert):
    task = Answer(bert, **QUICK | {"epochs": 0.2}).fit(MIXED, dev=False)
    rows = [AnswerRow(str(i), "what", FILLER, (), True) for i in range(4)]
    task.settle(rows, task.predict_rows(rows))
    assert [said.text for said in task.predict_rows(rows)] == [""] * 4


def test_the_answer_within_a_cloud(bert):
    task = overfitted(bert, "Where do drops meet?", CLOUD, "within a cloud", length=40, stride=10)
    rows = task.read([("Where do drops meet?", CLOUD)], labelled=False)
    assert len(task.encode(rows)) > 2  # the paragraph is longer than the network sees
    (said,) = task.predict_rows(rows)
    start = CLOUD.index("within a cloud")
    assert (said.text, said.start, said.end) == ("within a cloud", start, start + 14)
    assert said.candidates[0][:3] == said[1:4]


CHINESE = "ＡＢＣ公司的İpek说：café cafe\u0301在😀北京，iPhone15发布。"


@pytest.mark.parametrize("answer", ["ＡＢＣ公司", "İpek", "cafe\u0301", "😀北京", "iPhone15发布"])
def test_answers_are_exact_characters_of_the_users_text(bert, answer):
    task = overfitted(bert, "什么？", CHINESE, answer, length=40)
    (said,) = task.predict([("什么？", CHINESE)])
    assert (said.text, said.start) == (answer, CHINESE.index(answer))
    assert task.evaluate([("什么？", CHINESE, answer)]).metrics == {"f1": 1.0, "exact": 1.0}


def test_every_candidate_is_a_valid_span_of_the_context(bert):
    task = Answer(bert, **QUICK | {"epochs": 0.2, "answer_length": 3, "num_best": 7})
    task.fit(ROWS, dev=False)
    random = np.random.default_rng(1)
    for size in (1, 2, 15, 60):
        context = " ".join(random.choice([*FILLER.split(), "猫坐在垫子上", "İ"], size))
        (said,) = task.predict([("the question is long " * 30, context)])
        chances = [one.probability for one in said.candidates]
        assert chances == sorted(chances, reverse=True) and 0 < sum(chances) <= 1 + 1e-9
        assert len({one[1:3] for one in said.candidates}) == len(said.candidates) <= 7
        for one in said.candidates:
            assert one.text == context[one.start : one.end] and one.text.strip() == one.text
            assert len(task.coder.encode([one.text])[0].ids) <= 3


def test_windows_see_every_token_and_targets_point_at_the_answer(bert):
    task = Answer(bert, **QUICK | {"epochs": 0.2}).fit(ROWS, dev=False)
    context = f"{FILLER} good film {FILLER}"
    (whole,) = task.coder.encode([context])
    items = task.encode(task.read([("what", context, "good film")], labelled=True))
    seen = set()
    for item in items:
        window, offset, _, _ = item.extra
        ids = item.sequences[0].ids_T[offset : offset + window.end - window.start]
        assert ids.tolist() == whole.ids[window.start : window.end].tolist()
        seen |= set(range(window.start, window.end))
        first, last = item.target
        if first:
            assert (
                task.coder.tokenizer.decode(item.sequences[0].ids_T[first : last + 1])
                == "good film"
            )
    assert seen == set(range(len(whole.ids))) and len(items) > 1
    assert any(item.target[0] for item in items) and not all(item.target[0] for item in items)


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_windows_end_where_the_network_knows_positions(name, request, monkeypatch, tmp_path):
    model, said = request.getfixturevalue(name), io.StringIO()
    monkeypatch.setattr(model[0], "seen_length", 30)
    options = QUICK | {"length": 36, "epochs": 0.2}
    task = Answer(model, **options).fit(
        ROWS, dev=False, out=tmp_path / "out", progress=Reporter(stream=said)
    )
    assert "Windows have 30 tokens instead of 36" in said.getvalue()
    assert task.config.length == 30 and Answer.load(tmp_path / "out").coder.length == 30
    items = task.encode(task.read([("what", FILLER * 4, "")], labelled=True))
    assert max(item.num_tokens for item in items) == 30


def test_a_task_that_was_saved_knows_as_many_positions(bert, opinions, monkeypatch, tmp_path):
    monkeypatch.setattr(bert[0], "seen_length", 30)
    options = {"device": "cpu", "workers": 1, "length": 24, "epochs": 0.2}
    first = Classify(bert, **options).fit(opinions, out=tmp_path / "first")
    for model in (first, tmp_path / "first"):
        task = Answer(model, **QUICK | {"length": 36, "epochs": 0.2}).fit(ROWS, dev=False)
        assert task.coder.length == 30


def test_rows_that_are_not_windows_keep_their_length(bert, opinions, monkeypatch):
    said = io.StringIO()
    monkeypatch.setattr(bert[0], "seen_length", 8)
    options = {"device": "cpu", "workers": 1, "length": 24, "epochs": 0.2}
    task = Classify(bert, **options).fit(opinions, progress=Reporter(stream=said))
    assert task.coder.length == 24 and "had 8 tokens" in said.getvalue()


def test_an_ensemble_has_a_threshold_of_its_own(bert, tmp_path):
    from sememe.tasks.config import grid
    from sememe.tasks.trials import fit_trials

    def make(options):
        return Answer(bert, **QUICK | {"epochs": 1.0} | options)

    task = fit_trials(make, grid(2, 1), MIXED, dev=MIXED[:20], ensemble=True, out=tmp_path / "two")
    assert "threshold" in task.learned
    again = Answer.load(tmp_path / "two")
    assert again.learned == task.learned
    assert again.evaluate(MIXED[:20]).value == pytest.approx(task.scores.value)


def test_a_gpt_answers_and_points_at_its_last_token_for_none(gpt):
    task = Answer(gpt, **QUICK | {"length": 60, "epochs": 1.0}).fit(MIXED, dev=MIXED[:8])
    items = task.encode(task.read(MIXED[1:2], labelled=True))
    assert [item.target.tolist() for item in items] == [[item.num_tokens - 1] * 2 for item in items]


def test_bad_rows_and_options(bert):
    task = Answer(bert, **QUICK | {"epochs": 0.2})
    with pytest.raises(InputError, match="row 0: the context does not hold the answer"):
        task.fit([("what", FILLER, "a dog")])
    unplaced = AnswerRow(
        "x", "what", FILLER, (AnswerSpan("a dog", -1),), source="q.json, question x"
    )
    with pytest.raises(
        InputError, match="question x: the place of the answer 'a dog' is not known"
    ):
        task.fit([unplaced])
    task.fit(ROWS, dev=[unplaced])  # its text will do to be scored
    assert task.scores.num_rows == 1
    with pytest.raises(OptionError, match="Answer"):
        Answer(bert, labels=["a"])
    with pytest.raises(OptionError, match="stride must be"):
        Answer(bert, stride=0)
    with pytest.raises(OptionError, match=r"length \(384\) must not exceed 40"):
        Answer(bert, device="cpu").fit(ROWS)
