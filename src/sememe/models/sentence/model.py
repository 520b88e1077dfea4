"""A sentence encoder: texts in, one vector each out, as sentence-transformers computes it.

model = sememe.SentenceModel("runs/bert", budget="5m").fit("text.txt", out="runs/sentences")
model.embed(["A dog runs."])

A base (BERT, GPT, static token vectors, or another model that can be fine-tuned), then pooling,
linear layers and normalization. Folders are those of sentence-transformers, read and written, if
the base is a Transformer or token vectors. A text longer than the base's maximum is read in
overlapping windows, never truncated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from sememe.card import part_of, write_manifest
from sememe.contract import KINDS, Attention, Model, Token
from sememe.errors import ArtifactError, OptionError
from sememe.machine import provenance
from sememe.models.fitting import Prepared, Request, fit
from sememe.models.huggingface.folder import load_folder, token_fields, write_network
from sememe.models.huggingface.layout import network_kind
from sememe.models.huggingface.places import pretraining_heads
from sememe.models.language.pooling import pooled_ids
from sememe.models.language.subword_model import tokens_of
from sememe.models.registry import load
from sememe.models.sentence.config import SentenceConfig
from sememe.models.sentence.encoders import BackboneVectors
from sememe.models.sentence.layout import (
    ACTIVATIONS,
    LENGTH,
    MODULES,
    PROMPTS,
    activation_of,
    is_sentence_folder,
    max_length_of,
    parts_of,
    pooling_config,
    pools_of,
    prompts_of,
)
from sememe.models.sentence.token_vectors import TokenVectors
from sememe.models.sentence.training import prepare_sentences
from sememe.options import changed, check_number
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    manifest_in,
    read_errors,
    read_manifest,
    reads_artifact,
    write_folder,
    write_json,
)
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.training.distributed import joined
from sememe.vectors import WordVectors

FORMAT = 1
_TYPES = "sentence_transformers.models"
_TENSORS = "model.safetensors"
_HISTORY = "history.json"
_OF_A_NETWORK = ("words", "embed_words", "encoder", "attention")
_DEFAULTS = SentenceConfig()
# Where it learned does not fix the device of a later training.
_ELSEWHERE = {"device": "auto", "workers": 0}


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
    base: Any
    dense: tuple[DenseLayer, ...]
    prompts: dict[str, str]
    default_prompt: str
    is_normalized: bool
    distilled: Mapping[str, Any] = {}  # the teacher and the options of a distillation

    def __init__(
        self,
        base: Any,
        *,
        pool: str | Sequence[str] = "",
        dense: Sequence[DenseLayer] = (),
        normalize: bool = True,
        prompts: Mapping[str, str] | None = None,
        default_prompt: str = "",
        **options: Any,
    ) -> None:
        """`base` is a model, its path, or TokenVectors; `prompts` are written before texts.

        `options` are those of the training, SentenceConfig. A base that is a sentence encoder
        already passes on its pooling, its linear layers and its prompts.
        """
        self._given = {
            "base": base, "pool": pool, "dense": dense, "normalize": normalize, "prompts": prompts,
            "default_prompt": default_prompt, **options,
        }  # fmt: skip
        own_pool = pool if isinstance(pool, str) else ""
        self.config: SentenceConfig = changed(
            _DEFAULTS, "SentenceModel", options | {"pool": own_pool}
        )
        self.parent = {"kind": getattr(base, "kind", "sentence"), "name": ""}
        if isinstance(base, str | Path):
            name, base = Path(base).absolute().name, load(base)
            self.parent = {"kind": base.kind, "name": name}
        pools: Any = (pool,) if isinstance(pool, str) else tuple(pool)
        if isinstance(base, SentenceModel):
            pools, dense = pools if any(pools) else base.pools, dense or base.dense
            normalize, prompts = normalize and base.is_normalized, prompts or base.prompts
            default_prompt, base = default_prompt or base.default_prompt, base.base
        self.base = base
        self.pools: tuple[str, ...] = pools if any(pools) else ("mean",)
        if self.is_static and self.pools != ("mean",):
            raise OptionError("Static token vectors have one layer, and their pooling is the mean.")
        self.dense, self.is_normalized = tuple(dense), normalize
        self.prompts, self.default_prompt = dict(prompts or {}), default_prompt
        asked = {"query": self.config.query_prompt, "document": self.config.document_prompt}
        self.prompts |= {role: own for role, own in asked.items() if own}
        self.text: TextSettings = getattr(base, "text", TextSettings())
        self.history, self.plan, self.precision = History(), {}, ""  # type: ignore[var-annotated]

    def options(self) -> dict[str, Any]:
        """What the constructor was given."""
        return self._given

    # ---- learning -------------------------------------------------------------------------------

    def fit(
        self,
        corpus: Any = None,
        y: Any = None,
        *,
        pairs: Any = None,
        triplets: Any = None,
        dev: Any = None,
        columns: Mapping[str, str] | None = None,
        skip_bad: bool = False,
        encoding: str = "utf-8",
        text: TextSettings | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Train on a corpus, on `pairs` or on `triplets`; on the built-in corpus without any.

        `pairs` are a table or rows of two texts, perhaps with a score or a label of inference;
        `triplets` have a third text that does not belong to the first. `dev` are rows to validate
        with, such as pairs with a score. `columns` names the column of text, second, third, score
        or label. `text` or its fields by name (language="zh") say how a corpus is read. With `out`
        the model is saved there, with checkpoints next to it during training; `resume` continues
        from the last one; `overwrite` allows replacing an existing model.
        """
        given = {"corpus": corpus, "pairs": pairs, "triplets": triplets}
        named = [name for name, own in given.items() if own is not None]
        if len(named) > 1:
            raise OptionError(f"Give one of corpus, pairs and triplets, not {' and '.join(named)}.")
        what = named[0] if named else "corpus"
        if what == "corpus":
            own = {"encoding": encoding, "columns": dict(columns or {})} if text is None else {}
            self.text = changed(text or self.text, "fit", own | text_options)
        reading = {"columns": columns, "skip_bad": skip_bad, "encoding": encoding, "what": what}
        with joined() as processes:
            request = Request(
                dev=dev, out=out, resume=resume, overwrite=overwrite, reading=reading,
                reporter=as_reporter(progress), processes=processes,
            )  # fmt: skip
            return fit(self, given[what], request)

    def prepare(self, data: Any, request: Request) -> Prepared:
        """Read and encode the rows; return the run's plan and the function that trains."""
        return prepare_sentences(self, data, request)

    def take_trained(self, base: Any, dense: Any) -> None:
        """Keep what a training made; it compares directions, so vectors get one length."""
        self.is_normalized = bool(self._given["normalize"])
        self.base, self.dense = base, tuple(own.layer(DenseLayer) for own in dense)

    def take_over(self, other: SentenceModel) -> None:
        """Take over the state of another model of the same kind."""
        for name in (
            "base", "pools", "dense", "is_normalized", "prompts", "default_prompt", "text",
            "history", "plan", "precision",
        ):  # fmt: skip
            setattr(self, name, getattr(other, name))

    # ---- use ------------------------------------------------------------------------------------

    @property
    def own_pool(self) -> str:  # type: ignore[override]
        """The pooling of the encoder; several are concatenated."""
        return "+".join(self.pools)

    @property
    def is_matryoshka(self) -> bool:  # type: ignore[override]
        """Whether the first dimensions were trained alone, too."""
        return bool(self.config.matryoshka)

    @property
    def is_static(self) -> bool:
        """Whether the vectors of tokens do not depend on their context."""
        return isinstance(self.base, TokenVectors)

    def __repr__(self) -> str:
        return f"SentenceModel({self.base!r}, pool={self.own_pool!r})"

    def lacking(self) -> dict[str, str]:
        """Static token vectors have no words and no network; a backbone has no words apart."""
        if isinstance(self.base, BackboneVectors):
            lacks = ("words", "embed_words", "attention")
            return dict.fromkeys(lacks, "its network gives one vector for a text")
        why = "its vectors are those of sub-word tokens"
        own = dict.fromkeys(_OF_A_NETWORK, why) if self.is_static else {}
        if not self.is_static and "attention" not in self.base.capabilities:
            own["attention"] = "its network has none"
        return own

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
        return self._normalized(vectors_ND)

    def _normalized(self, vectors_ND: np.ndarray) -> np.ndarray:
        """Vectors of length 1, if the encoder has a Normalize layer."""
        if self.is_normalized:
            norms_N = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
            vectors_ND = vectors_ND / np.maximum(norms_N, 1e-12)
        return np.asarray(vectors_ND, np.float32)

    def embed_role(self, texts: Sequence[str], role: str) -> np.ndarray:
        """One vector per text in a role (query, document), after the prompt of that role."""
        return self.embed(texts, role=role)

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens that the network reads at once; static vectors read all."""
        return int(getattr(self.base, "max_tokens", 0))

    def tokenize(self, texts: Sequence[str]) -> list[list[Token]]:
        """The tokens of each text, without a prompt."""
        self.check_list(texts)
        if self.is_static:
            return tokens_of(self.base.tokenizer, texts)
        if isinstance(self.base, BackboneVectors):
            raise self.unsupported("embed_words")
        found: list[list[Token]] = self.base.tokenize(texts)
        return found

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of the tokens of each text."""
        self.check_list(texts)
        if self.is_static or self.embeds_ids:
            found: list[list[int]] = self.base.tokenizer.ids_batch(texts)
            return found
        return super().token_ids(texts)

    @property
    def embeds_ids(self) -> bool:
        """A Transformer pooled by mean or cls does."""
        return "max" not in self.pools and bool(getattr(self.base, "embeds_ids", False))

    def embed_token_ids(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        """One vector per text given as token ids."""
        if not self.embeds_ids:
            raise OptionError("This encoder takes texts, not token ids.")
        if not len(ids):
            return np.empty((0, self.dim), np.float32)
        self.base.tokenizer.check_ids(ids)
        return self._normalized(self.embed_ids(ids))

    def num_longer(self, texts: Sequence[str]) -> int:
        """How many texts are longer than the network reads at once."""
        return 0 if self.is_static else self.base.num_longer(texts)

    def embed_ids(self, ids: Sequence[Sequence[int]]) -> np.ndarray:
        """One vector per text given as token ids, before normalization, on a BERT."""
        if "max" in self.pools:
            raise OptionError("Token ids are pooled by mean or cls, not by max.")
        network, tokenizer = self.base.network, self.base.tokenizer
        parts = [pooled_ids(network, tokenizer, ids, pool=own) for own in self.pools]
        vectors_ND = np.concatenate(parts, axis=1)
        for layer in self.dense:
            vectors_ND = layer.apply(vectors_ND)
        return vectors_ND

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

    def in_precision(self, name: str) -> Self:
        """Compute in a precision, if the base is a network that has it."""
        if self.is_static or isinstance(self.base, BackboneVectors):
            super().in_precision(name)
        else:
            self.base.in_precision(name)
            self.opened_with = {**self.opened_with, "precision": name}
        return self

    @property
    def dim(self) -> int:
        """The dimensions of a vector."""
        if self.dense:
            return int(self.dense[-1].weight_OI.shape[0])
        width = getattr(self.base, "dim", 0) or self.base.embed(["."]).shape[1]
        return int(width) * len(self.pools)

    def truncated(self, dim: int) -> SentenceModel:
        """The model that gives the first `dim` dimensions, as Matryoshka training allows."""
        check_number("dim", dim, 1, self.dim)
        cut = DenseLayer(np.eye(dim, self.dim, dtype=np.float32), None, "Identity")
        return SentenceModel(
            self.base, pool=self.pools, dense=(*self.dense, cut), normalize=self.is_normalized,
            prompts=self.prompts, default_prompt=self.default_prompt,
        )  # fmt: skip

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
            "max_length": self._max_length,
        }

    @property
    def _max_length(self) -> int | None:
        """The maximum number of tokens that are read at once; None if positions do not matter."""
        found: int | None = getattr(getattr(self.base, "network", None), "seen_length", None)
        return found

    # ---- the folder -----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write a sentence-transformers folder atomically."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        with write_folder(folder) as scratch:
            if isinstance(self.base, BackboneVectors):
                told = self.base.write(scratch)
            else:
                told = self._write_base(scratch)
                self._write_parts(scratch)
            manifest = {"text": self.text.to_dict(), **told, "kind": self.kind, "format": FORMAT}
            manifest |= self._facts() | {"default_prompt": self.default_prompt}
            if self.distilled:
                manifest["distillation"] = dict(self.distilled)
            if self.history:
                self.history.save(scratch / _HISTORY)
                manifest |= {
                    "training": self.config.to_dict(), "precision": self.precision,
                    "data": self.data, "plan": self.plan, "metrics": self.history.last(),
                }  # fmt: skip
            write_manifest(scratch, manifest)

    def _write_base(self, scratch: Path) -> dict[str, Any]:
        """Write the base; return what sememe.json says about it."""
        base = self.base
        if self.is_static:
            base.tokenizer.save(scratch)
            write_tensors(scratch / _TENSORS, base.tensors(), metadata={"format": "pt"})
            if base.unknown_id is not None:  # model2vec opens the folder, too
                write_json(scratch / "config.json", base.model2vec_config(self.is_normalized))
            return {"provenance": provenance()}
        if self._max_length is None:
            raise OptionError(
                f"A sentence encoder on a {KINDS[base.kind].title} is saved after its training: "
                "call fit first."
            )
        write_network(
            base.network, scratch, without=pretraining_heads(base.network),
            config=token_fields(base.network, base.tokenizer),
        )  # fmt: skip
        length = base.network.seen_length
        base.tokenizer.save(scratch, max_length=length)
        write_json(scratch / LENGTH, {"max_seq_length": length, "do_lower_case": False})
        return {**base.manifest(), "untrained": pretraining_heads(base.network)}

    def _write_parts(self, scratch: Path) -> None:
        """Write the modules above the base, as sentence-transformers does."""
        modules = ["StaticEmbedding" if self.is_static else "Transformer"]
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

    def _write_part(self, place: Path, name: str, layers: Any) -> None:
        """Write one module after the base."""
        if name == "Pooling":
            config = pooling_config(self.base.config.width, self.pools)
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
        manifest = manifest_in(folder)
        model = cls._opened(folder) if is_sentence_folder(folder) else cls._of_backbone(folder)
        model.is_pretrained = True
        if isinstance(kept := manifest.get("text"), dict):
            model.text = TextSettings.from_dict(kept)
            if not model.is_static:
                model.base.text = model.text
        model.distilled = part_of(manifest, "distillation")
        if "training" in manifest and (folder / _HISTORY).is_file():
            with read_errors(folder / MANIFEST):
                model.config = SentenceConfig(**manifest["training"] | _ELSEWHERE)
            model.history = History.load(folder / _HISTORY)
            model.plan, model.data = part_of(manifest, "plan"), part_of(manifest, "data")
            model.precision = manifest.get("precision", "")
        return model

    @classmethod
    def _of_backbone(cls, folder: Path) -> Self:
        """Open a folder whose network sentence-transformers does not know."""
        manifest = read_manifest(folder, FORMAT, cls.kind)
        with read_errors(folder / MANIFEST):
            config = SentenceConfig(**part_of(manifest, "training"))
            base = BackboneVectors.read(folder, manifest, config)
            pools, prompts = tuple(manifest["pool"]), dict(manifest["prompts"])
            return cls(
                base, pool=pools, normalize=bool(manifest["normalize"]), prompts=prompts,
                default_prompt=str(manifest.get("default_prompt", "")),
            )  # fmt: skip

    @classmethod
    def _opened(cls, folder: Path) -> Self:
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
        return cls(
            base, pool=pools or "mean", dense=dense, normalize="Normalize" in names,
            prompts=prompts, default_prompt=default,
        )  # fmt: skip


def _network_in(folder: Path) -> Any:
    """The network of a Transformer module."""
    kind = network_kind(folder)
    if kind not in ("bert", "gpt"):
        raise ArtifactError(
            f"{folder} is a sentence encoder on {kind or 'a network'} that sememe does not open; "
            "it opens those on BERT and GPT-2."
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
