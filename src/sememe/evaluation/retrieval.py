"""Retrieval: models and a BEIR folder in; nDCG@10, Recall@100, MRR@10 and MAP out, beside BM25.

A BEIR folder holds corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and qrels/test.tsv
(query-id, corpus-id, score). A document is its title and text. Every model is scored by the
cosines of its vectors, and again together with BM25 (reciprocal rank fusion). N documents, Q
queries, D dimensions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.evaluation.results import (
    ResultTable,
    SystemRow,
    format_score,
    marked,
    package_version,
    plain,
)
from sememe.examples.docstring_tasks import Split, docstring_pairs
from sememe.metrics import Interval, PairedBootstrap, mean_interval, paired_bootstrap
from sememe.metrics.retrieval import Ranking, score_rankings
from sememe.models.inference import embed_parts
from sememe.models.registry import opened
from sememe.progress import Reporter, as_reporter
from sememe.search.lexical import BM25
from sememe.search.ranking import fuse, nearest_rows
from sememe.text.characters import is_mostly_chinese
from sememe.text.settings import TextSettings
from sememe.text.sources import JSON_ENDINGS, PARQUET_ENDINGS, TABLE_ENDINGS, Source, format_ending
from sememe.text.tables import FileTable, Record, open_table
from sememe.vectors.search import Found

MAIN = "nDCG@10"
LEXICAL = "BM25"
_DEPTH = 1_000  # results per query, as in BEIR
_TEXTS_AT_ONCE = 1_024
_QUERIES_AT_ONCE = 256
_MOST_BYTES = 1 << 30  # of vectors in memory; more are in a temporary file
_NUM_SAMPLED = 100  # documents that tell the language
_ENDINGS = (*JSON_ENDINGS, *PARQUET_ENDINGS, *TABLE_ENDINGS)

Judgments = dict[str, dict[str, int]]


@dataclass(frozen=True, kw_only=True)
class RetrievalSet:
    """Documents, queries and the relevance of documents for queries; documents may be a file."""

    name: str
    document_ids: Sequence[str]
    queries: Mapping[str, str]
    judgments: Judgments
    rows: Any  # a list of texts, or what opens the file of documents again

    def texts(self) -> Iterable[str]:
        """The text of every document, in the order of the ids."""
        return self.rows() if callable(self.rows) else self.rows


# ---- reading ------------------------------------------------------------------------------------


def read_beir(folder: str | Path, split: str = "test") -> RetrievalSet:
    """Open a BEIR folder; documents are read again for every model, and never all in memory."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}; a BEIR folder was expected.")
    corpus, asked = _file_in(folder, "corpus"), _file_in(folder, "queries")
    judged = _read_judgments(_judgment_file(folder, split))
    queries = {own: text for own, text in _read_texts(asked) if own in judged}
    if missing := next((query for query in judged if query not in queries), ""):
        raise InputError(f"{asked} has no query {missing!r}, which the judgments of {split} name.")
    ids = [own for own, _ in _read_texts(corpus)]
    known = set(ids)
    if len(known) < len(ids):
        raise InputError(f"{corpus} has {len(ids) - len(known):,} documents whose _id comes twice.")
    if not any(document in known for own in judged.values() for document in own):
        raise InputError(f"{corpus} has none of the documents that the judgments of {split} name.")
    return RetrievalSet(
        name=folder.resolve().name, document_ids=ids, queries=queries, judgments=judged,
        rows=lambda: (text for _, text in _read_texts(corpus)),
    )  # fmt: skip


def _file_in(folder: Path, name: str) -> Path:
    # Files are read several times, which a pipe cannot be.
    paths = [path for path in sorted(folder.glob(f"{name}.*")) if path.is_file()]
    found = [path for path in paths if format_ending(path) in _ENDINGS]
    if not found:
        raise InputError(
            f"{folder} holds no {name}.jsonl; a BEIR folder has corpus.jsonl, queries.jsonl and "
            "qrels/test.tsv."
        )
    return found[0]


