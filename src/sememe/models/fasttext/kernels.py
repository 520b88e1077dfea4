"""What sub-words add to word2vec's kernels, and the kernels of product quantisation.

A word is the mean of its rows (its own and those of its n-grams). The distinct words of a chunk are
composed once; word2vec's kernels then train them like single rows; at the end each row of a word
gets the full change of that word, as in Facebook's program.

Quantisation: N points and 256 centroids of S dimensions each; centroids are stored by dimension,
(S, 256), so that the distances of one point to all of them are vectorised.
"""

import numpy as np

from sememe.machine import kernel
from sememe.models.static import simd
from sememe.models.static.row_kernels import LANES, prefetch_row
from sememe.models.word2vec.kernels import span

_ZERO = np.float32(0)


@kernel
def number_words(tokens, left, right, head, tail, numbers, words, inputs):
    """Number the distinct words in the windows of the centres from `head` to `tail`.

    words[inputs[n]] = tokens[n]; returns their number. `numbers` is a thread's own array with an
    entry for each word of the vocabulary; entries of earlier calls are recognized by `words`.
    """
    num_words = 0
    low, high = span(left, right, head, tail)
    for n in range(low, high):
        word = tokens[n]
        number = numbers[word]
        if number >= num_words or words[number] != word:
            number = np.int32(num_words)
            numbers[word] = number
            words[number] = word
            num_words += 1
        inputs[n] = number
    return num_words


@kernel
def put_together(words, num_words, ends, rows, input, width, hidden, before):
    """hidden row n = before row n = mean of the rows of words[n]."""
    for n in range(num_words):
        word = words[n]
        first = ends[word - 1] if word > 0 else 0
        last = ends[word]
        scale = simd.spread(np.float32(1) / np.float32(last - first))
        ahead = np.int64(words[n + 1]) if n + 1 < num_words else np.int64(word)
        shift = (ends[ahead - 1] if ahead > 0 else 0) - first
        for r in range(first, min(last, ends[ahead] - shift)):
            prefetch_row(input, np.int64(rows[r + shift]) * width, width)
        for d in range(0, width, LANES):
            total = simd.spread(_ZERO)
            for r in range(first, last):
                total = simd.add(total, simd.load(input, np.int64(rows[r]) * width + d))
            mean = simd.multiply_add(simd.spread(_ZERO), total, scale)
            simd.store(hidden, n * width + d, mean)
            simd.store(before, n * width + d, mean)


@kernel
def share_changes(words, num_words, ends, rows, input, width, hidden, before):
    """Add the change of hidden row n to every row of words[n]."""
    minus = simd.spread(np.float32(-1))
    for n in range(num_words):
        word = words[n]
        first = ends[word - 1] if word > 0 else 0
        for d in range(0, width, LANES):
            place = n * width + d
            change = simd.multiply_add(simd.load(hidden, place), minus, simd.load(before, place))
            for r in range(first, ends[word]):
                at = np.int64(rows[r]) * width + d
                simd.store(input, at, simd.add(simd.load(input, at), change))


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
    """Move centroids to the mean of their points repeatedly (Lloyd's k-means).

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
