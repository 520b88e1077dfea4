"""One model of several languages: shares, tokenizer, settings, figures, resume; texts read once."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recorded_notes import Notes
from stopping import assert_equal, ctrl_c_at

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from sememe.errors import InputError, OptionError
from sememe.examples.packing.rows import MixedBatches
from sememe.models.bert.model import BERT
from sememe.models.gpt.model import GPT
from sememe.tokens.subwords.tokenizer import SubwordTokenizer
from sememe.tokens.subwords.training import smoothed_counts

SMALL = {
    "num_layers": 1, "width": 32, "num_heads": 2, "max_length": 32, "length": 32, "batch_size": 8,
    "workers": 1, "steps": 12, "evaluate_batches": 4, "validation_share": 0.2, "device": "cpu",
}  # fmt: skip
SUBJECTS = ("cat", "dog", "king", "girl", "teacher", "farmer")
CHINESE = ("国王喜欢红色的苹果。", "北京是中国的首都。")


@pytest.fixture
def texts(tmp_path: Path, own_cache: Path) -> dict[str, Path]:
    """A large English text and a small Chinese one."""
    random = np.random.default_rng(0)
    english = [
        " ".join(f"The {random.choice(SUBJECTS)} sees a fish." for _ in range(6))
        for _ in range(120)
    ]
    chinese = ["".join(random.choice(CHINESE, 5)) for _ in range(30)]
    found = {}
    for language, documents in (("en", english), ("zh", chinese)):
        found[language] = tmp_path / f"{language}.txt"
        found[language].write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return found


def bert(**options: Any) -> BERT:
    return BERT("tiny", **{**SMALL, "vocab_size": 220, **options})


def test_both_languages_are_learned_and_measured(texts):
    notes = Notes()
    options = {"steps": 400, "learning_rate": 0.01, "smoothing": 0.3}
    model = bert(**options, dropout=0.0, attention_dropout=0.0).fit(texts, progress=notes)
    metrics = model.history.last()
    for mark in ("", "en_", "zh_"):
        own = {n: metrics[f"validation_{mark}{n}"] for n in ("masked_loss", "unigram_loss")}
        assert own["masked_loss"] < own["unigram_loss"]
        assert metrics[f"validation_{mark}perplexity"] == pytest.approx(np.exp(own["masked_loss"]))
    for name in ("masked_loss", "unigram_loss", "unigram_accuracy", "next_accuracy"):
        of_each = sorted(metrics[f"validation_{language}_{name}"] for language in texts)
        assert of_each[0] <= metrics[f"validation_{name}"] <= of_each[1]
    (line,) = [line for line in notes.lines if line.startswith("Text of")]
    assert "en " in line and "zh " in line and "of the rows" in line and "pairs leave out" in line
    for token in ("fish", "苹", "国"):
        assert token in model.tokenizer


def test_every_language_is_read_in_its_own_way(texts):
    rows = bert(unit="word", rate=0.5, vocab_size=156).preview(texts, num_rows=200)
    num_pairs = 0
    for row in rows:  # 北京 is one word of Chinese: hidden as a whole or not at all
        for place in range(len(row.tokens) - 1):
            true = [row.hidden.get(at, row.tokens[at]) for at in (place, place + 1)]
            if true == ["北", "京"]:
                num_pairs += 1
                assert (place in row.hidden) == (place + 1 in row.hidden)
    assert num_pairs


def test_the_small_language_gets_more_than_its_share(texts):
    from sememe.models.language.texts import open_texts

    shares = {}
    for smoothing in (1.0, 0.5, 0.0):
        model = bert(smoothing=smoothing)
        source = open_texts(model, texts).source(model, "train")
        assert isinstance(source, MixedBatches)
        shares[smoothing] = source.shares[1]
    assert shares[1.0] < 0.3 and shares[1.0] < shares[0.5] < shares[0.0] == 0.5


def test_words_of_a_mix_are_counted_in_smoothed_shares():
    large, small = Counter(a=900, b=100), Counter(天=9, 地=1)
    mixed = smoothed_counts([large, small], 0.5)
    assert mixed.total() == pytest.approx(1010, abs=3)
    assert mixed["天"] / mixed.total() == pytest.approx(0.9 * 10**0.5 / (10**0.5 + 1000**0.5), 0.02)
    assert smoothed_counts([large], 0.3) == large


def test_a_tokenizer_may_be_given_and_a_gpt_mixes_too(texts, tmp_path):
    tokenizer = SubwordTokenizer.train(texts, kind="bpe", vocab_size=300, smoothing=0.5)
    model = GPT("tiny", **SMALL).fit(texts, tokenizer=tokenizer, out=tmp_path / "gpt")
    assert model.tokenizer is tokenizer
    assert {"validation_en_token_loss", "validation_zh_token_loss"} <= set(model.history.last())
    again = GPT.load(tmp_path / "gpt")
    assert_equal(model, again)
    assert set(again.languages) == {"en", "zh"} and sum(again.languages.values()) == pytest.approx(
        1
    )


def test_ctrl_c_then_resume_to_the_bit(texts, tmp_path):
    whole, out = bert().fit(texts), tmp_path / "model"
    with ctrl_c_at(7, MixedBatches):
        bert().fit(texts, out=out)
    with pytest.raises(OptionError, match=r"smoothing was 0\.7, is 0\.3"):
        bert(smoothing=0.3).fit(texts, tokenizer=whole.tokenizer, out=out, resume=True)
    assert_equal(whole, bert().fit(texts, out=out, resume=True))


def test_what_is_wrong_names_the_language(texts, tmp_path):
    with pytest.raises(OptionError, match="language must be a code"):
        bert().fit({"Chinese text": texts["zh"]})
    with pytest.raises(OptionError, match="names at least one"):
        bert().fit({})
    (tmp_path / "blank.txt").write_text(" \n")
    with pytest.raises(InputError, match="text of de has no text"):
        bert().fit({"en": texts["en"], "de": tmp_path / "blank.txt"})
    (tmp_path / "one.txt").write_text("Der Hund sieht einen Fisch. " * 9)
    with pytest.raises(InputError, match=r"de: .*next_sentence"):
        bert().fit({"en": texts["en"], "de": tmp_path / "one.txt"})


def test_one_language_without_validation_does_not_stop_the_other(texts):
    notes = Notes()
    few = {"en": texts["en"], "zh": ["国王喜欢苹果。他们学习语言。"]}
    model = bert(next_sentence=False, validation_share=0.1).fit(few, progress=notes)
    assert "without validation of zh" in notes
    metrics = model.history.last()
    assert "validation_en_masked_loss" in metrics and "validation_zh_masked_loss" not in metrics


@pytest.mark.parametrize("make", [BERT, GPT])
def test_a_text_that_can_be_read_once_is_kept_for_the_second_reading(make, texts, own_cache):
    documents = texts["en"].read_text(encoding="utf-8").split("\n\n")
    options = {**SMALL, "vocab_size": 300 if make is GPT else 160}
    listed = make("tiny", **options).fit(documents)
    streamed = make("tiny", **options).fit(document for document in documents)
    assert_equal(listed, streamed)
    del streamed
    assert not list(own_cache.rglob("*.text")), "the copy goes when it is not needed any more"


def test_a_pipe_is_read_once(texts, tmp_path):
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = texts["zh"].read_bytes()
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    model = bert().fit(pipe, language="zh", layout="paragraph")
    writer.join()
    assert_equal(model, bert().fit(texts["zh"], language="zh", layout="paragraph"))


def test_a_mapping_is_no_text_for_models_of_one_language(texts):
    from sememe import Word2Vec

    with pytest.raises(InputError, match="of type dict"):
        Word2Vec(min_count=1).fit(texts)
