"""Zero-shot transfer: a multilingual BERT learns inference from English rows, scored on XNLI.

    python benchmarks/zeroshot.py smoke --data DATA              (a minute: everything, small)
    python benchmarks/zeroshot.py text DATA --kept kept
    python benchmarks/zeroshot.py tokenizer shared --kept kept
    python benchmarks/zeroshot.py pretrain shared --kept kept --budget 8m
    python benchmarks/zeroshot.py transfer shared --data DATA --kept kept --out results
    python benchmarks/zeroshot.py neighbors shared --data DATA --kept kept --out results
    python benchmarks/zeroshot.py table --out results

`text` takes paragraphs of every language from DATA (corpora/, multi/large/), shuffles them and
writes kept/text/LANGUAGE.jsonl.xz, as much of each as --megabytes. `tokenizer` needs no GPU and may
run elsewhere before. `pretrain` trains a BERT on the mix, and a tokenizer if there is none;
`transfer` fine-tunes it on English rows (SNLI, MNLI) with each seed and scores XNLI's test rows of
every language, of which it has seen no label but English ones; `neighbors` looks for the
translation of a sentence among those of 1,000, by the vectors of each layer. KEPT has what is large
and stays on the machine that computes, OUT the results as JSON, one file per seed. A stage that was
stopped goes on when it is started again. Minutes to expect on an H200: `pretrain` the budget and
two more, `transfer` one and a half per seed, `neighbors` half a one. Not measured on a GPU yet.

The variants, which differ in one thing from `shared`:
  apart       no letter in common: each language's letters are written in letters of its own
  smoothing   0.3 and 1.0 instead of 0.7 as the exponent of the language sampling
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import sememe
from sememe.examples.labelled.rows import TextRow
from sememe.metrics import mean_interval, proportion_interval, spread
from sememe.metrics.baselines import baselines_of
from sememe.progress import Reporter

LANGUAGES = {
    "en": ("corpora/enwiki_core.part1.txt.xz",), "zh": ("corpora/zhwiki_core.txt.xz",),
    "de": ("multi/large/de.txt.xz",), "es": ("multi/large/es.txt.xz",),
    "fr": ("multi/large/fr.txt.xz",), "ru": ("multi/large/ru.txt.xz",),
}  # fmt: skip
SMOOTHING = {"shared": 0.7, "apart": 0.7, "smoothing-0.3": 0.3, "smoothing-1.0": 1.0}
CHANCE = 1 / 3
# Egyptian hieroglyphs, letters that none of the texts uses: 200 for each language but English.
_FIRST_LETTER, _LETTERS = 0x13000, 200
_ALPHABET = [one for one in map(chr, [*range(0x180), *range(0x400, 0x460)]) if one.islower()]
_LEAST_CHARACTERS = 80  # of a paragraph
_NEIGHBORS = 1_000  # sentences among which a translation is looked for


# ---- text ---------------------------------------------------------------------------------------


def write_texts(asked: argparse.Namespace) -> None:
    """Write the shuffled paragraphs of every language."""
    folder = asked.kept / "text"
    folder.mkdir(parents=True, exist_ok=True)
    for language, names in LANGUAGES.items():
        most = 2_000 if asked.stage == "smoke" else None
        rows = [row for name in names for row in islice(paragraphs(asked.data / name), most)]
        random.Random(1).shuffle(rows)
        left, num = asked.megabytes * 1e6, 0
        with lzma.open(folder / f"{language}.jsonl.xz", "wt", encoding="utf-8", preset=2) as file:
            for num, row in enumerate(rows, start=1):  # noqa: B007
                file.write(json.dumps({"text": row}, ensure_ascii=False) + "\n")
                left -= len(row.encode())
                if left <= 0:
                    break
        print(f"{language}: {num:,} of {len(rows):,} paragraphs", flush=True)


def paragraphs(path: Path) -> Iterator[str]:
    """The paragraphs of a file, without titles and short lines."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            text = line.strip()
            if len(text.encode()) >= _LEAST_CHARACTERS and not text.startswith("= "):
                yield text


