"""n-gram models against KenLM's: discounts, perplexities, every line of an ARPA file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sememe.models.ngram.model import NGram

DATA = Path(__file__).parents[1] / "data" / "kenlm"
METRICS = json.loads((DATA / "metrics.json").read_text())


@pytest.fixture(autouse=True)
def place(own_cache: Path) -> None:
    pass


def counted(**options: object) -> NGram:
    model = NGram(validation_share=0.0, workers=1, **options)
    return model.fit(DATA / "text.txt", language="none", lowercase=False)


@pytest.mark.parametrize("name", METRICS)
def test_counts_discounts_and_perplexity_are_those_of_kenlm(name):
    theirs = METRICS[name]
    model = counted(order=theirs["order"], prune=theirs["prune"])
    assert model.trie.sizes == theirs["ngrams"]
    assert np.allclose(model.history.last()["discounts"], theirs["discounts"], rtol=1e-5)
    found = model.evaluate(DATA / "held-out.txt")
    assert (found.num_words, found.num_unknown) == (theirs["words"], theirs["unknown_words"])
    assert found.perplexity == pytest.approx(theirs["perplexity"], rel=2e-6)
    assert found.known_perplexity == pytest.approx(theirs["known_perplexity"], rel=2e-6)


def test_every_ngram_of_a_model_is_that_of_kenlm():
    theirs, ours = NGram.load(DATA / "trigram.arpa.gz"), counted(order=3)
    assert set(theirs.vocabulary) == set(ours.vocabulary)
    wanted, found = lines_of(theirs), lines_of(ours)
    assert wanted.keys() == found.keys()
    pairs = np.array([[*wanted[key], *found[key]] for key in wanted if key != ("<s>",)])
    assert np.abs(pairs[:, 0] - pairs[:, 2]).max() < 2e-6
    assert np.abs(pairs[:, 1] - pairs[:, 3]).max() < 2e-6
    assert wanted[("<s>",)][1] == pytest.approx(found[("<s>",)][1], abs=2e-6)


def lines_of(model: NGram) -> dict[tuple[str, ...], tuple[float, float]]:
    """The logarithms of probability and weight of every n-gram, by its words."""
    trie, names = model.trie, [*model.vocabulary, "<unk>", "</s>", "<s>"]
    found, first = {}, 0
    for length, last in enumerate(trie.level_ends.tolist(), start=1):
        for node, row in enumerate(trie.ngrams(length, first, last).tolist(), start=first):
            weight = float(trie.backoffs[node]) if length < trie.order else 0.0
            found[tuple(names[one] for one in row)] = float(trie.probs[node]), weight
        first = last
    return found


def test_a_file_of_kenlm_scores_as_kenlm_does():
    found = NGram.load(DATA / "trigram.arpa.gz").evaluate(DATA / "held-out.txt")
    assert found.perplexity == pytest.approx(METRICS["trigram"]["perplexity"], rel=2e-6)
