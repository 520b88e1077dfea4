"""word2vec beside gensim: words a second, and the quality of what comes out at that speed.

python benchmarks/word2vec.py speed TEXT      one epoch over TEXT, us and gensim in turn
python benchmarks/word2vec.py quality TEXT --words DIR --results FILE
                                              two epochs, scored on word sets; each finished run is
                                              kept in FILE, and a second call goes on from there
python benchmarks/word2vec.py score FILE --words DIR
                                              the scores of saved vectors (word2vec's binary form)
TEXT is already segmented: words separated by spaces, a sentence (or paragraph) a line. DIR holds
google-analogies.txt, wordsim353.txt and simlex999.txt (pairs separated by tabs).

Every run is a process of its own. gensim trains from `corpus_file`, its fastest way. Both have
2 workers, window 5, 5 negatives, sample 1e-3, min_count 5; learning rates are each tool's default.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SPEED = [
    ("skipgram", "negative", 100),
    ("skipgram", "negative", 300),
    ("cbow", "negative", 100),
    ("skipgram", "hierarchical", 100),
]
QUALITY = [("skipgram", 100, (1, 2, 3)), ("cbow", 100, (1, 2, 3)),
           ("skipgram", 300, (1,)), ("cbow", 300, (1,))]  # fmt: skip
AIMS = {("skipgram", "negative", 100): 8, ("skipgram", "negative", 300): 6,
        ("cbow", "negative", 100): 4, ("skipgram", "hierarchical", 100): 3}  # fmt: skip

PAIRS = ("wordsim353", "simlex999")
METRICS = ("analogies", *PAIRS, "words_per_s")


def train_gensim(job: dict[str, Any]) -> dict[str, Any]:
    """Count, then train; seconds of both."""
    from gensim.models import Word2Vec

    is_negative = job["loss"] == "negative"
    model = Word2Vec(
        vector_size=job["dim"], sg=int(job["architecture"] == "skipgram"), seed=job["seed"],
        hs=int(not is_negative), negative=5 * is_negative, workers=2, window=5, sample=1e-3,
        min_count=5, epochs=job["epochs"],
    )  # fmt: skip
    start = time.perf_counter()
    model.build_vocab(corpus_file=job["text"])
    counted = time.perf_counter()
    num_words = model.corpus_total_words
    model.train(corpus_file=job["text"], total_words=num_words, epochs=job["epochs"])
    trained = time.perf_counter()
    if job["save"]:
        model.wv.save_word2vec_format(job["save"], binary=True)
    return {"words": num_words, "vocabulary_s": counted - start, "training_s": trained - counted}


def train_sememe(job: dict[str, Any]) -> dict[str, Any]:
    """Count and encode, then train; seconds of both, after the kernels have been compiled."""
    from sememe import TextSettings, Word2Vec
    from sememe.tokens.caching import open_or_build
    from sememe.vectors.formats import write_vectors

    options = {"architecture": job["architecture"], "loss": job["loss"], "dim": job["dim"],
               "seed": job["seed"], "workers": 2}  # fmt: skip
    settings = TextSettings(language="none")
    Word2Vec(**options, min_count=1, epochs=1).fit([["a", "b", "c"]] * 10)
    with tempfile.TemporaryDirectory() as folder:
        tiny = Path(folder) / "tiny.txt"
        tiny.write_text("a b c\n" * 100)
        open_or_build(tiny, settings, min_count=1, path=Path(folder) / "warm")
        start = time.perf_counter()
        store = open_or_build(job["text"], settings, min_count=5, path=Path(folder) / "store")
        counted = time.perf_counter()
        model = Word2Vec(**options, epochs=job["epochs"]).fit(store)
        trained = time.perf_counter()
        num_words = store.num_tokens
    if job["save"]:
        write_vectors(model.vectors, job["save"], "word2vec-binary")
    return {"words": num_words, "vocabulary_s": counted - start, "training_s": trained - counted}


def run(tool: str, **job: Any) -> dict[str, Any]:
    """Do one job in a process of its own."""
    job = {"tool": tool, "loss": "negative", "seed": 1, "epochs": 1, "save": "", **job}
    command = [sys.executable, __file__, "job", json.dumps(job)]
    result = json.loads(subprocess.check_output(command).splitlines()[-1])
    result["words_per_s"] = result["words"] * job["epochs"] / result["training_s"]
    return result


def measure_speed(text: str, repeats: int, only: str) -> None:
    """Print the median words a second of both tools and their ratio."""
    vocabulary_s: dict[str, list[float]] = {"gensim": [], "sememe": []}
    for architecture, loss, dim in SPEED:
        if only not in f"{architecture} {loss} {dim}":
            continue
        rates: dict[str, list[float]] = {"gensim": [], "sememe": []}
        for _ in range(repeats):
            for tool in ("gensim", "sememe"):
                result = run(tool, text=text, architecture=architecture, loss=loss, dim=dim)
                rates[tool].append(result["words_per_s"])
                vocabulary_s[tool].append(result["vocabulary_s"])
        ours, theirs = (statistics.median(rates[tool]) for tool in ("sememe", "gensim"))
        aim = AIMS.get((architecture, loss, dim))
        print(f"{architecture:8} {loss:12} {dim}: sememe {ours:12,.0f} words/s, gensim "
              f"{theirs:10,.0f}, ratio {ours / theirs:5.2f}" + (f" (aim {aim})" if aim else ""),
              flush=True)  # fmt: skip
    ours, theirs = (statistics.median(vocabulary_s[tool]) for tool in ("sememe", "gensim"))
    print(f"vocabulary and encoding {ours:.2f} s, gensim's build_vocab {theirs:.2f} s, ratio "
          f"{theirs / ours:.2f} (aim 4)")  # fmt: skip


def score_by_gensim(path: str, words: Path) -> dict[str, float]:
    """Percent of analogies, Spearman × 100 of the pairs, as gensim's own evaluator finds them."""
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load_word2vec_format(path, binary=True)
    scores = {"analogies": vectors.evaluate_word_analogies(str(words / "google-analogies.txt"))[0]}
    for name in PAIRS:
        scores[name] = vectors.evaluate_word_pairs(str(words / f"{name}.txt"))[1][0]
    return {name: 100 * float(value) for name, value in scores.items()}


