"""The options of the n-gram model: one dataclass for the command, the Python call, sememe.json."""

from dataclasses import dataclass

from sememe.errors import OptionError
from sememe.options import Config, option, parse_size


@dataclass(frozen=True, kw_only=True)
class NGramConfig(Config):
    """The options for counting and pruning (Chen & Goodman 1999)."""

    order: int = option(5, "Order: words in the longest n-grams, 1 to 6.", 1, 6)
    min_count: int = option(1, "Minimum word count; rarer words become <unk>.", 1, 10**12)
    max_words: int = option(
        0, "Maximum vocabulary size, most frequent words first; 0: unlimited.", 0, 2**31
    )
    prune: str = option(
        "0",
        "Drop n-grams seen this often or less, per order, as 0,0,1.",
    )
    validation_share: float = option(0.01, "Fraction of documents held out for validation.", 0, 0.9)
    memory: str = option("2G", "Memory for counting, such as 4G; the rest goes to disk.")
    workers: int = option(
        0, "Threads; 0: all cores. The result is the same for any number.", 0, 1_024
    )

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        parse_size(self.memory)
        self._parsed_cuts()

    @property
    def cuts(self) -> list[int]:
        """For each order the highest count that is pruned; the last one given is repeated."""
        given = self._parsed_cuts()
        return given + [given[-1]] * (self.order - len(given))

    def _parsed_cuts(self) -> list[int]:
        try:
            given = [int(part) for part in str(self.prune).split(",")]
        except ValueError:
            given = [-1]
        if min(given) < 0 or len(given) > self.order or given != sorted(given) or given[0]:
            raise OptionError(
                f"prune must be up to {self.order} whole numbers that do not fall, the first of "
                f"them 0 (min_count leaves out words), such as 0,0,1; not {self.prune!r}."
            )
        return given
