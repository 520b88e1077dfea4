"""The table of a report: every figure, what is best, what is missing and why, what was run."""

import io
import json
import math
import re
from dataclasses import replace

import pytest
from report_reader import Reader, rows_of, table_with
from rich.console import Console
from rich.live import Live
from sample_results import sample_results

from sememe.ladder.report import write_report
from sememe.ladder.report.formatting import count, duration, score
from sememe.ladder.report.pages import markdown, page
from sememe.ladder.report.summary import summary
from sememe.ladder.report.tables import in_parts, mean_ranks, near_best, overview
from sememe.ladder.results import Budget, Cell, Results, Rung
from sememe.ladder.view import View, score_tables, scores_line


def test_every_figure_of_the_json_is_in_both_tables(tmp_path):
    results = sample_results()
    write_report(results, tmp_path)
    content = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert Results.load(tmp_path).cells[0] == results.cells[0]
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    rows = rows_of(Reader((tmp_path / "report.html").read_text(encoding="utf-8")))
    names = [task["name"] for task in content["tasks"]]
    titles = {rung["name"]: rung["title"] for rung in content["rungs"]}
    written = re.search(r"## The table\n\n(.*?)\n\n", text, re.S)
    assert written
    of_scores = {line.split(" | ")[0].strip("| *"): line.split(" | ")
                 for line in written.group(1).splitlines()}  # fmt: skip
    for cell in content["cells"]:
        column = names.index(cell["task"])
        shown = rows[titles[cell["rung"]]][column]
        told = of_scores[titles[cell["rung"]]][column + 1]
        wanted = f"{cell['mean']:.1f} ± {cell['sd']:.1f}" if cell["mean"] is not None else "–"
        assert wanted in shown and wanted in told
    for task in content["tasks"]:
        for name, value in task["baselines"].items():
            assert rows[name][names.index(task["name"])] == f"{value:.1f}"
            assert of_scores[name][names.index(task["name"]) + 1].strip(" |") == f"{value:.1f}"
    for rung in content["rungs"]:
        if rung["state"] == "done":
            shown = Reader((tmp_path / "report.html").read_text(encoding="utf-8"))
            costs = table_with(shown, "Tokens seen")[rung["title"]]
            known = (
                (duration, rung["train_s"]), (count, rung["tokens"]),
                (count, rung["tokens_per_s"]), (count, rung["parameters"]),
            )  # fmt: skip
            assert costs[1:5] == [show(value) if value else "–" for show, value in known]


def test_the_best_is_marked_and_what_cannot_be_told_from_it_too():
    results = sample_results()
    text = page(results)
    assert "<strong>71.4</strong>" in text and "<strong>83.8</strong>" in text
    assert near_best(results, results.task("package")) == {"bert"}
    assert "<u>71.0</u>" in text
    assert near_best(results, results.task("odd")) == set()
    below = re.findall(r"<td[^>]*class=\"low\"[^>]*>.*?</td>", text)
    assert len(below) == 3 and all("▽" in cell for cell in below)  # one-hot twice, skip-gram once
    told = markdown(results, {})
    assert "**71.4 ± 0.7**" in told and "71.0 ± 1.1 ≈" in told and "24.8 ± 1.0 ▽" in told


def test_where_all_are_equal_nobody_is_the_best():
    results = sample_results()
    cells = [replace(c, scores=[44.7], mean=44.7, sd=None) if c.task == "senses" else c
             for c in results.cells]  # fmt: skip
    equal = replace(results, cells=cells)
    assert "<strong>44.7</strong>" not in page(equal) and "**44.7**" not in markdown(equal, {})
    assert "Senses" not in summary(equal)[0]
    alone = [cell for cell in results.cells if (cell.rung, cell.task) != ("bert", "senses")]
    alone = [cell for cell in alone if (cell.rung, cell.task) != ("onehot", "senses")]
    assert "<strong>50.0</strong>" not in page(replace(results, cells=alone))
    assert "over 2 repetitions; a score without ± was measured once" in page(equal)


