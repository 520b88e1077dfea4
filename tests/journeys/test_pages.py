"""What the README and the pages say works when it is typed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import ROOT, blocks, follow, write_texts

import sememe

# commands.md is made by the program; the page for gensim users has a test of its own beside the
# vectors; the log of experiments tells and does not ask to be typed.
OTHERS = {"commands.md", "coming-from-gensim.md", "experiments.md"}
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md") if path.name not in OTHERS)


@pytest.fixture
def folder(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme(name: str, folder: Path) -> None:
    printed = dict(follow(ROOT / name, folder))
    assert len(printed) >= 14
    for picture in ("map.png", "strips.svg", "vectors.bin"):
        assert (folder / picture).stat().st_size > 100
    assert "国王" in sememe.load("runs/news")
    assert list(sememe.load("vectors.bin"))[:3] == list(sememe.load("runs/mine"))[:3]


@pytest.mark.parametrize("name", PAGES)
def test_a_page(name: str, folder: Path) -> None:
    if any("runs/mine" in text for _, text in blocks(ROOT / "docs" / name)):
        sememe.Word2Vec(dim=16, epochs=2).fit("my-texts").save("runs/mine")
        from sememe.vectors.formats import write_vectors

        write_vectors(sememe.load("runs/mine"), "vectors.bin", "word2vec-binary")
    follow(ROOT / "docs" / name, folder)


def test_both_readmes_show_the_same_commands() -> None:
    english, chinese = (
        [
            re.sub(r"\s+#.*", "", line)
            for language, content in blocks(ROOT / name)
            if language == "console"
            for line in content.splitlines()
        ]
        for name in ("README.md", "README.zh-CN.md")
    )
    assert english == chinese


@pytest.mark.parametrize("path", ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docs"])
def test_links_lead_somewhere(path: str) -> None:
    pages = [ROOT / path] if path.endswith(".md") else sorted((ROOT / path).glob("*.md"))
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
