"""The options of Doc2Vec: one dataclass for the command, the Python call and sememe.json."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from sememe.models.word2vec.config import Architecture, Loss, WindowConfig
from sememe.options import option


@dataclass(frozen=True, kw_only=True)
class Doc2VecConfig(WindowConfig):
    """The options of Doc2Vec (Le & Mikolov 2014, PV-DBOW); defaults as in gensim."""

    # Not options here: PV-DBOW is skip-gram with the document as input, and its words, if they are
    # trained too, use skip-gram with negative sampling.
    architecture: ClassVar[Architecture] = "skipgram"  # type: ignore[misc]
    loss: ClassVar[Loss] = "negative"  # type: ignore[misc]
    combine: ClassVar[str] = "mean"  # type: ignore[misc]

    train_words: bool = option(True, "Train word vectors too, with skip-gram.")
    epochs: int = option(10, "Passes over the corpus.", 1, 100_000)
    learning_rate: float = option(0.025, "Initial learning rate.", 0, 10)
    vectors: Literal["input", "output"] = option(
        "input", "Word vectors to use: input (skip-gram) or output (predicted by documents)."
    )
    infer_epochs: int = option(30, "Passes over a new document to infer its vector.", 1, 100_000)

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if not self.train_words:  # the input vectors stay at their random initialization
            object.__setattr__(self, "vectors", "output")
