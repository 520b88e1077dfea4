"""Word vectors under a task: loaded from any model with `words`, and saved in the task's folder.

vectors/              a folder of sememe, which can also be opened by itself
words.json            the words with a learned offset, in order
head.safetensors      what was learned: the words' offsets, the reader, the head

All vectors are saved, because later texts may contain any of their words.
"""

from pathlib import Path
from typing import Any, Self

import torch

from sememe.errors import ArtifactError, OptionError
from sememe.machine import provenance
from sememe.nn.encoders import Backbone, Reads, refuse_vectors
from sememe.nn.word_encoder import READER_WIDTH, WordCoder, WordEncoder
from sememe.storage.folder import read_json, write_json
from sememe.text.characters import is_mostly_chinese
from sememe.text.settings import TextSettings
from sememe.vectors import load
from sememe.vectors.lexicon import Lexicon

VECTORS, WORDS = "vectors", "words.json"
_DROPOUT = 0.1


class WordBackbone(Backbone):
    """Word vectors of any kind, with the offsets that a task learns for their words."""

    network = "vectors"
    encoder: WordEncoder
    coder: WordCoder

    @classmethod
    def of(cls, model: Any, reads: Reads, config: Any) -> Self:
        """The word vectors of a model, for a head that needs `reads`."""
        refuse_vectors(config)
        return cls._built(Lexicon(model.words), text_of(model), reads, config)

    @classmethod
    def _built(cls, lexicon: Lexicon, text: TextSettings, reads: Reads, config: Any) -> Self:
        if config.features or config.lm_weight:
            raise OptionError(
                "Word vectors have no layers and predict no words: leave out features and "
                "lm_weight."
            )
        is_for_words = reads in ("words", "roles", "question")
        encoder = WordEncoder(
            lexicon,
            reads=reads,
            is_frozen=config.freeze,
            reader_width=config.reader_width or (READER_WIDTH if is_for_words else 0),
            dropout=_DROPOUT if config.dropout is None else config.dropout,
        )
        encoder.initialise(torch.Generator().manual_seed(config.seed))
        return cls(encoder, WordCoder(lexicon, text, config.length))

    def again(self, encoder: WordEncoder, reads: Reads, config: Any) -> Self:
        """Continue from an earlier task over the same words."""
        refuse_vectors(config)
        new = self._renewed(reads, config)
        new.encoder.take_from(encoder)
        return new

    def _renewed(self, reads: Reads, config: Any) -> Self:
        """A new encoder over the same words."""
        return self._built(self.coder.lexicon, self.coder.text, reads, config)

    @property
    def description(self) -> str:
        """What the task starts from, in words."""
        encoder, vectors = self.encoder, self.coder.lexicon.vectors
        kind = "one-hot" if encoder.lexicon.is_one_hot else f"{vectors.dim} dimensions"
        width = encoder.reader_width
        reader = f", a BiLSTM of {width} per direction" if width else ", means"
        return f"Vectors of {len(vectors):,} words, {kind}{reader}"

    def learn_rows(self, seed: int) -> None:
        """Make room for the offsets of the words in the training rows."""
        self.encoder.learn_words(len(self.coder.lexicon), torch.Generator().manual_seed(seed))

    def fingerprints(self) -> dict[str, str]:
        """A hash of the words seen so far and of their vectors."""
        return {"words": self.coder.lexicon.fingerprint()}

    def share_words(self, encoder: WordEncoder) -> None:
        """Let another member's encoder look words up by the ids of this coder."""
        encoder.share(self.coder.lexicon)

    # ---- the folder of a task -----------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write the vectors, and the words with a learned offset."""
        self._write_vectors(folder)
        lexicon, encoder = self.coder.lexicon, self.encoder
        write_json(folder / WORDS, lexicon.words[: len(encoder.added_WD)])

    def _write_vectors(self, folder: Path) -> None:
        self.coder.lexicon.vectors.save(folder / VECTORS)

    def manifest(self, objective: Any) -> dict[str, Any]:
        """What sememe.json says about the vectors."""
        lexicon = self.coder.lexicon
        return {
            "network": self.network,
            "reads": self.encoder.reads,
            "text": self.coder.text.to_dict(),
            "words": len(lexicon.vectors) if lexicon.dim else 0,
            "dim": lexicon.dim and lexicon.vectors.dim,
            "provenance": provenance(),
        }

    @classmethod
    def read(cls, folder: Path, manifest: dict[str, Any], config: Any) -> Self:
        """Open the vectors and the words of a task."""
        words = read_json(folder / WORDS)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ArtifactError(f"{folder / WORDS} is not a list of words.")
        if len(set(words)) != len(words):
            raise ArtifactError(f"{folder / WORDS} holds a word twice.")
        try:
            text, reads = TextSettings.from_dict(manifest["text"]), manifest["reads"]
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{folder} does not say how its text is cut ({error}).") from error
        backbone = cls._read(folder, words, text, reads, config)
        backbone.learn_rows(config.seed)
        return backbone

    @classmethod
    def _read(
        cls, folder: Path, words: list[str], text: TextSettings, reads: Reads, config: Any
    ) -> Self:
        return cls._built(Lexicon(load(folder / VECTORS), words), text, reads, config)

    def new_encoder(self, folder: Path, config: Any) -> Any:
        """The encoder of another ensemble member, over the same words."""
        other = self._renewed(self.encoder.reads, config)
        other.learn_rows(config.seed)
        return other.encoder


def text_of(model: Any) -> TextSettings:
    """How a model's corpus was tokenized; guessed for word vectors that do not say."""
    if model.kind != "vectors" or "text" in model.about:
        return model.text
    is_chinese = is_mostly_chinese(model.vocabulary[:2_000])
    return TextSettings(language="zh" if is_chinese else "en", lowercase=False)
