"""`sememe search` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sememe
from sememe.cli import app

ROWS = (
    "name,review,stars\nAda,Street noise kept us awake.,1\nBo,A quiet room.,5\nCy,Loud music.,2\n"
)


def run(*words: str, code: int = 0, **more) -> tuple[str, str]:
    ran = CliRunner().invoke(app, ["search", *words], **more)
    assert ran.exit_code == code, ran.output
    return ran.stdout, ran.stderr


@pytest.fixture
def reviews(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEMEME_CACHE", str(place / "cache"))
    Path("reviews.csv").write_text(ROWS, "utf-8")
    words = ["noise", "loud", "music", "street", "quiet", "room"]
    vectors = np.eye(6, dtype="f4") * 0.3
    vectors[:4, 0] += 1
    sememe.WordVectors(words, vectors).save("model")
    return place


def test_words_only_then_meaning(reviews):
    out, err = run("reviews.csv", "noise")
    assert out.splitlines()[0].split("\t")[2:] == ["reviews.csv:1", "Street noise kept us awake."]
    assert len(out.splitlines()) == 1 and "--model" in err and "“review”" in err
    out, err = run("reviews.csv", "noise", "--model", "model", "--top", "2")
    assert [line.split("\t")[2] for line in out.splitlines()] == ["reviews.csv:1", "reviews.csv:3"]
    assert "--model" not in err


def test_an_index_is_built_once(reviews):
    words = ("reviews.csv", "noise", "--model", "model", "--index", "index")
    first, err = run(*words)
    assert "indexing" in err and Path("index/sememe.json").is_file()
    again, err = run(*words)
    assert again == first and "unchanged" in err and "indexing" not in err
    Path("reviews.csv").write_text(f"{ROWS}Di,Music all night.,3\n", "utf-8")
    out, err = run("reviews.csv", "night", "--model", "model", "--index", "index", "--json")
    found = json.loads(out)
    assert "changed" in err and found["hits"][0]["cells"]["name"] == "Di"
    assert found["hits"][0]["highlights"] == [[10, 15]]
    out, err = run("index", "night", "--where", "stars=3", "--quiet")
    assert out.split("\t")[2] == "reviews.csv:4" and not err


def test_without_an_index_folder_the_cache_has_it(reviews):
    run("reviews.csv", "noise")
    assert len([*Path("cache/indexes").glob("*/sememe.json")]) == 1
    assert "unchanged" in run("reviews.csv", "room")[1]
    out, _ = run("-", "music", input="no\nmusic here\n")
    assert out.split("\t")[3] == "music here\n"
    assert len([*Path("cache/indexes").glob("*/sememe.json")]) == 1  # a pipe's is not kept


def test_chinese(reviews):
    Path("新闻.txt").write_text("明天有一场足球比赛。\n股票市场下跌了。\n", "utf-8")
    ran = CliRunner().invoke(app, ["--lang", "zh", "search", "新闻.txt", "足球"])
    assert ran.stdout.split("\t")[3] == "明天有一场足球比赛。\n" and "分词" in ran.stderr
    ran = CliRunner().invoke(app, ["--lang", "zh", "search", "新闻.txt", "篮球"])
    assert ran.exit_code == 0 and "没有与查询相符的行" in ran.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing.csv", "noise"], "nothing.csv"),
        (["reviews.csv", " "], "empty"),
        (["reviews.csv", "noise", "--where", "stars"], "stars"),
        (["reviews.csv", "noise", "--where", "colour=red"], "colour"),
        (["reviews.csv", "noise", "--mode", "dense"], "vectors"),
        (["reviews.csv", "noise", "--column", "text=body"], "body"),
        (["reviews.csv", "noise", "--column", "label=stars"], "label"),
        (["reviews.csv", "noise", "--overlap", "2000"], "overlap"),
        (["reviews.csv", "noise", "--model", "nowhere"], "nowhere"),
        (["reviews.csv", "noise", "--index", "model"], "model"),
    ],
)
def test_mistakes_are_one_sentence(words, told, reviews):
    _, err = run(*words, code=2)
    assert told in err.splitlines()[-1] and "Traceback" not in err
    assert Path("model/sememe.json").is_file()


def test_another_model_is_refused(reviews):
    run("reviews.csv", "noise", "--model", "model", "--index", "index")
    sememe.WordVectors(["noise"], np.ones((1, 6), "f4")).save("other")
    _, err = run("index", "noise", "--model", "other", code=2)
    assert "another model" in err


def test_a_pair_model_reranks(reviews, golden: Path):
    pytest.importorskip("torch")
    out, _ = run("reviews.csv", "noise music room", "--rerank", str(golden / "pairs"), "--json")
    hits = json.loads(out)["hits"]
    pairs = [("noise music room", hit["text"]) for hit in hits]
    expected = sememe.load(golden / "pairs").score_pairs(pairs)
    assert len(hits) == 3 and [hit["score"] for hit in hits] == sorted(expected, reverse=True)
    _, err = run("reviews.csv", "noise", "--rerank", str(golden / "classify"), code=2)
    assert "score pairs" in err


def test_a_sentence_encoder_uses_its_prompts(reviews, golden: Path, monkeypatch):
    pytest.importorskip("torch")
    from sememe.models.sentence.model import SentenceModel

    roles: list[str] = []
    own = SentenceModel.embed

    def embed(self, texts, **options):
        roles.append(options.get("role", ""))
        return own(self, texts, **options)

    monkeypatch.setattr(SentenceModel, "embed", embed)
    run("reviews.csv", "noise", "--model", str(golden / "sentence"), "--json")
    assert roles == ["document", "query"]
