"""What the README and the pages say works when it is typed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from pages import ROOT, blocks, follow, options_of, told_commands, write_texts

import sememe
from sememe.contract import KINDS
from sememe.vectors.formats import write_vectors

# commands.md is made by the program; the page for gensim users has a test of its own beside the
# vectors; the log of experiments tells and does not ask to be typed.
OTHERS = {"commands.md", "coming-from-gensim.md", "experiments.md"}
DOCS = ROOT / "docs"
ALL_PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
PAGES = [name for name in ALL_PAGES if name not in OTHERS]
# Pages that are typed in seconds; the others are slow tests.
SHORT = {"counts.md", "glove.md", "items.md", "onehot.md", "tables.md"}
# One layout for every model of the line.
MODELS = (
    "onehot", "counts", "word2vec", "glove", "fasttext", "ngram", "nnlm", "elmo", "ulmfit",
    "translation", "transformer", "gpt", "bert",
    *(name for name, kind in KINDS.items() if kind.options),
)  # fmt: skip
HEADINGS = (
    "What it is", "Formula", "When to use it", "How to run it here", "What it scored",
)  # fmt: skip


@pytest.fixture
def folder(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme(name: str, folder: Path) -> None:
    printed = dict(follow(ROOT / name, folder))
    assert len(printed) >= 14
    for written in ("map.png", "attention.png", "vectors.bin", "runs/compare/report.html"):
        assert (folder / written).stat().st_size > 100
    assert "国王" in sememe.load("runs/news")
    assert list(sememe.load("vectors.bin"))[:3] == list(sememe.load("runs/words"))[:3]


@pytest.mark.parametrize(
    "name",
    [page if page in SHORT else pytest.param(page, marks=pytest.mark.slow) for page in PAGES],
)
def test_a_page(name: str, folder: Path) -> None:
    texts = [text for _, text in blocks(ROOT / "docs" / name)]
    is_made_there = any("--out runs/mine" in text for text in texts)
    if not is_made_there and any("runs/mine" in text for text in texts):
        sememe.Word2Vec(dim=16, epochs=2).fit("my-texts").save("runs/mine")
        if not any("convert runs/mine vectors.bin" in text for text in texts):
            write_vectors(sememe.load("runs/mine"), "vectors.bin", "word2vec-binary")
    follow(ROOT / "docs" / name, folder)


def test_both_readmes_show_the_same_commands() -> None:
    """The commands are the same; texts, words and options are those of the language."""
    command = re.compile(
        r"(sememe (?:(?:train|finetune|evaluate|plot) )?[a-z]\w+|make \w+|pip install \S+)"
    )
    english, chinese = (
        [
            found[1]
            for language, content in blocks(ROOT / name)
            if language == "console"
            for line in content.splitlines()
            if (found := command.search(line))
        ]
        for name in ("README.md", "README.zh-CN.md")
    )
    assert english == chinese and len(english) > 20


def test_both_readmes_make_the_same_calls_in_python() -> None:
    english, chinese = (
        [
            ast.unparse(node.func)
            for language, content in blocks(ROOT / name)
            if language == "python"
            for node in ast.walk(ast.parse(content))
            if isinstance(node, ast.Call)
        ]
        for name in ("README.md", "README.zh-CN.md")
    )
    assert english == chinese and "sememe.load" in english


@pytest.mark.parametrize("path", ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docs"])
def test_links_lead_somewhere(path: str) -> None:
    pages = [ROOT / path] if path.endswith(".md") else sorted((ROOT / path).rglob("*.md"))
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("name", MODELS)
def test_a_page_of_a_model_has_the_layout_of_all(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == HEADINGS
    assert "```math\n" in text


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md", *PAGES, "experiments.md"])
def test_commands_that_are_only_told_have_the_options_they_name(name: str) -> None:
    page = ROOT / name if name.startswith("README") else ROOT / "docs" / name
    for line in told_commands(page):
        words, named = options_of(line)
        assert named <= words, f"{line}: no option {', '.join(sorted(named - words))}"
