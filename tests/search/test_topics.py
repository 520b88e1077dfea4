"""Topics: groups found again, words by c-TF-IDF, Chinese, tables and pictures; bad input."""

from __future__ import annotations

import json
import math
from collections import Counter

import numpy as np
import pytest

from sememe import WordVectors, topics
from sememe.errors import InputError, OptionError
from sememe.search.topics import class_tf_idf
from sememe.text.settings import TextSettings

SUBJECTS = {
    "animals": ("cat", "dog", "horse", "kitten"),
    "traffic": ("car", "train", "road", "engine"),
    "food": ("bread", "cheese", "soup", "butter"),
}
CHINESE = {"动物": ("猫咪", "小狗", "马匹"), "交通": ("汽车", "火车", "公路")}


def made_up(subjects, num_each=30, joined=" ", seed=1):
    """Texts about some subjects with words of all, and vectors that know the subjects."""
    rng = np.random.default_rng(seed)
    texts = [
        joined.join(["the", *rng.choice(own, 3).tolist(), "and", "the"])
        for own in subjects.values()
        for _ in range(num_each)
    ]
    words = [word for own in subjects.values() for word in own]
    axes = np.repeat(np.eye(len(subjects)), [len(own) for own in subjects.values()], axis=0)
    rows = axes + 3 + rng.normal(scale=0.05, size=axes.shape)  # a large common part
    return texts, WordVectors([*words, "the", "and"], np.vstack([rows, rows.mean(0), rows.mean(0)]))


def test_c_tf_idf_by_hand():
    counts = [Counter({"cat": 3, "the": 1}), Counter({"car": 1, "the": 1})]
    first, second = class_tf_idf(counts)
    assert first["cat"] == pytest.approx(3 / 4 * math.log(1 + 3 / 3))
    assert first["the"] == pytest.approx(1 / 4 * math.log(1 + 3 / 2))
    assert second["car"] == pytest.approx(1 / 2 * math.log(1 + 3 / 1))


@pytest.mark.parametrize(
    "options", [{"num_topics": 3}, {"method": "hdbscan", "min_size": 25}], ids=["kmeans", "hdbscan"]
)
def test_subjects_are_found_again_with_their_words(options):
    texts, vectors = made_up(SUBJECTS)
    found = topics(texts, vectors, **options)
    assert len(found.topics) == 3 and found.language == "en"
    of_subjects = found.of_rows.reshape(3, 30)
    main = [int(np.bincount(own).argmax()) for own in of_subjects]
    assert sorted(main) == [1, 2, 3]
    assert (of_subjects == np.array(main)[:, None]).mean() > 0.9
    words = {one.number: set(one.words) for one in found.topics}
    for own, number in zip(SUBJECTS.values(), main, strict=True):
        assert words[number] == set(own)  # neither "the" nor "and"
    assert all(len(one.examples) == 3 for one in found.topics)
    again = topics(texts, vectors, **options)
    assert (again.of_rows == found.of_rows).all() and again.topics == found.topics


def test_chinese_rows_are_segmented_and_described():
    texts, vectors = made_up(CHINESE, joined="")
    texts = [text.replace("the", "我们").replace("and", "可以") for text in texts]
    vectors.text = TextSettings(language="zh")
    found = topics(texts, vectors, num_topics=2)
    assert found.language == "zh"
    words = [set(one.words) for one in found.topics]
    assert all(word not in {"我们", "可以"} for own in words for word in own)
    assert set(CHINESE["动物"]) in words or set(CHINESE["交通"]) in words


def test_a_table_and_a_picture(tmp_path):
    texts, vectors = made_up(SUBJECTS)
    texts.insert(40, "yak")  # a word without a vector
    out, picture = tmp_path / "topics.jsonl", tmp_path / "map.svg"
    found = topics([*texts, "zebra"], vectors, num_topics=3, out=out, picture=picture)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["topic"] or 0 for row in rows] == found.of_rows.tolist()
    assert rows[-1]["topic"] is None and found.num_left_out == 2 and rows[40]["topic"] is None
    examples = {text for topic in found.topics for text in topic.examples}
    assert examples <= {*texts} - {"yak"}
    for topic in found.topics:
        assert {rows[texts.index(own)]["topic"] for own in topic.examples} == {topic.number}
    assert rows[0]["text"] == texts[0]
    assert rows[0]["topic_words"].split() == found.topics[rows[0]["topic"] - 1].words
    assert "in 3 topics" in picture.read_text(encoding="utf-8")
    told = found.to_dict()
    assert told["num_rows"] == 92 and told["topics"][0]["num_rows"] >= 30
    json.dumps(told)


def test_many_rows_are_clustered_a_part_at_a_time(monkeypatch):
    from sememe.search import topics as module

    texts, vectors = made_up(SUBJECTS, num_each=100)
    monkeypatch.setattr(module, "_MANY", 100)
    found = topics(texts, vectors, num_topics=3)
    assert sorted(one.num_rows for one in found.topics) == [100, 100, 100]


def test_dicts_may_have_keys_of_any_type(tmp_path):
    texts, vectors = made_up(SUBJECTS, num_each=10)
    rows = [{"text": text, ("a", 1): number, 7: "x"} for number, text in enumerate(texts)]
    topics(rows, vectors, num_topics=3, out=tmp_path / "topics.jsonl")
    first = json.loads((tmp_path / "topics.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert first["('a', 1)"] == 1 and first["7"] == "x"


def test_what_is_refused(tmp_path):
    texts, vectors = made_up(SUBJECTS, num_each=2)
    for options, error, message in (
        ({"num_topics": 9}, OptionError, "more than the 6 rows"),
        ({"method": "hdbscan"}, OptionError, "smaller --min-size"),
        ({"method": "lda"}, OptionError, "method"),
        ({"out": tmp_path / "x.doc"}, OptionError, "end in"),
        ({"picture": "x.gif"}, OptionError, "png"),
    ):
        with pytest.raises(error, match=message):
            topics(texts, vectors, **options)
    with pytest.raises(InputError, match="two rows"):
        topics(["zebra", "yak"], vectors)
