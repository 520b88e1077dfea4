"""Places and small things that tests of several rooms share."""

from __future__ import annotations

import functools
import os
import random
import shutil
import signal
import sys
import tarfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
import typer.testing
from filelock import FileLock
from hypothesis import HealthCheck, settings

from sememe.machine import cache_dir
from sememe.vectors import WordVectors
from sememe.vectors.formats import write_vectors

# Threads of PyTorch that wait for each other spin, which costs most of the time where several
# workers share few cores. Read when PyTorch is imported; processes that tests start inherit it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Where there is no GPU, Triton's kernels run in its interpreter. Read when Triton is imported.
if shutil.which("nvidia-smi") is None:
    os.environ["TRITON_INTERPRET"] = "1"

# Tests read English messages, whatever the locale of the machine.
os.environ["SEMEME_LANG"] = "en"

# Examples are the same in every run, and a busy machine may take its time over them. Others are
# drawn with `pytest --hypothesis-profile default`.
settings.register_profile(
    "tests", derandomize=True, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("tests")

# A shell gives background jobs an ignored Ctrl-C, which tests of interruption could not send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Two directions that mean something (royal, female) and one for food; the rest is small noise.
PLACES = {
    "king": (1, -1, 0), "queen": (1, 1, 0), "man": (0, -1, 0), "woman": (0, 1, 0),
    "prince": (0.6, -1, 0.4), "princess": (0.6, 1, 0.4), "boy": (-0.1, -1, 0.2),
    "girl": (-0.1, 1, 0.2), "breakfast": (0, 0, 1), "lunch": (0.1, 0, 1), "dinner": (0, 0.1, 1),
    "国王": (1, -0.9, 0.05), "女王": (1, 0.9, 0.05),
}  # fmt: skip


GOLDEN = Path(__file__).parent / "golden" / "fixtures.tar.xz"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Random numbers of a test do not depend on the tests that ran before it."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, except for what takes long and never changes: kernels, the library."""
    folder = tmp_path_factory.mktemp("cache")
    for name in ("kernels", "library"):
        real = (cache_dir() / name).resolve()
        real.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(real)
    monkeypatch.setenv("SEMEME_CACHE", str(folder))
    return folder


@pytest.fixture
def place(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session", autouse=True)
def quiet_machine() -> Iterator[None]:
    """Trainings try one thread and tell of it where the machine is busy: here it never is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0), raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Typer builds all commands again at every call, which takes a tenth of a second."""
    with pytest.MonkeyPatch.context() as patch:
        built = functools.cache(typer.main.get_command)
        patch.setattr(typer.main, "get_command", built)
        patch.setattr(typer.testing, "_get_command", built)
        yield


@pytest.fixture
def fresh_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are built at every call: those that have spoken Chinese keep their help in it."""
    build = typer.main.get_command.__wrapped__  # type: ignore[attr-defined]
    monkeypatch.setattr(typer.main, "get_command", build)
    monkeypatch.setattr(typer.testing, "_get_command", build)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a folder once in a run: `once(name, write)`; it is read by all tests, changed by none.

    The worker that asks first calls `write(folder)`; the others wait for it.
    """
    own = tmp_path_factory.getbasetemp()
    place = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "once"
    place.mkdir(exist_ok=True)

    def written(name: str, write: Callable[[Path], object]) -> Path:
        folder, draft = place / name, place / f"{name}.draft"
        with FileLock(place / f"{name}.lock"):
            if not folder.exists():
                write(draft)
                draft.rename(folder)
        return folder

    return written


@pytest.fixture(scope="session")
def golden(once: Callable[..., Path]) -> Path:
    """Models of every kind, ours and other programs', as an earlier version wrote them."""

    def unpack(folder: Path) -> None:
        with tarfile.open(GOLDEN) as archive:
            archive.extractall(folder, filter="data")

    return once("golden", unpack)


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """A bucket of moto, a server of S3 on this machine."""
    moto = pytest.importorskip("moto.server")
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("s3fs")
    server = moto.ThreadedMotoServer(port=0, ip_address="127.0.0.1", verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    own = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setenv(name, value)
        system = fsspec.filesystem("s3", skip_instance_cache=True)
        system.mkdir("bucket")
        yield system
    server.stop()
    fsspec.filesystem("s3").clear_instance_cache()


@pytest.fixture
def tensorboard(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, list[int]]]:
    """The steps that TensorBoard was given, by folder and figure, once the folder is closed."""
    closed: dict[str, dict[str, list[int]]] = {}

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            self.folder, self.written = folder, {}

        def add_scalar(self, name: str, value: float, step: int) -> None:
            assert np.isfinite(value)
            self.written.setdefault(name, []).append(step)

        def close(self) -> None:
            closed[self.folder] = self.written

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return closed


@pytest.fixture
def toy_vectors() -> WordVectors:
    """Thirteen words whose neighbors and analogies are known."""
    noise = np.random.default_rng(1).normal(0, 0.01, (len(PLACES), 4))
    # What all words share keeps their cosines positive, as it is in vectors of real text.
    shared = np.full((len(PLACES), 1), 1.5)
    return WordVectors(list(PLACES), np.hstack([np.array(list(PLACES.values())), shared, noise]))


@pytest.fixture
def vector_file(tmp_path: Path, toy_vectors: WordVectors) -> Path:
    """The toy vectors as a word2vec text file."""
    path = tmp_path / "toy.txt"
    write_vectors(toy_vectors, path)
    return path