class Letters:
    """Writes each language's letters as other letters, which no other language uses."""

    def __init__(self, is_apart: bool) -> None:
        assert len(_ALPHABET) <= _LETTERS
        self.tables: dict[str, dict[int, int]] = {}
        for number, language in enumerate(list(LANGUAGES)[1:] if is_apart else ()):
            first = _FIRST_LETTER + _LETTERS * number
            own = {ord(letter): first + place for place, letter in enumerate(_ALPHABET)}
            self.tables[language] = own

    def __call__(self, text: str, language: str) -> str:
        """The text with its Latin and Cyrillic letters replaced; Chinese ones are nobody else's."""
        table = self.tables.get(language)
        return text if table is None else text.lower().translate(table)


# ---- pre-training -------------------------------------------------------------------------------


def corpora(asked: argparse.Namespace) -> dict[str, str]:
    """The file of each language; of the variant `apart`, in its own letters."""
    folder = asked.kept / "text"
    if asked.variant != "apart":
        return {name: str(folder / f"{name}.jsonl.xz") for name in LANGUAGES}
    own = asked.kept / "text-apart"
    own.mkdir(exist_ok=True)
    letters = Letters(is_apart=True)
    for name in LANGUAGES:
        path = own / f"{name}.jsonl"
        if path.exists():
            continue
        rows = []
        with lzma.open(folder / f"{name}.jsonl.xz", "rt", encoding="utf-8") as file:
            for line in file:
                text = letters(json.loads(line)["text"], name)
                rows.append(json.dumps({"text": text}, ensure_ascii=False))
        path.write_text("\n".join(rows) + "\n", "utf-8")
    return {name: str(own / f"{name}.jsonl") for name in LANGUAGES}


def pretrain(asked: argparse.Namespace) -> None:
    """Train the BERT of a variant; a stopped training continues."""
    length = {"steps": asked.steps} if asked.steps else {"budget": asked.budget}
    model = sememe.BERT(
        asked.preset, vocab_size=asked.vocab_size, smoothing=SMOOTHING[asked.variant],
        device=asked.device, seed=1, checkpoint_minutes=2.0, **length,
    )  # fmt: skip
    train_tokenizer(asked)
    model.fit(
        corpora(asked), tokenizer=tokenizer_folder(asked), out=asked.kept / asked.variant,
        progress=Reporter(line_s=20), resume=True,
    )  # fmt: skip
    print(json.dumps(model.history.last()), flush=True)


def tokenizer_folder(asked: argparse.Namespace) -> Path:
    """Where the tokenizer of a variant is."""
    folder: Path = asked.kept / f"tokenizer-{asked.variant}"
    return folder


def train_tokenizer(asked: argparse.Namespace) -> None:
    """Train the tokenizer of a variant on the mix, unless it is there."""
    if not tokenizer_folder(asked).exists():
        found = sememe.SubwordTokenizer.train(
            corpora(asked), vocab_size=asked.vocab_size, smoothing=SMOOTHING[asked.variant],
            progress=Reporter(line_s=20),
        )  # fmt: skip
        found.save(tokenizer_folder(asked))


# ---- transfer -----------------------------------------------------------------------------------


@dataclass
class Scores:
    """Whether each row is right, for every seed, by language."""

    right: dict[str, list[list[int]]] = field(default_factory=dict)

    def add(self, language: str, right: list[int]) -> None:
        """Add the rows of another seed."""
        self.right.setdefault(language, []).append(right)

    def to_dict(self) -> dict[str, Any]:
        """Accuracies with intervals over the rows, of the mean over the seeds."""
        found = {}
        for language, runs in self.right.items():
            right_SN = np.array(runs, float)
            low, high = mean_interval(right_SN.mean(axis=0))
            found[language] = {
                "by_seed": right_SN.mean(axis=1).tolist(), "accuracy": float(right_SN.mean()),
                "deviation": spread(right_SN.mean(axis=1).tolist()).sd,
                "interval": [low, high], "above_chance": bool(low > CHANCE),
                "num_rows": right_SN.shape[1],
            }  # fmt: skip
        return found


Rows = list[tuple[str, str, str]]


def english_rows(data: Path, num: int) -> Rows:
    """Training rows of SNLI and MNLI in random order, MNLI's first ones included whole."""
    with lzma.open(data / "tasks/snli/train_100k.tsv.xz", "rt", encoding="utf-8") as file:
        names = file.readline().rstrip("\n").split("\t")
        places = [names.index(own) for own in ("premise", "hypothesis", "label")]
        cells = [line.rstrip("\n").split("\t") for line in file]
    snli = [(row[places[0]], row[places[1]], row[places[2]]) for row in cells]
    path = data / "tasks/mnli_part/mnli_train_10k.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as file:
        mnli = [(row["premise"], row["hypothesis"], row["label"]) for row in map(json.loads, file)]
    drawn = random.Random(1)
    drawn.shuffle(snli)
    rows = [row for row in (mnli + snli)[:num] if row[2] not in ("", "-")]
    drawn.shuffle(rows)
    return rows


