"""Doc2Vec beside gensim's: words a second in training and inference, and a classifier on top.

    python benchmarks/doc2vec.py TRAIN.tsv TEST.tsv [--epochs 20] [--dim 100] [--rounds 3]

Rows are text, tab, class. Both programs get the same words, 2 threads, window 5, 5 negatives and
the same passes, and train in turn; medians of the rounds are printed. The classifier is logistic
regression on the vectors of the training documents, scored on inferred vectors of the test rows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

METHODS = {
    "PV-DBOW": ({"method": "dbow"}, {"dm": 0, "dbow_words": 1}),
    "PV-DM mean": ({"method": "dm"}, {"dm": 1, "dm_mean": 1}),
    "PV-DM concat": ({"method": "dm", "combine": "concat"}, {"dm": 1, "dm_concat": 1}),
}


def rows_of(path: str) -> tuple[list[list[str]], list[str]]:
    """The words and the class of each row."""
    from sememe.text.settings import TextSettings
    from sememe.text.stream import cut_texts

    lines = [line.rsplit("\t", 1) for line in Path(path).read_text("utf-8").splitlines()]
    cut = cut_texts([line[0] for line in lines], TextSettings())
    return [[word for own in text for word in own] for text in cut], [line[1] for line in lines]


def ours(train: list[list[str]], test: list[list[str]], common: dict[str, Any], more: Any) -> Any:
    """(training s, inference s, vectors of both)."""
    import sememe

    begun = time.perf_counter()
    model = sememe.Doc2Vec(**common, workers=2, infer_epochs=common["epochs"], **more).fit(train)
    trained = time.perf_counter()
    found = np.stack([model.infer(words) for words in test])
    return trained - begun, time.perf_counter() - trained, np.asarray(model.documents), found


def gensims(
    train: list[list[str]], test: list[list[str]], common: dict[str, Any], more: Any
) -> Any:
    """The same with gensim."""
    from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    tagged = [TaggedDocument(words, [index]) for index, words in enumerate(train)]
    begun = time.perf_counter()
    model = Doc2Vec(
        tagged, vector_size=common["dim"], epochs=common["epochs"], window=common["window"],
        min_count=common["min_count"], alpha=common["learning_rate"], sample=1e-3, workers=2,
        **more,
    )  # fmt: skip
    trained = time.perf_counter()
    found = np.stack([model.infer_vector(words) for words in test])
    return trained - begun, time.perf_counter() - trained, model.dv.vectors, found


def accuracy(train_ND: np.ndarray, train: list[str], test_ND: np.ndarray, test: list[str]) -> float:
    """Logistic regression on standardized vectors."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    return float(model.fit(train_ND, train).score(test_ND, test))


def main() -> None:
    """Print a line for each method and program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    (train, labels), (test, wanted) = rows_of(asked.train), rows_of(asked.test)
    num_words = [sum(map(len, texts)) for texts in (train, test)]
    common = {"dim": asked.dim, "epochs": asked.epochs, "window": 5, "min_count": 2,
              "learning_rate": asked.learning_rate}  # fmt: skip
    print(f"{len(train):,} + {len(test):,} documents, {num_words[0]:,} + {num_words[1]:,} words")
    programs = {"sememe": ours, "gensim": gensims}
    ours(train[:50], test[:5], {**common, "min_count": 1}, {})  # compiles
    for name, options in METHODS.items():
        if asked.only not in name:
            continue
        found: dict[str, list[Any]] = {program: [] for program in programs}
        for _ in range(asked.rounds):
            for (program, call), more in zip(programs.items(), options, strict=True):
                trained, inferred, documents, vectors = call(train, test, common, more)
                right = accuracy(documents, labels, vectors, wanted)
                found[program].append((trained, inferred, right))
        for program, runs in found.items():
            trained, inferred, right = (statistics.median(own) for own in zip(*runs, strict=True))
            print(
                f"{name:13} {program}: {num_words[0] * asked.epochs / trained:9,.0f} words/s in "
                f"training, {num_words[1] * asked.epochs / inferred:9,.0f} in inference, accuracy "
                f"{right:.3f} ({min(own[2] for own in runs):.3f} to "
                f"{max(own[2] for own in runs):.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
