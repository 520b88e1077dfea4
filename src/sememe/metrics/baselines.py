"""Baselines for labelled rows: training rows in, what simple rules predict for other rows out.

The most frequent label, tag or answer, and logistic regression on TF-IDF weights of words. They
learn from the same rows as the model that is scored. N rows, F features.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sememe.examples.labelled.rows import AnswerRow, TagRow, TextRow
from sememe.metrics.answers import are_chinese
from sememe.metrics.by_name import METRICS, interval_of
from sememe.metrics.comparison import Interval
from sememe.progress import FEW, format_interval
from sememe.randomness import random_order

TFIDF, TFIDF_RIDGE = "TF-IDF + logistic regression", "TF-IDF + ridge regression"
MOST_FREQUENT = {
    "classify": "most frequent label", "pairs": "most frequent label",
    "choose": "most frequent place", "regress": "mean score",
    "tag": "most frequent tag of each word", "answer": "most frequent answer",
}  # fmt: skip
_WHY_NONE = {
    "tag": "No TF-IDF + logistic regression: a tag belongs to one word, whose text has no weights.",
    "answer": "No TF-IDF + logistic regression: an answer is a span of its own text, not a label.",
}
ONE_SEED = "one seed"
UNKNOWN_SEEDS = "seeds not known"  # of a model that another program trained
THIS_MODEL = "this model"
NO_SEED = "–"  # of a baseline: the same rows always give the same predictions
_HEADINGS = ("95 % interval", "seeds")
Table = tuple[Sequence[str], list[Sequence[Any]], str]
_BETWEEN = re.compile(r"(?<=[\u3400-\u9fff])[ \t]+(?=[\u3400-\u9fff])")
# The rows of more text than this are sampled, so that a baseline takes seconds or a few minutes.
_MOST_CHARACTERS = 30_000_000
# The inverse penalties C of the regression that a tenth of the training rows chooses from.
_PENALTIES, _HELD_OUT, _MOST_HELD_OUT = (1.0, 10.0, 100.0), 0.1, 5_000
_MOST_ANSWERS = 1_000  # that are looked for in every context
_KEPT = 2  # baselines that stay in memory for other runs on the same rows


def majority_labels(train: Sequence[TextRow], rows: Sequence[TextRow]) -> list[str]:
    """The most frequent label of the training rows, for every row."""
    return [_most_frequent(Counter(str(row.label) for row in train))] * len(rows)


def majority_label_sets(train: Sequence[TextRow], rows: Sequence[TextRow]) -> list[list[str]]:
    """The most frequent label of the training rows as the only one, for every row."""
    counts = Counter(label for row in train for label in row.label_set)
    return [[_most_frequent(counts)] if counts else []] * len(rows)


def majority_tags(train: Sequence[TagRow], rows: Sequence[TagRow]) -> list[list[str]]:
    """The most frequent tag of each word; for an unseen word that of all words."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in train:
        for word, tag in zip(row.words, row.tags or (), strict=True):
            counts[word][tag] += 1
            counts[""][tag] += 1
    best = {word: _most_frequent(own) for word, own in counts.items()}
    return [[best.get(word, best[""]) for word in row.words] for row in rows]


def majority_answers(train: Sequence[AnswerRow], rows: Sequence[AnswerRow]) -> list[str]:
    """The most frequent answer of the training rows that occurs in the context."""
    counts = Counter(answer.text for row in train for answer in row.answers)
    ranked = sorted(counts, key=lambda text: (-counts[text], text))[:_MOST_ANSWERS]
    return [
        next((text for text in ranked if f" {text} " in f" {row.context} "), "") for row in rows
    ]


def mean_scores(train: Sequence[TextRow], rows: Sequence[TextRow]) -> list[float]:
    """The mean score of the training rows, for every row."""
    return [float(np.mean([row.score for row in train]))] * len(rows)


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda value: (-counts[value], value))


_MAJORITY: Mapping[str, Any] = {
    "classify": majority_labels, "pairs": majority_labels, "choose": majority_labels,
    "regress": mean_scores, "tag": majority_tags, "answer": majority_answers,
}  # fmt: skip


