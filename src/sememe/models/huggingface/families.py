"""config.json of BERT and of the families that descend from it, from and to our options."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from sememe.errors import ArtifactError, OptionError
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.families import FamilyConfig

BERT = {
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
_DISTILBERT = {
    "vocab_size": "vocab_size",
    "dim": "width",
    "n_layers": "num_layers",
    "n_heads": "num_heads",
    "hidden_dim": "inner_size",
    "max_position_embeddings": "max_length",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "initializer_range": "initial_std",
}
_MODERNBERT = {
    "vocab_size": "vocab_size",
    "hidden_size": "width",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "inner_size",
    "max_position_embeddings": "max_length",
    "mlp_dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "norm_eps": "norm_eps",
    "initializer_range": "initial_std",
}


class Family(NamedTuple):
    """How `transformers` writes a family."""

    start: str  # of the names of its classes
    names: Mapping[str, str]  # their fields and ours
    defaults: Mapping[str, Any] = {}  # of fields that a file may leave out
    activation: str = "hidden_act"


_ROBERTA = {"vocab_size": 50_265, "max_position_embeddings": 512, "pad_token_id": 1}
FAMILIES = {
    "roberta": Family("Roberta", BERT, _ROBERTA),
    "xlm-roberta": Family("XLMRoberta", BERT, _ROBERTA | {"vocab_size": 30_522}),
    "distilbert": Family(
        "DistilBert", _DISTILBERT, {"n_layers": 6, "hidden_dim": 3_072}, "activation"
    ),
    "electra": Family(
        "Electra",
        BERT | {"embedding_size": "embedding_size"},
        {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4,
         "intermediate_size": 1_024},
    ),
    "albert": Family(
        "Albert",
        BERT | {"embedding_size": "embedding_size", "num_hidden_groups": "num_groups"},
        {"vocab_size": 30_000, "embedding_size": 128, "hidden_size": 4_096,
         "num_attention_heads": 64, "intermediate_size": 16_384, "num_hidden_groups": 1,
         "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
         "hidden_act": "gelu_new"},
    ),
    "modernbert": Family(
        "ModernBert",
        _MODERNBERT,
        {"vocab_size": 50_368, "num_hidden_layers": 22, "intermediate_size": 1_152,
         "max_position_embeddings": 8_192, "mlp_dropout": 0.0, "attention_dropout": 0.0,
         "norm_eps": 1e-5, "local_attention": 128},
        "hidden_activation",
    ),
}  # fmt: skip

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python": "gelu",
    "relu": "relu",
    "relu2": "relu2",
}
# Settings that change the arithmetic, with the one value that we compute with.
_ARITHMETIC = {
    "inner_group_num": 1,
    "norm_bias": False,
    "attention_bias": False,
    "mlp_bias": False,
    "decoder_bias": True,
    "classifier_bias": False,
    "classifier_activation": "gelu",
}


def bert_config(content: Mapping[str, Any]) -> BERTConfig:
    """Our options for the config.json of a BERT."""
    values = _values(content, BERT)
    return BERTConfig(
        activation=activation_of(content.get("hidden_act", "gelu"), ACTIVATIONS), **values
    )


def family_config(content: Mapping[str, Any]) -> FamilyConfig:
    """Our options for the config.json of another family."""
    name = content["model_type"]
    family = FAMILIES[name]
    content = {**family.defaults, **content}
    for field, computed in _ARITHMETIC.items():
        if content.get(field, computed) != computed:
            raise OptionError(f"{field} is {content[field]!r}, and only {computed!r} is known.")
    values = _values(content, family.names) | {"family": name}
    values["activation"] = activation_of(content.get(family.activation, "gelu"), ACTIVATIONS)
    if name in ("roberta", "xlm-roberta"):
        # The position after that of the padding token is the first one.
        values["first_position"] = content["pad_token_id"] + 1
        values["max_length"] -= values["first_position"]
    if name in ("distilbert", "modernbert"):
        values["num_segments"] = 0
    if name == "modernbert":
        values |= {"positions": "rotary", "window": content["local_attention"] // 2}
        values |= _attention(content, values.get("num_layers", 12))
    return FamilyConfig(**values)


def _values(content: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    values = {ours: content[theirs] for theirs, ours in names.items() if theirs in content}
    if values.get("inner_size") == 4 * values.get("width", 768):
        values["inner_size"] = 0
    return values


def _attention(content: Mapping[str, Any], num_layers: int) -> dict[str, Any]:
    """Which layers of a ModernBERT see everything, and the bases of rotary positions."""
    every = content.get("global_attn_every_n_layers", 3)
    if types := content.get("layer_types"):
        is_global = [kind == "full_attention" for kind in types]
        every = next((n for n, own in enumerate(is_global) if n and own), max(num_layers, 1))
        if is_global != [layer % every == 0 for layer in range(num_layers)]:
            raise OptionError("layer_types has no global layer at equal distances.")
    found = {"global_every": every}
    rope = content.get("rope_parameters") or {}
    for ours, theirs, kind in (
        ("global_theta", "global_rope_theta", "full_attention"),
        ("local_theta", "local_rope_theta", "sliding_attention"),
    ):
        own = rope.get(kind) or {}
        if own.get("rope_type", "default") != "default":
            raise OptionError(f"rope_type {own['rope_type']!r} is unknown.")
        theta = own.get("rope_theta", content.get(theirs))
        if theta is not None:
            found[ours] = float(theta)
    return found


# The class of `transformers` with just the heads of a network, by those that it lacks.
_CLASSES = {
    frozenset({"pooler", "next head"}): "ForMaskedLM",
    frozenset({"next head"}): "ForMaskedLM",
    frozenset({"masked head", "pooler", "next head"}): "Model",
    frozenset({"masked head", "next head"}): "Model",
}


def family_content(config: FamilyConfig, lacking: Collection[str] = ()) -> dict[str, Any]:
    """The content of config.json for a network of another family."""
    family = FAMILIES[config.family]
    content = {theirs: getattr(config, ours) for theirs, ours in family.names.items()}
    content[next(key for key, ours in family.names.items() if ours == "inner_size")] = (
        config.inner_width
    )
    content[family.activation] = activation_name(config.activation, ACTIVATIONS)
    if config.first_position:
        content["max_position_embeddings"] += config.first_position
        content["pad_token_id"] = config.first_position - 1
    if config.family == "electra":
        content["embedding_size"] = config.embedding_width
    if config.family == "albert":
        content["embedding_size"] = config.embedding_width
        content["num_hidden_groups"] = config.num_groups or config.num_layers
    if config.is_modern:
        content |= {
            "embedding_dropout": config.dropout,
            "local_attention": 2 * config.window,
            "global_attn_every_n_layers": config.global_every,
            "global_rope_theta": config.global_theta,
            "local_rope_theta": config.local_theta,
            # Theirs are ids of a large vocabulary; the tokenizer has the right ones.
            **dict.fromkeys(f"{role}_token_id" for role in ("pad", "bos", "eos", "cls", "sep")),
        }
    ending = _CLASSES.get(frozenset({*lacking, "next head"} - {"replaced head"}))
    detects = config.family == "electra" and "replaced head" not in lacking
    is_whole = detects or (config.family == "albert" and not lacking)
    names = [family.start + ("ForPreTraining" if is_whole else ending or "Model")]
    return {"architectures": names, "model_type": config.family, **content}


def activation_of(name: str, known: Mapping[str, str]) -> Any:
    """Our name of an activation."""
    if name not in known:
        raise OptionError(f"the activation {name!r} is not among {', '.join(known)}.")
    return known[name]


def activation_name(activation: str, known: Mapping[str, str]) -> str:
    """Their name of an activation."""
    for theirs, ours in known.items():
        if ours == activation:
            return theirs
    raise ArtifactError(f"GPT-1's files know no activation {activation}; choose gelu_tanh or relu.")
