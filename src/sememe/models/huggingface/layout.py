"""A Hugging Face folder without its tensors: its files, and config.json from and to ours.

Nothing here needs PyTorch: commands use it for every path they are given.
"""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from sememe.errors import ArtifactError, OptionError
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.families import FamilyConfig
from sememe.models.gpt.config import GPTConfig
from sememe.models.huggingface.families import (
    ACTIVATIONS,
    BERT,
    FAMILIES,
    activation_name,
    activation_of,
    bert_config,
    family_config,
    family_content,
)
from sememe.storage.folder import MANIFEST, manifest_in, read_errors, read_json
from sememe.storage.tensors import tensor_shapes

CONFIG = "config.json"
ADAPTER_CONFIG, ADAPTER = "adapter_config.json", "adapter_model.safetensors"  # PEFT's
GRAPH = "model.onnx"  # what computes vectors instead of the weights, if it is there
TENSORS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = "pytorch_model*.bin"
_HDF5 = (".hdf5", ".h5")
_KINDS: dict[str, Literal["bert", "gpt"]] = {
    **dict.fromkeys(("bert", *FAMILIES), "bert"), "gpt2": "gpt", "openai-gpt": "gpt",
    "gpt2-banded": "gpt",
}  # fmt: skip
# Ours alone: `transformers` refuses it instead of computing dense attention in every layer.
_BANDED = "gpt2-banded"

_ENDINGS = {
    "ForSequenceClassification": "classify",
    "ForMultipleChoice": "choose",
    "ForTokenClassification": "tag",
    "ForQuestionAnswering": "answer",
}
# The classes whose head is a linear map of the vectors that we compute too.
HEAD_CLASSES = {
    "Bert": tuple(_ENDINGS),
    "Albert": tuple(_ENDINGS),
    **dict.fromkeys(
        ("Roberta", "XLMRoberta", "DistilBert", "Electra"),
        ("ForTokenClassification", "ForQuestionAnswering"),
    ),
}
_FINETUNED = {
    start + ending: _ENDINGS[ending] for start, own in HEAD_CLASSES.items() for ending in own
}


def class_start(config: BERTConfig) -> str:
    """How the names of the classes of `transformers` for a network start."""
    return FAMILIES[config.family].start if isinstance(config, FamilyConfig) else "Bert"


def network_kind(path: str | Path) -> Literal["bert", "gpt"] | None:
    """Whether a path is the folder of a BERT or of a GPT; None when it is neither."""
    return _KINDS.get(str(_content(path).get("model_type")))


def _content(folder: str | Path) -> dict[str, Any]:
    """The content of config.json; empty if there is none, or it cannot be read."""
    try:
        content = read_config(Path(folder))
    except ArtifactError:
        return {}
    return content if isinstance(content, dict) else {}


def read_config(folder: Path) -> Any:
    """The content of config.json; an adapter without one has that of its base."""
    if (folder / CONFIG).is_file() or not is_adapter(folder):
        return read_json(folder / CONFIG)
    content = read_json(base_of(folder) / CONFIG)
    with read_errors(folder / ADAPTER):
        ending = _TASK_TYPES.get(read_json(folder / ADAPTER_CONFIG).get("task_type"))
        config = from_huggingface(content, str(folder))
        if ending is None or not isinstance(config, BERTConfig):
            return content
        sizes = tensor_shapes(folder / ADAPTER)
        heads = [size for name, size in sizes.items() if name.endswith("classifier.weight")]
        labels = {str(number): f"LABEL_{number}" for size in heads for number in range(size[0])}
        own = {"architectures": [class_start(config) + ending]}
        return content | own | ({"id2label": labels} if labels else {})


def is_adapter(path: str | Path) -> bool:
    """Whether a path is a folder with a LoRA adapter."""
    return (Path(path) / ADAPTER_CONFIG).is_file()


def base_of(folder: Path) -> Path:
    """The folder of the model that an adapter belongs to: where it says, or beside the adapter."""
    with read_errors(folder / ADAPTER_CONFIG):
        told = str(read_json(folder / ADAPTER_CONFIG)["base_model_name_or_path"])
    for place in (Path(told), folder.absolute().parent / Path(told).name):
        if (place / CONFIG).is_file() and not is_adapter(place):
            return place
    raise ArtifactError(
        f"{folder} is a LoRA adapter of {told}, which is missing: put that model's folder there, "
        f"or beside the adapter as {folder.absolute().parent / Path(told).name}."
    )


_TASK_TYPES = {
    "SEQ_CLS": "ForSequenceClassification", "TOKEN_CLS": "ForTokenClassification",
    "QUESTION_ANS": "ForQuestionAnswering",
}  # fmt: skip


def finetuned_for(folder: str | Path) -> str | None:
    """The name of the task that a folder of `transformers` was fine-tuned for, or None."""
    if (Path(folder) / MANIFEST).exists():
        return None
    content = _content(folder)
    names = content.get("architectures")
    name = _FINETUNED.get(str(names[0])) if isinstance(names, list) and names else None
    kind, labels = content.get("problem_type"), content.get("id2label")
    # Their heads with one output predict a score, even if the file does not say so.
    is_single = kind is None and isinstance(labels, dict) and len(labels) == 1
    return "regress" if name == "classify" and (is_single or kind == "regression") else name


