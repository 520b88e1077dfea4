"""Published rows, files of benchmarks, and the tables that results are laid out in."""

from __future__ import annotations

import gzip
import json
import math
from types import SimpleNamespace

import pytest

from sememe.errors import InputError
from sememe.evaluation.benchmarks import ANSWER_SETS, GLUE, SETS, TAG_SETS, published as printed
from sememe.evaluation.finetuning import write_submission
from sememe.evaluation.outcomes import Outcome, PartScores, benchmark_table, read_outcomes
from sememe.evaluation.results import ResultTable, SystemRow
from sememe.evaluation.rows import DataFolder
from sememe.evaluation.suites import GLUEResult, average
from sememe.metrics.by_name import METRICS

EVERY = {**GLUE, **SETS, **TAG_SETS, **ANSWER_SETS}


@pytest.mark.parametrize("row", printed.GLUE, ids=lambda row: row.system)
def test_published_averages_are_the_means_of_their_columns(row) -> None:
    mean = average(row.scores)
    if row.system == "BiLSTM+ELMo+Attn":  # printed so; its cells as printed give 70.9
        assert (round(mean, 1), row.average) == (70.9, 71.0)
    else:
        assert round(mean, 1) == row.average
    assert average({**row.scores, "WNLI": 0.0}) == mean


def test_berts_average_is_as_the_paper_computed_it() -> None:
    base = {row.system: row for row in printed.GLUE}["BERT base"]
    assert list(base.scores.values()) == [84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4]
    assert average(base.scores) == pytest.approx(79.6)


@pytest.mark.parametrize("name", EVERY)
def test_benchmarks_are_described_whole(name: str) -> None:
    benchmark = EVERY[name]
    assert benchmark.name == name and benchmark.parts and benchmark.train
    shorts = {METRICS[metric].short for metric in benchmark.metrics}
    for row in benchmark.published:
        assert set(row.scores) <= shorts, f"{row.system} has a figure that is not measured"
        assert all(0 < score <= 100 for score in row.scores.values())
        assert row.split.startswith(("dev", "test"))
    assert not benchmark.chooses or benchmark.chooses in benchmark.parts
    systems = {row.system for row in benchmark.published}
    assert not benchmark.baseline or benchmark.baseline in systems


def test_files_are_found_whatever_their_case_and_compression(tmp_path) -> None:
    (tmp_path / "cola").mkdir()
    (tmp_path / "cola" / "train.tsv.gz").write_bytes(gzip.compress(b"x"))
    (tmp_path / "cola" / "dev.tsv").write_text("x")
    (tmp_path / "RTE").mkdir()
    (tmp_path / "RTE" / "dev.tsv").write_text("x")
    (tmp_path / ".hidden").mkdir()
    folder = DataFolder(tmp_path)
    cola = folder.holdings(GLUE["CoLA"])
    assert cola.train.paths[0].name == "train.tsv.gz" and not cola.missing and not cola.unlabelled
    rte = folder.holdings(GLUE["RTE"])
    assert rte.train is None and rte.missing == ["RTE/train.tsv"]
    # The folder of one task will do, too.
    assert DataFolder(tmp_path / "cola").holdings(GLUE["CoLA"]).parts
    assert not DataFolder(tmp_path / "RTE").holdings(GLUE["CoLA"]).parts
    with pytest.raises(InputError, match="is not a folder"):
        DataFolder(tmp_path / "nothing")


def outcome(name: str, parts: dict[str, dict[str, list[float]]], model: str = "mine") -> Outcome:
    return Outcome(
        benchmark=name,
        model=model,
        seeds=[1, 2, 3],
        parts={
            part: PartScores(metrics=metrics, num_rows=90, num_skipped=10)
            for part, metrics in parts.items()
        },
        num_train=1_000,
        seconds=12.0,
    )


def glue_result(*names: str) -> GLUEResult:
    scores = [0.80, 0.81, 0.82]
    outcomes = [
        outcome(name, dict.fromkeys(GLUE[name].parts, dict.fromkeys(GLUE[name].metrics, scores)))
        for name in names
    ]
    return GLUEResult(outcomes=outcomes, missing={"QQP": ["QQP/train.tsv"]})


def test_a_whole_glue_result_has_the_papers_average() -> None:
    result = glue_result(*GLUE)
    content = result.to_dict()
    assert content["average"] == pytest.approx(81.0) and len(content["columns"]) == 10
    text = str(result.table())
    assert "MNLI-(m/mm)" in text and "392k" in text
    (base,) = [line.split() for line in text.splitlines() if line.startswith("BERT base")]
    assert " ".join(base[3:]) == "84.6/83.4 71.2 90.5 93.5 52.1 85.8 88.9 66.4 79.6"
    assert "81.0 ± 1.0/81.0 ± 1.0" in text and "WNLI, which the papers leave out: 81.0" in text
    assert "mean of" not in text.splitlines()[1]
    json.dumps(content)