class TextRegression:
    """Logistic or ridge regression on TF-IDF weights of words and pairs of words.

    In Chinese they are characters and pairs of characters. Rows with two texts have the weights of
    both and their products; of several choices, each is a row of its own, right or wrong.
    """

    def __init__(self, kind: str, train: Sequence[TextRow]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.kind, self.has_pairs = kind, any(row.second is not None for row in train)
        texts = list(_texts(train))
        self.is_chinese = are_chinese([[text] for text in texts])
        if self.is_chinese:
            texts = [*map(_unspaced, texts)]
            self.words = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), sublinear_tf=True)
        else:
            # One-character words too: numbers, and `I`, which scikit-learn drops.
            self.words = TfidfVectorizer(
                token_pattern=r"(?u)\b\w+\b", ngram_range=(1, 2), sublinear_tf=True
            )
        self.words.fit(texts)
        features_NF, targets = self._features(train), self._targets(train)
        self.model, self.labels = _fitted(features_NF, targets)

    def _features(self, rows: Sequence[TextRow]) -> Any:
        from scipy.sparse import hstack

        edit = _unspaced if self.is_chinese else str
        first_NF, second_NF = (
            self.words.transform(map(edit, own))
            for own in zip(*map(_both, _parts(rows)), strict=True)
        )
        if not self.has_pairs and self.kind != "choose":
            return first_NF
        return hstack([first_NF, second_NF, first_NF.multiply(second_NF)], "csr")

    def _targets(self, rows: Sequence[TextRow]) -> Any:
        if self.kind == "choose":
            return [
                str(place == int(str(row.label)))
                for row in rows
                for place in range(len(row.choices or ()))
            ]
        if self.kind == "regress":
            return np.array([row.score for row in rows], np.float64)
        return [row.label if row.labels is None else tuple(row.labels) for row in rows]

    def predict(self, rows: Sequence[TextRow]) -> list[Any]:
        """The label, the labels or the score of each row; of choices the place of the best one."""
        features_NF = self._features(rows)
        if self.kind == "choose":
            chances = self.model.predict_proba(features_NF)[:, 1]
            ends = np.cumsum([len(row.choices or ()) for row in rows])
            return [str(int(own.argmax())) for own in np.split(chances, ends[:-1])]
        if self.labels is None:
            said = self.model.predict(features_NF)
            return said.tolist()
        is_said_NC = self.model.predict(features_NF)
        return [[self.labels[place] for place in np.flatnonzero(own)] for own in is_said_NC]


def _unspaced(text: str) -> str:
    """Chinese without the blanks that a segmentation into words puts between characters."""
    return _BETWEEN.sub("", text)


def _both(row: TextRow) -> tuple[str, str]:
    return row.text, row.second or ""


def _parts(rows: Sequence[TextRow]) -> Iterable[TextRow]:
    """The rows; of several choices, one row for each."""
    for row in rows:
        if row.choices is None:
            yield row
        for choice in row.choices or ():
            yield TextRow(f"{row.text} {row.second or ''}", choice)


def _texts(rows: Sequence[TextRow]) -> Iterable[str]:
    for row in rows:
        yield row.text
        yield from (text for text in (row.second, *(row.choices or ())) if text is not None)


def _fitted(features_NF: Any, targets: Any) -> tuple[Any, list[str] | None]:
    """The fitted regression, and the labels if a row may have several."""
    from sklearn.linear_model import Ridge

    if isinstance(targets, np.ndarray):
        return Ridge(alpha=1.0, solver="sparse_cg", random_state=1).fit(features_NF, targets), None
    labels = None
    if any(isinstance(target, tuple) for target in targets):
        labels = sorted({label for target in targets for label in target})
        places = {label: place for place, label in enumerate(labels)}
        is_true_NC = np.zeros((len(targets), len(labels)), np.int64)
        for row, target in zip(is_true_NC, targets, strict=True):
            row[[places[label] for label in target]] = 1
        targets = is_true_NC
    else:
        targets = np.array(targets)
    order, num_held = random_order(len(targets), 2), round(_HELD_OUT * len(targets))
    held, rest = np.split(order, [min(num_held, _MOST_HELD_OUT)])
    scores = {}
    # Too few rows, or too few labels among them, choose nothing.
    if num_held >= FEW and len(np.unique(targets[rest], axis=0)) > 1:
        for penalty in _PENALTIES:
            model = _regression(penalty).fit(features_NF[rest], targets[rest])
            scores[penalty] = float((model.predict(features_NF[held]) == targets[held]).mean())
    best = max(scores, key=lambda penalty: scores[penalty], default=_PENALTIES[1])
    return _regression(best).fit(features_NF, targets), labels


def _regression(penalty: float) -> Any:
    """A logistic regression for each label against the others: much faster than one for all."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(LogisticRegression(C=penalty, solver="liblinear"))


# ---- scores -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BaselineScore:
    """The score of one baseline with its interval over the rows; `why` if there is none."""

    name: str
    score: float = math.nan
    interval: Interval = Interval(math.nan, math.nan)
    num_train: int = 0
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values."""
        low, high = self.interval
        is_known, has_interval = math.isfinite(self.score), math.isfinite(low)
        return {
            "name": self.name,
            "score": self.score if is_known else None,
            "interval": [low, high] if has_interval else None,
            "num_train": self.num_train,
            "why": self.why,
        }


