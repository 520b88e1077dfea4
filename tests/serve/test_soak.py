"""Two minutes at saturation, with good and bad requests: memory stays, and no good one fails."""

import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

WARM_S, WHOLE_S = 30, 120
TEXT = "The cat sat on the mat."
GOOD: list[tuple[str, dict[str, Any]]] = [
    ("/v1/embeddings", {"model": "sentence", "input": [TEXT] * 8}),
    ("/v1/embeddings", {"model": "sentence", "input": "cat " * 900, "truncate": True}),
    ("/v1/embeddings", {"model": "words", "input": TEXT, "encoding_format": "base64"}),
    ("/v1/neighbors", {"model": "words", "word": "the"}),
    ("/v1/generate", {"model": "gpt", "prompt": "the", "max_tokens": 4}),
]
BAD: list[tuple[str, Any]] = [
    ("/v1/embeddings", {"model": "none", "input": TEXT}),
    ("/v1/embeddings", {"model": "sentence", "input": ""}),
    ("/v1/embeddings", {"model": "sentence", "input": "cat " * 9_000}),
    ("/v1/embeddings", {"model": "sentence", "input": [[10**9]]}),
    ("/v1/neighbors", {"model": "words", "word": "no such word"}),
    ("/v1/fill", {"model": "words", "text": "a"}),
    ("/nothing", {"a": 1}),
    ("/embed", [[[1]]]),
]


def memory(pid: int) -> int:
    """The resident memory of a process in kB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_memory_stays_and_good_requests_succeed(golden: Path, tmp_path: Path) -> None:
    models = [f"words={golden / 'word2vec-skipgram-negative'}", golden / "sentence", golden / "gpt"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sememe.cli", "serve", *map(str, models), "--port", "0",
         "--log-file", str(tmp_path / "log"), "--threads", "1"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    failed: list[Any] = []
    num_good = [0] * 4
    end_s = time.monotonic() + WHOLE_S

    def ask(worker: int, port: int) -> None:
        own = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        kind = {"content-type": "application/json"}
        number = worker
        while time.monotonic() < end_s and not failed:
            number += 1
            is_good = number % 3 != 0
            route, body = GOOD[number % len(GOOD)] if is_good else BAD[number % len(BAD)]
            try:
                own.request("POST", route, json.dumps(body), kind)
                answer = own.getresponse()
                told = answer.read()
            except OSError as error:
                failed.append((route, body, repr(error)))
                return
            if (is_good and answer.status != 200) or (
                not is_good and answer.status not in range(400, 500)
            ):
                failed.append((route, str(body)[:100], answer.status, told[:300]))
            num_good[worker] += is_good
            if number % 50 == 0:  # leave in the middle of a request
                with socket.create_connection(("127.0.0.1", port)) as gone:
                    gone.sendall(
                        b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                    )

    try:
        assert process.stdout
        found = re.search(r"http://127.0.0.1:(\d+)", process.stdout.readline())
        assert found
        threads = [threading.Thread(target=ask, args=(n, int(found[1]))) for n in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(WARM_S)
        before = memory(process.pid)
        for thread in threads:
            thread.join(WHOLE_S + 60)
        after = memory(process.pid)
    finally:
        process.terminate()
        status = process.wait(40)
    print(f"{sum(num_good):,} good requests; {before:,} kB, then {after:,} kB")
    assert not failed
    assert sum(num_good) > 1_000
    assert after < before * 1.02 + 5_000
    assert status == 0
