"""How GPT chooses the next token: one dataclass for the command and the Python call."""

from __future__ import annotations

from dataclasses import dataclass

from sememe.options import check_ranges, option


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is chosen."""

    max_tokens: int = option(50, "Most tokens to write.")
    temperature: float = option(1.0, "Below 1 surer, above 1 bolder; 0 takes the likeliest token.")
    top_k: int = option(0, "Choose among this many likeliest tokens; 0 among all.")
    top_p: float = option(1.0, "Choose among the likeliest tokens that reach this probability.")
    seed: int = option(1, "Start of every random choice.")

    def __post_init__(self) -> None:
        """Refuse options out of their ranges."""
        check_ranges(
            self, max_tokens=(1, 10**9), temperature=(0, 1_000), top_k=(0, 2**31), top_p=(0, 1),
            seed=(0, 2**62),
        )  # fmt: skip
