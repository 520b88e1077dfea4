"""Measurements of docs/questions.md and course.md: word2vec by its settings, BERT's parts.

python benchmarks/questions.py [QUESTION...] [--corpus TEXT] [--seeds 3] [--epochs 5]

Without a question all but `softmax`, which takes minutes of a core, are answered; without a text
the built-in one is read. One thread trains, so that the same text and seed give the same figures;
seconds are those of the processor and hold for one machine.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import sememe

SETTINGS: dict[str, dict[str, Any]] = {
    "the defaults": {},
    "--architecture cbow": {"architecture": "cbow"},
    "--loss hierarchical": {"loss": "hierarchical"},
    "--noise-exponent 0": {"noise_exponent": 0.0},
    "--noise-exponent 0.5": {"noise_exponent": 0.5},
    "--noise-exponent 1": {"noise_exponent": 1.0},
    "--sample 0": {"sample": 0.0},
    "--sample 1e-4": {"sample": 1e-4},
}
CODED = ("the", "array", "kernel")
PAIRS = (
    ("north", "south"), ("upper", "lower"), ("true", "false"), ("high", "low"),
    ("large", "small"), ("maximum", "minimum"), ("begin", "start"), ("delete", "remove"),
    ("large", "big"), ("strong", "weak"), ("win", "lose"),
)  # fmt: skip
CUT = ("unhashable", "tokenization", "eigenvectors", "北京")


class Models:
    """Trains a model when it is first asked for, and keeps it."""

    def __init__(self, corpus: list[str] | None, num_seeds: int, epochs: int) -> None:
        self.corpus, self.seeds, self.epochs = corpus, range(1, num_seeds + 1), epochs
        self._kept: dict[str, tuple[sememe.Word2Vec, float]] = {}

    def fit(self, seed: int = 1, **options: Any) -> tuple[sememe.Word2Vec, float]:
        """A model and the processor's seconds that it took, reading included."""
        options = {"epochs": self.epochs, **options}
        key = repr((seed, sorted(options.items())))
        if key not in self._kept:
            names = ("architecture", "loss")
            warm_up(**{name: options[name] for name in names if name in options})
            begun_s = time.process_time()
            model = sememe.Word2Vec(workers=1, seed=seed, **options).fit(self.corpus)
            self._kept[key] = model, time.process_time() - begun_s
        return self._kept[key]


@functools.cache
def warm_up(**options: Any) -> None:
    """Load or compile the kernels of these options, which shall not count."""
    sememe.Word2Vec(workers=1, min_count=1, **options).fit([["a", "b"] * 50])


def scores_of(vectors: Any) -> dict[str, float]:
    """What `sememe evaluate words` tells, by kind."""
    return {score.kind: 100 * score.value for score in sememe.evaluate_words(vectors).scores}


def tell_loss(models: Models) -> None:
    """The loss at the start, after the first report and at the end, by how noise is drawn."""
    for power in (0.75, 0.0):
        history = models.fit(noise_exponent=power)[0].history
        words, first, last = history[0]["words"], history[0]["loss"], history[-1]["loss"]
        print(f"noise to the power of {power}: {6 * np.log(2):.2f} at the start, "
              f"{first:.2f} after {words:,} words, {last:.2f} at the end")  # fmt: skip


def print_vectors(models: Models) -> None:
    """One run, scored by its input vectors, its output vectors and both."""
    model, _ = models.fit()
    for choice in ("input", "output", "sum", "concat"):
        model.config = replace(model.config, vectors=choice)
        print(f"{choice:8}", line_of(scores_of(model.make_vectors()), "analogies", "groups", "odd"))
    model.config = replace(model.config, vectors="input")


def tell_settings(models: Models) -> None:
    """Scores and seconds by setting: means of the seeds, the analogies of each beside them."""
    for name, options in SETTINGS.items():
        runs = [models.fit(seed, **options) for seed in models.seeds]
        scores = [scores_of(model.vectors) for model, _ in runs]
        means = {kind: statistics.mean(one[kind] for one in scores) for kind in scores[0]}
        each = ", ".join(f"{one['analogies']:.1f}" for one in scores)
        seconds = statistics.mean(seconds for _, seconds in runs)
        print(f"{name:22} {line_of(means, 'analogies', 'groups')}, {seconds:.1f} s ({each})")


def line_of(scores: dict[str, float], *kinds: str) -> str:
    """Some of the scores in words."""
    return ", ".join(f"{kind} {scores[kind]:.1f}" for kind in kinds)


def tell_softmax(models: Models) -> None:
    """The seconds of an epoch by the words of the vocabulary."""
    for max_words, loss in itertools.product((1_000, 4_000), ("negative", "softmax")):
        _, seconds = models.fit(max_words=max_words, loss=loss, epochs=1)
        print(f"{max_words:,} words, {loss}: {seconds:.1f} s")


