"""Sub-words: text in, ids of word pieces out, each with its place in the text; and back again.

Two kinds: WordPiece as BERT has it, and byte-level BPE as GPT-2 has it. Hugging Face's `tokenizers`
does the work; the files are those that `transformers` opens.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.errors import ArtifactError, OptionError, UnknownWordError
from sememe.progress import SILENT, Reporter
from sememe.text.settings import TextSettings
from sememe.tokens import subword_files as files
from sememe.tokens.subword_config import Kind
from sememe.tokens.subword_files import CLS, CONTINUATION, END, MASK, PAD, SEP, SPECIALS, UNK

if TYPE_CHECKING:
    from tokenizers import Tokenizer


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ebef\u3000-\u303f\uff00-\uffef"
_SPACE_IN_CHINESE = re.compile(f"(?<=[{_HAN}]) (?=[{_HAN}])")


class Encoding(NamedTuple):
    """The tokens of one text: ids, where each lies in it (characters), and which start a word."""

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    is_word_start: np.ndarray


class SubwordTokenizer:
    """Cuts text into sub-words that have ids; load one, or train one."""

    def __init__(self, engine: Tokenizer, *, end: str = END) -> None:
        engine.no_padding()
        engine.no_truncation()  # a text is never cut in silence
        self._engine = engine
        self.parts = files.describe(engine)
        self.kind: Kind = self.parts["kind"]
        self.lowercase: bool = self.parts["lowercase"]
        self.strip_accents: bool = self.parts["strip_accents"]
        vocabulary = engine.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values(), default=-1) + 1
        self._named = SPECIALS if self.kind == "wordpiece" else (end,)
        self._check_specials(vocabulary)

    def _check_specials(self, vocabulary: dict[str, int]) -> None:
        missing = [name for name in self._named if name not in vocabulary]
        if missing:
            raise ArtifactError(
                f"The vocabulary lacks {', '.join(missing)}: a {self.kind} tokenizer needs "
                f"{', '.join(self._named)}. Add them to its files, or train a tokenizer."
            )

    # ---- special tokens -------------------------------------------------------------------

    def _special(self, name: str) -> int:
        if name not in self._named:
            raise OptionError(
                f"A {self.kind} tokenizer has no {name}; it has {', '.join(self._named)}."
            )
        return self.id(name)

    @cached_property
    def pad_id(self) -> int:
        """What fills short rows: [PAD], or the end of text, which GPT-2 uses for that as well."""
        return self._special(PAD if self.kind == "wordpiece" else self._named[0])

    @cached_property
    def unk_id(self) -> int:
        """[UNK], a word that the pieces cannot write."""
        return self._special(UNK)

    @cached_property
    def cls_id(self) -> int:
        """[CLS], the start of a row."""
        return self._special(CLS)

    @cached_property
    def sep_id(self) -> int:
        """[SEP], the end of a sentence or pair."""
        return self._special(SEP)

    @cached_property
    def mask_id(self) -> int:
        """[MASK], a hidden token."""
        return self._special(MASK)

    @cached_property
    def end_id(self) -> int:
        """<|endoftext|>, what stands between two texts."""
        return self._special(END if self.kind == "wordpiece" else self._named[0])

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids that stand for no text."""
        added = self._engine.get_added_tokens_decoder()
        special = {token_id for token_id, token in added.items() if token.special}
        return frozenset(special | {self.id(name) for name in self._named})

    # ---- text and ids ---------------------------------------------------------------------

    @cached_property
    def _plain_engine(self) -> Tokenizer:
        """An engine to which the names of special tokens are text like any other."""
        from tokenizers import Tokenizer

        engine = Tokenizer.from_str(self._engine.to_str())
        engine.encode_special_tokens = True
        return engine

    @cached_property
    def is_continuation(self) -> np.ndarray:
        """For each id, whether it can only go on with a word (WordPiece's ##)."""
        result = np.zeros(self.vocab_size, bool)
        for token, token_id in self._engine.get_vocab(with_added_tokens=True).items():
            result[token_id] = self.kind == "wordpiece" and token.startswith(CONTINUATION)
        result[list(self.special_ids)] = False
        return result

    def encode(self, text: str, *, specials: bool = True) -> Encoding:
        """Cut one text; no special tokens are put around it.

        The names of special tokens in it ("[MASK]") become those tokens, unless `specials` is off.
        """
        return self.encode_batch([text], specials=specials)[0]

    def encode_batch(self, texts: Sequence[str], *, specials: bool = True) -> list[Encoding]:
        """Cut many texts, over all cores."""
        if isinstance(texts, str):
            raise OptionError("encode_batch takes a list of texts; encode takes one.")
        engine = self._engine if specials else self._plain_engine
        return [
            self._arrays(own) for own in engine.encode_batch(list(texts), add_special_tokens=False)
        ]

    def _arrays(self, encoding: Any) -> Encoding:
        ids = np.array(encoding.ids, np.int32)
        places = np.array(encoding.offsets, np.int32).reshape(-1, 2)
        if self.kind == "wordpiece":
            is_start = ~self.is_continuation[ids]
        else:
            # A special token belongs to no word: -1 for one place, then the next word differs.
            words = np.array([-1 if word is None else word for word in encoding.word_ids], np.int64)
            is_start = np.ones(len(ids), bool)
            is_start[1:] = (words[1:] != words[:-1]) | (words[1:] < 0)
        return Encoding(ids, places[:, 0].copy(), places[:, 1].copy(), is_start)

    def words_of(self, text: str) -> list[str]:
        """Clean and split a text into the words that pieces are cut from."""
        normalizer, cutter = self._engine.normalizer, self._engine.pre_tokenizer
        cleaned = normalizer.normalize_str(text) if normalizer else text
        return [word for word, _ in cutter.pre_tokenize_str(cleaned)]

    @cached_property
    def _model(self) -> Any:
        return self._engine.model

    def pieces_of(self, word: str) -> list[int]:
        """The ids of one word that is cleaned and split already."""
        return [token.id for token in self._model.tokenize(word)]

    def decode(self, ids: Iterable[int], *, specials: bool = False) -> str:
        """Write ids as text again; special tokens are left out unless `specials` asks for them."""
        numbers = [int(token_id) for token_id in ids]
        text = self._engine.decode(numbers, skip_special_tokens=not specials)
        # WordPiece forgets where spaces were; Chinese has none.
        return _SPACE_IN_CHINESE.sub("", text) if self.kind == "wordpiece" else text

    def token(self, token_id: int) -> str:
        """The piece with this id."""
        token = self._engine.id_to_token(int(token_id)) if token_id >= 0 else None
        if token is None:
            raise UnknownWordError(f"There is no token {token_id} among {self.vocab_size:,}.")
        return token

    def id(self, token: str) -> int:
        """The id of this piece."""
        token_id = self._engine.token_to_id(token)
        if token_id is None:
            raise UnknownWordError(f"“{token}” is not among the {self.vocab_size:,} tokens.")
        return token_id

    def __len__(self) -> int:
        return self.vocab_size

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and self._engine.token_to_id(token) is not None

    def __repr__(self) -> str:
        case = "lower case" if self.lowercase else "case kept"
        return f"SubwordTokenizer({self.kind}, {self.vocab_size:,} tokens, {case})"

    def with_tokens(self, names: Sequence[str]) -> SubwordTokenizer:
        """The same tokenizer with more special tokens; their ids follow the others."""
        from tokenizers import AddedToken, Tokenizer

        engine = Tokenizer.from_str(self._engine.to_str())
        engine.add_special_tokens([AddedToken(name, special=True) for name in names])
        end = END if self.kind == "wordpiece" else self._named[0]
        return SubwordTokenizer(engine, end=end)

    # ---- files ------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The whole tokenizer as tokenizer.json has it."""
        return self._engine.to_str()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all that decides which ids a text gets."""
        content = json.loads(self.to_json())
        names = ("model", "normalizer", "pre_tokenizer", "added_tokens")
        text = json.dumps({name: content[name] for name in names}, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def save(self, folder: str | Path, *, max_length: int | None = None) -> None:
        """Write the files that `transformers` opens; other files in `folder` stay.

        `max_length` is the longest row of the model that the tokenizer goes with.
        """
        files.write(Path(folder), self._engine, self.parts, self._named, max_length)

    @classmethod
    def load(cls, path: str | Path) -> SubwordTokenizer:
        """Open a folder with tokenizer.json, vocab.txt, or vocab.json and merges.txt; or a file."""
        engine, end = files.read(Path(path))
        return cls(engine, end=end)

    @classmethod
    def train(
        cls,
        corpus: Any = None,
        *,
        kind: Kind = "wordpiece",
        vocab_size: int = 30_522,
        text: TextSettings | None = None,
        progress: Reporter = SILENT,
        **options: Any,
    ) -> SubwordTokenizer:
        """Learn the pieces from a corpus; see `subword_training.train_tokenizer`."""
        from sememe.tokens.subword_training import train_tokenizer

        return train_tokenizer(
            corpus, kind=kind, vocab_size=vocab_size, text=text, progress=progress, **options
        )
