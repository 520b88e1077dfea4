"""The program in Chinese: --lang, SEMEME_LANG and the locale; programs read the same as before."""

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sememe.cli import app

TEXT = "国王 和 女王 住 在 城堡 里\n男人 和 女人 住 在 城市 里\n国王 是 男人 女王 是 女人\n" * 40
TRAIN = ["train", "word2vec", "text.txt", "--language", "none", "--min-count", "1", "--dim", "4",
         "--epochs", "1", "--workers", "1", "--out"]  # fmt: skip


@pytest.fixture
def words(place, fresh_commands, monkeypatch):
    monkeypatch.delenv("SEMEME_LANG")
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    (place / "text.txt").write_text(TEXT, encoding="utf-8")
    return place


def run(*arguments, code=0):
    ran = CliRunner().invoke(app, list(arguments))
    assert ran.exit_code == code, ran.output
    return ran


@pytest.mark.parametrize("arguments", [("--lang", "zh", "--help"), ("--help", "--lang=zh")])
def test_help_in_chinese(words, arguments):
    told = run(*arguments).output
    assert "用自己的语料训练" in told and "选项" in told and "Options" not in told
    assert "Options" in run("--help").output  # the next run speaks English again


def test_help_is_not_cut_off(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    told = run("--lang", "zh", "train", "word2vec", "--help").output
    assert "…" not in told


def test_messages_in_chinese(words):
    ran = run("--lang", "zh", *TRAIN, "runs/words")
    assert "已把 11 个词 × 4 维保存到 runs/words" in ran.stdout
    assert "训练：" in ran.stderr and "学习率" in ran.stderr
    assert run("--lang", "zh", *TRAIN, "runs/words", code=2).stderr.startswith("错误：")


def test_usage_errors_in_chinese(words):
    assert "没有选项 --nothing" in run("--lang", "zh", "info", "--nothing", code=2).stderr
    assert "没有命令 'inof'。是不是 'info'？" in run("--lang", "zh", "inof", code=2).stderr
    assert "缺少参数" in run("--lang", "zh", "info", code=2).stderr
    assert "不在" in run("--lang", "zh", *TRAIN, "a", "--loss", "x", code=2).stderr


def test_an_unknown_language_is_refused(words):
    assert "Invalid value for '--lang'" in run("--lang", "xx", "info", "a", code=2).stderr


def test_programs_read_the_same_in_every_language(words):
    run(*TRAIN, "runs/words")
    for command in (["neighbors", "runs/words", "国王"], ["info", "runs/words"]):
        plain = run(*command).stdout  # a pipe
        assert run("--lang", "zh", *command).stdout == plain
    english = json.loads(run("info", "runs/words", "--json").stdout)
    assert json.loads(run("--lang", "zh", "info", "runs/words", "--json").stdout) == english


def test_what_is_saved_is_english(words):
    run("--lang", "zh", *TRAIN, "runs/words")
    saved = (words / "runs/words/sememe.json").read_text(encoding="utf-8")
    assert "训练" not in saved


@pytest.mark.parametrize(
    ("variables", "is_chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LANG": "zh_CN.UTF-8", "SEMEME_LANG": "en"}, False),
        ({"SEMEME_LANG": "zh"}, True),
        ({"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "LANG": "zh_CN.UTF-8"}, False),
    ],
)
def test_the_locale_and_the_environment_choose(words, variables, is_chinese):
    names = ("LC_ALL", "LC_MESSAGES", "LANG", "SEMEME_LANG")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    ran = subprocess.run(
        [sys.executable, "-m", "sememe.cli", "--help"],
        env={**environment, "PYTHONIOENCODING": "utf-8", **variables},
        capture_output=True,
        encoding="utf-8",
    )
    assert ("选项" in ran.stdout) == is_chinese
