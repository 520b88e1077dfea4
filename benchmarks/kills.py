"""Kill trainings at random moments and resume them: the result must be that of a run left alone.

Every trainer, fine-tuning, the tokenizer and the ladder are started, killed (SIGKILL) at moments
that a seed draws, some of them while a file is half written, and started again, several times a
round; then the round runs to its end. Its files must equal those of an uninterrupted run bit for
bit, but for times, and nothing else may be left behind. (Threads that train word vectors are asked
for their loss now and then: of those histories only the end is compared, to nine digits.) A
campaign that was stopped itself goes on where it was.

    python benchmarks/kills.py --kills 200 --out runs/kills
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sememe
from sememe.machine import cache_dir
from sememe.text.settings import TextSettings

KILLS_A_ROUND = 6
# What tells how long something took, when or where it was: no two runs agree on it.
_TIMES = {
    "seconds", "train_s", "start_s", "tokens_per_s", "words_per_s", "started", "created", "time",
    "date", "elapsed_s", "fingerprint", "checksum",
}  # fmt: skip
_SKIPPED = (".html", ".md", ".svg")  # reports tell times
_NETWORK = {
    "validation_share": 0.0, "evaluate_batches": 0, "device": "cpu", "seed": 4, "workers": 1,
    "checkpoint_minutes": 0.002,
}  # fmt: skip
_WORDS = {"min_count": 1, "workers": 1}
_ROWS = {"batch_size": 8, "length": 16}


# ---- what is trained ----------------------------------------------------------------------------


def write_texts(folder: Path) -> None:
    """Write a text, labelled rows and sentence pairs of made-up words."""
    draw = random.Random(1)
    words = [f"w{number}" for number in range(800)]
    chances = [1 / (number + 1) for number in range(800)]
    lines = [" ".join(draw.choices(words, chances, k=20)) for _ in range(3_000)]
    rows = [f"{draw.choice('ab')} {line}" for line in lines[:600]]
    contents = {
        "text.txt": lines,
        "rows.tsv": [f"{row}\t{'good' if row[0] == 'a' else 'bad'}" for row in rows],
        "labels.txt": [f"__label__{'good' if row[0] == 'a' else 'bad'} {row}" for row in rows],
        "source.txt": lines[:300],
        "target.txt": [" ".join(reversed(line.split())) for line in lines[:300]],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, own in contents.items():
        (folder / name).write_text("\n".join(own) + "\n", encoding="utf-8")


def _static(name: str, **options: Any) -> Callable[[Path, Path], None]:
    def train(texts: Path, out: Path) -> None:
        model = getattr(sememe, name)(**_WORDS, **options)
        model.fit(
            texts / "text.txt", language="none", out=out, resume=True, checkpoint_minutes=0.001
        )

    return train


def _network(name: str, **options: Any) -> Callable[[Path, Path], None]:
    def train(texts: Path, out: Path) -> None:
        model = getattr(sememe, name)("tiny", **_NETWORK, **options)
        model.fit(texts / "text.txt", language="none", out=out, resume=True)

    return train


def _translator(name: str, **options: Any) -> Callable[[Path, Path], None]:
    def train(texts: Path, out: Path) -> None:
        shared = {key: value for key, value in _NETWORK.items() if key != "validation_share"}
        model = getattr(sememe, name)(preset="tiny", vocab_size=300, **shared, **options)
        model.fit(texts / "source.txt", texts / "target.txt", dev=False, out=out, resume=True)

    return train


def _classifier(texts: Path, out: Path) -> None:
    model = sememe.FastTextClassifier(dim=20, epochs=800, workers=1, seed=4, bucket=2_000)
    model.fit(texts / "labels.txt", out=out, resume=True, checkpoint_minutes=0.001)


def _finetuning(texts: Path, out: Path) -> None:
    parent = out.with_name("parent")
    sememe.BERT("tiny", **_NETWORK, **_ROWS, steps=2, vocab_size=300).fit(
        texts / "text.txt", language="none", out=parent, resume=True
    )
    task = sememe.Classify(
        parent, epochs=1.0, batch_size=8, length=16, seed=4, workers=1, device="cpu",
        checkpoint_minutes=0.002,
    )  # fmt: skip
    task.fit(texts / "rows.tsv", dev=False, out=out, resume=True)


def _sentences(texts: Path, out: Path) -> None:
    parent = out.with_name("parent")
    sememe.BERT("tiny", **_NETWORK, **_ROWS, steps=2, vocab_size=300).fit(
        texts / "text.txt", language="none", out=parent, resume=True
    )
    shared = {key: value for key, value in _NETWORK.items() if key != "validation_share"}
    model = sememe.SentenceModel(parent, objective="simcse", steps=150, **_ROWS, **shared)
    model.fit(texts / "text.txt", language="none", out=out, resume=True)


def _tokenizer(texts: Path, out: Path) -> None:
    settings = TextSettings(language="none")
    for kind in ("wordpiece", "bpe"):
        place = out / kind
        if not (place / "tokenizer.json").exists():
            sememe.SubwordTokenizer.train(
                texts / "text.txt", kind=kind, vocab_size=700, text=settings
            ).save(place)


def _ladder(texts: Path, out: Path) -> None:
    ladder = sememe.Ladder(
        tokens=60_000, rungs="onehot,counts,skipgram,glove,ngram,nnlm", rows=30, seeds=1, workers=1,
        device="cpu",
    )  # fmt: skip
    ladder.run(texts / "text.txt", out=out, resume=True, language="none")


TRAINERS: dict[str, Callable[[Path, Path], None]] = {
    "word2vec": _static("Word2Vec", dim=32, epochs=60, seed=4),
    "fasttext": _static("FastText", dim=20, epochs=15, seed=4, bucket=2_000),
    "classifier": _classifier,
    "glove": _static("GloVe", dim=30, epochs=150, seed=4),
    "counts": _static("Counts", dim=30, seed=4),
    "ngram": _static("NGram", order=5, validation_share=0.0),
    "doc2vec": _static("Doc2Vec", dim=32, epochs=60, seed=4),
    "nnlm": _network("NNLM", steps=250, **_ROWS, min_count=1),
    "elmo": _network("ELMo", steps=60, **_ROWS, min_count=1, start_epochs=5, input="words",
                     num_cells=16, width=16),
    "ulmfit": _network("ULMFiT", steps=60, **_ROWS, min_count=1),
    "gpt": _network("GPT", steps=60, **_ROWS, vocab_size=300),
    "bert": _network("BERT", steps=60, **_ROWS, vocab_size=300),
    "seq2seq": _translator("Seq2Seq", steps=40, batch_size=8),
    "transformer": _translator("Transformer", steps=40, batch_size=8),
    "finetuning": _finetuning,
    "sentence": _sentences,
    "tokenizer": _tokenizer,
    "ladder": _ladder,
}  # fmt: skip


# ---- one run ------------------------------------------------------------------------------------


def content(folder: Path) -> str:
    """A hash of what a run has left in its folder: names of all files, and what is in the model."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):  # which does not follow the links to shared caches
        found.update(f"{path.relative_to(folder)}\n".encode())
        is_compared = path.name != "SHA256SUMS" and path.suffix not in _SKIPPED
        if is_compared and path.is_file() and path.is_relative_to(folder / "model"):
            found.update(_bytes_of(path))
    return found.hexdigest()


