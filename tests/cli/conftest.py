"""Running a command inside this process, with a cache of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sememe.cli import app


class Ran:
    """What a command left: exit code, standard output, standard error."""

    def __init__(self, result: Any) -> None:
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr
        self.exception = result.exception

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture
def sememe(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run `sememe` with arguments, in an empty folder of this test."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, stdin: str | bytes | None = None, fails: bool = False) -> Ran:
        result = Ran(CliRunner().invoke(app, [str(item) for item in arguments], input=stdin))
        if not fails:
            assert result.code == 0, result.err or repr(result.exception)
        return result

    return run


SENTENCES = (
    "The red cat sat on the old mat .",
    "A blue dog ran over the green field .",
    "The old man gave the red cat some milk .",
    "Every dog and every cat likes the warm field .",
)
CHINESE = ("我喜欢红色的苹果。", "他们喜欢学习自然语言处理。", "老人给红色的猫一些牛奶。")


@pytest.fixture
def corpus(tmp_path: Path) -> Iterator[Path]:
    """A small English text."""
    path = tmp_path / "text.txt"
    path.write_text("\n".join(SENTENCES * 40) + "\n", encoding="utf-8")
    yield path


@pytest.fixture
def chinese_corpus(tmp_path: Path) -> Path:
    """A small Chinese text."""
    path = tmp_path / "chinese.txt"
    path.write_text("\n".join(CHINESE * 40) + "\n", encoding="utf-8")
    return path
