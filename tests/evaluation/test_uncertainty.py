"""Every table with a score says how sure it is: an interval over the rows, and its seeds."""

from __future__ import annotations

import numpy as np
import pytest

from sememe.evaluation.comparing import compare_predictions
from sememe.evaluation.features import FeaturesResult
from sememe.evaluation.induction import RANKS, InductionResult, Precision
from sememe.evaluation.outcomes import Outcome, PartScores, benchmark_table, read_outcomes
from sememe.evaluation.prompting import PromptResult, PromptScore
from sememe.evaluation.results import WordsResult, proportion_score
from sememe.evaluation.retrieval import RetrievalResult, SystemScores
from sememe.evaluation.senses.results import SenseScore, SensesResult, WordScore, sense_tables
from sememe.evaluation.sts import STSResult, STSScore
from sememe.evaluation.suites import FamilyResult, GLUEResult
from sememe.metrics import Interval, SectionScore, averages
from sememe.models.fasttext.classifier.prediction import LabelsResult
from sememe.tasks.scores import Scores

BESIDE = [
    {"name": "TF-IDF + logistic regression", "score": 0.7, "interval": [0.65, 0.75],
     "num_train": 90, "why": ""},
    {"name": "most frequent label", "score": 0.5, "interval": [0.4, 0.6], "num_train": 90,
     "why": ""},
]  # fmt: skip


def outcome(benchmark: str, seeds: list[int], metrics: tuple[str, ...]) -> Outcome:
    part = PartScores(
        metrics={name: [0.8 + 0.01 * seed for seed in seeds] for name in metrics}, num_rows=200,
        intervals={name: Interval(0.75, 0.85) for name in metrics}, baselines=BESIDE,
    )  # fmt: skip
    return Outcome(
        benchmark=benchmark, model="mine", seeds=seeds, parts={"dev": part}, num_train=90,
        seconds=1.0,
    )  # fmt: skip


def tables(seeds: list[int]) -> dict[str, str]:
    """The text of every table that prints a supervised or benchmark score."""
    texts = outcome("sst5", seeds, ("accuracy",))
    glue = GLUEResult(outcomes=[outcome("CoLA", seeds, ("matthews", "accuracy"))])
    tags = outcome("conll2003", seeds, ("entity_f1", "entity_precision", "entity_recall"))
    compared = compare_predictions(["a", "b"] * 20, ["a"] * 40, ["b"] * 40, metric="accuracy")
    return {
        "benchmark": str(benchmark_table([texts])),
        "family": str(FamilyResult(outcomes=[texts])),
        "glue": str(glue),
        "features": str(FeaturesResult(outcomes={"last": tags}).table()),
        "compare": str(compared.table()),
    }


@pytest.mark.parametrize("name", ["benchmark", "family", "glue", "features"])
def test_fine_tuned_scores_have_intervals_seeds_and_baselines(name: str) -> None:
    text = tables([1])[name]
    assert "95 % interval" in text and "75.0 – 85.0" in text
    assert "one seed" in text
    assert "TF-IDF + logistic regression" in text and "65.0 – 75.0" in text
    several = tables([1, 2, 3])[name]
    assert "one seed" not in several and "±" in several


def test_compared_models_have_intervals_and_seeds() -> None:
    text = tables([1])["compare"]
    assert "95 % interval" in text and text.count("one seed") == 2


@pytest.mark.parametrize("baselines", [[], BESIDE])
def test_the_scores_of_a_task_and_of_a_classifier_say_how_sure_they_are(baselines) -> None:
    task = Scores(
        metrics={"accuracy": 0.8}, main_metric="accuracy", num_rows=100, interval=[0.7, 0.9],
        baselines=baselines,
    )  # fmt: skip
    labels = LabelsResult(
        100, 0, 1, 0.0, [], averages([]), interval=[0.7, 0.9], baselines=baselines
    )
    for one in (task, labels):
        summary = one.summary("dev")
        assert "95 % interval" in summary and "0.7000 – 0.9000; one seed" in summary
        own = [rows for headings, rows, _ in one.tables("dev") if "95 % interval" in headings]
        assert len(own) == bool(baselines)
        for rows in own:
            assert [row[0] for row in rows[1:]] == [one["name"] for one in BESIDE]
        saved = one.to_dict()
        assert saved["interval"] == [0.7, 0.9] and saved["seeds"] == "one seed"


def test_scores_without_training_have_intervals() -> None:
    words = WordsResult(
        scores=[proportion_score("analogies", "a", "accuracy", [SectionScore("x", 5, 9, 9)], 1)],
        num_words=9, dim=2, seed=1,
    )  # fmt: skip
    sense = SenseScore(
        set="mine", name="layer 1", role="layer", is_last=True, nearest=0.75,
        interval=Interval(0.5, 1.0), chance=0.5, auc=0.6, num_words=1, num_occurrences=40,
        words=[WordScore("bank", 0.5, 0.5, 0.5, 40)],
    )  # fmt: skip
    senses = SensesResult(model="m", kind="bert", scores=[sense], seed=1)
    scores_Q = np.array([0.0, 1.0, 0.5])
    found = RetrievalResult(
        data="d", num_queries=3, num_documents=3, language="en", seed=1,
        systems=[SystemScores(name=name, scores={"nDCG@10": scores_Q}) for name in ("BM25", "m")],
    )  # fmt: skip
    alike = STSScore(model="m", gold=scores_Q, cosines=scores_Q, num_unknown=0)
    translated = InductionResult(
        scores=[Precision(own, k, 1, 2, Interval(0.0, 1.0)) for own in ("csls", "chance")
                for k in RANKS],
        num_words=2, num_given=2, num_trained=0, num_unknown_source=0, num_unknown_target=0,
        num_candidates=9, seed=1,
    )  # fmt: skip
    prompts = PromptResult(
        scores=[
            PromptScore(
                system="0-shot", accuracies=(0.5,), macro_f1s=(0.5,), interval=Interval(0.4, 0.6)
            )
        ],
        labels=["a", "b"], words={"a": "x", "b": "y"}, num_rows=9, num_given=9, num_cut=0,
        seeds=[1, 2],
    )  # fmt: skip
    own = (words, *sense_tables([senses]), found, STSResult(data="d", scores=[alike], seed=1),
           translated, prompts)  # fmt: skip
    for text in map(str, own):
        assert "95 % " in text and "interval" in text
        assert "one seed" in text


def test_saved_outcomes_keep_their_intervals_and_baselines() -> None:
    one = outcome("sst5", [1], ("accuracy",))
    (again,) = read_outcomes([one.to_dict()])
    assert again.parts["dev"].intervals == one.parts["dev"].intervals
    assert again.parts["dev"].baselines == BESIDE
    old = one.to_dict()
    del old["parts"]["dev"]["baselines"], old["parts"]["dev"]["metrics"]["accuracy"]["interval"]
    (older,) = read_outcomes([old])
    assert older.parts["dev"].format_interval("accuracy") == "–"
