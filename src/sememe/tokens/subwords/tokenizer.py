"""Sub-word tokenizers: text in, token ids with their positions out; and back again.

Two kinds are trained: BERT's WordPiece, and GPT-2's byte-level BPE; those of other encoders, and
SentencePiece's unigrams, are read from tokenizer.json. Hugging Face's `tokenizers` does the work;
the files are those of `transformers`: tokenizer.json (complete; read first) or those of engines.py,
tokenizer_config.json (the class and options), special_tokens_map.json.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sememe.card import card_of
from sememe.errors import (
    ArtifactError,
    OptionError,
    SememeError,
    UnknownWordError,
)
from sememe.machine import naming_extra
from sememe.options import Config, changed, option
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import (
    CARD,
    is_users_card,
    read_errors,
    read_json,
    reads_artifact,
    verify,
    write_card,
    write_folder,
    write_json,
    write_text,
)
from sememe.text.settings import TextSettings
from sememe.tokens.subwords import engines
from sememe.tokens.subwords.engines import CONTINUATION, END, SPECIALS

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

Kind = Literal["wordpiece", "bpe"]
ROLES = ("pad", "unk", "cls", "sep", "mask")
UNUSED = re.compile(r"\[unused\d+\]")  # ids that BERT's vocabulary keeps free
DEFAULT_MEMORY = 512 << 20  # bytes that counting may take


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(Config):
    """The options for training a tokenizer."""

    kind: Kind = option("wordpiece", "Tokenizer: BERT's WordPiece, or GPT-2's byte-level BPE.")
    vocab_size: int = option(30_522, "Vocabulary size, including special tokens.", 1, 2**24)
    accents: Literal["auto", "strip", "keep"] = option(
        "auto", "WordPiece: strip accents; auto: if --lowercase."
    )
    min_frequency: int = option(2, "Minimum count of a pair to merge.", 1, 10**12)
    coverage: float = option(
        0.9999, "WordPiece: fraction of characters covered by the alphabet.", 0.5, 1.0
    )
    smoothing: float = option(
        0.7, "Exponent of language sampling in a mix: 1 proportional, 0 uniform.", 0, 1
    )
    workers: int = option(0, "Threads that read the corpus; 0: all cores.", 0, 1_024)


_MAX_GAP = 1 << 16  # how many ids may stand for no token
_MAX_GROWTH = 64
# Chinese characters as BERT's own tokenizer knows them, with the marks that are among them.
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ebef\u3000-\u303f\uff00-\uffef"
_SPACE_IN_CHINESE = re.compile(f"(?<=[{_HAN}]) (?=[{_HAN}])")


class Encoding(NamedTuple):
    """The tokens of one text: ids, their positions (characters), and which start a word."""

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    is_word_start: np.ndarray


class SubwordTokenizer:
    """Splits text into sub-word tokens with ids; load one, or train one."""

    kind: str  # wordpiece, bpe, or unigram

    def __init__(self, engine: Tokenizer, *, end: str = END, names: Sequence[str] = ()) -> None:
        """`names` are the special tokens of an encoder by role, if they are not BERT's."""
        engine.no_padding()
        engine.no_truncation()  # a text is never cut in silence
        self._engine = engine
        vocabulary = engine.get_vocab(with_added_tokens=True)
        self.vocab_size = max(vocabulary.values(), default=-1) + 1
        num_ids = len({*vocabulary.values()})
        if self.vocab_size > len(vocabulary) + _MAX_GAP or num_ids < len(vocabulary):
            # The library makes room for as many tokens as the highest id says, and loses one of two
            # tokens that share an id.
            raise ArtifactError(
                f"The tokenizer cannot be used: its {len(vocabulary):,} tokens have {num_ids:,} "
                f"different ids up to {self.vocab_size - 1:,}."
            )
        content = json.loads(engine.to_str())
        self.kind = _kind_of(content["model"]["type"])
        normalizer = content["normalizer"] or {}
        parts = {part["type"]: part for part in normalizer.get("normalizers", [normalizer]) if part}
        bert = parts.get("BertNormalizer", {})
        self.lowercase = bool(bert.get("lowercase")) or "Lowercase" in parts
        accents = bert.get("strip_accents")
        if accents is None:
            accents = bool(bert) and self.lowercase
        self.strip_accents: bool = accents or "StripAccents" in parts
        self.split_chinese = bool(bert.get("handle_chinese_chars"))
        if self.kind == "wordpiece":
            names = names or SPECIALS
        self.is_framed = bool(names)  # for an encoder, whose rows begin and end with marks
        self._named = tuple(names) or (end,)
        self._input_names: tuple[str, ...] = ()  # what `transformers` gives a network, if known
        self._check_specials(vocabulary)

    def _check_specials(self, vocabulary: dict[str, int]) -> None:
        missing = [name for name in self._named if name not in vocabulary]
        if missing:
            raise ArtifactError(
                f"The vocabulary lacks {', '.join(missing)}: a {self.kind} tokenizer needs "
                f"{', '.join(self._named)}. Add them to its files, or train a tokenizer."
            )

    # ---- special tokens -------------------------------------------------------------------

    def _special(self, role: str) -> int:
        if not self.is_framed:
            name = dict(zip(ROLES, SPECIALS, strict=True))[role]
            raise OptionError(
                f"A {self.kind} tokenizer has no {name}; it has {', '.join(self._named)}."
            )
        return self.id(self._named[ROLES.index(role)])

    @cached_property
    def pad_id(self) -> int:
        """The padding id: [PAD], or the end of text, which GPT-2 uses for that as well."""
        return self._special("pad") if self.is_framed else self.id(self._named[0])

    @cached_property
    def unk_id(self) -> int:
        """[UNK], a word that the tokens cannot spell."""
        return self._special("unk")

    @cached_property
    def cls_id(self) -> int:
        """[CLS], the start of a row."""
        return self._special("cls")

    @cached_property
    def sep_id(self) -> int:
        """[SEP], the end of a sentence or pair."""
        return self._special("sep")

    @cached_property
    def mask_id(self) -> int:
        """[MASK], a masked token."""
        return self._special("mask")

    @cached_property
    def end_id(self) -> int:
        """<|endoftext|>, the separator of texts; [SEP] ends a text of GPTs over WordPiece."""
        return self.sep_id if self.is_framed else self.id(self._named[0])

    @cached_property
    def between_ids(self) -> tuple[int, ...]:
        """The marks between the two texts of a row: [SEP], or RoBERTa's two </s>."""
        with _library_errors("The tokenizer"):
            num_marks = len(self._engine.encode("", "").ids)
        return (self.sep_id,) * max(1, num_marks - 2)

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The ids of special tokens."""
        added = self._engine.get_added_tokens_decoder()
        special = {token_id for token_id, token in added.items() if token.special}
        return frozenset(special | {self.id(name) for name in self._named})

    # ---- text and ids ---------------------------------------------------------------------

    @cached_property
    def _plain_engine(self) -> Tokenizer:
        """An engine that treats the names of special tokens as plain text."""
        from tokenizers import Tokenizer

        engine = Tokenizer.from_str(self._engine.to_str())
        engine.encode_special_tokens = True
        return engine

    @cached_property
    def is_continuation(self) -> np.ndarray:
        """For each id, whether it can only continue a word (WordPiece's ##)."""
        import numpy as np

        result = np.zeros(self.vocab_size, bool)
        for token, token_id in self._engine.get_vocab(with_added_tokens=True).items():
            result[token_id] = self.kind == "wordpiece" and token.startswith(CONTINUATION)
        result[list(self.special_ids)] = False
        return result

    def encode(self, text: str, *, specials: bool = True) -> Encoding:
        """Tokenize one text, without adding special tokens.

        The names of special tokens in it ("[MASK]") become those tokens, unless `specials` is off.
        """
        return self.encode_batch([text], specials=specials)[0]

    def encode_batch(self, texts: Sequence[str], *, specials: bool = True) -> list[Encoding]:
        """Tokenize many texts, on all cores."""
        if isinstance(texts, str):
            raise OptionError("encode_batch takes a list of texts; encode takes one.")
        engine = self._engine if specials else self._plain_engine
        return [self._arrays(own) for own in _encoded(engine.encode_batch, texts)]

    def ids_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of many texts, without their positions, on all cores."""
        # The library's fast call does not compute the positions of tokens.
        return [own.ids for own in _encoded(self._engine.encode_batch_fast, texts)]

    def check_ids(self, texts: Sequence[Sequence[int]]) -> None:
        """Refuse ids that are not in the vocabulary."""
        for own in texts:
            if own and not (min(own) >= 0 and max(own) < len(self)):
                bad = next(one for one in own if not 0 <= one < len(self))
                raise OptionError(f"{bad} is not a token id: they are 0 to {len(self) - 1:,}.")

    def _arrays(self, encoding: Any) -> Encoding:
        import numpy as np  # not for the commands that only name its options

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
        """Clean a text and split it into words, before sub-word tokenization."""
        normalizer, cutter = self._engine.normalizer, self._engine.pre_tokenizer
        cleaned = normalizer.normalize_str(text) if normalizer else text
        return [word for word, _ in cutter.pre_tokenize_str(cleaned)]

    @cached_property
    def _model(self) -> Any:
        return self._engine.model

    def pieces_of(self, word: str) -> list[int]:
        """The token ids of one cleaned and split word."""
        return [token.id for token in self._model.tokenize(word)]

    def decode(self, ids: Iterable[int], *, specials: bool = False) -> str:
        """Turn ids into text; special tokens are omitted unless `specials` is set."""
        numbers = [int(token_id) for token_id in ids]
        with _library_errors("The tokenizer"):
            text = self._engine.decode(numbers, skip_special_tokens=not specials)
        # WordPiece forgets where spaces were; Chinese has none.
        return _SPACE_IN_CHINESE.sub("", text) if self.kind == "wordpiece" else text

    def token(self, token_id: int) -> str:
        """The token with this id."""
        token = self._engine.id_to_token(int(token_id)) if token_id >= 0 else None
        if token is None:
            raise UnknownWordError(f"There is no token {token_id} among {self.vocab_size:,}.")
        return token

    def id(self, token: str) -> int:
        """The id of this token."""
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
        return self._again(engine)

    def with_words(self, words: Sequence[str]) -> SubwordTokenizer:
        """The same WordPiece tokenizer with more whole words, as it cleans them."""
        from tokenizers import Tokenizer

        content = json.loads(self._engine.to_str())
        known = content["model"]["vocab"]
        for number, word in enumerate(words, self.vocab_size):
            known[word] = number
        return self._again(Tokenizer.from_str(json.dumps(content)))

    def _again(self, engine: Tokenizer) -> SubwordTokenizer:
        names = self._named if self.is_framed else ()
        found = SubwordTokenizer(engine, end=self._named[0], names=names)
        found._input_names = self._input_names
        return found

    # ---- files ------------------------------------------------------------------------------

    @classmethod
    def from_json(cls, content: str) -> SubwordTokenizer:
        """The tokenizer of a tokenizer.json."""
        from tokenizers import Tokenizer

        return cls(Tokenizer.from_str(content))

    def to_json(self) -> str:
        """The tokenizer as the content of tokenizer.json."""
        return self._engine.to_str()

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that determines the ids of a text."""
        content = json.loads(self.to_json())
        names = ("model", "normalizer", "pre_tokenizer", "added_tokens")
        text = json.dumps({name: content[name] for name in names}, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def save(
        self, folder: str | Path, *, max_length: int | None = None, has_segments: bool = True
    ) -> None:
        """Write the files that `transformers` opens; other files in `folder` stay.

        `max_length` is the maximum length of the tokenizer's model. A GPT has no segments, and
        that of `transformers` would add them to its tokens.
        """
        folder = Path(folder)
        special = {f"{role}_token": name for role, name in zip(ROLES, self._named, strict=False)}
        if self.is_framed and (self.kind != "wordpiece" or self._named != SPECIALS):
            pair = self._engine.encode("a", "a")
            inputs = ["input_ids", *(["token_type_ids"] if any(pair.type_ids) else [])]
            options: dict[str, Any] = {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "model_input_names": [*inputs, "attention_mask"],
            }
        elif self.kind == "wordpiece":
            options = {
                "tokenizer_class": "BertTokenizer",
                "do_lower_case": self.lowercase,
                "strip_accents": self.strip_accents,
                "tokenize_chinese_chars": self.split_chinese,
            }
        else:
            roles = "bos_token", "eos_token", "unk_token", "pad_token"
            special = dict.fromkeys(roles, self._named[0])
            options = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False}
        names = self._input_names if has_segments else ("input_ids", "attention_mask")
        if names:
            options["model_input_names"] = list(names)
        if max_length is not None:
            options["model_max_length"] = max_length
        write_json(folder / "special_tokens_map.json", special)
        write_json(folder / "tokenizer_config.json", options | special)
        for name, text in self._vocabulary_texts().items():
            write_text(folder / name, text)
        if max_length is None and not is_users_card(folder / CARD):  # a tokenizer by itself
            known = {"kind": "tokenizer", "tokenizer": self.kind, "vocab_size": self.vocab_size}
            write_card(folder, card_of(folder, known))
        # The last, because `load` prefers it: a killed process leaves an older one in use, or none.
        write_text(folder / "tokenizer.json", self._engine.to_str(pretty=True))

    def _vocabulary_texts(self) -> dict[str, str]:
        """The files of the vocabulary alone, by name."""
        vocabulary = self._engine.get_vocab(with_added_tokens=True)
        if self.is_framed and self.kind != "wordpiece":
            return {}  # tokenizer.json alone says how marks are read
        if self.kind == "wordpiece":
            tokens = {token_id: token for token, token_id in vocabulary.items()}
            lines = [tokens.get(token_id, "") for token_id in range(self.vocab_size)]
            return {"vocab.txt": "".join(f"{line}\n" for line in lines)}
        ordered = dict(sorted(vocabulary.items(), key=lambda item: item[1]))
        lines = ["#version: 0.2", *map(" ".join, engines.merges_of(self._engine))]
        merges = "".join(f"{line}\n" for line in lines)
        return {"vocab.json": json.dumps(ordered, ensure_ascii=False), "merges.txt": merges}

    @classmethod
    @reads_artifact
    def load(cls, path: str | Path) -> SubwordTokenizer:
        """Open a folder with tokenizer.json, vocab.txt, or vocab.json and merges.txt; or a file."""
        _require_tokenizers()
        path = Path(path)
        folder = path if path.is_dir() else path.parent
        file = _main_file(path) if path.is_dir() else path
        if not file.is_file():
            raise ArtifactError(f"There is no tokenizer at {path}.")
        config = _read_options(folder / "tokenizer_config.json")
        names = _read_options(folder / "special_tokens_map.json") | config
        # A token is written as its name, or as an object that has it as `content`.
        token = names.get("eos_token")
        end = (token.get("content") if isinstance(token, dict) else token) or END
        if not isinstance(end, str):
            raise ArtifactError(f"{folder}: the end of text must be a token, not {end!r}.")
        with _library_errors(file):
            if file.suffix == ".txt":
                return cls(engines.read_wordpiece(file, config), end=end)
            engine = (
                engines.read_bpe(file, end) if file.name == "vocab.json" else _read_engine(file)
            )
            found = cls(engine, end=end, names=_marks_of(engine, names))
            found._input_names = _input_names(config)
            return found

    @classmethod
    def train(
        cls,
        corpus: Any = None,
        config: TokenizerConfig | None = None,
        *,
        text: TextSettings | None = None,
        memory: int = DEFAULT_MEMORY,
        progress: Reporter = SILENT,
        **options: Any,
    ) -> SubwordTokenizer:
        """Train a tokenizer on `corpus`: any input of text.stream.read, or several by language.

        `text` says how the corpus is read, and whether WordPiece lower-cases it. Options of the
        config may be given by name.
        """
        # Counting needs numba, which takes a second to start; a tokenizer is loaded more often.
        from sememe.tokens.subwords.training import train_engine

        _require_tokenizers()
        config = changed(config or TokenizerConfig(), "A tokenizer", options)
        return cls(train_engine(corpus, config, cls, text or TextSettings(), memory, progress))


def trained_at(
    place: Path, train: Callable[[], SubwordTokenizer], note: Callable[[str], None]
) -> SubwordTokenizer:
    """The tokenizer in a folder; trained and saved there if it is missing or damaged."""
    if place.exists():
        try:
            verify(place)
            return SubwordTokenizer.load(place)
        except ArtifactError as error:
            note(f"The tokenizer is trained again. {error}")
    trained = train()
    with write_folder(place) as scratch:
        trained.save(scratch)
    return trained


# ---- reading ------------------------------------------------------------------------------


def _require_tokenizers() -> None:
    """Raise an error if the library is missing, naming the extra to install."""
    with naming_extra("A sub-word tokenizer"):
        import tokenizers  # noqa: F401


def _kind_of(model: str) -> str:
    kinds = {"WordPiece": "wordpiece", "BPE": "bpe", "Unigram": "unigram"}
    if model not in kinds:
        raise ArtifactError(f"The tokenizer is of type {model}; {', '.join(kinds)} can be used.")
    return kinds[model]


# The special tokens of encoders, by role, as far as a folder does not name them: BERT's, and
# those of RoBERTa and XLM-R.
_USUAL = (SPECIALS, engines.ROBERTA, ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"))


def _input_names(config: dict[str, Any]) -> tuple[str, ...]:
    """The inputs that a folder's tokenizer makes for `transformers`, where it says so."""
    if str(config.get("tokenizer_class")).startswith("DistilBert"):
        return ("input_ids", "attention_mask")
    names = config.get("model_input_names")
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return tuple(names) if is_list and names else ()


def _marks_of(engine: Tokenizer, options: dict[str, Any]) -> tuple[str, ...]:
    """The special tokens of an encoder by role; none for a tokenizer of running text."""
    vocabulary = engine.get_vocab(with_added_tokens=True)
    tokens = [options.get(f"{role}_token") for role in ROLES]
    found = [own.get("content") if isinstance(own, dict) else own for own in tokens]
    named = tuple(own for own in found if isinstance(own, str) and own in vocabulary)
    if len(named) == len(ROLES):
        return named
    return next((own for own in _USUAL if all(name in vocabulary for name in own)), ())


def _main_file(folder: Path) -> Path:
    for name in ("tokenizer.json", "vocab.txt", "vocab.json"):
        if (folder / name).is_file():
            return folder / name
    if models := sorted(folder.glob("*.model")):
        raise ArtifactError(
            f"{folder} holds its tokenizer as {models[0].name} alone: tokenizer.json is missing. "
            "Add it from the model's page, or save the tokenizer again with transformers."
        )
    raise ArtifactError(
        f"{folder} holds no tokenizer: none of tokenizer.json, vocab.txt or vocab.json is there."
    )


def _read_options(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    content = read_json(path)
    if not isinstance(content, dict):
        raise ArtifactError(f"{path} cannot be read: it holds no JSON object.")
    return content


def _read_engine(file: Path) -> Tokenizer:
    """Open tokenizer.json, once it is known that the library can take it."""
    from tokenizers import Tokenizer

    content = read_json(file)
    with read_errors(file):
        parts = [content.get(name) for name in ("normalizer", "pre_tokenizer", "decoder")]
        if (growth := math.prod(map(_growth, _parts(parts)))) > _MAX_GROWTH:
            raise ValueError(f"its replacements may make a text {growth:.0e} times as long")
    return Tokenizer.from_str(json.dumps(content))


def _parts(node: Any) -> Iterator[dict[str, Any]]:
    """All objects in JSON, whatever they are in."""
    if isinstance(node, dict):
        yield node
    if isinstance(node, (dict, list)):
        for own in node.values() if isinstance(node, dict) else node:
            yield from _parts(own)


def _growth(part: dict[str, Any]) -> float:
    """How many times longer a part of a tokenizer can make its text."""
    if part.get("type") != "Replace":
        return 1
    pattern, size = part["pattern"], len(part["content"])
    if "String" in pattern:
        return max(1, size / len(pattern["String"])) if pattern["String"] else 1 + size
    return 1 + size if _may_be_empty(pattern["Regex"]) else max(1, size)


def _may_be_empty(regex: str) -> bool:
    """Whether a pattern can match between any two characters; True where it is hard to tell."""
    try:
        return "(?" in regex or re.search(regex, "") is not None
    except re.error:  # some of Oniguruma's patterns are none of Python's
        return True


def _encoded(encode: Callable[..., list[Any]], texts: Sequence[str]) -> list[Any]:
    """The library's encodings of texts, without special tokens around them."""
    # Half a surrogate pair can be in a str, but the library takes UTF-8.
    written = [
        text if text.isascii() else text.encode("utf-8", "replace").decode() for text in texts
    ]
    with _library_errors("The tokenizer"):
        return encode(written, add_special_tokens=False)


@contextmanager
def _library_errors(where: str | Path) -> Iterator[None]:
    """Turn the library's exceptions and panics into one sentence."""
    try:
        yield
    except (SememeError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ArtifactError(f"{where} cannot be used: {reason}.") from None
