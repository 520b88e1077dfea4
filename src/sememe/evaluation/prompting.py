"""Classification by prompts: a language model labels rows by how likely label words are.

    evaluate_prompts("runs/gpt", "train.tsv", "test.tsv", shots=(0, 1, 4))

A prompt has an instruction, k examples with their labels, and the new row, whose label is missing.
The label words are compared by their probabilities after it (Brown et al. 2020). Which words and
examples are in a prompt favors some labels whatever the row says; contextual calibration divides
by the probabilities for a row without content (Zhao et al. 2021). N rows, C labels.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.evaluation.results import (
    ResultTable,
    SystemRow,
    format_score,
    marked,
    package_version,
    plain,
)
from sememe.examples.labelled.rows import TextRow
from sememe.examples.labelled.texts import read_texts, sorted_labels
from sememe.metrics import (
    Interval,
    are_chinese,
    averages,
    class_scores,
    confusion_matrix,
    mean_interval,
    spread,
)
from sememe.metrics.baselines import TFIDF, baselines_of, majority_labels
from sememe.metrics.by_name import said_of
from sememe.models.registry import opened
from sememe.progress import SILENT, Reporter
from sememe.text.headers import is_number
from sememe.text.settings import TextSettings
from sememe.text.stream import cut_texts

Task = Literal["classify", "pairs"]
CONTENT_FREE = ("N/A", "[MASK]", "")  # as in the paper
TEMPLATES = {
    ("classify", False): "Text: {text}\nLabel: {label}",
    ("classify", True): "文本：{text}\n标签：{label}",
    ("pairs", False): "First: {text}\nSecond: {second}\nLabel: {label}",
    ("pairs", True): "第一句：{text}\n第二句：{second}\n标签：{label}",
}
_LEAST_TOKENS = 8  # of a text in a prompt
_CHOOSING_ROWS, _CANDIDATES = 64, 500  # rows and words for the choice of label words


@dataclass(frozen=True)
class Template:
    """How a row is written in a prompt; ends in its label."""

    pattern: str
    instruction: str = ""

    def __post_init__(self) -> None:
        """Raise an error for a pattern that cannot be completed by a label."""
        if "{text}" not in self.pattern or not self.pattern.endswith("{label}"):
            raise OptionError(
                f"The template must hold {{text}} and end in {{label}}, not {self.pattern!r}."
            )
        if self.pattern.count("{label}") != 1:
            raise OptionError("The template must hold {label} once.")

    @cached_property
    def _open(self) -> str:
        return self.pattern.removesuffix("{label}")

    @property
    def space(self) -> str:
        """The space between a prompt and the label word, which is part of the word's tokens."""
        return self._open[len(self._open.rstrip(" ")) :]

    def row(self, row: TextRow, word: str | None = None) -> str:
        """A row, with its label word or without."""
        text = self._open if word is not None else self._open.rstrip(" ")
        parts = {"{text}": row.text, "{second}": row.second or ""}
        filled = re.sub(r"\{text\}|\{second\}", lambda found: parts[found[0]], text)
        return filled + (word or "")

    def prompt(self, examples: Sequence[tuple[TextRow, str]], row: TextRow) -> str:
        """The instruction, the examples with their words, and the new row."""
        parts = [self.instruction] if self.instruction else []
        parts += [self.row(one, word) for one, word in examples]
        return "\n\n".join([*parts, self.row(row)])


