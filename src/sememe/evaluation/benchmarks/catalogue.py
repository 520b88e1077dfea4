"""The benchmarks, English and Chinese: GLUE, texts, pairs, choices, names, answers.

Each is described by its official files, columns, task, metrics and published scores.
"""

from collections.abc import Mapping

from sememe.evaluation.benchmarks import published
from sememe.evaluation.benchmarks.description import Benchmark, Files, Kind, Places, by_name

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


# In the order of BERT's table; WNLI, which it omits, comes last.
GLUE = by_name(
    Benchmark(
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
            # MNLI's model predicts the diagnostic set.
            "AX": (
                Files("AX/AX.tsv", {**_PAIR, "id": "index"}),
                Files("diagnostic/diagnostic.tsv", {**_PAIR, "id": "index"}),
            ),
        },
    ),
    _task(
        "QQP",
        "do two questions ask the same",
        "pairs",
        {"label": "is_duplicate", "text": "question1", "second": "question2"},
        ("binary_f1", "accuracy"),
        test_columns={"text": "question1", "second": "question2", "id": "id"},
        positive="1",
    ),
    _task(
        "QNLI",
        "does a sentence hold the answer",
        "pairs",
        {"text": "question", "second": "sentence", "label": "label"},
        ("accuracy",),
    ),
    _task(
        "SST-2",
        "sentiment of film reviews",
        "classify",
        {"label": "label", "text": "sentence"},
        ("accuracy",),
    ),
    # Training and dev rows have no header: source, label, original mark, sentence.
    _task(
        "CoLA",
        "is a sentence acceptable English",
        "classify",
        {"label": "2", "text": "4"},
        ("matthews", "accuracy"),
        test_columns={"text": "sentence", "id": "index"},
    ),
    _task(
        "STS-B",
        "how similar are two sentences, from 0 to 5",
        "regress",
        {**_PAIR, "score": "score"},
        ("spearman", "pearson"),
    ),
    _task(
        "MRPC",
        "do two sentences say the same",
        "pairs",
        {"label": "Quality", "text": "#1 String", "second": "#2 String"},
        ("binary_f1", "accuracy"),
        positive="1",
    ),
    _task("RTE", "entailment", "pairs", {**_PAIR, "label": "label"}, ("accuracy",)),
    _task("WNLI", "Winograd's pronouns", "pairs", {**_PAIR, "label": "label"}, ("accuracy",)),
)

# Numbers of training rows, as in BERT's table.
SIZES = {
    "MNLI": "392k", "QQP": "363k", "QNLI": "108k", "SST-2": "67k", "CoLA": "8.5k",
    "STS-B": "5.7k", "MRPC": "3.5k", "RTE": "2.5k",
}  # fmt: skip


_PREMISE = {"text": "premise", "second": "hypothesis", "label": "label"}
_GOLD = {"text": "sentence1", "second": "sentence2", "label": "gold_label"}
_THREE = {"text": "1", "second": "2", "label": "3"}


def _splits(folder: str, columns: Mapping[str, str], ending: str, *stems: str) -> Places:
    return tuple(Files(f"{folder}/{stem}.{ending}", columns) for stem in stems)


_AG = {"label": "1", "text": "2+3"}
_FIRST = {"text": "1", "label": "2"}


_TWO = {"text": "sentence1", "second": "sentence2", "label": "label"}


LANGUAGES = (
    "en", "zh", "de", "fr", "es", "ru", "ar", "bg", "el", "hi", "sw", "th", "tr", "ur", "vi",
)  # fmt: skip


def xnli(source: str = "en") -> Benchmark:
    """XNLI: train on the rows of one language, evaluate in all (zero-shot transfer).

    Its training files are MNLI's translated rows; if they are missing, it trains on the dev rows of
    the language. The translated files spell one of the labels differently.
    """
    return Benchmark(
        name="xnli",
        title=f"XNLI, learned in {source}, asked in every language",
        kind="pairs",
        train=(
            Files(f"*/multinli.train.{source}.tsv", {"text": "1", "second": "2", "label": "3"}),
            Files(f"xnli*/train-{source}.tsv", _THREE),
            Files(f"xnli*/dev-{source}.tsv", _THREE),
            Files("xnli*/xnli.dev.tsv", _GOLD, {"language": source}),
        ),
        parts={
            f"test-{language}": (
                Files("xnli*/xnli.test.tsv", _GOLD, {"language": language}),
                Files(f"xnli*/test-{language}.tsv", _THREE),
            )
            for language in LANGUAGES
        },
        metrics=("accuracy",),
        published=published.XNLI,
        spellings={"contradictory": "contradiction"},
    )


