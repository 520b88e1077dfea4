"""Every route for every golden model: the answer of the Python call, or an error that says why."""

from __future__ import annotations

import base64
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("h5py")
pytest.importorskip("fastapi")

from fastapi.testclient import TestClient

import sememe
from sememe.contract import KINDS
from sememe.errors import SememeError
from sememe.serve.app import create_app
from sememe.serve.config import ServeConfig

sys.path.insert(0, str(Path(__file__).parents[1] / "contracts"))  # xdist may not have done it yet
from test_capabilities import ROWS, names

TEXTS = ["the cat sat", "a dog"]
TASKS = ("classify", "pairs", "regress", "choose", "tag", "answer")
ROUTES = {
    "/v1/models", "/v1/models/{name}", "/v1/embeddings", "/v1/neighbors", "/v1/analogy",
    "/v1/similarity", "/v1/fill", "/v1/generate", "/v1/next", "/v1/translate", "/v1/attention",
    "/v1/rerank", "/v1/search", "/embed", "/rerank", "/predict", "/tokenize", "/info", "/health",
    "/ready", "/metrics", *(f"/v1/{task}" for task in TASKS),
}  # fmt: skip
# What a wrong row may raise in Python; a request must get a 400 instead.
REFUSED = (SememeError, KeyError, IndexError, AttributeError, TypeError, ValueError)


def wait_until_ready(client: Any) -> None:
    """Wait until all models are loaded."""
    end_s = time.monotonic() + 120
    while client.get("/ready").status_code != 200:
        assert time.monotonic() < end_s
        time.sleep(0.05)


@pytest.fixture(scope="module")
def client(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    log = tmp_path_factory.mktemp("log") / "log.jsonl"
    app = create_app([golden / name for name in names()], ServeConfig(log_file=str(log)))
    with TestClient(app, base_url="http://localhost") as client:
        wait_until_ready(client)
        yield client


@pytest.fixture(scope="module")
def opened(golden: Path) -> Callable[[str], Any]:
    """Load a model as Python does, once."""
    found: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name not in found:
            found[name] = sememe.load(golden / name, device="auto")
        return found[name]

    return get


def answered(response: Any) -> Any:
    assert response.status_code == 200, response.text
    assert response.headers["x-request-id"]
    return response.json()


def is_refused(response: Any, status: int = 400) -> bool:
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return bool(error["message"] and error["type"] == "invalid_request_error" and error["code"])


def same(found: Any, wanted: Any) -> bool:
    """Whether JSON values are equal, numbers to 1e-6."""
    if isinstance(wanted, dict):
        assert isinstance(found, dict) and set(found) == set(wanted), (found, wanted)
        return all(same(found[name], wanted[name]) for name in wanted)
    if isinstance(wanted, np.ndarray):
        wanted = wanted.tolist()
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted), (found, wanted)
        return all(map(same, found, wanted))
    if isinstance(wanted, float | np.floating):
        assert found == pytest.approx(float(wanted), rel=1e-6, abs=1e-6)
        return True
    assert found == wanted
    return True


def unit(rows_ND: np.ndarray) -> np.ndarray:
    return rows_ND / np.maximum(np.linalg.norm(rows_ND, axis=1, keepdims=True), 1e-12)


def known_words(model: Any, count: int) -> list[str]:
    """Words of a model's vocabulary; a table of hashed n-grams lists none and knows all."""
    found = [word for word in list(model.words)[:200] if word.isalpha()][:count]
    return found if len(found) == count else ["cat", "dog", "sat", "mat"][:count]


by_model = pytest.mark.parametrize("name", names())


def test_no_route_is_untested(client: TestClient):
    assert set(client.get("/openapi.json").json()["paths"]) == ROUTES


def test_what_is_served(client: TestClient, opened: Any):
    data = answered(client.get("/v1/models"))["data"]
    assert [own["id"] for own in data] == names()
    assert {own["kind"] for own in data} == set(KINDS)
    for own in data:
        model = opened(own["id"])
        assert own["capabilities"] == sorted(model.capabilities) and own["state"] == "loaded"
        has_vectors = "embed" in model.capabilities
        wanted = model.embed(["."]).shape[1] if has_vectors else None
        assert own["dimensions"] == wanted, own["id"]
        assert own["max_tokens"] == ((model.max_tokens or None) if has_vectors else None)
        assert answered(client.get(f"/v1/models/{own['id']}")) == own
    assert is_not_found(client.get("/v1/models/nothing"))
    assert answered(client.get("/info"))["models"] == data
    assert answered(client.get("/health")) == {"status": "ok"}
    assert "sememe_requests_total" in client.get("/metrics").text


