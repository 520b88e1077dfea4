"""The page: its files, its headers, what it is told about models, and binary columns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sememe.contract import KINDS
from sememe.errors import ArtifactError, InputError
from sememe.explore.app import Explorer
from sememe.explore.config import ExploreConfig
from sememe.explore.page import _STATIC
from sememe.explore.routing import pack
from sememe.explore.view_examples import text_examples
from sememe.localization import catalogue

SOURCES = {path: path.read_text("utf-8") for path in sorted(_STATIC.rglob("*.js"))}


def test_page_and_files_have_a_strict_policy(client: Any) -> None:
    for path in ("/explore/", "/explore/static/app.js", "/explore/static/views/words.js"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]
        assert answer.status_code == 200
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_root_leads_to_the_page(client: Any) -> None:
    assert client.get("/", follow_redirects=False).headers["location"] == "/explore/"


@pytest.mark.parametrize("name", ["../page.py", "%2e%2e/page.py", "views", "app.py", "/etc/passwd"])
def test_only_files_of_the_page_are_sent(client: Any, name: str) -> None:
    assert client.get(f"/explore/static/{name}").status_code == 404


def test_state_describes_every_model(client: Any, opened: Any) -> None:
    state = client.get("/explore/api/state").json()
    assert state["is_ready"] and not state["has_ladder"]
    for own in state["models"]:
        model = opened(own["id"])
        assert own["kind"] == model.kind and own["title"] == KINDS[model.kind].title
        assert set(own["capabilities"]) == model.capabilities
        if "words" in model.capabilities:
            assert (own["num_words"], own["dim"]) == (len(model.words), model.words.dim)


def test_examples_are_texts_whose_words_the_models_know(client: Any) -> None:
    def first(words: str) -> dict[str, str]:
        return {kind: rows[0][0] for kind, rows in text_examples([words.split()])["en"].items()}

    assert "Paris" in first("the capital of france is paris king")["masks"]
    code = first("returns the number of elements in array sum values an if value is none")
    assert code["masks"].startswith("Returns") and code["next"].startswith("Returns")
    assert code["follows"].startswith("Returns") and "Merkel" in code["tag"]
    for rows in client.get("/explore/api/state").json()["examples"]["en"].values():
        assert rows and all(rows[0])


def test_columns_are_aligned_and_complete() -> None:
    given = {
        "x": np.arange(3, dtype=np.float32),
        "kind": np.array([[1, 2], [3, 4]], np.uint8),
        "id": np.array([7], np.uint32),
    }
    data = pack({"name": "图"}, given)
    size = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + size])
    assert header["meta"] == {"name": "图"} and (4 + size) % 8 == 0
    start = 4 + size
    for told, (name, wanted) in zip(header["columns"], given.items(), strict=True):
        found = np.frombuffer(data, told["type"], wanted.size, start).reshape(told["shape"])
        assert told["name"] == name and np.array_equal(found, wanted)
        start += -(-wanted.nbytes // 8) * 8


def test_columns_never_hold_nan() -> None:
    with pytest.raises(ArtifactError):
        pack({}, {"x": np.array([np.nan], np.float32)})


def test_without_models_or_a_ladder_the_error_says_what_to_do(place: Path) -> None:
    with pytest.raises(InputError, match="sememe ladder"):
        Explorer([])


def test_every_text_of_the_interface_has_a_chinese_one() -> None:
    known = catalogue("zh", "explore")
    used = {
        text
        for source in SOURCES.values()
        for text in re.findall(r'\bt\("((?:[^"\\]|\\.)+)"', source)
    }
    titles = {
        title
        for source in SOURCES.values()
        for title in re.findall(r'title: "([^"]+)", most', source)
    }
    assert (used | titles) - set(known) == set()
    kinds = {kind.title for kind in KINDS.values()}
    assert set(known) - used - titles - kinds == set(), "remove from localization/zh/explore.tsv"
    for text, chinese in known.items():
        places = re.findall(r"\{\w+\}", text)
        assert sorted(places) == sorted(re.findall(r"\{\w+\}", chinese)), text


def test_page_is_small_and_has_no_foreign_code() -> None:
    files = [path for path in _STATIC.rglob("*") if path.suffix in (".html", ".css", ".js")]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= 4_000
    for path in files:
        text = path.read_text("utf-8")
        assert "innerHTML" not in text and "eval(" not in text and "insertAdjacentHTML" not in text
        assert not re.search(r"https?://(?!www\.w3\.org/)", text), path
        assert max(map(len, text.splitlines()), default=0) <= 130, path


def test_a_key_of_the_environment_is_not_for_the_page(
    golden: Path, new_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMEME_API_KEY", "secret")
    with new_client(Explorer([golden / "glove"], ExploreConfig(port=0))) as own:
        assert own.get("/explore/api/state").status_code == 200
        assert own.get("/v1/models").status_code == 200
        foreign = own.get("/explore/api/state", headers={"host": "attacker.example"})
        assert foreign.status_code == 421


@pytest.mark.parametrize("path", ["map/rows/search", "learning/film", "jobs/one/cancel"])
@pytest.mark.parametrize("kind", ["text/plain", ""])
def test_a_page_of_another_site_cannot_post(client: Any, path: str, kind: str) -> None:
    headers = {"content-type": kind} if kind else {}
    answer = client.post(f"/explore/api/{path}", content=b"{}", headers=headers)
    assert answer.status_code == 415 and answer.json()["error"]["code"] == "not_json"


def test_a_job_is_cancelled_by_its_name(client: Any) -> None:
    answer = client.post("/explore/api/jobs/none/cancel", json={})
    assert "no such job" in answer.json()["error"]["message"]
