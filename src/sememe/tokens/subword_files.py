"""The files of sub-word tokenizers, as `tokenizers`, `transformers`, BERT and GPT-2 have them.

tokenizer.json                    all of it; read first
vocab.txt                         WordPiece: a piece a line, its number is the id
vocab.json and merges.txt         byte-level BPE
tokenizer_config.json             the class and options for `transformers`
special_tokens_map.json           the names of the special tokens
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import ArtifactError, MissingExtraError
from sememe.storage.folder import read_json, write_errors, write_file, write_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
END = "<|endoftext|>"
CONTINUATION = "##"
LONGEST_WORD = 100  # characters; BERT takes longer ones for [UNK]


def require_tokenizers() -> None:
    """Refuse to go on without the library, naming the extra that brings it."""
    try:
        import tokenizers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "Sub-words need the package tokenizers: pip install 'sememe[neural]'."
        ) from error


# ---- from parts to an engine, and back ---------------------------------------------------------


def wordpiece_engine(
    vocabulary: dict[str, int],
    *,
    lowercase: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> Tokenizer:
    """Put BERT's tokenizer together; accents go with the capitals where nothing else is said."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    engine = Tokenizer(
        models.WordPiece(vocabulary, unk_token=UNK, max_input_chars_per_word=LONGEST_WORD)
    )
    engine.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=split_chinese,
        strip_accents=strip_accents,
        lowercase=lowercase,
    )
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece(prefix=CONTINUATION)
    _add_specials(engine, [name for name in SPECIALS if name in vocabulary])
    if CLS in vocabulary and SEP in vocabulary:
        engine.post_processor = processors.TemplateProcessing(
            single=f"{CLS}:0 $A:0 {SEP}:0",
            pair=f"{CLS}:0 $A:0 {SEP}:0 $B:1 {SEP}:1",
            special_tokens=[(name, vocabulary[name]) for name in (CLS, SEP)],
        )
    return engine


def bpe_engine(vocabulary: dict[str, int], merges: list[tuple[str, str]], end: str) -> Tokenizer:
    """Put GPT-2's tokenizer together."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    engine = Tokenizer(
        models.BPE(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix="")
    )
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    engine.post_processor = processors.ByteLevel(trim_offsets=False)
    _add_specials(engine, [end] if end in vocabulary else [])
    return engine


def _add_specials(engine: Tokenizer, names: list[str]) -> None:
    from tokenizers import AddedToken

    engine.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])


def describe(engine: Tokenizer) -> dict[str, Any]:
    """What kind of tokenizer an engine is, and how it treats case and accents."""
    content = json.loads(engine.to_str())
    kinds = {"WordPiece": "wordpiece", "BPE": "bpe"}
    kind = kinds.get(content["model"]["type"])
    if kind is None:
        raise ArtifactError(
            f"The tokenizer is of type {content['model']['type']}; WordPiece and BPE can be used."
        )
    parts = _normalizers(content["normalizer"])
    bert = next((part for part in parts if part["type"] == "BertNormalizer"), {})
    types = {part["type"] for part in parts}
    lowercase = bool(bert.get("lowercase")) or "Lowercase" in types
    accents = bert.get("strip_accents")
    if accents is None:
        accents = bool(bert) and lowercase
    return {
        "kind": kind,
        "lowercase": lowercase,
        "strip_accents": accents or "StripAccents" in types,
        "split_chinese": bool(bert.get("handle_chinese_chars")),
    }


def merges_of(engine: Tokenizer) -> list[tuple[str, str]]:
    """The pairs that BPE joins, in order; older files have each as one string."""
    pairs = json.loads(engine.to_str())["model"]["merges"]
    return [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in pairs]


def _normalizers(content: Any) -> list[dict[str, Any]]:
    if content is None:
        return []
    return content["normalizers"] if content["type"] == "Sequence" else [content]


# ---- reading ----------------------------------------------------------------------------------


def read(path: Path) -> tuple[Tokenizer, str]:
    """Open a tokenizer's folder or file; give it with the name of its end of text."""
    require_tokenizers()
    folder = path if path.is_dir() else path.parent
    file = _main_file(path) if path.is_dir() else path
    if not file.is_file():
        raise ArtifactError(f"There is no tokenizer at {path}.")
    config = _read_options(folder / "tokenizer_config.json")
    names = _read_options(folder / "special_tokens_map.json") | config
    end = _name_of(names.get("eos_token")) or END
    if file.name == "vocab.txt" or file.suffix == ".txt":
        return _read_wordpiece(file, config), end
    if file.name == "vocab.json":
        return _read_bpe(file, end), end
    return _read_engine(file), end


