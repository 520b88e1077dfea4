"""Measurements of docs/course.md that no command gives: negatives, direction, layers, features.

python benchmarks/course.py negatives [--corpus TEXT] [--data QUESTIONS] [--counts 2 5 10 20]
python benchmarks/course.py direction MODEL...
python benchmarks/course.py layers MODEL... --train TAGGED --test TAGGED [--column 1] [--rows 2000]
python benchmarks/course.py texts MODEL... --train ROWS --test ROWS [--rows 4000]
python benchmarks/course.py units TEXT [--language zh]
python benchmarks/course.py shares --out DIR [--seeds 3] [--steps 4000]
python benchmarks/course.py next-sentence --out DIR [--seeds 3] [--steps 4000]
python benchmarks/course.py masking-units TEXT --data DIR --out DIR [--seeds 3] [--steps 4000]

negatives: skip-gram by the number of noise words, one thread, mean of the seeds; the built-in text
and questions unless others are given. direction: how much the vector of the first word changes
when the last word is another one. layers: a linear head on the frozen vectors of single words, by
layer; accuracy over words. texts: a linear head on the
frozen mean vector of a text (second-to-last layer), accuracy. units: how
many masked tokens of held-out text a table of neighbors finds, by --unit. TAGGED is CoNLL's format,
also as .xz; ROWS are lines of text, tab and label.

shares, next-sentence, masking-units: tiny BERTs that differ in one option, pre-trained for equal
steps from equal initial weights (`untrained`: one step), then fine-tuned, and frozen under a linear
head. The first two read the docstrings whose modules no test row is from. Models and results stay
in --out, so that a run continues where it stopped and more seeds add up. One thread. DIR of --data
holds zh/thucnews_titles and zh/msra_ner.
"""

from __future__ import annotations

import argparse
import lzma
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from result_lines import append, read

import sememe
from sememe.ladder.heads import fit_classes

SENTENCES = ("The old king gave her the letter .", "The old king gave her the ring .")


def read_lines(path: str) -> list[str]:
    """The lines of a file, packed with xz or not."""
    packed = Path(path).read_bytes()
    return (lzma.decompress(packed) if path.endswith(".xz") else packed).decode().splitlines()


def read_tagged(path: str, column: int, num_rows: int) -> list[tuple[list[str], list[str]]]:
    """The first sentences of a file in CoNLL's format: words and one column of tags."""
    sentences: list[tuple[list[str], list[str]]] = [([], [])]
    for line in read_lines(path):
        fields = line.split()
        if fields and fields[0] != "-DOCSTART-":
            sentences[-1][0].append(fields[0])
            sentences[-1][1].append(fields[column])
        elif sentences[-1][0]:
            sentences.append(([], []))
    return [one for one in sentences if one[0]][:num_rows]


def accuracy(train_ND: np.ndarray, train: list[str], test_ND: np.ndarray, test: list[str]) -> float:
    """The accuracy of a linear head on frozen vectors."""
    labels = sorted(set(train))
    index_of = {label: index for index, label in enumerate(labels)}
    head = fit_classes(train_ND, np.array([index_of[one] for one in train]), len(labels), 0.01)
    found_N = head.scores(test_ND).argmax(1)
    return 100 * float(np.mean([labels[at] == one for at, one in zip(found_N, test, strict=True)]))


def measure_negatives(options: argparse.Namespace) -> None:
    """Print the scores of skip-gram for each number of negatives."""
    for count in options.counts:
        scores, seconds = [], []
        for seed in range(1, options.seeds + 1):
            begun_s = time.process_time()
            model = sememe.Word2Vec(
                workers=1, seed=seed, negatives=count, epochs=options.epochs, sample=options.sample
            ).fit(options.corpus)
            seconds.append(time.process_time() - begun_s)
            report = sememe.evaluate_words(model.vectors, options.data)
            scores.append({score.name: 100 * score.value for score in report.scores})
        means = ", ".join(
            f"{name} {statistics.mean(one[name] for one in scores):.1f}"
            f" ({', '.join(f'{one[name]:.1f}' for one in scores)})"
            for name in scores[0]
        )
        print(f"{count} negatives, {statistics.mean(seconds):.1f} s: {means}", flush=True)


def measure_direction(options: argparse.Namespace) -> None:
    """Print the change of a word's vector that a later word causes, and an earlier one."""
    first, second = (sentence.split() for sentence in SENTENCES)
    for name in options.models:
        model = sememe.load(name)
        for what, pair in (
            ("later", (first, second)),
            ("earlier", (first[::-1], second[::-1])),
        ):
            one_WD, other_WD = model.embed_words(list(pair))
            at = 2 if what == "later" else -3  # "king", far from the word that differs
            change = float(np.abs(one_WD[at] - other_WD[at]).max())
            print(f"{name}: {pair[0][at]!r} changes by {change:.6f} with {what} words")


