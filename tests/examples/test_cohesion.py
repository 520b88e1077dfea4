"""Phrases by cohesion and freedom: against counting with dictionaries, and what they leave out."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from sememe.examples.masking.cohesion import MAX_WORDS, Rules, free_phrases, words_of


def text_of(sentences, special=()):
    """Ids, word starts and sentence ends of sentences of words like `ab|cd`, and the words."""
    pieces = sorted({piece for own in sentences for word in own for piece in word.split("|")})
    ids, starts, ends = [], [], []
    for own in sentences:
        for word in own:
            parts = word.split("|")
            ids += [pieces.index(piece) for piece in parts]
            starts += [1] + [0] * (len(parts) - 1)
        ends.append(len(ids))
    is_special = np.array([piece in special for piece in pieces])
    arrays = np.array(ids, np.int32), np.array(starts, np.uint8), np.array(ends, np.int64)
    return words_of(*arrays, is_special), np.array(ids), pieces


def plainly(sentences, rules, special=()):
    """The same rules, sequence after sequence."""
    counts, before, after = Counter(), defaultdict(Counter), defaultdict(Counter)
    num_words = 0
    for number, own in enumerate(sentences):
        num_words += sum(word not in special for word in own)
        for start in range(len(own)):
            for size in range(1, MAX_WORDS + 1):
                part = tuple(own[start : start + size])
                if len(part) < size or set(part) & set(special):
                    continue
                counts[part] += 1
                # Edges of sentences differ from each other; so do no two special words.
                left = own[start - 1] if start else ("edge", number, start)
                right = own[start + size] if start + size < len(own) else ("edge", number, start)
                before[part][left] += 1
                after[part][right] += 1

    def entropy(found):
        total = sum(found.values())
        return -sum(num / total * math.log(num / total) for num in found.values())

    chosen = set()
    for part, num in counts.items():
        if len(part) < 2 or num < rules.min_count:
            continue
        cuts = [
            math.log(num * num_words / counts[part[:cut]] / counts[part[cut:]])
            for cut in range(1, len(part))
        ]
        edges = min(entropy(before[part]), entropy(after[part]))
        if min(cuts) >= rules.cohesion and edges >= rules.freedom:
            chosen.add(part)
    return chosen


def found_in(sentences, rules, special=()):
    words, ids, pieces = text_of(sentences, special)
    return {tuple(pieces[one] for one in ids[own]) for own in free_phrases(words, rules)}


def flat(parts):
    return {tuple(piece for word in part for piece in word.split("|")) for part in parts}


@pytest.fixture(scope="module")
def sentences():
    random = np.random.default_rng(7)
    words = [f"w{index}" if index % 3 else f"w{index}|x" for index in range(60)]
    fixed = [
        ["los", "angel|es"],
        ["united", "nations", "security", "council"],
        ["w1", "w2"],
        ["[X]"],
    ]
    found = []
    for _ in range(400):
        own = random.choice(words, random.integers(1, 12), p=None).tolist()
        for part in fixed:
            if random.random() < 0.15:
                at = random.integers(0, len(own) + 1)
                own[at:at] = part
        found.append(own)
    return found


@pytest.mark.parametrize("rules", [Rules(5, 1.0, 1.0), Rules(10, 2.0, 1.5), Rules(3, 0.5, 0.2)])
def test_they_are_those_of_plain_counting(sentences, rules):
    assert found_in(sentences, rules, ("[X]",)) == flat(plainly(sentences, rules, ("[X]",)))


def test_whole_phrases_without_their_parts(sentences):
    found = found_in(sentences, Rules(10, 2.0, 1.5), ("[X]",))
    assert ("los", "angel", "es") in found
    assert ("united", "nations", "security", "council") in found
    # These are always followed, or preceded, by the same word.
    assert ("united", "nations") not in found and ("nations", "security", "council") not in found
    assert not any("[X]" in own for own in found)


def test_short_texts_have_none():
    assert found_in([["a"]], Rules()) == set()
    assert found_in([["a", "b"], ["b", "a"]], Rules(1, 100.0, 0.0)) == set()
