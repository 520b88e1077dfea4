"""What a stranger, a web page or a broken client may try: all of it is refused, none is a crash."""

import asyncio
import gzip
import json
import math
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from fastapi.testclient import TestClient
from starlette.routing import Mount, Route

from sememe.errors import OptionError
from sememe.serve.app import create_app
from sememe.serve.config import ServeConfig

KEY = "sesame-42"
OPEN = {"/health", "/ready", "/docs", "/openapi.json"}


def client(golden: Path, **options: Any) -> TestClient:
    app = create_app(
        [golden / "word2vec-skipgram-negative", f"encoder={golden / 'sentence'}"],
        ServeConfig(lazy=True, **options),
    )
    return TestClient(app, base_url="http://127.0.0.1:8000")


@pytest.fixture(scope="module")
def plain(golden: Path) -> Iterator[TestClient]:
    with client(golden) as own:
        yield own


@pytest.fixture(scope="module")
def locked(golden: Path) -> Iterator[TestClient]:
    with client(golden, api_key=KEY) as own:
        yield own


def is_error(response: Any) -> bool:
    """Whether this is an error of the OpenAI API."""
    error = response.json()["error"]
    return {"message", "type", "code", "param"} == set(error) and bool(error["message"])


# ---- texts that look like places ----------------------------------------------------------------


@pytest.mark.parametrize("task", ["classify", "regress", "tag", "classifier"])
def test_a_row_is_a_text_though_it_names_a_file(golden: Path, tmp_path: Path, task: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("alpha beta SECRET\n")
    places = [str(secret), f"file://{secret}", "s3://nobucket/x", "steam://run/440"]
    app = create_app([golden / task], ServeConfig())
    cut = {} if task in ("tag", "classifier") else {"truncate": True}
    route = "/v1/classify" if task == "classifier" else f"/v1/{task}"
    with TestClient(app, base_url="http://127.0.0.1:8000") as own:
        for place in places:
            response = own.post(route, json={"inputs": [place], **cut})
            assert response.status_code == 200, response.text
            assert len(response.json()["predictions"]) == 1
            assert "SECRET" not in response.text and "redential" not in response.text
        assert own.post(route, json={"inputs": places, **cut}).status_code == 200


# ---- model ids ----------------------------------------------------------------------------------


TRICKS = [
    "../../etc/passwd", "/etc/passwd", "encoder/../encoder", "./encoder", "encoder/", "..", "",
    "encoder\0", "ENCODER", "file:///etc/passwd", "encoder=/etc", "~", "%2e%2e%2f", "x" * 999,
    "{0.__class__}", "http://127.0.0.1/", "__class__",
]  # fmt: skip


@pytest.mark.parametrize("name", TRICKS)
def test_a_model_id_is_never_a_path(plain: TestClient, name: str) -> None:
    for route, body in (
        ("/v1/embeddings", {"input": "a"}),
        ("/v1/neighbors", {"word": "a"}),
        ("/embed", {"inputs": "a"}),
    ):
        response = plain.post(route, json={"model": name, **body})
        assert response.status_code == 404, response.text
        assert is_error(response)
        assert response.json()["error"]["code"] == "model_not_found"
        assert len(response.content) < 2_000


@pytest.mark.parametrize(
    "path",
    ["..%2f..%2fetc%2fpasswd", "%2e%2e", "..%5c..", "encoder%00", "%ff", "encoder%2f..%2fencoder"],
)
def test_paths_in_the_address_are_not_found(plain: TestClient, path: str) -> None:
    for before in ("/v1/models/", "/docs/assets/"):
        response = plain.get(before + path)
        assert response.status_code in (404, 405), response.text
        assert b"root:" not in response.content


def test_an_id_may_have_a_slash(golden: Path) -> None:
    """As ids of well-known models have; it is one of the served ids, not a path."""
    app = create_app([f"org/small={golden / 'sentence'}"], ServeConfig(lazy=True))
    with TestClient(app, base_url="http://127.0.0.1") as own:
        for path in ("org/small", "org%2Fsmall"):
            assert own.get(f"/v1/models/{path}").json()["id"] == "org/small"
        sent = {"model": "org/small", "input": "a"}
        assert own.post("/v1/embeddings", json=sent).status_code == 200
        for path in ("org", "org/", "small", "org/small/", "org//small", "org/../org/small"):
            assert own.get(f"/v1/models/{path.replace('/', '%2F')}").status_code == 404


# ---- hosts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example",
     "evil.example#127.0.0.1", "127.0.0.1@evil.example", "localhost:80@evil.example",
     "localhost:evil.example", "[::1]evil.example", "[::1].evil.example:80", "[::1", "",
     "127.0.0.1,evil.example", "0.0.0.0", "127.1", "2130706433", "localhost:80:80", "::1:80"],
)  # fmt: skip
def test_other_hosts_are_refused(plain: TestClient, host: str) -> None:
    """A page whose name was rebound to this machine still sends its own name."""
    for path in ("/v1/models", "/health", "/docs", "/openapi.json"):
        response = plain.get(path, headers={"host": host})
        assert response.status_code == 421, (path, response.text)
        assert is_error(response)
    assert plain.post("/v1/embeddings", json={}, headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:1", "localhost:8000", "LocalHost", "[::1]", "[::1]:8000"]
)
def test_names_of_this_machine_are_accepted(plain: TestClient, host: str) -> None:
    assert plain.get("/v1/models", headers={"host": host}).status_code == 200


