"""The classifier as a user meets it: data in every form, predictions, scores, files, errors."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from labelled_texts import COMMON, lines, rows

import sememe
from sememe import FastTextClassifier
from sememe.errors import ArtifactError, InputError, OptionError, UnsupportedError, WriteError

SMALL = {
    "preset": "fasttext",
    "dim": 10,
    "epochs": 10,
    "learning_rate": 0.5,
    "workers": 1,
    "seed": 3,
}
LOSSES = ("softmax", "hierarchical", "ova", "negative")


@pytest.fixture(autouse=True)
def files(place: Path) -> None:
    (place / "train.txt").write_text(lines(300), encoding="utf-8")
    (place / "test.txt").write_text(lines(100, seed=2), encoding="utf-8")


def make(**options) -> FastTextClassifier:
    return FastTextClassifier(**{**SMALL, **options})


def learned(model: FastTextClassifier) -> np.ndarray:
    return np.asarray(model.weights.input)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("workers", [1, 2])
def test_it_learns(loss, workers):
    model = make(loss=loss, workers=workers)
    assert model.fit("train.txt") is model
    assert model.evaluate("test.txt").precision > 0.97
    assert model.history[-1]["loss"] < model.history[0]["loss"]
    assert sorted(model.labels) == ["food", "travel", "weather"]


@pytest.mark.parametrize("options", [{"word_ngrams": 2}, {"minn": 2, "maxn": 3}])
def test_it_learns_from_ngrams(options):
    model = make(bucket=5_000, **options).fit("train.txt")
    assert model.evaluate("test.txt").precision > 0.97
    if "maxn" in options:  # words that the text does not have, but their pieces
        assert model.predict("noodle breads") == "food"


def test_one_worker_and_a_seed_give_the_same_bits():
    first, second, other = (make(seed=seed).fit("train.txt") for seed in (3, 3, 4))
    assert np.array_equal(learned(first), learned(second))
    assert not np.array_equal(learned(first), learned(other))


def test_files_tables_and_rows_are_the_same_text(place: Path):
    data = rows(300)
    model = make().fit("train.txt")
    assert np.array_equal(learned(make().fit(data)), learned(model))
    assert np.array_equal(learned(make().fit(iter(data))), learned(model))
    table = ["text\tlabel"] + [f"{text}\t{label}" for text, label in data]
    (place / "train.tsv").write_text("\n".join(table) + "\n", encoding="utf-8")
    assert np.array_equal(learned(make().fit("train.tsv")), learned(model))
    (place / "unnamed.tsv").write_text("\n".join(table[1:]) + "\n", encoding="utf-8")
    assert np.array_equal(learned(make().fit("unnamed.tsv")), learned(model))
    (place / "chinese.csv").write_bytes(
        "\n".join(["评论,标签", *(f"{text},{label}" for text, label in data)]).encode("gb18030")
    )
    from_chinese = make().fit("chinese.csv", encoding="gb18030")
    assert np.array_equal(learned(from_chinese), learned(model))
    found = list(from_chinese.predict_file("chinese.csv"))
    assert found == list(model.predict_file("train.tsv")) and len(found) == 300
    records = [json.dumps({"body": text, "topic": label}) for text, label in data]
    (place / "train.jsonl").write_text("\n".join(records), encoding="utf-8")
    from_json = make().fit("train.jsonl", columns={"text": "body", "label": "topic"})
    assert np.array_equal(learned(from_json), learned(model))
    parts = lines(300).splitlines(keepends=True)
    for name, some in (("a.txt", parts[:100]), ("b.txt", parts[100:])):
        (place / name).write_text("".join(some), encoding="utf-8")
    assert np.array_equal(learned(make().fit(["a.txt", "b.txt"])), learned(model))


def test_wrong_bytes_are_replaced_in_columns_that_are_guessed_too(place: Path):
    table = ["评论,标签", *(f"{text},{label}" for text, label in rows(30))]
    (place / "bad.csv").write_bytes("\n".join(table).encode() + b"\n\xff again,food\n")
    with pytest.raises(InputError, match="UTF-8"):
        make().fit("bad.csv")
    assert make().fit("bad.csv", errors="replace").labels


def test_labels_of_rows_may_hold_blanks_and_be_several():
    data = [(text, [topic, "short words"]) for text, topic in rows(200)]
    model = make(loss="ova", epochs=20).fit(data)
    assert set(model.labels) == {"food", "travel", "weather", "short words"}
    first, second = model.predict("noodles and tea", k=2)
    assert {first.label, second.label} == {"food", "short words"}
    result = model.evaluate(data, k=2)
    assert result.num_examples == 200 and result.precision > 0.97 and result.recall > 0.97


def test_chinese_is_cut_into_words(place: Path):
    text = "".join(
        f"__label__{label} {words}\n"
        for words, label in [("我喜欢吃面条和米饭", "饮食"), ("火车开往北京", "旅行")] * 40
    )
    (place / "zh.txt").write_text(text, encoding="utf-8")
    model = make(epochs=20).fit("zh.txt", language="zh")
    assert "面条" in model.words and "火车" in model.words
    assert model.predict("他吃了米饭") == "饮食"
    assert model.predict(["北京的火车", "面条"]).tolist() == ["旅行", "饮食"]
    model.save("model")
    assert FastTextClassifier.load("model").predict("坐火车") == "旅行"
    pieces = make(epochs=20, minn=1, maxn=2, bucket=5_000).fit("zh.txt")
    assert pieces.predict("他吃了米饭") == "饮食"


def test_predictions_have_k_labels_above_the_threshold():
    model = make().fit("train.txt")
    everything = model.predict("rain and snow", k=-1)
    assert len(everything) == 3
    assert sum(p.probability for p in everything) == pytest.approx(1, abs=1e-3)
    assert [p.probability for p in everything] == sorted(
        (p.probability for p in everything), reverse=True
    )
    assert len(model.predict("rain and snow", k=3, threshold=0.5)) == 1
    assert model.predict([], k=1) == [] and len(model.predict([])) == 0
    many = model.predict(["rain", "tea"] * 3_000, k=2)
    assert len(many) == 6_000 and many[:2] == many[-2:]
    assert many[0] == model.predict("rain", k=2)
    assert (
        model.predict("rain") == many[0][0].label == model.predict("rain", threshold=0.1)[0].label
    )
    assert model.predict(["rain", "tea"]).tolist() == [many[0][0].label, many[1][0].label]


def test_newlines_and_line_ends_in_a_text():
    model = make().fit("train.txt")
    assert model.predict("rain\nsnow", k=-1) == model.predict("rain snow", k=-1)
    assert len(model.predict(["rain </s> tea", "tea\n\nrice", ""])) == 3
    assert model.predict("rain </s> tea", k=-1) == model.predict("rain", k=-1)


def test_a_text_without_known_words_has_no_label():
    data = [("good good good", "a"), ("good bad bad bad", "b")] * 50
    model = make(min_count=101).fit(data)
    assert list(model.words) == ["good", "bad"]  # the ends of 100 lines are too few
    assert model.predict("qqq", k=1) == [] and model.predict(["qqq", "bad"], k=1)[0] == []
    assert model.evaluate([("qqq", "a"), ("bad", "b")]).num_skipped == 1


def test_scores_by_hand(place: Path):
    model = make().fit("train.txt")
    (place / "few.txt").write_text(
        "__label__food noodles tea\n__label__food rain snow\n__label__weather rain\n"
        "__label__nowhere rain\n\n__label__travel\nno label here\n",
        encoding="utf-8",
    )
    result = model.evaluate("few.txt")
    # </s> alone is a text too, so the line with a label only is asked.
    assert (result.num_examples, result.num_skipped) == (4, 3)
    by_label = {one.label: one for one in result.labels}
    assert by_label["food"].precision >= by_label["food"].recall == 0.5
    assert by_label["weather"].recall == 1 and by_label["weather"].num_true == 1
    right = sum(one.recall * one.num_true for one in result.labels)
    assert result.precision == result.recall == pytest.approx(right / 4)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", [{}, {"word_ngrams": 2, "minn": 2, "maxn": 3, "bucket": 3_000}])
def test_folders_and_files_keep_everything(place: Path, loss, options):
    model = make(loss=loss, **options).fit("train.txt")
    texts = [text for text, _ in rows(50, seed=7)] + ["unseen wörter 东西"]
    model.save("model")
    model.save("model.bin")
    for path in ("model", "model.bin"):
        again = FastTextClassifier.load(path)
        assert again.predict(texts, k=3) == model.predict(texts, k=3)
        assert again.labels == model.labels and list(again.words) == list(model.words)
    folder = FastTextClassifier.load("model")
    assert folder.config == model.config and list(folder.history) == list(model.history)
    manifest = json.loads((place / "model" / "sememe.json").read_text(encoding="utf-8"))
    assert manifest["kind"] == "fasttext-classifier" and manifest["provenance"]


def test_stop_and_resume_give_the_same_bits(place: Path):
    whole = make(epochs=6, word_ngrams=2, bucket=500).fit("train.txt", out="whole")

    class Stop:
        every_words = 7_000

        def __call__(self, model, record):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(epochs=6, word_ngrams=2, bucket=500).fit("train.txt", out="part", callbacks=[Stop()])
    assert (place / "part.checkpoints").is_dir() and not (place / "part").exists()
    with pytest.raises(OptionError, match="epochs was 6"):
        make(epochs=7, word_ngrams=2, bucket=500).fit("train.txt", out="part", resume=True)
    again = make(epochs=6, word_ngrams=2, bucket=500).fit("train.txt", out="part", resume=True)
    assert np.array_equal(learned(again), learned(whole))
    assert not (place / "part.checkpoints").exists()
    finished = make(epochs=6, word_ngrams=2, bucket=500).fit("train.txt", out="part", resume=True)
    assert np.array_equal(learned(finished), learned(whole))


def test_vectors_to_start_from(place: Path):
    vectors = (
        sememe.Word2Vec(dim=10, min_count=1, epochs=1, workers=1)
        .fit([["noodles", "train", "neverseen", "rain"]] * 20)
        .vectors
    )
    model = make(epochs=1, learning_rate=1e-6).fit("train.txt", start=vectors)
    assert "neverseen" in model.words
    row = learned(model)[model.words.vocabulary.id("neverseen")]
    assert np.array_equal(row, vectors["neverseen"])
    np.testing.assert_allclose(
        learned(model)[model.words.vocabulary.id("rain")], vectors["rain"], atol=1e-4
    )
    with pytest.raises(OptionError, match="dim is 11"):
        make(dim=11).fit("train.txt", start=vectors)


def test_a_text_has_a_vector():
    model = make().fit("train.txt")
    one, many = model.embed(["rain and tea"])[0], model.embed(["rain and tea", "snow"])
    assert one.shape == (10,) and many.shape == (2, 10)
    assert np.array_equal(one, many[0])
    ids = [model.words.vocabulary.id(word) for word in ("rain", "and", "tea", "</s>")]
    np.testing.assert_allclose(one, learned(model)[ids].mean(axis=0), rtol=1e-5)


def test_a_full_disk_leaves_the_last_good_model(place: Path, monkeypatch: pytest.MonkeyPatch):
    model = make().fit("train.txt")
    for name in ("model", "model.bin"):
        model.save(name)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for name in ("model", "model.bin"):
            with pytest.raises(WriteError, match="disk is full"):
                make(seed=9).fit("train.txt").save(name)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "empty"),
        ("\n\n\n", "no label"),
        ("good film\nbad film\n", "no label.*__label__"),
        ("__label__a one\n__label__a two\n", "one label only"),
        (b"__label__a \xff\xfe\n__label__b x\n", "UTF-8"),
        ("label\ttext\n", "no label"),
    ],
)
def test_text_that_teaches_nothing(place: Path, content, message):
    path = place / "bad.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError, match=f"(?s)bad.txt.*{message}"):
        make().fit("bad.txt")


def test_other_bad_input(place: Path):
    with pytest.raises(InputError, match=r"nothing\.txt"):
        make().fit("nothing.txt")
    with pytest.raises(InputError, match="Row 1"):
        make().fit([("text", "label"), "text"])
    (place / "t.csv").write_text("text,class\na,b\n", encoding="utf-8")
    with pytest.raises(InputError, match="column 'topic'"):
        make().fit("t.csv", columns={"label": "topic"})
    rows = [f"a long review no {n},{n % 5},{'ab'[n % 2]}\n" for n in range(20)]
    (place / "u.csv").write_text("".join(["review,stars,shop\n", *rows]), encoding="utf-8")
    with pytest.raises(InputError, match=r"'stars'.*'shop'.*--column label=NAME"):
        make().fit("u.csv")
    with pytest.raises(InputError, match=r"no column for the label.* Write a tab"):
        (place / "t.tsv").write_text("很好的酒店\n一般的酒店\n", encoding="utf-8")
        make().fit("t.tsv")
    (place / "v.csv").write_text('review,stars\n好的,\n"",\n', encoding="utf-8")
    found = list(make().fit("train.txt").predict_file("v.csv"))
    assert len(found) == 2  # a row without a text is a row, too
    with pytest.raises(InputError, match="both a label and a word"):
        make(min_count=1_000).fit("train.txt")
    model = make().fit("train.txt")
    with pytest.raises(InputError, match="nothing to score"):
        (place / "other.txt").write_text("__label__else rain\n", encoding="utf-8")
        model.evaluate("other.txt")
    with pytest.raises(InputError, match="Text 1 is of type int"):
        model.predict(["a", 1])
    for wrong in ({"k": 0}, {"threshold": 1.5}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            model.predict("a", **wrong)


def test_models_that_are_none(place: Path):
    with pytest.raises(ArtifactError, match="no model"):
        FastTextClassifier.load("nowhere")
    with pytest.raises(ArtifactError, match=r"train\.txt"):
        FastTextClassifier.load("train.txt")
    sememe.Word2Vec(dim=4, min_count=1, epochs=1).fit([COMMON] * 20).save("vectors")
    with pytest.raises(ArtifactError, match="of kind word2vec, which gives no labels"):
        FastTextClassifier.load("vectors")
    with pytest.raises(WriteError, match="not a fasttext-classifier"):
        make().fit("train.txt", out="vectors")
    with pytest.raises(OptionError, match="fitted"):
        make().predict("text")
    with pytest.raises(OptionError, match="no_such_option"):
        make(no_such_option=1)
    with pytest.raises(OptionError, match="no_such_option"):
        make().fit("train.txt", no_such_option=1)
    for wrong in ({"loss": "hinge"}, {"minn": 4, "maxn": 2}, {"label_prefix": "a b"}, {"dim": -1}):
        with pytest.raises(OptionError):
            make(**wrong)


def test_learning_that_runs_away_is_told():
    with pytest.raises(sememe.SememeError, match="diverged"):
        make(learning_rate=100.0, epochs=200, loss="negative", dim=3).fit(
            [("x " * 3, "a"), ("x " * 3, "b")] * 50
        )


def test_a_classifier_gives_vectors_too(place: Path):
    model = make(word_ngrams=2).fit("train.txt", out="model")
    opened = sememe.load("model")
    assert opened.kind == "fasttext-classifier" and "predict" in opened.capabilities
    row = learned(model)[model.words.vocabulary.id("rain")]
    assert np.array_equal(model.words["rain"], row)
    (rows,) = opened.embed_words([["rain", "neverseen"]])
    assert np.array_equal(rows, [row, np.zeros(10)])
    assert opened.embed(["rain"], pool="max").shape == (1, 10)
    told = opened.describe()
    assert told["labels"] == len(model.labels) and told["config"]["word_ngrams"] == 2
    with pytest.raises(InputError):
        opened.embed("one text")
    with pytest.raises(UnsupportedError, match="bert"):
        opened.fill("a [MASK]")


@pytest.mark.parametrize("loss", LOSSES)
def test_class_weights_help_a_rare_label(place: Path, loss):
    data = [(f"{word} of the day", "常见") for word in ("tea", "rice", "rain")] * 60
    data += [("tea of the night", "rare")] * 4

    def chance(**options) -> float:
        model = make(loss=loss, epochs=3, **options).fit(data)
        return {one.label: one.probability for one in model.predict("tea of the night", k=-1)}[
            "rare"
        ]

    plain, balanced, named = (
        chance(),
        chance(class_weights="balanced"),
        chance(class_weights={"rare": 30}),
    )
    assert balanced > plain + 0.05 and named > plain + 0.05
    with pytest.raises(OptionError, match=r"'rar'.*常见, rare"):
        chance(class_weights="rar=2")
    make(loss=loss, class_weights="rare=3").fit(data).save("weighted")
    assert FastTextClassifier.load("weighted").config.class_weights == "rare=3"
