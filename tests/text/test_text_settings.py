"""Settings refuse what no run could satisfy and know which segmenter a language needs."""

import dataclasses

import pytest

from sememe.errors import OptionError
from sememe.text.settings import TextSettings


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"layout": "page"}, "layout must be one of auto, line, paragraph, file"),
        ({"errors": "ignore"}, "errors must be one of strict, replace"),
        ({"language": "english!"}, "language must be a code"),
        ({"language": ""}, "language must be a code"),
        ({"encoding": "utf-99"}, "encoding 'utf-99' is not known"),
        ({"encoding": "base64"}, "not an encoding of text"),
        ({"columns": {"text": ""}}, "not text="),
        ({"columns": {"body": "x"}}, "not body=x"),
        ({"dictionary": "words.txt"}, "needs language zh"),
        ({"sentences": 1_000_000_000}, "sentences must be a bool, not 1000000000"),
        ({"lowercase": "yes"}, "lowercase must be a bool"),
        ({"language": ["en"]}, "language must be a str"),
        ({"columns": None}, "columns must be a dict"),
    ],
)
def test_bad_settings_are_named(options, part):
    with pytest.raises(OptionError, match=part):
        TextSettings(**options)


@pytest.mark.parametrize(
    ("language", "mode"),
    [
        ("en", "unicode"), ("de-AT", "unicode"), ("zh", "chinese"), ("zh-Hans", "chinese"),
        ("zh_CN", "chinese"), ("none", "whitespace"), ("whitespace", "whitespace"),
    ],
)  # fmt: skip
def test_language_chooses_the_segmenter(language, mode):
    assert TextSettings(language=language).mode == mode


def test_every_setting_explains_itself():
    for setting in dataclasses.fields(TextSettings):
        assert setting.metadata["help"].endswith(".")
