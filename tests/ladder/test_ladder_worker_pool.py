"""Where there is a GPU, helpers train in two lanes and ask side by side: the table is the same."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
from ladder_texts import documents, write

from sememe.ladder import plan, rung_steps, running, worker_pool
from sememe.ladder.config import LadderConfig
from sememe.ladder.plan import make_plan
from sememe.ladder.results import Machine, Results, Rung
from sememe.ladder.rung_steps import Brief
from sememe.ladder.rungs import SPECS, choose
from sememe.ladder.running import Ladder
from sememe.ladder.text import open_text
from sememe.ladder.view import scores_line
from sememe.ladder.worker_pool import Helper, Job, Status
from sememe.progress import SILENT
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import locked
from sememe.text.settings import TextSettings

pytest.importorskip("torch")

LARGE = Machine(
    cores=8, memory=64 << 30, processor="x", gpu="made up", gpu_memory=24 << 30, system="Linux"
)
FEW = {"workers": 1, "rows": 24, "seeds": 1, "device": "cpu", "min_count": 1, "preset": "tiny"}


@pytest.fixture
def corpus(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(running, "this_machine", lambda device: LARGE)
    return write(tmp_path / "text.jsonl", documents(80))


def metrics(results: Results) -> dict[tuple[str, str], tuple[list[float], str]]:
    return {(cell.rung, cell.task): (cell.scores, cell.why) for cell in results.cells}


@pytest.mark.slow
def test_beside_each_other_rungs_come_to_the_same_table(corpus, tmp_path, monkeypatch, capsys):
    ladder = Ladder(tokens=20_000, rungs="onehot,skipgram,bert", **FEW)
    monkeypatch.setattr(plan, "_helpers", lambda config, machine: 0)
    alone = ladder.run(corpus, out=tmp_path / "alone")
    monkeypatch.setattr(plan, "_helpers", lambda config, machine: 2)
    together = ladder.run(corpus, out=tmp_path / "together")
    assert [rung.state for rung in together.rungs] == ["done"] * 3
    assert metrics(together) == metrics(alone) and len(together.cells) == 3 * len(alone.tasks)
    assert together.looks.pca == alone.looks.pca and together.looks.attention is not None
    said = "had the GPU to themselves"
    assert said in " ".join(together.notes) and said not in " ".join(alone.notes)
    before = (tmp_path / "together" / "models" / "bert" / "model.safetensors").stat().st_mtime_ns
    capsys.readouterr()
    again = ladder.run(corpus, out=tmp_path / "together", resume=True, progress=True)
    told = capsys.readouterr().err.splitlines()
    for rung in again.rungs:  # what is finished is told, too
        assert sum(line.startswith(f"{rung.name}: ") for line in told) == 2
        assert f"{rung.name}: {scores_line(again, rung.name)}" in told
    after = (tmp_path / "together" / "models" / "bert" / "model.safetensors").stat().st_mtime_ns
    assert metrics(again) == metrics(alone) and before == after


@pytest.mark.slow
def test_a_helper_that_dies_takes_one_piece_of_work_with_it(corpus, tmp_path, monkeypatch):
    start = worker_pool.subprocess.Popen
    commands = []

    def dying(command, **more):
        commands.append(command)
        # The first helper, that of the networks, and the first that asks are killed at once.
        is_killed = len(commands) in (1, 4)
        own = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
        return start(own if is_killed else command, **more)

    monkeypatch.setattr(worker_pool.subprocess, "Popen", dying)
    monkeypatch.setattr(plan, "_helpers", lambda config, machine: 1)
    ladder = Ladder(tokens=20_000, rungs="counts,nnlm,bert", **FEW)
    results = ladder.run(corpus, out=tmp_path / "out")
    assert [rung.state for rung in results.rungs] == ["done", "failed", "done"]
    assert "code -9" in results.rung("nnlm").why
    lost = [cell for cell in results.cells if "code -9" in cell.why]
    assert {cell.rung for cell in lost} == {"bert"} and len(lost) < len(results.tasks)
    assert len(results.cells) == 2 * len(results.tasks)
    again = ladder.run(corpus, out=tmp_path / "out", resume=True)
    assert [rung.state for rung in again.rungs] == ["done"] * 3
    assert len(again.cells) == 3 * len(again.tasks)
    assert not any("code -9" in cell.why for cell in again.cells)


def test_a_helper_does_not_outlive_its_ladder(corpus, tmp_path, monkeypatch):
    # On a busy machine it takes its time to save.
    patient = "import sememe.ladder.worker_pool as own; own.ENDING_S = 600; own.main()"
    monkeypatch.setattr(worker_pool, "_PROGRAM", patient)
    monkeypatch.setattr(worker_pool, "ENDING_S", 600)
    config = LadderConfig(tokens=5 * 10**8, rungs="skipgram", **FEW)
    text = open_text(corpus, TextSettings(), tmp_path / "text")
    brief = Brief(
        text=replace(text), plan=make_plan(config, LARGE).for_text(1), config=config,
        chosen=choose("skipgram"), words=None, tasks=None, senses=None, models=tmp_path / "models",
    )  # fmt: skip
    news: queue.Queue = queue.Queue()
    helper = Helper(brief, news)
    helper.next_of(deque([Job(SPECS["skipgram"].rung())]))
    while not isinstance(news.get(timeout=1_200)[1], Status):
        pass
    # Ctrl-C goes to all processes of a session: heard twice it would stop without saving.
    assert os.getsid(helper._process.pid) == helper._process.pid
    helper.close()
    assert helper._process.poll() is not None
    assert not (tmp_path / "models" / "skipgram").exists()
    assert Checkpoints(tmp_path / "models" / "skipgram.checkpoints").has_one


def test_a_helper_that_tells_no_news_is_ended(corpus, tmp_path, monkeypatch):
    start = worker_pool.subprocess.Popen
    noise = [sys.executable, "-c", "print('Hello!', flush=True); input()"]
    monkeypatch.setattr(worker_pool.subprocess, "Popen", lambda _, **more: start(noise, **more))
    news: queue.Queue = queue.Queue()
    helper = Helper("a brief", news)
    assert news.get(timeout=1_200) == (helper, None)
    assert "The process that did this ended with code" in helper.ending


def test_a_training_whose_helper_ended_goes_on_from_its_checkpoint(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "_helpers", lambda config, machine: 0)
    ladder = Ladder(tokens=20_000, rungs="counts,skipgram", **FEW)
    found = ladder.run(corpus, out=tmp_path / "out")
    ended = f"{worker_pool.ENDED} with code -9."
    rungs = [replace(rung, state="failed", why=ended) for rung in found.rungs]
    replace(found, rungs=rungs).save(tmp_path / "out")
    forgotten: list[Path] = []
    monkeypatch.setattr(rung_steps, "forget", forgotten.append)
    again = ladder.run(corpus, out=tmp_path / "out", resume=True)
    assert [(rung.state, rung.why) for rung in again.rungs] == [("done", "")] * 2
    assert forgotten == []


def test_a_rung_is_trained_by_one_process_at_a_time(corpus, tmp_path):
    config = LadderConfig(tokens=20_000, rungs="onehot", **FEW)
    text = open_text(corpus, TextSettings(), tmp_path / "text")
    brief = Brief(
        text=text, plan=make_plan(config, LARGE).for_text(1), config=config,
        chosen=choose("onehot"), words=None, tasks=None, senses=None, models=tmp_path / "models",
    )  # fmt: skip
    found: list[rung_steps.News] = []

    def train() -> None:
        found.extend(rung_steps.training(brief, SPECS["onehot"].rung(), SILENT))

    thread = threading.Thread(target=train)
    with locked(tmp_path / "models" / "onehot", SILENT.note):
        thread.start()
        thread.join(timeout=0.5)
        assert thread.is_alive() and not found
    thread.join(timeout=1_200)
    assert isinstance(found[-1], Rung) and found[-1].state == "done"
