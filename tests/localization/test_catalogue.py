"""The catalogue: templates with values, finished messages, and the language of the user."""

import time

import pytest

from sememe import localization
from sememe.localization import preferred, say, translate, using

LINES = {
    "Stopped.": "已停止。",
    "{num:,} words": "{num:,} 个词",
    "{path} holds {num} rows, not {wanted}.": "{path} 应有 {wanted} 行，实有 {num} 行。",
    "{path}: skipped, because {reason}": "已跳过 {path}：{~reason}",
}


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setattr(
        localization, "catalogue", lambda language, *_: LINES if language == "zh" else {}
    )
    localization._patterns.cache_clear()
    with using("zh"):
        yield
    localization._patterns.cache_clear()


def test_english_is_as_written():
    assert say("{num:,} words", num=1234) == "1,234 words"
    assert translate("Stopped.") == "Stopped."


def test_templates_and_finished_messages(chinese):
    assert say("{num:,} words", num=1234) == "1,234 个词"
    assert say("{num} other words", num=3) == "3 other words"
    assert translate("a b.txt holds 3 rows, not 4.") == "a b.txt 应有 4 行，实有 3 行。"
    assert translate("nothing like it") == "nothing like it"


def test_only_marked_parts_are_translated(chinese):
    assert translate("a: skipped, because Stopped.") == "已跳过 a：已停止。"
    assert translate("Stopped.: skipped, because 3 words") == "已跳过 Stopped.：3 个词"


@pytest.mark.parametrize("text", ["a" + " holds rows, not" * 60, "a: skipped, because " * 200])
def test_the_time_grows_slowly_with_the_length(text, chinese, monkeypatch):
    monkeypatch.setitem(LINES, "{1} holds {2} holds {3} rows, {4} rows, {5} not {6}.", "{6}")
    localization._patterns.cache_clear()
    start_s = time.thread_time()
    translate(text + ".!")
    assert time.thread_time() - start_s < 10


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_locale_chooses(variables, language, monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert preferred() == language
