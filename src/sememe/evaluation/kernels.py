"""The inner loop of `offsets`: the best word of one tile for each question.

Q questions, U distinct words in them, W words of the tile.
"""

from sememe.machine import kernel


@kernel
def search_tile(
    near_UW, places_Q3, banned_ends_Q, banned, start, is_mul, epsilon, first, last, score_Q, best_Q
):
    """Raise `score_Q` and `best_Q` of questions first…last if this tile has a better word.

    Words that beat the best so far are only counted at first, since that loop vectorises and most
    tiles end there; a tile that has some is scanned again, skipping the banned ones.
    """
    num_words = near_UW.shape[1]
    for q in range(first, last):
        a, b, c = near_UW[places_Q3[q, 0]], near_UW[places_Q3[q, 1]], near_UW[places_Q3[q, 2]]
        best_score = score_Q[q]
        num_better = 0
        if is_mul:
            for w in range(num_words):
                num_better += 1 if b[w] * c[w] / (a[w] + epsilon) > best_score else 0
        else:
            for w in range(num_words):
                num_better += 1 if b[w] + c[w] - a[w] > best_score else 0
        if num_better == 0:
            continue
        from_banned = banned_ends_Q[q - 1] if q > 0 else 0
        for w in range(num_words):
            score = b[w] * c[w] / (a[w] + epsilon) if is_mul else b[w] + c[w] - a[w]
            if score > score_Q[q]:
                is_allowed = True
                for k in range(from_banned, banned_ends_Q[q]):
                    if banned[k] == start + w:
                        is_allowed = False
                if is_allowed:
                    score_Q[q], best_Q[q] = score, start + w