def measure_layers(options: argparse.Namespace) -> None:
    """Print the accuracy of tags by layer."""
    train = read_tagged(options.train, options.column, options.rows)
    test = read_tagged(options.test, options.column, options.rows)
    train_tags, test_tags = ([tag for _, tags in part for tag in tags] for part in (train, test))
    for name in options.models:
        model = sememe.load(name)
        for layer in range(len(model.layer_widths)):
            rows = [
                np.concatenate(model.embed_words([words for words, _ in part], layers=layer))
                for part in (train, test)
            ]
            found = accuracy(rows[0], train_tags, rows[1], test_tags)
            print(f"{name}, layer {layer}: {found:.1f} of {len(test_tags):,} words", flush=True)


def measure_texts(options: argparse.Namespace) -> None:
    """Print the accuracy of labels from frozen mean vectors."""
    parts = [
        [line.rpartition("\t") for line in read_lines(path) if "\t" in line][: options.rows]
        for path in (options.train, options.test)
    ]
    labels = [[label for _, _, label in part] for part in parts]
    for name in options.models:
        model = sememe.load(name)
        rows = [
            model.embed([text for text, _, _ in part], layers="second-to-last") for part in parts
        ]
        found = accuracy(rows[0], labels[0], rows[1], labels[1])
        print(f"{Path(name).name}: {found:.1f} of {len(labels[1]):,} texts", flush=True)


def measure_units(options: argparse.Namespace) -> None:
    """Print the accuracy of counted neighbors on masked tokens, words and phrases."""
    from sememe.models.language.baselines import neighbor_metrics, token_counts
    from sememe.tokens.subwords.store import open_or_build_subwords

    text = sememe.TextSettings(language=options.language)
    tokenizer = sememe.SubwordTokenizer.train(options.text, text=text, vocab_size=8_192)
    store = open_or_build_subwords(options.text, tokenizer, text=text)
    counts = token_counts(store, tokenizer.vocab_size)
    for unit in ("token", "word", "phrase"):
        model = sememe.BERT("tiny", unit=unit)
        model.tokenizer, model.text = tokenizer, text
        store.validation_share = model.training.validation_share
        source = model.source(store, "validation")
        num_batches = model.training.evaluate_batches
        found = neighbor_metrics(store, source, tokenizer, counts, num_batches)
        print(unit, {name: round(value, 4) for name, value in found.items()}, flush=True)


# ---- tiny BERTs that differ in one option -------------------------------------------------------

LENGTH, VALIDATION_SHARE = 64, 0.05
SHARES = {  # [MASK], a random token, the token itself
    "80/10/10": {"mask_share": 0.8, "random_share": 0.1},
    "100/0/0": {"mask_share": 1.0, "random_share": 0.0},
    "80/20/0": {"mask_share": 0.8, "random_share": 0.2},
    "80/0/20": {"mask_share": 0.8, "random_share": 0.0},
}
# What the chosen positions of held-out text show, to see what a network predicts from it.
SHOWN = {"[MASK]": SHARES["100/0/0"], "a random token": {"mask_share": 0.0, "random_share": 1.0},
         "the token itself": {"mask_share": 0.0, "random_share": 0.0}}  # fmt: skip
UNTRAINED = {"steps": 1}
Scores = dict[str, list[float]]  # one for each fine-tuning, or for the frozen model
Measure = Callable[[Path, int], Scores]  # a model's folder and the seed of its pre-training in


class Corpus(NamedTuple):
    """A text as sub-words: what the models are pre-trained on and validated with."""

    store: Any
    tokenizer: Any
    text: sememe.TextSettings

    @classmethod
    def open(cls, data: Any, out: Path, language: str, vocab_size: int) -> Corpus:
        """Train a tokenizer on a text and encode it, or open what is there already."""
        from sememe.tokens.subwords.store import open_or_build_subwords

        text = sememe.TextSettings(language=language)
        if not (out / "tokenizer").exists():
            tokenizer = sememe.SubwordTokenizer.train(data, text=text, vocab_size=vocab_size)
            tokenizer.save(out / "tokenizer")
        tokenizer = sememe.SubwordTokenizer.load(out / "tokenizer")
        store = open_or_build_subwords(data, tokenizer, text=text, path=out / "store")
        return cls(store, tokenizer, text)

    @classmethod
    def of_docstrings(cls, out: Path) -> Corpus:
        """The docstrings that no test row of the built-in tasks is from."""
        from sememe.examples.docstring_tasks import docstring_texts

        return cls.open(docstring_texts("train"), out, "en", 4_096)

    def masked_accuracy(self, folder: Path, **masking: Any) -> float:
        """The share of chosen positions of held-out text that a BERT finds."""
        from sememe.examples.masking.batches import MaskedBatches
        from sememe.examples.masking.config import MaskingConfig
        from sememe.models.bert.network import MaskedObjective
        from sememe.training.device import Validation, choose_device
        from sememe.training.distributed import Processes

        self.store.validation_share = VALIDATION_SHARE
        source = MaskedBatches(
            self.store, self.tokenizer, MaskingConfig(**masking), length=LENGTH, batch_size=16,
            seed=1, next_sentence=False, split="validation",
        )  # fmt: skip
        objective = MaskedObjective(sememe.load(folder).network, has_pairs=False)
        found = Validation(source, 128)(objective, choose_device("cpu"), Processes())
        return 100 * found["masked_accuracy"]


