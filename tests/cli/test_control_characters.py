"""What words, labels and names of files hold is displayed, and never controls a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sememe.progress import shown
from sememe.vectors import WordVectors

# Clears the screen, rings, turns the line round, starts a sequence in eight bits, goes back.
EVIL = "a\x1b[2J\x07\u202e\x9b1m\rb"


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """Vectors of words, one of which would clear the screen."""
    folder = tmp_path / "v"
    WordVectors(["the", EVIL, "[red]c"], np.array([[1, 0], [1, 0.1], [0, 1]], "f4")).save(folder)
    return folder


def run(*words: str, terminal: bool) -> str:
    """What the program writes, to a terminal or into a pipe."""
    return written([sys.executable, "-m", "sememe.cli", *words], terminal)


def written(command: list[str], terminal: bool) -> str:
    """What a command writes."""
    if not terminal:
        done = subprocess.run(command, capture_output=True, check=False)
        return (done.stdout + done.stderr).decode("utf-8", "surrogateescape")
    leader, follower = pty.openpty()
    process = subprocess.Popen(command, stdout=follower, stderr=follower)
    os.close(follower)
    parts = []
    try:
        while part := os.read(leader, 1 << 16):
            parts.append(part)
    except OSError:  # the other end is closed
        pass
    process.wait()
    os.close(leader)
    return b"".join(parts).decode("utf-8", "surrogateescape")


def is_tame(text: str) -> bool:
    """Whether a text has no control of its own: colors of our tables may stay."""
    return not any(mark in text for mark in ("\x1b[2J", "\x07", "\u202e", "\x9b", "1m\rb"))


@pytest.mark.parametrize("terminal", [True, False])
def test_words_are_displayed(vectors: Path, terminal: bool) -> None:
    found = run("neighbors", str(vectors), "the", terminal=terminal)
    assert is_tame(found) and "a\\u001b[2J\\u0007" in found and "[red]c" in found


def test_json_stays_json(vectors: Path) -> None:
    found = run("neighbors", str(vectors), "the", "--json", terminal=False)
    assert is_tame(found) and EVIL in [answer["word"] for answer in json.loads(found)["the"]]


@pytest.mark.parametrize("terminal", [True, False])
def test_names_of_files_in_errors_are_displayed(tmp_path: Path, terminal: bool) -> None:
    found = run("info", str(tmp_path / EVIL), terminal=terminal)
    assert is_tame(found) and "1b[2J" in found


@pytest.mark.parametrize("terminal", [True, False])
def test_labels_above_a_table_are_displayed(terminal: bool) -> None:
    """A table of confusions has a column for each label."""
    program = (
        "import sys; from sememe.cli.program import print_table; "
        "print_table(['label', *sys.argv[1:]], [['x', 1, 2]], always_headed=True)"
    )
    found = written([sys.executable, "-c", program, EVIL, "[red]c"], terminal)
    assert is_tame(found) and "a\\u001b[2J\\u0007" in found and "[red]c" in found


def test_lines_and_tabs_stay() -> None:
    assert shown("a\tb\nc 猫") == "a\tb\nc 猫"
    assert shown("\x00\x7f\udcff") == "\\u0000\\u007f\\udcff"