def test_missing_tasks_are_named_and_have_no_average() -> None:
    result = glue_result("CoLA", "RTE")
    assert result.to_dict()["average"] is None
    text = str(result.table())
    assert "QQP was skipped: there is no QQP/train.tsv." in text
    # The mean over the columns that are there can be compared with the published rows.
    assert "mean of 2" in text and f"{(52.1 + 66.4) / 2:.1f}" in text
    assert "published, test-server scores" in text
    detail = str(result.detail())
    assert "Matthews" in detail and "90.0%" in detail


def test_gains_are_those_of_elmos_table() -> None:
    mine = outcome("squad1.1", {"dev": {"squad_f1": [0.885], "squad_exact": [0.808]}})
    text = str(benchmark_table([mine]))
    line = next(line for line in text.splitlines() if line.startswith("+ ELMo"))
    assert line.split()[3:] == ["test", "–", "85.8", "+4.7", "+24.9", "%"]
    (own,) = [line for line in text.splitlines() if line.startswith("mine  ")]
    assert "+" not in own  # measured on other rows than the baseline
    table = benchmark_table([outcome("sst5", {"test": {"accuracy": [0.547]}})])
    lines = {line.split("  ")[0]: line for line in str(table).splitlines()}
    assert "+3.3" in lines["+ ELMo †"] and "+6.8 %" in lines["+ ELMo †"]
    assert "+3.3" in lines["mine"]


def test_gains_are_counted_from_an_earlier_result() -> None:
    part = {"dev": {"entity_f1": [0.5, 0.5], "entity_precision": [0.5], "entity_recall": [0.5]}}
    first = outcome("cluener", part, "random")
    part = {"dev": {"entity_f1": [0.74, 0.76], "entity_precision": [0.5], "entity_recall": [0.5]}}
    content = json.loads(json.dumps(outcome("cluener", part, "trained").to_dict()))
    (second,) = read_outcomes(content)
    assert second.parts["dev"].spread("entity_f1").mean == pytest.approx(0.75)
    lines = str(benchmark_table([first, second])).splitlines()
    (line,) = [line for line in lines if line.startswith("trained  ")]
    assert "75.0 ± 1.4" in line and "+25.0" in line and "+50.0 %" in line
    with pytest.raises(InputError, match="not a result"):
        read_outcomes({"benchmark": "cluener"})
    with pytest.raises(InputError, match="not a result"):
        read_outcomes({**content, "benchmark": "unheard of"})


def test_a_seed_without_a_figure_gives_none() -> None:
    part = PartScores(metrics={"spearman": [math.nan, 0.5]}, num_rows=2)
    assert math.isnan(part.spread("spearman").mean) and part.coverage == 1


def test_tables_line_up_with_wide_characters() -> None:
    table = ResultTable(
        title="",
        headings=["模型", "分"],
        rows=[SystemRow("小", ["1.0"]), SystemRow("ab", ["22.0"])],
    )
    lines = str(table).splitlines()
    assert lines[2] == "小     1.0" and lines[3] == "ab    22.0"


def test_submissions_are_written_as_the_server_takes_them(tmp_path) -> None:
    write_submission(tmp_path / "STS-B.tsv", [("0", 5.7), ("1", -0.2), ("2", 3.14159)])
    assert (tmp_path / "STS-B.tsv").read_bytes() == (
        b"index\tprediction\n0\t5.000\n1\t0.000\n2\t3.142\n"
    )
    write_submission(tmp_path / "RTE.tsv", [("0", "entailment"), ("1", "not_entailment")])
    assert (tmp_path / "RTE.tsv").read_text().splitlines()[1:] == [
        "0\tentailment",
        "1\tnot_entailment",
    ]


def test_a_shallow_network_has_no_last_four_layers(monkeypatch) -> None:
    from sememe.evaluation import RunSettings, compare_features

    asked = []

    def run(model, holdings, settings, **_):
        asked.append(dict(settings.options))
        scores = {metric: [0.5] for metric in TAG_SETS["conll2003"].metrics}
        return outcome("conll2003", {"dev": scores})

    monkeypatch.setattr("sememe.evaluation.features.run_benchmark", run)
    monkeypatch.setattr("sememe.evaluation.features.opened", lambda model: model)
    shallow, deep = (SimpleNamespace(layer_widths=(8,) * num) for num in (3, 13))
    settings = RunSettings(options={"learning_rate": 1e-3})
    result = compare_features(shallow, None, settings)
    assert list(result.outcomes) == ["first", "second-to-last", "last", "sum-all", "fine-tuned"]
    assert asked[0] == {"learning_rate": 1e-3, "features": "first", "reader_width": 384}
    # A rate for a head on frozen layers would ruin the layers.
    assert asked[-1] == {}
    text = str(result.table())
    assert "embeddings" in text and "91.0" in text and "96.4" in text
    assert len(compare_features(deep, None, settings, with_fine_tuning=False).outcomes) == 6