def compare_bert(
    options: argparse.Namespace, corpus: Corpus, variants: dict[str, dict], measure: Measure
) -> None:
    """Pre-train every variant with every seed, measure it, and print means and deviations."""
    results = options.out / f"{options.command}.jsonl"
    done = read(results)
    for seed in range(1, options.seeds + 1):
        for name, more in variants.items():
            if any(one["variant"] == name and one["seed"] == seed for one in done):
                continue
            folder = options.out / f"{name.replace('/', '-')}-{seed}"
            begun_s = time.process_time()
            if not folder.exists():
                given = {"steps": options.steps, "next_sentence": False} | more
                model = sememe.BERT(
                    "tiny", length=LENGTH, workers=1, seed=seed, evaluate_batches=0,
                    learning_rate=options.learning_rate, validation_share=VALIDATION_SHARE, **given,
                )  # fmt: skip
                model.fit(corpus.store, tokenizer=corpus.tokenizer, text=corpus.text, out=folder)
            trained_s = time.process_time()
            scores = measure(folder, seed)
            scores["pre-training, s"] = [trained_s - begun_s]
            scores["measuring, s"] = [time.process_time() - trained_s]
            done.append({"variant": name, "seed": seed, "scores": scores})
            append(results, done[-1])
            said = (
                f"{key} {', '.join(f'{one:.1f}' for one in own)}" for key, own in scores.items()
            )
            print(f"{name}, seed {seed}: {'; '.join(said)}", flush=True)
    names = list(done[0]["scores"])
    print(f"| variant | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
    for variant in variants:
        own = [one["scores"] for one in done if one["variant"] == variant]
        cells = [
            mean_and_deviation([one for scores in own for one in scores[name]]) for name in names
        ]
        print(f"| {variant} | {' | '.join(cells)} |")


def mean_and_deviation(values: list[float]) -> str:
    """The mean of some runs ± their standard deviation, where there are several."""
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def finetuned(task: Any, folder: Path, train: Any, test: Any, seed: int) -> list[float]:
    """The test scores of two fine-tunings of one model; the weights of the last step."""
    found = []
    for own_seed in (2 * seed - 1, 2 * seed):
        fitted = task(str(folder), seed=own_seed, workers=1, epochs=3).fit(train, dev=False)
        found.append(100 * fitted.evaluate(test).figures[task.main_metric])
    return found


def builtin(name: str, num_rows: int) -> tuple[Any, Any]:
    """Training rows of a task made of the built-in corpus, and all that are held out."""
    from sememe.examples.docstring_tasks import docstring_rows

    held_out = [*docstring_rows(name, "dev"), *docstring_rows(name, "test")]
    return docstring_rows(name, "train", limit=num_rows), held_out


def frozen_texts(folder: Path, parts: tuple[Any, Any]) -> float:
    """The accuracy of a linear head on the mean vectors of texts, last layer."""
    model = sememe.load(folder)
    rows = [model.embed([row.text for row in part]) for part in parts]
    labels = [[row.label for row in part] for part in parts]
    return accuracy(rows[0], labels[0], rows[1], labels[1])


def frozen_words(folder: Path, parts: tuple[Any, Any]) -> float:
    """The accuracy over words of a linear head on the vectors of single words, last layer."""
    model = sememe.load(folder)
    rows = [np.concatenate(model.embed_words([list(words) for words, _ in part])) for part in parts]
    tags = [[tag for _, tags in part for tag in tags] for part in parts]
    return accuracy(rows[0], tags[0], rows[1], tags[1])


def measure_shares(options: argparse.Namespace) -> None:
    """Print what the shares of [MASK], random and kept tokens do to tasks without [MASK]."""
    corpus = Corpus.of_docstrings(options.out)
    packages, parameters = builtin("packages", 2_000), builtin("parameters", 2_000)
    words_and_tags = tuple([(row.words, row.tags) for row in part] for part in parameters)
    print(*(f"{len(test):,} test rows" for _, test in (packages, parameters)), flush=True)

    def measure(folder: Path, seed: int) -> Scores:
        return {
            "packages": finetuned(sememe.Classify, folder, *packages, seed),
            "parameters, F1": finetuned(sememe.Tag, folder, *parameters, seed),
            "packages, frozen": [frozen_texts(folder, packages)],
            "parameters, frozen": [frozen_words(folder, words_and_tags)],
            **{name: [corpus.masked_accuracy(folder, **own)] for name, own in SHOWN.items()},
        }

    compare_bert(options, corpus, SHARES | {"untrained": UNTRAINED}, measure)


def measure_next_sentence(options: argparse.Namespace) -> None:
    """Print what next-sentence prediction does to pairs and to single texts."""
    corpus = Corpus.of_docstrings(options.out)
    packages, summaries = builtin("packages", 2_000), builtin("summaries", 4_000)
    print(*(f"{len(test):,} test rows" for _, test in (packages, summaries)), flush=True)

    def measure(folder: Path, seed: int) -> Scores:
        return {
            "summaries": finetuned(sememe.Pairs, folder, *summaries, seed),
            "packages": finetuned(sememe.Classify, folder, *packages, seed),
            "packages, frozen": [frozen_texts(folder, packages)],
            "[MASK]": [corpus.masked_accuracy(folder, **SHOWN["[MASK]"])],
        }

    # The model without it is the first of `shares`, and shares its folder.
    variants = {"80/10/10": {}, "next-sentence": {"next_sentence": True}, "untrained": UNTRAINED}
    compare_bert(options, corpus, variants, measure)


def measure_masking_units(options: argparse.Namespace) -> None:
    """Print what masking characters, words or phrases does to two Chinese tasks."""
    corpus = Corpus.open(options.text, options.out, "zh", 8_192)
    folder = Path(options.data) / "zh"
    parts = [
        [
            tuple(line.split("\t"))
            for line in read_lines(str(folder / f"thucnews_titles/{part}.txt"))
        ]
        for part in ("train_33k", "test")
    ]
    # The test titles are sorted by label, so rows are taken at equal distances.
    titles = tuple(rows[:: len(rows) // options.rows][: options.rows] for rows in parts)
    names = tuple(
        read_tagged(str(folder / f"msra_ner/{part}.txt.xz"), 1, options.rows)
        for part in ("train", "test")
    )

    def measure(model: Path, seed: int) -> Scores:
        return {
            "titles": finetuned(sememe.Classify, model, *titles, seed),
            "names, F1": finetuned(sememe.Tag, model, *names, seed),
            "names, frozen": [frozen_words(model, names)],
            **{f"masked {unit}": [corpus.masked_accuracy(model, unit=unit, **SHOWN["[MASK]"])]
               for unit in ("token", "word")},
        }  # fmt: skip

    variants = {unit: {"unit": unit} for unit in ("token", "word", "phrase")}
    compare_bert(options, corpus, variants | {"untrained": UNTRAINED}, measure)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    negatives = commands.add_parser("negatives")
    negatives.add_argument("--corpus", action="append")
    negatives.add_argument("--data")
    negatives.add_argument("--counts", type=int, nargs="+", default=[2, 5, 10, 20])
    negatives.add_argument("--seeds", type=int, default=3)
    negatives.add_argument("--epochs", type=int, default=5)
    negatives.add_argument("--sample", type=float, default=1e-3)
    negatives.set_defaults(measure=measure_negatives)
    for name, measure in (
        ("direction", measure_direction), ("layers", measure_layers), ("texts", measure_texts),
    ):  # fmt: skip
        command = commands.add_parser(name)
        command.add_argument("models", nargs="+", metavar="MODEL")
        if name != "direction":
            command.add_argument("--train", required=True)
            command.add_argument("--test", required=True)
            command.add_argument("--rows", type=int, default=2_000 if name == "layers" else 4_000)
        if name == "layers":
            command.add_argument("--column", type=int, default=1)
        command.set_defaults(measure=measure)
    units = commands.add_parser("units")
    units.add_argument("text")
    units.add_argument("--language", default="zh")
    units.set_defaults(measure=measure_units)
    for name, measure in (
        ("shares", measure_shares), ("next-sentence", measure_next_sentence),
        ("masking-units", measure_masking_units),
    ):  # fmt: skip
        command = commands.add_parser(name)
        if name == "masking-units":
            command.add_argument("text")
            command.add_argument("--data", required=True)
            command.add_argument("--rows", type=int, default=2_000)
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--seeds", type=int, default=3)
        command.add_argument("--steps", type=int, default=4_000)
        # At 2e-3, the rate of the preset, 100/0/0 never learns more than frequencies.
        command.add_argument("--learning-rate", type=float, default=1e-3)
        command.set_defaults(measure=measure)
    options = parser.parse_args()
    options.measure(options)


if __name__ == "__main__":
    main()
