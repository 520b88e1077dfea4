"""Evaluations on vectors whose answers are known beforehand."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from plain_analogies import best_word

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.evaluation import (
    WordsResult,
    evaluate_analogies,
    evaluate_antonyms,
    evaluate_groups,
    evaluate_odd,
    evaluate_pairs,
    evaluate_words,
)
from sememe.evaluation.offsets import best_words
from sememe.progress import Reporter
from sememe.vectors import WordVectors


def on_circle(degrees: dict[str, float]) -> WordVectors:
    angles = np.radians(list(degrees.values()))
    return WordVectors(list(degrees), np.stack([np.cos(angles), np.sin(angles)], 1).astype("f4"))


def lattice() -> WordVectors:
    """Words as sums of a stem and a form, so that every analogy holds exactly."""
    stems, forms = np.eye(6, 9)[:4] * 3, np.eye(9)[6:]
    words = [f"{stem}{form}" for stem in "东南西北" for form in "XYZ"]
    return WordVectors(words, np.array([s + f for s in stems for f in forms], "f4"))


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(4, 40), st.sampled_from(["add", "mul"]))
def test_many_at_once_equals_one_at_a_time(data: st.DataObject, size: int, method: str) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    vectors = random.normal(size=(size, 5)).astype("f4")
    questions = random.integers(0, size, (data.draw(st.integers(1, 30)), 3))
    groups = np.array_split(random.permutation(size), data.draw(st.integers(1, size)))
    variants = {int(min(g)): sorted(map(int, g)) for g in groups if len(g) > 1}
    first = {other: word for word, ids in variants.items() for other in ids}
    questions = np.vectorize(lambda word: first.get(word, word))(questions)
    answers = best_words(vectors, questions, method=method, variants=variants)  # type: ignore[arg-type]
    for question, answer in zip(questions.tolist(), answers, strict=True):
        assert answer == best_word(vectors, question, method=method, variants=variants)  # type: ignore[arg-type]


def test_tiles_meet_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    vectors, questions = random.normal(size=(100, 8)).astype("f4"), random.integers(0, 100, (50, 3))
    whole = best_words(vectors, questions)
    monkeypatch.setattr("sememe.evaluation.offsets._TILE_WORDS", 7)
    assert best_words(vectors, questions).tolist() == whole.tolist()


@pytest.mark.parametrize("method", ["add", "mul"])
def test_analogies_with_sections_totals_and_coverage(tmp_path: Path, method: str) -> None:
    place = ": place\n东X 东Y 南X 南Y\n东x 东y 西x 西y\n东X 东Y 南X 南Z\n"
    text = place + ": gram1\n东X 南X 东Z 南Z\n没有 东Y 南X 南Y\n"
    score = evaluate_analogies(lattice(), write(tmp_path / "q.txt", text), method=method)  # type: ignore[arg-type]
    assert [(p.name, p.num_correct, p.num_asked, p.num_questions) for p in score.sections] == [
        ("place", 2, 3, 3), ("gram1", 1, 1, 2), ("semantic", 2, 3, 3), ("syntactic", 1, 1, 2),
    ]  # fmt: skip
    assert (score.value, score.coverage) == (0.75, 0.8)
    assert score.interval.low < 0.75 < score.interval.high
    exact = evaluate_analogies(lattice(), tmp_path / "q.txt", case="exact", count_unknown=True)
    assert exact.value == 2 / 5


def test_options_out_of_range(tmp_path: Path) -> None:
    path = write(tmp_path / "q.txt", "东X 东Y 南X 南Y\n")
    for options in ({"method": "divide"}, {"restrict_vocab": 0}, {"case": "upper"}):
        with pytest.raises(OptionError):
            evaluate_analogies(lattice(), path, **options)  # type: ignore[arg-type]


def test_pairs_rank_as_people_do(tmp_path: Path) -> None:
    vectors = on_circle({"猫": 0, "狗": 10, "car": 80, "apple": 50, "Oslo": 0, "oslo": 90})
    text = "猫\t狗\t9\n猫\tCAR\t1\n猫\tapple\t5\n猫\tmissing\t7\n"
    score = evaluate_pairs(vectors, write(tmp_path / "p.tsv", text))
    assert score.value == pytest.approx(1)
    assert (score.num_asked, score.num_questions, score.coverage) == (3, 4, 0.75)
    assert evaluate_pairs(vectors, tmp_path / "p.tsv", case="exact").num_asked == 2
    counted = evaluate_pairs(vectors, tmp_path / "p.tsv", count_unknown=True)
    assert counted.value < 1 and counted.num_asked == 3


def test_pairs_that_are_all_unknown_have_no_score(tmp_path: Path) -> None:
    score = evaluate_pairs(lattice(), write(tmp_path / "p.txt", "a b 1\nc d 2\n"))
    assert math.isnan(score.value) and score.coverage == 0
    assert score.to_dict()["value"] is None


def test_a_word_that_meets_itself_ties(tmp_path: Path) -> None:
    vectors = WordVectors(list("abcdef"), np.random.default_rng(0).normal(size=(6, 7)).astype("f4"))
    score = evaluate_pairs(
        vectors,
        write(tmp_path / "p.txt", "".join(f"{w} {w} {n}\n" for n, w in enumerate("abcdef"))),
    )
    assert math.isnan(score.value)


def test_odd_ones(tmp_path: Path) -> None:
    vectors = on_circle({"红": 0, "绿": 5, "蓝": -5, "three": 90})
    text = "红 绿 蓝 | three\n红 three 绿 | 蓝\n红 绿 | unknown\n"
    score = evaluate_odd(vectors, write(tmp_path / "odd.txt", text))
    assert (score.value, score.num_asked, score.num_questions) == (0.5, 2, 3)
    assert score.details["chance"] == 0.25


def test_odd_ones_are_asked_with_the_words_that_are_known(tmp_path: Path) -> None:
    vectors = on_circle({"red": 0, "green": 5, "blue": -5, "three": 90})
    text = "red green blue crimson | three\nred puce | three\nred green blue | unknown\n"
    score = evaluate_odd(vectors, write(tmp_path / "odd.txt", text))
    assert (score.value, score.num_asked, score.num_questions) == (1, 1, 3)
    assert (score.details["num_partial"], score.details["chance"]) == (1, 0.25)


def test_parts_of_speech_are_removed_where_that_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    angles = {"sun": 0, "light": 10, "moon": 40, "sea": 90}
    path = write(tmp_path / "men.txt", "sun-n light-n 9\nsun-n moon-n 5\nsun-n sea-n 1\n")
    score = evaluate_words(on_circle(angles), path, reporter=Reporter()).scores[0]
    assert (score.value, score.coverage) == (pytest.approx(1), 1)
    assert "parts of speech are removed from words (sun-n → sun)" in capsys.readouterr().err
    tagged = on_circle({f"{word}-n": angle for word, angle in angles.items()})
    assert "tags_removed" not in evaluate_words(tagged, path).scores[0].details


def test_low_coverage_is_said_and_no_coverage_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors = on_circle({"red": 0, "green": 5, "blue": -25})
    known, unknown = "red green 9\nred blue 8\n", "king queen 7\nking man 2\nking lord 5\n"
    evaluate_words(vectors, write(tmp_path / "p.txt", known + unknown), reporter=Reporter())
    told = capsys.readouterr().err
    assert "only 2 of 5 questions" in told and "king, queen, man, lord" in told
    with pytest.raises(InputError, match="king, queen, man"):
        evaluate_words(vectors, write(tmp_path / "q.txt", unknown))
    with pytest.raises(InputError, match="built-in"):
        evaluate_words(on_circle({"qqx": 0, "qqy": 5}))


def test_a_score_that_is_not_defined_is_an_error(tmp_path: Path) -> None:
    vectors = on_circle({"red": 0, "green": 5, "blue": -5, "sea": 90})
    with pytest.raises(InputError, match=r"same\.txt cannot be scored"):
        evaluate_words(
            vectors, write(tmp_path / "same.txt", "red green 5\nblue sea 5\nred sea 5\n")
        )


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_vectors_that_are_no_numbers_are_refused(tmp_path: Path, broken: float) -> None:
    rows = np.eye(4, dtype=np.float32)
    rows[2, 1] = broken
    vectors = WordVectors(["red", "green", "blue", "sea"], rows)
    for name, text in {
        "pairs": "red green 5\nblue sea 4\nred sea 1\n",
        "analogies": "red green blue sea\n",
        "odd": "red green | blue\n",
        "groups": "a: red green\nb: blue sea\n",
    }.items():
        with pytest.raises(ArtifactError, match="not numbers"):
            evaluate_words(vectors, write(tmp_path / f"{name}.txt", text))


def test_scores_of_few_questions_are_marked(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(60)]
    vectors = on_circle({word: number for number, word in enumerate(words)})

    def asked(num: int) -> WordsResult:
        rows = zip(words[:num], words[1 : num + 1], range(num), strict=True)
        lines = "".join(f"{a} {b} {(7 * n) % 30}\n" for a, b, n in rows)
        odd = "".join(f": {'few' if n < 5 else 'many'}\nw0 w1 w2 | w{n + 9}\n" for n in range(40))
        write(tmp_path / "pairs.txt", lines)
        write(tmp_path / "odd.txt", odd)
        return evaluate_words(vectors, tmp_path)

    result = asked(29)
    cells = {row[0].strip(): row[2] for row in result.rows()}
    assert cells["pairs"].startswith("*") and cells["few"] == "*100.0"
    assert cells["odd"] == cells["many"] == "100.0"
    assert "* from fewer than 30 questions" in str(result)
    scores = {score["name"]: score for score in result.to_dict()["scores"]}
    assert scores["pairs"]["few_questions"] and not scores["odd"]["few_questions"]
    assert [part["few_questions"] for part in scores["odd"]["sections"]] == [True, False]
    cells = {row[0].strip(): row[2] for row in asked(30).rows()}
    assert not cells["pairs"].startswith("*")


def test_groups(tmp_path: Path) -> None:
    vectors = on_circle({"red": 0, "green": 5, "one": 90, "two": 95, "stray": 91, "lone": 180})
    text = "colors: red green stray\nnumbers: one two unknown\nalone: lone missing\n"
    score = evaluate_groups(vectors, write(tmp_path / "g.txt", text))
    assert [(p.name, p.num_correct, p.num_asked) for p in score.sections] == [
        ("colors", 2, 3), ("numbers", 2, 2), ("alone", 0, 0),
    ]  # fmt: skip


def test_questions_that_are_all_unknown_have_no_score(tmp_path: Path) -> None:
    for ask, text in (
        (evaluate_analogies, "a b c d\n"),
        (evaluate_odd, "a b | c\n"),
        (evaluate_groups, "x: a b\ny: c d\n"),
        (evaluate_antonyms, "a b\n"),
    ):
        score = ask(lattice(), write(tmp_path / "q.txt", text))  # type: ignore[operator]
        assert math.isnan(score.value) and score.coverage == 0
        content = json.loads(json.dumps(score.to_dict(), allow_nan=False))
        assert content["value"] is None and content["interval"] == [None, None]
        assert content["seed"] == 1 and content["version"]


def test_antonyms_must_be_near_from_both_sides(tmp_path: Path) -> None:
    vectors = on_circle({"fast": 0, "slow": 2, "冷": 50, "热": 80, "x": 90, "y": 91, "far": 180})
    path = write(tmp_path / "a.txt", "fast slow\n冷 热\nfast missing\n")
    score = evaluate_antonyms(vectors, path, num=1)
    assert (score.value, score.num_asked, score.num_questions) == (0.5, 2, 3)
    built_in = evaluate_antonyms(vectors)
    assert built_in.num_asked == 1 and built_in.value == 1


def test_the_built_in_questions_are_in_the_language_of_the_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    chinese = on_circle(
        {"大": 0, "小": 2, "增加": 50, "减少": 52, "x": 90, "中国": 120, "北京": 150}
    )
    found = evaluate_words(chinese, reporter=Reporter())
    assert found["antonyms"].num_asked == 2 and found["antonyms"].value == 1
    assert "built-in Chinese questions" in capsys.readouterr().err
    english = on_circle({"fast": 0, "slow": 2, "mean": 50, "大": 80, "小": 82})
    assert evaluate_words(english, reporter=Reporter())["antonyms"].num_asked == 1
    assert "Chinese" not in capsys.readouterr().err


def test_a_folder_is_asked_file_by_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "b.txt", "东X 东Y 南X 南Y\n")
    write(tmp_path / "a.tsv", "w1\tw2\thuman\n东X\t东Y\t9\n东X\t南Z\t1\n东X\t南X\t4\n")
    write(tmp_path / "readme.md", "Nothing to be asked in here at all.\nNor here.\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    result = evaluate_words(lattice(), tmp_path, seed=3, reporter=Reporter())
    assert [score.name for score in result.scores] == ["a", "b"]
    assert result.skipped == ["picture.png", "readme.md"]
    assert "score = “human” (column 3); first row: 东X | 东Y | 9." in capsys.readouterr().err
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content["seed"] == 3 and content["version"] and content["num_words"] == 12
    for score in content["scores"]:
        assert {"value", "interval", "coverage", "num_asked", "num_questions", "seed"} <= set(score)
    assert result["b"].value == 1
    shown = str(result)
    assert "100.0" in shown and "12 words × 9" in shown


def test_the_table_as_text_says_every_score() -> None:
    result = evaluate_words(on_circle({"row": 0, "rows": 4, "column": 40, "columns": 44}))
    shown = str(result)
    for row in result.rows():
        assert row[0].strip() in shown and row[2] in shown
    assert {score.kind for score in result.scores} == {"analogies", "antonyms", "groups", "odd"}


def test_places_without_questions(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        evaluate_words(lattice(), tmp_path / "missing")
    with pytest.raises(InputError, match="holds no files"):
        evaluate_words(lattice(), tmp_path)
    write(tmp_path / "prose.txt", "Nothing to be asked in here at all.\n")
    with pytest.raises(InputError, match="no questions that we know"):
        evaluate_words(lattice(), tmp_path)
    write(tmp_path / "bad.txt", ": s\na b c d\na b c\n")
    with pytest.raises(InputError, match=r"bad\.txt:3: 4 words"):
        evaluate_words(lattice(), tmp_path)


def test_a_path_or_any_model_with_words_is_asked(tmp_path):
    vectors = WordVectors(["good", "bad", "hot", "cold"], np.eye(4, dtype=np.float32))
    vectors.save(tmp_path / "vectors")
    questions = tmp_path / "antonyms.txt"
    questions.write_text("good bad\nhot cold\n")
    found = evaluate_words(tmp_path / "vectors", questions)
    assert found["antonyms"].num_asked == 2 and found.num_words == 4
    with pytest.raises(OptionError, match="not int"):
        evaluate_words(3, questions)


def test_word_vectors_are_evaluated_without_torch(tmp_path):
    vectors = WordVectors(["good", "bad", "hot", "cold"], np.eye(4, dtype=np.float32))
    vectors.save(tmp_path / "vectors")
    code = (
        "import sys, sememe\n"
        f"sememe.evaluate_words({str(tmp_path / 'vectors')!r})\n"
        f"sememe.evaluate_senses({str(tmp_path / 'vectors')!r}, 'english')\n"
        "print(sorted({'torch', 'sklearn'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
