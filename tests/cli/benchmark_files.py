"""Small files in the official formats of benchmarks; every sentence in them is made up here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

GOOD = ["The red cat likes warm milk .", "A happy dog runs over the green field ."]
BAD = ["The cat cold never milk .", "No dog was happy on the old mat ."]
INFERENCE = ("entailment", "neutral", "contradiction")


def write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_rows(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table with tabs, with a line of names if there are some."""
    head = ["\t".join(names)] if names else []
    write(path, [*head, *("\t".join(map(str, row)) for row in rows)])


def write_json(path: Path, *records: Any) -> None:
    write(path, [json.dumps(record, ensure_ascii=False) for record in records])


def pairs(num: int) -> list[tuple[str, str]]:
    texts = GOOD + BAD
    return [(texts[i % 4], texts[(i * 3 + 1) % 4]) for i in range(num)]


# ---- GLUE -----------------------------------------------------------------------------------

PAIR_NAMES = {
    "MRPC": ("#1 String", "#2 String"),
    "QQP": ("question1", "question2"),
    "QNLI": ("question", "sentence"),
    "RTE": ("sentence1", "sentence2"),
    "WNLI": ("sentence1", "sentence2"),
}
STS = ("index", "genre", "filename", "year", "old_index", "source1", "source2")
MNLI = (
    "index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse",
    "sentence1_parse", "sentence2_parse", "sentence1", "sentence2",
)  # fmt: skip


def write_glue(folder: Path) -> None:
    """All nine tasks: 8 training rows, 6 dev rows, 4 test rows each."""
    for stem, num in (("train", 8), ("dev", 6), ("test", 4)):
        labels = [str(i % 2) for i in range(num)]
        _write_single(folder, stem, labels)
        _write_pairs(folder, stem, labels)
        _write_scores(folder, stem, num)
        _write_mnli(folder, stem, num)


def _write_single(folder: Path, stem: str, labels: list[str]) -> None:
    texts = [first for first, _ in pairs(len(labels))]
    if stem == "test":
        for task in ("CoLA", "SST-2"):
            write_rows(folder / task / "test.tsv", ["index", "sentence"], enumerate(texts))
        return
    marks = ["" if label == "1" else "*" for label in labels]
    origin = ["xx01"] * len(labels)
    rows = list(zip(origin, labels, marks, texts, strict=True))
    write_rows(folder / "CoLA" / f"{stem}.tsv", [], rows)
    rows = [(f"{text} ", label) for text, label in zip(texts, labels, strict=True)]
    write_rows(folder / "SST-2" / f"{stem}.tsv", ["sentence", "label"], rows)


def _write_pairs(folder: Path, stem: str, labels: list[str]) -> None:
    for task, names in PAIR_NAMES.items():
        own = labels
        if task in ("QNLI", "RTE"):
            own = ["entailment" if label == "1" else "not_entailment" for label in labels]
        # Quotation marks are characters like any other in these files.
        texts = [(f'" {first}', second) for first, second in pairs(len(labels))]
        index = "id" if task == "QQP" else "index"
        head, rows = [index, *names], [[i, *pair] for i, pair in enumerate(texts)]
        if task == "MRPC":
            head, rows = ["Quality", "#1 ID", "#2 ID", *names], [[0, 1, 2, *p] for p in texts]
            if stem == "test":
                head, rows = ["index", *head[1:]], [[i, *row[1:]] for i, row in enumerate(rows)]
            else:
                head[0] = "\ufeffQuality"
                rows = [[label, *row[1:]] for label, row in zip(own, rows, strict=True)]
        elif stem != "test":
            head.append("is_duplicate" if task == "QQP" else "label")
            rows = [[*row, label] for row, label in zip(rows, own, strict=True)]
        write_rows(folder / task / f"{stem}.tsv", head, rows)


def _write_scores(folder: Path, stem: str, num: int) -> None:
    rows = [
        [i, "news", "file", "2012", i, "none", "none", *pair] for i, pair in enumerate(pairs(num))
    ]
    head = [*STS, "sentence1", "sentence2"]
    if stem != "test":
        head, rows = [*head, "score"], [[*row, f"{0.7 * i:.3f}"] for i, row in enumerate(rows)]
    write_rows(folder / "STS-B" / f"{stem}.tsv", head, rows)


