"""Product quantisation: a matrix in, a byte for each part of a row out (Jégou et al. 2011).

The columns are cut into parts; k-means finds 256 centroids for each part, and a row keeps the
number of the nearest one. `reference_codes` says the same plainly.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sememe.errors import OptionError
from sememe.vectors.quantized import NUM_CENTROIDS, ProductQuantizer, QuantizedMatrix

_ROUNDS = 25
_MOST_POINTS = 256 * NUM_CENTROIDS  # of a larger matrix a sample is enough


def quantize_matrix(
    matrix: np.ndarray,
    *,
    part_size: int = 2,
    has_norms: bool = False,
    seed: int = 1,
    workers: int = 1,
) -> QuantizedMatrix:
    """Quantise a matrix of at least 256 rows; with `has_norms` the rows' lengths on their own."""
    if len(matrix) < NUM_CENTROIDS:
        raise OptionError(
            f"Quantising takes {NUM_CENTROIDS} rows or more; there are {len(matrix):,}, so nothing "
            "would be gained."
        )
    if not 1 <= part_size <= matrix.shape[1]:
        raise OptionError(
            f"dsub must lie between 1 and the dimension {matrix.shape[1]}, not {part_size}."
        )
    rows = np.array(matrix, np.float32)
    norm_codes, norm_quantizer = None, None
    if has_norms:
        norms = np.linalg.norm(rows, axis=1).astype(np.float32)
        rows /= np.where(norms > 0, norms, 1)[:, None]
        norm_quantizer, codes = _learn(norms[:, None], 1, seed, 1)
        norm_codes = codes[:, 0].copy()
    quantizer, codes = _learn(rows, part_size, seed, workers)
    return QuantizedMatrix(
        codes=codes, quantizer=quantizer, shape=(rows.shape[0], rows.shape[1]),
        norm_codes=norm_codes, norm_quantizer=norm_quantizer,
    )  # fmt: skip


def _learn(
    rows: np.ndarray, part_size: int, seed: int, workers: int
) -> tuple[ProductQuantizer, np.ndarray]:
    """Find the centroids of every part and the codes of every row."""
    from sememe.static.fasttext.quantization_kernels import assign, cluster

    num_rows, dim = rows.shape
    num_parts = -(-dim // part_size)
    order = np.random.default_rng(seed).permutation(num_rows)
    sample, first = order[:_MOST_POINTS], order[:NUM_CENTROIDS]
    codes = np.empty((num_rows, num_parts), np.uint8)

    def learn_part(part: int) -> np.ndarray:
        columns = np.ascontiguousarray(rows[:, part * part_size : (part + 1) * part_size])
        centroids_SC = np.ascontiguousarray(columns[first].T)
        cluster(columns[sample], centroids_SC, np.empty(len(sample), np.uint8), _ROUNDS)
        part_codes = np.empty(num_rows, np.uint8)
        assign(columns, centroids_SC, part_codes)
        codes[:, part] = part_codes
        return np.ascontiguousarray(centroids_SC.T).reshape(-1)

    with ThreadPoolExecutor(workers) as pool:
        centroids = np.concatenate(list(pool.map(learn_part, range(num_parts))))
    quantizer = ProductQuantizer(
        dim=dim, num_parts=num_parts, part_size=part_size,
        last_part_size=dim - (num_parts - 1) * part_size, centroids=centroids,
    )  # fmt: skip
    return quantizer, codes


def reference_codes(rows: np.ndarray, quantizer: ProductQuantizer) -> np.ndarray:
    """The nearest centroid of every part of every row, by looking at all of them."""
    codes = np.empty((len(rows), quantizer.num_parts), np.uint8)
    for part in range(quantizer.num_parts):
        start = part * quantizer.part_size
        centroids = quantizer.part(part)
        columns = rows[:, start : start + centroids.shape[1]]
        away = ((columns[:, None, :] - centroids[None]) ** 2).sum(axis=2)
        codes[:, part] = away.argmin(axis=1)
    return codes
