"""The classifier's defaults beside its baselines on every labelled set of a folder.

    python benchmarks/classifier_defaults.py DATA
    python benchmarks/classifier_defaults.py DATA --only agnews --only thucnews --seeds 3
    python benchmarks/classifier_defaults.py DATA --held-out --option epochs=10

DATA has the official files of GLUE, SNLI, MNLI, SST-5, IMDb, AG News, ChnSentiCorp, THUCNews,
LCQMC, OCNLI and CLUENER; the docstring tasks need no files, and twenty classes of long texts are
made from Wikipedia articles (which of twenty articles is a passage of 200 words from?).

It trains on the training rows and scores the test rows, or with --held-out trains on four fifths of
the training rows and scores the others, by which the defaults were chosen. Prints a table in
Markdown: the most frequent label, TF-IDF + logistic regression, `--preset fasttext`, and the
defaults; F1, which is the accuracy where a row has one label, mean over seeds, with its 95 %
interval over the rows (the mean of the seeds' bounds).
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sememe
from sememe.examples.docstring_tasks import docstring_rows
from sememe.progress import Reporter

Rows = list[tuple[str, Any]]
PRESETS = ("fasttext", "auto")


def opened(path: Path) -> Any:
    """A text file, compressed or not."""
    packed = path.with_name(f"{path.name}.xz")
    if packed.exists():
        return lzma.open(packed, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def table(path: Path, label: str | int, *texts: str | int) -> Rows:
    """The rows of a tsv file; columns by name, or by number where it has no header."""
    with opened(path) as file:
        names = file.readline().rstrip("\n").split("\t") if isinstance(label, str) else []
        places = [names.index(own) if isinstance(own, str) else own for own in (label, *texts)]
        cells = [line.rstrip("\n").split("\t") for line in file]
    rows = [[own[place] for place in places] for own in cells if len(own) > max(places)]
    return [(" ".join(texts), own) for own, *texts in rows if own not in ("", "-")]


def records(path: Path, *names: str) -> Rows:
    """The rows of a jsonl file with two texts."""
    with opened(path) as file:
        rows = [json.loads(line) for line in file]
    return [(f"{row[names[0]]} {row[names[1]]}", row["label"]) for row in rows
            if row["label"] not in ("", "-")]  # fmt: skip


def trees(path: Path) -> Rows:
    """The sentences of Stanford's trees."""
    with opened(path) as file:
        return [
            (" ".join(re.findall(r"\(\d ([^()]+)\)", line)), line[1])
            for line in file
            if line.strip()
        ]


def entities(path: Path) -> Rows:
    """Sentences with the kinds of names in them."""
    with opened(path) as file:
        return [(row["text"], sorted(row["label"])) for row in map(json.loads, file)]


