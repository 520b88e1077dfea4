"""The command line inside this process: arguments in, standard output out, one thread."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock


def run(*arguments: object) -> str:
    """Run `sememe` with these arguments and give what it printed; a failure is an error."""
    from sememe.cli import main

    out, err = StringIO(), StringIO()
    words = ["sememe", *map(str, arguments)]
    with mock.patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as left:
            code = left.code
        else:
            code = 0
    if code:
        raise RuntimeError(f"{' '.join(words)} left with {code}: {err.getvalue()}")
    return out.getvalue()


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Work in a folder, with one thread for PyTorch and BLAS."""
    import torch
    from threadpoolctl import threadpool_limits

    before, threads = Path.cwd(), torch.get_num_threads()
    os.chdir(folder)
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(threads)
        os.chdir(before)
