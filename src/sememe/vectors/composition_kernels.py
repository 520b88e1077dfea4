"""Kernels of `composition`: rows of a table in, their means out, rounded in a fixed order."""

from __future__ import annotations

import numpy as np

from sememe.compiled import exact_kernel


@exact_kernel
def mean_rows(ends, rows, table, step, out):  # type: ignore[no-untyped-def]
    """out[word] = the mean of its rows; row r of the flat table starts at r · step."""
    start = 0
    for word in range(len(ends)):
        total = out[word]
        total[:] = np.float32(0)
        for index in range(start, ends[word]):
            row = np.int64(rows[index]) * step
            for d in range(len(total)):
                total[d] += table[row + d]
        _scale(total, ends[word] - start)
        start = ends[word]


@exact_kernel
def mean_quantized(ends, rows, codes, norm_codes, centroids, norms, num_parts, part_size, out):  # type: ignore[no-untyped-def]
    """The same for a quantised table: row r is norms[norm_codes[r]] times its centroids."""
    start, dim = 0, out.shape[1]
    last_size = dim - (num_parts - 1) * part_size
    for word in range(len(ends)):
        total = out[word]
        total[:] = np.float32(0)
        for index in range(start, ends[word]):
            row = np.int64(rows[index])
            norm = np.float64(norms[norm_codes[row]])
            for part in range(num_parts):
                size = part_size if part < num_parts - 1 else last_size
                place = part * 256 * part_size + np.int64(codes[row * num_parts + part]) * size
                for d in range(size):
                    # The product is exact in float64, so this rounds as a fused step does.
                    product = norm * np.float64(centroids[place + d])
                    at = part * part_size + d
                    total[at] = np.float32(np.float64(total[at]) + product)
        _scale(total, ends[word] - start)
        start = ends[word]


@exact_kernel
def _scale(total, num_rows):  # type: ignore[no-untyped-def]
    if num_rows > 0:
        factor = np.float32(1.0 / num_rows)
        for d in range(len(total)):
            total[d] *= factor
