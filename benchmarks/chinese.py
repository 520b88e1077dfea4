"""Chinese word vectors beside gensim's: one segmentation, two trainings, the same questions.

python benchmarks/chinese.py TEXT --words DIR [--epochs 3] [--seeds 3]
TEXT is raw Chinese text; DIR holds ca8-semantic.txt, ca8-morphological.txt, wordsim-240.txt and
wordsim-297.txt. sememe trains from TEXT with language zh, gensim from the same words.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from gensim.models import Word2Vec as GensimWord2Vec

import sememe
from sememe.evaluation import evaluate_analogies, evaluate_pairs
from sememe.text.stream import segment
from sememe.text.words import decode_documents

QUESTIONS = ("ca8-semantic", "ca8-morphological", "wordsim-240", "wordsim-297")


def score(vectors: sememe.WordVectors, words: Path) -> dict[str, float]:
    """Percent of analogies, Spearman × 100 of pairs."""
    return {
        name: 100
        * (evaluate_analogies if name.startswith("ca8") else evaluate_pairs)(
            vectors, words / f"{name}.txt"
        ).value
        for name in QUESTIONS
    }


def write_words(text: Path, target: Path) -> None:
    """Cut the text as sememe does, a sentence a line."""
    with target.open("w", encoding="utf-8") as file:
        for records in segment(text, sememe.TextSettings(language="zh")):
            for sentences in decode_documents(records.data):
                file.writelines(" ".join(words) + "\n" for words in sentences)


def main() -> None:
    """Train both with every seed and print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {"sememe": [], "gensim": []}
    with tempfile.TemporaryDirectory() as folder:
        cut = Path(folder) / "words.txt"
        start = time.perf_counter()
        write_words(options.text, cut)
        print(f"segmentation: {options.text.stat().st_size / 1e6:.0f} MB in "
              f"{time.perf_counter() - start:.1f} s", flush=True)  # fmt: skip
        for seed in range(1, options.seeds + 1):
            model = sememe.Word2Vec(epochs=options.epochs, seed=seed, workers=2)
            model.fit(options.text, language="zh")
            found["sememe"].append(score(model.vectors, options.words))
            print("sememe", seed, found["sememe"][-1], flush=True)
            peer = GensimWord2Vec(
                corpus_file=str(cut), sg=1, vector_size=100, window=5, negative=5, min_count=5,
                sample=1e-3, workers=2, seed=seed, epochs=options.epochs,
            )  # fmt: skip
            vectors = sememe.WordVectors(peer.wv.index_to_key, peer.wv.vectors)
            found["gensim"].append(score(vectors, options.words))
            print("gensim", seed, found["gensim"][-1], flush=True)
    for tool, rows in found.items():
        means = {name: round(statistics.mean(row[name] for row in rows), 2) for name in QUESTIONS}
        print(tool, "mean of", len(rows), means)


if __name__ == "__main__":
    main()
