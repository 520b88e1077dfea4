"""What rungs are asked and looked at for: files of words, answers on words, a sentence to read."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from ladder_texts import chinese_documents, documents

from sememe.errors import InputError
from sememe.evaluation.question_files import BUILT_IN, read_questions
from sememe.evaluation.senses import find_sets
from sememe.evaluation.words import evaluate_file
from sememe.examples.labelled.rows import AnswerRow, AnswerSpan
from sememe.ladder.config import LadderConfig
from sememe.ladder.context_questions import known_senses
from sememe.ladder.plan import make_plan, this_machine
from sememe.ladder.reading import Reader
from sememe.ladder.retrieval_question import RetrievalQuestion, retrieval_pairs
from sememe.ladder.sentence_questions import AnswerQuestion
from sememe.ladder.tasks import _documents, _senses
from sememe.ladder.text import LadderText, open_text
from sememe.ladder.visuals import shown_of
from sememe.ladder.word_questions import chinese_questions, file_questions
from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors
from sememe.vectors.onehot import OneHotVectors

PAIRS = "ship sailor 9\nwheat barn 8\njudge oven 2\n"


def test_a_file_that_asks_nothing_of_words_is_refused(tmp_path):
    good, prose, folder = tmp_path / "pairs.txt", tmp_path / "letter.txt", tmp_path / "folder"
    good.write_text(PAIRS)
    prose.write_text("Dear Sir,\nI have read your letter of Monday with great interest.\n")
    folder.mkdir()
    (folder / "letter.txt").write_text(prose.read_text())
    (folder / "picture.png").write_bytes(b"\x89PNG\xff\x00")
    for given in ([prose], [good, prose], [good, folder]):
        with pytest.raises(InputError, match="holds no questions about words"):
            file_questions(given)
    with pytest.raises(InputError, match="not UTF-8"):
        file_questions([good, folder / "picture.png"])
    with pytest.raises(InputError, match="does not exist"):
        file_questions([tmp_path / "nowhere"])
    (folder / "pairs.txt").write_text(PAIRS)
    assert [own.path.parent.name for own in file_questions([good, folder])] == [
        tmp_path.name, "folder",
    ]  # fmt: skip
    assert {own.kind for own in file_questions(None)} >= {"analogies", "odd", "groups"}


SHIPS = "".join(
    f"{word}\t{sense}\tThe [[{word}]] of the {sense} was {state}.\n"
    for word in ("Ship", "Zeppelin")
    for sense in ("one", "other")
    for state in ("old", "new")
)


def test_chinese_words_of_one_character_or_of_several_words_are_asked(tmp_path):
    ones = [f"门口站着一个人。请不要摘公园里的花。他一连打了{n}次。" for n in range(40)]
    text = open_text(ones, TextSettings(language="zh"), tmp_path / "t")
    found = known_senses(find_sets(["chinese"]), text, 3)[0].words
    assert "一个人" not in text.words.vocabulary  # it is cut in two
    assert "一个人" in found and "打" in found and "花" in found
    assert "苹果" not in found and "算账" not in found
    assert not known_senses(find_sets(["chinese"]), text, 99)


def test_ambiguous_words_are_those_that_the_text_has(tmp_path):
    text = open_text(documents(40), TextSettings(), tmp_path / "t")
    plan = make_plan(LadderConfig(min_count=3), this_machine("cpu"))
    file, other = tmp_path / "ships.tsv", tmp_path / "airships.tsv"
    file.write_text(SHIPS)
    other.write_text("".join(line for line in SHIPS.splitlines(True) if "Zeppelin" in line))
    (kept,) = _senses(text, plan, [file])
    assert kept.words == ["Ship"] and len(kept.occurrences) == 4
    with pytest.raises(InputError, match=r"airships\.tsv: none of its ambiguous words .* 3 times"):
        _senses(text, plan, [file, other])


def _answers(text: LadderText, answers: list[str]) -> AnswerQuestion:
    rows = [
        AnswerRow(
            id=str(number), question="what stands here?", context=f"the ship {answer} came home",
            answers=(AnswerSpan(answer, 9),), is_impossible=False, source="made",
        )
        for number, answer in enumerate(answers)
    ]  # fmt: skip
    return AnswerQuestion("a", "signs", "where?", rows, rows, text, seeds=1)


def test_answers_that_lie_on_no_word_teach_nothing_and_say_so(tmp_path):
    text = open_text(documents(40), TextSettings(), tmp_path / "t")
    words = ["the", "ship", "came", "home", "barn", "oven"]
    reader = Reader(WordVectors(Vocabulary.from_words(words), np.eye(6)))
    question = _answers(text, ["—", "…", "!!"])
    X = question.features(reader, question.train)
    with pytest.raises(InputError, match="signs: "):
        question.predicted(X, np.arange(3), X)
    mixed = _answers(text, ["—", "barn", "oven"])
    X = mixed.features(reader, mixed.train)
    assert mixed.score_of(mixed.predicted(X, np.arange(3), X)) > 0.5  # the two that lie on words


GERMAN = "Das {0} Schiff lag lange vor der grauen Küste und wartete auf {0} Wetter."


@pytest.mark.parametrize(
    ("language", "texts", "shown"),
    [
        ("en", documents(40), "the king of the country"),
        ("zh", chinese_documents(40), "中国最大的城市"),
        ("de", [f"{GERMAN.format(n)} {GERMAN.format(n + 1)}" for n in range(60)], "grauen Küste"),
        ("de", [" ".join(f"wort{n}x{m}" for m in range(90)) for n in range(40)], "wort"),
    ],
    ids=["en", "zh", "de", "long"],
)
def test_attention_is_shown_over_a_sentence_of_the_language(language, texts, shown, tmp_path):
    text = open_text(texts, TextSettings(language=language), tmp_path / "t")
    sentence = shown_of(text, [], 1).sentence
    assert shown in sentence and len(sentence.split()) <= 14


def test_files_of_questions_are_counted_as_their_scores_are(tmp_path):
    """Each word of a group is asked, and not each group; a header and commas are no words."""
    table = tmp_path / "rated.csv"
    table.write_text("word1,word2,score\nship,sailor,9\nbarn,field,8\noven,judge,1\n")
    asked = {own.path.stem: own for own in (*file_questions(None), *file_questions([table]))}
    rng = np.random.default_rng(1)
    for name, own in asked.items():
        words = sorted(own.words)
        vectors = WordVectors(Vocabulary.from_words(words), rng.normal(size=(len(words), 8)))
        score = evaluate_file(vectors, own.path, own.kind)
        assert own.task.num_test == score.num_questions == score.num_asked, name
    assert asked["groups"].task.num_test > 4 * 18
    assert {"ship", "oven"} <= asked["rated"].words


def test_a_chinese_text_is_asked_the_built_in_questions_that_it_can_answer(tmp_path):
    rows = read_questions(BUILT_IN / "chinese" / "odd.txt", "odd").rows
    words = [word for row in rows for word in row]
    rng = np.random.default_rng(1)
    texts = ["，".join(rng.permutation(words)[:300]) + "。" for _ in range(60)]
    text = open_text(texts, TextSettings(language="zh"), tmp_path / "all")
    found = {own.kind: own.task.baselines for own in chinese_questions(text, 3)}
    assert found.keys() >= {"odd", "groups"}
    # 小麦 and 大麦 share a character: some answers can be read off the writing.
    assert 25 < found["odd"]["random character vectors"] < 75
    assert found["groups"]["random character vectors"] > found["groups"]["chance"]
    assert chinese_questions(text, 10**6) == []
    few = [f"国王和第{number}个女王住在城堡里。农民住在村庄里。" for number in range(60)]
    other = open_text(few, TextSettings(language="zh"), tmp_path / "few")
    assert chinese_questions(other, 1) == []


def stories(words: list[list[str]], num: int, language: str = "en") -> list[str]:
    """Documents of several sentences about one subject each."""
    rng = np.random.default_rng(1)
    space, end = (" ", ". ") if language == "en" else ("", "。")
    return [
        end.join(space.join(rng.choice(words[n % len(words)], 9)).capitalize() for _ in range(4))
        for n in range(num)
    ]


@pytest.mark.parametrize(
    ("language", "subjects"),
    [
        ("en", [[f"{letter}{n}word" for n in range(8)] for letter in "abcdefgh"]),
        ("zh", [["苹果", "香蕉", "水果"], ["汽车", "火车", "飞机"], ["医生", "护士", "医院"]]),
    ],
)
def test_texts_are_found_by_their_first_sentences(tmp_path, language, subjects):
    text = open_text(stories(subjects, 600, language), TextSettings(language=language), tmp_path)
    own = list(_documents(text))
    pairs = retrieval_pairs(text, own, 60)
    assert 24 <= len(pairs) <= 60 and len(dict(pairs)) == len(pairs)
    assert all(query not in body and len(body) <= 400 for query, body in pairs)
    assert retrieval_pairs(text, own[:20], 60) == []  # too few
    question = RetrievalQuestion(text, pairs)
    words = [word for subject in subjects for word in subject]
    eyes = np.repeat(np.eye(len(subjects)), [len(one) for one in subjects], axis=0)
    vectors = WordVectors(words, eyes.astype(np.float32))
    vectors.text = text.settings
    found = question.evaluate(SimpleNamespace(reader=Reader(vectors)))
    chance, by_words = question.task.baselines.values()
    assert found.num == len(pairs) and 100 >= found.scores[0] > 2 * chance
    assert by_words > 2 * chance
    one_hot = OneHotVectors(Vocabulary.from_words(words, [9] * len(words)))
    one_hot.text = text.settings
    (sparse,) = question.evaluate(SimpleNamespace(reader=Reader(one_hot))).scores
    assert sparse > 2 * chance
    assert question.evaluate(SimpleNamespace(reader=None)).why
