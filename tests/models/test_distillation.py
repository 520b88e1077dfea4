"""Distillation: the student equals its teacher's token vectors, and other programs open it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from typer.testing import CliRunner

import sememe
from sememe.cli import app
from sememe.errors import OptionError

TEXTS = ["The old king sees a cat.", "a bird in the garden", "the river"]
CHINESE = ["国王喜欢花园。", "小猫在花园里睡觉。", "老师和小猫在河边。"] * 8


def test_without_a_corpus_a_token_is_what_the_teacher_says(golden: Path) -> None:
    student = sememe.distill(golden / "sentence", dim=0)
    teacher = sememe.load(golden / "sentence")
    base = student.base
    alone = teacher.embed_ids([[index] for index in range(base.tokenizer.vocab_size)])

    def cosine(rows: np.ndarray) -> float:
        return float(rows[0] @ rows[1] / np.linalg.norm(rows[0]) / np.linalg.norm(rows[1]))

    # A rotation keeps the angles between tokens, and weights do, too.
    expected = cosine((alone - alone.mean(0))[[7, 40]])
    assert cosine(base.table_VD[[7, 40]]) == pytest.approx(expected, abs=1e-4)
    assert not base.table_VD[sorted(base.tokenizer.special_ids)].any()


def test_training_brings_it_nearer_to_the_teacher(golden: Path, place: Path) -> None:
    lines = [
        f"{text} {other}" for text in TEXTS for other in ("a cat", "the horse", "old", "a dog")
    ]
    (place / "text.txt").write_text("\n".join(lines * 10))
    student = sememe.distill(
        golden / "sentence", "text.txt", dim=4, words=5, epochs=200, out="static"
    )
    teacher = sememe.load(golden / "sentence")
    plain = sememe.distill(golden / "sentence", dim=4)

    def agreement(model: object) -> float:
        wanted = teacher.embed(lines) - teacher.embed(lines).mean(0)
        wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
        grams = [vectors @ vectors.T for vectors in (model.embed(lines), wanted)]
        return float(np.abs(grams[0] - grams[1]).mean())

    assert agreement(student) < agreement(plain)
    metrics = student.distilled["metrics"]
    assert metrics["validation_cosine"] > metrics["start_cosine"]
    opened = sememe.load("static")
    np.testing.assert_array_equal(opened.embed(TEXTS), student.embed(TEXTS))
    assert opened.distilled["sentences"] and opened.dim == 4


def test_model2vec_and_sentence_transformers_open_it(golden: Path, place: Path) -> None:
    model2vec = pytest.importorskip("model2vec")
    peer = pytest.importorskip("sentence_transformers")
    sememe.distill(golden / "sentence", out="static", dim=6)
    ours = sememe.load("static").embed([*TEXTS, "xyz ☃ 苹果"])
    for theirs in (
        model2vec.StaticModel.from_pretrained("static"),
        peer.SentenceTransformer("static", device="cpu"),
    ):
        np.testing.assert_allclose(theirs.encode([*TEXTS, "xyz ☃ 苹果"]), ours, atol=1e-5)


def test_chinese_words_become_tokens(golden: Path) -> None:
    student = sememe.distill(
        golden / "bert-chinese", CHINESE, language="zh", words=20, epochs=1, dim=8
    )
    tokenizer = student.base.tokenizer
    tokens = [tokenizer.token(index) for index in tokenizer.ids_batch(["小猫☃花园花园龘。"])[0]]
    assert tokens[:1] == ["小猫"] and "花园" in tokens and "##花园" in tokens, tokens
    assert np.abs(student.embed(["小猫在花园里"])).max() > 0


def test_unknown_tokens_are_not_trained(golden: Path) -> None:
    lines = [f"{text} ☃ ☂" for text in TEXTS] * 10
    student = sememe.distill(golden / "sentence", lines, dim=4, epochs=3)
    base = student.base
    assert base.tokenizer.unk_id in base.tokenizer.ids_batch(lines[:1])[0]
    assert not base.table_VD[sorted(base.tokenizer.special_ids)].any()


def test_a_generator_is_read_once(golden: Path) -> None:
    options = {"dim": 4, "words": 5, "epochs": 1}
    expected = sememe.distill(golden / "sentence", TEXTS * 10, **options)
    found = sememe.distill(golden / "sentence", (text for text in TEXTS * 10), **options)
    np.testing.assert_array_equal(found.embed(TEXTS), expected.embed(TEXTS))


def test_the_command_reads_a_corpus_in_the_language_of_the_teacher(
    golden: Path, place: Path
) -> None:
    (place / "text.txt").write_text("\n".join(CHINESE), "utf-8")
    teacher = sememe.SentenceModel(golden / "bert-chinese")
    assert teacher.text.language == "zh"
    for more, language in (([], "zh"), (["--language", "en"], "en")):
        command = ["distill", str(golden / "bert-chinese"), "text.txt", "--out", language, *more]
        ran = CliRunner().invoke(app, [*command, "--words", "5", "--epochs", "1", "--dim", "4"])
        assert ran.exit_code == 0, ran.output
        assert sememe.load(language).text.language == language


def test_what_cannot_be_distilled_says_so(golden: Path) -> None:
    with pytest.raises(OptionError, match="BERT"):
        sememe.distill(golden / "sentence-static")
    with pytest.raises(OptionError, match="corpus"):
        sememe.distill(golden / "sentence", words=5)
