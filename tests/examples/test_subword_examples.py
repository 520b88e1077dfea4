"""Examples from real tokenizers and stores, Chinese and English, with words as rjieba cuts."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("tokenizers")

from sememe.examples.batches import preview, render
from sememe.examples.masking.batches import MaskedBatches
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.packing.rows import PackedBatches
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.store import open_or_build_subwords
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHINESE = [
    "使用语言模型来预测下一个词的概率。",
    "我们在北京大学学习自然语言处理。",
    "哈尔滨是黑龙江的省会。",
]
ENGLISH = ["The players were playing well.", "Nobody was watching the games."]


def tokenizer_of(tmp_path, pieces):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIALS, *pieces, ""]), encoding="utf-8")
    return SubwordTokenizer.load(tmp_path)


@pytest.fixture
def chinese(tmp_path):
    tokenizer = tokenizer_of(tmp_path, sorted(set("".join(CHINESE))))
    texts = ["".join(CHINESE[index % 3 :] + CHINESE) for index in range(30)]
    return open_or_build_subwords(texts, tokenizer, text=TextSettings(language="zh")), tokenizer


def test_chinese_words_are_hidden_whole(chinese):
    store, tokenizer = chinese
    source = MaskedBatches(
        store, tokenizer, MaskingConfig(unit="word", rate=0.1), length=64, batch_size=4,
        next_sentence=False,
    )  # fmt: skip
    assert not store.word_starts.all()
    runs = set()
    for step in range(source.batches_per_epoch):
        batch = source.batch(step)
        for run in np.split(batch.targets_N, np.flatnonzero(np.diff(batch.hidden_N) > 1) + 1):
            runs.add("".join(map(tokenizer.token, run)))
    assert {"语言", "概率", "处理"} & runs
    for run in runs:
        for word in ("哈尔滨", "概率", "省会"):
            assert not set(word) & set(run) or word in run


def test_the_lexicon_is_cut_as_the_text_is(chinese, tmp_path):
    store, tokenizer = chinese
    (tmp_path / "lexicon.txt").write_text("语言模型\n自然语言处理\n", encoding="utf-8")
    config = MaskingConfig(unit="phrase", lexicon=str(tmp_path / "lexicon.txt"), rate=0.2)
    source = MaskedBatches(store, tokenizer, config, length=64, batch_size=8)
    text = render(preview(source, tokenizer, num_rows=40))
    hidden = "".join(part.split("}")[0] for part in text.replace(" ", "").split("←")[2:])
    assert "自然语言处理" in hidden and "语言模型" in hidden


def test_english_words_are_hidden_whole(tmp_path):
    words = ["the", "play", "##ers", "were", "##ing", "well", ".", "no", "##body", "was", "watch",
             "game", "##s"]  # fmt: skip
    tokenizer = tokenizer_of(tmp_path, words)
    store = open_or_build_subwords([" ".join(ENGLISH)] * 20, tokenizer)
    source = MaskedBatches(
        store, tokenizer, MaskingConfig(unit="word"), length=32, batch_size=4, next_sentence=False
    )
    for step in range(source.batches_per_epoch):
        batch = source.batch(step)
        ids, is_hidden = batch.ids_BT.reshape(-1).copy(), np.zeros(batch.ids_BT.size, bool)
        ids[batch.hidden_N] = batch.targets_N
        is_hidden[batch.hidden_N] = True
        goes_on = np.flatnonzero(tokenizer.is_continuation[ids])
        assert (is_hidden[goes_on] == is_hidden[goes_on - 1]).all()


def test_running_text_of_a_store(chinese):
    store, tokenizer = chinese
    store.validation_share = 0.2
    train, held = (
        PackedBatches(store, tokenizer, length=32, batch_size=2, split=split)
        for split in ("train", "validation")
    )
    assert train.num_tokens + held.num_tokens == store.num_tokens
    assert train.num_tokens > held.num_tokens > 0
    ids = train.rows(0, train.rows_per_epoch).ids_BT
    num_documents = (~store.is_validation(np.arange(store.num_documents))).sum()
    assert (ids == tokenizer.sep_id).sum() == num_documents


def test_a_preview_of_bytes_is_text_again(tmp_path):
    from tokenizers.pre_tokenizers import ByteLevel

    pieces = [*sorted(ByteLevel.alphabet()), "<|endoftext|>"]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")
    tokenizer = SubwordTokenizer.load(tmp_path)
    store = open_or_build_subwords(CHINESE * 3, tokenizer, text=TextSettings(language="zh"))
    source = PackedBatches(store, tokenizer, length=400, batch_size=1)
    assert tokenizer.end_id in source.batch(0).ids_BT
    shown = render(preview(source, tokenizer, num_rows=2))
    assert "<|endoftext|>" in shown and any(text in shown for text in CHINESE)
