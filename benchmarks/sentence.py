"""Sentence encoders beside means of word vectors, SIF and BM25: what training them gains.

`sts` trains every objective with several seeds on each base and correlates cosines with people's
scores of pairs; `--pairs` adds a supervised training. `retrieval` trains on summaries and bodies of
the built-in corpus and searches the bodies of other modules. Finished trainings are kept in --out
and not repeated; nothing is selected on the data that is scored.

    python benchmarks/sentence.py sts runs/bert --vectors runs/words --corpus wiki.txt \\
        --data STS-B/dev.tsv --pairs snli.tsv --budget 2m --seeds 3 --out runs/sts
    python benchmarks/sentence.py retrieval --vectors runs/words --out runs/retrieval
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import sememe
from sememe.evaluation.retrieval import gain_cells

OBJECTIVES = ("simcse", "neighbors", "titles", "tsdae", "pairs")


def trained(base: str, out: Path, fit: dict[str, Any], **options: Any) -> Path:
    """Train one encoder, unless it is there already."""
    if not out.exists():
        begun_s = time.monotonic()
        model = sememe.SentenceModel(base, evaluate_batches=0, **options)
        model.fit(**fit, out=out, resume=True, progress=False)
        print(f"{out.name}: {time.monotonic() - begun_s:.0f} s", flush=True)
    return out


def sif(vectors: str, corpus: str | None, out: Path, **options: Any) -> Path:
    """SIF over the word vectors."""
    if not out.exists():
        sememe.SIF(vectors, **options).fit(corpus, out=out, progress=False)
    return out


def sts(asked: argparse.Namespace) -> None:
    """Score the baselines, and every objective on every base."""
    out: Path = asked.out
    systems: dict[str, list[Path]] = {
        "mean of word vectors": [Path(asked.vectors)],
        "SIF": [sif(asked.vectors, asked.corpus, out / "sif")],
        "uSIF": [sif(asked.vectors, asked.corpus, out / "usif", method="usif")],
        **{f"{Path(base).name}, mean": [Path(base)] for base in asked.bases},
    }
    settings = {"language": asked.language} if asked.language else {}
    for base in [*asked.bases, *([asked.vectors] if asked.train_vectors else [])]:
        for objective in asked.objectives.split(","):
            if objective == "tsdae" and base == asked.vectors:
                continue
            is_rows = objective == "pairs"
            if is_rows and not asked.pairs:
                continue
            fit = {"pairs": asked.pairs} if is_rows else {"corpus": asked.corpus, **settings}
            more = {} if is_rows else {"objective": objective}
            systems[f"{Path(base).name}, {objective}"] = [
                trained(
                    base, out / f"{Path(base).name}-{objective}-{seed}", fit, seed=seed,
                    **({"epochs": asked.epochs} if asked.epochs else {"budget": asked.budget}),
                    batch_size=asked.batch_size, max_examples=asked.max_examples,
                    learning_rate=asked.learning_rate, length=asked.length,
                    workers=asked.workers, **more,
                )
                for seed in range(1, asked.seeds + 1)
            ]  # fmt: skip
    for data in asked.data:
        _print_sts(systems, data)


def _print_sts(systems: dict[str, list[Path]], data: str) -> None:
    """Spearman of every system, over seeds, and its first seed against SIF by a paired test."""
    folders = [str(folder) for own in systems.values() for folder in own]
    result = sememe.evaluate_sts(folders, data)
    found = dict(zip(folders, result.scores, strict=True))
    base = found[str(systems["SIF"][0])]
    print(f"\n{data}")
    for name, own in systems.items():
        scores = [100 * found[str(folder)].spearman for folder in own]
        several = len(scores) > 1
        spread = f" ± {statistics.stdev(scores):.1f} ({len(scores)} seeds)" if several else ""
        first = found[str(own[0])]
        gain = "" if first is base else gain_cells(result.compare(base, first).bootstrap)[0]
        print(f"| {name} | {statistics.mean(scores):.1f}{spread} | {gain} |", flush=True)


def retrieval(asked: argparse.Namespace) -> None:
    """Train on pairs of the built-in corpus, then again with hard negatives; search the others."""
    vectors, out = asked.vectors, asked.out
    sif(vectors, None, out / "sif")
    options = json.loads(asked.options)
    first = trained(vectors, out / "dense", {}, **options)
    systems = [vectors, str(out / "sif"), str(first)]
    if asked.hard_negatives:
        more = {**options, "hard_negatives": asked.hard_negatives}
        systems.append(str(trained(str(first), out / "dense-hard", {}, **more)))
    print(sememe.evaluate_retrieval([*systems, *asked.models]))


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    own = commands.add_parser("sts", help=sts.__doc__)
    own.set_defaults(call=sts)
    own.add_argument("bases", nargs="*", help="networks to train")
    own.add_argument("--vectors", required=True, help="word vectors of the same corpus")
    own.add_argument("--corpus", help="text to learn from; default: the built-in corpus")
    own.add_argument("--language", default="")
    own.add_argument("--data", action="append", required=True, help="scored pairs; repeatable")
    own.add_argument("--pairs", help="rows of a supervised training, such as SNLI")
    own.add_argument("--objectives", default=",".join(OBJECTIVES))
    own.add_argument("--train-vectors", action="store_true", help="train on the vectors, too")
    own.add_argument("--budget", default="2m", help="of each training")
    own.add_argument("--epochs", type=float, default=0.0, help="instead of a budget")
    own.add_argument("--max-examples", type=int, default=250_000, help="of the corpus")
    own.add_argument("--workers", type=int, default=0)
    own.add_argument("--batch-size", type=int, default=64)
    own.add_argument("--learning-rate", type=float, default=0.0)
    own.add_argument("--length", type=int, default=64)
    own.add_argument("--seeds", type=int, default=3)
    own.add_argument("--out", type=Path, required=True)
    own = commands.add_parser("retrieval", help=retrieval.__doc__)
    own.set_defaults(call=retrieval)
    own.add_argument("models", nargs="*", help="further models to score")
    own.add_argument("--vectors", required=True, help="word vectors to train")
    own.add_argument("--options", default='{"epochs": 8, "batch_size": 256}', help="as JSON")
    own.add_argument("--hard-negatives", type=int, default=0)
    own.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    asked.call(asked)


if __name__ == "__main__":
    main()
