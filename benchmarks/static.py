"""Every static model on the same text: scores on all word sets, words a second, memory.

python benchmarks/static.py TEXT --words DIR --results FILE
TEXT is already segmented: words separated by spaces, a paragraph a line. DIR holds files of word
pairs and analogies. Each model is a process of its own; a finished one is kept in FILE and not made
again.
100 dimensions, min_count 5, 2 workers; words a second count the text once for each epoch, from the
token store on, so that the counting of pairs belongs to it and the reading of text does not.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "one-hot": ("OneHot", {}),
    "counts (log), SVD": ("Counts", {"transform": "log"}),
    "PPMI, SVD": ("Counts", {}),
    "GloVe, 15 epochs": ("GloVe", {"epochs": 15}),
    "CBOW, 5 epochs": ("Word2Vec", {"architecture": "cbow", "epochs": 5}),
    "skip-gram, 5 epochs": ("Word2Vec", {"epochs": 5}),
    "fastText skip-gram, 5 epochs": ("FastText", {"epochs": 5}),
}


def train(text: str, words: str, name: str) -> dict[str, Any]:
    """Make one model; seconds, peak memory and scores."""
    import sememe
    from sememe.evaluation import evaluate_words
    from sememe.tokens.caching import open_or_build

    kind, options = MODELS[name]
    options = {**options, **({} if kind == "OneHot" else {"workers": 2})}
    store = open_or_build(text, sememe.TextSettings(language="none"), min_count=5)
    small = {**options, "min_count": 1, **({} if kind == "OneHot" else {"dim": 2})}
    getattr(sememe, kind)(**{**small, **({"epochs": 1} if "epochs" in options else {})}).fit(
        [list("abcde") * 20] * 5
    )  # compiles
    begun = time.perf_counter()
    model = getattr(sememe, kind)(**options, min_count=5).fit(store)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    scores = evaluate_words(model.vectors, words).scores
    return {
        "seconds": seconds,
        "words_per_s": store.num_tokens * options.get("epochs", 1) / seconds,
        "peak_mb": peak,
        "scores": {Path(str(score.name)).stem: 100 * score.value for score in scores},
    }


def main() -> None:
    """Train what the results lack, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("text")
    parser.add_argument("--words", required=True)
    parser.add_argument("--results", type=Path, default=Path("static.json"))
    parser.add_argument("--only", default="", help="a model's name, in a process of its own")
    given = parser.parse_args()
    if given.only:
        print(json.dumps(train(given.text, given.words, given.only)))
        return
    done = json.loads(given.results.read_text()) if given.results.exists() else {}
    for name in MODELS:
        if name not in done:
            command = [sys.executable, __file__, given.text, "--words", given.words]
            output = subprocess.check_output([*command, "--only", name])
            done[name] = json.loads(output.splitlines()[-1])
            given.results.write_text(json.dumps(done, indent=1))
            print(name, done[name], file=sys.stderr, flush=True)
    sets = list(dict.fromkeys(one for row in done.values() for one in row["scores"]))
    print("| model | " + " | ".join(sets) + " | seconds | words/s | peak MB |")
    print("| --- |" + " --- |" * (len(sets) + 3))
    for name, row in done.items():
        scores = (row["scores"].get(one, float("nan")) for one in sets)
        cells = ["–" if score != score else f"{score:.1f}" for score in scores]
        metrics = (f"{row['seconds']:.0f}", f"{row['words_per_s']:,.0f}", f"{row['peak_mb']:,.0f}")
        print(f"| {name} | " + " | ".join([*cells, *metrics]) + " |")


if __name__ == "__main__":
    main()