def _bytes_of(path: Path) -> bytes:
    if path.suffix not in (".json", ".jsonl"):
        return path.read_bytes()
    text = path.read_text(encoding="utf-8")
    values = [
        json.loads(line) for line in (text.splitlines() if path.suffix == ".jsonl" else [text])
    ]
    if path.name == "history.json" and any("step" not in record for record in values[0]):
        values = values[0][-1:]
    return json.dumps([_without_times(value) for value in values], sort_keys=True).encode()


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        # The curve of a rung, by seconds: its end.
        kept = {**value, "history": [own[1:] for own in value.get("history", [])[-1:]]}
        return {name: _without_times(own) for name, own in kept.items() if name not in _TIMES}
    if isinstance(value, list):
        return [_without_times(own) for own in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _run(name: str, texts: Path, folder: Path) -> None:
    """Train in a process of its own, with a cache of its own: its stores are killed, too."""
    cache = folder / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for shared in ("kernels", "library"):  # these take long to make
        real = cache_dir() / shared
        real.mkdir(parents=True, exist_ok=True)
        if not (cache / shared).is_symlink():
            (cache / shared).symlink_to(real.resolve())
    os.environ["SEMEME_CACHE"] = str(cache)
    os.chdir(folder)
    if name:
        TRAINERS[name](texts, Path("model"))


def _started(name: str, texts: Path, folder: Path) -> Any:
    # Forked from a server that has imported what takes seconds, and has no threads.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sememe", "torch", "numba", "tokenizers"])
    process = context.Process(target=_run, args=(name, texts, folder))
    process.start()
    return process


def is_writing(folder: Path) -> bool:
    """Whether something is half written at this moment: all writes go through hidden names."""
    return any(not path.name.endswith(".lock") for path in folder.rglob(".*"))


class Whole(NamedTuple):
    """A run that was left alone."""

    content: str
    seconds: float


def whole_run(name: str, texts: Path, folder: Path) -> Whole:
    """Train without a kill; the server of processes is there before the clock runs."""
    shutil.rmtree(folder, ignore_errors=True)
    _started("", texts, folder).join()
    begun_s = time.monotonic()
    process = _started(name, texts, folder)
    process.join()
    if process.exitcode:
        raise SystemExit(f"{name} failed although nobody killed it, with code {process.exitcode}.")
    return Whole(content(folder), time.monotonic() - begun_s)


class Round(NamedTuple):
    """What became of one run that was killed some times."""

    trainer: str
    seed: int
    num_kills: int
    num_in_write: int
    is_equal: bool


def killed_run(
    name: str, texts: Path, folder: Path, whole: Whole, *, seed: int, most: int = KILLS_A_ROUND
) -> Round:
    """Train, killed at most so often, and compare with what came of the run left alone."""
    shutil.rmtree(folder, ignore_errors=True)
    draw, reach_s = random.Random(f"{name} {seed}"), whole.seconds
    num_kills = num_in_write = 0
    exit_code: int | None = None
    while exit_code is None:
        process = _started(name, texts, folder)
        if num_kills < most:
            process.join(draw.uniform(0.02, 0.7) * reach_s)
            # Every second one waits for a moment in which a file is half written.
            end_s = time.monotonic() + 0.5 * reach_s * (num_kills % 2)
            while process.is_alive() and time.monotonic() < end_s and not is_writing(folder):
                time.sleep(0.0005)
            process.kill()
        process.join()
        if process.exitcode == -9:
            num_kills += 1
            num_in_write += is_writing(folder)
            reach_s *= 0.8  # less is left to do
        elif process.exitcode or num_kills or reach_s < 0.01:
            exit_code = process.exitcode
        else:  # it was over before it could be killed: begin again, with less patience
            reach_s /= 2
            shutil.rmtree(folder)
    is_equal = exit_code == 0 and content(folder) == whole.content
    if is_equal:
        shutil.rmtree(folder)
    return Round(name, seed, num_kills, num_in_write, is_equal)


# ---- a campaign ---------------------------------------------------------------------------------


def campaign(out: Path, num_kills: int, names: list[str]) -> Iterator[Round]:
    """Round after round over all trainers until so many were killed; what was done stays done."""
    out = out.resolve()
    log, texts = out / "kills.jsonl", out / "texts"
    write_texts(texts)
    rounds = rounds_in(log)
    wholes: dict[str, Whole] = {}
    seed = 0
    while sum(one.num_kills for one in rounds) < num_kills:
        seed += 1
        for name in names:
            if any((one.trainer, one.seed) == (name, seed) for one in rounds):
                continue
            if name not in wholes:
                wholes[name] = whole_run(name, texts, out / f"whole-{name}")
            found = killed_run(name, texts, out / f"killed-{name}-{seed}", wholes[name], seed=seed)
            rounds.append(found)
            with log.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(found._asdict()) + "\n")
            yield found
            if sum(one.num_kills for one in rounds) >= num_kills:
                break


