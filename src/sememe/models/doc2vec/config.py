"""The options of Doc2Vec: one dataclass for the command, the Python call and sememe.json."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from sememe.errors import OptionError
from sememe.models.word2vec.config import Architecture, Loss, WindowConfig
from sememe.options import option


@dataclass(frozen=True, kw_only=True)
class Doc2VecConfig(WindowConfig):
    """The options of Doc2Vec (Le & Mikolov 2014); defaults as in gensim, with PV-DBOW."""

    # Not options here: PV-DBOW is skip-gram with the document as input, and its words, if they are
    # trained too, use skip-gram with negative sampling.
    architecture: ClassVar[Architecture] = "skipgram"  # type: ignore[misc]
    loss: ClassVar[Loss] = "negative"  # type: ignore[misc]

    method: Literal["dbow", "dm"] = option(
        "dbow", "Document predicts words (PV-DBOW), or helps their context (PV-DM)."
    )
    combine: Literal["mean", "sum", "concat"] = option(  # type: ignore[assignment]
        "mean", "How PV-DM combines document and context vectors."
    )
    train_words: bool = option(True, "Train word vectors too; PV-DM always does.")
    epochs: int = option(10, "Passes over the corpus.", 1, 100_000)
    learning_rate: float = option(0.025, "Initial learning rate.", 0, 10)
    vectors: Literal["input", "output"] = option(
        "input", "Word vectors to use: input, or output (predicted by documents)."
    )
    infer_epochs: int = option(30, "Passes over a new document to infer its vector.", 1, 100_000)

    def __post_init__(self) -> None:
        """Raise OptionError for options that no run could satisfy."""
        super().__post_init__()
        if self.num_parts > 1 and self.vectors == "output":
            raise OptionError(
                "With concat an output vector has several parts: vectors must be input."
            )
        if self.method == "dm":
            object.__setattr__(self, "train_words", True)
        elif not self.train_words:  # the input vectors stay at their random initialization
            object.__setattr__(self, "vectors", "output")

    @property
    def num_parts(self) -> int:
        """The number of vectors that are concatenated: the document, and the words around."""
        is_concat = self.method == "dm" and self.combine == "concat"
        return 2 * self.window + 1 if is_concat else 1
