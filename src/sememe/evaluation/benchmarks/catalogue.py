"""Benchmarks of texts, pairs and choices beside GLUE, English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from sememe.evaluation.benchmarks import published
from sememe.evaluation.benchmarks.describing import Benchmark, Files, Places, by_name

_PREMISE = {"text": "premise", "second": "hypothesis", "label": "label"}
_GOLD = {"text": "sentence1", "second": "sentence2", "label": "gold_label"}
_THREE = {"text": "1", "second": "2", "label": "3"}


def _splits(folder: str, columns: Mapping[str, str], ending: str, *stems: str) -> Places:
    return tuple(Files(f"{folder}/{stem}.{ending}", columns) for stem in stems)


# ---- texts --------------------------------------------------------------------------------

_SST_5 = Benchmark(
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
)
_IMDB = Benchmark(
    name="imdb",
    title="IMDb, sentiment of long reviews",
    kind="classify",
    train=(Files("imdb/train.tsv", {"label": "1", "text": "3"}),),
    parts={"test": (Files("imdb/test.tsv", {"label": "1", "text": "3"}),)},
    metrics=("accuracy",),
    published=published.IMDB,
    options={"length": 256},
)
_AG = {"label": "1", "text": "2+3"}
_FIRST = {"text": "1", "label": "2"}
_AG_NEWS = Benchmark(
    name="agnews",
    title="AG's news, four topics",
    kind="classify",
    train=(Files("ag*news*/train.csv", _AG), Files("ag*news*/train*.tsv", _FIRST)),
    parts={"test": (Files("ag*news*/test.csv", _AG), Files("ag*news*/test.tsv", _FIRST))},
    metrics=("accuracy",),
)
_CHNSENTICORP = Benchmark(
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
)
_TITLES = Benchmark(
    name="thucnews",
    title="THUCNews, titles of Chinese news in ten classes",
    kind="classify",
    train=_splits("thucnews*", _FIRST, "txt", "train", "train*"),
    parts={part: _splits("thucnews*", _FIRST, "txt", part) for part in ("dev", "test")},
    chooses="dev",
    metrics=("accuracy", "macro_f1"),
)

# ---- pairs --------------------------------------------------------------------------------

_SNLI = Benchmark(
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
)
_SCITAIL = Benchmark(
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
)
_LCQMC = Benchmark(
    name="lcqmc",
    title="LCQMC, do two Chinese questions ask the same",
    kind="pairs",
    train=_splits("lcqmc", _THREE, "tsv", "train"),
    parts={part: _splits("lcqmc", _THREE, "tsv", part) for part in ("dev", "test")},
    chooses="dev",
    metrics=("accuracy",),
    published=published.LCQMC,
)
_TWO = {"text": "sentence1", "second": "sentence2", "label": "label"}
_OCNLI = Benchmark(
    name="ocnli",
    title="OCNLI, entailment in Chinese of its own",
    kind="pairs",
    train=_splits(
        "ocnli", _TWO, "json", "train", "train.50k", "train.30k", "train.10k", "train.3k"
    ),
    parts={"dev": _splits("ocnli", _TWO, "json", "dev")},
    metrics=("accuracy",),
    published=published.OCNLI,
)

# ---- several languages --------------------------------------------------------------------

LANGUAGES = (
    "en", "zh", "de", "fr", "es", "ru", "ar", "bg", "el", "hi", "sw", "th", "tr", "ur", "vi",
)  # fmt: skip


def xnli(source: str = "en") -> Benchmark:
    """XNLI: learn the rows of one language, be asked in all (zero-shot transfer).

    Its training files are MNLI's rows, translated; where they are missing, the dev rows of the
    language are learned. The translated files write one of the labels in another way.
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


# ---- choices ------------------------------------------------------------------------------


def _race(split: str) -> Places:
    return (
        Files(f"race/{split}/*/*.txt", is_many=True),
        Files(f"race/*{split}.jsonl", is_many=True),
    )


_RACE = Benchmark(
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
)
_SWAG = Benchmark(
    name="swag",
    title="SWAG, which ending is likely",
    kind="choose",
    train=(Files("swag*/train.csv"),),
    parts={"dev": (Files("swag*/val.csv"),)},
    metrics=("accuracy",),
    published=published.SWAG,
)
_STORY_CLOZE = Benchmark(
    name="storycloze",
    title="Story Cloze, which of two endings is right",
    kind="choose",
    # The authors' own practice: the validation stories are learned, the training ones have no
    # wrong endings.
    train=(Files("story*cloze*/*cloze*val*.csv"),),
    parts={
        "test": (
            Files("story*cloze*/*cloze*test__*.csv"),
            Files("story*cloze*/*cloze*all_test*.csv"),
        )
    },
    metrics=("accuracy",),
    published=published.STORY_CLOZE,
)

SETS = by_name(
    _SNLI, _SCITAIL, _SST_5, _IMDB, _AG_NEWS, _RACE, _SWAG, _STORY_CLOZE, xnli(),
    _CHNSENTICORP, _TITLES, _LCQMC, _OCNLI,
)  # fmt: skip
