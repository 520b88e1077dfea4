"""The options of one-hot vectors: one dataclass for the command, the Python call, sememe.json."""

from dataclasses import dataclass

from sememe.options import Config, option


@dataclass(frozen=True, kw_only=True)
class OneHotConfig(Config):
    """The options of the vocabulary; there are no others."""

    min_count: int = option(5, "Minimum word count; rarer words are dropped.", 1, 10**12)
    max_words: int = option(
        0, "Maximum vocabulary size, most frequent words first; 0: unlimited.", 0, 2**31
    )
    workers: int = option(0, "Threads that read the corpus; 0: all cores.", 0, 1_024)

    dim = 0  # not an option: a vector has one dimension per word
