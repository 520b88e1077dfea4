"""What operators rely on: readiness, metrics, limits, the page of routes, and unit files."""

from __future__ import annotations

import asyncio
import configparser
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from fastapi.testclient import TestClient

import sememe
from sememe.serve import gate
from sememe.serve.app import create_app
from sememe.serve.config import ServeConfig
from sememe.serve.models import Models
from sememe.training.device import multiplies_bf16

WORDS = "word2vec-skipgram-negative"
TEXT = "The cat sat on the mat."
DEPLOY = Path(__file__).parents[2] / "deploy"


def client(golden: Path, *names: str, **options: Any) -> TestClient:
    app = create_app([golden / name for name in names], ServeConfig(lazy=True, **options))
    return TestClient(app, base_url="http://127.0.0.1:8000")


@pytest.fixture
def both(golden: Path) -> Iterator[TestClient]:
    with client(golden, "sentence", WORDS) as own:
        yield own


def value(own: TestClient, name: str, **labels: Any) -> float:
    """A metric; 0 if it has no such labels yet."""
    for line in own.get("/metrics").text.splitlines():
        found = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
        if found:
            told = dict(re.findall(r'(\w+)="([^"]*)"', found[1] or ""))
            if told == {key: str(one) for key, one in labels.items()}:
                return float(found[2])
    return 0.0


def test_metrics_are_counted_by_route_and_model(both: TestClient) -> None:
    route = "/v1/embeddings"
    for model, texts in (("sentence", [TEXT] * 3), ("sentence", [TEXT] * 2), (WORDS, [TEXT])):
        sent = {"model": model, "input": texts}
        assert both.post(route, json=sent).status_code == 200
    assert both.post(route, json={"model": "sentence", "input": ""}).status_code == 400
    assert both.post(route, json={"model": "nothing", "input": "a"}).status_code == 404
    assert both.post("/v1/neighbors", json={"model": WORDS, "word": "the"}).status_code == 200

    asked = "sememe_requests_total"
    assert value(both, asked, route=route, model="sentence", status=200) == 2
    assert value(both, asked, route=route, model="sentence", status=400) == 1
    assert value(both, asked, route=route, model=WORDS, status=200) == 1
    assert value(both, asked, route="/v1/neighbors", model=WORDS, status=200) == 1
    # Ids that are not served are no labels: a client could make up any number of them.
    assert value(both, asked, route=route, model="", status=404) == 1
    failed = "sememe_failures_total"
    assert value(both, failed, route=route, model="sentence", code="empty_input") == 1
    assert value(both, failed, route=route, model="", code="model_not_found") == 1
    lasted = "sememe_request_seconds"
    assert value(both, f"{lasted}_count", route=route, model="sentence") == 3
    assert value(both, f"{lasted}_sum", route=route, model="sentence") > 0
    assert value(both, "sememe_batch_texts_count") == 2
    assert value(both, "sememe_batch_texts_sum") == 5
    num_tokens = value(both, "sememe_tokens_total", model="sentence")
    assert num_tokens == value(both, "sememe_batch_tokens_sum") > 5
    assert value(both, "sememe_queue") == 0


