"""A ladder that was killed or interrupted goes on and ends with the same table (one worker)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from ladder_texts import documents, write

from sememe.errors import InputError, OptionError, WriteError
from sememe.ladder.results import Results

pytest.importorskip("torch")

OPTIONS = (
    "--tokens", "60000", "--workers", "1", "--rungs", "onehot,counts,skipgram,nnlm", "--rows", "40",
    "--seeds", "2", "--device", "cpu", "--quiet",
)  # fmt: skip


def start(corpus: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sememe.cli", "ladder", str(corpus), "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, *OPTIONS, *more], env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def table(out: Path) -> dict[tuple[str, str], tuple[list[float], str]]:
    """Everything that must not depend on when a run was stopped."""
    results = Results.load(out)
    assert [rung.state for rung in results.rungs] == ["done"] * 4
    found = {(cell.rung, cell.task): (cell.scores, cell.why) for cell in results.cells}
    assert len(found) == len(results.cells) == 4 * len(results.tasks)  # none is asked twice
    return found | {(rung.name, "tokens"): ([rung.tokens], "") for rung in results.rungs}


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while process.poll() is None and not path.exists():
        time.sleep(0.01)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write(tmp_path_factory.mktemp("ladder") / "text.jsonl", documents(160))


@pytest.mark.slow
def test_killed_and_interrupted_it_ends_with_the_same_table(corpus, tmp_path):
    whole = start(corpus, tmp_path / "whole")
    assert whole.communicate()[0] is not None and whole.returncode == 0
    cut = tmp_path / "cut"
    first = start(corpus, cut)
    # In the middle of a rung: the first checkpoint of the slowest one has just been written.
    wait_for(cut / "models" / "nnlm.checkpoints" / "latest.json", first)
    first.kill()
    first.wait()
    assert Results.load(cut).rung("skipgram").state == "done"
    models = (cut / "models" / "skipgram" / "sememe.json").stat().st_mtime_ns
    before = (cut / "results.json").stat().st_mtime_ns
    second = start(corpus, cut, "--resume")
    while second.poll() is None and (cut / "results.json").stat().st_mtime_ns == before:
        time.sleep(0.01)
    second.send_signal(signal.SIGINT)
    told = second.communicate()[1]
    # Where all was done already, the signal may meet an interpreter that is ending.
    assert second.returncode in (0, 130, -signal.SIGINT) and "Traceback" not in told
    if second.returncode == 130:
        assert "--resume" in told
        third = start(corpus, cut, "--resume")
        assert third.communicate() and third.returncode == 0
    assert (cut / "models" / "skipgram" / "sememe.json").stat().st_mtime_ns == models
    assert table(cut) == table(tmp_path / "whole")
    assert (cut / "report.html").exists() and (cut / "report.md").exists()


def test_other_options_are_not_mixed_with_what_is_there(corpus, tmp_path):
    from sememe.ladder.running import Ladder

    few = {"tokens": 20_000, "rungs": "onehot", "rows": 24, "seeds": 1, "workers": 1}
    Ladder(**few).run(corpus, out=tmp_path / "out")
    with pytest.raises(OptionError, match=r"other options.*\(dim\)"):
        Ladder(**few, dim=7).run(corpus, out=tmp_path / "out", resume=True)
    again = Ladder(**few).run(corpus, out=tmp_path / "out", resume=True)
    assert [rung.state for rung in again.rungs] == ["done"]


def test_a_ladder_that_is_there_stays_unless_asked(corpus, tmp_path):
    from sememe.ladder.running import Ladder

    out = tmp_path / "out"
    few = {"tokens": 20_000, "rungs": "onehot", "rows": 24, "seeds": 1, "workers": 1}
    ladder = Ladder(**few)
    with pytest.raises(InputError):  # nothing was trained: the next one may begin
        Ladder(**few, words=tmp_path / "nowhere.txt").run(corpus, out=out)
    ladder.run(corpus, out=out)
    before = (out / "results.json").read_bytes()
    with pytest.raises(OptionError, match=r"out already holds a ladder: .*--resume .*--overwrite"):
        ladder.run(corpus, out=out)
    with pytest.raises(OptionError, match="`overwrite`"):
        ladder.run(corpus, out=out, resume=True, overwrite=True)
    assert (out / "results.json").read_bytes() == before
    other = Ladder(**{**few, "rungs": "counts"}).run(corpus, out=out, overwrite=True)
    assert [rung.name for rung in other.rungs] == ["counts"]
    assert not (out / "models" / "onehot").exists()


def test_questions_that_changed_are_no_continuation(corpus, tmp_path):
    from sememe.ladder.running import Ladder

    few = {"tokens": 20_000, "rungs": "onehot", "rows": 24, "seeds": 1, "workers": 1}
    rows = tmp_path / "rows.tsv"
    rows.write_text("".join(f"{side} w{n}\t{side}\n" for n in range(20) for side in "ab"))
    ladder = Ladder(**few, tasks={"classify": (str(rows), str(rows))})
    ladder.run(corpus, out=tmp_path / "out")
    rows.write_text(rows.read_text() + "a more\ta\n")
    with pytest.raises(OptionError, match=r"\(tasks\)"):
        ladder.run(corpus, out=tmp_path / "out", resume=True)


@pytest.mark.parametrize(
    "failure", [WriteError("The disk is full."), RuntimeError("CUDA out of memory.")]
)
def test_what_failed_is_tried_again(failure, corpus, tmp_path, monkeypatch):
    from sememe.ladder import rung_steps
    from sememe.ladder.running import Ladder

    few = {"tokens": 20_000, "rungs": "onehot,counts", "rows": 24, "seeds": 1, "workers": 1}
    train = rung_steps.trained

    def full(spec, *more):
        if spec.name == "counts":
            raise failure
        return train(spec, *more)

    with monkeypatch.context() as patch:
        patch.setattr(rung_steps, "trained", full)
        first = Ladder(**few).run(corpus, out=tmp_path / "out")
    assert [(rung.state, rung.why) for rung in first.rungs][1] == ("failed", str(failure))
    again = Ladder(**few).run(corpus, out=tmp_path / "out", resume=True)
    assert [(rung.state, rung.why) for rung in again.rungs] == [("done", "")] * 2
    assert {cell.rung for cell in again.cells} == {"onehot", "counts"}


def test_a_model_that_ended_before_its_entry_tells_its_whole_time(corpus, tmp_path):
    """Killed after a model was saved and before the table said so: no time of loading it."""
    from sememe.ladder.running import Ladder

    rungs = "onehot,counts,skipgram,glove,ngram,elmo"
    ladder = Ladder(tokens=20_000, rungs=rungs, rows=24, seeds=1, workers=1, device="cpu")
    whole = ladder.run(corpus, out=tmp_path / "out")
    ended = [replace(rung, state="training", train_s=0.0, history=[]) for rung in whole.rungs]
    replace(whole, rungs=ended).save(tmp_path / "out")
    manifests = {rung.name: Path(rung.path) / "sememe.json" for rung in whole.rungs}
    before = {name: path.stat().st_mtime_ns for name, path in manifests.items()}
    resumed = ladder.run(corpus, out=tmp_path / "out", resume=True)
    after = {name: path.stat().st_mtime_ns for name, path in manifests.items()}
    # One-hot keeps no time of its own: its one pass is done again.
    assert [name for name in before if before[name] != after[name]] == ["onehot"]
    assert resumed.rungs[1:] == whole.rungs[1:]
