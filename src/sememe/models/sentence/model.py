"""A sentence encoder: texts in, one vector each out, as sentence-transformers computes it.

A base (BERT, or static token vectors), then pooling, linear layers and normalization. Folders are
those of sentence-transformers, read and written. A text longer than the base's maximum is read in
overlapping windows, never truncated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from sememe.card import write_manifest
from sememe.contract import KINDS, Attention, Model
from sememe.errors import ArtifactError, OptionError
from sememe.machine import provenance
from sememe.models.huggingface.folder import load_folder, write_network
from sememe.models.huggingface.layout import network_kind
from sememe.models.sentence.layout import (
    ACTIVATIONS,
    LENGTH,
    MODULES,
    PROMPTS,
    activation_of,
    max_length_of,
    parts_of,
    pools_of,
    prompts_of,
)
from sememe.models.sentence.token_vectors import TokenVectors
from sememe.storage.folder import (
    check_replaceable,
    manifest_in,
    reads_artifact,
    write_folder,
    write_json,
)
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.vectors import WordVectors

FORMAT = 1
_TYPES = "sentence_transformers.models"
_TENSORS = "model.safetensors"
_OF_A_NETWORK = ("words", "embed_words", "encoder", "attention")


class DenseLayer(NamedTuple):
    """A linear map after the pooling, and its activation by the name of PyTorch's class."""

    weight_OI: np.ndarray
    bias_O: np.ndarray | None
    activation: str

    def apply(self, vectors_NI: np.ndarray) -> np.ndarray:
        """Map each vector, (N, O)."""
        if vectors_NI.shape[1] != self.weight_OI.shape[1]:
            raise ArtifactError(
                f"A Dense layer takes {self.weight_OI.shape[1]:,} dimensions, not "
                f"{vectors_NI.shape[1]:,}."
            )
        mapped = vectors_NI @ self.weight_OI.T
        if self.bias_O is not None:
            mapped = mapped + self.bias_O
        return np.asarray(_ACTIVATE[self.activation](mapped), np.float32)


