"""Which source files a command runs through, and how often a call leaves a room for another.

Each command runs in a process of its own, through `sememe.cli:main`, watched by `sys.setprofile`.

files      Source files of sememe in which a function ran. Calls while a module is being imported
           do not count, nor do module bodies; kernels that numba compiled are not Python calls.
switches   Calls from a file of one room to a file of another; frames of other libraries between
           the two are looked through, and a generator that goes on is a call again.
crossings  The different pairs of files between which a switch happened: what a reader follows,
           whatever the number of steps.

A room is the first folder below src/sememe, or the file itself that lies there. Everything runs
twice on small texts that are written here: first unwatched, so that kernels are compiled, then on
other texts, so that no cache of texts answers.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

CPU = ["--device", "cpu", "--workers", "1"]
COMMANDS: dict[str, list[str]] = {
    "train word2vec": [
        "train", "word2vec", "word2vec.txt", "--out", "word2vec", "--epochs", "1", "--dim", "16",
        "--min-count", "2", "--workers", "1",
    ],
    "train bert": [
        "train", "bert", "bert.txt", "--out", "bert", "--preset", "tiny", "--steps", "4",
        "--batch-size", "8", "--length", "32", *CPU,
    ],
    "finetune classify": [
        "finetune", "classify", "bert", "--train", "train.csv", "--out", "task", "--epochs", "1",
        "--length", "32", *CPU,
    ],
    "predict": ["predict", "task", "rows.csv"],
    "train glove": [
        "train", "glove", "glove.txt", "--out", "glove", "--epochs", "2", "--dim", "16",
        "--min-count", "2", "--workers", "1",
    ],
    "train elmo": [
        "train", "elmo", "elmo.txt", "--out", "elmo", "--preset", "tiny", "--steps", "4",
        "--batch-size", "8", "--length", "16", "--min-count", "2", *CPU,
    ],
    "embed": ["embed", "bert", "lines.txt", "--out", "vectors.npy", "--device", "cpu"],
    "neighbors": ["neighbors", "word2vec", "river"],
    "info": ["info", "bert"],
}  # fmt: skip

_NOUNS = ["river", "bridge", "market", "garden", "doctor", "letter", "window", "forest"]
_VERBS = ["follows", "crosses", "finds", "leaves", "opens", "paints"]
_MOODS = {"good": ["bright", "kind", "lovely"], "bad": ["dull", "cruel", "broken"]}


def _sentences(dice: random.Random, num: int) -> list[tuple[str, str]]:
    """Sentences, each with the mood that its adjectives tell."""
    pairs = []
    for _ in range(num):
        mood = dice.choice(list(_MOODS))
        words = [dice.choice(_MOODS[mood]), dice.choice(_NOUNS), dice.choice(_VERBS), "the"]
        end = f"{dice.choice(_MOODS[mood])} {dice.choice(_NOUNS)}"
        pairs.append((f"The {' '.join(words)} {end}.", mood))
    return pairs


def write_texts(folder: Path, seed: int) -> None:
    """All that the commands read: a text for each training, rows with and without labels, lines."""
    dice = random.Random(seed)
    for model in ("word2vec", "bert", "glove", "elmo"):
        # A text of its own, or it would find the words of another training in the cache.
        sentences = [text for text, _ in _sentences(dice, 3_000)]
        paragraphs = [" ".join(sentences[num : num + 5]) for num in range(0, len(sentences), 5)]
        _write(folder / f"{model}.txt", [f"{paragraph}\n" for paragraph in paragraphs])
    labelled = [f"{text},{mood}" for text, mood in _sentences(dice, 200)]
    _write(folder / "train.csv", ["text,label", *labelled])
    lines = [text for text, _ in _sentences(dice, 40)]
    _write(folder / "rows.csv", ["text", *lines])
    _write(folder / "lines.txt", lines)


def _write(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@dataclass
class Tally:
    """What one thread has run."""

    num_importing: int = 0
    calls: int = 0
    switches: int = 0
    files: set[str] = field(default_factory=set)
    crossings: set[tuple[str, str]] = field(default_factory=set)


def room_of(file: str) -> str:
    """The room of a file, given by its path below src/sememe."""
    return file.split("/")[0]


class Watch:
    """A profile function that counts calls in the source files of a package."""

    def __init__(self, package: Path) -> None:
        self._prefix = f"{package}{os.sep}"
        self._files: dict[CodeType, str | None] = {}
        self._local = threading.local()
        self._tallies: list[Tally] = []

    def _file(self, code: CodeType) -> str | None:
        """A code's file below the package; None for one of another library."""
        if code not in self._files:
            is_ours = code.co_filename.startswith(self._prefix)
            path = code.co_filename.removeprefix(self._prefix).replace(os.sep, "/")
            self._files[code] = path if is_ours else None
        return self._files[code]

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Note an event of the interpreter."""
        if event not in ("call", "return"):
            return
        tally: Tally | None = getattr(self._local, "tally", None)
        if tally is None:
            tally = self._local.tally = Tally()
            self._tallies.append(tally)
        if frame.f_code.co_name == "<module>":
            tally.num_importing += 1 if event == "call" else -1
        elif event == "call" and not tally.num_importing:
            file = self._file(frame.f_code)
            if file is not None:
                self._note(tally, frame, file)

    def _note(self, tally: Tally, frame: FrameType, file: str) -> None:
        tally.calls += 1
        tally.files.add(file)
        caller, before = frame.f_back, None
        while caller is not None and before is None:
            before, caller = self._file(caller.f_code), caller.f_back
        if before is not None and room_of(before) != room_of(file):
            tally.switches += 1
            tally.crossings.add((before, file))

    def start(self) -> None:
        """Watch this thread and those that begin from now on."""
        threading.setprofile(self)
        sys.setprofile(self)

    def stop(self) -> dict[str, Any]:
        """End the watch: figures, and the names behind them."""
        sys.setprofile(None)
        threading.setprofile(None)
        tallies = list(self._tallies)
        files = sorted(set().union(*(tally.files for tally in tallies)))
        crossings = sorted(set().union(*(tally.crossings for tally in tallies)))
        return {
            "figures": {
                "files": len(files),
                "rooms": len({room_of(file) for file in files}),
                "crossings": len(crossings),
                "switches": sum(tally.switches for tally in tallies),
                "calls": sum(tally.calls for tally in tallies),
            },
            "names": {"files": files, "crossings": crossings},
        }


def watch_command(source: Path, out: str, arguments: list[str]) -> None:
    """Run a command in this process; watched where a file to write what was seen is given."""
    sys.path.insert(0, str(source))
    sys.argv = ["sememe", *arguments]
    watch = Watch(source / "sememe")
    if out:
        watch.start()
    try:
        importlib.import_module("sememe.cli").main()
    except SystemExit as end:
        if end.code:
            raise
    if out:
        seen = watch.stop()
        if not seen["figures"]["files"]:
            raise RuntimeError(f"No file of {source / 'sememe'} ran: another sememe was imported.")
        Path(out).write_text(json.dumps(seen), encoding="utf-8")


def measure_flow(source: Path) -> dict[str, dict[str, Any]]:
    """Run every command, unwatched and then watched, and tell what each ran through."""
    script = Path(__file__).with_name("structure.py")
    seen: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as place:
        own = {"SEMEME_CACHE": f"{place}/cache", "CUDA_VISIBLE_DEVICES": "", "COLUMNS": "100"}
        for seed, is_watched in enumerate((False, True)):
            folder = Path(place) / f"texts-{seed}"
            folder.mkdir()
            write_texts(folder, seed)
            for name, arguments in COMMANDS.items():
                out = str(folder / "seen.json") if is_watched else ""
                child = subprocess.run(
                    [sys.executable, script, "child", source, out, json.dumps(arguments)],
                    cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False,
                )  # fmt: skip
                if child.returncode:
                    sys.exit(f"sememe {' '.join(arguments)} failed:\n{child.stdout}{child.stderr}")
                if is_watched:
                    seen[name] = json.loads(Path(out).read_text(encoding="utf-8"))
    return seen
