"""The explorer for tests: over golden models, as a client of its routes and in a browser."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")

from explorer_pages import HOSTILE, Tab, client_of, served_page, wait_until_ready
from fastapi.testclient import TestClient

import sememe
from sememe.explore.app import Explorer
from sememe.explore.config import ExploreConfig

# One model of each generation, the fine-tuned tasks, and Chinese ones.
MODELS = (
    "word2vec-skipgram-negative", "glove", "fasttext", "counts", "ngram", "nnlm", "elmo", "gpt",
    "bert", "seq2seq", "transformer", "classify", "pairs", "tag", "answer", "regress", "sentence",
    "word2vec-chinese", "bert-chinese", "ngram-chinese",
)  # fmt: skip


@pytest.fixture(scope="session")
def uses_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text in English and Chinese, with words that the golden models know, and with markup."""
    people, places = ("king", "queen", "farmer", "child"), ("garden", "palace", "river", "market")
    lines = [
        f"The {person} sees a mouse near the {place} {when}. It is tired."
        for when in ("in the morning", "at night", "in winter")
        for person in people
        for place in places
    ]
    lines += [
        f"每天{when}{person}喜欢苹果。"
        for when in ("早上", "晚上")
        for person in ("国王", "老师", "孩子", "医生")
    ]
    lines += [f"A Mouse {HOSTILE} 𠮷 is here.", "Dormouse and mouses are other words."]
    path = tmp_path_factory.mktemp("text") / "<b>uses.txt"
    path.write_text("\n".join(lines), "utf-8")
    return path


@pytest.fixture(scope="session")
def explorer(golden: Path, uses_text: Path) -> Explorer:
    return Explorer([golden / name for name in MODELS], ExploreConfig(port=0, text=str(uses_text)))


@pytest.fixture(scope="session")
def client(explorer: Explorer) -> Iterator[TestClient]:
    """A client of all routes, with every model loaded."""
    with TestClient(explorer.create_app(), base_url="http://localhost") as client:
        wait_until_ready(lambda: client.get("/ready").status_code)
        yield client


@pytest.fixture(scope="session")
def opened(golden: Path) -> Callable[[str], Any]:
    """Load a model as Python does, once."""
    found: dict[str, Any] = {}

    def load(name: str) -> Any:
        if name not in found:
            found[name] = sememe.load(golden / name)
        return found[name]

    return load


@pytest.fixture
def run_command(tmp_path: Path) -> Callable[[str], str]:
    """Run a command that a page shows, in an empty folder; what it prints."""

    def run(command: str) -> str:
        program, *arguments = shlex.split(command)
        assert program == "sememe"
        return subprocess.run(
            [sys.executable, "-m", "sememe.cli", *arguments], cwd=tmp_path, check=True,
            stdout=subprocess.PIPE, text=True, encoding="utf-8",
        ).stdout  # fmt: skip

    return run


@pytest.fixture(scope="session")
def serve_page() -> Callable[[Explorer], AbstractContextManager[str]]:
    """Serves an explorer of a test's own."""
    return served_page


@pytest.fixture(scope="session")
def new_client() -> Callable[[Explorer], AbstractContextManager[TestClient]]:
    """A client of an explorer of a test's own."""
    return client_of


@pytest.fixture(scope="session")
def address(explorer: Explorer) -> Iterator[str]:
    """The address of the page with all models."""
    with served_page(explorer) as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser without a window; tests are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    path = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
    )
    if not path:
        pytest.skip("no chromium is installed: apt-get install chromium")
    flags = (
        "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
        "--disable-component-update", "--no-first-run",
    )  # fmt: skip
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(flags))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def tab_class() -> type[Tab]:
    """The class of pages, for a page with other options or of another explorer."""
    return Tab


@pytest.fixture
def new_tab(chromium: Any, address: str) -> Iterator[Callable[..., Tab]]:
    """Open pages with options of the browser; nothing foreign was requested, nothing failed."""
    tabs: list[Tab] = []

    def make(**options: Any) -> Tab:
        tabs.append(Tab(chromium, address, **options))
        return tabs[-1]

    yield make
    for tab in tabs:
        tab.context.close()
        assert not tab.faults


@pytest.fixture
def tab(new_tab: Callable[..., Tab]) -> Tab:
    """A page in English; nothing foreign was requested and nothing failed in it."""
    return new_tab()
