"""UMAP and t-SNE: rows in, points of a plane out. N rows, D dimensions.

A service lays out in a process of its own (`lay_out_beside`): numba holds Python's lock for
seconds, and only a process can be stopped at once. With a seed both methods use one thread, so
that the same rows give the same points.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import MissingExtraError, OptionError, SememeError

PACKAGES = {"umap": ("umap", "umap-learn"), "tsne": ("openTSNE", "openTSNE")}
_LEAST = 10  # rows; the methods fail in their own ways below
_MIN_DIST = 0.1
_NUM_ITERATIONS = (250, 500)  # of t-SNE: early exaggeration, then the rest
Report = Callable[[float, str], None]


class Manifold(NamedTuple):
    """A method with its settings."""

    method: str  # umap or tsne
    num_neighbors: int = 15  # of UMAP; the perplexity of t-SNE
    seed: int = 1


def check(manifold: Manifold, num_rows: int) -> None:
    """Raise an error if the package is missing or there are too few rows."""
    module, package = PACKAGES[manifold.method]
    if find_spec(module) is None:
        raise MissingExtraError(f"This map needs {package}: pip install 'sememe[explore]'.")
    if num_rows < _LEAST:
        raise OptionError(f"UMAP and t-SNE need at least {_LEAST} points, not {num_rows}.")


def _tell_nobody(_share: float, _message: str) -> None:
    pass


def lay_out(rows_ND: np.ndarray, manifold: Manifold, report: Report = _tell_nobody) -> np.ndarray:
    """The places of rows by UMAP or t-SNE with Euclidean distances, (N, 2) in float32."""
    check(manifold, len(rows_ND))
    rows_ND = np.ascontiguousarray(rows_ND, np.float32)
    report(0.02, "Finding the nearest neighbors of every point")
    engine = _umap if manifold.method == "umap" else _tsne
    points_N2 = np.asarray(engine(rows_ND, manifold, report), np.float32)
    if not np.isfinite(points_N2).all():
        raise OptionError("The points have no finite places; choose another number of neighbors.")
    return points_N2


def _umap(rows_ND: np.ndarray, manifold: Manifold, report: Report) -> np.ndarray:
    from umap import UMAP

    engine = UMAP(
        n_neighbors=min(manifold.num_neighbors, len(rows_ND) - 1), min_dist=_MIN_DIST,
        random_state=manifold.seed, n_jobs=1, verbose=True,
        tqdm_kwds={"file": _Percentages(report), "mininterval": 0.3},
    )  # fmt: skip
    points_N2: np.ndarray = engine.fit_transform(rows_ND)
    return points_N2


class _Percentages:
    """A file for progress bars that reports the percentages written to it."""

    def __init__(self, report: Report) -> None:
        self.report = report

    def write(self, text: str) -> None:
        if found := re.search(r"(\d+)%", text):
            # Neighbors take about as long as the epochs that follow.
            self.report(0.4 + 0.6 * int(found[1]) / 100, "Moving the points")

    def flush(self) -> None:
        pass


def _tsne(rows_ND: np.ndarray, manifold: Manifold, report: Report) -> np.ndarray:
    from openTSNE import TSNE

    done, total = 0, sum(_NUM_ITERATIONS)

    def told(iteration: int, *_: Any) -> None:
        nonlocal done
        done = iteration if done < _NUM_ITERATIONS[0] else _NUM_ITERATIONS[0] + iteration
        report(0.15 + 0.85 * min(1, done / total), "Moving the points")

    engine = TSNE(
        perplexity=min(manifold.num_neighbors, (len(rows_ND) - 1) / 3), random_state=manifold.seed,
        n_jobs=1, early_exaggeration_iter=_NUM_ITERATIONS[0], n_iter=_NUM_ITERATIONS[1],
        callbacks=told, callbacks_every_iters=10,
    )  # fmt: skip
    return np.asarray(engine.fit(rows_ND))


# ---- in a process of its own --------------------------------------------------------------------


def lay_out_beside(
    rows_ND: np.ndarray, manifold: Manifold, report: Report = _tell_nobody
) -> np.ndarray:
    """`lay_out` in another process, which ends when `report` raises, or with this process."""
    check(manifold, len(rows_ND))
    with TemporaryDirectory(prefix="sememe-map-") as folder:
        given, made = Path(folder) / "rows.npy", Path(folder) / "points.npy"
        np.save(given, np.asarray(rows_ND, np.float32))
        command = [
            sys.executable, "-m", "sememe.plots.manifold", str(given), str(made),
            json.dumps(manifold._asdict()),
        ]  # fmt: skip
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, encoding="utf-8",
        ) as process:  # fmt: skip
            try:
                _follow(process, report)
            finally:
                process.kill()
        points_N2: np.ndarray = np.load(made)
    return points_N2


def _follow(process: subprocess.Popen[str], report: Report) -> None:
    """Pass on what the process tells, four times a second even if it tells nothing."""
    told: list[Any] = [[0.01, "Starting"]]

    def read() -> None:
        told.extend(map(json.loads, process.stdout or ()))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while reader.is_alive():
        report(*(told[-1] if isinstance(told[-1], list) else (1.0, "")))
        reader.join(0.25)
    if process.wait() != 0:
        told_error = told[-1] if isinstance(told[-1], str) else "its process ended"
        raise SememeError(f"The map could not be computed: {told_error}.")


def _end_with_parent() -> None:
    """End when the parent closes standard input, as it does when it ends in any way."""
    sys.stdin.read()
    os._exit(1)


def _main(given: str, made: str, settings: str) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Libraries print to standard output; the parent reads only the lines below.
    lines, sys.stdout = sys.stdout, sys.stderr

    def tell(content: Any) -> None:
        lines.write(json.dumps(content) + "\n")
        lines.flush()

    try:
        points_N2 = lay_out(
            np.load(given), Manifold(**json.loads(settings)), lambda *own: tell(list(own))
        )
        np.save(made, points_N2)
    except Exception as error:
        tell(f"{type(error).__name__}: {error}")
        sys.exit(1)


if __name__ == "__main__":
    _main(*sys.argv[1:])