def _judgment_file(folder: Path, split: str) -> Path:
    found = {path.stem: path for path in sorted(folder.glob("qrels/*.tsv")) if path.is_file()}
    if split not in found:
        others = f"; it has {', '.join(found)} (--split)" if found else ""
        raise InputError(f"{folder / 'qrels'} has no {split}.tsv{others}.")
    return found[split]


def _is_header(first: list[str], _: list[list[str]]) -> bool:
    return not first[-1].strip().lstrip("-").isdigit()


def _records(path: Path) -> Iterator[tuple[FileTable, Record]]:
    table = open_table(Source(path), TextSettings(), _is_header)
    for record in table.records:
        if record.problem:
            raise InputError(f"{record.where}: {record.problem}.")
        yield table, record


def _read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """The id and the text of every row, with its title before it."""
    for _, record in _records(path):
        cells = record.cells
        own = cells.get("_id", cells.get("id"))
        texts = [cells.get("title") or "", cells.get("text")]
        if own is None or not all(isinstance(text, str) for text in texts):
            raise InputError(f"{record.where}: a row needs _id and text, and may have a title.")
        yield str(own), " ".join(filter(None, texts))


def _read_judgments(path: Path) -> Judgments:
    judged: Judgments = {}
    for table, record in _records(path):
        try:
            query, document, relevance = (record.cells[name] for name in table.columns)
            judged.setdefault(query, {})[document] = int(relevance)
        except ValueError:
            raise InputError(
                f"{record.where}: a judgment is a query id, a document id and a whole number, with "
                "tabs between."
            ) from None
    judged = {query: own for query, own in judged.items() if max(own.values()) > 0}
    if not judged:
        raise InputError(f"{path} names no relevant document.")
    return judged


def built_in_set(split: Split = "test", limit: int | None = None) -> RetrievalSet:
    """Summaries of the built-in corpus as queries, the bodies of their docstrings as documents."""
    pairs = docstring_pairs(split, limit=limit)
    ids = [f"d{number}" for number in range(len(pairs))]
    queries: dict[str, str] = {}
    judgments: Judgments = {}
    names: dict[str, str] = {}  # the same summary twice is one query
    for document, pair in zip(ids, pairs, strict=True):
        query = names.setdefault(pair.text.lower(), f"q{len(names)}")
        queries.setdefault(query, pair.text)
        judgments.setdefault(query, {})[document] = 1
    return RetrievalSet(
        name="docstrings", document_ids=ids, queries=queries, judgments=judgments,
        rows=[pair.second or "" for pair in pairs],
    )  # fmt: skip


# ---- evaluating ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """The scores of one system: every metric with one value per query."""

    name: str
    scores: Mapping[str, np.ndarray]
    seed: int = 1

    def value(self, metric: str = MAIN) -> float:
        """The mean over the queries."""
        return float(self.scores[metric].mean())

    def interval(self, metric: str = MAIN) -> Interval:
        """Its 95 % bootstrap interval over the queries."""
        return mean_interval(self.scores[metric], seed=self.seed)

    def to_dict(self) -> dict[str, Any]:
        """The scores for JSON."""
        metrics = {
            name: {"value": self.value(name), "interval": self.interval(name)}
            for name in self.scores
        }
        return {"system": self.name, **plain(metrics)}


