"""Ladders on other texts: Chinese, the user's files and models, fine-tuning, and what fails."""

from __future__ import annotations

import io
import shlex
import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ladder_texts import TOPICS, chinese_documents, documents, write
from rich.cells import cell_len
from rich.console import Console
from sample_results import sample_results
from typer.testing import CliRunner

from sememe.cli import app
from sememe.errors import InputError, OptionError, WriteError
from sememe.ladder.results import Results
from sememe.ladder.running import Ladder
from sememe.ladder.tasks import parse_tasks, user_questions
from sememe.ladder.view import View, score_tables, scores_line
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

FEW = {"workers": 1, "rows": 30, "seeds": 2, "device": "cpu", "min_count": 1}


def check_intervals(results: Results) -> None:
    """Every score has an interval over its questions, around it."""
    scored = [cell for cell in results.cells if cell.mean is not None]
    assert scored
    for cell in scored:
        low, high = cell.interval
        assert low - 1e-6 <= cell.mean <= high + 1e-6, cell
        assert high - low > 0 or cell.mean in (0, 100), cell


def means(results: Results, rung: str) -> dict[str, float]:
    cells = [cell for cell in results.cells if cell.rung == rung and cell.mean is not None]
    return {cell.task: cell.mean for cell in cells}


def test_a_chinese_text_is_climbed(tmp_path):
    pytest.importorskip("torch")
    corpus = write(tmp_path / "中文.jsonl", chinese_documents(200, sentences=26))
    ladder = Ladder(tokens=40_000, rungs="onehot,skipgram,fasttext,ngram,bert", **FEW)
    results = ladder.run(corpus, out=tmp_path / "out", language="zh")
    assert [rung.state for rung in results.rungs] == ["done"] * 5, results.rungs
    assert results.corpus.language == "zh" and results.corpus.name == "中文.jsonl"
    found = means(results, "skipgram")
    # Each of the documents has one of three topics: whoever tells those is right three times as
    # often as chance. Sentences of another topic are told too.
    chance = results.task("origin").baselines["chance"]
    assert found["origin"] > 2 * chance and found["next"] > 60, (found, chance)
    assert found["belonging"] > 50  # chance 25
    assert means(results, "ngram")["perplexity"] < 40
    assert "hidden" in means(results, "bert") and "next" in means(results, "bert")
    assert results.looks.pca is not None and set(results.looks.pca.points) >= {"skipgram", "bert"}
    tokens = results.looks.attention.tokens
    assert tokens[0] == "[CLS]" and np.allclose(
        np.sum(results.looks.attention.weights, 1), 1, atol=0.01
    )


def test_commands_train_the_same_again(tmp_path):
    pytest.importorskip("torch")
    corpus = write(tmp_path / "text.jsonl", documents(40))
    ladder = Ladder(tokens=2_000, rungs="skipgram,elmo,bert", **FEW)
    results = ladder.run(corpus, out=tmp_path / "my runs", lowercase=False)
    for rung in results.rungs:
        words = shlex.split(rung.command)[1:]
        words[words.index("--out") + 1] = str(tmp_path / "again")
        found = CliRunner().invoke(app, [*words, "--workers", "1"])
        assert found.exit_code == 0, (rung.command, found.output)
        files = [Path(rung.path) / "model.safetensors", tmp_path / "again" / "model.safetensors"]
        assert files[0].read_bytes() == files[1].read_bytes(), rung.command
        shutil.rmtree(tmp_path / "again")


