"""Every kind of model asked to foretell a text or a word: figures, or one sentence why not."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

QUICK = ("--steps", 2, "--batch-size", 4, "--workers", 1, "--device", "cpu", "--quiet")
MODELS = {
    "ngram": ("--quiet",),
    "nnlm": ("--dim", 8, "--num-hidden", 8, "--min-count", 1, *QUICK),
    "elmo": ("--num-cells", 8, "--width", 8, "--min-count", 1, *QUICK),
    "ulmfit": ("--num-cells", 8, "--width", 8, "--min-count", 1, *QUICK),
    "gpt": ("--vocab-size", 300, "--width", 16, "--num-heads", 2, *QUICK),
}


@pytest.mark.parametrize("kind", MODELS)
def test_language_models_of_every_kind(sememe, corpus, kind):
    sememe("train", kind, corpus, "--out", "model", *MODELS[kind])
    found = sememe("evaluate", "perplexity", "model", corpus, "--json", "--quiet").json
    assert found["words"] == 4 * 40 + len(corpus.read_text().split()) - 160  # no full stops
    assert found["perplexity"] > 1 and found["unknown_words"] == 0
    assert found["perplexity"] == pytest.approx(10 ** (-found["log10"] / found["words"]))
    said = sememe("suggest", "model", "the red ", "-k", 2, "--json").json["suggestions"]
    assert len(said) == 2


def test_others_say_in_a_sentence_why_not(sememe, corpus, tmp_path):
    sememe(
        "train", "bert", corpus, "--out", "bert", "--vocab-size", 200, "--width", 16, "--num-heads",
        2, *QUICK,
    )  # fmt: skip
    (tmp_path / "rows.tsv").write_text("label\ttext\n" + "good\tred cat\nbad\tblue dog\n" * 8)
    tune = ("--train", "rows.tsv", "--steps", 1, "--device", "cpu", "--quiet")
    sememe("finetune", "classify", "bert", "--out", "task", *tune)
    sememe("train", "onehot", corpus, "--out", "onehot", "--quiet")
    for model, says in (
        ("bert", "kinds that can: ngram"),
        ("task", "kinds that can: ngram"),
        ("onehot", "kinds that can: ngram"),
        ("nowhere", "nowhere"),
        (".", "cannot be opened"),
    ):
        for command in (("evaluate", "perplexity", model, corpus), ("suggest", model, "a ")):
            ran = sememe(*command, fails=True)
            assert ran.code == 2 and says in ran.err and ran.err.count("\n") == 1, ran.err
