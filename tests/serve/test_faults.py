"""What goes wrong while a service runs: one model, one client or one disk never stops the rest."""

import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from fastapi.testclient import TestClient

import sememe
from sememe.errors import OptionError
from sememe.serve.app import create_app, serve
from sememe.serve.config import ServeConfig

WORDS = "word2vec-skipgram-negative"
TEXT = "The cat sat on the mat."


class Server:
    """A process that serves models."""

    def __init__(self, *models: str, log_file: str = "/dev/full") -> None:
        command = [sys.executable, "-m", "sememe.cli", "serve", *models, "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--log-file", log_file, "--threads", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        lines: queue.Queue[str] = queue.Queue()
        out = self.process.stdout
        assert out
        threading.Thread(target=lambda: lines.put(out.readline()), daemon=True).start()
        line = lines.get(timeout=300)
        self.url = next(part for part in line.split() if part.startswith("http")).rstrip(";")
        parts = urlsplit(self.url)
        self.address = (parts.hostname or "", parts.port or 0)

    def post(self, route: str, timeout: float = 120, **body: Any) -> tuple[int, Any]:
        """The status and the answer to a request."""
        request = urllib.request.Request(
            self.url + route, json.dumps(body).encode() if body else None,
            {"content-type": "application/json"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def vector(self, model: str) -> np.ndarray:
        """The vector of a text."""
        status, answer = self.post("/v1/embeddings", model=model, input=TEXT)
        assert status == 200, answer
        return np.array(answer["data"][0]["embedding"])

    def raw(self, data: bytes) -> socket.socket:
        """A connection that has sent something."""
        own = socket.create_connection(self.address, timeout=60)
        own.sendall(data)
        return own

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()


def soon(check: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether something becomes true in time."""
    end_s = time.monotonic() + seconds
    while not (found := check()) and time.monotonic() < end_s:
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def folder(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models that the tests may change."""
    own = tmp_path_factory.mktemp("models")
    for name in ("sentence", "gpt", WORDS):
        shutil.copytree(golden / name, own / name)
    return own


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """One process for the tests below; its log is a full disk."""
    own = Server(*(str(folder / name) for name in ("sentence", "gpt", WORDS)))
    try:
        assert soon(lambda: own.post("/ready")[0] == 200, 300)
        yield own
    finally:
        own.process.kill()
        own.process.wait()


def answers(server: Server) -> bool:
    """Whether each model answers, quickly."""
    start_s = time.monotonic()
    assert server.vector("sentence").ndim == server.vector(WORDS).ndim == 1
    status, _ = server.post("/v1/generate", model="gpt", prompt="the", max_tokens=2)
    assert status == 200
    return time.monotonic() - start_s < 25  # less than any limit of a connection


# ---- a process ----------------------------------------------------------------------------------


def test_a_full_disk_loses_log_lines_and_no_requests(server: Server) -> None:
    for _ in range(20):
        assert answers(server)

    def num_lost() -> float:
        told = urllib.request.urlopen(server.url + "/metrics", timeout=60).read().decode()
        lost = next(line for line in told.splitlines() if line.startswith("sememe_unlogged_total"))
        return float(lost.split()[-1])

    assert soon(lambda: num_lost() >= 60)  # lines are written together, a moment later


def test_a_replaced_folder_is_loaded(server: Server, folder: Path, golden: Path) -> None:
    old = server.vector("sentence")
    new = sememe.load(golden / "sentence-neighbors").embed([TEXT])[0]
    assert old.shape != new.shape or not np.allclose(old, new)
    shutil.copytree(golden / "sentence-neighbors", folder / "draft")
    (folder / "sentence").rename(folder / "before")
    (folder / "draft").rename(folder / "sentence")

    def is_new() -> bool:
        found = server.vector("sentence")  # each request succeeds, whichever model answers
        return found.shape == new.shape and np.allclose(found, new, atol=1e-5)

    assert soon(is_new)
    (folder / "sentence").rename(folder / "draft")  # for a moment nothing is there
    time.sleep(1.1)
    assert is_new()
    (folder / "before").rename(folder / "sentence")
    assert soon(lambda: server.vector("sentence").shape == old.shape and not is_new())
    np.testing.assert_allclose(server.vector("sentence"), old, atol=1e-5)
    shutil.rmtree(folder / "draft")


@pytest.mark.parametrize("damage", ["cut", "noise", "config", "gone"])
def test_a_damaged_folder_leaves_the_old_model(server: Server, folder: Path, damage: str) -> None:
    old = server.vector("sentence")
    file = folder / "sentence" / ("config.json" if damage == "config" else "model.safetensors")
    whole = file.read_bytes()
    # Replaced, not written into: the running process may have mapped the file.
    draft = folder / "file"
    draft.write_bytes({"cut": whole[:100], "config": b"{]"}.get(damage, os.urandom(len(whole))))
    draft.replace(file)
    if damage == "gone":
        file.unlink()

    def error() -> str:
        np.testing.assert_allclose(server.vector("sentence"), old, atol=1e-5)
        return server.post("/v1/models/sentence")[1].get("error", "")

    assert soon(lambda: bool(error()))
    assert answers(server)
    draft.write_bytes(whole)
    draft.replace(file)
    assert soon(lambda: not error())
    assert answers(server)


def test_half_sent_requests_and_slow_readers_harm_nobody(server: Server) -> None:
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = json.dumps({"model": "sentence", "input": [TEXT] * 500}).encode()
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    left = [
        server.raw(sent)
        for sent in (
            b"", b"GET /v1/mod", head, head + b"Content-Length: 50\r\n\r\n{", whole,
            head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{", b"\0" * 100, b"\r\n",
        )
        for _ in range(10)
    ]  # fmt: skip
    assert answers(server)
    for own in left:
        own.close()
    assert answers(server)


def test_giant_headers_are_refused(server: Server) -> None:
    for sent in (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ", b"GET /", b"Z"):
        own = socket.create_connection(server.address, timeout=60)
        try:
            for _ in range(10):
                own.sendall(sent + b"a" * 1_000_000)
            own.sendall(b"\r\n\r\n")
            answer = own.recv(1_000)
        except (ConnectionResetError, BrokenPipeError):
            answer = b""
        finally:
            own.close()
        # Z is no method. The answer is lost if the system has bytes left that nobody has read.
        status = b"400" if sent == b"Z" else b"431"
        assert answer == b"" or answer.startswith(b"HTTP/1.1 " + status), answer
    for length in (b"-1", b"9" * 5_000, b"1\r\nContent-Length: 2", b"x"):
        with server.raw(
            b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + length + b"\r\n\r\n"
        ) as own:
            assert own.recv(1_000).startswith(b"HTTP/1.1 4")
    assert answers(server)


def num_waiting(server: Server) -> float:
    """The requests in the queue."""
    told = urllib.request.urlopen(server.url + "/metrics", timeout=60).read().decode()
    line = next(line for line in told.splitlines() if line.startswith("sememe_queue "))
    return float(line.split()[-1])


def test_clients_that_leave_do_not_stay_in_the_queue(server: Server) -> None:
    body = json.dumps({"model": "sentence", "input": [TEXT] * 2_000}).encode()
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"
    kind = b"Content-Type: application/json\r\n\r\n"
    for own in [server.raw(head % len(body) + kind + body) for _ in range(10)]:
        own.close()

    assert soon(lambda: num_waiting(server) == 0)
    assert answers(server)


@pytest.mark.parametrize("stream", [False, True])
def test_a_generation_ends_when_its_client_leaves(server: Server, stream: bool) -> None:
    body = json.dumps({"model": "gpt", "max_tokens": 4_096, "stream": stream}).encode()
    head = b"POST /v1/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"
    kind = b"Content-Type: application/json\r\n\r\n"
    left = [server.raw(head % len(body) + kind + body) for _ in range(20)]
    assert soon(lambda: num_waiting(server) > 0)
    for own in left:
        own.close()
    assert soon(lambda: num_waiting(server) == 0, 20)  # without that it takes minutes
    assert answers(server)


def test_sigterm_finishes_what_runs(server: Server) -> None:
    """The last test of the process: it ends."""
    found: list[Any] = []

    def ask() -> None:
        found.append(server.post("/v1/embeddings", model="sentence", input=[TEXT] * 2_000))

    left = server.raw(b"GET /v1/mod")
    thread = threading.Thread(target=ask)
    thread.start()
    assert soon(lambda: num_waiting(server) > 0 or bool(found))
    assert server.stop() == 0
    thread.join(60)
    left.close()
    assert found[0][0] == 200
    assert len(found[0][1]["data"]) == 2_000


# ---- in this process ----------------------------------------------------------------------------


def client(folder: Path, names: tuple[str, ...] = ("sentence", WORDS), **options: Any) -> Any:
    paths = [folder / name for name in names]
    return TestClient(create_app(paths, ServeConfig(**options)), base_url="http://127.0.0.1")


def embed(own: Any, model: str, text: str = TEXT) -> Any:
    return own.post("/v1/embeddings", json={"model": model, "input": text})


def served(own: Any, name: str) -> Any:
    return own.app.service.models.served[name]


@pytest.mark.parametrize(
    ("error", "status"),
    [(RuntimeError("CUDA error"), 500), (MemoryError(), 503), (ZeroDivisionError(), 500)],
)
def test_a_model_that_fails_leaves_the_others(golden: Path, error: Exception, status: int) -> None:
    with client(golden) as own:
        assert embed(own, "sentence").status_code == 200

        def broken(*_: Any, **__: Any) -> None:
            raise error

        model = served(own, "sentence").model
        model.embed = model.embed_token_ids = broken
        for _ in range(3):
            response = embed(own, "sentence")
            assert response.status_code == status
            assert response.json()["error"]["type"] == "server_error"
            assert ("retry-after" in response.headers) == (status == 503)
            assert embed(own, WORDS).status_code == 200
        assert own.get("/health").status_code == own.get("/ready").status_code == 200
        del model.embed, model.embed_token_ids
        assert embed(own, "sentence").status_code == 200


def test_a_model_that_cannot_be_loaded_leaves_the_others(golden: Path, tmp_path: Path) -> None:
    for name in ("sentence", WORDS):
        shutil.copytree(golden / name, tmp_path / name)
    file = tmp_path / "sentence" / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:50])
    log = tmp_path / "log"
    with client(tmp_path, log_file=str(log)) as own:
        assert soon(lambda: own.get("/ready").status_code == 200)
        response = embed(own, "sentence")
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "model_unavailable"
        assert own.get("/v1/models/sentence").json()["state"] == "failed"
        assert embed(own, WORDS).status_code == 200
        file.write_bytes(whole)
        assert soon(lambda: embed(own, "sentence").status_code == 200)
    events = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    told = [(own["event"], own["model"]) for own in events if "event" in own]
    assert told == [("load failed", "sentence"), ("loaded", WORDS), ("loaded", "sentence")]
    (why,) = [own["error"] for own in events if own.get("event") == "load failed"]
    assert "model.safetensors" in why


def test_draining_is_told(golden: Path) -> None:
    with client(golden, (WORDS,), lazy=True) as own:
        assert soon(lambda: own.get("/ready").status_code == 200)
        own.app.service.is_draining = True
        response = own.get("/ready")
        assert (response.status_code, response.json()) == (503, {"status": "draining"})
        assert own.get("/health").status_code == 200


def test_a_full_queue_says_when_to_come_again(golden: Path) -> None:
    with client(golden, max_queue=1) as own:
        assert embed(own, "sentence").status_code == 200
        model, go, started = served(own, "sentence").model, threading.Event(), threading.Event()
        real = model.embed_token_ids

        def slow(ids: list[Any]) -> Any:
            started.set()
            assert go.wait(60)
            return real(ids)

        model.embed_token_ids = slow
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(embed(own, "sentence").status_code))
        thread.start()
        assert started.wait(60)
        response = embed(own, "sentence")
        assert response.status_code == 429
        assert int(response.headers["retry-after"]) >= 1
        assert response.json()["error"]["code"] == "queue_full"
        assert own.get("/health").status_code == 200
        go.set()
        thread.join(60)
        assert found == [200]
        assert embed(own, "sentence").status_code == 200


def test_a_request_that_takes_too_long_ends(golden: Path) -> None:
    with client(golden) as own:
        assert embed(own, "sentence").status_code == 200
        own.app.service.config = replace(own.app.service.config, timeout=0.2)
        model = served(own, "sentence").model
        model.embed_token_ids = lambda ids: time.sleep(1)
        response = embed(own, "sentence")
        assert response.status_code == 504
        assert response.json()["error"]["code"] == "timeout"
        assert own.app.service.batcher.num_waiting == 0


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def test_the_memory_limit_unloads_idle_models(golden: Path) -> None:
    most = max(size(golden / "sentence"), size(golden / "gpt")) + 1_000
    with client(golden, ("sentence", "gpt"), lazy=True, memory_limit=most / 1e9) as own:
        for _ in range(2):
            assert embed(own, "sentence").status_code == 200
            assert served(own, "gpt").state == "unloaded"
            assert embed(own, "gpt").status_code == 200
            assert served(own, "sentence").state == "unloaded"
            assert served(own, "gpt").state == "loaded"


def test_a_model_in_use_is_not_unloaded(golden: Path) -> None:
    most = max(size(golden / "sentence"), size(golden / "gpt")) + 1_000
    with client(golden, ("sentence", "gpt"), lazy=True, memory_limit=most / 1e9) as own:
        assert embed(own, "sentence").status_code == 200
        with own.app.service.models.using(served(own, "sentence")):
            response = embed(own, "gpt")
            assert response.status_code == 503
            assert "retry-after" in response.headers
            assert embed(own, "sentence").status_code == 200
        # As soon as there is room it is loaded: its files did not change.
        assert embed(own, "gpt").status_code == 200


def test_rows_with_too_much_text_are_refused(golden: Path) -> None:
    """What is not cut into batches would block all others."""
    with client(golden, ("classify", "pairs"), max_input_tokens=100) as own:
        for route, sent in (
            ("/v1/classify", {"model": "classify", "inputs": ["cat " * 200]}),
            ("/v1/classify", {"model": "classify", "inputs": ["cat"] * 200}),
            ("/v1/rerank", {"model": "pairs", "query": "cat " * 200, "documents": ["a"]}),
        ):
            response = own.post(route, json=sent)
            assert response.status_code == 422, response.text
            assert response.json()["error"]["code"] == "too_many_tokens"
        sent = {"model": "classify", "inputs": ["cat " * 20]}
        assert own.post("/v1/classify", json=sent).status_code == 200


def test_what_one_call_would_compute_for_long_is_refused(golden: Path) -> None:
    """A call is computed between two batches: all other requests would wait for it."""
    names = ("bert", "gpt", WORDS)
    with client(golden, names, lazy=True, max_input_tokens=10_000) as own:
        for route, sent in (
            ("/v1/fill", {"model": "bert", "text": "[MASK] " * 3_000}),
            ("/v1/fill", {"model": "bert", "text": "猫" * 6_000 + "[MASK]"}),
            ("/v1/attention", {"model": "bert", "text": "a", "other": "cat " * 5_000}),
            ("/v1/next", {"model": "gpt", "text": "cat " * 5_000}),
            ("/v1/similarity", {"model": WORDS, "a": "cat " * 5_000, "b": "a"}),
            ("/v1/neighbors", {"model": WORDS, "positive": ["x" * 1_000] * 20}),
            ("/tokenize", {"model": "bert", "inputs": ["cat " * 6_000] * 2}),
        ):
            response = own.post(route, json=sent)
            assert response.status_code == 422, (route, response.text)
            assert response.json()["error"]["code"] == "too_many_tokens"
        text = "the cat " * 400 + "[MASK]"  # longer than the network, which reads it in windows
        assert own.post("/v1/fill", json={"model": "bert", "text": text}).status_code == 200


def test_a_network_is_never_asked_by_the_event_loop(
    golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A further thread that asks it for anything would leave a team of OpenMP behind."""
    with client(golden) as own:
        assert embed(own, "sentence").status_code == 200
        model, threads = served(own, "sentence").model, set()
        for name in ("words", "embed_token_ids", "embed", "tokenize"):
            real = getattr(type(model), name)

            def noted(*given: Any, real: Any = real) -> Any:
                threads.add(threading.current_thread().name)
                return real.fget(*given) if isinstance(real, property) else real(*given)

            is_value = isinstance(real, property)
            monkeypatch.setattr(type(model), name, property(noted) if is_value else noted)
        assert embed(own, "sentence").status_code == 200
        for route, sent in (
            ("/v1/similarity", {"a": "cat", "b": "dog"}),
            ("/v1/neighbors", {"word": "cat"}),
            ("/tokenize", {"inputs": TEXT}),
        ):
            assert own.post(route, json={"model": "sentence", **sent}).status_code == 200
        assert own.get("/v1/models").status_code == 200
        assert threads == {"sememe-batch_0"}


def test_a_model_replaced_while_a_request_waits_does_not_mix(golden: Path) -> None:
    """Token ids of the old model are never given to the new one."""
    with client(golden, ("sentence",)) as own:
        long = "cat " * 1_000  # read off the event loop
        sent = {"model": "sentence", "input": long, "truncate": True}
        expected = own.post("/v1/embeddings", json=sent).json()["data"]
        old = served(own, "sentence").model
        real = old.token_ids

        def replaced(texts: list[str]) -> Any:
            served(own, "sentence").model = None
            return real(texts)

        old.token_ids = replaced
        assert own.post("/v1/embeddings", json=sent).json()["data"] == expected


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_named(golden: Path, host: str) -> None:
    with pytest.raises(OptionError, match=f"host {host}, port 0: [A-Z]"):
        serve([golden / "glove"], ServeConfig(host=host, port=0, no_auth=True, lazy=True))


def test_a_port_in_use_is_named(golden: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(OptionError, match=f"Port {port} is in use.*--port 0"):
            serve([golden / "glove"], ServeConfig(port=port, lazy=True))
