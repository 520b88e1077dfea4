"""The explorer as a service: models or a ladder in, a page on this machine out."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from sememe.errors import InputError, LookupNote
from sememe.explore.attention import attention_routes
from sememe.explore.config import ExploreConfig
from sememe.explore.context import context_routes
from sememe.explore.jobs import Jobs
from sememe.explore.ladder import find_ladder, ladder_routes
from sememe.explore.learning import learning_routes
from sememe.explore.map import map_routes
from sememe.explore.page import file_routes, state_routes
from sememe.explore.predictions import prediction_routes
from sememe.explore.rows import OwnRows
from sememe.explore.uses import UsesText
from sememe.explore.words import word_routes
from sememe.serve.app import create_app, serve
from sememe.serve.config import ServeConfig
from sememe.serve.service import Service

DEFAULT_LADDER = Path("runs/ladder")


class Explorer:
    """What `create_app` adds to a service of models: the page and its routes."""

    def __init__(self, paths: Sequence[str | Path], config: ExploreConfig | None = None) -> None:
        """Take models, or one ladder; without paths, the ladder of `make run`."""
        self.config = config or ExploreConfig()
        given = list(paths) or [DEFAULT_LADDER]
        if not paths and not DEFAULT_LADDER.exists():
            raise InputError(
                f"There is no {DEFAULT_LADDER} here: name models to explore, as in "
                "sememe explore runs/words, or train a ladder first: sememe ladder."
            )
        self.ladder = find_ladder(given[0]) if len(given) == 1 else None
        self.paths: Sequence[str | Path] = self.ladder.models if self.ladder else given
        # Read now: an unclear file is refused at the start, not at the first click.
        self.rows = OwnRows(self.config.rows) if self.config.rows else None
        self.uses = UsesText(self.text)
        self.jobs = Jobs()

    @property
    def text(self) -> str | Path | None:
        """The corpus that shows words in use; None: the built-in one."""
        return self.config.text or (self.ladder.text if self.ladder else None)

    def add_to(self, app: FastAPI, service: Service) -> None:
        """Add the routes."""
        for router in (
            file_routes(),
            state_routes(service, self.config, self.jobs, self.ladder, self.text),
            word_routes(service),
            map_routes(service, self.jobs, self.rows),
            context_routes(service, self.uses),
            attention_routes(service),
            prediction_routes(service),
            learning_routes(service, self.jobs, self.text),
            ladder_routes(self.ladder),
        ):
            app.include_router(router)

    def create_app(self) -> Any:
        """The ASGI application."""
        return create_app(self.paths, self._service_config(), self.add_to)

    def serve(self, on_start: Any = print) -> None:
        """Serve the page until Ctrl-C."""
        # The page shows what was looked up instead of a word; the terminal need not repeat it.
        warnings.simplefilter("ignore", LookupNote)
        try:
            serve(self.paths, self._service_config(), on_start, self.add_to)
        finally:
            self.jobs.close()

    def _service_config(self) -> ServeConfig:
        # The log of requests would bury the address on the terminal.
        own = self.config
        return ServeConfig(port=own.port, device=own.device, log_file=os.devnull)
