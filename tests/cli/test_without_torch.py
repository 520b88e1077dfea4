"""Commands where PyTorch, tokenizers and safetensors are not installed.

Every static command works; every other one is refused in one sentence that names the extra.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from missing_libraries import NEURAL, without_libraries
from recorded_notes import Notes
from sememe.ladder import text as ladder_text
from sememe.text import library
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build

# Runs every command in one process, which saves the start of Python.
PROGRAM = """
import json, sys
from typer.testing import CliRunner
from sememe.cli import app

for line in sys.stdin:
    ran = CliRunner().invoke(app, json.loads(line))
    error = ran.exception if not isinstance(ran.exception, SystemExit) else None
    print(json.dumps([ran.exit_code, ran.stdout, ran.stderr, repr(error)]), flush=True)
assert "torch" not in sys.modules
"""
TRAINING = {
    kind: f"train {kind} corpus.txt --out {kind} --min-count 1 --workers 1{more}"
    for kind, more in {
        "onehot": "", "counts": " --dim 8", "word2vec": " --dim 8 --epochs 1",
        "glove": " --dim 8 --epochs 1", "fasttext": " --dim 8 --epochs 1 --bucket 100",
        "doc2vec": " --dim 8 --epochs 1",
    }.items()
}  # fmt: skip
USING = """
neighbors {kind} cat --num 3
analogy {kind} cat dog king
similarity {kind} cat dog
odd {kind} cat dog king
info {kind}
embed {kind} texts.txt --out {kind}.npy
embed {kind} texts.txt --out {kind}-words.npy --pool words
convert {kind} {kind}.vec
"""
OTHERS = """
evaluate words word2vec --data similarity.tsv
plot pca word2vec cat dog king
plot heatmap word2vec cat dog
plot history word2vec
train word2vec corpus.txt --preview
evaluate senses word2vec --data senses.tsv
train ngram corpus.txt --out ngram
generate ngram the --max-tokens 3
suggest ngram the
evaluate perplexity ngram corpus.txt
train classifier rows.tsv --out classifier --dim 8 --epochs 2
predict classifier texts.txt
evaluate labels classifier rows.tsv
convert classifier classifier.bin
info {golden}/bert
neighbors {golden}/nnlm the
ladder corpus.txt --rungs onehot,counts,skipgram --tokens 2000 --workers 1 --out ladder
"""
NEEDING = """
train tokenizer corpus.txt --out new
train bert corpus.txt --out new
train gpt corpus.txt --out new
train elmo corpus.txt --out new
train nnlm corpus.txt --out new
train ulmfit corpus.txt --out new
train seq2seq corpus.txt corpus.txt --out new
train transformer corpus.txt corpus.txt --out new
finetune classify word2vec --train rows.tsv --out new
finetune pairs word2vec --train rows.tsv --out new
finetune regress word2vec --train rows.tsv --out new
finetune choose word2vec --train rows.tsv --out new
finetune tag word2vec --train rows.tsv --out new
finetune answer word2vec --train rows.tsv --out new
fill {golden}/bert [MASK]
next {golden}/bert A B
generate {golden}/gpt A
embed {golden}/elmo texts.txt --out new.npy
neighbors {golden}/bert the
translate {golden}/seq2seq texts.txt
predict {golden}/classify texts.txt
compare {golden}/classify {golden}/classify --data rows.tsv
plot positions
plot attention {golden}/bert A
study masking corpus.txt --out new
study reversal --out new
study rates train bert corpus.txt
ladder corpus.txt --rungs skipgram --finetune --out new
"""


def lines_of(text: str, **names: object) -> list[str]:
    return [line.format(**names) for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def run_without(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[list[str]], dict[str, tuple[int, str, str, str]]]:
    """Run commands in a folder with small texts, and return what each left."""
    folder = tmp_path_factory.mktemp("without")
    words = ("the cat sat on the mat", "a dog ran in the park", "the king and queen live here")
    (folder / "corpus.txt").write_text("\n".join(words * 40) + "\n")
    (folder / "texts.txt").write_text("the cat sat\nking and queen\n")
    rows = ["the cat and the dog\tanimal", "the king and the queen\troyal"] * 20
    (folder / "rows.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
    (folder / "similarity.tsv").write_text("cat\tdog\t9\nking\tqueen\t8\ncat\tqueen\t1\n")
    senses = ("the [[dog]] ran", "the [[dog]] sat", "a [[dog]] of war", "every [[dog]] of war")
    meanings = zip(("animal", "animal", "soldier", "soldier"), senses, strict=True)
    (folder / "senses.tsv").write_text("".join(f"dog\t{name}\t{text}\n" for name, text in meanings))
    hiding = tmp_path_factory.mktemp("hiding")

    def run(commands: list[str]) -> dict[str, tuple[int, str, str, str]]:
        given = "".join(json.dumps(command.split()) + "\n" for command in commands)
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM], input=given, capture_output=True, text=True,
            cwd=folder, env=without_libraries(hiding),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return dict(zip(commands, map(json.loads, ran.stdout.splitlines()), strict=True))

    return run


def test_every_static_command_works(run_without, golden: Path):
    commands = [*TRAINING.values(), *lines_of(OTHERS, golden=golden)]
    commands += [line for kind in TRAINING for line in lines_of(USING, kind=kind)]
    failed = {name: told for name, told in run_without(commands).items() if told[0]}
    assert not failed


def test_what_needs_the_libraries_names_the_extra_in_one_sentence(run_without, golden: Path):
    run_without([TRAINING["word2vec"] + " --overwrite"])
    for command, (code, _, err, exception) in run_without(lines_of(NEEDING, golden=golden)).items():
        last = err.strip().splitlines()[-1] if err.strip() else exception
        assert code == 2 and last.startswith("Error: ") and last.endswith("."), (command, last)
        assert "pip install 'sememe[neural]'" in last, (command, last)


@pytest.fixture
def small_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in corpus of one small package, where those of the extra are not installed."""
    folder_of = library._folder
    monkeypatch.setattr(
        library, "_folder", lambda name: None if name in NEURAL else folder_of(name)
    )
    monkeypatch.setattr(library, "STANDARD", "rich")
    monkeypatch.setattr(library, "PACKAGES", ("torch", "sympy"))


def test_a_smaller_built_in_corpus_is_noted(small_library, own_cache: Path, tmp_path: Path):
    notes = Notes()
    store = open_or_build(
        None, TextSettings(), min_count=1, path=tmp_path / "store", progress=notes
    )
    assert len(store.vocabulary) > 100
    assert "smaller here, without the docstrings of torch, sympy, networkx" in notes
    facts = ladder_text.write_built_in(tmp_path, 0, told := Notes())
    assert facts["documents"]["train"] > 10 and "sememe[neural]" in told


def test_a_whole_built_in_corpus_needs_no_note():
    pytest.importorskip("torch")
    assert library.lacking() == ""
