"""Look inside models in a browser (`explore`)."""

from __future__ import annotations

import threading
import webbrowser
from importlib.util import find_spec
from typing import Annotated

import typer

from sememe.cli.options import Quiet, expand, flag
from sememe.cli.program import app, echo, examples
from sememe.errors import MissingExtraError
from sememe.explore.config import ExploreConfig
from sememe.localization import say


@app.command(
    epilog=examples(
        "sememe explore",
        "sememe explore runs/words runs/bert vectors.bin",
        "sememe explore runs/my-ladder --no-browser --port 9000",
        "sememe explore runs/encoder --rows reviews.csv",
    ),
)
@expand(config="Explorer")
def explore(
    config: ExploreConfig,
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="Models, or one ladder; default: runs/ladder."),
    ] = None,
    no_browser: Annotated[
        bool, flag("--no-browser", help="Print the address; open no browser window.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Look inside models of any kind in a browser.

    Neighbors, maps, words in context, attention, predictions and training,
    for one model or several side by side. The page is served on this
    machine only and loads nothing from the network. Ctrl-C stops it.
    """
    if find_spec("fastapi") is None or find_spec("orjson") is None:
        raise MissingExtraError("explore needs fastapi: pip install 'sememe[explore]'.")
    from sememe.explore.app import Explorer

    explorer = Explorer(models or [], config)

    def told(url: str) -> None:
        if not quiet:
            num = len(explorer.paths)
            text = "Exploring {num:,} models at {url}/explore/ (Ctrl-C stops)."
            if num == 1:
                text = "Exploring 1 model at {url}/explore/ (Ctrl-C stops)."
            echo(say(text, num=num, url=url))
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(f"{url}/explore/",), daemon=True).start()

    explorer.serve(told)