def _race(split: str) -> Places:
    return (
        Files(f"race/{split}/*/*.txt", is_many=True),
        Files(f"race/*{split}.jsonl", is_many=True),
    )


SETS = by_name(
    Benchmark(
        name="snli",
        title="SNLI, entailment of captions",
        kind="pairs",
        train=(
            Files("snli*/snli_1.0_train.jsonl", _GOLD),
            Files("snli*/snli_1.0_train.txt", _GOLD),
            Files("snli*/train*.tsv", _PREMISE),
        ),
        parts={
            part: (
                Files(f"snli*/snli_1.0_{part}.jsonl", _GOLD),
                Files(f"snli*/snli_1.0_{part}.txt", _GOLD),
                Files(f"snli*/{part}*.tsv", _PREMISE),
            )
            for part in ("dev", "test")
        },
        chooses="dev",
        metrics=("accuracy",),
        published=published.SNLI,
        baseline="ELMo's baseline",
    ),
    Benchmark(
        name="scitail",
        title="SciTail, entailment from science exams",
        kind="pairs",
        train=_splits("scitail*/tsv_format", _THREE, "tsv", "scitail_1.0_train")
        + _splits("scitail*", _THREE, "tsv", "scitail_1.0_train", "train"),
        parts={
            part: _splits("scitail*/tsv_format", _THREE, "tsv", f"scitail_1.0_{part}")
            + _splits("scitail*", _THREE, "tsv", f"scitail_1.0_{part}", part)
            for part in ("dev", "test")
        },
        chooses="dev",
        metrics=("accuracy",),
        published=published.SCITAIL,
    ),
    Benchmark(
        name="sst5",
        title="Stanford Sentiment Treebank, five classes, whole sentences",
        kind="classify",
        train=(Files("sst5/train.txt"), Files("trees/train.txt"), Files("sst/train.txt")),
        parts={
            part: tuple(Files(f"{folder}/{part}.txt") for folder in ("sst5", "trees", "sst"))
            for part in ("dev", "test")
        },
        chooses="dev",
        metrics=("accuracy",),
        published=published.SST_5,
        baseline="ELMo's baseline",
    ),
    Benchmark(
        name="imdb",
        title="IMDb, sentiment of long reviews",
        kind="classify",
        train=(Files("imdb/train.tsv", {"label": "1", "text": "3"}),),
        parts={"test": (Files("imdb/test.tsv", {"label": "1", "text": "3"}),)},
        metrics=("accuracy",),
        published=published.IMDB,
        options={"length": 256},
    ),
    Benchmark(
        name="agnews",
        title="AG's news, four topics",
        kind="classify",
        train=(Files("ag*news*/train.csv", _AG), Files("ag*news*/train*.tsv", _FIRST)),
        parts={"test": (Files("ag*news*/test.csv", _AG), Files("ag*news*/test.tsv", _FIRST))},
        metrics=("accuracy",),
    ),
    Benchmark(
        name="race",
        title="RACE, questions of English exams with four answers",
        kind="choose",
        train=_race("train"),
        parts={
            "dev": _race("dev"),
            "test-middle": (
                Files("race/test/middle/*.txt", is_many=True),
                Files("race/middle_test.jsonl"),
            ),
            "test-high": (
                Files("race/test/high/*.txt", is_many=True),
                Files("race/high_test.jsonl"),
            ),
        },
        chooses="dev",
        metrics=("accuracy",),
        published=published.RACE,
        options={"length": 512},
    ),
    Benchmark(
        name="swag",
        title="SWAG, which ending is likely",
        kind="choose",
        train=(Files("swag*/train.csv"),),
        parts={"dev": (Files("swag*/val.csv"),)},
        metrics=("accuracy",),
        published=published.SWAG,
    ),
    Benchmark(
        name="storycloze",
        title="Story Cloze, which of two endings is right",
        kind="choose",
        # As in the paper: trains on the validation stories, because the training ones have no wrong
        # endings.
        train=(Files("story*cloze*/*cloze*val*.csv"),),
        parts={
            "test": (
                Files("story*cloze*/*cloze*test__*.csv"),
                Files("story*cloze*/*cloze*all_test*.csv"),
            )
        },
        metrics=("accuracy",),
        published=published.STORY_CLOZE,
    ),
    xnli(),
    Benchmark(
        name="chnsenticorp",
        title="ChnSentiCorp, sentiment of Chinese reviews",
        kind="classify",
        train=_splits("chnsenticorp", {"label": "label", "text": "text_a"}, "tsv", "train"),
        parts={
            part: _splits("chnsenticorp", {"label": "label", "text": "text_a"}, "tsv", part)
            for part in ("dev", "test")
        },
        chooses="dev",
        metrics=("accuracy",),
        published=published.CHNSENTICORP,
        options={"length": 256},
    ),
    Benchmark(
        name="thucnews",
        title="THUCNews, titles of Chinese news in ten classes",
        kind="classify",
        train=_splits("thucnews*", _FIRST, "txt", "train", "train*"),
        parts={part: _splits("thucnews*", _FIRST, "txt", part) for part in ("dev", "test")},
        chooses="dev",
        metrics=("accuracy", "macro_f1"),
    ),
    Benchmark(
        name="lcqmc",
        title="LCQMC, do two Chinese questions ask the same",
        kind="pairs",
        train=_splits("lcqmc", _THREE, "tsv", "train"),
        parts={part: _splits("lcqmc", _THREE, "tsv", part) for part in ("dev", "test")},
        chooses="dev",
        metrics=("accuracy",),
        published=published.LCQMC,
    ),
    Benchmark(
        name="ocnli",
        title="OCNLI, entailment in Chinese of its own",
        kind="pairs",
        train=_splits(
            "ocnli", _TWO, "json", "train", "train.50k", "train.30k", "train.10k", "train.3k"
        ),
        parts={"dev": _splits("ocnli", _TWO, "json", "dev")},
        metrics=("accuracy",),
        published=published.OCNLI,
    ),
)