def is_not_found(response: Any) -> bool:
    error = response.json()["error"]
    return response.status_code == 404 and error["code"] == "model_not_found"


@pytest.mark.parametrize("path", sorted(path for path in ROUTES if "{" not in path))
def test_methods_and_bodies_that_are_wrong(path: str, client: TestClient):
    is_post = client.get(path).status_code == 405
    assert is_post or client.post(path, json={}).status_code == 405
    if is_post:
        headers = {"content-type": "application/json"}
        for body in (b"", b"{", b"[]", b'{"model": 1}', b'{"unknown": 1}', b"NaN"):
            assert is_refused(client.post(path, content=body, headers=headers), 422)
        assert client.post(path, content=b"\xff", headers=headers).status_code in (400, 422)


@by_model
def test_embeddings(name: str, client: TestClient, opened: Any):
    model, body = opened(name), {"model": name, "input": TEXTS}
    if "embed" not in model.capabilities:
        assert is_refused(client.post("/v1/embeddings", json=body))
        assert is_refused(client.post("/embed", json={"model": name, "inputs": TEXTS}))
        return
    wanted_ND = model.embed(TEXTS)
    found = answered(client.post("/v1/embeddings", json=body))
    assert same([own["embedding"] for own in found["data"]], wanted_ND)
    assert [own["index"] for own in found["data"]] == [0, 1] and found["model"] == name
    assert found["usage"]["prompt_tokens"] >= 2
    one = answered(client.post("/v1/embeddings", json=body | {"input": TEXTS[0]}))
    assert same([own["embedding"] for own in one["data"]], wanted_ND[:1])
    packed = answered(client.post("/v1/embeddings", json=body | {"encoding_format": "base64"}))
    for own, wanted_D in zip(packed["data"], wanted_ND, strict=True):
        found_D = np.frombuffer(base64.b64decode(own["embedding"]), "<f4")
        assert same(found_D, wanted_D.astype("f4"))
    width = wanted_ND.shape[1]
    whole = answered(client.post("/v1/embeddings", json=body | {"dimensions": width}))
    assert whole["data"] == found["data"]
    assert is_refused(client.post("/v1/embeddings", json=body | {"dimensions": width + 1}))
    fewer = client.post("/v1/embeddings", json=body | {"dimensions": 2})
    if model.is_matryoshka:
        vectors = [own["embedding"] for own in answered(fewer)["data"]]
        assert same(vectors, unit(wanted_ND[:, :2]))
    else:
        assert is_refused(fewer)
    for role in ("query", "document"):
        own = answered(client.post("/v1/embeddings", json=body | {"input_type": role}))
        vectors = [one["embedding"] for one in own["data"]]
        assert same(vectors, model.embed_role(TEXTS, role))
    own = answered(client.post("/embed", json={"model": name, "inputs": TEXTS}))
    assert same(own, unit(wanted_ND))
    raw = {"model": name, "inputs": TEXTS[0], "normalize": False, "truncate": None}
    assert same(answered(client.post("/embed", json=raw)), wanted_ND[:1])
    asked = raw | {"prompt_name": "query", "truncation_direction": "Right", "dimensions": width}
    assert same(answered(client.post("/embed", json=asked)), model.embed_role(TEXTS[:1], "query"))
    assert is_refused(client.post("/embed", json=raw | {"dimensions": width + 1}))
    assert is_refused(client.post("/embed", json=raw | {"truncation_direction": "left"}), 422)
    for nothing in ("", ["a", ""]):
        assert is_refused(client.post("/v1/embeddings", json=body | {"input": nothing}))