class Prompter:
    """Labels rows with a language model and a template; `words` has the word of each label."""

    def __init__(self, model: Any, words: Mapping[str, str], template: Template) -> None:
        self.model, self.words, self.template = model, dict(words), template
        self.labels = list(words)
        self.num_cut = 0  # texts that were cut to fit

    def chances(
        self, examples: Sequence[TextRow], rows: Sequence[TextRow]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The probabilities of the labels of rows, (N, C), plain and calibrated."""
        shown = [(row, self.words[str(row.label)]) for row in examples]
        cut = self.cutter(shown)
        shown = [(cut(row), word) for row, word in shown]
        free = [TextRow(text, second=text) for text in CONTENT_FREE]
        prompts = [self.template.prompt(shown, cut(row)) for row in [*rows, *free]]
        texts = [self.template.space + word for word in self.words.values()]
        scores_NC = self.model.continuation_scores(prompts, texts)
        chances_NC = _softmax(scores_NC)
        bias_C = chances_NC[len(rows) :].mean(axis=0)
        plain_NC = chances_NC[: len(rows)]
        calibrated_NC = plain_NC / np.maximum(bias_C, 1e-12)
        return plain_NC, calibrated_NC / calibrated_NC.sum(axis=1, keepdims=True)

    def cutter(self, shown: Sequence[tuple[TextRow, str]]) -> Any:
        """A function that shortens the texts of a row so that every prompt fits."""
        most = self.model.max_tokens
        if not most:
            return lambda row: row
        empty = [(TextRow("", second=""), word) for _, word in shown]
        longest = max(self.words.values(), key=len)
        bare = self.template.prompt(empty, TextRow("", second="")) + longest
        # A token may be cut in two where texts begin and end.
        num_texts = (1 + ("{second}" in self.template.pattern)) * (len(shown) + 1)
        # The end-of-text token before a prompt takes one place.
        room = most - 1 - len(self.model.tokenize([bare])[0]) - 2 * num_texts
        each = room // num_texts
        if each < _LEAST_TOKENS:
            raise OptionError(
                f"A prompt with {len(shown)} examples does not fit: this model reads {most:,} "
                "tokens at once. Give fewer examples (--shots) or a shorter template."
            )

        def shortened(text: str) -> str:
            tokens = self.model.tokenize([text])[0]
            if len(tokens) <= each:
                return text
            self.num_cut += 1
            return text[: tokens[each - 1].end]

        return lambda row: TextRow(
            shortened(row.text),
            second=None if row.second is None else shortened(row.second),
            label=row.label,
        )


def _softmax(scores_NC: np.ndarray) -> np.ndarray:
    powers_NC = np.exp(scores_NC - scores_NC.max(axis=1, keepdims=True))
    return np.asarray(powers_NC / powers_NC.sum(axis=1, keepdims=True))


def choose_examples(rows: Sequence[TextRow], num: int, seed: int) -> list[TextRow]:
    """Draw examples, one label after the other, in random order."""
    drawn = random.Random(seed)
    labels = sorted_labels(str(row.label) for row in rows)
    drawn.shuffle(labels)
    own = {label: [row for row in rows if row.label == label] for label in labels}
    for label in labels:
        drawn.shuffle(own[label])
    found: list[TextRow] = []
    while len(found) < num and any(own.values()):
        found += [own[label].pop() for label in labels if own[label]]
    found = found[:num]
    drawn.shuffle(found)
    return found


def choose_words(
    model: Any, rows: Sequence[TextRow], labels: Sequence[str], template: Template, seed: int = 1
) -> dict[str, str]:
    """Find the word for each label that training rows of the label raise most.

    Candidates are frequent words of the rows that are one token each. A word's score for a label is
    its mean log probability after rows of that label, minus the mean over all labels.
    """
    is_chinese = are_chinese([row.text] for row in rows[:100])
    settings = TextSettings(language="zh" if is_chinese else "en", lowercase=True)
    counts = Counter(
        word
        for sentences in cut_texts([row.text for row in rows], settings)
        for sentence in sentences
        for word in sentence
        if word.isalpha()
    )
    found = [word for word, _ in counts.most_common(4 * _CANDIDATES)]
    sizes = map(len, model.tokenize([template.space + word for word in found]))
    words = [word for word, size in zip(found, sizes, strict=True) if size == 1][:_CANDIDATES]
    if len(words) < len(labels):
        raise InputError(
            f"The training rows have {len(words)} frequent words of one token: too few for "
            f"{len(labels)} labels. Give the label words (--words LABEL=WORD)."
        )
    shown = choose_examples(rows, _CHOOSING_ROWS * len(labels), seed)
    prompter = Prompter(model, {word: word for word in words}, template)
    cut = prompter.cutter([])
    texts = [template.space + word for word in words]
    scores_NW = model.continuation_scores([template.prompt([], cut(row)) for row in shown], texts)
    means_CW = np.array(
        [scores_NW[[row.label == label for row in shown]].mean(axis=0) for label in labels]
    )
    gains_CW = means_CW - means_CW.mean(axis=0)
    chosen: dict[str, str] = {}
    for _ in labels:
        label, word = divmod(int(gains_CW.argmax()), len(words))
        chosen[labels[label]] = words[word]
        gains_CW[label], gains_CW[:, word] = -np.inf, -np.inf
    return {label: chosen[label] for label in labels}


# ---- evaluation ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PromptScore:
    """Accuracy and macro F1 of one way to label the rows, for each seed, in parts of 1."""

    system: str
    shots: int = -1
    is_calibrated: bool = False
    accuracies: tuple[float, ...]
    macro_f1s: tuple[float, ...]
    interval: Interval  # of the mean accuracy, over the rows

    @property
    def accuracy(self) -> float:
        """The mean over the seeds."""
        return float(np.mean(self.accuracies))


@dataclass(frozen=True, kw_only=True)
class PromptResult:
    """The scores of prompts and baselines on the same rows, and what the prompts look like."""

    scores: list[PromptScore]
    labels: list[str]
    words: dict[str, str]
    num_rows: int
    num_given: int
    num_cut: int
    seeds: list[int]
    prompts: dict[int, str] = field(default_factory=dict)  # the first one, by number of examples
    version: str = field(default_factory=package_version)

    def score(self, system: str) -> PromptScore:
        """The score of a system by its name in the table, such as `4-shot, calibrated`."""
        return next(one for one in self.scores if one.system == system)

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON."""
        own = {name: value for name, value in vars(self).items() if name != "scores"}
        return plain({**own, "scores": [vars(one) for one in self.scores]})

    def __str__(self) -> str:
        """The table in plain text, in the language in use."""
        rows = []
        for one in self.scores:
            found, f1 = spread(one.accuracies), spread(one.macro_f1s)
            low, high = one.interval
            rows.append(
                SystemRow(
                    one.system,
                    [
                        marked(format_score(100 * found.mean), self.num_rows),
                        f"{format_score(100 * low)} – {format_score(100 * high)}",
                        format_score(100 * found.sd),
                        format_score(100 * f1.mean),
                    ],
                )
            )
        notes = [
            "label words: " + ", ".join(f"{label} = {word}" for label, word in self.words.items()),
            f"{self.num_rows:,} of {self.num_given:,} rows; {self.num_cut:,} texts of prompts were "
            f"cut; {len(self.seeds)} choices of examples, one model (one seed); 95 % intervals "
            f"over the rows; sememe {self.version}",
        ]
        headings = ["", "accuracy", "95 % interval", "± over examples", "macro F1"]
        return str(ResultTable(title="", headings=headings, rows=rows, notes=notes))


def evaluate_prompts(
    model: Any,
    train: Any,
    data: Any,
    *,
    task: Task = "classify",
    shots: Sequence[int] = (0, 1, 4),
    words: Mapping[str, str] | None = None,
    choose: bool = False,
    template: str = "",
    instruction: str = "",
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    max_rows: int = 500,
    against: Any = None,
    reading: Mapping[str, Any] | None = None,
    device: str = "auto",
    reporter: Reporter = SILENT,
) -> PromptResult:
    """Label held-out rows by prompts with each number of examples, plain and calibrated.

    `train` and `data` are labelled rows, files or lists; examples come from `train`. Each seed
    draws other examples. `words` gives the label words, `choose` finds them in the training rows;
    otherwise they are the labels. `against` is a model fine-tuned for the task, or its path.
    """
    _check_options(shots, seeds, max_rows, words, choose)
    known = opened(model, device=device, able="score")
    own = dict(reading or {})
    learned = read_texts(train, kind=task, on_note=reporter.note, **own)
    labels = sorted_labels(str(row.label) for row in learned)
    every = read_texts(data, kind=task, labels_known=labels, on_note=reporter.note, **own)
    rows = _drawn(every, max_rows)
    shape = Template(
        template or TEMPLATES[task, are_chinese([row.text] for row in rows[:100])], instruction
    )
    if task == "pairs" and "{second}" not in shape.pattern:
        raise OptionError("The template of pairs must hold {second}, too.")
    chosen = choose_words(known, learned, labels, shape) if choose else _words_of(labels, words)
    reporter.note("Label words: " + ", ".join(f"{own} = {word}" for own, word in chosen.items()))
    prompter = Prompter(known, chosen, shape)
    gold = [str(row.label) for row in rows]
    scores = _baselines(task, learned, rows, gold, labels)
    prompts: dict[int, str] = {}
    if against is not None:
        judge = opened(against, device=device, able="predict")
        given = [(row.text, row.second) if task == "pairs" else row.text for row in rows]
        said = [str(one) for one in said_of(task, judge.predict(given))]
        scores.append(_score("fine-tuned", [said], gold, labels))
    total = sum(len(seeds) if num else 1 for num in shots)
    with reporter.task("prompting", total, "prompts") as progress:
        done = 0
        for num in shots:
            found: dict[bool, list[list[str]]] = {False: [], True: []}
            for seed in seeds if num else seeds[:1]:
                examples = choose_examples(learned, num, seed)
                prompts.setdefault(num, _sample(prompter, examples, rows[0]))
                for is_calibrated, chances_NC in enumerate(prompter.chances(examples, rows)):
                    said = [labels[one] for one in chances_NC.argmax(axis=1)]
                    found[bool(is_calibrated)].append(said)
                done += 1
                progress.update(done)
            for is_calibrated, runs in found.items():
                name = f"{num}-shot" + (", calibrated" if is_calibrated else "")
                scores.append(
                    _score(name, runs, gold, labels, shots=num, is_calibrated=is_calibrated)
                )
    return PromptResult(
        scores=scores, labels=labels, words=chosen, num_rows=len(rows), num_given=len(every),
        num_cut=prompter.num_cut, seeds=list(seeds), prompts=prompts,
    )  # fmt: skip


def _check_options(
    shots: Sequence[int], seeds: Sequence[int], max_rows: int, words: Any, choose: bool
) -> None:
    if not shots or min(shots) < 0 or not seeds or max_rows < 1:
        raise OptionError("shots must be 0 or more, with at least one seed and one row.")
    if words and choose:
        raise OptionError("Give the label words or let them be chosen, not both.")


def _drawn(rows: Sequence[TextRow], most: int) -> list[TextRow]:
    if len(rows) <= most:
        return list(rows)
    return random.Random(1).sample(list(rows), most)


def _words_of(labels: Sequence[str], words: Mapping[str, str] | None) -> dict[str, str]:
    """The given word of each label, or the label itself."""
    given = dict(words or {})
    if unknown := [label for label in given if label not in labels]:
        raise OptionError(
            f"There is no label “{unknown[0]}” in the training rows; they have "
            f"{', '.join(labels[:20])}."
        )
    found = {label: given.get(label, label) for label in labels}
    numbers = [label for label in labels if label not in given and is_number(label)]
    if numbers:
        raise OptionError(
            f"The label {numbers[0]} is a number, which says nothing to a language model: give its "
            f"word (--words {numbers[0]}=WORD), or --choose-words."
        )
    if len(set(found.values())) < len(found):
        raise OptionError("Two labels have the same word: give each its own.")
    return found


def _sample(prompter: Prompter, examples: Sequence[TextRow], row: TextRow) -> str:
    shown = [(one, prompter.words[str(one.label)]) for one in examples]
    cut = prompter.cutter(shown)
    return prompter.template.prompt([(cut(one), word) for one, word in shown], cut(row))


def _baselines(
    task: Task, train: Sequence[TextRow], rows: Sequence[TextRow], gold: list[str],
    labels: list[str],
) -> list[PromptScore]:  # fmt: skip
    """Chance, the most frequent label, and logistic regression that learns from all rows."""
    chance = 1 / len(labels)
    # Every label is as likely for every row: precision of a label is its share, recall is chance.
    shares = [gold.count(label) / len(gold) for label in labels]
    f1 = float(np.mean([2 * p * chance / (p + chance) for p in shares if p] or [math.nan]))
    regression = baselines_of(task, train).predict(rows).get(TFIDF)
    said = [] if regression is None else [list(map(str, regression))]
    return [
        PromptScore(
            system="chance", accuracies=(chance,), macro_f1s=(f1,),
            interval=Interval(math.nan, math.nan),
        ),
        _score("majority", [majority_labels(train, rows)], gold, labels),
        *(_score(TFIDF, [own], gold, labels) for own in said),
    ]  # fmt: skip


def _score(
    system: str, runs: Sequence[Sequence[str]], gold: list[str], labels: list[str], **more: Any
) -> PromptScore:
    right_SN = np.array([[a == b for a, b in zip(said, gold, strict=True)] for said in runs])
    f1s = [
        averages(class_scores(confusion_matrix(gold, said, labels)))["macro"]["f1"] for said in runs
    ]
    return PromptScore(
        system=system, accuracies=tuple(right_SN.mean(axis=1).tolist()), macro_f1s=tuple(f1s),
        interval=mean_interval(right_SN.mean(axis=0)), **more,
    )  # fmt: skip
