"""Topics: rows grouped by the vectors of a model, each group with its most descriptive words.

Vectors are centered and brought to length 1, then clustered by k-means, or by HDBSCAN on their
principal components, which leaves rows without a topic. Words are ranked by c-TF-IDF
(Grootendorst 2022, 3.3). Rows and vectors are on disk; k-means reads the vectors from there.
N rows, K topics, D dimensions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.machine import cache_dir
from sememe.models.registry import opened
from sememe.options import changed
from sememe.plots.projection import draw_topics
from sememe.plots.style import Paths, check_paths
from sememe.progress import Reporter, as_reporter
from sememe.search.config import TopicsConfig
from sememe.search.lexical import words_of_texts
from sememe.search.rows import Row, detected_language
from sememe.search.spool import AT_ONCE, Spool, VectorFile, usable_rows, write_rows
from sememe.storage.folder import scratch_folder
from sememe.storage.tables import check_free, table_format
from sememe.text.settings import TextSettings
from sememe.vectors.search import unit_rows

NO_TOPIC = 0
_MOST_GUESSED = 30  # topics, if their number is not given
_MANY = 50_000  # rows from which k-means looks at a part at a time
_NUM_COMPONENTS = 20  # that HDBSCAN gets: distances in many dimensions are all alike
_NUM_EXAMPLES, _EXAMPLE_SIZE = 3, 100
_NUM_DRAWN = 5_000


class Topic(NamedTuple):
    """One topic: its number from 1 on (the largest), its size, words, and central rows."""

    number: int
    num_rows: int
    words: list[str]
    examples: list[str]


@dataclass(frozen=True, kw_only=True)
class TopicsResult:
    """The topics of a corpus; `of_rows` has the number of each row's topic, 0 for none."""

    topics: list[Topic]
    of_rows: np.ndarray = field(repr=False)
    language: str
    config: TopicsConfig
    out: str | None = None

    @property
    def num_left_out(self) -> int:
        """Rows without a topic: unlike all others (hdbscan), or without a known word."""
        return int((self.of_rows == NO_TOPIC).sum())

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON, except the topic of each row."""
        return {
            "num_rows": len(self.of_rows),
            "num_left_out": self.num_left_out,
            "language": self.language,
            "topics": [topic._asdict() for topic in self.topics],
            "options": self.config.to_dict(),
            "out": self.out,
        }

    def __str__(self) -> str:
        lines = [f"{one.number}\t{one.num_rows}\t{', '.join(one.words)}" for one in self.topics]
        return "\n".join(lines)


def topics(
    data: Any,
    model: Any,
    *,
    out: str | Path | None = None,
    picture: Paths | None = None,
    overwrite: bool = False,
    device: str = "auto",
    progress: Reporter | bool | None = None,
    **options: Any,
) -> TopicsResult:
    """Group rows by what they are about, and describe each group by words.

    `data` is one or several paths, a DataFrame, or an iterable of texts or dicts; `model` a model
    or its path. `out` is a table of all rows with their topic, `picture` a .png or .svg file. The
    options are those of TopicsConfig.
    """
    config = changed(TopicsConfig(), "topics", options)
    reporter, paths = as_reporter(progress), check_paths(picture) if picture else []
    out = None if out is None else Path(out)
    if out is not None:
        table_format(out)
        check_free(out, overwrite=overwrite)
    used = opened(model, device=device, able="embed")
    with scratch_folder(cache_dir() / "topics", ".rows") as folder, Spool(folder) as spool:
        vectors, known_N, language = _read(data, used, config, spool, folder, reporter)
        if num_unknown := len(spool) - len(known_N):
            reporter.note(f"{num_unknown:,} rows have no word that the model knows.")
        _center(vectors.mapped())
        of_known = _clustered(vectors.mapped(), config, reporter)
        of_rows = np.full(len(spool), NO_TOPIC, np.int64)
        of_rows[known_N] = of_known
        settings = TextSettings(language=language)
        words = _descriptive_words(spool, of_rows, settings, config.num_words)
        found = [
            Topic(number, int((of_rows == number).sum()), words[number], examples)
            for number, examples in _examples(vectors.mapped(), of_known, known_N, spool).items()
        ]
        if out is not None:
            rows = _table(spool, of_rows, words)
            write_rows(out, rows, {"topic": int, "topic_words": str}, reporter)
        if paths:
            _draw(vectors.mapped(), of_known, found, paths)
    return TopicsResult(
        topics=found, of_rows=of_rows, language=language, config=config,
        out=None if out is None else str(out),
    )  # fmt: skip


def _read(
    data: Any, model: Any, config: TopicsConfig, spool: Spool, folder: Path, reporter: Reporter
) -> tuple[VectorFile, np.ndarray, str]:
    """Embed all rows: the vectors that are not zero, their rows, the language of the words."""
    rows, vectors = usable_rows(data, config, reporter), VectorFile(folder / "vectors")
    language = config.language
    if not language:
        language, rows = detected_language(rows)
        if language == "zh":
            reporter.note("The rows are Chinese: they are split into Chinese words.")
    known: list[np.ndarray] = []
    with reporter.task("embedding", None, "rows") as task:
        for part in spool.filled(task.watch(rows)):
            found_ND = model.embed([row.text for row in part])
            is_known = found_ND.any(axis=1)
            known.append(len(spool) - len(part) + np.flatnonzero(is_known))
            vectors.add(found_ND[is_known])
    return vectors, np.concatenate(known), language


def _center(rows_ND: np.ndarray) -> None:
    """Change rows to their direction from the mean direction.

    Vectors of texts mostly share a large common part, which says nothing about topics.
    """
    total_D = np.zeros(rows_ND.shape[1])
    blocks = [slice(start, start + AT_ONCE) for start in range(0, len(rows_ND), AT_ONCE)]
    for own in blocks:
        units_ND = unit_rows(rows_ND[own])
        rows_ND[own] = units_ND
        total_D += units_ND.sum(axis=0)
    mean_D = total_D / max(1, len(rows_ND))
    for own in blocks:
        rows_ND[own] = unit_rows(rows_ND[own] - mean_D)


def _clustered(rows_ND: np.ndarray, config: TopicsConfig, reporter: Reporter) -> np.ndarray:
    """The topic of each row, numbered from 1 by size."""
    from threadpoolctl import threadpool_limits

    if len(rows_ND) < 2:
        raise InputError("At least two rows with words that the model knows are needed.")
    # Sums of several threads would differ in their last digits from run to run.
    with threadpool_limits(1, user_api="openmp"):
        if config.method == "kmeans":
            labels = _kmeans(rows_ND, config, reporter)
        else:
            labels = _hdbscan(rows_ND, config)
    sizes = Counter(labels[labels >= 0].tolist())
    if not sizes:
        raise OptionError(
            f"No topic has {config.min_size:,} rows: choose a smaller --min-size, or kmeans."
        )
    numbers = {label: number for number, (label, _) in enumerate(sizes.most_common(), 1)}
    return np.array([numbers.get(label, NO_TOPIC) for label in labels.tolist()])


def _kmeans(rows_ND: np.ndarray, config: TopicsConfig, reporter: Reporter) -> np.ndarray:
    from sklearn.cluster import KMeans, MiniBatchKMeans

    num = config.num_topics
    if not num:
        num = min(_MOST_GUESSED, max(2, round(math.sqrt(len(rows_ND) / 2))))
        reporter.note(f"Grouping into {num} topics (--num-topics).")
    if num > len(rows_ND):
        raise OptionError(f"{num:,} topics are more than the {len(rows_ND):,} rows.")
    options: dict[str, Any] = {"n_clusters": num, "random_state": config.seed, "n_init": 3}
    if len(rows_ND) >= _MANY:
        engine = MiniBatchKMeans(batch_size=8_192, **options)
    else:
        engine = KMeans(**options)
    labels: np.ndarray = engine.fit_predict(rows_ND)
    return labels


def _hdbscan(rows_ND: np.ndarray, config: TopicsConfig) -> np.ndarray:
    from sklearn.cluster import HDBSCAN
    from sklearn.decomposition import PCA

    if config.min_size > len(rows_ND):
        return np.full(len(rows_ND), -1)
    size = min(_NUM_COMPONENTS, *rows_ND.shape)
    points = PCA(size, random_state=config.seed).fit_transform(np.asarray(rows_ND))
    engine = HDBSCAN(min_cluster_size=config.min_size, copy=True)
    labels: np.ndarray = engine.fit_predict(points)
    return labels


# ---- words --------------------------------------------------------------------------------------


def stop_words(settings: TextSettings) -> frozenset[str]:
    """Words that say nothing about a topic: English or Chinese ones."""
    if settings.mode == "chinese":
        # Function words, pronouns and general verbs; single characters are left out anyway.
        listed = files(__package__) / "chinese_stop_words.txt"
        return frozenset(listed.read_text(encoding="utf-8").split())
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS) if settings.language.startswith("en") else frozenset()


def class_tf_idf(counts: Sequence[Counter[str]]) -> list[dict[str, float]]:
    """The weight of each word of each class: its frequency × log(1 + A / its count in all).

    A is the mean number of words per class (c-TF-IDF, Grootendorst 2022, equation 2).
    """
    total: Counter[str] = Counter()
    for own in counts:
        total.update(own)
    mean = total.total() / max(1, len(counts))
    return [
        {
            word: count / own.total() * math.log(1 + mean / total[word])
            for word, count in own.items()
        }
        for own in counts
    ]


def _descriptive_words(
    spool: Spool, of_rows: np.ndarray, settings: TextSettings, num: int
) -> dict[int, list[str]]:
    numbers = np.unique(of_rows[of_rows != NO_TOPIC]).tolist()
    counts: dict[int, Counter[str]] = {number: Counter() for number in numbers}
    texts: Iterable[str] = (row.text for row in spool)
    for topic, words in zip(of_rows.tolist(), words_of_texts(texts, settings), strict=True):
        if topic != NO_TOPIC:
            counts[topic].update(words)
    skipped, shortest = stop_words(settings), 2 if settings.mode == "chinese" else 3
    for own in counts.values():
        for word in [
            word for word in own
            if len(word) < shortest or word in skipped or not word.replace("'", "").isalpha()
        ]:  # fmt: skip
            del own[word]
    weights = class_tf_idf(list(counts.values()))
    # Ties by the word itself, so that the order never depends on that of the rows.
    best = [sorted(own, key=lambda word: (-own[word], word))[:num] for own in weights]
    return dict(zip(counts, best, strict=True))


# ---- results ------------------------------------------------------------------------------------


def _examples(
    rows_ND: np.ndarray, of_rows: np.ndarray, known_N: np.ndarray, spool: Spool
) -> dict[int, list[str]]:
    """The texts nearest to the middle of each topic; `known_N` are the numbers of the rows."""
    found = {}
    for number in np.unique(of_rows[of_rows != NO_TOPIC]).tolist():
        own = np.flatnonzero(of_rows == number)
        products = rows_ND[own] @ rows_ND[own].mean(axis=0)
        nearest = known_N[own[np.argsort(-products, kind="stable")[:_NUM_EXAMPLES]]]
        texts = [" ".join(spool[row].text.split()) for row in nearest.tolist()]
        found[number] = [text[:_EXAMPLE_SIZE] for text in texts]
    return found


def _table(
    spool: Spool, of_rows: np.ndarray, words: dict[int, list[str]]
) -> Iterator[tuple[dict[str, Any], Row]]:
    """All rows with the number and the words of their topic."""
    for topic, row in zip(of_rows.tolist(), spool, strict=True):
        yield {"topic": topic or None, "topic_words": " ".join(words.get(topic, []))}, row


def _draw(
    rows_ND: np.ndarray, of_rows: np.ndarray, found: Sequence[Topic], paths: Sequence[Path]
) -> None:
    step = max(1, len(rows_ND) // _NUM_DRAWN)
    labels = {topic.number: " ".join(topic.words[:3]) for topic in found}
    draw_topics(np.asarray(rows_ND[::step]), of_rows[::step], labels, list(paths))