def xnli(data: Path, language: str, num: int) -> Rows:
    """The first test rows of a language."""
    with lzma.open(data / f"multi/xnli/test-{language}.tsv.xz", "rt", encoding="utf-8") as file:
        cells = [line.rstrip("\n").split("\t") for line in file]
    return [(row[0], row[1], row[2]) for row in cells[:num]]


def transfer(asked: argparse.Namespace) -> None:
    """Fine-tune on English rows with each seed, and score every language."""
    letters = Letters(asked.variant == "apart")
    train = english_rows(asked.data, asked.max_train)
    tests = {
        name: [(letters(a, name), letters(b, name), label) for a, b, label in own]
        for name in LANGUAGES
        for own in [xnli(asked.data, name, asked.max_test)]
    }
    known = baselines(train, tests)
    for seed in asked.seeds:
        path = asked.out / f"transfer-{asked.variant}-{seed}.json"
        if path.exists():
            continue
        task = sememe.Pairs(
            asked.kept / asked.variant, epochs=asked.epochs, seed=seed, device=asked.device,
            length=128, baselines=False,
        )  # fmt: skip
        task.fit(train, dev=False, progress=Reporter(line_s=20))
        right = {}
        for name, rows in tests.items():
            said = task.predict([row[:2] for row in rows])
            right[name] = [int(one.label == row[2]) for one, row in zip(said, rows, strict=True)]
            share = sum(right[name]) / len(rows)
            print(f"seed {seed}, {name}: {100 * share:.1f}", flush=True)
        save(
            path, {"variant": asked.variant, "seed": seed, "train_rows": len(train),
                   "epochs": asked.epochs, "right": right, "baselines": known},
        )  # fmt: skip
    table(asked)


def baselines(train: Rows, tests: dict[str, Rows]) -> dict[str, Any]:
    """What the most frequent label and logistic regression on English words score everywhere."""
    known = baselines_of("pairs", [TextRow(a, second=b, label=own) for a, b, own in train])
    return {
        name: [
            one.to_dict()
            for one in known.scores(
                [TextRow(a, second=b) for a, b, _ in rows], [row[2] for row in rows], "accuracy"
            )
        ]
        for name, rows in tests.items()
    }


# ---- neighbors by layer -------------------------------------------------------------------------


def neighbors(asked: argparse.Namespace) -> None:
    """How often the nearest sentence of the other language is the translation, layer by layer."""
    letters = Letters(asked.variant == "apart")
    model: Any = sememe.load(asked.kept / asked.variant, device=asked.device)
    texts = {name: xnli(asked.data, name, asked.max_test) for name in LANGUAGES}
    places = firsts([row[0] for row in texts["en"]])[:_NEIGHBORS]
    found: dict[str, list[dict[str, Any]]] = {}
    for layer in range(len(model.layer_widths)):
        units = {
            name: centered(
                model.embed(
                    [letters(texts[name][place][0], name) for place in places], layers=layer
                )
            )
            for name in LANGUAGES
        }
        for name in LANGUAGES:
            if name != "en":
                nearest = (units["en"] @ units[name].T).argmax(axis=1)
                num = int((nearest == np.arange(len(places))).sum())
                low, high = proportion_interval(num, len(places))
                own = {"layer": layer, "p_at_1": num / len(places), "interval": [low, high]}
                found.setdefault(name, []).append(own)
    save(
        asked.out / f"neighbors-{asked.variant}.json",
        {"variant": asked.variant, "num_sentences": len(places), "layers": found},
    )
    table(asked)


def firsts(texts: list[str]) -> list[int]:
    """The places of the first occurrences: a premise stands in three rows."""
    return list({text: place for place, text in reversed([*enumerate(texts)])}.values())[::-1]


