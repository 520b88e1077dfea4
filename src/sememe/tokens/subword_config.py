"""The options of a tokenizer: one dataclass for the command, the Python call, sememe.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sememe.options import Config, check_choices, check_ranges, option

Kind = Literal["wordpiece", "bpe"]
KINDS: tuple[Kind, ...] = ("wordpiece", "bpe")


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(Config):
    """Which pieces are learned."""

    kind: Kind = option("wordpiece", "BERT's WordPiece, or GPT-2's byte-level BPE.")
    vocab_size: int = option(30_522, "How many tokens there shall be, special ones among them.")
    accents: Literal["auto", "strip", "keep"] = option(
        "auto", "WordPiece: strip accents or keep them; auto strips them with --lowercase."
    )
    min_frequency: int = option(2, "Join two pieces only if they meet this often.")
    coverage: float = option(0.9999, "WordPiece: share of all characters that get a piece.")
    smoothing: float = option(
        0.7, "Several languages: power of a size that says how much of the mix it is."
    )
    workers: int = option(0, "Threads that read the text; 0 takes every core.")

    def __post_init__(self) -> None:
        """Refuse options that no run could satisfy, naming the option and its range."""
        check_choices(self, kind=KINDS, accents=("auto", "strip", "keep"))
        check_ranges(
            self,
            vocab_size=(1, 2**24),
            min_frequency=(1, 10**12),
            coverage=(0.5, 1.0),
            smoothing=(0, 1),
            workers=(0, 1_024),
        )
