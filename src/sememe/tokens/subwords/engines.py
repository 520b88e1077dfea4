"""Engines of the `tokenizers` library: tokens from training or from a vocabulary's files in.

vocab.txt                         WordPiece: a token per line, its number is the id
vocab.json and merges.txt         byte-level BPE
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import ArtifactError
from sememe.storage.folder import read_json, read_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNK, CLS, SEP, MASK = SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
END = "<|endoftext|>"
CONTINUATION = "##"
LONGEST_WORD = 100  # characters; BERT takes longer ones for [UNK]


def wordpiece_engine(
    vocabulary: dict[str, int],
    *,
    lowercase: bool,
    strip_accents: bool | None = None,
    split_chinese: bool = True,
) -> Tokenizer:
    """Build BERT's tokenizer; by default accents are stripped if text is lower-cased."""
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
    """Build GPT-2's tokenizer, or RoBERTa's if the vocabulary has its special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

    engine = Tokenizer(
        models.BPE(vocabulary, merges, continuing_subword_prefix="", end_of_word_suffix="")
    )
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    if all(name in vocabulary for name in ROBERTA):
        *others, mask = ROBERTA
        _add_specials(engine, others)
        # The mask takes the space before it along, as a word does.
        engine.add_special_tokens([AddedToken(mask, special=True, lstrip=True, normalized=False)])
        ends = (("</s>", vocabulary["</s>"]), ("<s>", vocabulary["<s>"]))
        engine.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=False)
        return engine
    engine.post_processor = processors.ByteLevel(trim_offsets=False)
    _add_specials(engine, [end] if end in vocabulary else [])
    return engine


def _add_specials(engine: Tokenizer, names: list[str]) -> None:
    from tokenizers import AddedToken

    engine.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])


def merges_of(engine: Tokenizer) -> list[tuple[str, str]]:
    """BPE's merges, in order; older files have each as one string."""
    pairs = json.loads(engine.to_str())["model"]["merges"]
    return [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in pairs]


def _read_lines(file: Path) -> list[str]:
    lines = [line.removesuffix("\r") for line in read_text(file).removeprefix("\ufeff").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def read_wordpiece(file: Path, config: dict[str, Any]) -> Tokenizer:
    """Open vocab.txt; by default a vocabulary without capitals lower-cases its text."""
    lines = _read_lines(file)
    if not lines:
        raise ArtifactError(f"{file} is empty: a vocabulary has one token per line.")
    is_cased = any(line.lower() != line for line in lines if not line.startswith("["))
    options = {
        "lowercase": config.get("do_lower_case", not is_cased),
        "strip_accents": config.get("strip_accents"),
        "split_chinese": config.get("tokenize_chinese_chars", True),
    }
    return wordpiece_engine({line: number for number, line in enumerate(lines)}, **options)


def read_bpe(file: Path, end: str) -> Tokenizer:
    """Open vocab.json and its merges.txt; `end` is the name of the end-of-text token."""
    merges_file = file.with_name("merges.txt")
    if not merges_file.is_file():
        raise ArtifactError(f"{merges_file} is missing: {file.name} needs it beside it.")
    vocabulary = read_json(file)
    if not isinstance(vocabulary, dict):
        raise ArtifactError(f"{file} cannot be used: it must map each token to its id.")
    merges = []
    for number, line in enumerate(_read_lines(merges_file), 1):
        parts = line.split(" ")
        if number == 1 and line.startswith("#version"):
            continue
        if len(parts) != 2:
            raise ArtifactError(f"{merges_file}, line {number:,}: {line!r} is not two tokens.")
        merges.append((parts[0], parts[1]))
    return bpe_engine(vocabulary, merges, end)
