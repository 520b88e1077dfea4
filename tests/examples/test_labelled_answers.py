"""Questions from every layout; windows, targets and spans line up with the user's characters."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.errors import InputError, OptionError
from sememe.examples import answers as spans
from sememe.examples.answers import ContextWindow, TokenSpan, WindowScores
from sememe.examples.labelled.answers import read_answers
from sememe.examples.labelled.rows import AnswerRow, AnswerSpan

CONTEXT = (
    "Water that falls from the sky has many names. Drops become heavy when they meet others "
    "within a cloud, and then they fall as rain."
)
START = CONTEXT.index("within a cloud")


def _squad(questions, context=CONTEXT):
    paragraph = {"context": context, "qas": questions}
    return json.dumps({"version": "x", "data": [{"title": "t", "paragraphs": [paragraph]}]})


def _question(identity, text, start, **more):
    answers = [{"text": text, "answer_start": start}] if text else []
    return {"id": identity, "question": "Where do drops meet?", "answers": answers, **more}


# ---- files --------------------------------------------------------------------------------


def test_squad_with_and_without_answers(tmp_path):
    path = tmp_path / "dev-v2.0.json"
    questions = [
        _question("a", "within a cloud", START, is_impossible=False),
        _question("b", "", 0, is_impossible=True, plausible_answers=[{"text": "sky"}]),
    ]
    path.write_text(_squad(questions))
    rows = read_answers(path)
    assert rows[0] == AnswerRow(
        id="a", question="Where do drops meet?", context=CONTEXT,
        answers=(AnswerSpan("within a cloud", START),), source=f"{path}, question a",
    )  # fmt: skip
    assert rows[1].is_impossible and rows[1].answers == ()


def test_places_that_do_not_match(tmp_path):
    path = tmp_path / "dev.json"
    off, gone = _question("a", "within a cloud", START + 1), _question("b", "in a puddle", 5)
    path.write_text(_squad([_question("c", "sky", -1), off, gone]))
    with pytest.raises(
        InputError, match=r"dev\.json, question a: the context has 'ithin a cloud,'"
    ):
        read_answers(path)
    rows = read_answers(path, skip_bad=True)
    assert [row.id for row in rows] == ["c"] and rows.num_skipped == 2
    assert rows[0].answers == (AnswerSpan("sky", CONTEXT.index("sky")),)
    rows = read_answers(path, spans="nearest", skip_bad=True)
    assert [row.id for row in rows] == ["c", "a"] and rows[1].answers[0].start == START
    assert read_answers(path, spans="texts")[2].answers == (AnswerSpan("in a puddle", -1),)
    with pytest.raises(OptionError, match="spans must be"):
        read_answers(path, spans="any")


def test_the_nearest_of_equal_texts():
    (row,) = read_answers([("q?", "好的，好的，好的。", "好的", 4)], spans="nearest")
    assert row.answers == (AnswerSpan("好的", 3),)


def test_tables_lines_parquet_and_lists(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    csv = tmp_path / "a.csv"
    csv.write_text('question,context,answer,answer_start\n谁?,"张三,李四来了",李四,3\n谁?,没人,,\n')
    notes = []
    rows = read_answers(csv, on_note=notes.append)
    assert rows[0].answers == (AnswerSpan("李四", 3),) and rows[1].is_impossible
    assert [row.id for row in rows] == ["0", "1"]
    assert (
        "question = “question” (“谁?”), context = “context” (“张三,李四来了”), answers = “answer”"
        in notes[0]
    )
    lines = tmp_path / "a.jsonl"
    lines.write_text(
        '{"id": 7, "query": "q?", "passage": "a b c", "answers": ["b", "c"]}\n'
        '{"id": 8, "query": "q", "passage": "a b", "answers": {"text": ["b"], "start": [2]}}\n'
    )
    rows = read_answers(lines)
    assert rows[0].answers == (AnswerSpan("b", 2), AnswerSpan("c", 4)) and rows[0].id == "7"
    assert rows[1].answers == (AnswerSpan("b", 2),)
    pq.write_table(
        pa.table(
            {
                "id": ["x"], "question": ["q?"], "context": ["a b"],
                "answers": [{"text": ["b"], "answer_start": [2]}],
            }
        ),
        tmp_path / "a.parquet",
    )  # fmt: skip
    assert read_answers(tmp_path / "a.parquet")[0].answers == (AnswerSpan("b", 2),)
    assert read_answers([("q?", "a b")], labelled=False)[0].answers == ()
    again = read_answers(rows)
    assert again == rows
    with pytest.raises(InputError, match="no column for the context"):
        read_answers([{"question": "q?", "answer": "x"}])


BAD = [
    ({"question": " ", "context": "a", "answer": "a"}, "the question is empty"),
    ({"question": "q", "context": "", "answer": "a"}, "the context is empty"),
    ({"question": "q", "context": "a", "answer": "a", "start": "x"}, "is not a whole number"),
    ({"question": "q", "context": "a", "answer": "b"}, "does not hold the answer 'b'"),
    ({"question": "q", "context": "a", "answer": "", "is_impossible": "false"}, "has no answers"),
    ({"question": "q", "context": "a", "answers": [{"start": 1}]}, "an answer has no text"),
    ({"question": "q", "context": "a", "answers": {"text": ["a"], "start": []}}, "1 answers but 0"),
]


@pytest.mark.parametrize(("cells", "message"), BAD)
def test_bad_questions_are_named_or_counted(cells, message):
    good = {"question": "q", "context": "a", "answer": "a"}
    with pytest.raises(InputError, match=f"row 1: .*{message}"):
        read_answers([good, cells])
    assert read_answers([good, cells], skip_bad=True).num_skipped == 1


# ---- windows and targets ------------------------------------------------------------------


@given(st.integers(0, 60), st.integers(1, 12), st.integers(1, 20))
@settings(deadline=None)
def test_windows_cover_every_token_and_end_with_the_last(num_tokens, size, stride):
    windows = spans.context_windows(num_tokens, size, stride)
    assert {i for start, end in windows for i in range(start, end)} == set(range(num_tokens))
    assert windows[-1].end == num_tokens and all(end - start <= size for start, end in windows)
    assert all(end < num_tokens for _, end in windows[:-1])


def test_windows_of_the_released_program():
    assert spans.context_windows(10, 4, 2) == [(0, 4), (2, 6), (4, 8), (6, 10)]
    assert spans.context_windows(9, 4, 3) == [(0, 4), (3, 7), (6, 9)]
    with pytest.raises(OptionError, match="cannot see"):
        spans.context_windows(9, 0, 3)


def test_targets_of_windows():
    starts, ends = np.array([0, 3, 7, 9]), np.array([2, 7, 9, 12])
    span = spans.token_span(4, 9, starts, ends)
    assert span == TokenSpan(1, 2)
    assert spans.token_span(2, 3, starts, ends) is None  # a blank between two tokens
    assert spans.window_target(span, ContextWindow(1, 4), 5, 0).tolist() == [5, 6]
    assert spans.window_target(span, ContextWindow(0, 2), 5, 0).tolist() == [0, 0]
    assert spans.window_target(None, ContextWindow(0, 4), 5, 9).tolist() == [9, 9]


# ---- the best spans -----------------------------------------------------------------------


@given(
    st.integers(1, 9), st.integers(1, 5), st.integers(1, 4), st.integers(1, 6), st.integers(0, 99)
)
@settings(deadline=None)
def test_best_spans_are_those_of_a_plain_search(num_tokens, size, stride, longest, seed):
    draws = np.random.default_rng(seed)
    windows = [
        WindowScores(window, *draws.normal(size=(2, window.end - window.start)))
        for window in spans.context_windows(num_tokens, size, stride)
    ]
    null_score = float(draws.normal())
    plain: dict[tuple[int, int], float] = {}
    for (start, end), starts, ends in windows:
        for first, last in product(range(start, end), repeat=2):
            if first <= last < first + longest:
                score = starts[first - start] + ends[last - start]
                plain[first, last] = max(plain.get((first, last), -np.inf), score)
    total = np.exp(null_score) + sum(np.exp(score) for score in plain.values())
    table = spans.span_scores(windows, num_tokens, longest)
    found = spans.best_spans(table, 1000, null_score)
    assert [(one.first, one.last) for one in found] == sorted(plain, key=lambda key: -plain[key])
    assert np.allclose(
        [one.probability for one in found], [np.exp(one.score) / total for one in found]
    )
    assert spans.best_spans(table, 2, null_score) == found[:2]


def test_no_token_no_span():
    assert spans.best_spans(spans.span_scores([], 0, 30), 5) == []


# ---- characters ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "lowercase"), [("wordpiece", True), ("wordpiece", False), ("bpe", False)]
)
def test_spans_come_back_as_the_characters_of_the_users_text(kind, lowercase):
    pytest.importorskip("tokenizers")
    from sememe.text.settings import TextSettings
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    context = "ＡＢＣ公司的İpek café cafe\u0301在😀北京 iPhone15发布，Ünal said “ok”。👍🏽完"
    text = TextSettings(language="zh", lowercase=lowercase)
    tokenizer = SubwordTokenizer.train(
        [context], kind=kind, vocab_size=300, min_frequency=1, text=text
    )
    assert kind == "bpe" or tokenizer.strip_accents == lowercase
    encoding = tokenizer.encode(context, specials=False)
    answers = ["ＡＢＣ", "公司", "İpek", "café", "cafe\u0301", "cafe\u0301在", "北京", "iPhone15"]
    answers += ["iPhone15发布", "Ünal", "“ok”", "👍🏽", "完", "😀北京 iPhone15"]
    for answer in answers:
        start = context.index(answer)
        span = spans.token_span(start, start + len(answer), encoding.starts, encoding.ends)
        assert span is not None
        first, last = spans.char_span(context, span, encoding.starts, encoding.ends)
        if kind == "wordpiece":
            assert context[first:last] == answer
        else:  # a piece of bytes may reach beyond
            assert answer in context[first:last]


def test_answers_without_a_list_of_texts_are_bad_rows():
    for answers in ({"text": None}, {"text": 3, "answer_start": [0]}, {"answer_start": [0]}):
        with pytest.raises(InputError, match=r"row 0: the answers .* have no list of texts"):
            read_answers([{"question": "Who?", "context": "Jim sings.", "answers": answers}])
    both = {"question": "Who?", "context": "Jim sings.", "answers": {"text": "Jim"}}
    assert read_answers([both])[0].answers == (AnswerSpan("Jim", 0),)
