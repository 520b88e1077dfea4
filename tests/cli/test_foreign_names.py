"""Names of files and folders that are not UTF-8: Linux allows any bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sememe
from sememe.text.settings import TextSettings
from sememe.text.stream import segment
from sememe.text.words import decode_documents

NAME = os.fsdecode(b"caf\xe9")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder of texts with foreign names."""
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / f"{NAME}.txt").write_text("the king had lunch\n" * 20, "utf-8")
    (folder / f"{NAME}.csv").write_text("text,label\nthe queen had dinner,x\n", "utf-8")
    return folder


def test_corpora_are_read(texts: Path, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"text": ["the prince slept"]}), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").rename(texts / f"{NAME}.parquet")
    records = segment(texts, TextSettings(), workers=1)
    documents = [document for record in records for document in decode_documents(record.data)]
    assert len(documents) == 3


def test_models_are_saved_and_opened(texts: Path, place: Path) -> None:
    model = sememe.Word2Vec(dim=4, epochs=1, min_count=1, workers=1).fit(texts)
    model.save(texts.parent / f"model-{NAME}")
    assert "king" in sememe.load(texts.parent / f"model-{NAME}")


@pytest.mark.parametrize("kind", ["bert", "classify", "gpt", "classifier"])
def test_models_with_foreign_names_are_opened(golden: Path, tmp_path: Path, kind: str) -> None:
    shutil.copytree(golden / kind, tmp_path / NAME)
    assert sememe.load(tmp_path / NAME).kind == sememe.load(golden / kind).kind


def test_commands_take_them(texts: Path) -> None:
    out = os.fsencode(texts.parent / "out") + b"\xff"
    words = ["-m", "sememe.cli", "train", "onehot", os.fsencode(texts), "--out", out]
    done = subprocess.run([sys.executable, *words], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"out\\udcff" in done.stdout and Path(os.fsdecode(out)).is_dir()