def test_a_lower_perplexity_is_the_better_one():
    results = sample_results()
    cells = [cell for cell in results.cells if cell.task != "ppl"]
    cells += [
        Cell(rung="bert", task="ppl", scores=[900.0], mean=900.0),
        Cell(rung="skipgram", task="ppl", scores=[120.0], mean=120.0),
    ]
    text = page(replace(results, cells=cells))
    assert "<strong>120.0</strong>" in text
    assert re.search(r'class="low"[^>]*><span>900.0</span><span class="below"', text)


def test_a_gap_says_why_on_hover_and_as_a_footnote():
    text = page(sample_results())
    why = "It gives no probabilities."
    assert text.count(f'title="{why}"') == 2
    number = re.search(r'<li id="why-(\d)">It gives no probabilities', text)
    assert number and text.count(f'href="#why-{number.group(1)}"') == 2
    assert "It fills gaps and foresees nothing." in text
    told = markdown(sample_results(), {})
    assert "– (1)" in told and "1. It gives no probabilities." in told


def test_rungs_that_failed_or_were_left_out_keep_their_line():
    rows = rows_of(Reader(page(sample_results())))
    assert rows["GPT"] == ["Failed: the loss ran away."]
    assert rows["ELMo"] == ["Skipped: not asked for."]
    assert "GPT failed; ELMo was skipped" in " ".join(summary(sample_results()))
    told = markdown(sample_results(), {})
    assert "Failed: the loss ran away." in told


def test_ranks_compare_only_models_that_were_asked_the_same():
    ranks = mean_ranks(sample_results())
    assert ranks is not None
    assert [task.name for task in ranks.tasks] == ["odd", "package", "senses"]
    assert ranks.means == pytest.approx(
        {"onehot": (3 + 3 + 2.5) / 3, "skipgram": (1 + 1 + 2.5) / 3, "bert": (2 + 2 + 1) / 3}
    )
    text = page(sample_results())
    assert "Odd one out, Which package and Senses" in text
    one = replace(sample_results(), tasks=sample_results().tasks[:1])
    assert mean_ranks(one) is None
    assert "There is no mean rank" in page(one)


def test_a_name_that_the_user_gave_stays_as_it_was_written():
    results = sample_results()
    first, second, *others = results.tasks
    first = replace(first, title="sst2", is_named=True)
    results = replace(results, tasks=[first, replace(second, title="origin"), *others])
    text = page(results)
    assert "sst2" in text and "Sst2" not in text and "Origin" in text


def test_intervals_stand_beside_the_scores():
    results = sample_results()
    assert 'class="interval"' not in page(results)
    assert "95 % interval" not in page(results) + markdown(results, {})
    cells = [
        replace(c, interval=[80.25, 87.0]) if (c.rung, c.task) == ("skipgram", "odd") else c
        for c in results.cells
    ]
    known = replace(results, cells=cells, seeds=[1])
    text, told = page(known), markdown(known, {})
    assert text.count('<span class="interval">80.2 – 87.0</span>') == 1
    assert "95 % interval: 80.2 to 87.0" in text
    assert "**83.8 ± 0.8 (80.2 – 87.0)**" in told
    for own in (text, told):
        assert "bounds are the 95 % interval over the questions" in own and "one seed" in own
    again = Results.from_dict(known.to_dict())
    assert again.cell("skipgram", "odd").interval == [80.25, 87.0]


def test_one_seed_has_no_deviation():
    results = sample_results()
    cells = [replace(c, scores=c.scores[:1], sd=None) for c in results.cells]
    text = page(replace(results, cells=cells, seeds=[1]))
    rows = rows_of(Reader(text))
    assert rows["BERT"][0].strip() == "47.8"
    assert "Each score was measured once" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (math.nan, "–"), (-0.04, "0.0"), (-3.2, "−3.2"), (63.25, "63.2"),
     (12345.6, "12,346")],
)  # fmt: skip
def test_scores_in_text(value, shown):
    assert score(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0.0 s"), (0.03, "< 0.1 s"), (9.3, "9.3 s"), (59.6, "1 min"), (90, "1 min 30 s"),
     (3600, "1 h"), (5400, "1 h 30 min")],
)  # fmt: skip
def test_durations_in_text(seconds, shown):
    assert duration(seconds) == shown