def tell_tree(models: Models) -> None:
    """The lengths of Huffman codes, and what no tree can be below."""
    from sememe.examples.windows import build_tree

    vocabulary = models.fit()[0].vocabulary
    counts_V = np.asarray(vocabulary.counts)
    tree = build_tree(counts_V)
    lengths_V, shares_V = np.diff(tree.starts), counts_V / counts_V.sum()
    for word in CODED:
        if (word_id := vocabulary.find(word)) >= 0:
            print(f"{word}: {counts_V[word_id]:,} times, {lengths_V[word_id]} decisions")
    mean, entropy = shares_V @ lengths_V, -shares_V @ np.log2(shares_V)
    print(f"{len(vocabulary):,} words, {counts_V.sum():,} occurrences: the longest code "
          f"{tree.max_length}, the mean {mean:.2f}, the entropy {entropy:.2f}, "
          f"a balanced tree {np.log2(len(counts_V)):.1f}")  # fmt: skip


def tell_antonyms(models: Models) -> None:
    """How near opposites are to each other, beside two words drawn from the same pairs."""
    from sememe.evaluation.question_files import BUILT_IN, read_questions

    vectors = models.fit()[0].vectors
    rows = read_questions(BUILT_IN / "english" / "antonyms.txt", "antonyms").rows
    known = [pair for pair in rows if pair[0] in vectors and pair[1] in vectors]
    if not known:
        print("the text has no pair of opposites")
        return
    words = sorted({word for pair in known for word in pair})
    for name, pairs in (("opposites", known), ("any two", itertools.combinations(words, 2))):
        cosines = [vectors.similarity(*pair) for pair in pairs]
        print(f"{name}: mean cosine {np.mean(cosines):.2f} of {len(cosines):,} pairs")
    for one, other in PAIRS:
        if one in vectors and other in vectors:
            near = [found.word for found in vectors.neighbors(one, num=1_000)]
            rank = str(near.index(other) + 1) if other in near else "beyond 1,000"
            print(f"{one}, {other}: cosine {vectors.similarity(one, other):.2f}, rank {rank}")


def tell_positions(_: Models) -> None:
    """Products of the Transformer's position vectors by their distance, from three places."""
    from sememe.nn.layers import sinusoidal_table

    table_TD = sinusoidal_table(512, 128).double()
    for distance in (0, 1, 2, 5, 10, 50):
        products = [float(table_TD[at] @ table_TD[at + distance]) for at in (0, 10, 100)]
        print(f"distance {distance}:", *(f"{product:.1f}" for product in products))


def tell_pieces(models: Models) -> None:
    """The same words cut by WordPiece and by BPE, 8,192 tokens of the same text each."""
    for kind in ("wordpiece", "bpe"):
        tokenizer = sememe.SubwordTokenizer.train(models.corpus, kind=kind, vocab_size=8_192)
        for word in CUT:
            ids = tokenizer.encode(word, specials=False).ids
            print(f"{kind}: {word} →", *(tokenizer.token(int(one)) for one in ids))


def tell_parameters(_: Models) -> None:
    """The parameters of BERT by preset, heads for pre-training included."""
    import torch

    from sememe.models.bert.config import BERT_PRESETS
    from sememe.models.bert.network import BERTNetwork

    for name, config in BERT_PRESETS.items():
        with torch.device("meta"):
            network = BERTNetwork(config)
        sizes = {own: one.numel() for own, one in network.named_parameters()}
        table = max(size for own, size in sizes.items() if "block" not in own)
        blocks = sum(size for own, size in sizes.items() if "block" in own)
        print(f"{name}: {sum(sizes.values()) / 1e6:.1f} M, table of tokens {table / 1e6:.1f} M, "
              f"blocks {blocks / 1e6:.1f} M ({blocks // config.num_layers:,} each)")  # fmt: skip


QUESTIONS: dict[str, Callable[[Models], None]] = {
    "loss": tell_loss, "vectors": print_vectors, "settings": tell_settings, "tree": tell_tree,
    "antonyms": tell_antonyms, "positions": tell_positions, "pieces": tell_pieces,
    "parameters": tell_parameters, "softmax": tell_softmax,
}  # fmt: skip


def main() -> None:
    """Answer the questions that are asked."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--corpus", action="append", help="a text in place of the built-in one")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    asked = options.questions or [name for name in QUESTIONS if name != "softmax"]
    if unknown := sorted(set(asked) - set(QUESTIONS)):
        parser.error(f"{', '.join(unknown)}: the questions are {', '.join(QUESTIONS)}")
    models = Models(options.corpus, options.seeds, options.epochs)
    for name in asked:
        print(f"{name}: {QUESTIONS[name].__doc__}")
        QUESTIONS[name](models)
        print(flush=True)


if __name__ == "__main__":
    main()