def _write_mnli(folder: Path, stem: str, num: int) -> None:
    rows = [
        [i, 1, "1n", "fiction", "( x )", "( y )", "(X)", "(Y)", *pair]
        for i, pair in enumerate(pairs(num))
    ]
    golds = [INFERENCE[i % 3] for i in range(num)]
    if stem == "train":
        labelled = [[*row, gold, gold] for row, gold in zip(rows, golds, strict=True)]
        write_rows(folder / "MNLI" / "train.tsv", [*MNLI, "label1", "gold_label"], labelled)
        return
    for part in ("matched", "mismatched"):
        path = folder / "MNLI" / f"{stem}_{part}.tsv"
        if stem == "test":
            write_rows(path, MNLI, rows)
            continue
        golds[-1] = "-"  # nobody agreed on the last row
        names = [*MNLI, *(f"label{i}" for i in range(1, 6)), "gold_label"]
        labelled = [[*row, *[gold] * 6] for row, gold in zip(rows, golds, strict=True)]
        write_rows(path, names, labelled)


# ---- texts, pairs, choices ------------------------------------------------------------------


def write_texts(folder: Path) -> None:
    """SNLI, SciTail, SST-5, RACE, SWAG, Story Cloze and XNLI."""
    for stem in ("train", "dev", "test"):
        golds = [*INFERENCE, "-"]
        write_json(
            folder / "snli_1.0" / f"snli_1.0_{stem}.jsonl",
            *(
                {"gold_label": gold, "sentence1": first, "sentence2": second}
                for gold, (first, second) in zip(golds, pairs(4), strict=True)
            ),
        )
        rows = [(*pair, "entails" if i % 2 else "neutral") for i, pair in enumerate(pairs(4))]
        write_rows(folder / "scitail" / f"scitail_1.0_{stem}.tsv", [], rows)
        trees = ["(3 (2 A) (4 (3 lovely) (2 cat)))", "(1 (2 No) (2 milk))", "(0 (0 Bad) (2 dog))"]
        write(folder / "sst5" / f"{stem}.txt", trees)
        _write_race(folder / "RACE" / stem)
    _write_endings(folder)
    # The translated training rows write one label in a way of their own.
    names = ("entailment", "neutral", "contradictory")
    rows = [(*pair, names[i % 3]) for i, pair in enumerate(pairs(6))]
    path = folder / "XNLI-MT-1.0" / "multinli" / "multinli.train.en.tsv"
    write_rows(path, ["premise", "hypo", "label"], rows)
    asked = [
        (language, gold, text, text)
        for language, text in (("en", GOOD[0]), ("zh", "猫喜欢牛奶。"))
        for gold in INFERENCE
    ]
    head = ["language", "gold_label", "sentence1", "sentence2"]
    write_rows(folder / "XNLI-1.0" / "xnli.test.tsv", head, asked)


def _write_race(folder: Path) -> None:
    article = {
        "article": " ".join(GOOD),
        "questions": ["Who runs ?", "The cat likes _ ."],
        "options": [["dog", "cat", "field", "milk"], ["milk", "red", "mat", "no"]],
        "answers": ["A", "A"],
        "id": "middle1.txt",
    }
    write_json(folder / "middle" / "1.txt", article)
    write_json(folder / "high" / "2.txt", article | {"answers": ["B", "D"]})


def _write_endings(folder: Path) -> None:
    head = ["", "video-id", "fold-ind", "startphrase", "sent1", "sent2", "gold-source"]
    head += [f"ending{i}" for i in range(4)] + ["label"]
    texts = [GOOD[0], GOOD[0], "The dog", "gold", "runs .", "sat .", "is milk .", "was red ."]
    rows = [[str(i), f"v{i}", str(i), *texts, str(i % 4)] for i in range(5)]
    for stem in ("train", "val"):
        write(folder / "swag" / f"{stem}.csv", map(",".join, [head, *rows]))
    head = ["InputStoryid", *(f"InputSentence{i}" for i in range(1, 5))]
    head += ["RandomFifthSentenceQuiz1", "RandomFifthSentenceQuiz2", "AnswerRightEnding"]
    rows = [[f"s{i}", *GOOD, *GOOD, GOOD[0], BAD[0], str(1 + i % 2)] for i in range(4)]
    for stem in ("val", "test"):
        name = f"cloze_test_{stem}__spring2016 - cloze_test_ALL_{stem}.csv"
        write(folder / "story_cloze" / name, map(",".join, [head, *rows]))