def test_the_summary_says_what_the_metrics_say():
    text = " ".join(summary(sample_results()))
    assert "Three models" in text and "45.0 k words of English" in text and "30 s" in text
    # One-hot: 1 of 3; skip-gram: 2 of 3; BERT: 3 of 3.
    assert "6 of 9 scores are above the best baseline of their column." in text
    assert (
        "contextual models reach 71.8 %, static vectors reach 50.0 %, mean of context vectors 68.1"
        in text.replace("\u00a0", " ")
    )


def test_the_report_starts_with_the_takeaway():
    results = sample_results()
    takeaway = (
        "With 30 s of training each, word2vec, skip-gram is best in 2 of 4 tasks, most clearly in "
        "Odd one out (83.8 %, next best 47.8 %); BERT is best in 1 of 4 tasks: Senses (71.8 %, "
        "next best 50.0 %)."
    )
    assert summary(results)[0].replace("\u00a0", " ") == takeaway
    assert markdown(results, {}).split("\n\n")[1].replace("\u00a0", " ") == takeaway
    shown = page(results).replace("\u00a0", " ")
    assert f'<h1>The ladder</h1>\n<p class="lead">{takeaway}</p>' in shown
    # A lower perplexity leads, a negative score too; without scores there is nothing to say.
    cells = [
        Cell(rung="bert", task="ppl", scores=[900.0], mean=900.0),
        Cell(rung="gpt", task="ppl", scores=[120.0], mean=120.0),
        Cell(rung="bert", task="odd", scores=[-5.0], mean=-5.0),
        Cell(rung="gpt", task="odd", scores=[-9.0], mean=-9.0),
    ]
    told = summary(replace(results, cells=cells))[0].replace("\u00a0", " ")
    assert "GPT is best in 1 of 4 tasks: Perplexity (perplexity 120.0, next best perp" in told
    assert "BERT is best in 1 of 4 tasks: Odd one out (−5.0 %, next best −9.0 %)" in told
    assert summary(replace(results, cells=[]))[0].startswith("Three models")


def test_the_caveat_about_short_budgets_is_next_to_its_rows():
    results = sample_results()
    caveat = "30 seconds is too short to train a useful BERT."
    lines = markdown(results, {}).splitlines()
    contextual = [i for i, line in enumerate(lines) if line.startswith(("| BERT |", "| ELMo |"))]
    assert lines[contextual[1] + 1].startswith(f"| *{caveat}* |")
    body = next(part for part in page(results).split("<tbody") if ">BERT</th>" in part)
    assert caveat in body and page(results).count(caveat) == 1
    console = Console(width=200, record=True, file=io.StringIO())
    for table in score_tables(results, 200):
        console.print(table)
    assert caveat in console.export_text()
    # A long training, a large network and a model that was trained elsewhere need none.
    large = [replace(rung, parameters=10**8) for rung in results.rungs]
    other = [replace(rung, tokens=0) for rung in results.rungs]
    # Nor does a network that wins several columns against word vectors.
    best = [replace(c, mean=99.0) if c.rung == "bert" and c.mean else c for c in results.cells]
    for changed in (
        {"budget": Budget(seconds=7_200)}, {"rungs": large}, {"rungs": other}, {"cells": best},
    ):  # fmt: skip
        assert "too short" not in page(replace(results, **changed))
    assert replace(results, budget=Budget(seconds=300)).caveat.startswith("5 minutes is too short")


def test_models_that_learned_elsewhere_are_not_said_to_have_learned_here():
    results = sample_results()
    own = Rung(name="mine", title="runs/mine", family="static", state="done", megabytes=3.0)
    cells = [Cell(rung="mine", task="odd", scores=[90.0, 90.0], mean=90.0, sd=0.0)]
    more = replace(results, rungs=[*results.rungs, own], cells=[*results.cells, *cells])
    told = " ".join(summary(more))
    assert "Three models" in told
    assert "runs/mine was not trained here" in told
    text = page(more)
    assert "No training time is known for One-hot and runs/mine" in text
    titles = re.findall(r"<title>(runs/mine: [^<]*)</title>", text)
    assert titles and all("MB" in title for title in titles)


