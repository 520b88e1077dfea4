"""Progress in a notebook: bars as HTML that replaces itself, notes as plain output."""

from __future__ import annotations

import importlib.util
import re
import sys
import time
import types
from typing import Any

import pytest

from sememe.notebook import in_notebook
from sememe.progress import Reporter


class HTML:
    def __init__(self, text: str) -> None:
        self.text = text


class Handle:
    def __init__(self, shown: list[str]) -> None:
        self.shown = shown

    def update(self, content: HTML) -> None:
        self.shown.append(content.text)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a notebook has shown, one text for each time that its output changed."""
    found: list[str] = []

    def display(content: HTML, *, display_id: bool) -> Handle:
        assert display_id, "it is replaced later"
        found.append(content.text)
        return Handle(found)

    ipython, parts = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    parts.HTML, parts.display = HTML, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", parts)
    return found


def test_a_bar_is_drawn_in_place_and_the_summary_stays(
    shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert in_notebook()
    reporter = Reporter()
    with reporter.task("training <b>", total=200, unit="words") as task:
        time.sleep(0.01)
        task.update(50, loss=0.5)
        reporter.note("a note")
        with reporter.task("reading", unit="B") as inner:
            time.sleep(0.01)
            inner.update(3)
    drawn = [text for text in shown if "training" in text]
    assert any('value="0.2500"' in text and "25%" in text and "loss 0.5" in text for text in drawn)
    assert any("reading <progress aria-label" in text for text in drawn), "two bars, one output"
    assert "training &lt;b&gt;" in drawn[0] and "<b>" not in "".join(shown)
    assert shown[-1] == "" and reporter._live is None
    printed = capsys.readouterr()
    assert printed.err == "", "which notebooks show on a red ground"
    lines = printed.out.splitlines()
    assert lines[0] == "a note" and lines[-1].startswith("training <b>: 50 words in")


def test_a_stream_that_was_given_is_used(shown: list[str], tmp_path: Any) -> None:
    with (
        (tmp_path / "log").open("w") as log,
        Reporter(stream=log).task("training", total=3, unit="words") as task,
    ):
        task.update(3)
    assert not shown and (tmp_path / "log").read_text().startswith("training: 3 words")


def test_without_a_kernel_it_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shells = [None, types.SimpleNamespace(), types.SimpleNamespace(kernel=None)]
    for shell in shells:  # the shell of a terminal has no kernel
        ipython = types.ModuleType("IPython")
        ipython.get_ipython = lambda shell=shell: shell  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert not in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("nbclient", "ipykernel")),
    reason="needs nbclient and ipykernel",
)
def test_a_real_notebook_shows_a_bar() -> None:
    import nbclient
    import nbformat

    code = """
from sememe.progress import Reporter
import time
with Reporter().task("training", total=4, unit="words") as task:
    for done in range(1, 5):
        time.sleep(0.15)
        task.update(done)
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    drawn: list[str] = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message: Any, *rest: Any) -> Any:
            if message["msg_type"] == "update_display_data":
                drawn.append(message["content"]["data"]["text/html"])
            return super().process_message(message, *rest)

    Client(notebook, timeout=1_200, startup_timeout=1_200).execute()
    assert any('value="0.5000"' in text for text in drawn)
    texts = [output["text"] for output in notebook.cells[0].outputs if "text" in output]
    assert re.match(r"training: 4 words in \d+:\d\d", "".join(texts))