@dataclass(frozen=True, kw_only=True)
class RetrievalResult:
    """BM25, and each model alone and together with BM25, on the same queries."""

    data: str
    num_queries: int
    num_documents: int
    language: str
    systems: list[SystemScores]
    seed: int
    version: str = field(default_factory=package_version)

    def __getitem__(self, name: str) -> SystemScores:
        """The scores of a system: BM25, a model, or "a model + BM25"."""
        return {system.name: system for system in self.systems}[name]

    def compare(self, first: str, second: str, metric: str = MAIN) -> PairedBootstrap:
        """The difference second − first, tested on the same queries."""
        before, after = (self[name].scores[metric] for name in (first, second))
        return paired_bootstrap(before, after, seed=self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Everything for JSON, with the paired test of every two systems."""
        names = [system.name for system in self.systems]
        pairs = [(a, b) for index, a in enumerate(names) for b in names[index + 1 :]]
        return {
            "data": self.data,
            "num_queries": self.num_queries,
            "num_documents": self.num_documents,
            "language": self.language,
            "systems": [system.to_dict() for system in self.systems],
            "comparisons": [
                {"metric": MAIN, "names": [a, b], **plain(self.compare(a, b)._asdict())}
                for a, b in pairs
            ],
            "seed": self.seed,
            "version": self.version,
        }

    def table(self) -> ResultTable:
        """One row per system; the last columns compare it with BM25."""
        metrics = list(self.systems[0].scores)
        return ResultTable(
            title=f"{self.data}: {self.num_queries:,} queries, {self.num_documents:,} documents",
            headings=[
                "system", MAIN, "95 % interval", *metrics[1:], f"against {LEXICAL}", "p",
            ],
            rows=[self._row(system, metrics) for system in self.systems],
            notes=[
                f"+ {LEXICAL}: reciprocal rank fusion of both rankings. Scores × 100; each model "
                "of one training (one seed); intervals and paired tests by bootstrap over the "
                f"queries (seed {self.seed}); sememe {self.version}"
            ],
        )  # fmt: skip

    def _row(self, system: SystemScores, metrics: Sequence[str]) -> SystemRow:
        own = {name: format_score(100 * system.value(name)) for name in metrics}
        cells = [marked(own[MAIN], self.num_queries), range_cell(system.interval())]
        cells += [own[name] for name in metrics[1:]]
        gain = ["", ""]
        if system.name != LEXICAL:
            gain = gain_cells(self.compare(LEXICAL, system.name))
        return SystemRow(system.name, [*cells, *gain])

    def __str__(self) -> str:
        """The table in plain text."""
        return str(self.table())


def range_cell(interval: Interval) -> str:
    """An interval of a score in percent, as shown in tables."""
    return " – ".join(format_score(100 * bound) for bound in interval)


def gain_cells(found: PairedBootstrap) -> list[str]:
    """A difference with its interval, and its p-value, as shown in tables."""
    low, high = (f"{100 * bound:+.1f}" for bound in found.interval)
    chance = "< 0.001" if found.p_value < 0.001 else f"{found.p_value:.3f}"
    return [f"{100 * found.difference:+.1f} ({low} to {high})", chance]


def evaluate_retrieval(
    models: Any = (),
    data: str | Path | RetrievalSet | None = None,
    *,
    split: str = "test",
    language: str = "",
    device: str = "auto",
    seed: int = 1,
    progress: Reporter | bool | None = None,
) -> RetrievalResult:
    """Score how well models find the relevant documents of queries, beside BM25 and with it.

    `models` is a model or its path, or a list of them; `data` a BEIR folder, by default the
    summaries and bodies of the built-in corpus. `language` is BM25's; by default it is detected.
    """
    reporter = as_reporter(progress)
    if data is None or isinstance(data, RetrievalSet):
        found = data or built_in_set(split)  # type: ignore[arg-type]
    else:
        found = read_beir(data, split)
    own = language or _language_of(found.texts())
    if own == "zh" and not language:
        reporter.note("The documents are Chinese: BM25 splits them into Chinese words.")
    settings = TextSettings(language=own)
    reporter.note(f"Indexing {len(found.document_ids):,} documents for BM25.")
    lexical = BM25.build(found.texts(), settings).search([*found.queries.values()], _DEPTH)
    systems = [SystemScores(name=LEXICAL, scores=_scores(found, lexical), seed=seed)]
    for name, model in open_models(models, device):
        dense = _dense(model, found, reporter, name)
        both = [
            fuse([mine[0], theirs[0]], _DEPTH) for mine, theirs in zip(dense, lexical, strict=True)
        ]
        for title, results in ((name, dense), (f"{name} + {LEXICAL}", both)):
            systems.append(SystemScores(name=title, scores=_scores(found, results), seed=seed))
    return RetrievalResult(
        data=found.name, num_queries=len(found.queries), num_documents=len(found.document_ids),
        language=own, systems=systems, seed=seed,
    )  # fmt: skip


def open_models(models: Any, device: str) -> Iterator[tuple[str, Any]]:
    """Open one model after the other, each with its name: its path, or its kind with a number."""
    given = list(models) if isinstance(models, (list, tuple)) else [models]
    names = [str(one) for one in given if isinstance(one, (str, Path))]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise InputError(f"{twice} is given twice.")
    for number, one in enumerate(given, 1):
        model = opened(one, device=device, able="embed")
        yield str(one) if isinstance(one, (str, Path)) else f"{model.kind} {number}", model


def _language_of(texts: Iterable[str]) -> str:
    """Chinese if most letters of the first documents are; otherwise words are split as English."""
    letters = [char for text in islice(texts, _NUM_SAMPLED) for char in text if char.isalpha()]
    return "zh" if is_mostly_chinese(letters) else "en"


def _dense(model: Any, data: RetrievalSet, reporter: Reporter, name: str) -> list[Found]:
    """For each query the documents of nearest vectors."""
    num = len(data.document_ids)
    asked_QD = np.concatenate([*_embedded(model, data.queries.values(), "query")])
    first, blocks = _peeked(_embedded(model, data.texts(), "document"))
    size, dim = num * first.shape[1] * 4, first.shape[1]
    with tempfile.TemporaryFile() as file, reporter.task(f"embedding {name}", num, "texts") as task:
        make: Any = np.empty if size <= _MOST_BYTES else partial(np.memmap, file, mode="w+")
        rows_ND = make(shape=(num, dim), dtype=np.float32)
        done = 0
        for block in blocks:
            rows_ND[done : done + len(block)] = block
            done += len(block)
            task.update(done)
        is_known_Q = np.asarray(asked_QD.any(axis=1))
        if num_lost := int((~is_known_Q).sum()):
            reporter.note(f"{name}: {num_lost:,} queries have no word that the model knows.")
        results = [
            found
            for start in range(0, len(asked_QD), _QUERIES_AT_ONCE)
            for found in nearest_rows(rows_ND, asked_QD[start : start + _QUERIES_AT_ONCE], _DEPTH)
        ]
        # Without a vector there is no ranking, and none to fuse with that of BM25.
        nothing = np.empty(0, np.int64), np.empty(0)
        return [
            found if known else nothing for found, known in zip(results, is_known_Q, strict=True)
        ]


def _embedded(model: Any, texts: Iterable[str], role: str) -> Iterator[np.ndarray]:
    waiting = iter(texts)
    parts = iter(lambda: list(islice(waiting, _TEXTS_AT_ONCE)), [])
    return embed_parts(model, parts, role)


def _peeked(blocks: Iterator[np.ndarray]) -> tuple[np.ndarray, Iterator[np.ndarray]]:
    first = next(blocks)
    return first, chain([first], blocks)


def _scores(data: RetrievalSet, results: Sequence[Found]) -> dict[str, np.ndarray]:
    """The metrics of every query; as in BEIR, a document with the query's id is left out."""
    judged = {own for judgments in data.judgments.values() for own in judgments}
    judged |= data.queries.keys()
    numbers = {own: place for place, own in enumerate(data.document_ids) if own in judged}
    # Results of equal score are ordered by descending id.
    order = sorted(range(len(data.document_ids)), key=data.document_ids.__getitem__, reverse=True)
    places_N = np.empty(len(order), np.int64)
    places_N[order] = np.arange(len(order))

    def ranking(query: str, ids: np.ndarray, scores: np.ndarray) -> Ranking:
        is_other = ids != numbers.get(query, -1)
        ids, scores = ids[is_other], scores[is_other].astype(np.float32)
        ids = ids[np.lexsort((places_N[ids], -scores))]
        relevances = np.zeros(len(ids))
        for document, relevance in data.judgments[query].items():
            if relevance > 0 and document in numbers:
                relevances[ids == numbers[document]] = relevance
        ideal = sorted((own for own in data.judgments[query].values() if own > 0), reverse=True)
        return Ranking(relevances, np.array(ideal, np.float64))

    return score_rankings(
        ranking(query, *found) for query, found in zip(data.queries, results, strict=True)
    )
