"""Small random folders of the encoder families as `transformers` writes them, with tokenizers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors

from sememe.tokens.subwords.engines import ROBERTA, SPECIALS, bpe_engine
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

CORPUS = ["the old cat sat on the warm mat", "a dog ran over the old mat", "猫 坐 在 垫子 上"] * 4
_ENCODER: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 60,
    "max_position_embeddings": 70,
}  # fmt: skip
_OFFSET = _ENCODER | {"max_position_embeddings": 72, "type_vocab_size": 1}
SIZES: dict[str, dict[str, Any]] = {
    "roberta": _OFFSET,
    "xlm-roberta": _OFFSET | {"layer_norm_eps": 1e-5, "hidden_act": "gelu_new"},
    "distilbert": {
        "dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 60, "max_position_embeddings": 70,
    },
    "electra": _ENCODER | {"embedding_size": 20},
    "albert": _ENCODER | {"embedding_size": 20, "num_hidden_layers": 4, "num_hidden_groups": 2},
    "modernbert": _ENCODER | {"num_hidden_layers": 5, "local_attention": 8},
}  # fmt: skip
FAMILIES = list(SIZES)


def _bpe() -> Tokenizer:
    """RoBERTa's, without its merges: every byte is a token."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*ROBERTA[2:3], ROBERTA[0], ROBERTA[3], ROBERTA[1]]
    vocabulary = {name: index for index, name in enumerate([*names, *letters, ROBERTA[4]])}
    return bpe_engine(vocabulary, [], "</s>")


def _unigram(names: tuple[str, ...], num_between: int, *, has_segments: bool) -> Tokenizer:
    pad, unk, cls, sep, mask = names
    letters = sorted({char for text in CORPUS for char in text if char != " "} | {"▁"})
    pieces = [pad, unk, cls, sep, "▁the", "▁old", "▁cat", "▁mat", *letters, mask]
    vocabulary = [(piece, -1.0 - index / 100) for index, piece in enumerate(pieces)]
    engine = Tokenizer(models.Unigram(vocabulary, unk_id=1, byte_fallback=False))
    engine.normalizer = normalizers.NFKC()
    engine.pre_tokenizer = pre_tokenizers.Metaspace()
    engine.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    middle = " ".join([f"{sep}:0"] * num_between)
    segment = int(has_segments)
    engine.post_processor = processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0", pair=f"{cls}:0 $A:0 {middle} $B:{segment} {sep}:{segment}",
        special_tokens=[(name, pieces.index(name)) for name in (cls, sep)],
    )  # fmt: skip
    return engine


def engine_of(family: str) -> Tokenizer:
    """A tokenizer of the family's type."""
    if family == "roberta":
        return _bpe()
    if family == "xlm-roberta":
        return _unigram(ROBERTA, 2, has_segments=False)
    if family == "albert":
        return _unigram(("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"), 1, has_segments=True)
    if family == "modernbert":
        letters = sorted(pre_tokenizers.ByteLevel.alphabet())
        engine = bpe_engine({name: index for index, name in enumerate(letters)}, [], "")
        engine.add_special_tokens(
            [AddedToken(name, special=True, lstrip=name == "[MASK]") for name in SPECIALS]
        )
        ids = {name: engine.token_to_id(name) for name in ("[CLS]", "[SEP]")}
        engine.post_processor = processors.TemplateProcessing(
            single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:0 [SEP]:0",
            special_tokens=[*ids.items()],
        )  # fmt: skip
        return engine
    found = SubwordTokenizer.train(CORPUS, kind="wordpiece", vocab_size=160, min_frequency=1)
    return Tokenizer.from_str(found.to_json())


ROLES = ("pad", "unk", "cls", "sep", "mask")


def write(family: str, folder: Path, head: str = "AutoModelForMaskedLM", **options: Any) -> Any:
    """Write a folder with weights that all matter; return the network of `transformers`."""
    engine = engine_of(family)
    names = {
        "roberta": ROBERTA, "xlm-roberta": ROBERTA,
        "albert": ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
    }.get(family, SPECIALS)  # fmt: skip
    ids = dict(zip(ROLES, map(engine.token_to_id, names), strict=True))
    config = transformers.AutoConfig.for_model(
        family, vocab_size=engine.get_vocab_size(), pad_token_id=ids["pad"],
        bos_token_id=ids["cls"], eos_token_id=ids["sep"], cls_token_id=ids["cls"],
        sep_token_id=ids["sep"], **SIZES[family], **options,
    )  # fmt: skip
    torch.manual_seed(3)
    peer = getattr(transformers, head).from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in peer.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape))
    peer.save_pretrained(folder)
    engine.save(str(folder / "tokenizer.json"))
    roles = {f"{role}_token": name for role, name in zip(ROLES, names, strict=True)}
    content: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", **roles}
    has_segments = any(engine.encode("a", "a").type_ids) and family != "distilbert"
    inputs = ["input_ids", *(["token_type_ids"] if has_segments else []), "attention_mask"]
    content |= {"model_input_names": inputs}
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    return peer