def rounds_in(log: Path) -> list[Round]:
    """The rounds that a campaign has written down so far."""
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [Round(**json.loads(line)) for line in lines]


def table(rounds: list[Round]) -> list[str]:
    """What a campaign has found, trainer by trainer."""
    lines = ["| trainer | rounds | kills | in a write | equal |", "| --- |" + " ---: |" * 4]
    for name in [*dict.fromkeys(one.trainer for one in rounds), "all"]:
        own = [one for one in rounds if name in (one.trainer, "all")]
        kills, writes = (sum(one[place] for one in own) for place in (2, 3))
        equal = f"{sum(one.is_equal for one in own)} of {len(own)}"
        lines.append(f"| {name} | {len(own)} | {kills} | {writes} | {equal} |")
    return lines


def main() -> None:
    """Run a campaign, or what is left of it, and print its table."""
    parser = argparse.ArgumentParser(description="Kill trainings, resume them, and compare.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("runs/kills"))
    parser.add_argument("--trainers", default=",".join(TRAINERS))
    given = parser.parse_args()
    for found in campaign(given.out, given.kills, given.trainers.split(",")):
        verdict = "equal" if found.is_equal else f"DIFFERS: see {given.out}"
        print(f"{found.trainer} {found.seed}: {found.num_kills} kills, {verdict}", flush=True)
    print("\n".join(table(rounds_in(given.out / "kills.jsonl"))))


if __name__ == "__main__":
    main()