# ---- Chinese --------------------------------------------------------------------------------


def write_chinese(folder: Path) -> None:
    """ChnSentiCorp, LCQMC, OCNLI, MSRA, CLUENER, CMRC and DRCD."""
    reviews = [("1", "房间很好，我喜欢。"), ("0", "牛奶不好,太冷了！"), ("1", "猫很好。")]
    asked = [("猫喜欢什么", "猫爱什么", "1"), ("猫在哪", "狗在哪", "0")]
    for stem in ("train", "dev", "test"):
        write_rows(folder / "chnsenticorp" / f"{stem}.tsv", ["label", "text_a"], reviews)
        write_rows(folder / "lcqmc" / f"{stem}.tsv", [], asked)
    inferred = [
        {"sentence1": "猫喜欢牛奶", "sentence2": "猫不喜欢牛奶", "label": label, "label0": label}
        for label in [*INFERENCE, "-"]
    ]
    spans = {"name": {"小明": [[0, 1]]}, "address": {"北京": [[3, 4]]}}
    for stem in ("train", "dev"):
        write_json(folder / "ocnli" / f"{stem}.json", *inferred)
        record = {"text": "小明在北京喝牛奶", "label": spans}
        write_json(folder / "cluener" / f"{stem}.json", record, record)
    tagged = ["小 B-PER", "明 I-PER", "在 O", "北 B-LOC", "京 I-LOC", "", "猫 O", "跑 O", ""]
    for stem in ("train", "test"):
        write(folder / "msra_ner" / f"{stem}.txt", tagged)
    for path in ("cmrc2018/cmrc2018_train", "cmrc2018/cmrc2018_dev", "drcd/DRCD_dev"):
        _write_answers(folder / f"{path}.json")


def _write_answers(path: Path) -> None:
    where = [{"text": "北京", "answer_start": 3}, {"text": "在北京", "answer_start": 2}]
    questions = [
        {"id": "Q1", "question": "小明在哪里？", "answers": where},
        {"id": "Q2", "question": "他喝了什么？", "answers": [{"text": "牛奶", "answer_start": 7}]},
    ]
    paragraph = {"id": "P1", "context": "小明在北京喝了牛奶。", "qas": questions}
    write_json(path, {"version": "v1.0", "data": [{"title": "x", "paragraphs": [paragraph]}]})


# ---- English answers and names --------------------------------------------------------------


def write_squad(folder: Path) -> None:
    """SQuAD 1.1 and 2.0."""
    context = "The red cat likes warm milk . A dog runs over the green field ."
    cat = [{"text": "The red cat", "answer_start": 0}, {"text": "cat", "answer_start": 8}]
    dog = [{"text": "A dog", "answer_start": 30}]
    questions: list[dict[str, Any]] = [
        {"id": "a", "question": "What likes milk ?", "answers": cat, "is_impossible": False},
        {"id": "b", "question": "Who runs ?", "answers": dog, "is_impossible": False},
        {"id": "c", "question": "Who sings ?", "answers": [], "is_impossible": True},
    ]
    for version, own in (("1.1", questions[:2]), ("2.0", questions)):
        if version == "1.1":
            own = [{k: v for k, v in one.items() if k != "is_impossible"} for one in own]
        paragraph = {"context": context, "qas": own}
        content = {"version": version, "data": [{"title": "Cat", "paragraphs": [paragraph]}]}
        for stem in ("train", "dev"):
            write_json(folder / "squad" / f"{stem}-v{version}.json", content)


def write_conll(folder: Path) -> None:
    """CoNLL-2003 in IOB1, with its document marks."""
    lines = [
        "-DOCSTART- -X- O O", "", "John NNP I-NP I-PER", "Smith NNP I-NP I-PER",
        "likes VBZ I-VP O", "Berlin NNP I-NP I-LOC", "Paris NNP B-NP B-LOC", ". . O O", "",
        "The DT I-NP O", "cat NN I-NP O", "",
    ]  # fmt: skip
    for stem in ("train", "testa", "testb"):
        write(folder / "conll2003" / f"eng.{stem}", lines * 2)
