"""The options of SIF: one dataclass for the command, the Python call and sememe.json."""

from dataclasses import dataclass
from typing import Literal

from sememe.options import Config, option


@dataclass(frozen=True, kw_only=True)
class SIFConfig(Config):
    """The options of SIF (Arora et al. 2017) and uSIF (Ethayarajh 2018)."""

    method: Literal["sif", "usif"] = option(
        "sif", "SIF, or uSIF, which derives its weights from the corpus."
    )
    a: float = option(1e-3, "SIF's weight of a word: a ÷ (a + its probability).", 1e-9, 1)
    components: int = option(-1, "Common components to remove; -1: 1 (SIF) or 5 (uSIF).", -1, 100)
    workers: int = option(0, "Threads that read the corpus; 0: all cores.", 0, 1_024)

    min_count, max_words, dim = 1, 0, 0  # not options: words and dimensions are the vectors'

    @property
    def num_components(self) -> int:
        """The number of components, where -1 stands for the method's own."""
        own = 1 if self.method == "sif" else 5
        return own if self.components < 0 else self.components
