"""The page itself: its files, its security headers, and what it must know before it draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException

from sememe import __version__
from sememe.contract import KINDS
from sememe.explore.config import ExploreConfig
from sememe.explore.jobs import Jobs
from sememe.explore.routing import explore_router
from sememe.explore.view_examples import text_examples
from sememe.localization import catalogue, current, translate, using
from sememe.serve.models import INDEX, Served
from sememe.serve.routes import Body
from sememe.serve.service import Service, json_response

_STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"
}  # fmt: skip
# Nothing from another host, nothing inline. Pictures are drawn from blobs of the page's own.
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-cache",
}


def file_routes() -> APIRouter:
    """The files of the page, open to everybody: they hold nothing of a model."""
    router = APIRouter(include_in_schema=False)
    known = {
        path.relative_to(_STATIC).as_posix(): path
        for path in _STATIC.rglob("*")
        if path.suffix in _TYPES
    }

    def answer(name: str) -> Response:
        if (path := known.get(name)) is None:
            raise HTTPException(404, "There is no such file.")
        kind = f"{_TYPES[path.suffix]}; charset=utf-8"
        return Response(path.read_bytes(), headers=_HEADERS | {"content-type": kind})

    @router.get("/")
    async def root() -> Response:
        return RedirectResponse("/explore/")

    @router.get("/explore/")
    async def page() -> Response:
        return answer("index.html")

    @router.get("/explore/static/{name:path}")
    async def file(name: str) -> Response:
        return answer(name)

    return router


def state_routes(
    service: Service, config: ExploreConfig, jobs: Jobs, ladder: Any, text: str | Path | None
) -> APIRouter:
    """What is open: models, texts, the ladder, running jobs, and the texts of the interface."""
    router = explore_router()

    @router.get("/state", summary="The open models")
    async def state(request: Request) -> Response:
        shown = [own for own in service.models.served.values() if own.kind != INDEX]
        # Beside other requests: the first time, a network reads its whole vocabulary.
        work = service.batcher.call_beside(
            lambda: ([described(own) for own in shown], text_examples(english_words(shown)))
        )
        models, examples = await service.waiting(request, work)
        return json_response(
            {
                "version": __version__, "models": models, "language": current(),
                "is_ready": service.is_ready, "has_ladder": ladder is not None,
                "rows": config.rows, "text": str(text or ""), "examples": examples,
            }
        )  # fmt: skip

    @router.get("/messages/{language}", summary="The texts of the interface")
    async def messages(language: str) -> Response:
        return json_response(catalogue("zh", "explore") if language == "zh" else {})

    @router.get("/translation", summary="A message of the service in Chinese")
    async def translation(text: Annotated[str, Query(max_length=2_000)]) -> Response:
        with using("zh"):
            return json_response({"text": translate(text)})

    @router.get("/jobs/{key}", summary="The progress of a job")
    async def job(key: str) -> Response:
        return json_response(jobs.find(key).state())

    @router.post("/jobs/{key}/cancel", summary="End a job")
    async def cancel(request: Request, body: Body) -> Response:
        jobs.cancel(request.path_params["key"])
        return json_response({})

    return router


def described(own: Served) -> dict[str, Any]:
    """A model as the page knows it; sizes are missing until it is loaded."""
    model = own.model
    told: dict[str, Any] = {
        "id": own.name, "kind": own.kind, "title": KINDS[own.kind].title, "path": str(own.path),
        "capabilities": sorted(own.capabilities), "state": own.state, "error": own.error,
    }  # fmt: skip
    if model is None:
        return told
    # A fine-tuned model reads the language of the model it started from.
    base = (model.describe().get("data") or {}).get("base") or {}
    told["language"] = base.get("language") or model.text.language
    if "words" in model.capabilities:
        words = model.words
        told |= {
            "num_words": len(words), "dim": words.dim, "is_one_hot": words.is_one_hot,
            "has_subwords": words.has_subwords,
            # Of a network: which of its vectors they are.
            "words_are": words_are(model),
        }  # fmt: skip
    if "embed_words" in model.capabilities:
        told["num_layers"] = len(model.layer_widths)  # with the input vectors as layer 0
    return told


def english_words(served: Sequence[Served]) -> list[Any]:
    """The vectors of words of the loaded models that do not read Chinese."""
    models = [own.model for own in served if own.model is not None and "words" in own.capabilities]
    return [model.words for model in models if model.text.language != "zh"]


def words_are(model: Any) -> str:
    """Which vectors of a network its words are; empty for word vectors, and where unknown."""
    told = (own.describe().get("words_are") for own in (model, model.answering("words")))
    return next(filter(None, told), "")
