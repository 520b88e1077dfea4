"""Tagging as a whole: schemes, windows over long sentences, words of running text, places."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe import Tag
from sememe.errors import InputError, OptionError
from sememe.examples.tagging import IGNORE_ID
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

GOOD, BAD = ("good", "great", "lovely", "fine", "nice"), ("bad", "poor", "awful", "dull", "ugly")
THINGS, PLACES = ("film", "story", "song", "book"), ("mat", "field", "day")
QUICK = {
    "device": "cpu", "workers": 1, "length": 24, "batch_size": 8, "learning_rate": 3e-3,
    "epochs": 4.0,
}  # fmt: skip


FILLER = ("the", "old", "cat", "and", "a")


def sentence(seed, num_parts=8):
    """`the good field and ugly song`: praise is a span of two words, blame of one."""
    random = np.random.default_rng(seed)
    words, tags = [], []
    for kind in random.integers(0, 4, num_parts):
        if kind == 0:
            words += [str(random.choice(GOOD)), str(random.choice(PLACES))]
            tags += ["B-PRAISE", "I-PRAISE"]
        else:
            words.append(str(random.choice((BAD, THINGS, FILLER)[kind - 1])))
            tags.append("B-BLAME" if kind == 1 else "O")
    return words, tags


ROWS = [sentence(index) for index in range(80)]


@pytest.fixture(scope="module")
def names(bert, tmp_path_factory):
    """A tagger that has learned the sentences above, and its folder."""
    out = tmp_path_factory.mktemp("tasks") / "names"
    return Tag(bert, **QUICK | {"epochs": 6.0}).fit(ROWS, dev=ROWS[-20:], out=out), out


def test_a_tagger_learns_is_saved_and_says_the_same_again(names):
    task, out = names
    assert task.labels == ["B-BLAME", "B-PRAISE", "I-BLAME", "I-PRAISE", "O"]
    assert task.scores.main_metric == "f1" and task.scores.value > 0.9
    again = Tag.load(out)
    (said,), (repeated,) = task.predict(["the nice field"]), again.predict(["the nice field"])
    assert said[:3] == repeated[:3] and said.tags == ("O", "B-PRAISE", "I-PRAISE")
    assert said.probabilities == pytest.approx(repeated.probabilities, abs=1e-5)
    assert again.evaluate(ROWS).metrics["accuracy"] > 0.9
    manifest = json.loads((out / "sememe.json").read_text())
    assert manifest["task"] == "tag" and manifest["learned"]["scheme"] == "iob2"


def test_words_and_spans_know_their_places(names):
    task, _ = names
    text = "The  GREAT Field,\nand a dull song 😀!"
    (said,) = task.predict([text])
    assert [text[s:e] for s, e in zip(said.starts, said.ends, strict=True)] == list(said.words)
    assert said.words == ("The", "GREAT", "Field", ",", "and", "a", "dull", "song", "😀", "!")
    assert all(0 < chance <= 1 for chance in said.probabilities)
    spans = {(span.type, span.text) for span in said.spans}
    assert ("PRAISE", "GREAT Field") in spans and ("BLAME", "dull") in spans
    assert all(text[span.start : span.end] == span.text for span in said.spans)
    (given,) = task.predict([["the", "fine", "mat"]])
    assert given.text == "the fine mat" and given.starts == (0, 4, 9) and given.ends == (3, 8, 12)
    lines = task.prediction_line(given)
    assert lines == "the\tO\nfine\tB-PRAISE\nmat\tI-PRAISE\n"


def test_long_sentences_are_read_in_windows_and_never_cut(names):
    task, _ = names
    words, tags = sentence(100, 80)
    rows = task.read([(words, tags)], labelled=True)
    items = task.encode(rows)
    assert len(items) > 5 and not any(item.cut for item in items)
    own = np.concatenate([item.extra.word_indices for item in items])
    assert own.tolist() == list(range(len(words)))  # each word is answered for once
    asked = np.concatenate([item.target[item.target != IGNORE_ID] for item in items])
    assert [task.labels[index] for index in asked] == tags
    (said,) = task.predict_rows(rows)
    assert np.mean([one == other for one, other in zip(said.tags, tags, strict=True)]) > 0.9


def test_the_pieces_of_a_word_and_its_tag(tmp_path):
    """Jim Hen ##son was a puppet ##eer carries I-PER I-PER X O O O X (Devlin et al. 2018)."""
    from presets import bert_config
    from sememe.models.bert.network import BERTNetwork

    pieces = ["Jim", "Hen", "##son", "was", "a", "puppet", "##eer"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, "[", "]", "SE", "##P"]
    (tmp_path / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    tokenizer = SubwordTokenizer.load(tmp_path)
    config = bert_config("tiny", vocab_size=len(vocabulary), max_length=32, width=32)
    words = ["Jim", "Henson", "was", "a", "puppeteer"]
    tags = ["I-PER", "I-PER", "O", "O", "O"]
    task = Tag((BERTNetwork(config), tokenizer), scheme="iob1", **QUICK | {"epochs": 1.0})
    task.fit([(words, tags)] * 4, dev=False)
    (item,) = task.encode(task.read([(words, tags)], labelled=True))
    ids = item.sequences[0].ids_T[1:-1]
    assert [tokenizer.token(token_id) for token_id in ids] == pieces
    marks = ["X" if t == IGNORE_ID else task.labels[t] for t in item.target]
    assert marks == ["X", "I-PER", "I-PER", "X", "O", "O", "O", "X", "X"]
    # The name of a special token is a word like any other, and so is one that is cleaned away.
    (item,) = task.encode(task.read([["[SEP]", "\u200b", "Jim"]], labelled=False))
    assert tokenizer.sep_id not in item.sequences[0].ids_T[1:-1]
    assert len(item.extra.places) == 3 and len(set(item.extra.places)) == 3


def test_schemes_of_files_meet_in_that_of_the_task(bert, names, tmp_path):
    task, _ = names
    path = tmp_path / "iob1.txt"
    path.write_text("the O\ngood I-PRAISE\nfilm I-PRAISE\nugly I-BLAME\n\n")
    rows = task.read(path, labelled=True)
    assert rows[0].tags == ("O", "B-PRAISE", "I-PRAISE", "B-BLAME")
    other = Tag(bert, scheme="bioes", **QUICK | {"epochs": 0.2}).fit([path] * 4, dev=False)
    assert other.labels[:4] == ["B-BLAME", "B-PRAISE", "E-BLAME", "E-PRAISE"]
    assert len(other.labels) == 9


def test_tags_that_are_no_spans(bert):
    kinds = dict.fromkeys(GOOD + BAD, "ADJ") | dict.fromkeys(THINGS, "NOUN")
    rows = [(words, [kinds.get(word, "X") for word in words]) for words, _ in ROWS]
    task = Tag(bert, **QUICK).fit(rows, dev=rows[:8])
    assert task.learned["scheme"] == "none" and task.scores.metrics["accuracy"] > 0.9
    assert task.scores.value == pytest.approx(task.scores.metrics["accuracy"])
    assert task.predict([["a", "nice", "song"]])[0].spans == ()


def test_chinese_is_cut_as_the_training_rows_were(bert):
    by_character = [(list("猫坐在A1上"), ["B-A", "O", "O", "B-L", "I-L", "O"])] * 8
    task = Tag(bert, **QUICK | {"epochs": 8.0}).fit(by_character, dev=by_character[:2])
    text = "狗在A1,猫坐在Ａ1上😀"
    (said,) = task.predict([text])
    assert said.words == tuple(text)
    assert said.starts == tuple(range(len(text)))
    (said,) = task.predict(["猫坐在A1上"])
    assert [(span.text, span.start, span.end) for span in said.spans] == [
        ("猫", 0, 1),
        ("A1", 3, 5),
    ]
    marked = [{"text": "猫坐在iPhone上", "label": {"thing": {"iPhone": [[3, 8]]}}}] * 8
    whole = Tag(bert, **QUICK).fit(marked, dev=marked[:2])
    (said,) = whole.predict(["猫坐在iPhone上"])
    assert said.words == ("猫", "坐", "在", "iPhone", "上")
    assert [(span.type, span.text, span.start) for span in said.spans] == [("thing", "iPhone", 3)]


def test_a_gpt_tags_too(gpt):
    task = Tag(gpt, **QUICK | {"length": 60}).fit(ROWS, dev=ROWS[:8])
    assert task.scores.metrics["accuracy"] > 0.9


def test_bad_rows_and_options(bert, names, tmp_path):
    task, _ = names
    path = tmp_path / "dev.txt"
    path.write_text("the O\ngood B-PRAISE\n\nthe O\nodd B-NEW\n")
    with pytest.raises(InputError, match=r"dev\.txt, line 4: the tag 'B-NEW' is not among"):
        task.evaluate(path)
    assert task.evaluate(path, skip_bad=True).num_skipped == 1
    with pytest.raises(InputError, match="Every word has the tag 'O'"):
        Tag(bert, **QUICK).fit([(["a"], ["O"])] * 4)
    with pytest.raises(OptionError, match="scheme must be one of"):
        Tag(bert, scheme="iob3")
    with pytest.raises(OptionError, match="have no part 'text'"):
        task.predict(path, columns={"text": "1"})
    table = tmp_path / "dev.conll"
    table.write_text("O 1 the\nB-PRAISE 2 good\n")
    metrics = task.evaluate(table, columns={"words": "-1", "tags": "1"})
    assert metrics.num_rows == 1


def test_a_crf_chooses_the_tags_of_a_sentence_together(bert, tmp_path):
    task = Tag(bert, crf=True, **QUICK).fit(ROWS, dev=ROWS[-20:], out=tmp_path / "crf")
    assert task.scores.value > 0.9
    again = Tag.load(tmp_path / "crf")
    (said,), (repeated,) = task.predict([ROWS[3][0]]), again.predict([ROWS[3][0]])
    assert said.tags == repeated.tags and all(0 < chance <= 1 for chance in said.probabilities)
    assert said.probabilities == pytest.approx(repeated.probabilities, abs=1e-5)
    with torch.no_grad():  # whatever the words say, no span goes on that was not opened
        again.objective.head.linear.weight.zero_()
        again.objective.head.linear.bias[again.labels.index("I-PRAISE")] = 50.0
    (forced,) = again.predict([["the", "old", "cat"]])
    assert forced.tags == ("B-PRAISE", "I-PRAISE", "I-PRAISE")
    assert again.others == [] and not (tmp_path / "crf" / "config.json").read_text().count("ForTok")


def test_a_crf_refuses_tags_that_it_may_never_write(bert):
    rows = [(["Ann", "sleeps"], ["S-PER", "O"]), (["old", "Ann"], ["O", "E-PER"])] * 6
    with pytest.raises(InputError, match="E-PER after O is not valid in bioes"):
        Tag(bert, crf=True, scheme="same", **QUICK).fit(rows, dev=False)
    for options in ({"scheme": "same", "any_tags": True}, {"scheme": "bioes"}):
        task = Tag(bert, crf=True, **options, **QUICK | {"epochs": 1}).fit(rows, dev=False)
        assert max(record["loss"] for record in task.history if "loss" in record) < 100