TAG_SETS = by_name(
    Benchmark(
        name="conll2003",
        title="CoNLL-2003, English names",
        kind="tag",
        train=(Files("conll*/eng.train"), Files("conll*/train.txt")),
        parts={
            "dev": (Files("conll*/eng.testa"), Files("conll*/valid.txt"), Files("conll*/dev.txt")),
            "test": (Files("conll*/eng.testb"), Files("conll*/test.txt")),
        },
        chooses="dev",
        metrics=("entity_f1", "entity_precision", "entity_recall"),
        published=published.CONLL,
        baseline="ELMo's baseline",
    ),
    Benchmark(
        name="msra",
        title="MSRA, Chinese names",
        kind="tag",
        train=(Files("msra*/train.txt"),),
        parts={"test": (Files("msra*/test.txt"),)},
        metrics=("entity_f1", "entity_precision", "entity_recall"),
        published=published.MSRA,
    ),
    Benchmark(
        name="cluener",
        title="CLUENER, Chinese names of ten kinds",
        kind="tag",
        train=(Files("cluener*/train.json"),),
        parts={"dev": (Files("cluener*/dev.json"),)},
        metrics=("entity_f1", "entity_precision", "entity_recall"),
    ),
)
ANSWER_SETS = by_name(
    Benchmark(
        name="squad1.1",
        title="SQuAD 1.1",
        kind="answer",
        train=(Files("squad*/train-v1.1.json"),),
        parts={"dev": (Files("squad*/dev-v1.1.json"),)},
        metrics=("squad_f1", "squad_exact"),
        published=published.SQUAD_1,
        baseline="ELMo's baseline",
    ),
    Benchmark(
        name="squad2.0",
        title="SQuAD 2.0, with questions that have no answer",
        kind="answer",
        train=(Files("squad*/train-v2.0.json"),),
        parts={"dev": (Files("squad*/dev-v2.0.json"),)},
        metrics=("squad2_f1", "squad2_exact"),
        published=published.SQUAD_2,
    ),
    Benchmark(
        name="cmrc2018",
        title="CMRC 2018, answers in Chinese",
        kind="answer",
        train=(Files("cmrc*/cmrc2018_train.json"), Files("cmrc*/train.json")),
        parts={
            "dev": (Files("cmrc*/cmrc2018_dev.json"), Files("cmrc*/dev.json")),
            "trial": (Files("cmrc*/cmrc2018_trial.json"),),
        },
        metrics=("cmrc_f1", "cmrc_exact"),
        published=published.CMRC,
    ),
    Benchmark(
        name="drcd",
        title="DRCD, answers in traditional Chinese",
        kind="answer",
        train=(Files("drcd*/DRCD_training.json"),),
        parts={"dev": (Files("drcd*/DRCD_dev.json"),), "test": (Files("drcd*/DRCD_test.json"),)},
        chooses="dev",
        metrics=("cmrc_f1", "cmrc_exact"),
        published=published.DRCD,
    ),
)