def is_pickled(path: str | Path) -> bool:
    """Whether a Hugging Face folder has its weights only in pickles."""
    folder = Path(path)
    has_tensors = any(folder.glob("*.safetensors"))
    return (folder / CONFIG).is_file() and not has_tensors and any(folder.glob(PICKLES))


def find_bilm(path: Path) -> tuple[Path, Path] | None:
    """The options and the weights of a released ELMo at a path: a folder, or the weights file."""
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.suffix in _HDF5)
        weights = [file for file in found if "weights" in file.name] or found
        return _beside(weights[0]) if weights and not (path / "sememe.json").exists() else None
    return _beside(path) if path.suffix in _HDF5 and path.is_file() else None


def _beside(weights: Path) -> tuple[Path, Path]:
    """The options file of weights: named like them except for one word, or options.json."""
    named = weights.with_name(f"{weights.stem.replace('weights', 'options')}.json")
    for options in (named, weights.with_name("options.json")):
        if options.is_file():
            return options, weights
    raise ArtifactError(
        f"{weights} needs its options beside it: {named.name} or options.json is missing."
    )


TransformerSizes = BERTConfig | GPTConfig

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
# GPT-1 calls its own approximation plain gelu.
_GPT1_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu"}

# Settings that change the arithmetic, with the one value that we support.
_ARITHMETIC = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "tie_word_embeddings": True,
}


def from_huggingface(content: Any, place: str) -> TransformerSizes:
    """Our config for a config.json; raises an error for networks with different arithmetic."""
    kind = content.get("model_type") if isinstance(content, dict) else None
    if kind not in _KINDS:
        raise ArtifactError(
            f"{place} describes a model of type {kind!r}; sememe opens {', '.join(_KINDS)}."
        )
    for name, computed in _ARITHMETIC.items():
        if content.get(name, computed) != computed:
            raise ArtifactError(
                f"{place} has {name} = {content[name]!r}; sememe computes with {computed!r} only."
            )
    try:
        if kind in FAMILIES:
            return family_config(content)
        return bert_config(content) if kind == "bert" else _gpt_config(content, kind)
    except (KeyError, TypeError, OptionError) as error:
        reason = f"{error} is missing." if isinstance(error, KeyError) else str(error)
        raise ArtifactError(f"{place} cannot be used: {reason}") from error


def network_config(folder: Path) -> TransformerSizes:
    """The options of a folder: those of its config.json, and what only sememe.json can say.

    Their file cannot tell that positions are sine waves, and need not: it holds the table.
    """
    config = from_huggingface(read_config(folder), str(folder / CONFIG))
    ours = manifest_in(folder).get("config")
    with read_errors(folder / MANIFEST):
        known = ours if isinstance(ours, dict) else {}
        own = {name: known[name] for name in ("positions", "start") if name in known}
        return replace(config, **own)


def _gpt_config(content: dict[str, Any], kind: str) -> GPTConfig:
    values = {ours: content[theirs] for theirs, ours in _GPT.items() if theirs in content}
    values["inner_size"] = content.get("n_inner") or 0
    if kind in ("gpt2", _BANDED):
        name = content.get("activation_function", "gelu_new")
        if kind == _BANDED:
            values |= {"attention": "alternating", "band": content["band"]}
        return GPTConfig(activation=activation_of(name, ACTIVATIONS), norm="pre", **values)
    values = {"vocab_size": 40_478, "max_length": 512, **values}
    name = content.get("afn", "gelu")
    return GPTConfig(activation=activation_of(name, _GPT1_ACTIVATIONS), norm="post", **values)


# The class of `transformers` that has just the heads of a BERT, by those that it lacks. None has a
# pooler without knowing what it is for, or lacks all of them: such a folder names no class.
_BERT_CLASSES = {
    frozenset(): "BertForPreTraining",
    frozenset({"pooler", "next head"}): "BertForMaskedLM",
    frozenset({"masked head"}): "BertForNextSentencePrediction",
    frozenset({"masked head", "next head"}): "BertModel",
}


def to_huggingface(config: TransformerSizes, lacking: Collection[str] = ()) -> dict[str, Any]:
    """The content of config.json for our config: only fields that `transformers` knows.

    A class is named only if all its weights are present; otherwise it would initialize them at
    random.
    """
    if isinstance(config, FamilyConfig):
        return family_content(config, lacking)
    if isinstance(config, BERTConfig):
        content = {theirs: getattr(config, ours) for theirs, ours in BERT.items()}
        content["intermediate_size"] = config.inner_width
        content["hidden_act"] = activation_name(config.activation, ACTIVATIONS)
        name = _BERT_CLASSES.get(frozenset(lacking))
        named = {"architectures": [name]} if name else {}
        return {**named, "model_type": "bert", **content}
    content = {theirs: getattr(config, ours) for theirs, ours in _GPT.items()}
    content["embd_pdrop"] = config.dropout
    if config.norm == "pre":
        content["n_inner"] = config.inner_size or None
        content["activation_function"] = activation_name(config.activation, ACTIVATIONS)
        if config.attention == "alternating":
            return {"model_type": _BANDED, "band": config.band, **content}
        return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", **content}
    if config.inner_width != 4 * config.width:
        raise ArtifactError(
            "A post-norm GPT is saved as GPT-1, whose inner_size is four times its width "
            f"({config.inner_width} and {config.width} were given)."
        )
    content["afn"] = activation_name(config.activation, _GPT1_ACTIVATIONS)
    return {"architectures": ["OpenAIGPTLMHeadModel"], "model_type": "openai-gpt", **content}