@by_model
def test_token_ids(name: str, client: TestClient, opened: Any):
    model, body = opened(name), {"model": name}
    if not model.embeds_ids:
        assert is_refused(client.post("/v1/embeddings", json=body | {"input": [[1, 2]]}))
        return
    ids = model.token_ids(TEXTS)
    found = answered(client.post("/v1/embeddings", json=body | {"input": ids}))
    assert same([own["embedding"] for own in found["data"]], model.embed(TEXTS))
    assert found["usage"]["prompt_tokens"] == sum(map(len, ids))
    one = answered(client.post("/v1/embeddings", json=body | {"input": ids[0]}))
    assert same(one["data"][0], found["data"][0])
    tei = answered(client.post("/embed", json=body | {"inputs": ids, "normalize": False}))
    assert same(tei, model.embed(TEXTS))
    # -1 is a word that a table of vectors does not know; a network knows no such token.
    lowest = -1 if model.max_tokens else -2
    for wrong in ([10**9], [lowest], [2**70], [-(2**70)]):
        assert is_refused(client.post("/v1/embeddings", json=body | {"input": wrong}))
    if not model.max_tokens:
        return
    # Too long: refused with the number of tokens, or truncated on request.
    long_ids = (ids[0] * 200)[: model.max_tokens + 3]
    response = client.post("/v1/embeddings", json=body | {"input": long_ids})
    assert is_refused(response, 422) and str(len(long_ids)) in response.json()["error"]["message"]
    cut = answered(client.post("/v1/embeddings", json=body | {"input": long_ids, "truncate": True}))
    kept = long_ids[: model.max_tokens]
    assert same(cut["data"][0]["embedding"], model.embed_token_ids([kept])[0])
    assert cut["truncated"] == [{"index": 0, "tokens": len(long_ids), "kept": model.max_tokens}]


@by_model
def test_tokenize(name: str, client: TestClient, opened: Any):
    model = opened(name)
    response = client.post("/tokenize", json={"model": name, "inputs": TEXTS})
    try:
        wanted = model.tokenize(TEXTS)
    except SememeError:
        assert is_refused(response)
        return
    if "embed" not in model.capabilities:
        assert is_refused(response)
        return
    for found, own in zip(answered(response), wanted, strict=True):
        assert [
            (one["id"], one["text"], one["start"], one["stop"]) for one in found
        ] == [tuple(one) for one in own]  # fmt: skip


@by_model
def test_words(name: str, client: TestClient, opened: Any):
    model = opened(name)
    calls = {
        "/v1/neighbors": {"word": "cat"},
        "/v1/analogy": {"a": "a", "b": "b", "c": "c"},
        "/v1/similarity": {"a": "a", "b": "b"},
    }
    if "words" not in model.capabilities:
        for path, body in calls.items():
            assert is_refused(client.post(path, json={"model": name} | body))
        return
    a, b, c, _ = known_words(model, 4)
    words = model.words

    def agrees(path: str, field: str, body: dict[str, Any], call: Callable[[], Any]) -> bool:
        response = client.post(path, json={"model": name} | body)
        try:
            wanted = call()
        except SememeError:
            return is_refused(response)
        if isinstance(wanted, list):
            wanted = [own._asdict() for own in wanted]
        return same(answered(response), {"model": name, field: wanted})

    assert agrees("/v1/neighbors", "neighbors", {"word": a, "num": 3},
                  lambda: words.neighbors(a, num=3))  # fmt: skip
    assert agrees("/v1/neighbors", "neighbors", {"positive": [a, b], "negative": [c]},
                  lambda: words.neighbors(positive=[a, b], negative=[c]))  # fmt: skip
    for method in ("add", "mul"):
        assert agrees("/v1/analogy", "answers", {"a": a, "b": b, "c": c, "method": method},
                      lambda method=method: words.analogy(a, b, c, 5, method=method))  # fmt: skip
    assert agrees("/v1/similarity", "similarity", {"a": a, "b": b}, lambda: words.similarity(a, b))
    assert agrees("/v1/neighbors", "neighbors", {"word": "\ud7ff\u2603"},
                  lambda: words.neighbors("\ud7ff\u2603"))  # fmt: skip


@by_model
def test_similarity_of_texts(name: str, client: TestClient, opened: Any):
    model = opened(name)
    body = {"model": name, "a": TEXTS[0], "b": TEXTS[1], "of": "texts"}
    response = client.post("/v1/similarity", json=body)
    if "embed" not in model.capabilities:
        assert is_refused(response)
        return
    a, b = unit(model.embed(TEXTS))
    assert same(answered(response)["similarity"], float(a @ b))


