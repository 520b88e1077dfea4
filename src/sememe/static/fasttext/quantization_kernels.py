"""Kernels of product quantisation: points of one part in, centroids and codes out.

N points and 256 centroids of S numbers each; centroids are kept number by number, (S, 256), so
that the distances of one point to all of them are computed side by side.
"""

from __future__ import annotations

import numpy as np

from sememe.compiled import kernel

NUM_CENTROIDS = 256
_NUDGE = np.float32(1e-7)


@kernel
def _nearest(points, n, centroids_SC, distances, bits, numbers):
    """The centroid that is nearest to point n.

    A distance that is not negative sorts like the bits of its float, so the number of the centroid
    takes the place of the lowest eight: one minimum over integers finds both at once. Distances
    that differ by less than one part in 30,000 count as equal.
    """
    for c in range(NUM_CENTROIDS):
        distances[c] = 0
    for s in range(points.shape[1]):
        x = points[n, s]
        for c in range(NUM_CENTROIDS):
            away = x - centroids_SC[s, c]
            distances[c] += away * away
    best = np.uint32(0xFFFFFFFF)
    for c in range(NUM_CENTROIDS):
        best = min(best, (bits[c] & np.uint32(0xFFFFFF00)) | numbers[c])
    return best & np.uint32(0xFF)


@kernel
def assign(points, centroids_SC, codes):
    """Write the nearest centroid of each point."""
    distances = np.empty(NUM_CENTROIDS, np.float32)
    bits = distances.view(np.uint32)
    numbers = np.arange(NUM_CENTROIDS).astype(np.uint32)
    for n in range(len(points)):
        codes[n] = _nearest(points, n, centroids_SC, distances, bits, numbers)


@kernel
def cluster(points, centroids_SC, codes, num_rounds):
    """Move centroids to the mean of their points again and again (Lloyd's k-means).

    A centroid without points takes half of those of the largest one.
    """
    num_points, size = points.shape
    sums = np.empty((size, NUM_CENTROIDS), np.float64)
    counts = np.empty(NUM_CENTROIDS, np.int64)
    for _ in range(num_rounds):
        assign(points, centroids_SC, codes)
        sums[:] = 0
        counts[:] = 0
        for n in range(num_points):
            counts[codes[n]] += 1
            for s in range(size):
                sums[s, codes[n]] += points[n, s]
        for c in range(NUM_CENTROIDS):
            if counts[c] > 0:
                for s in range(size):
                    centroids_SC[s, c] = sums[s, c] / counts[c]
        for c in range(NUM_CENTROIDS):
            if counts[c] == 0:
                largest = np.argmax(counts)
                for s in range(size):
                    sign = np.float32((s % 2) * 2 - 1)
                    centroids_SC[s, c] = centroids_SC[s, largest] + sign * _NUDGE
                    centroids_SC[s, largest] -= sign * _NUDGE
                counts[c] = counts[largest] // 2
                counts[largest] -= counts[c]