def centered(vectors_ND: np.ndarray) -> np.ndarray:
    """Unit vectors around the mean of their language, which would otherwise decide."""
    moved_ND = vectors_ND - vectors_ND.mean(axis=0)
    return moved_ND / np.maximum(np.linalg.norm(moved_ND, axis=1, keepdims=True), 1e-9)


# ---- results ------------------------------------------------------------------------------------


def save(path: Path, found: dict[str, Any]) -> None:
    """Write the results of a stage, as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(found))
    scratch.replace(path)


def table(asked: argparse.Namespace) -> None:
    """Print all results as Markdown."""
    rows = [json.loads(path.read_text()) for path in sorted(asked.out.glob("*.json"))]
    names = list(LANGUAGES)
    print("| variant | seeds |", " | ".join(names), "|\n| --- | ---: |" + " ---: |" * len(names))
    for variant in SMOOTHING:
        own = [row for row in rows if "right" in row and row["variant"] == variant]
        if not own:
            continue
        scores = Scores()
        for row in own:
            for name in names:
                scores.add(name, row["right"][name])
        found = scores.to_dict()
        print(f"| {variant} | {len(own)} |", " | ".join(percents(found[name]) for name in names),
              "|")  # fmt: skip
        for number, one in enumerate(own[0]["baselines"]["en"]):
            cells = [own[0]["baselines"][name][number]["score"] for name in names]
            told = [f"{100 * score:.1f}" for score in cells]
            print(f"| {one['name']} | – |", " | ".join(told), "|")
    print("\n| variant | layer |", " | ".join(names[1:]), "|\n| --- | ---: |" + " ---: |" * 5)
    for row in rows:
        for number in range(len(row.get("layers", {}).get("de", ()))):
            own = [row["layers"][name][number] for name in names[1:]]
            cells = [f"{100 * one['p_at_1']:.1f}" for one in own]
            print(f"| {row['variant']} | {own[0]['layer']} |", " | ".join(cells), "|")


def percents(score: dict[str, Any]) -> str:
    """An accuracy with its interval; a star marks one above chance."""
    low, high = (100 * bound for bound in score["interval"])
    star = "*" if score["above_chance"] else ""
    several = f" ± {100 * score['deviation']:.1f}" if len(score["by_seed"]) > 1 else ""
    return f"{100 * score['accuracy']:.1f}{several} ({low:.1f}–{high:.1f}){star}"


def smoke(asked: argparse.Namespace) -> None:
    """Every stage with little text and few rows, to find what fails before what takes long."""
    with tempfile.TemporaryDirectory() as name:
        asked.kept, asked.out = Path(name) / "kept", Path(name) / "out"
        asked.megabytes, asked.vocab_size, asked.preset, asked.steps = 0.2, 5_000, "tiny", 5
        asked.max_train, asked.max_test, asked.seeds, asked.epochs = 200, 60, [1, 2], 1.0
        write_texts(asked)
        for asked.variant in ("shared", "apart"):
            for stage in ("tokenizer", "pretrain", "transfer", "neighbors"):
                begun = time.monotonic()
                STAGES[stage](asked)
                print(f"-- {asked.variant}, {stage}: {time.monotonic() - begun:.1f} s", flush=True)


STAGES: dict[str, Callable[[argparse.Namespace], None]] = {
    "smoke": smoke, "text": write_texts, "tokenizer": train_tokenizer, "pretrain": pretrain,
    "transfer": transfer, "neighbors": neighbors, "table": table,
}  # fmt: skip


def main() -> None:
    """Run a stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", choices=tuple(STAGES))
    parser.add_argument("variant", nargs="?", default="shared", help="a variant, or DATA for text")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kept", type=Path, default=Path("kept"))
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--megabytes", type=float, default=30.0)
    parser.add_argument("--preset", default="medium")
    parser.add_argument("--vocab-size", type=int, default=60_000)
    parser.add_argument("--budget", default="8m")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--max-train", type=int, default=60_000)
    parser.add_argument("--max-test", type=int, default=5_010)
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    if asked.stage == "text":
        asked.data = asked.data or Path(asked.variant)
    elif asked.stage != "table" and asked.variant not in SMOOTHING:
        parser.error(f"variant must be one of {', '.join(SMOOTHING)}")
    if asked.stage in ("smoke", "transfer", "neighbors") and asked.data is None:
        parser.error(f"{asked.stage} needs --data")
    STAGES[asked.stage](asked)


if __name__ == "__main__":
    main()