def test_headers_of_proxies_change_nothing(plain: TestClient) -> None:
    told = {"x-forwarded-host": "127.0.0.1", "forwarded": "host=127.0.0.1", "host": "evil.example"}
    assert plain.get("/v1/models", headers=told).status_code == 421
    two = [("host", "127.0.0.1"), ("host", "evil.example")]
    assert plain.get("/v1/models", headers=two).status_code == 400


def test_hosts_can_be_allowed(golden: Path) -> None:
    with client(golden, allow_host="models.example, Other.example") as own:
        for host, status in (("models.example", 200), ("other.example:80", 200), ("x", 421)):
            assert own.get("/v1/models", headers={"host": host}).status_code == status


def test_without_a_key_no_host_is_open_to_rebound_names(golden: Path) -> None:
    """Who may call is one question; under which names a page of another site may, another."""
    ways: list[tuple[dict[str, Any], list[str], list[str]]] = [
        ({}, ["localhost"], ["192.168.1.5", "evil.example"]),
        ({"host": "0.0.0.0"}, ["192.168.1.5", "[fe80::1]:80", socket.gethostname()], ["a.local"]),
        ({"host": "0.0.0.0", "allow_host": "a.example"}, ["a.example:1"], ["192.168.1.5", "b"]),
        ({"host": "models.example"}, ["models.example:8000", "10.0.0.1"], ["evil.example"]),
    ]
    for options, good, bad in ways:
        with client(golden, no_auth=True, **options) as own:
            for host in (*good, "127.0.0.1:8000"):
                assert own.get("/v1/models", headers={"host": host}).status_code == 200, host
            for host in (*bad, "evil.example", "127.0.0.1.evil.example", "1.2.3", ""):
                assert own.get("/v1/models", headers={"host": host}).status_code == 421, host


def test_with_a_key_any_name_leads_here(golden: Path) -> None:
    """A reverse proxy passes on its own name, and no page knows the key."""
    with client(golden, host="0.0.0.0", api_key=KEY) as own:
        for host in ("api.example.org", "10.0.0.1"):
            headers = {"host": host, "x-api-key": KEY}
            assert own.get("/v1/models", headers=headers).status_code == 200


# ---- keys ---------------------------------------------------------------------------------------


