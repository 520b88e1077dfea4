"""Damaged files of every kind end in a clean error or a right result; and failures are found."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("h5py")

sys.path.insert(0, str(Path(__file__).parent))  # xdist may not have done it yet

import campaign
import mutation
from campaign import Campaign, Cases, Outcome, spread

import sememe
from sememe.contract import KINDS
from sememe.errors import ArtifactError
from sememe.machine import available_cores

# Subjects that are quick to open: all formats of files, and no network.
QUICK = [
    "word2vec-skipgram-negative", "fasttext", "doc2vec", "counts", "onehot", "classifier",
    "classifier-quantized", "ngram", "fasttext.bin", "fasttext.vec", "table.floret",
    "classifier.bin", "classifier.ftz", "ngram.arpa", "vectors.txt", "vectors.bin.gz",
    "vectors.glove", "tokenizer-wordpiece", "tokenizer-bpe", "corpus.txt", "corpus.jsonl",
    "corpus.csv", "corpus.txt.gz", "corpus.csv.zst", "clean-corpus.txt", "clean-corpus.csv",
    "questions-pairs.tsv", "beir",
    "questions-analogies.txt", "questions-odd.txt", "token-store", "kernel-cache",
]  # fmt: skip


def check(outcomes: Iterator[Outcome], num: int) -> None:
    """Every case was run and ended well; the first failures of each kind are shown."""
    ended = list(outcomes)
    failed = {one.signature: one for one in reversed(ended) if not one.is_accepted}
    assert not failed, "\n".join(
        f"python benchmarks/fuzz.py --case {one.case}   {one.damage}: {signature}"
        for signature, one in failed.items()
    )
    assert len(ended) == num and len({one.case for one in ended}) == num
    assert {one.ending for one in ended} == set(campaign.ACCEPTED)


def test_three_hundred_cases_end_well():
    with Campaign() as running:
        check(running.run(spread(QUICK, 300)), 300)


@pytest.mark.slow
def test_twenty_thousand_cases_end_well():
    with Campaign(min(4, available_cores())) as running:
        check(running.run(spread(running.subjects(), 20_000)), 20_000)


# ---- what the campaign must be able to find -------------------------------------------------


def fails(what: str) -> Any:
    """Do what no reader may do."""
    match what:
        case "crash":
            ctypes.string_at(0)
        case "abort":
            os.abort()
        case "hang":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # as a library in a loop
            time.sleep(60)
        case "slow":
            time.sleep(60)
        case "memory":
            return [float(len(b"x" * (100 << 20)) > 0)]
        case "TypeError":
            raise TypeError("no number")
        case "refused":
            raise ArtifactError("This file is damaged; make it again.")
        case "bad message":
            raise ArtifactError("")
        case "panic":
            raise BaseException("a panic in Rust")
        case "not finite":
            return [1.0, {"value": float("nan")}]
        case "wrong result":
            return [2.0]
    return [1.0]


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cases:
    """Cases of a subject whose number says what it does."""
    import subjects

    (tmp_path / "models").mkdir()
    (tmp_path / "subject.txt").write_text("some words\n")
    monkeypatch.setattr(campaign, "MAX_SECONDS", 1.0)
    monkeypatch.setattr(campaign, "PATIENCE_S", 4.0)
    monkeypatch.setattr(campaign, "MAX_GROWTH", 64 << 20)
    monkeypatch.setattr(subjects, "subjects", lambda root: {})
    made = Cases(tmp_path)

    def subject(what: str) -> subjects.Subject:
        def ask(place: Path, questions: Any) -> dict[str, Any]:
            is_whole = place.read_text() == "some words\n" and what not in made._whole
            return {"content": [1.0] if is_whole else fails(what)}

        return subjects.Subject(what, tmp_path / "subject.txt", ask, is_checked=True)

    names = ("crash", "abort", "hang", "slow", "memory", "TypeError", "refused", "bad message",
             "panic", "not finite", "wrong result", "fine")  # fmt: skip
    made.subjects.update({name: subject(name) for name in names})
    for name in names:
        made.whole(name)
    monkeypatch.setattr(mutation, "damage", lambda *_: mutation.Damage("a test", False))
    return made


def test_every_failure_is_found_and_the_rest_of_the_batch_is_run(cases: Cases):
    endings = {
        "fine": "answered", "crash": "crash", "refused": "refused", "hang": "hang",
        "abort": "crash", "slow": "too slow", "memory": "too much memory",
        "TypeError": "TypeError", "bad message": "bad message", "panic": "BaseException",
        "not finite": "not finite", "wrong result": "wrong result",
    }  # fmt: skip
    ended = list(campaign._batch(cases, [f"{name}:1" for name in endings]))
    assert {one.case: one.ending for one in ended} == {
        f"{name}:1": ending for name, ending in endings.items()
    }
    assert all(one.damage == "a test" for one in ended)
    assert {one.case for one in ended if one.is_accepted} == {"fine:1", "refused:1"}


def test_a_case_is_the_same_when_it_is_made_again(tmp_path: Path):
    whole = {"sememe.json": '{"kind": "x", "sizes": [1, 2]}', "vocab.txt": "a\nb\nc\n"}

    def made(number: int, name: str) -> tuple[str, dict[str, bytes]]:
        place = tmp_path / name
        place.mkdir()
        for own, text in whole.items():
            (place / own).write_text(text)
        told = mutation.damage(place, Random(f"subject:{number}"), []).told
        files = [path for path in sorted(place.rglob("*")) if path.is_file()]
        return told, {
            path.name: path.read_bytes()[:1_000] for path in files if path.stat().st_size < 10**7
        }

    cases = [(made(number, f"a{number}"), made(number, f"b{number}")) for number in range(40)]
    assert all(one == other for one, other in cases)
    assert len({told for (told, _), _ in cases}) > 20


KNOWN = {
    "JSON nested 100,000 deep": ("config.json", "@deep"),
    "5,000-digit integers": ("config.json", "digits@"),
    "a link to an endless file": ("config.json", "/dev/zero"),
    "a FIFO in place of weights": ("model.safetensors", "FIFO"),
    "chained Replace normalizers": ("tokenizer.json", "chained Replace"),
    "an id of 10^9": ("tokenizer.json", "an id of 1000000000"),
    "a regex that panics": ("tokenizer.json", "a pre-tokenizer of"),
    "damaged ends of words": ("model.safetensors", "words.word_ends"),
}


@pytest.mark.parametrize("known", KNOWN)
def test_what_once_failed_comes_up_again(known: str, golden: Path, tmp_path: Path):
    """Each of these broke a version; a thousand cases of one file must hold it."""
    name, mark = KNOWN[known]
    folder = golden / ("classifier" if mark == "words.word_ends" else "bert")
    for number in range(1_000):
        path = tmp_path / name
        path.unlink(missing_ok=True)
        path.write_bytes((folder / name).read_bytes())
        if mark in mutation.change_file(path, Random(number), []).told:
            return
        if path.is_dir():
            path.rmdir()
    pytest.fail(f"no case in a thousand: {known}")


def test_every_kind_of_model_is_damaged(golden: Path):
    """A new kind needs a fixture, from which the campaign makes its cases."""
    folders = [path for path in golden.iterdir() if path.is_dir() and "tokenizer" not in path.name]
    assert {sememe.load(path).kind for path in folders} == {*KINDS}


def test_the_cases_of_a_campaign_are_spread_over_all_subjects():
    names = [f"subject-{number}" for number in range(7)]
    cases = list(spread(names, 3_000))
    assert len(cases) == len(set(cases)) == 3_000
    counts = [sum(case.startswith(f"{name}:") for case in cases) for name in names]
    assert max(counts) - min(counts) <= 1
    assert not set(spread(names, 3_000, first=500)) & set(cases)