def test_what_was_run_is_told():
    results = sample_results()
    shown = "".join(Reader(page(results)).text)
    told = markdown(results, {})
    for text in (shown, told):
        assert "sememe ladder --budget 30s" in text and "sememe train bert" in text
        assert "numpy 2.1.0" in text and "1, 2" in text and "2 cores of a chip, 8 GiB" in text
        assert "900 documents, 45,000 words" in text and "Every tenth is held out." in text
        assert "Vectors are frozen in sentence tasks." in text
    assert "num_layers 2, width 128" in shown and "init" not in shown
    assert "`` sememe train word2vec --out 'my `runs`' ``" in told


def test_a_wide_table_is_folded_between_groups():
    results = sample_results()
    groups = ["words"] * 7 + ["sentences"] * 5 + ["senses"] + ["language model"] * 2
    tasks = [replace(results.tasks[0], name=f"t{n}", title=f"analogies: set-{n}", group=group)
             for n, group in enumerate(groups)]  # fmt: skip
    cells = [replace(cell, task=task.name, mean=10.0 + n, scores=[10.0 + n], sd=None)
             for n, task in enumerate(tasks) for cell in results.cells
             if cell.task == "odd"]  # fmt: skip
    wide = replace(results, tasks=tasks, cells=cells)
    assert [[task.name for task in part.tasks] for part in in_parts(wide)] == [
        [f"t{n}" for n in range(7)], [f"t{n}" for n in range(7, 15)],
    ]  # fmt: skip
    reader, told = Reader(page(wide)), markdown(wide, {})
    # Folded away below an overview with a column for each group.
    short, first, second = (rows_of(reader, index)["BERT"] for index in (0, 1, 2))
    assert short[:3] == ["13.0 ▽", "19.0 ▽", "22.0 ▽"]
    assert first[:7] == [f"{10 + n}.0 ▽" for n in range(7)]
    assert second[:8] == [f"{10 + n}.0 ▽" for n in range(7, 15)]
    assert first[7:] == second[8:] == ["1 min 1 s", "18.2"]
    lines = [line for line in told.splitlines() if line.startswith("| BERT | 1")]
    assert [line.count("▽") for line in lines] == [4, 7, 8]
    assert in_parts(results) == [results] and in_parts(replace(results, tasks=[]))
    # One group alone is cut evenly; what fits stays whole.
    assert [len(part.tasks) for part in in_parts(replace(wide, tasks=[
        replace(task, group="words") for task in tasks]))] == [8, 7]  # fmt: skip
    assert len(in_parts(replace(wide, tasks=tasks[:11]))) == 1


def test_the_overview_has_one_column_for_each_group():
    results = sample_results()
    more = replace(results.tasks[1], name="topic", title="topic", baselines={"chance": 40.0})
    rare = replace(results.tasks[1], name="rare", title="rare")
    tasks = [results.tasks[0], results.tasks[1], more, rare, *results.tasks[2:]]
    cells = [
        *results.cells,
        Cell(rung="skipgram", task="topic", scores=[50.0, 54.0], mean=52.0, sd=2.83),
        Cell(rung="onehot", task="topic", scores=[30.0, 30.0], mean=30.0, sd=0.0),
        Cell(rung="bert", task="topic", scores=[60.0, 62.0], mean=61.0, sd=1.41),
        Cell(rung="bert", task="rare", scores=[90.0], mean=90.0),
    ]
    wide = replace(results, tasks=tasks, cells=cells)
    short = overview(wide)
    assert [task.title for task in short.tasks] == [
        "Odd one out",
        "Sentences",
        "Senses",
        "Perplexity",
    ]
    mean = short.tasks[1]
    # One task has a score of BERT alone: a mean over it would compare models on other tasks.
    assert mean.what == "Sentences: mean of Which package and topic."
    assert mean.baselines == {"best baseline": pytest.approx((14.8 + 40.0) / 2)}
    found = {rung: short.cell(rung, mean.name) for rung in ("onehot", "skipgram", "bert")}
    assert found["skipgram"].scores == pytest.approx([(70.9 + 50.0) / 2, (71.9 + 54.0) / 2])
    assert found["skipgram"].mean == pytest.approx((71.4 + 52.0) / 2)
    assert found["skipgram"].sd == pytest.approx(math.sqrt(2) * 1.25)
    assert short.best(mean.name) == ["bert"]
    reader = Reader(page(wide))
    rows = rows_of(reader)
    assert rows["BERT"][1].strip() == "66.0 ± 1.3" and len(rows["BERT"]) == 6
    assert rows["best baseline"][1] == "27.4"
    assert rows_of(reader, 1)["BERT"][3].strip() == "90.0", "all tasks are below, folded away"
    assert [tag for tag, _ in reader.tags].count("details") >= 5
    # A group with one complete task is that task; where nothing is saved there is one table.
    assert overview(results).tasks[0].name == "odd"
    assert "All 4 tasks" not in page(results) and "All 6 tasks" in page(wide)
    told = markdown(wide, {})
    assert "### All 6 tasks" in told and "Sentences: mean of Which package and topic." in told


