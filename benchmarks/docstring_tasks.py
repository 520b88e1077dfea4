"""The four free tasks of the built-in corpus: small readers beside what understands nothing.

python benchmarks/docstring_tasks.py [--seeds 3] [--task packages]
python benchmarks/docstring_tasks.py --bert 200 [--task parameters]

Word vectors are learned from the training modules in seconds; readers over them are taught with all
training rows. The figures are of the test rows, which come from other modules; docs/results.md
tells how the options below were found. Baselines learn from the same rows as ours. `untrained` is
the same reader with random words and weights that learned nothing, `random words` the same one
taught alike.
With --bert a BERT tiny is pre-trained for so many steps and fine-tuned, and beside it one of random
weights is fine-tuned alike. Prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from docstring_baselines import floors

# Those with enough modules to hold some out, whose sources are read in seconds.
PACKAGES = ("python", "scipy", "matplotlib", "sympy")


class Case(NamedTuple):
    """How a task is learned, and the score on test rows that a test of it asks for."""

    floor: float
    options: dict[str, Any]


CASES = {
    "packages": Case(0.78, {
        "epochs": 3, "reader_width": 48, "batch_size": 64, "learning_rate": 3e-3, "dropout": 0.3,
    }),
    "summaries": Case(0.81, {
        "epochs": 3, "reader_width": 32, "batch_size": 64, "learning_rate": 3e-3, "dropout": 0.3,
        "freeze": True,
    }),
    "parameters": Case(0.65, {"epochs": 3, "reader_width": 48, "learning_rate": 4e-3}),
    "types": Case(0.70, {
        "epochs": 2, "reader_width": 32, "learning_rate": 5e-3, "dropout": 0.2, "length": 96,
    }),
}  # fmt: skip
BERT_OPTIONS = {"epochs": 3, "learning_rate": 1e-3, "length": 96, "batch_size": 32}


@cache
def rows_of(name: str, split: Any) -> list[Any]:
    """The rows of a task; of questions those that have an answer."""
    from sememe.examples.docstring_tasks import docstring_rows

    rows = docstring_rows(name, split, packages=PACKAGES)
    return [row for row in rows if row.answers] if name == "types" else rows


def vectors_of(seed: int = 1) -> Any:
    """Word vectors of the training modules."""
    import sememe
    from sememe.examples.docstring_tasks import docstring_texts

    model = sememe.Word2Vec(dim=100, epochs=5, min_count=3, workers=1, seed=seed)
    return model.fit(docstring_texts(packages=PACKAGES))


def random_vectors(vectors: Any, seed: int = 1) -> Any:
    """Vectors of the same words that nothing was learned for."""
    from sememe.vectors import WordVectors

    shape = vectors.vectors.vectors.shape
    return WordVectors(vectors.vocabulary, np.random.default_rng(seed).normal(size=shape))


def directions(vectors: Any) -> Any:
    """The same vectors from their middle and of one length, as our readers take them."""
    from sememe.vectors import WordVectors

    apart = vectors.vectors.vectors - vectors.vectors.vectors.mean(0)
    return WordVectors(vectors.vocabulary, apart / np.linalg.norm(apart, axis=1, keepdims=True))


def taught(name: str, model: Any, seed: int = 1, **options: Any) -> Any:
    """A task that has learned from all its training rows."""
    from sememe.contract import KINDS
    from sememe.examples.docstring_tasks import NAMES

    # Two threads would wait for each other more than they help: batches are small.
    task = KINDS[NAMES[name]].cls()(model, seed=seed, workers=1, **options)
    return task.fit(rows_of(name, "train"), dev=False)


def untaught(name: str, vectors: Any, seed: int = 1) -> Any:
    """The same task with random words and weights: one step of no size is all it has done."""
    from sememe.contract import KINDS
    from sememe.examples.docstring_tasks import NAMES

    none = {"epochs": 0.0, "steps": 1, "learning_rate": 1e-12, "freeze": True}
    options = CASES[name].options | none
    random = random_vectors(vectors, seed)
    task = KINDS[NAMES[name]].cls()(random, seed=seed, workers=1, **options)
    return task.fit(rows_of(name, "train")[:500], dev=False)


def baselines(name: str, vectors: Any) -> dict[str, float]:
    """What needs no understanding on the test rows, taught with the same rows as ours."""
    from sememe.examples.docstring_tasks import NAMES

    kind, train, asked = NAMES[name], rows_of(name, "train"), rows_of(name, "test")
    found = floors(kind, train, asked, vectors)
    if kind in ("classify", "pairs"):
        others = floors(kind, train, asked, directions(vectors))
        found |= {f"{way}, as directions": x for way, x in others.items() if way != "majority"}
    return found


# ---- tables -------------------------------------------------------------------------------------


def measured(name: str, vectors: Any, num_seeds: int) -> dict[str, list[float]]:
    """Every way of answering with its scores on the test rows: one, or one for each seed."""
    asked, options = rows_of(name, "test"), CASES[name].options
    found: dict[str, list[float]] = {}

    def keep(way: str, score: float) -> None:
        print(f"{name}, {way}: {100 * score:.1f}", file=sys.stderr)
        found.setdefault(way, []).append(score)

    for way, score in baselines(name, vectors).items():
        keep(way, score)
    for seed in range(1, num_seeds + 1):
        keep("untrained", untaught(name, vectors, seed).evaluate(asked).value)
        begun_s = time.process_time()
        task = taught(name, vectors, seed, **options)
        print(f"taught in {time.process_time() - begun_s:.0f} s of a core", file=sys.stderr)
        keep("ours", task.evaluate(asked).value)
        keep("ours, dev rows", task.evaluate(rows_of(name, "dev")).value)
        random = taught(name, random_vectors(vectors, seed), seed, **options)
        keep("random words, taught alike", random.evaluate(asked).value)
        if name == "packages":
            mean = taught(name, vectors, seed, epochs=5)
            keep("trained words, their mean", mean.evaluate(asked).value)
    return found


def measured_berts(name: str, steps: int, num_seeds: int) -> dict[str, list[float]]:
    """A BERT tiny that was pre-trained for so many steps, and one that was not."""
    import sememe
    from sememe.examples.docstring_tasks import docstring_texts

    found: dict[str, list[float]] = {}
    for seed in range(1, num_seeds + 1):
        for way, amount, rate in (
            ("pre-trained", steps, {}),
            ("random", 1, {"learning_rate": 1e-12}),
        ):
            bert = sememe.BERT(
                "tiny", steps=amount, length=64, vocab_size=4_096, dropout=0.0,
                attention_dropout=0.0, seed=seed, **rate,
            )  # fmt: skip
            bert.fit(docstring_texts(packages=PACKAGES))
            score = taught(name, bert, seed, **BERT_OPTIONS).evaluate(rows_of(name, "test")).value
            found.setdefault(f"BERT tiny, {way}", []).append(score)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", action="append", choices=tuple(CASES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bert", type=int, default=0, metavar="STEPS")
    options = parser.parse_args()
    vectors = None if options.bert else vectors_of()
    for name in options.task or CASES:
        if options.bert:
            found = measured_berts(name, options.bert, options.seeds)
        else:
            found = measured(name, vectors, options.seeds)
        sizes = f"{len(rows_of(name, 'train')):,} rows taught, {len(rows_of(name, 'test')):,} asked"
        print(f"\n| {name}: {sizes} | mean | each seed |\n| --- | --- | --- |")
        for way, scores in found.items():
            each = ", ".join(f"{100 * score:.1f}" for score in scores) if len(scores) > 1 else ""
            print(f"| {way} | {100 * statistics.mean(scores):.1f} | {each} |", flush=True)


if __name__ == "__main__":
    main()
