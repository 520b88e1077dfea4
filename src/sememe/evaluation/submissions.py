"""Answers to test sets without labels, as the servers of benchmarks take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sememe.examples.labelled import Rows
from sememe.storage.folder import write_file


def write_submissions(
    folder: Path, unlabelled: Mapping[str, Rows[Any]], answers: Mapping[str, Sequence[Any]]
) -> list[Path]:
    """Write a file for each test set that was answered, named as GLUE's server wants it."""
    paths = []
    for name, said in answers.items():
        rows = unlabelled[name]
        # The server counts rows from 0 where the file does not number them.
        indices = [row.id or str(index) for index, row in enumerate(rows)]
        folder.mkdir(parents=True, exist_ok=True)
        write_submission(folder / f"{name}.tsv", list(zip(indices, said, strict=True)))
        paths.append(folder / f"{name}.tsv")
    return paths


def write_submission(path: Path, rows: Sequence[tuple[str, str | float]]) -> None:
    """Write one submission file: a line for each row of the test set, in its order.

    Labels are the words or numbers of the training files; similarities have three decimals and
    stay between 0 and 5.
    """
    with write_file(path) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as file:
        file.write("index\tprediction\n")
        for index, said in rows:
            if isinstance(said, float):
                said = f"{min(5.0, max(0.0, said)):.3f}"
            file.write(f"{index}\t{said}\n")
