"""The code on the page for gensim users runs as it stands."""

import re
from pathlib import Path

import numpy as np
import pytest

import sememe
from sememe.vectors import WordVectors
from sememe.vectors.formats import write_vectors

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-gensim.md"
WORDS = ["king", "queen", "man", "woman", "breakfast", "lunch", "dinner"]


def run_blocks(is_training: bool) -> None:
    pattern = r"(<!-- needs: Word2Vec -->\n)?```python\n(.*?)```"
    blocks = re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.DOTALL)
    chosen = [code for mark, code in blocks if bool(mark) == is_training]
    assert chosen
    names: dict[str, object] = {"sememe": sememe}
    for code in chosen:
        exec(compile(code, str(PAGE), "exec"), names)


@pytest.mark.skipif(not hasattr(sememe, "load"), reason="the package does not export load")
def test_using_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table = np.random.default_rng(0).standard_normal((len(WORDS), 5))
    write_vectors(WordVectors(WORDS, table), "vectors.txt")
    run_blocks(is_training=False)
    assert (tmp_path / "glove.txt.gz").exists()


@pytest.mark.skipif(not hasattr(sememe, "Word2Vec"), reason="the package does not train yet")
def test_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(is_training=True)
    assert (tmp_path / "model").is_dir()