def test_every_route_but_the_open_ones_needs_the_key(locked: TestClient) -> None:
    wrong: list[dict[str, str]] = [
        {}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {KEY}"},
        {"authorization": KEY}, {"authorization": "Bearer"}, {"authorization": f"Bearer {KEY}x"},
        {"x-api-key": KEY[:-1]}, {"x-api-key": ""}, {"authorization": f"Bearer {KEY.upper()}"},
        {"authorization": "Bearer wrong", "x-api-key": KEY}, {"cookie": f"api_key={KEY}"},
    ]  # fmt: skip
    checked = set()
    routes: list[Any] = []
    for route in locked.app._app._app.routes:  # type: ignore[attr-defined]
        router = getattr(route, "original_router", None)  # of include_router
        routes += router.routes if router else [route]
    for route in routes:
        assert isinstance(route, Mount | Route), route
        if isinstance(route, Mount):
            assert route.path == "/docs/assets"
            continue
        if route.path in OPEN:
            assert locked.get(route.path).status_code in (200, 503)
            continue
        path = route.path.replace("{name:path}", "encoder")
        assert "{" not in path
        for method in route.methods - {"HEAD"}:
            for headers in wrong:
                body = {} if method == "GET" else {"json": {"input": "a"}}
                response = locked.request(method, path, headers=headers, **body)
                assert response.status_code == 401, (method, path, headers, response.text)
                assert is_error(response)
                assert KEY not in response.text
                assert response.headers["www-authenticate"] == "Bearer"
            sent = {"authorization": f"bearer {KEY}"}
            assert locked.request(method, path, headers=sent).status_code != 401
            assert locked.request(method, path, headers={"x-api-key": KEY}).status_code != 401
        checked.add(path)
    assert {"/metrics", "/v1/models", "/v1/models/encoder", "/v1/embeddings", "/info"} <= checked
    assert checked >= set(locked.get("/openapi.json").json()["paths"]) - OPEN - {
        "/v1/models/{name}"
    }


def test_the_key_is_checked_before_the_body_is_read(locked: TestClient) -> None:
    for body in (b"{", b"[" * 500_000, b"\xff", b'{"surprise": 1}'):
        for kind in ("application/json", "text/plain"):
            response = locked.post("/v1/embeddings", content=body, headers={"content-type": kind})
            assert response.status_code == 401


def test_a_key_of_other_characters_is_only_wrong(locked: TestClient) -> None:
    for given in ("é".encode(), b"\xff\xfe", "密码".encode()):
        response = locked.get("/v1/models", headers={"authorization": b"Bearer " + given})
        assert response.status_code == 401


