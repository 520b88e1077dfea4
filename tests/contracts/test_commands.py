"""Commands and Python agree on what a model can do: a command works where `load` finds it able."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_capabilities import names  # which puts the golden tests on the path
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("h5py")

import sample_texts

import sememe
from sememe.cli import app
from sememe.errors import UnsupportedError

COMMANDS = {
    "embed": "embed {} texts/plain.txt --out texts.npy --overwrite",
    "embed_words": "embed {} texts/plain.txt --pool words --out words.npy --overwrite",
    "words": "neighbors {} WORD",
    "fill": "fill {} [MASK]",
    "follows": "next {} cat dog",
    "generate": "generate {} cat --max-tokens 3",
    "next_words": "suggest {} cat",
    "score": "evaluate perplexity {} texts/held-out.txt",
    "attention": "plot attention {} cat --out attention.png",
    "positions": "plot positions {} --out positions.png",
    "translate": "translate {} cat",
    "predict": "predict {} ROWS",
}
ROWS = {
    "pairs": "pairs.tsv", "choose": "choices.tsv", "tag": "tags.txt", "answer": "questions.jsonl",
    "regress": "scores.tsv",
}  # fmt: skip


@pytest.mark.parametrize("name", names())
def test_a_command_works_where_the_model_is_able(
    name: str, golden: Path, place: Path, monkeypatch: pytest.MonkeyPatch
):
    sample_texts.write(place / "texts")
    path, model = str(golden / name), sememe.load(golden / name)
    # A table of hashed n-grams lists no words.
    word = next(iter(model.words), "") if "words" in model.capabilities else "cat"
    places = {"{}": path, "WORD": word, "ROWS": f"texts/{ROWS.get(model.kind, 'opinions.tsv')}"}
    for capability, command in COMMANDS.items():
        ran = CliRunner().invoke(app, [places.get(part, part) for part in command.split()])
        assert ran.exit_code in (0, 2), (capability, ran.exception)
        try:
            sememe.load(path, able=capability)
            is_able = bool(word) or capability != "words"
        except UnsupportedError:
            is_able = False
        assert (ran.exit_code == 0) == is_able, (capability, ran.stderr)