@by_model
def test_fill(name: str, client: TestClient, opened: Any):
    model, text = opened(name), "the [MASK] sat [MASK]"
    response = client.post("/v1/fill", json={"model": name, "text": text, "num": 3})
    if "fill" not in model.capabilities:
        assert is_refused(response)
        return
    wanted = [[own._asdict() for own in mask] for mask in model.fill(text, top=3)]
    assert same(answered(response), {"model": name, "masks": wanted})
    assert is_refused(client.post("/v1/fill", json={"model": name, "text": "no mask"}))


def events(text: str) -> list[Any]:
    """The data of server-sent events; the last one says that it is done."""
    found = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert found[-1] == "[DONE]"
    return [json.loads(line) for line in found[:-1]]


@by_model
def test_generate(name: str, client: TestClient, opened: Any):
    model = opened(name)
    options: dict[str, Any] = {"max_tokens": 8, "seed": 3}
    shaped = {"temperature": 0.8, "top_k": 20, "top_p": 0.95}
    if model.kind != "ngram":
        options |= shaped
    body = {"model": name, "prompt": "the cat", **options}
    response = client.post("/v1/generate", json=body)
    stream = client.post("/v1/generate", json=body | {"stream": True})
    if "generate" not in model.capabilities:
        assert is_refused(response) and is_refused(stream)
        return
    wanted = "".join(model.stream("the cat", **options))
    assert wanted and answered(response) == {"model": name, "text": wanted}
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert "".join(own["text"] for own in events(stream.text)) == wanted
    # What is wrong is told before a stream starts.
    is_ngram = model.kind == "ngram"
    wrong = shaped if is_ngram else {"prompt": "the cat " * 200}
    for is_stream in (False, True):
        refused = client.post("/v1/generate", json=body | wrong | {"stream": is_stream})
        assert is_refused(refused) if is_ngram else is_over_the_length(refused)
    assert isinstance(answered(client.post("/v1/generate", json={"model": name}))["text"], str)


def is_over_the_length(response: Any) -> bool:
    """Whether a text is refused with its number of tokens."""
    error = response.json()["error"]
    assert is_refused(response, 422) and error["code"] == "input_too_long"
    told = r"has [\d,]+ tokens, but this \w+ (sees|reads) no more"
    return bool(re.search(told, error["message"]))


@by_model
def test_next(name: str, client: TestClient, opened: Any):
    model = opened(name)
    response = client.post("/v1/next", json={"model": name, "text": "the ", "num": 3})
    if "next_words" not in model.capabilities:
        assert is_refused(response)
        return
    wanted = [{"word": own[0], "probability": own[1]} for own in model.next_words("the ", count=3)]
    assert wanted and same(answered(response), {"model": name, "suggestions": wanted})


def predicted(model: Any, rows: list[Any]) -> list[Any]:
    options = {"k": 1} if model.kind == "fasttext-classifier" else {}
    return [model.prediction_json(own) for own in model.predict(rows, **options)]


@by_model
@pytest.mark.parametrize("task", TASKS)
def test_tasks(task: str, name: str, client: TestClient, opened: Any):
    model = opened(name)
    kinds = ("classify", "fasttext-classifier") if task == "classify" else (task,)
    rows = ROWS.get(task, TEXTS)
    response = client.post(f"/v1/{task}", json={"model": name, "inputs": rows})
    if model.kind not in kinds:
        assert is_refused(response)
        return
    try:
        wanted = predicted(model, rows)
    except SememeError:
        assert is_refused(response)
        return
    assert same(answered(response), {"model": name, "predictions": wanted})


@by_model
def test_rows_of_another_form(name: str, client: TestClient, opened: Any):
    model = opened(name)
    if "predict" not in model.capabilities:
        return
    path = "/v1/" + model.kind.removeprefix("fasttext-").replace("classifier", "classify")
    for row in ("", [], {}, ["a"], ["a", "b", "c"], {"text": 1}, {"a": None}, {"tokens": [1]},
                {"question": [], "context": {}}, {"context": "a", "choices": "b"}):  # fmt: skip
        response = client.post(path, json={"model": name, "inputs": [row]})
        assert response.status_code == 200 or is_refused(response), row