@pytest.mark.parametrize(
    "path",
    ["//v1/models", "/v1//models", "/v1/models/", "/v1/./models", "/V1/models", "/v1%2fmodels",
     "/%76%31/models", "/docs/../v1/models", "/docs/assets/../../v1/models", "/health/../metrics",
     "/docs/assets/%2e%2e/%2e%2e/metrics", "/metrics;a", "/metrics%00", "/health%2f..%2fmetrics",
     "/docs/assets//v1/models", "http://127.0.0.1/v1/models", "/%2e/metrics", "/v1/models?/health"],
)  # fmt: skip
def test_another_spelling_of_an_address_is_no_way_around_the_key(
    locked: TestClient, path: str
) -> None:
    """The key belongs to the route, however its address was written."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    bare, _, query = path.partition("?")
    scope = {
        "type": "http", "http_version": "1.1", "scheme": "http", "root_path": "",
        "path": unquote(bare), "raw_path": bare.encode(), "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1")], "server": ("127.0.0.1", 80), "client": None,
    }  # fmt: skip
    for method in ("GET", "HEAD"):
        sent.clear()
        asyncio.run(locked.app({**scope, "method": method}, receive, send))  # as uvicorn does
        body = b"".join(message.get("body", b"") for message in sent)
        assert sent[0]["status"] in (307, 401, 404, 405), (path, body)
        assert b"encoder" not in body and b"sememe_requests" not in body


def test_the_page_of_routes_asks_for_the_key(locked: TestClient, plain: TestClient) -> None:
    schema = locked.get("/openapi.json").json()
    (name,) = schema["security"][0]
    assert schema["components"]["securitySchemes"][name] == {"type": "http", "scheme": "bearer"}
    assert "security" not in plain.get("/openapi.json").json()


def test_a_key_in_the_address_is_not_read(locked: TestClient) -> None:
    assert locked.get(f"/v1/models?api_key={KEY}").status_code == 401


def test_the_key_of_the_environment_is_used(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMEME_API_KEY", KEY)
    with client(golden) as own:
        assert own.get("/v1/models").status_code == 401
        assert own.get("/v1/models", headers={"x-api-key": KEY}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com", ""])
def test_a_service_for_others_needs_a_key(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SEMEME_API_KEY", raising=False)
    with pytest.raises(OptionError, match="api_key"):
        ServeConfig(host=host)
    assert ServeConfig(host=host, api_key=KEY).api_key == KEY
    assert ServeConfig(host=host, no_auth=True).no_auth


def test_the_key_of_the_environment_is_one_for_others(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the command of a container has it: `-e SEMEME_API_KEY … --host 0.0.0.0`."""
    monkeypatch.setenv("SEMEME_API_KEY", KEY)
    with client(golden, host="0.0.0.0") as own:
        headers = {"host": "api.example.org"}
        assert own.get("/v1/models", headers=headers).status_code == 401
        assert own.get("/v1/models", headers=headers | {"x-api-key": KEY}).status_code == 200
    monkeypatch.setenv("SEMEME_API_KEY", "")
    with pytest.raises(OptionError, match="SEMEME_API_KEY"):
        ServeConfig(host="0.0.0.0")


@pytest.mark.parametrize("key", ["naïve", "a\nb", "密码", "sesame ", " "])
def test_keys_that_no_header_can_hold_are_refused(key: str) -> None:
    with pytest.raises(OptionError, match="api_key"):
        ServeConfig(api_key=key)
    with pytest.raises(OptionError, match="both"):
        ServeConfig(api_key=KEY, no_auth=True)


# ---- other sites --------------------------------------------------------------------------------


PREFLIGHT = {
    "access-control-request-method": "POST",
    "access-control-request-headers": "content-type,authorization",
}


def test_pages_of_other_sites_may_not_call_by_default(plain: TestClient) -> None:
    origin = {"origin": "https://evil.example"}
    for response in (
        plain.get("/v1/models", headers=origin),
        plain.options("/v1/embeddings", headers=origin | PREFLIGHT),
    ):
        assert not [name for name in response.headers if name.startswith("access-control")]


def test_one_origin_can_be_allowed(golden: Path) -> None:
    with client(golden, cors="https://good.example", api_key=KEY) as own:
        good, bad = {"origin": "https://good.example"}, {"origin": "https://evil.example"}
        allowed = own.options("/v1/embeddings", headers=good | PREFLIGHT)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == good["origin"]
        assert "access-control-allow-credentials" not in allowed.headers
        assert own.options("/v1/embeddings", headers=bad | PREFLIGHT).status_code == 400
        answer = own.get("/v1/models", headers=good | {"x-api-key": KEY})
        assert answer.headers["access-control-allow-origin"] == good["origin"]
        assert "x-request-id" in answer.headers["access-control-expose-headers"]
        refused = own.post(
            "/v1/embeddings", json={"input": "a"}, headers=good
        )  # its page reads why
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == good["origin"]
        answer = own.get("/v1/models", headers=bad | {"x-api-key": KEY})
        assert "access-control-allow-origin" not in answer.headers


# ---- bodies -------------------------------------------------------------------------------------


