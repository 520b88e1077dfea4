"""The options of the service."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Literal

from sememe.errors import OptionError
from sememe.options import Config, option

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
KEY_VARIABLE = "SEMEME_API_KEY"


@dataclass(frozen=True, kw_only=True)
class ServeConfig(Config):
    """Where the service listens, who may use it, and the limits of a request."""

    host: str = option("127.0.0.1", "Address to listen on; others than this machine need a key.")
    port: int = option(8_000, "Port to listen on; 0: any free one.", 0, 65_535)
    api_key: str = option("", "Key that requests must send; also $SEMEME_API_KEY.")
    no_auth: bool = option(False, "Allow another host than this machine without a key.")
    allow_host: str = option("", "Further host names that requests may use, comma-separated.")
    cors: str = option("", "Origins whose pages may call the service, comma-separated.")
    lazy: bool = option(False, "Load models at their first request.")
    memory_limit: float = option(0, "Unload idle models above N GB of files; 0: never.", 0, 10**6)
    threads: int = option(0, "Threads of a network; 0: all cores.", 0, 1_024)
    device: Literal["auto", "cpu", "cuda"] = option("auto", "Where networks compute.")
    precision: Literal["fp32", "bf16"] = option("fp32", "Precision of the vectors of networks.")
    max_body: float = option(8, "Largest request body in MB.", 0.001, 10_000)
    max_inputs: int = option(2_048, "Maximum number of texts in one request.", 1, 10**6)
    max_input_tokens: int = option(300_000, "Maximum number of tokens in one request.", 1, 10**9)
    max_queue: int = option(512, "Maximum waiting requests; further ones get status 429.", 1, 10**6)
    timeout: float = option(120, "Seconds that a request may take.", 0.1, 86_400)
    log_file: str = option("", "File for the log, one JSON line per request; default: stderr.")

    def __post_init__(self) -> None:
        """Raise OptionError for a service that would be open to others by accident."""
        super().__post_init__()
        has_key = self.api_key or os.environ.get(KEY_VARIABLE)
        if self.host not in LOCAL_HOSTS and not (has_key or self.no_auth):
            raise OptionError(
                f"Host {self.host} lets other machines in: set api_key (or SEMEME_API_KEY), "
                "or allow it with no_auth."
            )
        if self.api_key and self.no_auth:
            raise OptionError("Give api_key or no_auth, not both.")
        is_plain = self.api_key.isascii() and self.api_key.isprintable()
        if not is_plain or self.api_key != self.api_key.strip():
            raise OptionError(
                "api_key must be of printable ASCII characters, without spaces around it."
            )

    @property
    def is_open(self) -> bool:
        """Whether other machines may call without a key."""
        return self.no_auth and self.host not in LOCAL_HOSTS

    @property
    def hosts(self) -> frozenset[str]:
        """The names that a Host header may have; empty: any, because a key protects the service.

        A page of another site could otherwise reach the service under the name of that site, whose
        address it changes to that of this machine. An open service also takes any address.
        """
        if self.api_key and not self.allow_host:
            return frozenset()
        own = [self.host, *listed(self.allow_host), *([socket.gethostname()] * self.is_open)]
        return frozenset(name.lower() for name in (*LOCAL_HOSTS, *own))


def listed(names: str) -> list[str]:
    """The names of a comma-separated list."""
    return [name.strip() for name in names.split(",") if name.strip()]