def score_by_sememe(path: str, words: Path) -> dict[str, float]:
    """The same by our evaluator, in seconds instead of minutes."""
    from sememe import load
    from sememe.evaluation import evaluate_analogies, evaluate_pairs

    vectors = load(path)
    scores = {"analogies": evaluate_analogies(vectors, words / "google-analogies.txt").value}
    for name in PAIRS:
        scores[name] = evaluate_pairs(vectors, words / f"{name}.txt", case="fold").value
    return {name: 100 * float(value) for name, value in scores.items()}


def score(path: str, words: Path, evaluator: str) -> dict[str, Any]:
    """The scores by one evaluator; by gensim's, and ours beside them, where it is both."""
    if evaluator == "sememe":
        return score_by_sememe(path, words) | {"evaluator": "sememe"}
    scores = score_by_gensim(path, words) | {"evaluator": "gensim"}
    return scores | ({"sememe": score_by_sememe(path, words)} if evaluator == "both" else {})


def show(name: str, row: dict[str, Any]) -> None:
    """Print the scores of one model, a line for each evaluator, and other figures it has."""
    for evaluator, scores in ((row["evaluator"], row), ("sememe", row.get("sememe"))):
        if scores:
            metrics = [f"{key} {scores[key]:,.2f}" for key in METRICS if key in scores]
            print(f"{name}, evaluator {evaluator}:", ", ".join(metrics), flush=True)


def measure_quality(text: str, words: Path, results: Path, evaluator: str, tools: str) -> None:
    """Train and score what `results` lacks, then print the table."""
    done = json.loads(results.read_text()) if results.exists() else {}
    for tool in tools.split(","):
        for architecture, dim, seeds in QUALITY:
            for seed in seeds:
                name = f"{tool} {architecture} {dim} seed {seed}"
                if name in done:
                    continue
                with tempfile.TemporaryDirectory() as folder:
                    path = str(Path(folder) / "vectors.bin")
                    result = run(tool, text=text, architecture=architecture, dim=dim, seed=seed,
                                 epochs=2, save=path)  # fmt: skip
                    done[name] = result | score(path, words, evaluator)
                results.write_text(json.dumps(done, indent=1))
                show(name, done[name])
    for architecture, dim, seeds in QUALITY:
        for tool in ("gensim", "sememe"):
            names = [f"{tool} {architecture} {dim} seed {seed}" for seed in seeds]
            rows = [done[name] for name in names if name in done]
            if rows:
                show(f"{architecture:8} {dim} {tool:6} ({len(rows)} seeds)", mean(rows))


def mean(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The means of the figures that all rows have."""
    means: dict[str, Any] = {
        key: statistics.mean(row[key] for row in rows)
        for key in METRICS
        if all(key in row for row in rows)
    }
    evaluators = {row["evaluator"] for row in rows if "evaluator" in row}
    if evaluators:
        means["evaluator"] = " and ".join(sorted(evaluators))
    if all("sememe" in row for row in rows):
        means["sememe"] = mean([row["sememe"] for row in rows])
    return means


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "quality", "score", "job"])
    parser.add_argument("text")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="speed: models whose name holds this")
    parser.add_argument("--words", type=Path)
    parser.add_argument("--results", type=Path, default=Path("word2vec-quality.json"))
    parser.add_argument(
        "--evaluator", choices=["both", "gensim", "sememe"], default="both",
        help="gensim's takes minutes for each model, ours seconds",
    )  # fmt: skip
    parser.add_argument("--tools", default="sememe,gensim")
    options = parser.parse_args()
    if options.what == "job":
        job = json.loads(options.text)
        train = {"gensim": train_gensim, "sememe": train_sememe}[job["tool"]]
        print(json.dumps(train(job)))
    elif options.what == "speed":
        measure_speed(options.text, options.repeats, options.only)
    elif options.what == "score":
        show(options.text, score(options.text, options.words, options.evaluator))
    else:
        measure_quality(options.text, options.words, options.results, options.evaluator,
                        options.tools)  # fmt: skip


if __name__ == "__main__":
    main()
