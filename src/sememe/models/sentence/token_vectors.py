"""Static token vectors (StaticEmbedding, model2vec): a text is the mean over its tokens.

N tokens of all texts, D dimensions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError
from sememe.storage.tensors import read_tensors
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.vectors.kernels import mean_rows

_TENSORS = "model.safetensors"
_TEXTS_AT_ONCE = 4_096


class TokenVectors:
    """One vector per token of a tokenizer, with an optional weight."""

    def __init__(
        self, tokenizer: SubwordTokenizer, table_VD: np.ndarray, unknown_id: int | None = None
    ) -> None:
        """`unknown_id` is the token to skip, if there is one."""
        self.tokenizer, self.unknown_id = tokenizer, unknown_id
        self.table_VD = np.ascontiguousarray(table_VD, np.float32)
        self._flat_table = self.table_VD.reshape(-1)

    @classmethod
    def load(cls, folder: Path, *, is_model2vec: bool) -> TokenVectors:
        """Read a StaticEmbedding module, or a model2vec folder, which skips unknown tokens."""
        tensors = read_tensors(folder / _TENSORS)
        name = next((one for one in ("embedding.weight", "embeddings") if one in tensors), "")
        table = tensors.get(name)
        if table is None or table.ndim != 2 or table.dtype.kind not in "fi":
            raise ArtifactError(f"{folder / _TENSORS} does not hold a table of token vectors.")
        table_VD = np.asarray(table, np.float32)
        if (mapping := tensors.get("mapping")) is not None:
            places = np.asarray(mapping, np.int64)
            if places.size and not 0 <= places.min() <= places.max() < len(table_VD):
                raise ArtifactError(f"{folder / _TENSORS} maps tokens to rows that do not exist.")
            table_VD = table_VD[places]
        if (weights := tensors.get("weights")) is not None:
            if weights.shape != (len(table_VD),):
                raise ArtifactError(f"{folder / _TENSORS} has no weight for each token vector.")
            table_VD = table_VD * np.asarray(weights, np.float32)[:, None]
        tokenizer = SubwordTokenizer.load(folder)
        if tokenizer.vocab_size > len(table_VD):
            raise ArtifactError(
                f"{folder} has {tokenizer.vocab_size:,} tokens and {len(table_VD):,} vectors."
            )
        unknown = tokenizer.unk_id if is_model2vec and tokenizer.kind == "wordpiece" else None
        return cls(tokenizer, table_VD, unknown)

    def __repr__(self) -> str:
        return f"TokenVectors({len(self.table_VD):,} tokens × {self.dim})"

    @property
    def dim(self) -> int:
        """The dimensions of a vector."""
        return int(self.table_VD.shape[1])

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """The mean over the tokens of each text, (texts, D); zeros for a text without tokens."""
        means_ND = np.zeros((len(texts), self.dim), np.float32)
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            ids = self.tokenizer.ids_batch(texts[first : first + _TEXTS_AT_ONCE])
            ends = np.cumsum([len(own) for own in ids])
            flat = np.array(list(chain.from_iterable(ids)), np.int32)
            if self.unknown_id is not None:
                is_known = flat != self.unknown_id
                flat, ends = flat[is_known], np.concatenate([[0], np.cumsum(is_known)])[ends]
            mean_rows(ends, flat, self._flat_table, self.dim, means_ND[first : first + len(ids)])
        return means_ND

    def tensors(self) -> dict[str, Any]:
        """What a StaticEmbedding module keeps."""
        return {"embedding.weight" if self.unknown_id is None else "embeddings": self.table_VD}

    def model2vec_config(self, is_normalized: bool) -> dict[str, Any]:
        """The config.json of a model2vec folder."""
        return {
            "model_type": "model2vec", "architectures": ["StaticModel"], "hidden_dim": self.dim,
            "normalize": is_normalized, "seq_length": 1_000_000,
        }  # fmt: skip