def _gelu(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


_ACTIVATE: dict[str, Any] = dict(
    zip(
        ACTIVATIONS,
        (
            lambda x: x,
            np.tanh,
            lambda x: np.maximum(x, 0),
            _gelu,
            lambda x: 1 / (1 + np.exp(-x)),
        ),
        strict=True,
    )
)


class SentenceModel(Model):
    """One vector per text: a base, pooling, linear layers, normalization, and prompts."""

    kind = "sentence"
    is_pretrained = True

    def __init__(
        self,
        base: Any,
        *,
        pool: str | Sequence[str] = "mean",
        dense: Sequence[DenseLayer] = (),
        normalize: bool = True,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str = "",
    ) -> None:
        """`base` is a BERT, or TokenVectors; `prompts` are written before texts of each role."""
        self.base = base
        self.pools = (pool,) if isinstance(pool, str) else tuple(pool)
        self.dense, self.is_normalized = tuple(dense), normalize
        self.prompts, self.default_prompt = dict(prompts or {}), default_prompt
        self.text: TextSettings = getattr(base, "text", TextSettings())

    @property
    def own_pool(self) -> str:  # type: ignore[override]
        """The pooling of the encoder; several are concatenated."""
        return "+".join(self.pools)

    @property
    def is_static(self) -> bool:
        """Whether the vectors of tokens do not depend on their context."""
        return isinstance(self.base, TokenVectors)

    def __repr__(self) -> str:
        return f"SentenceModel({self.base!r}, pool={self.own_pool!r})"

    # ---- use ------------------------------------------------------------------------------------

    def lacking(self) -> dict[str, str]:
        """Static token vectors have no words and no network."""
        why = "its vectors are those of sub-word tokens"
        return dict.fromkeys(_OF_A_NETWORK, why) if self.is_static else {}

    def answering(self, capability: str) -> Model:
        """The network below the pooling."""
        self.require(capability)
        found: Model = self.base
        return found

    def prompt(self, role: str = "") -> str:
        """What is written before a text of this role: query, document, or the default."""
        return self.prompts.get(role or self.default_prompt, "")

    def embed(
        self, texts: Sequence[str], *, pool: str = "", layers: Any = "last", role: str = ""
    ) -> np.ndarray:
        """One vector per text. `role` chooses a prompt; `pool` replaces the encoder's own."""
        self.check_list(texts)
        if self.is_static and (pool not in ("", "mean") or layers != "last"):
            raise OptionError("Static token vectors have one layer, and their pooling is the mean.")
        before = self.prompt(role)
        prompted = [before + text for text in texts] if before else texts
        if self.is_static:
            vectors_ND = self.base.embed(prompted)
        else:
            vectors_ND = np.concatenate(
                [
                    self.base.embed(prompted, pool=own, layers=layers)
                    for own in ((pool,) if pool else self.pools)
                ],
                axis=1,
            )
        for layer in self.dense:
            vectors_ND = layer.apply(vectors_ND)
        if self.is_normalized:
            norms_N = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
            vectors_ND = vectors_ND / np.maximum(norms_N, 1e-12)
        return np.asarray(vectors_ND, np.float32)

    @property
    def words(self) -> WordVectors:
        """The input vectors of whole words, from the network's table."""
        found: WordVectors = self.answering("words").words
        return found

    def attention(
        self, text: str, other: str | None = None, *args: Any, **options: Any
    ) -> Attention:
        """The attention of the network over a text, or over a pair of texts."""
        return self.answering("attention").attention(text, other, *args, **options)

    def encoder(self, reads: Any, config: Any) -> Any:
        """What fine-tuning builds on: the network below the pooling."""
        return self.answering("encoder").encoder(reads, config)

    def to(self, device: str) -> Self:
        """Move the network to a device."""
        if not self.is_static:
            self.base = self.base.to(device)
        return self

    @property
    def dim(self) -> int:
        """The dimensions of a vector."""
        if self.dense:
            return int(self.dense[-1].weight_OI.shape[0])
        width = self.base.dim if self.is_static else self.base.config.width
        return int(width) * len(self.pools)

    def describe(self) -> dict[str, Any]:
        """The base, the pooling, and the dimensions."""
        return super().describe() | self._facts()

    def _facts(self) -> dict[str, Any]:
        return {
            "base": "token vectors" if self.is_static else KINDS[self.base.kind].title,
            "dim": self.dim,
            "pool": list(self.pools),
            "dense": [layer.weight_OI.shape[0] for layer in self.dense],
            "normalize": self.is_normalized,
            "prompts": self.prompts,
            "max_length": None if self.is_static else self.base.network.seen_length,
        }

    # ---- the folder -----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write a sentence-transformers folder atomically."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        with write_folder(folder) as scratch:
            modules = ["StaticEmbedding" if self.is_static else "Transformer"]
            manifest = self._write_base(scratch)
            if not self.is_static:
                modules.append("Pooling")
            modules += ["Dense"] * len(self.dense) + ["Normalize"] * self.is_normalized
            layers = iter(self.dense)
            listed = []
            for index, name in enumerate(modules):
                place = f"{index}_{name}" if index else ""
                listed.append(
                    {"idx": index, "name": str(index), "path": place, "type": f"{_TYPES}.{name}"}
                )
                if place:
                    (scratch / place).mkdir()
                    self._write_part(scratch / place, name, layers)
            write_json(scratch / MODULES, listed)
            prompts = {"query": "", "document": ""} | self.prompts
            write_json(
                scratch / PROMPTS,
                {"prompts": prompts, "default_prompt_name": self.default_prompt or None},
            )
            write_manifest(scratch, manifest)

    def _write_base(self, scratch: Path) -> dict[str, Any]:
        """Write the base; return what sememe.json says."""
        told = {"text": self.text.to_dict(), "kind": self.kind, "format": FORMAT, **self._facts()}
        base = self.base
        if self.is_static:
            base.tokenizer.save(scratch)
            write_tensors(scratch / _TENSORS, base.tensors(), metadata={"format": "pt"})
            return {**told, "provenance": provenance()}
        write_network(base.network, scratch, without=("masked head", "next head"))
        length = base.network.seen_length
        base.tokenizer.save(scratch, max_length=length)
        write_json(scratch / LENGTH, {"max_seq_length": length, "do_lower_case": False})
        return {**base.manifest(), **told, "untrained": ["masked head", "next head"]}

    def _write_part(self, place: Path, name: str, layers: Any) -> None:
        """Write one module after the base."""
        if name == "Pooling":
            modes = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens"}
            config: dict[str, Any] = {"word_embedding_dimension": self.base.config.width} | {
                f"pooling_mode_{old}": pool in self.pools for pool, old in modes.items()
            }
        elif name == "Dense":
            layer = next(layers)
            module = (
                "linear.Identity"
                if layer.activation == "Identity"
                else (f"activation.{layer.activation}")
            )
            config = {
                "in_features": layer.weight_OI.shape[1], "out_features": layer.weight_OI.shape[0],
                "bias": layer.bias_O is not None,
                "activation_function": f"torch.nn.modules.{module}",
            }  # fmt: skip
            tensors = {"linear.weight": layer.weight_OI}
            if layer.bias_O is not None:
                tensors["linear.bias"] = layer.bias_O
            write_tensors(place / _TENSORS, tensors, metadata={"format": "pt"})
        else:
            config = {}
        write_json(place / "config.json", config)

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path) -> Self:
        """Open a folder of sentence-transformers, of model2vec, or of `save`."""
        folder = Path(folder)
        first, *others = parts_of(folder)
        base: Any
        if first.name == "StaticEmbedding":
            is_model2vec = first.config.get("model_type") == "model2vec"
            base = TokenVectors.load(first.folder, is_model2vec=is_model2vec)
        else:
            base = _network_in(first.folder)
            if (length := max_length_of(first.folder)) is not None:
                base.network.seen_length = min(length, base.network.seen_length)
        pools = [pool for part in others if part.name == "Pooling" for pool in pools_of(part)]
        if first.name == "Transformer" and not pools:
            raise ArtifactError(f"{folder / MODULES} has no pooling: its network gives no vector.")
        dense = [_dense_in(part) for part in others if part.name == "Dense"]
        names = [part.name for part in others]
        if "Normalize" in names and names.index("Normalize") != len(names) - 1:
            raise ArtifactError(f"{folder / MODULES} normalizes before the last module.")
        prompts, default = prompts_of(folder)
        model = cls(
            base, pool=pools or "mean", dense=dense, normalize="Normalize" in names,
            prompts=prompts, default_prompt=default,
        )  # fmt: skip
        if isinstance(kept := manifest_in(folder).get("text"), dict):
            model.text = TextSettings.from_dict(kept)
            if not model.is_static:
                base.text = model.text
        return model


def _network_in(folder: Path) -> Any:
    """The network of a Transformer module."""
    kind = network_kind(folder)
    if kind != "bert":
        raise ArtifactError(
            f"{folder} is a sentence encoder on {kind or 'a network'} that sememe does not open; "
            "it opens those on BERT."
        )
    return KINDS[kind].cls().around(*load_folder(folder))


def _dense_in(part: Any) -> DenseLayer:
    weights = part.folder / _TENSORS
    if not weights.is_file():
        raise ArtifactError(f"{weights} is missing; pickled weights of a Dense layer are not read.")
    tensors = read_tensors(weights)
    weight, bias = tensors.get("linear.weight"), tensors.get("linear.bias")
    if weight is None or weight.ndim != 2 or (bias is not None and bias.shape != weight.shape[:1]):
        raise ArtifactError(f"{weights} does not hold the weights of a Dense layer.")
    own_bias = None if bias is None else np.asarray(bias)
    return DenseLayer(np.asarray(weight), own_bias, activation_of(part))
