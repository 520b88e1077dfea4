"""Nothing a person reads lacks its Chinese, and no line of the catalogue is out of use."""

import re
from functools import cache
from importlib.resources import files

import pytest
from english_texts import HOLE, SOURCE, help_texts, literals, messages, page_texts

from sememe.localization import catalogue, translate, using

NAMES = ("help", "messages", "templates")
PLACE = re.compile(r"\{~?(\w*)(?:[:!][^{}]*)?\}")
CHINESE = re.compile("[\u4e00-\u9fff]")
# Parts that are never printed alone.
UNSPOKEN = re.compile(
    r"\{\} is \{\}\.|\{\} documents, \{\}|\{\}, \{\} rows of n-grams|"
    r"\{\}: \{\}\{\} training rows.*|Only \{\} \{\} into the budget.*|"
    r"Every row got the same label, “\{\}”|No better than one label for all"
)
# Composed by typer or by us, or said by the operating system.
FOREIGN = re.compile(
    r"Missing |\{1\}: (Permission denied|No space left on device)\.|\w+ average|"
    r"\{1\} \(\{2:word\}\)"
)


@cache
def lines(name: str) -> list[str]:
    path = files("sememe.localization") / "zh" / f"{name}.tsv"
    found = path.read_text(encoding="utf-8").splitlines()
    return [line for line in found if line and not line.startswith("#")]


def sample(template: str) -> tuple[str, list[str]]:
    """A text of the template, and the values in it."""
    first, *rest = template.split(HOLE)
    values = [f"{1001 + number}" for number in range(len(rest))]
    return first + "".join(f"{a}{b}" for a, b in zip(values, rest, strict=True)), values


def test_every_text_of_the_help_has_its_chinese():
    with using("zh"):
        missing = [text for text in help_texts() if not CHINESE.search(translate(text))]
    assert not missing, "add to localization/zh/help.tsv:\n" + "\n".join(missing)


def test_every_text_of_the_report_has_its_chinese():
    known = catalogue("zh", "templates")
    missing = [text for text in page_texts() if text not in known]
    assert not missing, "add to localization/zh/templates.tsv:\n" + "\n".join(missing)


def test_messages_have_their_chinese():
    missing, lost = [], []
    found = [text for text in messages() if not UNSPOKEN.fullmatch(text)]
    with using("zh"):
        for template in found:
            text, values = sample(template)
            told = translate(text)
            if told == text:
                missing.append(template)
            elif not all(value in told for value in values):
                lost.append(f"{template} → {told}")
    assert not lost, "values are lost:\n" + "\n".join(lost)
    # Some room, so that a new message does not stop its author; they are added before a release.
    assert len(missing) <= 0.03 * len(found), (
        f"{len(missing)} of {len(found)} messages are not in localization/zh/messages.tsv:\n"
        + "\n".join(missing)
    )


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_well_formed(name):
    keys = [line.split("\t")[0] for line in lines(name)]
    assert sorted({key for key in keys if keys.count(key) > 1}) == []
    for line in lines(name):
        english, chinese = line.split("\t")
        places = PLACE.findall(english)
        assert name == "templates" or "" in places or len(places) == len(set(places)), line
        assert sorted(set(PLACE.findall(chinese))) == sorted(set(places)), line
        assert chinese.count(HOLE) == english.count(HOLE), line
        assert chinese.strip() and "  " not in chinese.strip(), line
        # Chinese has its own punctuation.
        plain = PLACE.sub("", chinese)
        assert not re.search("[\u4e00-\u9fff](?:[,;?!]|:(?:\\s|$))", plain), line


def runs(english: str) -> set[str]:
    """Every three words in a row of a line, or all if there are fewer."""
    parts = [
        part.split() for text in PLACE.split(english)[::2] for part in re.split("[,;:.()]", text)
    ]
    return {" ".join(words[start : start + 3]) for words in parts for start in range(len(words))
            if start == 0 or start + 3 <= len(words)}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_lines_are_in_use(name):
    """Some words of each line stand in the source: its text has not been removed or reworded."""
    written, found = literals(), {*messages(), *help_texts()}
    stale = [
        english
        for english in (line.split("\t")[0] for line in lines(name))
        if PLACE.sub(HOLE, english) not in found
        and english not in written
        and not any(run in written for run in runs(english))
    ]
    assert [one for one in stale if not FOREIGN.match(one)] == [], (
        f"remove from localization/zh/{name}.tsv:\n" + "\n".join(stale)
    )


def test_the_report_says_nothing_past_the_catalogue():
    """The templates of the report hold no text of their own."""
    for path in (SOURCE / "ladder" / "report").glob("*.html"):
        text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", path.read_text("utf-8"), flags=re.S)
        assert re.findall(r"(?:aria-label|title|alt)=\"[^\"]*[a-z]{3}[^\"]*\"", text) == []
        assert re.findall(r">[^<>]*[A-Za-z]{3}[^<>]*<", text) == [], path