@by_model
def test_predict_of_texts(name: str, client: TestClient, opened: Any):
    model = opened(name)

    def ask(inputs: Any) -> Any:
        return client.post("/predict", json={"model": name, "inputs": inputs})

    reads_pairs = "score_pairs" in model.capabilities
    rows = [tuple(TEXTS), tuple(TEXTS[::-1])] if reads_pairs else TEXTS
    batch = [list(row) for row in rows] if reads_pairs else [[text] for text in TEXTS]
    one = batch[0] if reads_pairs else TEXTS[0]
    try:
        wanted = predicted(model, rows)
    except REFUSED:
        wanted = None
    if wanted is None or model.kind in ("tag", "answer", "choose"):
        assert is_refused(ask(batch)) and is_refused(ask(one))
        return
    found = answered(ask(batch))
    assert len(found) == 2 and same(answered(ask(one)), found[0])
    # Two strings are a pair, as in TEI; a model that reads single texts takes them as texts.
    assert same(answered(ask(TEXTS)), found[0] if reads_pairs else found)
    assert is_refused(ask([[""]])) and is_refused(ask(" "))
    assert is_refused(ask([["a", "b", "c"]]), 422)
    if not reads_pairs:
        assert is_refused(ask([TEXTS]))
    for own, prediction in zip(found, wanted, strict=True):
        scores = {label["label"]: label["score"] for label in own}
        assert list(scores.values()) == sorted(scores.values(), reverse=True)
        if "score" in prediction:
            assert same(scores, {"score": prediction["score"]})
        elif "probabilities" in prediction:
            assert same(scores, prediction["probabilities"])
        else:
            labels = {label["label"]: label["probability"] for label in prediction["labels"]}
            assert same(scores, labels)


def row_of(task: str, text: str, other: str) -> Any:
    """A row with a short text and another that may be long."""
    if task in ("choose", "pairs"):
        choose = {"context": text, "choices": ["a", other, "the"]}
        return choose if task == "choose" else [text, other]
    return other


def words_of(model: Any, num_tokens: int) -> str:
    """A text of that many tokens."""
    for word in ("cat", "the", "a"):
        text = " ".join([word] * num_tokens)
        if len(model.coder.encode([text])[0].ids) == num_tokens:
            return text
    raise AssertionError(f"no word of {model} is one token")


def is_too_long(response: Any, tokens: int, room: int) -> bool:
    error = response.json()["error"]
    assert is_refused(response, 422) and error["code"] == "input_too_long"
    assert f"Input 1 has {tokens} tokens" in error["message"]
    return f"reads {room} at once" in error["message"]


@by_model
def test_rows_that_are_too_long(name: str, client: TestClient, opened: Any):
    model, task = opened(name), opened(name).kind
    if task not in ("classify", "pairs", "regress", "choose"):
        return
    num_texts = 2 if task in ("choose", "pairs") else 1
    room = model.coder.room(num_texts)
    free = room - 2 * (num_texts == 2)

    def body(num_tokens: int) -> dict[str, Any]:
        text, other = words_of(model, 2), words_of(model, num_tokens)
        return {"model": name, "inputs": [row_of(task, text, text), row_of(task, text, other)]}

    path, fits, longer = f"/v1/{task}", body(free), body(free + 3)
    assert "truncated" not in answered(client.post(path, json=fits))
    assert is_too_long(client.post(path, json=longer), room + 3, room)
    rows = [tuple(row) if task == "pairs" else row for row in longer["inputs"]]
    wanted = predicted(model, rows)
    report = [{"index": 1, "tokens": room + 3, "kept": room}]
    found = answered(client.post(path, json=longer | {"truncate": True}))
    assert same(found, {"model": name, "predictions": wanted, "truncated": report})
    # What is cut is not read: the row that just fits has the same prediction.
    kept = answered(client.post(path, json=fits))["predictions"]
    for own, same_tokens in zip(kept, wanted, strict=True):
        assert same(own | {"text": ""}, same_tokens | {"text": ""})
    if num_texts == 1:
        tei, tei_fits = (
            {**own, "inputs": [[row] for row in own["inputs"]]} for own in (longer, fits)
        )
        assert is_too_long(client.post("/predict", json=tei), room + 3, room)
        cut = client.post("/predict", json=tei | {"truncate": True})
        assert answered(cut) == answered(client.post("/predict", json=tei_fits))
        assert json.loads(cut.headers["x-truncated"]) == report
        assert cut.headers["x-truncated-count"] == "1"