def passages(path: Path) -> tuple[Rows, Rows]:
    """Passages of 200 words from the twenty longest of the first thousand articles."""
    articles: dict[str, list[str]] = {}
    with opened(path) as file:
        for line in file:
            if line.startswith("= "):
                title = line.strip("= \n")
                if len(articles) == 1_000:
                    break
                articles[title] = []
            elif articles:
                articles[title] += line.split()
    longest = sorted(articles, key=lambda name: -len(articles[name]))[:20]
    rows = [
        (" ".join(articles[name][first : first + 200]), name)
        for name in longest
        for first in range(0, len(articles[name]) - 200, 200)
    ]
    random.Random(1).shuffle(rows)
    return rows[len(rows) // 4 :], rows[: len(rows) // 4]


def built_in(name: str) -> tuple[Rows, Rows]:
    """The training and test rows of a docstring task."""
    train, test = (
        [(f"{row.text} {row.second or ''}", row.label) for row in docstring_rows(name, split)]
        for split in ("train", "test")
    )
    return train, test


def sets(data: Path) -> dict[str, Callable[[], tuple[Rows, Rows]]]:
    """How the training and the test rows of each set are read."""
    glue, tasks, zh = data / "tasks/glue", data / "tasks", data / "zh"
    pair = ("label", "sentence1", "sentence2")
    both = ("sentence1", "sentence2")

    def two(read: Callable[..., Rows], folder: Path, names: tuple[str, str], *more: Any) -> Any:
        return lambda: tuple(read(folder / name, *more) for name in names)

    ends = ("train.tsv", "dev.tsv")
    return {
        "CoLA": two(table, glue / "CoLA", ends, 1, 3),
        "SST-2": two(table, glue / "SST-2", ends, "label", "sentence"),
        "MRPC": two(table, glue / "MRPC", ends, "Quality", "#1 String", "#2 String"),
        "RTE": two(table, glue / "RTE", ends, *pair),
        "WNLI": two(table, glue / "WNLI", ends, *pair),
        "MNLI, part": two(
            records, tasks / "mnli_part",
            ("mnli_train_10k.jsonl", "mnli_validation_10k.jsonl"), "premise", "hypothesis",
        ),
        "SNLI": two(
            table, tasks / "snli", ("train_100k.tsv", "test.tsv"),
            "label", "premise", "hypothesis",
        ),
        "SST-5": two(trees, tasks / "sst5", ("train.txt", "test.txt")),
        "IMDb": two(table, tasks / "imdb", ("train.tsv", "test.tsv"), 0, 2),
        "AG News": two(table, tasks / "agnews", ("train_10k.tsv", "test.tsv"), 1, 0),
        "Wikipedia passages": lambda: passages(data / "corpora/enwiki_core.part1.txt"),
        "packages": lambda: built_in("packages"),
        "summaries": lambda: built_in("summaries"),
        "ChnSentiCorp": two(
            table, zh / "chnsenticorp", ("train.tsv", "test.tsv"), "label", "text_a"
        ),
        "THUCNews titles": two(
            table, zh / "thucnews_titles", ("train_33k.txt", "test.txt"), 1, 0
        ),
        "LCQMC": two(table, zh / "lcqmc", ("dev.tsv", "test.tsv"), 2, 0, 1),
        "OCNLI": two(records, zh / "ocnli", ("train.10k.json", "dev.json"), *both),
        "CLUENER kinds": two(entities, zh / "cluener", ("train.json", "dev.json")),
    }  # fmt: skip


def held_out(train: Rows) -> tuple[Rows, Rows]:
    """Four fifths of the rows, and the others."""
    order = list(range(len(train)))
    random.Random(7).shuffle(order)
    num = min(len(train) // 5, 5_000)
    return [train[i] for i in order[num:]], [train[i] for i in order[:num]]


def measured(
    train: Rows, test: Rows, seeds: int, options: dict[str, Any]
) -> Iterator[tuple[str, float, list[float] | None, float, str]]:
    """The name, mean F1, interval, CPU seconds and options of each way, baselines first."""
    for preset in reversed(PRESETS):
        found, seconds, told = [], 0.0, ""
        for seed in range(1, seeds + 1):
            begun_s = time.process_time()
            model = sememe.FastTextClassifier(preset=preset, workers=1, seed=seed, **options)
            model.fit(train, progress=Reporter(quiet=True))
            seconds += (time.process_time() - begun_s) / seeds
            is_first = preset == "auto" and seed == 1
            found.append(model.evaluate(test, train=train if is_first else None))
            config = model.config
            told = f"{config.learning_rate:g} × {config.epochs}, {config.word_ngrams}-grams" + (
                f", {config.minn}–{config.maxn} characters" if config.maxn else ""
            )
        for one in found[0].baselines:
            yield one["name"], one["score"], one["interval"], 0.0, ""
        mean = statistics.mean(one.f1 for one in found)
        bounds = zip(*(one.interval for one in found if one.interval), strict=True)
        yield preset, mean, [statistics.mean(own) for own in bounds], seconds, told


def percent(score: float | None, interval: list[float] | None) -> str:
    """A score with its interval."""
    if score is None:
        return "–"
    bounds = f" ({100 * interval[0]:.1f}–{100 * interval[1]:.1f})" if interval else ""
    return f"{100 * score:.1f}{bounds}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    asked = parser.parse_args()
    options = {name: json.loads(value) for name, value in (o.split("=") for o in asked.option)}
    heads = ("set", "rows", "classes", "most frequent", "TF-IDF + LR", *PRESETS, "chosen", "CPU s")
    print("|", " | ".join(heads), "|\n|", " | ".join("---" for _ in heads), "|", flush=True)
    for name, read in sets(asked.data).items():
        if asked.only and name not in asked.only:
            continue
        train, test = read()
        if asked.held_out:
            train, test = held_out(train)
        own = {way: more for way, *more in measured(train, test, asked.seeds, options)}
        labels = {x for _, y in train for x in (y if isinstance(y, list) else [y])}
        cells = [name, f"{len(train):,} / {len(test):,}", str(len(labels))]
        for way in ("most frequent label", "TF-IDF + logistic regression", *PRESETS):
            cells.append(percent(*own[way][:2]) if way in own else "–")
        cells += [own["auto"][3], f"{own['auto'][2]:.1f}"]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