def test_giant_bodies_are_refused(golden: Path) -> None:
    with client(golden, max_body=0.01) as own:
        body = json.dumps({"input": "a" * 20_000}).encode()
        parts = (body[start : start + 1_000] for start in range(0, len(body), 1_000))
        sent = 0

        def counted() -> Iterator[bytes]:
            nonlocal sent
            for part in parts:
                sent += len(part)
                yield part

        for content in (body, counted()):
            kind = {"content-type": "application/json"}
            response = own.post("/v1/embeddings", content=content, headers=kind)
            assert response.status_code == 413, response.text
            assert is_error(response)
        for length in ("10001", "9" * 30, "9" * 5_000):
            response = own.post("/v1/embeddings", content=b"{}", headers={"content-length": length})
            assert response.status_code == 413, response.text
        # Less than it said is no way around.
        headers = {"content-length": "5", "content-type": "application/json"}
        response = own.post("/v1/embeddings", content=body, headers=headers)
        assert response.status_code == 413
        assert own.get("/health").status_code == 200


@pytest.mark.parametrize(
    "body",
    [b"[" * 500_000, b'{"a":' * 500_000, b'{"input":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
     b'{"input": ' + b"9" * 100_000 + b"}", b"\xff\xfe", b"", b"null", b"[]", b'"a"', b"NaN",
     b'{"input": NaN}', b'{"input": [1e999]}', b'{"input": ["a", 1]}',
     b'{"input": []}', b'{"input": ""}', b'{"input": [""]}', b'{"input": [[]]}',
     b'{"input": [[-1]]}', b'{"input": [[99999999999999999999]]}', b'{"input": {"a": 1}}',
     b'{"input": [true]}', b'{"input": "a", "dimensions": 0}', b"a=b"],
    ids=lambda body: body[:20].decode("latin-1"),
)  # fmt: skip
@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data"])
def test_strange_bodies_are_refused(plain: TestClient, body: bytes, kind: str) -> None:
    if b'"input"' in body and b'"model"' not in body:
        body = body.replace(b'{"input"', b'{"model": "encoder", "input"', 1)
    response = plain.post("/v1/embeddings", content=body, headers={"content-type": kind})
    # An empty text and ids that no vocabulary has are well-formed; everything else is not.
    is_form = body.endswith((b': ""}', b'[""]}', b"[[-1]]}", b"99]]}"))
    status = 415 if kind != "application/json" else 400 if is_form else 422
    assert response.status_code == status, response.text
    assert is_error(response)
    assert len(response.content) < 2_000


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", None]
)
def test_bodies_that_pages_of_other_sites_can_send_are_refused(
    plain: TestClient, kind: str | None
) -> None:
    """A page may send these without asking (no preflight), and so could use a local service."""
    body = json.dumps({"model": "encoder", "input": "a"}).encode()
    headers = {} if kind is None else {"content-type": kind}
    response = plain.post("/v1/embeddings", content=body, headers=headers)
    assert response.status_code == 415
    assert is_error(response)
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    assert plain.post("/v1/embeddings", content=body, headers=headers).status_code == 200


def test_compressed_bodies_are_refused(plain: TestClient) -> None:
    """Little data could become very much."""
    body = gzip.compress(json.dumps({"model": "encoder", "input": "a" * 10_000_000}).encode())
    for coding in ("gzip", "GZIP", "deflate", "br", "gzip, identity"):
        headers = {"content-type": "application/json", "content-encoding": coding}
        response = plain.post("/v1/embeddings", content=body, headers=headers)
        assert response.status_code == 415
        assert is_error(response)
    headers = {"content-type": "application/json", "content-encoding": "identity"}
    body = json.dumps({"model": "encoder", "input": "a"}).encode()
    assert plain.post("/v1/embeddings", content=body, headers=headers).status_code == 200


def test_strange_characters_are_no_fault(plain: TestClient) -> None:
    for text in ("\0", "a\0b", "\u202e", "👩‍👩‍👧" * 20, "\x1b[31m", "￿", "\r\n\r\n"):
        sent = {"model": "encoder", "input": text, "truncate": True}
        response = plain.post("/v1/embeddings", json=sent)
        assert response.status_code == 200, (text, response.text)
        response = plain.post(
            "/v1/neighbors", json={"word": text, "model": "word2vec-skipgram-negative"}
        )
        assert response.status_code in (200, 400), (text, response.text)


