"""Serve models over HTTP (`serve`)."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from sememe.cli.options import Quiet, expand
from sememe.cli.program import app, echo, examples
from sememe.errors import MissingExtraError
from sememe.localization import say
from sememe.serve.config import ServeConfig

_NEEDED = ("fastapi", "uvicorn", "orjson", "prometheus_client", "swagger_ui_bundle")


@app.command(
    epilog=examples(
        "sememe serve runs/bert runs/reviews vectors.bin",
        "sememe serve encoder=runs/encoder docs=runs/docs-index --port 9000",
        "SEMEME_API_KEY=… sememe serve runs/encoder --host 0.0.0.0",
    ),
)
@expand(config="Service")
def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Models and search indexes; id=PATH names one."),
    ],
    config: ServeConfig,
    quiet: Quiet = False,
) -> None:
    """Serve models of any kind over HTTP, with the OpenAI API for vectors.

    The page /docs lists all routes. SIGTERM and Ctrl-C finish running
    requests. A model whose folder is replaced is loaded again.
    """
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise MissingExtraError(f"serve needs {missing[0]}: pip install 'sememe[serve]'.")
    from sememe.serve.app import serve as start

    def told(url: str) -> None:
        if not quiet:
            text = "Serving {num:,} models at {url}; see {url}/docs."
            if len(models) == 1:
                text = "Serving 1 model at {url}; see {url}/docs."
            echo(say(text, num=len(models), url=url))

    start(models, config, told)
