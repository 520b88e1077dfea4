"""Models in scikit-learn: its own estimator checks, pipelines, searches, copies and pickles."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

import sememe
from sememe.errors import InputError, OptionError, UnsupportedError
from sememe.text.settings import TextSettings
from sememe.vectors import WordVectors

FEW = {"min_count": 1, "workers": 1}
MODELS: dict[str, dict[str, Any]] = {
    "Word2Vec": {"dim": 6, "epochs": 2, **FEW},
    "FastText": {"dim": 6, "epochs": 2, "bucket": 50, **FEW},
    "Doc2Vec": {"dim": 6, "epochs": 2, "infer_epochs": 3, **FEW},
    "GloVe": {"dim": 6, "epochs": 2, **FEW},
    "Counts": {"dim": 6, **FEW},
    "OneHot": FEW,
}
ANIMALS = ["cat", "dog", "mouse", "horse", "cow", "sheep", "goat", "hen"]
RULERS = ["king", "queen", "prince", "duke", "crown", "castle", "throne", "sword"]
OTHERS = ["the", "a", "of", "and", "in", "on", "with", "for"]


def labelled_texts(num: int, seed: int = 1) -> tuple[list[str], np.ndarray]:
    """Texts of two topics among words that say nothing, and the topics as numbers."""
    random = np.random.default_rng(seed)
    topics = random.integers(0, 2, num)
    texts = [
        " ".join(random.permutation([*random.choice(own, 3), *random.choice(OTHERS, 6)]))
        for own in (ANIMALS if topic else RULERS for topic in topics)
    ]
    return texts, topics


def model_of(name: str, **options: Any) -> Any:
    return getattr(sememe, name)(**MODELS[name] | options)


# ---- scikit-learn's own checks ------------------------------------------------------------------


class OnNumbers:
    """The checks give tables of numbers: every cell becomes a word that names column and value.

    Shapes, NaN and the number of columns are checked here, by scikit-learn's own function, because
    texts have none of them. All else is the model under test.
    """

    def texts(self, X: Any, *, reset: bool = False) -> list[str]:
        if not reset:
            check_is_fitted(self)
        rows = validate_data(self, X, reset=reset).tolist()
        return [" ".join(f"c{n}_{round(2 * cell)}" for n, cell in enumerate(row)) for row in rows]

    def fit(self, X: Any, y: Any = None) -> Any:
        return super().fit(self.texts(X, reset=True), y)  # type: ignore[misc]

    def transform(self, X: Any) -> Any:
        return super().transform(self.texts(X))  # type: ignore[misc]

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X, y).transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array, tags.input_tags.string = True, False
        return tags


class ClassifierOnNumbers(OnNumbers, sememe.FastTextClassifier):
    def predict(self, X: Any) -> Any:
        return super().predict(self.texts(X))

    def predict_proba(self, X: Any) -> Any:
        return super().predict_proba(self.texts(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        return accuracy_score(y, self.predict(X), sample_weight=sample_weight)


# Checks that do not apply, with the reason.
NOT_APPLICABLE = {
    "check_no_attributes_set_in_init": "models have more state than parameters: history, tensors",
    "check_dont_overwrite_parameters": "`fit` notes its data in the public attribute `data`",
    "check_do_not_raise_errors_in_init_or_set_params": "options are checked when they are given",
    "check_dict_unchanged": "tables that speed up searches are made at their first use",
}
ONLY = {"GloVe": {"check_fit2d_1feature": "a text of one word has no pairs to count"}}


# Names of this module, so that they can be pickled.
globals().update(
    {f"{name}OnNumbers": type(f"{name}OnNumbers", (OnNumbers, getattr(sememe, name)), {})
     for name in MODELS}
)  # fmt: skip


def checked(name: str) -> Any:
    if name == "FastTextClassifier":
        return ClassifierOnNumbers(workers=1, epochs=20, learning_rate=0.5, dim=10)
    return globals()[f"{name}OnNumbers"](**MODELS[name], language="none")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MODELS, "FastTextClassifier"])
def test_the_checks_of_scikit_learn_pass(name: str, own_cache: Path):
    expected = NOT_APPLICABLE | ONLY.get(name, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of not inheriting from BaseEstimator
        results = check_estimator(checked(name), on_fail=None, on_skip=None)
    failed = {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"}
    assert set(failed) == set(expected), failed
    assert sum(one["status"] == "passed" for one in results) >= 40


@pytest.mark.parametrize("name", [*MODELS, "FastTextClassifier"])
def test_texts_are_declared_as_input(name: str):
    model = getattr(sememe, name)(workers=1)
    tags = model.__sklearn_tags__()
    assert tags.input_tags.string and not tags.input_tags.two_d_array
    assert tags.requires_fit and not tags.non_deterministic
    assert is_classifier(model) == tags.target_tags.required == (name == "FastTextClassifier")
    assert getattr(sememe, name)().__sklearn_tags__().non_deterministic  # all cores
    with pytest.warns(Warning, match="Can't test estimator"):  # by itself it finds nothing to test
        check_estimator(model)


# ---- parameters ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MODELS, "FastTextClassifier"])
def test_parameters_are_the_options_of_model_and_text(name: str):
    made = getattr(sememe, name)
    config = {field.name for field in fields(made.config_class)}
    text = {field.name for field in fields(TextSettings)}
    assert not config & text
    model = made(language="zh", workers=1)
    params = model.get_params()
    assert set(params) == config | text | set(model.embed_options)
    assert params["language"] == "zh" and params["workers"] == 1
    copied = clone(model)
    assert type(copied) is made and copied is not model and copied.get_params() == params
    assert model.set_params(lowercase=False, workers=2) is model
    assert (model.get_params()["lowercase"], model.config.workers) == (False, 2)
    assert copied.get_params() == params
    for wrong in ({"no_such": 1}, {"workers": -1}, {"language": "?"}):
        with pytest.raises(OptionError) as error:
            model.set_params(**wrong)
        assert isinstance(error.value, ValueError) and next(iter(wrong)) in str(error.value)
    assert model.config.workers == 2  # nothing of a wrong call stays
    assert model.set_params() is model


def test_a_model_whose_options_change_must_be_fitted_again():
    texts, _ = labelled_texts(30)
    model = model_of("Word2Vec").fit(texts)
    before = model.transform(texts)
    assert np.array_equal(model.set_params(pool="mean").transform(texts), before)
    assert not np.array_equal(model.set_params(pool="max").transform(texts), before)
    with pytest.raises(NotFittedError):
        model.set_params(dim=9).transform(texts)
    assert model.get_params()["pool"] == "max"


def test_settings_of_the_constructor_are_those_of_fit(tmp_path: Path):
    texts = ["我喜欢学习自然语言处理。", "他们喜欢自然语言。"] * 20
    given = model_of("Word2Vec", language="zh").fit(texts)
    named = model_of("Word2Vec").fit(texts, language="zh")
    assert given.text == named.text and np.array_equal(given.input, named.input)
    assert "自然语言" in given.vectors
    assert model_of("Word2Vec", language="zh").fit(texts, language="en").text.language == "en"
    given.save(tmp_path / "model")
    assert sememe.Word2Vec.load(tmp_path / "model").get_params()["language"] == "zh"


# ---- pipelines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_a_model_in_a_pipeline(name: str, own_cache: Path):
    texts, topics = labelled_texts(60)
    model = model_of(name)
    with pytest.raises(NotFittedError):
        model.transform(texts)
    pipeline = make_pipeline(model, LogisticRegression())
    assert len(cross_val_score(pipeline, texts, topics, cv=2, error_score="raise")) == 2
    pipeline.fit(texts, topics)
    rows = pipeline[0].transform(texts)
    assert rows.shape == (60, len(pipeline[:-1].get_feature_names_out()))
    np.testing.assert_array_equal(rows, pipeline[0].embed(texts))
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict_proba(texts), pipeline.predict_proba(texts))
    # One worker and a seed: fit and transform, together or one after the other, give the same.
    np.testing.assert_array_equal(model_of(name).fit_transform(np.array(texts)), rows)
    np.testing.assert_array_equal(model_of(name).fit(texts, topics).transform(texts), rows)
    assert name in repr(pipeline) and name in pipeline._repr_html_()


def test_texts_come_as_lists_arrays_and_columns():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    texts, topics = labelled_texts(20)
    model = model_of("Counts").fit(texts)
    rows = model.transform(texts)
    table = pandas.DataFrame({"text": texts, "size": range(20)}, index=range(5, 25))
    for given in (tuple(texts), np.array(texts), table["text"], table[["text"]],
                  polars.Series(texts), polars.DataFrame({"text": texts})):  # fmt: skip
        np.testing.assert_array_equal(model.transform(given), rows)
    for wrong in ("one text", None, table, np.zeros((3, 2)), [1, 2], [["a"], ["b"]]):
        with pytest.raises(InputError):
            model.transform(wrong)
    columns = ColumnTransformer(
        [("words", clone(model), "text"), ("size", "passthrough", ["size"])]
    )
    both = columns.fit_transform(table, topics)
    np.testing.assert_allclose(both[:, :-1], rows)
    for table_class, output in ((pandas.DataFrame, "pandas"), (polars.DataFrame, "polars")):
        made = clone(model).set_output(transform=output)
        found = clone(made).fit_transform(table["text"])
        assert isinstance(found, table_class) and list(found.columns)[:2] == ["counts0", "counts1"]
        np.testing.assert_array_equal(found.to_numpy(), rows)
    assert clone(model).set_output(transform="pandas").fit_transform(table["text"]).index[0] == 5
    with pytest.raises(OptionError):
        model.set_output(transform="csv")


def test_short_texts_are_not_taken_for_files():
    texts = ["cat", "dog", "a cat", "a dog", "the cat"] * 4
    one_word = ["cat", "dog"] * 10
    assert model_of("OneHot").fit_transform(one_word).shape == (20, 2)
    assert len(model_of("OneHot").fit(one_word, [0, 1] * 10).vocabulary) == 2
    assert len(model_of("OneHot").fit(texts).vocabulary) == 4
    with pytest.raises(InputError, match="cat"):
        model_of("OneHot").fit(["cat", "dog"])  # two files that do not exist


def test_a_search_ends_with_a_better_score(own_cache: Path):
    texts, topics = labelled_texts(200)
    pipeline = make_pipeline(sememe.Word2Vec(dim=10, workers=1, epochs=1), LogisticRegression())
    grid = {"word2vec__epochs": [1, 80], "word2vec__sample": [0.05]}
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2, error_score="raise").fit(texts, topics)
    default = cross_val_score(pipeline, texts, topics, cv=3).mean()
    assert search.best_params_["word2vec__epochs"] == 80
    assert search.best_score_ > default + 0.2
    assert search.best_score_ == max(search.cv_results_["mean_test_score"]) > 0.85
    assert search.best_estimator_[0].config.epochs == 80
    assert pipeline[0].config.epochs == 1 and not pipeline[0].is_fitted  # copies were trained
    others, expected = labelled_texts(50, seed=2)
    assert search.score(others, expected) > 0.85


# ---- the classifier -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["numbers", "words", "words with blanks"])
def test_the_classifier_answers_with_the_labels_it_was_given(kind: str, tmp_path: Path):
    texts, topics = labelled_texts(120)
    names = {"numbers": [3, 10], "words": ["ruler", "animal"], "words with blanks": ["a b", "b a"]}
    labels = np.array(names[kind])[topics]
    model = sememe.FastTextClassifier(preset="fasttext", workers=1, learning_rate=0.5, epochs=20)
    assert not hasattr(model, "classes_")
    assert model.fit(texts, labels) is model
    np.testing.assert_array_equal(model.classes_, np.unique(labels))
    said, chances = model.predict(texts), model.predict_proba(texts)
    assert said.dtype == labels.dtype and (said == labels).mean() > 0.95
    assert model.score(texts, labels) == (said == labels).mean()
    np.testing.assert_allclose(chances.sum(1), 1)
    np.testing.assert_array_equal(model.classes_[chances.argmax(1)], said)
    assert model.predict(texts[0]) == said[0]
    best = model.predict(texts[:5], k=2)
    for own, row, label in zip(best, chances, said, strict=False):
        assert own[0].label == str(label)
        assert own[0].probability == pytest.approx(row.max(), abs=1e-3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(texts), chances)
    np.testing.assert_array_equal(again.predict(texts), said)
    model.save(tmp_path / "model")
    saved = sememe.load(tmp_path / "model")
    assert [*saved.classes_] == sorted(map(str, names[kind]))
    assert [*saved.predict(texts)] == [*map(str, said)]
    assert not clone(saved).is_fitted  # a classifier is trained again


@pytest.mark.parametrize("loss", ["softmax", "hierarchical", "ova", "negative"])
def test_probabilities_sum_to_one_with_every_loss(loss: str):
    texts, topics = labelled_texts(120)
    labels = np.where(np.arange(120) % 10 == 0, 2, topics)
    model = sememe.FastTextClassifier(preset="fasttext", loss=loss, workers=1, epochs=10).fit(
        texts, labels
    )
    chances = model.predict_proba([*texts, "", "zzz"])
    assert chances.shape == (122, 3) and np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(1), 1)
    assert model.predict_proba([]).shape == (0, 3)


def test_a_text_without_a_known_word_gets_the_most_frequent_label():
    texts = ["good good good"] * 30 + ["good bad bad"] * 70
    model = sememe.FastTextClassifier(preset="fasttext", min_count=101, workers=1).fit(
        texts, [7] * 30 + [5] * 70
    )
    assert model.predict("qqq", k=1) == []
    assert model.predict(["qqq"]).tolist() == [5]
    np.testing.assert_allclose(model.predict_proba(["qqq"]), [[0.7, 0.3]])


def test_a_search_over_the_classifier(own_cache: Path):
    # Who comes first decides: single words know nothing, pairs of words do.
    random, topics = np.random.default_rng(1), np.arange(150) % 2
    texts = ["the dog bites the man", "the man bites the dog"] * 75
    texts = [f"{' '.join(random.choice(OTHERS, 3))} {text}" for text in texts]
    model = sememe.FastTextClassifier(
        preset="fasttext", workers=1, learning_rate=0.5, epochs=20, bucket=1_000
    )
    grid = {"word_ngrams": [1, 2], "lowercase": [False, True]}
    search = GridSearchCV(model, grid, cv=3, n_jobs=2, error_score="raise").fit(texts, topics)
    default = cross_val_score(model, texts, topics, cv=3).mean()
    assert search.best_score_ > max(0.9, default + 0.3)
    assert search.best_params_["word_ngrams"] == 2
    assert cross_val_predict(search.best_estimator_, texts, topics, cv=2).shape == (150,)
    chances = cross_val_predict(search.best_estimator_, texts, topics, cv=2, method="predict_proba")
    assert chances.shape == (150, 2)


def test_labels_that_cannot_be_learned_are_refused():
    model = sememe.FastTextClassifier(preset="fasttext", workers=1)
    texts = ["a cat", "a dog", "a cow"]
    for labels, says in (
        ([1, 2], "3 texts"),
        ([[1, 0], [0, 1], [1, 1]], "shape"),
        ([1, 1, 1], "one class"),
        ([0.5, 1.5, 2.25], "continuous"),
        (["a b", "a  b", "c"], "blanks"),
        (["", "a", "b"], "blanks"),
        ("dev.txt", "validation="),
    ):
        with pytest.raises(ValueError, match=says):
            model.fit(texts, labels)
    with pytest.raises(OptionError, match="requires y"):
        model.fit(texts)
    with pytest.raises(OptionError, match="validation="):
        model.fit("train.txt", ["a"])
    with pytest.raises(NotFittedError):
        model.predict(texts)
    with pytest.raises(UnsupportedError):
        model.score("a text")


# ---- what sememe.load opens ---------------------------------------------------------------------

ENCODERS = [
    "bert", "gpt", "elmo", "ulmfit", "nnlm", "seq2seq", "transformer", "classify", "doc2vec",
    "word2vec-skipgram-negative", "fasttext.bin", "vectors.txt", "onehot", "huggingface-bert",
    "sentence", "sentence-static",
]  # fmt: skip


@pytest.mark.parametrize("name", ENCODERS)
def test_what_was_loaded_is_used_as_it_is(name: str, golden: Path):
    pytest.importorskip("torch")
    model = sememe.load(golden / name)
    texts, topics = labelled_texts(24)
    rows = model.embed(texts)
    copied = clone(model)
    assert copied.get_params() == model.get_params() and copied is not model
    assert not model.__sklearn_tags__().requires_fit
    for own in (model, copied):
        np.testing.assert_array_equal(own.fit_transform(texts, topics), rows)
        assert own.fit(texts, topics) is own
        np.testing.assert_array_equal(own.transform(np.array(texts)), rows)
    pipeline = make_pipeline(model, LogisticRegression())
    assert np.isfinite(cross_val_score(pipeline, texts, topics, cv=2, error_score="raise")).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(texts), rows)
    with pytest.raises(OptionError, match="new one"):
        model.fit("corpus.txt")


def test_layers_of_a_loaded_network_can_be_searched(golden: Path):
    pytest.importorskip("torch")
    texts, topics = labelled_texts(24)
    pipeline = make_pipeline(sememe.load(golden / "bert"), LogisticRegression())
    grid = {"bert__layers": ["last", 0], "bert__pool": ["mean", "max"]}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, error_score="raise").fit(texts, topics)
    assert len(search.cv_results_["params"]) == 4
    assert pipeline[0].get_params() == {"pool": "auto", "layers": "last"}
    with pytest.raises(OptionError, match="dim"):
        pipeline.set_params(bert__dim=5)


def test_several_models_side_by_side(golden: Path):
    texts, topics = labelled_texts(40)
    counts, loaded = model_of("Counts"), sememe.load(golden / "vectors.txt")
    both = FeatureUnion([("counts", counts), ("loaded", loaded)])
    rows = both.fit_transform(texts, topics)
    assert rows.shape[1] == 6 + loaded.dim
    assert both.get_feature_names_out()[0] == "counts__counts0"
    pickle.loads(pickle.dumps(both)).transform(texts)


def test_what_a_kind_lacks_is_no_attribute(golden: Path):
    vectors = WordVectors(["a"], np.ones((1, 2)))
    ngram = sememe.load(golden / "ngram")
    for model, lacks, has in (
        (vectors, ("predict", "score", "predict_proba", "classes_"), ("transform", "fit")),
        (sememe.Word2Vec(), ("predict", "score", "predict_proba"), ("transform", "fit")),
        (ngram, ("predict", "transform", "fit_transform"), ("score",)),
        (sememe.FastTextClassifier(), (), ("predict", "predict_proba", "score", "transform")),
    ):
        assert [name for name in lacks if hasattr(model, name)] == []
        assert [name for name in has if not hasattr(model, name)] == []
    with pytest.raises(UnsupportedError, match="cannot predict labels"):
        vectors.predict(["a"])


def test_unfitted_networks_can_be_copied():
    pytest.importorskip("torch")
    for model in (sememe.BERT("tiny", steps=5), sememe.ELMo(steps=5)):
        copied = clone(model)
        assert copied.get_params() == model.get_params() and copied.training.steps == 5
    task = sememe.Classify("runs/bert", epochs=2)
    assert clone(task).config == task.config and clone(task).model == "runs/bert"


def test_scikit_learn_is_imported_only_when_it_is_used():
    code = (
        "import sys, sememe; model = sememe.Word2Vec(dim=4); model.get_params(); "
        "sememe.FastTextClassifier(); print('sklearn' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"


def test_the_second_argument_of_fit_is_y():
    for name in (*MODELS, "FastTextClassifier"):
        arguments = [*inspect.signature(getattr(sememe, name).fit).parameters]
        assert arguments[2] == "y"