def _main_file(folder: Path) -> Path:
    for name in ("tokenizer.json", "vocab.txt", "vocab.json"):
        if (folder / name).is_file():
            return folder / name
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


def _name_of(token: Any) -> str | None:
    """A token is written as its name, or as an object that has it as `content`."""
    return token.get("content") if isinstance(token, dict) else token


def _read_engine(file: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_str(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ArtifactError(f"Cannot read {file}: {error.strerror}.") from error
    except Exception as error:  # the library raises plain Exception
        raise ArtifactError(f"{file} is not a tokenizer that can be used: {error}.") from None


def _read_lines(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{file} cannot be read ({error}).") from error
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _read_wordpiece(file: Path, config: dict[str, Any]) -> Tokenizer:
    lines = _read_lines(file)
    if not lines:
        raise ArtifactError(f"{file} is empty: a vocabulary has one token a line.")
    vocabulary = {line: number for number, line in enumerate(lines)}
    is_cased = any(line.lower() != line for line in lines if not line.startswith("["))
    return wordpiece_engine(
        vocabulary,
        lowercase=config.get("do_lower_case", not is_cased),
        strip_accents=config.get("strip_accents"),
        split_chinese=config.get("tokenize_chinese_chars", True),
    )


def _read_bpe(file: Path, end: str) -> Tokenizer:
    merges_file = file.with_name("merges.txt")
    if not merges_file.is_file():
        raise ArtifactError(f"{merges_file} is missing: {file.name} needs it beside it.")
    vocabulary = read_json(file)
    if not isinstance(vocabulary, dict) or not all(type(n) is int for n in vocabulary.values()):
        raise ArtifactError(f"{file} cannot be used: it must map each token to its id.")
    merges = []
    for number, line in enumerate(_read_lines(merges_file), 1):
        parts = line.split(" ")
        if number == 1 and line.startswith("#version"):
            continue
        if len(parts) != 2:
            raise ArtifactError(f"{merges_file}, line {number:,}: {line!r} is not two tokens.")
        merges.append((parts[0], parts[1]))
    try:
        return bpe_engine(vocabulary, merges, end)
    except Exception as error:  # the library raises plain Exception
        raise ArtifactError(f"{file} and {merges_file.name} do not fit: {error}.") from None


# ---- writing ----------------------------------------------------------------------------------


def write(
    folder: Path,
    engine: Tokenizer,
    parts: dict[str, Any],
    names: tuple[str, ...],
    max_length: int | None,
) -> None:
    """Write all files of a tokenizer into `folder`."""
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    _write_text(folder / "tokenizer.json", engine.to_str(pretty=True))
    vocabulary = engine.get_vocab(with_added_tokens=True)
    if parts["kind"] == "wordpiece":
        lines = [""] * (max(vocabulary.values()) + 1)
        for token, token_id in vocabulary.items():
            lines[token_id] = token
        _write_text(folder / "vocab.txt", "".join(f"{line}\n" for line in lines))
    else:
        ordered = dict(sorted(vocabulary.items(), key=lambda item: item[1]))
        _write_text(folder / "vocab.json", json.dumps(ordered, ensure_ascii=False))
        lines = ["#version: 0.2", *map(" ".join, merges_of(engine))]
        _write_text(folder / "merges.txt", "".join(f"{line}\n" for line in lines))
    special = _special_names(parts["kind"], names)
    write_json(folder / "special_tokens_map.json", special)
    write_json(folder / "tokenizer_config.json", _config(parts, max_length) | special)


def _write_text(path: Path, text: str) -> None:
    with write_file(path) as scratch:
        scratch.write_text(text, encoding="utf-8", newline="\n")


def _special_names(kind: str, names: tuple[str, ...]) -> dict[str, str]:
    if kind == "wordpiece":
        roles = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
        return dict(zip(roles, names, strict=True))
    return dict.fromkeys(("bos_token", "eos_token", "unk_token"), names[0])


def _config(parts: dict[str, Any], max_length: int | None) -> dict[str, Any]:
    length = {} if max_length is None else {"model_max_length": max_length}
    if parts["kind"] == "bpe":
        return {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False} | length
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": parts["lowercase"],
        "strip_accents": parts["strip_accents"],
        "tokenize_chinese_chars": parts["split_chinese"],
    } | length
