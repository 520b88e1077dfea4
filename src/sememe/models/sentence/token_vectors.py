"""Static token vectors (StaticEmbedding, model2vec): a text is the mean over its tokens.

N tokens of all texts, D dimensions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError
from sememe.storage.tensors import read_tensors
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

_TENSORS = "model.safetensors"
_TEXTS_AT_ONCE = 4_096


class TokenVectors:
    """One vector per token of a tokenizer, with an optional weight."""

    def __init__(
        self, tokenizer: SubwordTokenizer, table_VD: np.ndarray, unknown_id: int | None = None
    ) -> None:
        """`unknown_id` is the token to skip, if there is one."""
        self.tokenizer, self.table_VD, self.unknown_id = tokenizer, table_VD, unknown_id

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
            if self.unknown_id is not None:
                ids = [[one for one in own if one != self.unknown_id] for own in ids]
            lengths = np.array([len(own) for own in ids], np.int64)
            has_some = np.flatnonzero(lengths)
            if not len(has_some):
                continue
            flat_N = np.fromiter((one for own in ids for one in own), np.int64, lengths.sum())
            starts = (np.cumsum(lengths) - lengths)[has_some]
            sums = np.add.reduceat(self.table_VD[flat_N], starts, axis=0)
            means_ND[first + has_some] = sums / lengths[has_some, None]
        return means_ND

    def tensors(self) -> dict[str, Any]:
        """What a StaticEmbedding module keeps."""
        return {"embedding.weight": self.table_VD}