def test_a_service_that_loads_is_alive_and_not_ready(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, real = threading.Event(), Models._open

    def slow(own: Models, path: Path) -> Any:
        assert go.wait(20)
        return real(own, path)

    monkeypatch.setattr(Models, "_open", slow)
    app = create_app([golden / WORDS], ServeConfig())
    with TestClient(app, base_url="http://127.0.0.1:8000") as own:
        response = own.get("/ready")
        assert (response.status_code, response.json()) == (503, {"status": "loading"})
        assert own.get("/health").status_code == 200
        assert own.get(f"/v1/models/{WORDS}").json()["state"] == "unloaded"
        go.set()
        end_s = time.monotonic() + 20
        while own.get("/ready").status_code != 200:
            assert time.monotonic() < end_s
            time.sleep(0.02)
        assert own.get(f"/v1/models/{WORDS}").json()["state"] == "loaded"


def test_a_lazy_service_loads_at_the_first_request(both: TestClient) -> None:
    assert both.get("/ready").status_code == 200
    states = {own["id"]: own["state"] for own in both.get("/v1/models").json()["data"]}
    assert states == {"sentence": "unloaded", WORDS: "unloaded"}
    assert both.post("/v1/embeddings", json={"model": WORDS, "input": "a"}).status_code == 200
    assert both.get(f"/v1/models/{WORDS}").json()["state"] == "loaded"
    assert both.get("/v1/models/sentence").json()["state"] == "unloaded"


def refused(response: Any, status: int, code: str) -> str:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert error["code"] == code
    return str(error["message"])


def test_the_number_of_inputs_and_of_tokens_is_limited(golden: Path) -> None:
    with client(golden, "sentence", max_inputs=3, max_input_tokens=40) as own:
        assert own.post("/v1/embeddings", json={"input": ["cat"] * 3}).status_code == 200
        many = {"input": ["cat"] * 4}
        assert "4 inputs" in refused(own.post("/v1/embeddings", json=many), 422, "too_many_inputs")
        refused(own.post("/embed", json={"inputs": ["cat"] * 4}), 422, "too_many_inputs")
        for given in ("cat " * 41, ["cat " * 21] * 2, [[5] * 21] * 2):
            # What was cut would be computed; before, all of it has to be read.
            for truncate in (False, True):
                sent = {"input": given, "truncate": truncate}
                refused(own.post("/v1/embeddings", json=sent), 422, "too_many_tokens")


def test_a_body_that_does_not_arrive_is_refused(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "_BODY_S", 0.1)
    app = create_app([golden / WORDS], ServeConfig(lazy=True))
    sent: list[Any] = []
    parts = iter([{"type": "http.request", "body": b'{"input"', "more_body": True}])

    async def receive() -> Any:
        if (part := next(parts, None)) is None:
            await asyncio.sleep(20)
        return part

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "method": "POST",
        "path": "/v1/embeddings", "raw_path": b"/v1/embeddings", "query_string": b"",
        "headers": headers, "server": ("127.0.0.1", 80), "client": None,
    }  # fmt: skip
    start_s = time.monotonic()
    asyncio.run(app(scope, receive, send))
    assert time.monotonic() - start_s < 10
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["error"]["code"] == "timeout"


def test_the_page_of_routes_loads_nothing_from_elsewhere(both: TestClient) -> None:
    page = both.get("/docs").text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(loaded) >= 3
    for address in loaded:
        assert address.startswith("/docs/assets/")
        assert both.get(address).status_code == 200
    assert "http://" not in page and "https://" not in page
    schema = both.get("/openapi.json").json()
    assert "/v1/embeddings" in schema["paths"]


def test_half_precision_is_close(golden: Path) -> None:
    if not multiplies_bf16():
        pytest.skip("this CPU does not multiply bfloat16 numbers")
    sent = {"model": "sentence", "input": TEXT}
    expected = sememe.load(golden / "sentence").embed([TEXT])[0]
    with client(golden, "sentence", precision="bf16") as own:
        found = own.post("/v1/embeddings", json=sent).json()["data"][0]["embedding"]
    assert found == pytest.approx(expected.tolist(), abs=0.05)
    assert found != pytest.approx(expected.tolist(), abs=1e-7)


# ---- deployment ---------------------------------------------------------------------------------


def test_the_unit_restarts_the_service_and_restricts_it() -> None:
    unit = configparser.RawConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((DEPLOY / "sememe.service").read_text("utf-8"))
    service = unit["Service"]
    assert service["Restart"] == "always"
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert service["User"] not in ("", "root")
    assert service["NoNewPrivileges"] == service["PrivateTmp"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["KillSignal"] == "SIGTERM"
    assert int(service["TimeoutStopSec"]) > 30  # running requests are finished within these
    known = set(ServeConfig.__dataclass_fields__)
    for option in re.findall(r"--([a-z-]+)", service["ExecStart"]):
        assert option.replace("-", "_") in known


def test_the_container_is_no_root_and_checks_its_health() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    told = dict(line.split(None, 1) for line in lines)
    assert told["USER"] == "sememe"
    assert lines.index("USER sememe") < next(
        number for number, line in enumerate(lines) if line.startswith("ENTRYPOINT")
    )
    # It is installed from the repository: an index may not have it, or something else by its name.
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY")]
    assert copied and all((DEPLOY.parent / name).exists() for own in copied for name in own)
    assert re.search(r"pip install .* '/sememe\[neural,serve\]'", text)
    assert "/health" in told["HEALTHCHECK"]
    assert json.loads(told["ENTRYPOINT"]) == ["sememe", "serve"]
    assert told["STOPSIGNAL"] == "SIGTERM"
    check = json.loads(told["HEALTHCHECK"][told["HEALTHCHECK"].index("CMD") + 3 :])
    compile(check[2], "health check", "exec")
