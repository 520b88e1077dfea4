"""Series and DataFrames of pandas, polars and pyarrow wherever texts or rows are read."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import sememe
from sememe.errors import InputError, OptionError
from sememe.frames import is_frame, is_series, rows_of, texts_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

TEXTS = [
    "the red cat sat on the old mat",
    "a blue dog ran over the field",
    "红色 的 猫 喜欢 牛奶",
] * 12
COLUMNS = {"id": range(36), "body": TEXTS, "kind": ["cat", "dog", "猫"] * 12}
FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns, index=[7] * len(columns["id"])),
    "pandas-nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": lambda columns: pl.DataFrame({name: list(own) for name, own in columns.items()}),
    "pyarrow": lambda columns: pa.table({name: list(own) for name, own in columns.items()}),
}
every_frame = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
SMALL = {"dim": 8, "min_count": 1, "epochs": 1, "workers": 1, "seed": 1}
MODELS = {
    "Word2Vec": SMALL, "FastText": SMALL | {"bucket": 500}, "GloVe": SMALL, "Doc2Vec": SMALL,
    "Counts": {"dim": 8, "min_count": 1, "workers": 1}, "OneHot": {"min_count": 1},
    "NGram": {"order": 2},
}  # fmt: skip


@every_frame
def test_rows_and_texts(make):
    frame = make(COLUMNS | {"body": [None, *TEXTS[1:]]})
    assert is_frame(frame) and not is_series(frame)
    assert list(rows_of(frame))[:2] == [
        {"id": 0, "body": None, "kind": "cat"}, {"id": 1, "body": TEXTS[1], "kind": "dog"},
    ]  # fmt: skip
    assert texts_of(frame, {"text": "body"}) == ["", *TEXTS[1:]] == texts_of(frame["body"])
    assert is_series(frame["body"]) and not is_frame(frame["body"])
    with pytest.raises(InputError, match=r"no column 'text'.*'id', 'body', 'kind'"):
        texts_of(frame)


def test_what_is_no_frame():
    for data in ([], ["a"], {"text": ["a"]}, "a", np.array(["a"]), pl.LazyFrame({"a": [1]}), None):
        assert not is_frame(data) and not is_series(data)
    with pytest.raises(OptionError, match="DataFrame"):
        texts_of(["a"], {"text": "body"})
    with pytest.raises(InputError, match="two columns 'a'"):
        list(rows_of(pd.DataFrame([[1, 2]], columns=["a", "a"])))


@pytest.mark.parametrize("name", MODELS)
@every_frame
def test_static_models_learn_the_same_from_frames(own_cache, name, make):
    frame = make(COLUMNS)

    def fitted(corpus, **options):
        model = getattr(sememe, name)(**MODELS[name]).fit(corpus, language="zh", **options)
        if name == "NGram":
            return [model.score(text) for text in TEXTS[:3]]
        return model.words.vectors.tolist(), model.words.vocabulary[:5]

    expected = fitted(TEXTS)
    assert fitted(frame["body"]) == expected
    assert fitted(frame, columns={"text": "body"}) == expected
    with pytest.raises(InputError, match="'text'"):
        fitted(frame)


@every_frame
def test_networks_and_tokenizers_read_frames(own_cache, make):
    pytest.importorskip("torch")
    frame = make(COLUMNS)
    tokenizer = sememe.SubwordTokenizer.train(
        frame, vocab_size=200, text=sememe.TextSettings(columns={"text": "body"})
    )
    assert tokenizer.vocab_size == sememe.SubwordTokenizer.train(TEXTS, vocab_size=200).vocab_size
    options = {"preset": "tiny", "steps": 2, "batch_size": 2, "length": 16, "vocab_size": 200}
    bert = sememe.BERT(**options, device="cpu").fit(frame, columns={"text": "body"})
    assert bert.embed(frame["body"]).shape == (36, bert.embed(["a"]).shape[1])
    nnlm = sememe.NNLM(dim=8, min_count=1, steps=2, batch_size=2, length=8).fit(frame["body"])
    assert len(nnlm.words.vocabulary) > 10


@every_frame
def test_vectors_of_a_column(make):
    frame = make(COLUMNS | {"body": [None, *TEXTS[1:]]})
    words = ["the", "cat", "dog", "猫"]
    vectors = sememe.WordVectors(words, np.eye(4, dtype=np.float32))
    expected = vectors.embed(["", *TEXTS[1:]])
    np.testing.assert_array_equal(vectors.embed(frame["body"]), expected)
    np.testing.assert_array_equal(vectors.embed(frame, columns={"text": "body"}), expected)
    with pytest.raises(InputError, match="'content'"):
        vectors.embed(frame, columns={"text": "content"})


@every_frame
def test_classifiers_read_frames(make):
    frame, options = make(COLUMNS), {
        "preset": "fasttext", "dim": 8, "epochs": 20, "learning_rate": 0.5, "workers": 1,
    }  # fmt: skip
    roles = {"text": "body", "label": "kind"}
    model = sememe.FastTextClassifier(**options).fit(frame, validation=frame, columns=roles)
    rows = list(zip(TEXTS, COLUMNS["kind"], strict=True))
    same = sememe.FastTextClassifier(**options).fit(rows)
    assert model.labels == same.labels and model.text.columns == roles
    said = model.predict(frame, k=1)
    assert said == model.predict(frame["body"], k=1) == same.predict(TEXTS, k=1)
    assert model.predict(frame, k=1, columns={"text": "kind"}) != said
    assert [*model.predict(frame)] == [*model.predict(frame["body"])] == [*model.predict(TEXTS)]
    assert model.evaluate(frame).f1 == 1
    stream = list(model.predict_stream(frame, has_cells=True))
    assert stream[1].cells == {"id": 1, "body": TEXTS[1], "kind": "dog"}
    assert [row.prediction for row in stream] == said
    tuned = sememe.FastTextClassifier(**options).fit(
        frame, validation=frame, columns=roles, autotune=0.5
    )
    assert tuned.labels == model.labels
    with pytest.raises(InputError, match="no column 'nothing'"):
        sememe.FastTextClassifier(**options).fit(frame, columns={"label": "nothing"})


@every_frame
def test_fine_tuning_reads_frames(make):
    pytest.importorskip("torch")
    frame = make(COLUMNS)
    vectors = sememe.OneHot(min_count=1).fit(TEXTS, language="none")
    quick = {"device": "cpu", "workers": 1, "steps": 2, "batch_size": 8}
    task = sememe.Classify(vectors, **quick).fit(
        frame, dev=frame, columns={"text": "body", "label": "kind"}
    )
    assert task.labels == ["cat", "dog", "猫"] and task.columns["text"] == "body"
    assert [one.label for one in task.predict(frame)] == [one.label for one in task.predict(TEXTS)]
    assert task.predict(frame["body"]) == task.predict(TEXTS)
    assert next(task.predict_stream(frame)).cells["id"] == 0


@every_frame
def test_translators_read_frames(make):
    from sememe.examples.parallel import read_pairs

    frame = make({"id": range(2), "de": ["ein Haus", "一座 房子"], "en": ["a house", "a house"]})
    pairs = read_pairs(frame, columns={"source": "de", "target": "en"})
    assert [pair[:2] for pair in pairs] == [("ein Haus", "a house"), ("一座 房子", "a house")]


def test_no_frame_library_is_imported():
    """Nor is one needed: a program that never gives a frame starts without them."""
    program = (
        "import sys, sememe; sememe.OneHot(min_count=1).fit([['a', 'b']]).embed(['a b'])\n"
        "assert not {'pandas', 'polars', 'pyarrow'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=1_200)
