"""Words instead of sub-words: texts as numbers of words, and word vectors opened for a task."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch

from sememe.errors import OptionError
from sememe.examples.running_words import places_in, written
from sememe.networks.interchange.layout import CONFIG
from sememe.networks.word_model import WordModel
from sememe.networks.words import BETWEEN_ID, NUM_MARKS, START_ID, UNKNOWN_ID, Reads, WordEncoder
from sememe.static.model import StaticModel
from sememe.storage.folder import manifest_in
from sememe.tasks.config import FinetuneConfig
from sememe.tasks.encoding import Coder, Marks
from sememe.text.settings import TextSettings
from sememe.tokens.subwords import Encoding
from sememe.vectors import WordVectors, load
from sememe.vectors.lexicon import Lexicon

if TYPE_CHECKING:
    from sememe.tasks.task import Task

Model = TypeVar("Model", bound=WordModel)

# A word alone knows nothing of its neighbors: tags and answers are read by a BiLSTM.
READER_WIDTH = 128
_DROPOUT = 0.1


class WordCoder(Coder):
    """Words as the vectors were made of them, with a mark before and between texts."""

    kind = "words"
    unknown_id = UNKNOWN_ID
    marks = Marks((START_ID,), (), (BETWEEN_ID,), ())

    def __init__(self, lexicon: Lexicon, text: TextSettings, length: int) -> None:
        self.lexicon, self.text, self.length = lexicon, text, length
        self._ids: dict[str, int] = {}

    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Cut texts into words that know their places; a text that is a known word is one."""
        cut = places_in(texts, self.text)
        return [self._encoded(text, places) for text, places in zip(texts, cut, strict=True)]

    def _encoded(self, text: str, places: list[tuple[int, int]]) -> Encoding:
        if len(places) > 1 and self.lexicon.has_own(text):
            places = [(0, len(text))]
        ids = [self._id(text[start:end]) for start, end in places]
        if not any(ids):
            ids = [NUM_MARKS + self.lexicon.number(text[start:end]) for start, end in places]
        own = [place for place, word_id in zip(places, ids, strict=True) if word_id]
        own_N2 = np.array(own, np.int32).reshape(-1, 2)
        kept = np.array([word_id for word_id in ids if word_id], np.int32)
        return Encoding(kept, own_N2[:, 0], own_N2[:, 1], np.ones(len(kept), np.bool_))

    def _id(self, piece: str) -> int:
        """The id of a word as it stands in a text, or 0 for a mark that the vectors never saw.

        Such marks are left out, unless a text holds nothing else.
        """
        found = self._ids.get(piece)
        if found is None:
            word = self._written(piece)
            is_kept = self._is_kept(piece, word)
            found = self._ids[piece] = NUM_MARKS + self.lexicon.number(word) if is_kept else 0
        return found

    def _is_kept(self, piece: str, word: str) -> bool:
        return any(map(str.isalnum, word)) or self.lexicon.has_own(word)

    def _written(self, word: str) -> str:
        return self.lexicon.spelling(written(word, self.text))


# ---- from what a user gives -----------------------------------------------------------------


_READS: dict[str, Reads] = {"classify": "text", "tag": "words", "answer": "question"}


def reads_of(task: Task) -> Reads:
    """What the head of a task will ask word vectors for; where texts are compared, for both."""
    if getattr(task.config, "predicate_column", 0):
        return "roles"
    return _READS.get(task.name, "texts")


def model_of(kind: type[Model], given: Any) -> Model | None:
    """The model of a kind that is given, or that a path stands for; None if it is none."""
    if isinstance(given, kind):
        if given.network is None:
            raise OptionError("The model has not learned yet: call its fit first.")
        return given
    if not isinstance(given, str | Path) or (Path(given) / CONFIG).is_file():
        return None
    return kind.load(given) if kind.is_at(Path(given)) else None


def words_of(model: Any) -> tuple[Lexicon, TextSettings] | None:
    """The word vectors that a model is or holds, and how its text is cut; None if it has none."""
    if isinstance(model, StaticModel):
        return Lexicon(model.vectors), model.text
    if isinstance(model, WordVectors):
        return Lexicon(model), _guessed(model)
    if not isinstance(model, str | Path):
        return None
    path = Path(model)
    if path.is_dir():
        manifest = manifest_in(path)
        if (path / CONFIG).is_file() or not manifest:
            return None
        if manifest.get("kind") in ("task", "bert", "gpt"):
            return None
        vectors, kept = load(path), manifest.get("text")
        text = settings_from(kept) if isinstance(kept, dict) else _guessed(vectors)
        return Lexicon(vectors), text
    if path.is_file():
        vectors = load(path)
        return Lexicon(vectors), _guessed(vectors)
    return None


def settings_from(kept: dict[str, Any]) -> TextSettings:
    """How text was read, as a manifest tells it."""
    names = {field.name for field in fields(TextSettings)}
    own = TextSettings(**{key: kept[key] for key in kept if key in names})
    # A dictionary of the user's may be gone by now.
    is_there = not own.dictionary or Path(own.dictionary).is_file()
    return own if is_there else replace(own, dictionary="")


def _guessed(vectors: WordVectors) -> TextSettings:
    """How text must be cut for vectors that do not tell: is most of their vocabulary Chinese?"""
    first = vectors.vocabulary[:2_000]
    num_chinese = sum("\u4e00" <= word[:1] <= "\u9fff" for word in first)
    return TextSettings(language="zh" if 2 * num_chinese > len(first) else "en", lowercase=False)


def new_word_encoder(lexicon: Lexicon, reads: Reads, config: FinetuneConfig) -> WordEncoder:
    """Word vectors as the options want them under a head."""
    if config.features or config.lm_weight:
        raise OptionError(
            "Word vectors have no layers and predict no words: leave out features and lm_weight."
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
    return encoder


def described(encoder: WordEncoder) -> str:
    """What a task says that it starts from."""
    vectors = encoder.lexicon.vectors
    kind = "one-hot" if encoder.lexicon.is_one_hot else f"{vectors.dim} numbers each"
    reader = f", a BiLSTM of {encoder.reader_width} each way" if encoder.reader_width else ", means"
    return f"Vectors of {len(vectors):,} words, {kind}{reader}"
