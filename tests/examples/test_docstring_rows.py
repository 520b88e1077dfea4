"""The four tasks of the built-in corpus: right labels, nothing given away, nothing leaked."""

import random
from collections import Counter

import pytest

from sememe.errors import InputError, OptionError
from sememe.examples import docstring_tasks, tagging
from sememe.examples.docstring_tasks import (
    NAMES,
    ORDERS,
    Docstring,
    answer_rows,
    docstring_pairs,
    docstring_rows,
    docstring_texts,
    passages,
    shingles,
    split_of,
    without_repeats,
)
from sememe.examples.labelled.answers import read_answers
from sememe.examples.labelled.tags import read_tags
from sememe.examples.labelled.texts import read_texts
from sememe.text.docstrings import Parameter

WORDS = [
    "wave", "graph", "leaf", "axis", "table", "river", "token", "plane", "corner", "signal",
    "limit", "order", "tree",
]  # fmt: skip


def made_up(num_each: int = 40) -> list[Docstring]:
    """Docstrings of two packages in many modules, all different."""
    rng = random.Random(1)
    found = []
    for package in ("numpy", "scipy"):
        for index in range(num_each):
            text = [" ".join(rng.choices(WORDS, k=14)) for _ in range(3)]
            described = tuple(
                Parameter((f"{name}_{index}",), kind, " ".join(rng.choices(WORDS, k=6)) + ". More.")
                for name, kind in (("first", "int or None"), ("second", ""), ("third", "Wave"))
            )
            module = f"{package}.module{index}"
            found.append(Docstring(package, module, f"{package} " + "\n".join(text), described))
    return found


@pytest.fixture
def corpus(monkeypatch):
    docstrings = made_up()
    monkeypatch.setattr(docstring_tasks, "_FEWEST_ROWS", 20)
    monkeypatch.setattr(docstring_tasks, "collect", lambda packages, on_file: docstrings)
    docstring_tasks._collected.cache_clear()
    yield docstrings
    docstring_tasks._collected.cache_clear()


def test_a_damaged_copy_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path))
    made, num_read = made_up(3), []
    monkeypatch.setattr(docstring_tasks, "_read", lambda *_: num_read.append(1) or made)
    for _ in range(2):
        assert docstring_tasks.collect() == made
    assert len(num_read) == 1
    (path,) = tmp_path.rglob("*-docstrings.json")
    for data in (path.read_text().replace("numpy ", "nunpy ", 1), "", "[]", "null"):
        path.write_text(data)
        assert docstring_tasks.collect() == made
    assert len(num_read) == 5


def all_rows(name):
    return {split: list(docstring_rows(name, split)) for split in ("train", "dev", "test")}


@pytest.mark.parametrize("name", NAMES)
def test_splits_share_no_module_and_order_is_fixed(corpus, name):
    by_split = all_rows(name)
    modules = {split: {row.source.split()[1] for row in rows} for split, rows in by_split.items()}
    assert all(modules.values())
    for split, own in modules.items():
        assert all(split_of(module) == split for module in own)
    assert all_rows(name) == by_split
    assert list(docstring_rows(name, limit=5)) == by_split["train"][:5]


def test_packages_are_balanced_and_nameless(corpus):
    rows = docstring_rows("packages")
    counts = Counter(row.label for row in rows)
    assert set(counts) == {"numpy", "scipy"} and len(set(counts.values())) == 1
    assert not any("numpy" in row.text or "scipy" in row.text for row in rows)
    hidden = docstring_tasks.hide_names(
        "Use np.array, plt or PyTorch's tensors; torchvision. An enriched"
    )
    assert hidden == "Use or tensors; An enriched"


def test_half_of_the_bodies_are_of_another_docstring(corpus):
    rows = docstring_rows("summaries")
    counts = Counter(row.label for row in rows)
    assert abs(counts["same"] - counts["other"]) <= 2
    own = {docstring.summary: docstring for docstring in corpus}
    bodies = {docstring.body[:40]: docstring.package for docstring in corpus}
    for row in rows:
        mine = own[next(text for text in own if text.startswith(row.text))]
        assert (mine.body.startswith(row.second)) == (row.label == "same")
        assert bodies[row.second[:40]] == mine.package
    assert len({row.second for row in rows}) == len(rows)


def test_parameters_have_tags_that_fit_their_words(corpus):
    rows = docstring_rows("parameters")
    for row in rows:
        assert len(row.words) == len(row.tags)
        assert all(
            row.text[start:end] == word
            for word, start, end in zip(row.words, row.starts, row.ends, strict=True)
        )
        spans = [
            (span.type, " ".join(row.words[span.start : span.end]))
            for span in tagging.spans_of(row.tags, "iob2")
        ]
        assert {text for kind, text in spans if kind == "TYPE"} <= {"int or none", "wave"}
        assert all("_" in text for kind, text in spans if kind == "NAME")
        assert not any(mark in row.text for mark in ":,()\n") and row.text == row.text.lower()


def test_types_are_exact_spans_and_some_are_not_told(corpus):
    rows = docstring_rows("types")
    for row in rows:
        name = row.question.removeprefix("What type is ").rstrip("?")
        assert name in row.context.split()
        assert row.is_impossible == name.startswith("second") == (not row.answers)
        for answer in row.answers:
            assert row.context[answer.start :].startswith(answer.text)
            assert answer.text == ("int or none" if name.startswith("first") else "wave")
    assert len({row.id for row in rows}) == len(rows)


