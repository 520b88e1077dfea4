"""config.json as `transformers` writes it, and our config: one from the other, both ways."""

from __future__ import annotations

from typing import Any

from sememe.errors import ArtifactError, OptionError
from sememe.networks.config import BERTConfig, GPTConfig

Sizes = BERTConfig | GPTConfig

_BERT = {
    "vocab_size": "vocab_size",
    "hidden_size": "width",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "inner_size",
    "max_position_embeddings": "max_length",
    "type_vocab_size": "num_segments",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "layer_norm_eps": "norm_eps",
    "initializer_range": "initial_std",
}
_GPT = {
    "vocab_size": "vocab_size",
    "n_embd": "width",
    "n_layer": "num_layers",
    "n_head": "num_heads",
    "n_positions": "max_length",
    "resid_pdrop": "dropout",
    "attn_pdrop": "attention_dropout",
    "layer_norm_epsilon": "norm_eps",
    "initializer_range": "initial_std",
}
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python": "gelu",
    "relu": "relu",
}
# GPT-1 calls its own approximation plain gelu.
_GPT1_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu"}

# Settings that change the arithmetic, with the one value that ours computes.
_ARITHMETIC = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "tie_word_embeddings": True,
}


def from_huggingface(content: Any, place: str) -> Sizes:
    """Our config for a config.json; refuses networks whose arithmetic is another."""
    kind = content.get("model_type") if isinstance(content, dict) else None
    if kind not in ("bert", "gpt2", "openai-gpt"):
        raise ArtifactError(
            f"{place} describes a model of type {kind!r}; sememe opens bert, gpt2 and openai-gpt."
        )
    for name, computed in _ARITHMETIC.items():
        if content.get(name, computed) != computed:
            raise ArtifactError(
                f"{place} has {name} = {content[name]!r}; sememe computes with {computed!r} only."
            )
    try:
        return _bert_config(content) if kind == "bert" else _gpt_config(content, kind)
    except (KeyError, TypeError, OptionError) as error:
        raise ArtifactError(f"{place} cannot be used: {_said(error)}") from error


def _said(error: Exception) -> str:
    return f"{error} is missing." if isinstance(error, KeyError) else str(error)


def _bert_config(content: dict[str, Any]) -> BERTConfig:
    values = {ours: content[theirs] for theirs, ours in _BERT.items() if theirs in content}
    if values.get("inner_size") == 4 * values.get("width", 768):
        values["inner_size"] = 0
    return BERTConfig(
        activation=_activation(content.get("hidden_act", "gelu"), _ACTIVATIONS), **values
    )


def _gpt_config(content: dict[str, Any], kind: str) -> GPTConfig:
    values = {ours: content[theirs] for theirs, ours in _GPT.items() if theirs in content}
    values["inner_size"] = content.get("n_inner") or 0
    if kind == "gpt2":
        name = content.get("activation_function", "gelu_new")
        return GPTConfig(activation=_activation(name, _ACTIVATIONS), norm="pre", **values)
    values = {"vocab_size": 40_478, "max_length": 512, **values}
    name = content.get("afn", "gelu")
    return GPTConfig(activation=_activation(name, _GPT1_ACTIVATIONS), norm="post", **values)


def _activation(name: str, known: dict[str, str]) -> Any:
    if name not in known:
        raise OptionError(f"the activation {name!r} is not among {', '.join(known)}.")
    return known[name]


def to_huggingface(config: Sizes) -> dict[str, Any]:
    """The content of config.json for our config: nothing but what `transformers` knows."""
    if isinstance(config, BERTConfig):
        content = {theirs: getattr(config, ours) for theirs, ours in _BERT.items()}
        content["intermediate_size"] = config.inner_width
        content["hidden_act"] = _name(config.activation, _ACTIVATIONS)
        return {"architectures": ["BertForPreTraining"], "model_type": "bert", **content}
    content = {theirs: getattr(config, ours) for theirs, ours in _GPT.items()}
    content["embd_pdrop"] = config.dropout
    if config.norm == "pre":
        content["n_inner"] = config.inner_size or None
        content["activation_function"] = _name(config.activation, _ACTIVATIONS)
        return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", **content}
    if config.inner_width != 4 * config.width:
        raise ArtifactError(
            "A post-norm GPT is saved as GPT-1, whose inner_size is four times its width "
            f"({config.inner_width} and {config.width} were given)."
        )
    content["afn"] = _name(config.activation, _GPT1_ACTIVATIONS)
    return {"architectures": ["OpenAIGPTLMHeadModel"], "model_type": "openai-gpt", **content}


def _name(activation: str, known: dict[str, str]) -> str:
    for theirs, ours in known.items():
        if ours == activation:
            return theirs
    raise ArtifactError(f"GPT-1's files know no activation {activation}; choose gelu_tanh or relu.")
