"""Semantic textual similarity: correlations, paired models, Chinese, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from sememe import WordVectors, evaluate_sts
from sememe.errors import InputError
from sememe.metrics.comparison import pearson_interval, spearman_interval

WORDS = ["cat", "dog", "car", "bus", "猫", "狗", "汽车"]
ROWS = np.array([[1, 0.1], [0.9, 0.3], [0.1, 1], [0.2, 0.9], [1, 0], [0.9, 0.2], [0, 1]])
PAIRS = [("a cat", "the dog", 4.5), ("cat", "a car", 0.5), ("bus", "car", 5.0), ("dog", "bus", 1.0)]


@pytest.fixture
def vectors():
    return WordVectors(WORDS, ROWS.astype(np.float32))


def test_correlations_of_cosines(vectors):
    result = evaluate_sts(vectors, PAIRS)
    (score,) = result.scores
    cosines = [float(vectors.similarity(a, b)) for a, b in (
        ("cat", "dog"), ("cat", "car"), ("bus", "car"), ("dog", "bus"),
    )]  # fmt: skip
    assert score.cosines == pytest.approx(cosines, abs=1e-6)
    gold = [row[2] for row in PAIRS]
    assert score.spearman == pytest.approx(stats.spearmanr(gold, cosines).statistic)
    assert score.pearson == pytest.approx(stats.pearsonr(gold, cosines).statistic)
    assert score.intervals["spearman"] == spearman_interval(gold, score.cosines)
    assert score.intervals["pearson"] == pearson_interval(gold, score.cosines)
    assert score.ranking == {} and "4 pairs" in str(result)


def test_pearson_intervals_hold_the_score():
    rng = np.random.default_rng(1)
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)
    low, high = pearson_interval(x, y)
    assert low < stats.pearsonr(x, y).statistic < high and high - low < 0.3


def test_two_models_are_compared_on_the_same_pairs(vectors, tmp_path):
    other = WordVectors(WORDS, ROWS[::-1].astype(np.float32).copy())
    told = evaluate_sts([vectors, other], PAIRS).to_dict()
    assert [score["model"] for score in told["scores"]] == ["vectors 1", "vectors 2"]
    (compared,) = told["comparisons"]
    assert compared["metric"] == "spearman" and compared["num_rows"] == 4
    assert compared["difference"] == pytest.approx(
        told["scores"][1]["spearman"] - told["scores"][0]["spearman"]
    )
    json.dumps(told)
    assert "against the first" in str(evaluate_sts([vectors, other], PAIRS))


def test_chinese_pairs_labelled_0_and_1_also_give_auc(vectors, tmp_path):
    path = tmp_path / "lcqmc.tsv"
    rows = [
        "可爱的猫\t可爱的狗\t1",
        "这只猫\t这辆汽车\t0",
        "我的狗\t我的汽车\t0",
        "一只狗\t一只猫\t1",
    ]
    path.write_text("\n".join(rows), encoding="utf-8")
    vectors.text = vectors.text.for_language("zh")
    result = evaluate_sts(vectors, path)
    assert result.scores[0].ranking == {"auc": 1.0, "average_precision": 1.0}
    assert "lcqmc.tsv: 4 pairs" in str(result) and "AUC" in str(result)
    assert result.to_dict()["scores"][0]["auc"] == 1


def test_texts_without_known_words_count_as_cosine_0(vectors):
    result = evaluate_sts(vectors, [*PAIRS, ("zebra", "cat", 2.0)])
    assert result.scores[0].num_unknown == 1 and result.scores[0].cosines[-1] == 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,score\nx y,1.5\nx,2\n", "two texts"),
        ("sentence1,sentence2,score\ncat,dog,1\ncat,car,1\n", "same score"),
        ("sentence1,sentence2,score\nzebra,yak,1\ngnu,emu,2\n", "none of the words"),
        ("sentence1,sentence2,score\ncat,dog,many\n", "line 2"),
        ("", "no rows"),
    ],
)
def test_bad_files_are_one_sentence(vectors, tmp_path, content, message):
    path = tmp_path / "pairs.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        evaluate_sts(vectors, path)
