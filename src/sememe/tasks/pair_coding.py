"""Between texts and ids for models that translate: one table of sub-words for both languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np

from sememe.examples.parallel import Pair
from sememe.progress import SILENT, Reporter
from sememe.text.settings import TextSettings
from sememe.tokens.subword_config import Kind
from sememe.tokens.subwords import Encoding, SubwordTokenizer


class PairCoder:
    """Puts start and end around the sub-words of texts, and reads them back."""

    def __init__(self, tokenizer: SubwordTokenizer, *, lowercase: bool) -> None:
        self.tokenizer, self.lowercase = tokenizer, lowercase
        is_bpe = tokenizer.kind == "bpe"
        # Byte-level BPE has one special token: what ends a text also starts the next one.
        self.start_id: int = tokenizer.end_id if is_bpe else tokenizer.cls_id
        self.end_id: int = tokenizer.end_id if is_bpe else tokenizer.sep_id

    @cached_property
    def barred(self) -> list[int]:
        """The ids that no translation holds."""
        return sorted(self.tokenizer.special_ids - {self.end_id})

    def prepared(self, text: str) -> str:
        """A text as it is cut: one space between words."""
        return prepared(text, self.tokenizer.kind, self.lowercase)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """The sub-words of texts alone; a name such as [SEP] in a text is text like any other."""
        return self.tokenizer.encode_batch([self.prepared(text) for text in texts], specials=False)

    def sources(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Texts as an encoder reads them: with an end."""
        return [np.append(own.ids, self.end_id) for own in self.encode(texts)]

    def targets(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Texts as a decoder writes them: with a start and an end."""
        return [
            np.concatenate([[self.start_id], own.ids, [self.end_id]]) for own in self.encode(texts)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """Write ids as text."""
        return " ".join(self.tokenizer.decode(ids).split())


def prepared(text: str, kind: Kind, lowercase: bool) -> str:
    """A text as it is cut: one space between words, and one before the first of them.

    Byte-level BPE holds the space to be part of a word: without it the first word of a text
    would have pieces of its own.
    """
    text = " ".join(text.split())
    text = text.lower() if lowercase else text
    return f" {text}" if text and kind == "bpe" else text


def train_coder(
    pairs: Iterable[Pair],
    *,
    kind: Kind,
    vocab_size: int,
    lowercase: bool,
    progress: Reporter = SILENT,
) -> PairCoder:
    """Learn sub-words from both sides together."""

    def texts() -> Iterator[str]:
        for pair in pairs:
            yield prepared(pair.source, kind, lowercase)
            yield prepared(pair.target, kind, lowercase)

    tokenizer = SubwordTokenizer.train(
        texts(), kind=kind, vocab_size=vocab_size, accents="keep",
        text=TextSettings(lowercase=lowercase), progress=progress,
    )  # fmt: skip
    return PairCoder(tokenizer, lowercase=lowercase)
