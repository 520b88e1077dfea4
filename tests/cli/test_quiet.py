"""What --quiet leaves out: progress and the word on what was saved; never results and warnings."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from sememe import cli

SMALL = ("--dim", 8, "--min-count", 1, "--workers", 1)
REMARKS = ("Saved ", "Wrote ", "Took ", "Try: ", "This corpus is small ", "Files for ")
COMMANDS = [
    ("train word2vec text.txt --out model --epochs 1", SMALL),
    ("train glove text.txt --out model --epochs 1", SMALL),
    ("train counts text.txt --out model", SMALL[:4]),
    ("train onehot text.txt --out model --min-count 1", ()),
    ("train ngram text.txt --out model --validation-share 0", ()),
    ("train tokenizer text.txt --out model --vocab-size 180", ()),
    ("train classifier labelled.txt --out model --dim 8 --epochs 1", ()),
    ("convert toy.txt folder", ()),
    ("convert toy.txt toy.bin", ()),
    ("embed toy.txt royal.txt --out royal.npy", ()),
    ("plot pca toy.txt king queen man", ()),
    ("plot heatmap toy.txt king", ()),
]


@pytest.mark.parametrize(("command", "more"), COMMANDS, ids=[words for words, _ in COMMANDS])
def test_a_quiet_command_that_only_saves_prints_nothing(sememe, corpus, vector_file, command, more):
    Path("labelled.txt").write_text("__label__good a fine film\n__label__bad a dull film\n" * 20)
    Path("royal.txt").write_text("king and queen\n")
    told = sememe(*command.split(), *more).out
    assert told.startswith(REMARKS)
    again = ("--overwrite",) if command.startswith(("train", "convert", "embed")) else ()
    quiet = sememe(*command.split(), *more, *again, "--quiet")
    assert (quiet.out, quiet.err) == ("", "")


def test_results_and_warnings_are_printed_by_a_quiet_command(sememe, corpus, vector_file):
    ran = sememe("train", "ngram", corpus, "--out", "model", "--validation-share", 0.2, "-q")
    assert ran.out.startswith("perplexity ") and ran.out.count("\n") == 1 and not ran.err
    Path("unknown.txt").write_text("zzz\n")
    ran = sememe("embed", vector_file, "unknown.txt", "--out", "v.npy", "-q")
    assert not ran.out and "no word of the vocabulary" in ran.err


def test_of_several_processes_one_speaks(sememe, vector_file, monkeypatch):
    asked = ("embed", vector_file, "unknown.txt", "--out", "v.npy", "--overwrite")
    Path("unknown.txt").write_text("zzz\n")
    for name in ("RANK", "LOCAL_RANK"):
        monkeypatch.setenv(name, "1")
    assert sememe(*asked).out.startswith("Wrote ")  # a scheduler's number, not torchrun's
    monkeypatch.setenv("WORLD_SIZE", "2")
    told = sememe(*asked)
    assert (told.out, told.err) == ("", "")
    refused = sememe("info", "nowhere", fails=True)
    assert refused.code == 2 and "nowhere" in refused.err
    monkeypatch.setenv("RANK", "0")
    assert sememe(*asked).out.startswith("Wrote ")


def test_every_command_leaves_such_words_to_one_place():
    """What `typer.echo` prints, --quiet does not hear of; `remark` is the one that asks."""
    found = []
    for path in sorted(Path(cli.__file__).parent.glob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "typer.echo" and call.args:
                text = ast.unparse(call.args[0]).lstrip("f").strip("\"'")
                found += [f"{path.name}: {text}"] if text.startswith(REMARKS) else []
    assert not found