def test_a_first_skipgram_is_part_of_what_a_rung_cost(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from sememe.models.elmo import model

    start = model.start_with_skipgram

    def slow(*given):
        time.sleep(1.0)
        return start(*given)

    monkeypatch.setattr(model, "start_with_skipgram", slow)
    corpus = write(tmp_path / "text.jsonl", documents(40))
    results = Ladder(tokens=2_000, rungs="elmo", **FEW).run(corpus, out=tmp_path / "out")
    rung = results.rung("elmo")
    assert rung.train_s >= 1.0 + rung.history[-1].seconds
    assert rung.tokens > rung.options["start_epochs"] * results.corpus.train_words > 0
    assert any("ELMo started from skip-gram" in note for note in results.notes)


def test_files_that_are_sorted_by_label_are_drawn_from(tmp_path):
    lines = [f"{label}\tthe {word} {n}" for label, word in (("a", "ship"), ("b", "barn"))
             for n in range(150)]  # fmt: skip
    for name in ("train", "test"):
        (tmp_path / f"{name}.tsv").write_text("\n".join(["label\ttext", *lines]), encoding="utf-8")
    places = (str(tmp_path / "train.tsv"), str(tmp_path / "test.tsv"))
    ladder = Ladder(tokens=2_000, rungs="onehot", tasks={"classify": places}, **FEW)
    task = ladder.run(write(tmp_path / "a.jsonl", documents(40)), out=tmp_path / "out").task(
        "classify"
    )
    assert task.baselines["chance"] == 50 and task.baselines["most frequent"] < 60


def test_files_of_one_name_are_columns_of_their_own(tmp_path):
    for folder, line in (("one", "ship sailor 9"), ("two", "ship barn 1")):
        (tmp_path / folder).mkdir()
        lines = [line, "wheat barn 8", "judge oven 2", "oven bread 9"]
        (tmp_path / folder / "pairs.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    ladder = Ladder(tokens=2_000, rungs="counts", words=[tmp_path / "one", tmp_path / "two"], **FEW)
    results = ladder.run(write(tmp_path / "a.jsonl", documents(40)), out=tmp_path / "out")
    found = means(results, "counts")
    assert found["pairs"] != found["pairs-2"]


def _labelled(tmp_path):
    texts = documents(80, sentences=1, seed=5)
    labels = [list(TOPICS)[index % 4] for index in range(80)]
    lines = [f"{label}\t{text}" for label, text in zip(labels, texts, strict=True)]
    files = []
    for name, part in (("train", lines[:60]), ("test", lines[60:])):
        files.append(tmp_path / f"{name}.tsv")
        files[-1].write_text("\n".join(["label\ttext", *part]) + "\n", encoding="utf-8")
    tagged = []
    for name, part in (("train", texts[:60]), ("test", texts[60:])):
        rows = [[(w, "B-X" if w in TOPICS["sea"] else "O") for w in t[:-1].split()] for t in part]
        tagged.append(tmp_path / f"{name}.conll")
        blocks = ["\n".join(f"{word} {tag}" for word, tag in row) for row in rows]
        tagged[-1].write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return [str(file) for file in files], [str(file) for file in tagged]


def test_own_files_and_own_models_stand_beside_the_line(tmp_path):
    corpus = write(tmp_path / "text.jsonl", documents(200))
    files, tagged = _labelled(tmp_path)
    odd = tmp_path / "odd.txt"
    odd.write_text("ship wave captain | judge\nwheat barn horse | oven\n")
    own = tmp_path / "mine"
    words = [word for topic in TOPICS.values() for word in topic.split()]
    rows = np.repeat(np.eye(4, dtype=np.float32), 10, axis=0) + 0.01
    WordVectors(Vocabulary.from_words(words), rows).save(own)
    broken = tmp_path / "broken"
    broken.mkdir()
    ladder = Ladder(
        tokens=60_000, rungs=["counts", own, broken], words=odd,
        tasks={"classify": tuple(files), "tag": tuple(tagged)}, **FEW,
    )  # fmt: skip
    results = ladder.run(corpus, out=tmp_path / "out")
    assert [task.name for task in results.tasks if task.group == "sentences"] == ["classify", "tag"]
    assert all(task.is_named == (task.group == "sentences") for task in results.tasks)
    assert results.rung("mine").title == "mine (own)" and results.rung("mine").state == "done"
    found = means(results, "mine")
    assert found["odd"] == 100.0 and found["classify"] > 90 and found["tag"] > 90
    assert means(results, "counts")["classify"] > 50
    check_intervals(results)
    assert not means(results, "broken") and results.cell("broken", "odd").why
    for table in score_tables(results, 60):
        assert table.row_count == 3 + len(
            {name for task in results.tasks for name in task.baselines} & set(_names(table))
        )


def _names(table) -> list[str]:
    return [str(cell) for cell in table.columns[0]._cells]


def test_fine_tuning_takes_the_place_of_frozen_vectors(tmp_path):
    pytest.importorskip("torch")
    corpus = write(tmp_path / "text.jsonl", documents(120))
    _, tagged = _labelled(tmp_path)
    ladder = Ladder(
        tokens=60_000, rungs="ngram,skipgram", tasks={"tag": tuple(tagged)}, finetune=True, **FEW
    )
    results = ladder.run(corpus, out=tmp_path / "out")
    assert "BiLSTM" in results.task("tag").how
    check_intervals(results)
    assert 0 <= means(results, "skipgram")["tag"] <= 100
    assert "not vectors" in results.cell("ngram", "tag").why


def test_a_task_whose_rows_have_one_label_is_refused(tmp_path):
    table = tmp_path / "one.tsv"
    table.write_text("text\tlabel\nA fine film.\tgood\nA great film.\tgood\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"one\.tsv"):
        user_questions({"classify": (str(table), str(table))}, None, None, 1)


def test_tasks_are_read_from_the_command_line():
    found = parse_tasks(["classify=a.tsv,b.tsv", "news:classify=c.tsv, d.tsv"])
    assert found == {"classify": ("a.tsv", "b.tsv"), "news:classify": ("c.tsv", "d.tsv")}
    for wrong in ("classify", "classify=a.tsv", "poetry=a,b"):
        with pytest.raises(OptionError, match="--task"):
            parse_tasks([wrong])
    with pytest.raises(OptionError, match="twice"):
        parse_tasks(["tag=a,b", "tag=c,d"])


def test_what_cannot_be_climbed_is_refused(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        Ladder(tokens=1_000, **FEW).run(tmp_path / "nowhere.txt", out=tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(WriteError, match="not a ladder"):
        Ladder(tokens=1_000, **FEW).run(documents(9), out=tmp_path / "full")
    with pytest.raises(InputError):
        ladder = Ladder(tokens=1_000, tasks={"classify": ("no.tsv", "no.tsv")}, **FEW)
        ladder.run(documents(40), out=tmp_path / "other")


class _Terminal:
    """Somewhere to draw that says it is a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None: ...

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


def test_a_terminal_shows_all_rungs_and_scores_as_they_come(tmp_path):
    corpus = write(tmp_path / "text.jsonl", documents(60))
    terminal = _Terminal()
    ladder = Ladder(tokens=10_000, rungs="onehot,counts", **FEW)
    ladder.run(corpus, out=tmp_path / "out", progress=View(stream=terminal))
    assert "counts (PPMI, SVD)" in terminal.text and "evaluating: " in terminal.text
    assert "2 rungs, 10.0 k tokens of training for each" in terminal.text


def test_a_log_gets_plain_lines(tmp_path, capsys):
    corpus = write(tmp_path / "text.jsonl", documents(60))
    ladder = Ladder(tokens=10_000, rungs="onehot,counts", **FEW)
    ladder.run(corpus, out=tmp_path / "out", progress=True)
    told = capsys.readouterr().err.splitlines()
    assert any(line.startswith("counts: ") and " MB" in line for line in told)
    again = ladder.run(corpus, out=tmp_path / "out", progress=True, resume=True)
    scores = [f"{rung.name}: {scores_line(again, rung.name)}" for rung in again.rungs]
    assert set(scores) <= set(capsys.readouterr().err.splitlines())
    ladder.run(corpus, out=tmp_path / "quiet", progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_terminal_of_any_width_gets_whole_titles_and_metrics(width):
    long = [f"analogies: {name}-analogies" for name in ("google", "msr", "ca8-semantic")] * 4
    results = sample_results("zh")
    tasks = [replace(results.tasks[n % 2], name=f"t{n}", title=t) for n, t in enumerate(long)]
    cells = [replace(cell, task=f"t{n}") for n in range(len(long)) for cell in results.cells
             if cell.task == results.tasks[n % 2].name]  # fmt: skip
    results = replace(results, tasks=[*tasks, results.tasks[3]], cells=cells)
    screen = Console(width=width, file=io.StringIO(), legacy_windows=False)
    tables = score_tables(results, width)
    for table in tables:
        screen.print(table)
    lines = screen.file.getvalue().splitlines()
    assert max(map(cell_len, lines)) <= width and "…" not in screen.file.getvalue()
    words = " ".join(lines).split()
    assert words.count("google-analogies") == 4 and words.count("Perplexity") == 1
    assert words.count("83.8") == 6 and words.count("30.4") == 1  # times stand once
    assert 1 < len(tables) <= len(long) / 2
    assert len(score_tables(results)) == 1


def test_a_short_title_is_shown_as_it_is_over_whole_baselines():
    results = sample_results()
    task = replace(results.tasks[0], title="[/名]", baselines={"unigram": 123_456.7})
    screen = Console(width=80, file=io.StringIO(), legacy_windows=False)
    screen.print(*score_tables(replace(results, tasks=[task]), 80))
    assert {"[/名]", "123,456.7"} <= set(screen.file.getvalue().split())


def test_baselines_keep_their_words_below_a_short_rung():
    results = sample_results()
    rungs = [rung for rung in results.rungs if rung.title == "BERT"]
    task = replace(results.tasks[0], baselines={"by frequency alone": 1.0})
    screen = Console(width=80, file=io.StringIO(), legacy_windows=False)
    screen.print(*score_tables(replace(results, rungs=rungs, tasks=[task]), 80))
    assert {"by", "frequency", "alone"} <= set(screen.file.getvalue().split())