def test_every_order_of_the_parts_occurs(corpus):
    found = set()
    for passage in passages(corpus):
        firsts = [tag[2:] or "TEXT" for tag in passage.tags]
        found.add(tuple(dict.fromkeys(firsts[:12])))
    assert len(found) == len(ORDERS)


def test_chinese_docstrings_give_rows_too():
    described = (
        Parameter(("路径",), "字符串", "要读取的文件。"),
        Parameter(("大小",), "整数", "字节数。"),
    )
    (passage,) = passages([Docstring("包", "包.模块", "读取一个文件。", described)])
    first, second = answer_rows([passage])
    assert first.answers[0].text == "字符串" and second.answers[0].text == "整数"
    assert passage.tags.count("B-NAME") == 2 and passage.tags.count("B-TYPE") == 2


def test_rows_that_repeat_training_rows_are_left_out():
    trained = ["one two three four five six seven eight"]
    rows = ["One two, three four five six seven!", "six five four three two one none", "short one"]
    assert without_repeats(rows, trained, str) == rows[1:]
    assert shingles("a b") == ["a b"] and len(shingles("a b c d e f g")) == 2


def test_readers_take_built_in_rows_by_name(corpus):
    notes = []
    rows = read_texts("builtin:packages:dev", kind="classify", on_note=notes.append)
    assert list(rows) == list(docstring_rows("packages", "dev")) and "builtin:packages" in notes[0]
    assert len(read_texts(["builtin:summaries:train:7"], kind="pairs")) == 7
    assert list(read_tags("builtin:parameters")) == list(docstring_rows("parameters"))
    assert list(read_answers("builtin:types:test")) == list(docstring_rows("types", "test"))
    for name in ("builtin:nothing", "builtin:packages:all", "builtin:packages:dev:few"):
        with pytest.raises(InputError, match="builtin:types"):
            read_texts(name, kind="classify")
    with pytest.raises(InputError, match="is for pairs, not for classify; builtin:packages is"):
        read_texts("builtin:summaries", kind="classify")
    with pytest.raises(InputError, match="not for regress"):
        read_texts("builtin:summaries", kind="regress")


def test_wrong_names_are_refused(corpus):
    for arguments in (("package",), ("packages", "all")):
        with pytest.raises(OptionError, match="there is no"):
            docstring_rows(*arguments)
    with pytest.raises(OptionError, match="limit"):
        docstring_rows("packages", limit=0)


def test_the_installed_packages_give_rows_that_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMEME_CACHE", str(tmp_path))
    only = ("numpy",)
    first = docstring_tasks.collect(only)
    (kept,) = tmp_path.glob("library/*-docstrings.json")
    assert docstring_tasks.collect(only) == first
    kept.write_text("[[1]]")
    assert docstring_tasks.collect(only) == first
    rows = docstring_rows("types", "train", packages=only)
    answers = Counter(answer.text for row in rows for answer in row.answers)
    assert len(rows) > 1_000 and answers["array_like"] > 50
    texts = docstring_texts("dev", packages=only)
    assert texts and not set(texts) & set(docstring_texts("train", packages=only))


def paired(module: str, summary: str, body: str) -> Docstring:
    return Docstring("numpy", module, f"{summary}\n{body}", ())


def test_pairs_have_one_right_body_that_does_not_contain_the_summary(monkeypatch):
    modules = {split: [] for split in docstring_tasks.SPLITS}
    for number in range(200):
        modules[split_of(f"numpy.m{number}")].append(f"numpy.m{number}")
    train, test = modules["train"], modules["test"]
    seen, new, other, read = (" ".join(f"{word}{n}" for word in WORDS) for n in range(4))
    docstrings = [
        paired(train[0], "Return the sorted rows.", seen),
        paired(train[1], "Return the SORTED rows!", f"{seen}."),  # the same pair
        paired(train[2], "Return the other rows.", f"It will return the other, rows: {read}"),
        paired(train[3], "signature(of, a, call) is not one", read),
        paired(test[0], "Find the largest value.", seen),  # a body of the training modules
        paired(test[1], "Find the smallest value.", new.upper()),
        paired(test[2], "Find the middle value now.", new),  # a body of another test module
        paired(test[3], "Find the smallest value.", " ".join([other] * 40)),
        paired(test[0], "Find any value at all.", read),  # in no training pair, but in the text
    ]
    monkeypatch.setattr(docstring_tasks, "collect", lambda packages, on_file: docstrings)
    docstring_tasks._collected.cache_clear()
    pairs = docstring_pairs()
    assert [(row.text, row.second) for row in pairs] == [("Return the sorted rows.", seen)]
    held_out = docstring_pairs("test")
    longest = " ".join([other] * 40).split()[:256]
    assert " ".join(longest) in {row.second for row in held_out} and len(held_out) == 2
    assert seen not in {row.second for row in held_out}
    assert docstring_pairs("test", limit=1) == held_out[:1]
    for arguments in ({"split": "all"}, {"limit": 0}):
        with pytest.raises(OptionError):
            docstring_pairs(**arguments)
    with pytest.raises(InputError, match="dev pairs"):
        docstring_pairs("dev")
    docstring_tasks._collected.cache_clear()