@by_model
def test_documents_that_are_too_long(name: str, client: TestClient, opened: Any):
    model = opened(name)
    if "score_pairs" not in model.capabilities:
        return
    room, query = model.coder.room(2), words_of(model, 2)
    fits = {"model": name, "query": query, "documents": ["a", words_of(model, room - 2)]}
    longer = fits | {"documents": ["a", words_of(model, room + 5)]}
    assert "truncated" not in answered(client.post("/v1/rerank", json=fits))
    assert is_too_long(client.post("/v1/rerank", json=longer), room + 7, room)
    found = answered(client.post("/v1/rerank", json=longer | {"truncate": True}))
    assert found["truncated"] == [{"index": 1, "tokens": room + 7, "kept": room}]
    scores = model.score_pairs([(query, text) for text in longer["documents"]]).tolist()
    assert same({own["index"]: own["score"] for own in found["results"]}, dict(enumerate(scores)))
    tei = {"model": name, "query": query, "texts": longer["documents"]}
    assert is_too_long(client.post("/rerank", json=tei), room + 7, room)
    assert same(answered(client.post("/rerank", json=tei | {"truncate": True})), found["results"])


@by_model
def test_long_rows_that_are_read_in_windows(name: str, client: TestClient, opened: Any):
    model, task = opened(name), opened(name).kind
    if task not in ("tag", "answer"):
        return
    long = "the cat sat " * 40
    row: Any = long.split() if task == "tag" else {"question": "Who sat?", "context": long}
    found = answered(client.post(f"/v1/{task}", json={"model": name, "inputs": [row]}))
    assert same(found, {"model": name, "predictions": predicted(model, [row])})
    if task == "answer":  # but a long question is cut
        most = min(model.config.question_length, model.coder.room(2) // 2)
        rows = [{"question": "who", "context": "The cat sat."}]
        rows.append({"question": words_of(model, most + 1), "context": "The cat sat."})
        body = {"model": name, "inputs": rows}
        assert is_too_long(client.post("/v1/answer", json=body), most + 1, most)
        cut = answered(client.post("/v1/answer", json=body | {"truncate": True}))
        assert cut["truncated"] == [{"index": 1, "tokens": most + 1, "kept": most}]


@by_model
def test_translate(name: str, client: TestClient, opened: Any):
    model = opened(name)
    response = client.post("/v1/translate", json={"model": name, "texts": TEXTS})
    if "translate" not in model.capabilities:
        assert is_refused(response)
        return
    assert answered(response) == {"model": name, "translations": model.translate(TEXTS)}
    texts = [*TEXTS, "cat the " * 500]
    long = client.post("/v1/translate", json={"model": name, "texts": texts})
    assert is_over_the_length(long) and "Text 3 has" in long.json()["error"]["message"]


@by_model
def test_attention(name: str, client: TestClient, opened: Any):
    model, body = opened(name), {"model": name, "text": TEXTS[0]}
    response = client.post("/v1/attention", json=body)
    long = client.post("/v1/attention", json=body | {"text": "cat the " * 500})
    if "attention" not in model.capabilities:
        assert is_refused(response)
        return
    assert is_over_the_length(long)
    wanted = model.attention(TEXTS[0])
    found = answered(response)
    assert (found["target"], found["source"]) == (list(wanted.target), list(wanted.source))
    assert same(found["weights"], wanted.of()) and found["translation"] == wanted.translation
    assert (found["num_layers"], found["num_heads"]) == wanted.weights_LHTS.shape[:2]
    one = answered(client.post("/v1/attention", json=body | {"layer": 1, "head": 1}))
    assert same(one["weights"], wanted.of(1, 1))
    assert is_refused(client.post("/v1/attention", json=body | {"layer": 1_000}))
    pair = client.post("/v1/attention", json=body | {"other": TEXTS[1]})
    try:
        weights_TS = model.attention(*TEXTS).of()
    except SememeError:
        assert is_refused(pair)
    else:
        assert same(answered(pair)["weights"], weights_TS)


@by_model
def test_rerank(name: str, client: TestClient, opened: Any):
    model, documents = opened(name), ["the cat sat", "a dog", "the mat"]
    body = {"model": name, "query": "a cat"}
    response = client.post("/v1/rerank", json=body | {"documents": documents, "top": 2})
    tei = client.post("/rerank", json=body | {"texts": documents, "return_text": True})
    try:
        scores = model.score_pairs([("a cat", text) for text in documents]).tolist()
    except SememeError:
        assert is_refused(response) and is_refused(tei)
        return
    order = sorted(range(3), key=lambda index: -scores[index])
    wanted = [{"index": index, "score": scores[index]} for index in order]
    assert same(answered(response), {"model": name, "results": wanted[:2]})
    assert same(answered(tei), [own | {"text": documents[own["index"]]} for own in wanted])
    more = body | {"texts": documents, "truncate": None, "raw_scores": False}
    assert same(answered(client.post("/rerank", json=more)), wanted)
    assert is_refused(client.post("/rerank", json=more | {"raw_scores": True}), 422)


@by_model
def test_search_needs_an_index(name: str, client: TestClient):
    assert is_refused(client.post("/v1/search", json={"model": name, "query": "cat"}))


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/neighbors", "/v1/classify", "/embed"])
def test_the_model_must_be_named_and_served(path: str, client: TestClient):
    field = {"/v1/embeddings": "input", "/v1/neighbors": "word"}.get(path, "inputs")
    given = TEXTS[0] if field == "word" else TEXTS
    assert is_refused(client.post(path, json={field: given}))
    assert is_not_found(client.post(path, json={"model": "nothing", field: given}))


def test_a_search_index(client: TestClient, golden: Path, tmp_path: Path):
    from sememe.search.index import Search

    texts = ["the cat sat", "a dog ran", "the mat"]
    index = Search.build(texts, golden / "glove")
    index.save(tmp_path / "index")
    config = ServeConfig(log_file=str(tmp_path / "log"))
    paths = [tmp_path / "index", golden / "glove"]
    with TestClient(create_app(paths, config), base_url="http://localhost") as own:
        wait_until_ready(own)
        for mode in ("auto", "dense", "lexical", "hybrid"):
            wanted = [hit.to_dict() for hit in index.search("cat", 2, mode=mode)]
            body = {"query": "cat", "top": 2, "mode": mode}
            found = answered(own.post("/v1/search", json=body))
            assert same(found, {"model": "index", "hits": wanted})
        others: dict[str, Any] = {
            "/v1/embeddings": {"input": "a"}, "/v1/neighbors": {"word": "a"},
            "/v1/analogy": {"a": "a", "b": "b", "c": "c"}, "/v1/similarity": {"a": "a", "b": "b"},
            "/v1/fill": {"text": "[MASK]"}, "/v1/generate": {}, "/v1/next": {"text": "a"},
            "/v1/translate": {"texts": ["a"]}, "/v1/attention": {"text": "a"},
            "/v1/rerank": {"query": "a", "documents": ["a"]}, "/embed": {"inputs": "a"},
            "/rerank": {"query": "a", "texts": ["a"]}, "/predict": {"inputs": "a"},
            "/tokenize": {"inputs": "a"}, **{f"/v1/{task}": {"inputs": ["a"]} for task in TASKS},
        }  # fmt: skip
        is_get = {"/v1/models", "/v1/models/{name}", "/info", "/health", "/ready", "/metrics"}
        assert set(others) == ROUTES - is_get - {"/v1/search"}
        for path, body in others.items():
            assert is_refused(own.post(path, json={"model": "index"} | body))


def test_a_length_that_is_wrong_is_told_plainly(client: TestClient):
    for word, told in (("", "word is empty."), ("x" * 1001, "word may have 1,000 characters")):
        answer = client.post("/v1/neighbors", json={"model": "glove", "word": word})
        assert answer.status_code == 422 and told in answer.json()["error"]["message"]
