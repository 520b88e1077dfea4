"""The kernels of cleaning give what the plain reference gives."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.text.cleaning import duplicates, kernels, reference
from sememe.text.cleaning.config import CleanConfig
from sememe.text.cleaning.duplicates import NONE, Duplicates
from sememe.text.cleaning.fingerprints import MOST_KEPT, bands_and_rows, fingerprint
from sememe.text.cleaning.lines import LineCounts, line_hashes, split

PIECES = [
    "the", "cat", "Sat", " ", "  ", "\t", ",", ".", "!", "don't", "café", "e\u0301", "ＡＢ",
    "北京", "我爱", "。", "，", "か", "한국", "Привет", "12", "3.5", "👍", "€5", "x+y", "½",
    "\u00ad", "\u200d", "<p>", "</p>", "&amp;", "&#8212;", "{{", "[[", "http://a.b/c", "www.x.y",
    "wwww.", "Ã©", "É”", "â€™", "РџСЂ", "ä¸\xad", "ÖÐ¹úÈË", "鍏充簬", "锟斤拷", "\x93", "\0",
    "\r", "\ufffd",
    "\ufeff", "𠀀", "|", "=",
]  # fmt: skip
lines = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
texts = st.lists(lines, min_size=1, max_size=6)


def joined(documents: list[str]) -> tuple[bytes, np.ndarray]:
    encoded = [document.encode() for document in documents]
    return b"".join(encoded), np.cumsum([len(one) for one in encoded], dtype=np.int64)


def check_fingerprints(documents: list[str], config: CleanConfig) -> None:
    found = fingerprint(*joined(documents), config)
    bounds = np.concatenate(([0], np.cumsum(found.num_shingles, dtype=np.int64)))
    for index, document in enumerate(documents):
        by_characters = config.shingles == "characters"
        own = reference.shingles(document, by_characters, config.shingle_size)
        kept = found.shingles[bounds[index] : bounds[index + 1]]
        assert kept.tolist() == sorted(own)[:MOST_KEPT]
        assert found.keys[:, index].tolist() == reference.keys(own, config.threshold)
        assert int(found.hashes[index]) == reference.text_hash(document)


@settings(max_examples=60, deadline=None)
@given(texts, st.sampled_from(["words", "characters"]), st.sampled_from([1, 3, 5]))
def test_fingerprints_equal_the_reference(documents, units, size):
    check_fingerprints(documents, CleanConfig(shingles=units, shingle_size=size, threshold=0.7))


def test_a_long_document_keeps_its_smallest_shingles():
    draw = random.Random(1)
    check_fingerprints(
        [" ".join(f"w{draw.randrange(10**6)}" for _ in range(3_000)), "短" * 10], CleanConfig()
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(lines, min_size=1, max_size=4), st.booleans())
def test_a_look_at_lines_equals_the_reference(own, is_one_document):
    documents = ["\n".join(own)] if is_one_document else [line.replace("\n", "") for line in own]
    text, ends = joined(documents)
    found = split(text, ends)
    expected = [part for one in documents for part in one.split("\n") if one]
    if expected and is_one_document and not expected[-1]:
        expected.pop()  # a newline ends a line
    looked = zip(found.flags.tolist(), found.widths.tolist(), found.sizes.tolist(), strict=True)
    assert [*looked] == [reference.look(line) for line in expected]


@pytest.mark.parametrize("num_shared", [0, 300, 900, 1_800, 2_000])
def test_similarity_of_large_sets_is_estimated_from_a_sample(num_shared):
    draw = random.Random(num_shared)
    values = draw.sample(range(2**32), 4_000 - num_shared)
    first, second = {*values[:2_000]}, {*values[2_000 - num_shared :]}
    kept = [np.array(sorted(own)[:MOST_KEPT], np.uint32) for own in (first, second)]
    found = kernels.similarity(*kept, MOST_KEPT)
    assert found == reference.similarity({*kept[0].tolist()}, {*kept[1].tolist()})
    assert abs(found - len(first & second) / len(first | second)) < 0.05


def test_bands_find_pairs_at_the_threshold_and_no_more_than_needed():
    for threshold in (0.3, 0.5, 0.8, 0.95):
        bands, rows = bands_and_rows(threshold)
        assert 1 - (1 - threshold**rows) ** bands >= 0.99
        assert 1 - (1 - threshold ** (rows + 1)) ** (128 // (rows + 1)) < 0.99
    assert bands_and_rows(1.0) == (1, 128)


def repeated_rows(documents: list[str], folder: Path, **options) -> dict[int, int]:
    """The repeated rows, with the earlier ones that they are like."""
    config = CleanConfig(**options)
    own = Duplicates(folder, bands_and_rows(config.threshold)[0])
    for start in range(0, len(documents), 97):
        own.add(fingerprint(*joined(documents[start : start + 97]), config))
    own.close()
    is_kept = np.ones(len(documents), np.bool_)
    *_, (done, found) = own.find(is_kept, exact=False, threshold=config.threshold, workers=2)
    assert done == len(documents)
    return {row: int(like) for row, like in enumerate(found.original) if like != NONE}


def noisy_rows(num: int, seed: int) -> list[str]:
    """Rows of English words and Chinese characters, many of them slightly changed copies."""
    draw = random.Random(seed)
    words = [f"word{number}" for number in range(500)] + [chr(0x4E00 + n) for n in range(300)]
    rows: list[list[str]] = []
    while len(rows) < num:
        row = draw.choices(words, k=draw.randint(1, 50))
        if rows and draw.random() < 0.4:
            row = list(draw.choice(rows))
            for _ in range(draw.randint(0, 3)):
                row[draw.randrange(len(row))] = draw.choice(words)
        rows.append(row)
    return [" ".join(row) for row in rows]


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_near_duplicates_equal_a_comparison_of_all_pairs(tmp_path, monkeypatch, threshold):
    """Precision is 1, because each pair is compared; recall is nearly 1 by the choice of bands."""
    monkeypatch.setattr(duplicates, "_AT_ONCE", 100)
    monkeypatch.setattr(duplicates, "_MOST_SORTED", 150)  # so that keys are sorted in parts
    rows = noisy_rows(400, seed=3)
    expected = reference.near_duplicates(rows, threshold)
    found = repeated_rows(rows, tmp_path, threshold=threshold)
    assert found.keys() <= expected.keys() and len(found) >= 0.99 * len(expected) > 30
    sets = [reference.shingles(row, False, 5) for row in rows]
    for row, like in found.items():
        assert like < row and like not in found
        assert reference.similarity(sets[row], sets[like]) >= threshold


def test_rows_that_share_a_frame_are_compared_with_few(tmp_path):
    """Thousands of rows alike by a half share buckets; the last members are compared, no more."""
    frame = "the order with the number that you gave us was sent to the address below on"
    rows = [f"{frame} {number} {number * 7} {number * 13} {number * 17}" for number in range(3_000)]
    assert repeated_rows([*rows, rows[-1]], tmp_path) == {3_000: 2_999}


def test_lines_are_counted_once_per_document():
    documents = [
        "Home\nAbout us\nHome\ntext one",
        "Home\nmore text",
        "Home",
        "text one\n\n Home \n",
    ]
    text, ends = joined(documents)
    lines_found = split(text, ends)
    hashes = line_hashes(text, lines_found, len(documents))
    counts = LineCounts()
    counts.add(hashes, lines_found.documents, len(documents))
    # The third document is a single line, which is the document, and not a part of it.
    assert counts.repeated(3).tolist() == [reference.text_hash("Home")]
    twice = sorted([reference.text_hash("Home"), reference.text_hash("text one")])
    assert counts.repeated(2).tolist() == twice


def test_counts_of_lines_are_bounded_and_never_too_high():
    draw = random.Random(5)
    counts, exact = LineCounts(num_slots=64, most_slots=1_024), Counter()
    for batch in range(40):
        own = [draw.choice((draw.randrange(1, 2**60), draw.randrange(1, 20))) for _ in range(500)]
        exact.update(own)
        numbers = np.arange(len(own), dtype=np.int64)
        counts.add(np.array(own, np.uint64), numbers, len(own))
        assert len(counts._keys) <= 1_024, batch
    for least in (2, 300):
        found = counts.repeated(least).tolist()
        assert {*found} <= {key for key, num in exact.items() if num >= least}
    assert {*counts.repeated(300).tolist()} == set(range(1, 20))


def test_a_line_that_goes_on_is_not_judged_alone():
    """Text that was broken at a fixed width keeps the ends of its sentences."""
    wrapped = "It was in the summer of the year when nobody wrote letters,\n1859.\n"
    listed = "Home\n12\nAn end of a sentence that is longer than forty characters.\n13\n"
    text, ends = joined([wrapped, listed])
    assert split(text, ends).is_alone.tolist() == [True, False, True, True, True, True]