class Baselines:
    """The baselines of a task, fitted on its training rows when they are first needed."""

    def __init__(self, kind: str, train: Sequence[Any]) -> None:
        self.kind, self.train = kind, list(train)
        self.has_sets = any(getattr(row, "labels", None) is not None for row in self.train)

    @cached_property
    def regression(self) -> tuple[TextRegression, int] | str:
        """The regression and the number of its training rows, or why there is none."""
        if self.kind not in ("classify", "pairs", "regress", "choose"):
            return _WHY_NONE[self.kind]
        rows = _sampled(self.train)
        try:
            return TextRegression(self.kind, rows), len(rows)
        except ValueError as error:  # no text has a word, or all rows have one label
            return f"No {self.name}: {str(error).rstrip('.')}."

    @property
    def name(self) -> str:
        """The name of the regression."""
        return TFIDF_RIDGE if self.kind == "regress" else TFIDF

    def predict(self, rows: Sequence[Any]) -> dict[str, list[Any]]:
        """What each baseline predicts for the rows, by its name."""
        majority = majority_label_sets if self.has_sets else _MAJORITY[self.kind]
        said = {MOST_FREQUENT[self.kind]: majority(self.train, rows)}
        if not isinstance(self.regression, str):
            said[self.name] = self.regression[0].predict(rows)
        return said

    def scores(
        self, rows: Sequence[Any], gold: Sequence[Any], metric: str, positive: str = "1"
    ) -> list[BaselineScore]:
        """The score of each baseline by a metric of METRICS, the best first."""
        found = []
        for name, said in self.predict(rows).items():
            num = len(self.train)
            if name == self.name and not isinstance(self.regression, str):
                num = self.regression[1]
            found.append(
                BaselineScore(
                    name=name,
                    score=METRICS[metric].score(gold, said, positive),
                    interval=interval_of(metric, gold, said, positive),
                    num_train=num,
                )
            )
        found.sort(key=lambda one: -one.score if math.isfinite(one.score) else math.inf)
        if isinstance(self.regression, str):
            found.append(BaselineScore(name=self.name, why=self.regression))
        return found


_known: OrderedDict[str, Baselines] = OrderedDict()


def baselines_of(kind: str, train: Sequence[Any]) -> Baselines:
    """The baselines of these rows; several runs on the same rows share them."""
    digest = hashlib.blake2b(kind.encode(), digest_size=16)
    for row in train:
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    key = digest.hexdigest()
    if key not in _known:
        _known[key] = Baselines(kind, train)
    _known.move_to_end(key)
    while len(_known) > _KEPT:
        _known.popitem(last=False)
    return _known[key]


def _sampled(rows: Sequence[TextRow]) -> Sequence[TextRow]:
    """The rows, or of much text a part of them, drawn evenly and always the same."""
    num_characters = sum(len(text) for text in _texts(rows))
    if num_characters <= _MOST_CHARACTERS:
        return rows
    num = max(FEW, len(rows) * _MOST_CHARACTERS // num_characters)
    return [rows[place] for place in np.sort(random_order(len(rows), 1)[:num])]


# ---- how sure a score is, and its baselines ---------------------------------------------


def seeds_note(num_seeds: int, *, is_ensemble: bool = False) -> str:
    """Which runs a score is from."""
    if num_seeds < 2:
        return ONE_SEED
    return f"{'ensemble' if is_ensemble else 'best'} of {num_seeds} seeds"


def interval_line(
    name: str, metric: str, interval: Sequence[float] | None, seeds: str = ONE_SEED
) -> str:
    """The interval of a score over the rows, and its seeds, as a line of text."""
    told = f"{name}: 95 % interval of {metric.replace('_', ' ')} over the rows"
    return f"{told} {format_interval(interval)}; {seeds}"


def beside_table(
    name: str,
    metric: str,
    score: float,
    interval: Sequence[float] | None,
    seeds: str,
    baselines: Sequence[Mapping[str, Any]],
) -> Table:
    """Headings, rows and title: the model, and baselines that learned from the same rows.

    `baselines` are those of `metrics.baselines`, as JSON values.
    """
    rows: list[Sequence[Any]] = [(THIS_MODEL, f"{score:.4f}", format_interval(interval), seeds)]
    for one in baselines:
        if not one["why"]:
            shown = "–" if one["score"] is None else f"{one['score']:.4f}"
            rows.append((one["name"], shown, format_interval(one["interval"]), NO_SEED))
    title = f"{name} rows: beside baselines that learned from the same training rows"
    return ("system", metric.replace("_", " "), *_HEADINGS), rows, title


def reasons(baselines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why there are no others, as lines of text."""
    return [str(one["why"]) for one in baselines if one["why"]]


def names_beside(baselines: Sequence[Mapping[str, Any]], seeds: str) -> list[str]:
    """The words of the table, to be translated on a terminal."""
    return [THIS_MODEL, seeds, *(str(one["name"]) for one in baselines)]