def test_the_summary_says_no_more_of_the_time_than_was_given():
    assert "with a budget of 30 s of training each on 2 cores" in summary(sample_results())[1]


def test_a_figure_and_its_unit_stay_on_one_line():
    noted = replace(sample_results(), notes=["GPT has 69.0 % here"])
    assert "GPT has 69.0\u00a0% here." in page(noted)
    assert "68.1\u00a0%." in summary(noted)[-2]


def counted(num: dict[str, int]) -> Results:
    """Made results whose column "odd" was asked so many questions of each rung."""
    results = sample_results()
    cells = [
        replace(cell, num=num[cell.rung], few_questions=num[cell.rung] < 30)
        if cell.task == "odd"
        else cell
        for cell in results.cells
    ]
    return replace(results, cells=cells)


def test_the_counts_of_a_report_are_those_of_its_scores():
    results = counted({"onehot": 107, "skipgram": 107, "bert": 107})
    for text in (page(results), markdown(results, {})):
        assert "107 test questions" in text or "107 of" in text
    results = counted({"onehot": 61, "skipgram": 107, "bert": 90})
    for text in (page(results), markdown(results, {})):
        assert "61 to 107" in text
    assert "over 61 questions" in page(results)


def test_a_score_of_few_questions_is_marked_wherever_it_stands():
    few = counted({"onehot": 29, "skipgram": 30, "bert": 31})
    none = counted({"onehot": 30, "skipgram": 30, "bert": 31})
    assert "24.8 ± 1.0\\*" in markdown(few, {}) and "fewer than 30 questions" in markdown(few, {})
    assert "83.8 ± 0.8\\*" not in markdown(few, {}) and "\\*" not in markdown(none, {})
    assert 'class="few">*<' in page(few) and 'class="few"' not in page(none)
    assert [cell["few_questions"] for cell in few.to_dict()["cells"]].count(True) == 1
    console = Console(width=200, record=True, file=io.StringIO())
    for table in score_tables(few, 200):
        console.print(table)
    told = console.export_text()
    assert "24.8 ± 1.0*" in told and "fewer than 30 questions" in told
    assert "odd one out 24.8*" in scores_line(few, "onehot").lower()


def test_names_of_models_and_files_cannot_control_the_terminal():
    results = sample_results()
    rungs = [replace(rung, title=f"{rung.title}\x1b[2J") for rung in results.rungs]
    tasks = [replace(task, title=f"{task.title}\x1b[2J") for task in results.tasks]
    screen = io.StringIO()
    for table in score_tables(replace(results, rungs=rungs, tasks=tasks), 200):
        Console(width=200, file=screen, force_terminal=True).print(table)
    view = View(quiet=False, stream=io.StringIO())
    with Live(console=Console(width=400, file=screen, force_terminal=True)) as view._table:
        view.show(replace(results, rungs=rungs, tasks=tasks))
    assert "\x1b[2J" not in screen.getvalue() and "\\u001b[2J" in screen.getvalue()
