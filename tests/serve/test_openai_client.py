"""The client library of OpenAI with our service: only its base_url is changed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")
openai = pytest.importorskip("openai")
uvicorn = pytest.importorskip("uvicorn")

import sememe
from sememe.serve.app import create_app
from sememe.serve.config import ServeConfig

TEXTS = ["the cat sat", "a dog", "the mat"]
MODELS = ["bert", "glove", "sentence", "ngram"]
KEY = "secret"


@pytest.fixture(scope="module")
def url(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real server on a free port."""
    log = str(tmp_path_factory.mktemp("log") / "log")
    app = create_app([golden / name for name in MODELS], ServeConfig(api_key=KEY, log_file=log))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end_s = time.monotonic() + 60
    while not (server.started and app.service.is_ready):
        assert time.monotonic() < end_s and thread.is_alive()
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/v1"
    server.should_exit = True
    thread.join(30)


@pytest.fixture
def client(url: str) -> Iterator[Any]:
    with openai.OpenAI(base_url=url, api_key=KEY, max_retries=0) as client:
        yield client


def vectors(answer: Any) -> np.ndarray:
    return np.array([own.embedding for own in answer.data])


@pytest.mark.parametrize("name", ["bert", "glove", "sentence"])
def test_embeddings_equal_embed(name: str, client: Any, golden: Path):
    wanted_ND = sememe.load(golden / name).embed(TEXTS)
    # By default the client asks for base64 and decodes it.
    for options in ({}, {"encoding_format": "float"}):
        found = client.embeddings.create(model=name, input=TEXTS, **options)
        np.testing.assert_allclose(vectors(found), wanted_ND, rtol=1e-6, atol=1e-6)
        assert found.model == name and found.usage.total_tokens >= len(TEXTS)
    one = client.embeddings.create(model=name, input=TEXTS[0])
    np.testing.assert_allclose(vectors(one), wanted_ND[:1], rtol=1e-6, atol=1e-6)


def test_the_default_is_base64_on_the_wire(client: Any):
    raw = client.embeddings.with_raw_response.create(model="glove", input="cat")
    sent = raw.http_request.content
    assert b"base64" in sent and raw.headers["x-request-id"]
    text = client.embeddings.create(model="glove", input="cat", encoding_format="base64")
    assert isinstance(text.data[0].embedding, str)


def test_token_ids(client: Any, golden: Path):
    model = sememe.load(golden / "bert")
    found = client.embeddings.create(model="bert", input=model.token_ids(TEXTS))
    np.testing.assert_allclose(vectors(found), model.embed(TEXTS), rtol=1e-6, atol=1e-6)


def test_further_fields_are_sent_as_extra_body(client: Any, golden: Path):
    found = client.embeddings.create(
        model="bert", input="the cat " * 50, extra_body={"truncate": True}
    )
    most = sememe.load(golden / "bert").max_tokens
    assert found.usage.prompt_tokens == most and found.truncated[0]["kept"] == most


def test_models(client: Any):
    assert [own.id for own in client.models.list()] == MODELS
    own = client.models.retrieve("bert")
    assert own.object == "model" and own.owned_by == "sememe" and "embed" in own.capabilities


def test_errors(client: Any, url: str, golden: Path):
    with pytest.raises(openai.NotFoundError) as caught:
        client.embeddings.create(model="nothing", input="a")
    assert caught.value.code == "model_not_found" and caught.value.request_id
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nothing")
    long = "the cat " * 50
    (ids,) = sememe.load(golden / "bert").token_ids([long])
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        client.embeddings.create(model="bert", input=long)
    assert str(len(ids)) in caught.value.message and caught.value.code == "input_too_long"
    assert caught.value.param == "input" and caught.value.type == "invalid_request_error"
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="ngram", input="a")
    assert caught.value.code == "unsupported"
    with pytest.raises(openai.BadRequestError) as caught:
        client.embeddings.create(model="glove", input="")
    assert caught.value.code == "empty_input"
    with openai.OpenAI(base_url=url, api_key="wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError):
            stranger.models.list()
        with pytest.raises(openai.AuthenticationError):
            stranger.embeddings.create(model="glove", input="a")


def test_the_async_client_with_many_requests_at_once(url: str, golden: Path):
    models = {name: sememe.load(golden / name) for name in ("bert", "glove", "sentence")}
    texts = [f"the cat sat {word}" for word in ("on", "a mat", "and", "the dog", "ran")]

    async def ask() -> list[Any]:
        async with openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as client:
            assert [own.id async for own in client.models.list()] == MODELS
            with pytest.raises(openai.NotFoundError):
                await client.embeddings.create(model="nothing", input="a")
            calls = [
                client.embeddings.create(model=name, input=text)
                for text in texts for name in models for _ in range(3)
            ]  # fmt: skip
            return await asyncio.gather(*calls)

    wanted = [own.embed([text]) for text in texts for own in models.values() for _ in range(3)]
    for found, vector_1D in zip(asyncio.run(ask()), wanted, strict=True):
        np.testing.assert_allclose(vectors(found), vector_1D, rtol=1e-6, atol=1e-6)
