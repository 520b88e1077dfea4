"""Requests that schemathesis makes up from the OpenAPI schema: none may fail the service."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("h5py")
pytest.importorskip("fastapi")
pytest.importorskip("schemathesis")

import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from schemathesis import GenerationMode

from sememe.search.index import Search
from sememe.serve.app import create_app
from sememe.serve.config import ServeConfig

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))  # xdist may not have done it yet
from test_capabilities import names

MODELS = [
    "bert", "gpt", "ngram", "glove", "fasttext", "sentence-neighbors", "transformer", "classify",
    "classifier", "pairs", "regress", "choose", "tag", "answer",
]  # fmt: skip
ALLOWED = (503, 504)


def fuzz(golden: Path, folder: Path, num: int) -> Counter[int]:
    """Send at least `num` requests to all routes, half of them invalid; count the answers."""
    assert set(MODELS) <= set(names())
    log = folder / "log.jsonl"
    config = ServeConfig(log_file=str(log), timeout=30)
    index = folder / "index"
    Search.build(["the cat sat", "a dog ran", "the mat"], golden / "glove").save(index)
    served = [*MODELS, index.name]
    app = create_app([*(golden / name for name in MODELS), index], config)
    counts: Counter[int] = Counter()
    failures: list[str] = []
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        end_s = time.monotonic() + 120
        while client.get("/ready").status_code != 200:
            assert time.monotonic() < end_s
            time.sleep(0.05)
        content = client.get("/openapi.json").json()
        # Made-up model ids would never reach a model.
        for own in content["components"]["schemas"].values():
            if "model" in own.get("properties", {}):
                own["properties"]["model"] = {"enum": served}
                own["required"] = sorted({*own.get("required", ()), "model"})
            if "max_tokens" in own.get("properties", {}):
                own["properties"]["max_tokens"]["maximum"] = 8
        schema = schemathesis.openapi.from_dict(content)
        operations = [own.ok() for own in schema.get_all_operations()]
        has_body = [own for own in operations if own.method.upper() == "POST"]
        each = -(-num // (2 * len(has_body)))

        def send(case: Any) -> None:
            own = case.as_transport_kwargs(base_url="http://localhost")
            options = {name: own[name] for name in ("params", "headers") if own.get(name)}
            for name in ("json", "data", "files"):
                if name in own:
                    options["content" if name == "data" else name] = own[name]
            if isinstance(options.get("content"), dict):
                options["data"] = options.pop("content")
            try:
                request = client.build_request(own["method"], own["url"], **options)
            except (TypeError, ValueError, UnicodeError):
                return  # nothing that can be sent
            status = client.send(request).status_code
            counts[status] += 1
            if status >= 500 and status not in ALLOWED:
                failures.append(f"{status} {own['method']} {own['url']} {options!r}"[:600])

        for operation in operations:
            is_post = operation in has_body  # routes without a body have no invalid requests
            for mode in GenerationMode if is_post else [GenerationMode.POSITIVE]:
                _run(operation.as_strategy(generation_mode=mode), send, each if is_post else 3)
    lines = map(json.loads, log.read_text("utf-8").splitlines())
    faults = [own["fault"] for own in lines if "fault" in own]
    assert not failures, (len(failures), failures[:10], faults[:10])
    return counts


def _run(strategy: Any, send: Any, num: int) -> None:
    @settings(
        max_examples=num, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.data())
    def run(data: Any) -> None:
        send(data.draw(strategy))

    run()


def test_some_requests(golden: Path, tmp_path: Path):
    counts = fuzz(golden, tmp_path, 150)
    assert counts.total() >= 150 and counts[200] and counts[422], counts


@pytest.mark.slow
def test_many_requests(golden: Path, tmp_path: Path):
    counts = fuzz(golden, tmp_path, 5_500)
    print(f"{counts.total():,} requests: {sorted(counts.items())}")
    assert counts.total() >= 5_000 and counts[200] > 100 and counts[422] > 100, counts