def test_unknown_fields_are_refused(plain: TestClient) -> None:
    schema = plain.get("/openapi.json").json()
    num = 0
    for path, methods in schema["paths"].items():
        if "post" not in methods:
            continue
        response = plain.post(path, json={"model": "encoder", "surprise": 1})
        assert response.status_code == 422, (path, response.text)
        assert is_error(response)
        num += 1
    assert num > 15
    response = plain.post("/v1/embeddings", json={"input": "a", "surprise": 1})
    assert response.status_code == 422
    assert "surprise" in response.json()["error"]["message"]


# ---- answers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("form", ["float", "base64"])
def test_nan_is_never_an_answer(golden: Path, value: float, form: str) -> None:
    with client(golden) as own:
        service = own.app.service  # type: ignore[attr-defined]
        sent = {"model": "encoder", "input": "a cat", "encoding_format": form}
        assert own.post("/v1/embeddings", json=sent).status_code == 200
        model = service.models.served["encoder"].model
        for name in ("embed", "embed_token_ids"):
            setattr(model, name, lambda items: np.full((len(items), 4), value, np.float32))
        model.score_pairs = lambda pairs: np.full(len(pairs), value)
        for route, body in (
            ("/v1/embeddings", sent),
            ("/embed", {"model": "encoder", "inputs": ["a"]}),
            ("/embed", {"model": "encoder", "inputs": ["a"], "normalize": False}),
            ("/v1/similarity", {"model": "encoder", "a": "a", "b": "b", "of": "texts"}),
        ):
            response = own.post(route, json=body)
            assert response.status_code == 503, response.text
            assert is_error(response)
            assert response.json()["error"]["code"] == "model_damaged"


def test_faults_are_errors_that_tell_nothing(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with client(golden, log_file=str(log)) as own:

        def broken(*_: Any) -> None:
            raise RuntimeError("secret /home/me")

        monkeypatch.setattr(own.app.service.models, "find", broken)  # type: ignore[attr-defined]
        response = own.post("/v1/embeddings", json={"input": "a"})
        assert response.status_code == 500
        assert is_error(response)
        assert "secret" not in response.text
    line = json.loads(log.read_text().splitlines()[-1])
    assert line["status"] == 500
    assert "secret" in line["fault"]
    assert line["request_id"] == response.headers["x-request-id"]


def test_the_log_has_no_texts_and_no_keys(golden: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with client(golden, log_file=str(log), api_key=KEY) as own:
        for sent in ({"x-api-key": KEY}, {}):
            own.post("/v1/embeddings?q=private", json={"input": "private"}, headers=sent)
    told = log.read_text()
    assert len(told.splitlines()) == 2
    assert "private" not in told
    assert KEY not in told


def test_no_request_writes_lines_of_its_own_into_the_log(golden: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    trick = '\n{"status": 200}\r\x1b[2J\u2028\ud800'
    with client(golden, log_file=str(log)) as own:
        own.post("/v1/embeddings", content=json.dumps({"model": trick, "input": trick}).encode(),
                 headers={"content-type": "application/json"})  # fmt: skip
        own.get("/v1/models/%0a%7b%7d%0d%1b[2J", headers={"user-agent": "é\x1b".encode()})
        own.request("SPY\u2028\n", "/v1/models")
    lines = [json.loads(line) for line in log.read_bytes().split(b"\n") if line]
    assert [line["status"] for line in lines] == [422, 404, 405]
    assert [line["model"] for line in lines] == [""] * 3
    assert "\x1b" not in log.read_text("utf-8")


def test_answers_have_an_id_and_are_not_sniffed(plain: TestClient) -> None:
    ids = set()
    for path, host in (("/health", "127.0.0.1"), ("/nothing", "127.0.0.1"), ("/health", "evil")):
        headers = plain.get(path, headers={"host": host}).headers
        assert headers["x-content-type-options"] == "nosniff"
        ids.add(headers["x-request-id"])
    assert len(ids) == 3
