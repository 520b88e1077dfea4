"""The nine tasks of GLUE in their official files (Wang et al. 2019), each with its quirks."""

from __future__ import annotations

from collections.abc import Mapping

from sememe.evaluation.benchmarks.describing import Benchmark, Files, Kind, Places, by_name

_PAIR = {"text": "sentence1", "second": "sentence2"}


def _places(folder: str, stem: str, columns: Mapping[str, str]) -> Places:
    return (Files(f"{folder}/{stem}.tsv", columns),)


def _task(
    name: str,
    title: str,
    kind: Kind,
    columns: Mapping[str, str],
    metrics: tuple[str, ...],
    *,
    test_columns: Mapping[str, str] | None = None,
    positive: str = "",
) -> Benchmark:
    """A task with files train.tsv, dev.tsv and test.tsv."""
    answer = {"label", "score"}
    unlabelled = {role: column for role, column in columns.items() if role not in answer}
    return Benchmark(
        name=name,
        title=title,
        kind=kind,
        train=_places(name, "train", columns),
        parts={"dev": _places(name, "dev", columns)},
        metrics=metrics,
        unlabelled={name: _places(name, "test", test_columns or {**unlabelled, "id": "index"})},
        positive=positive,
    )


# Training and dev rows have no line of names: where it comes from, label, mark, sentence.
_COLA = _task(
    "CoLA",
    "is a sentence acceptable English",
    "classify",
    {"label": "2", "text": "4"},
    ("matthews", "accuracy"),
    test_columns={"text": "sentence", "id": "index"},
)
_SST_2 = _task(
    "SST-2",
    "sentiment of film reviews",
    "classify",
    {"label": "label", "text": "sentence"},
    ("accuracy",),
)
_MRPC = _task(
    "MRPC",
    "do two sentences say the same",
    "pairs",
    {"label": "Quality", "text": "#1 String", "second": "#2 String"},
    ("binary_f1", "accuracy"),
    positive="1",
)
_QQP = _task(
    "QQP",
    "do two questions ask the same",
    "pairs",
    {"label": "is_duplicate", "text": "question1", "second": "question2"},
    ("binary_f1", "accuracy"),
    test_columns={"text": "question1", "second": "question2", "id": "id"},
    positive="1",
)
_STS_B = _task(
    "STS-B",
    "how similar are two sentences, from 0 to 5",
    "regress",
    {**_PAIR, "score": "score"},
    ("spearman", "pearson"),
)
_QNLI = _task(
    "QNLI",
    "does a sentence hold the answer",
    "pairs",
    {"text": "question", "second": "sentence", "label": "label"},
    ("accuracy",),
)
_RTE = _task("RTE", "entailment", "pairs", {**_PAIR, "label": "label"}, ("accuracy",))
_WNLI = _task("WNLI", "Winograd's pronouns", "pairs", {**_PAIR, "label": "label"}, ("accuracy",))
_MNLI = Benchmark(
    name="MNLI",
    title="entailment in ten genres; mismatched: in genres that the training rows lack",
    kind="pairs",
    train=_places("MNLI", "train", {**_PAIR, "label": "gold_label"}),
    parts={
        "matched": _places("MNLI", "dev_matched", {**_PAIR, "label": "gold_label"}),
        "mismatched": _places("MNLI", "dev_mismatched", {**_PAIR, "label": "gold_label"}),
    },
    metrics=("accuracy",),
    unlabelled={
        "MNLI-m": _places("MNLI", "test_matched", {**_PAIR, "id": "index"}),
        "MNLI-mm": _places("MNLI", "test_mismatched", {**_PAIR, "id": "index"}),
        # The diagnostic set is answered by the model of MNLI.
        "AX": (
            Files("AX/AX.tsv", {**_PAIR, "id": "index"}),
            Files("diagnostic/diagnostic.tsv", {**_PAIR, "id": "index"}),
        ),
    },
)

# In the order of BERT's table; WNLI, which it leaves out, comes last.
GLUE = by_name(_MNLI, _QQP, _QNLI, _SST_2, _COLA, _STS_B, _MRPC, _RTE, _WNLI)

# Training rows as BERT's table prints them below the names.
SIZES = {
    "MNLI": "392k", "QQP": "363k", "QNLI": "108k", "SST-2": "67k", "CoLA": "8.5k",
    "STS-B": "5.7k", "MRPC": "3.5k", "RTE": "2.5k",
}  # fmt: skip
