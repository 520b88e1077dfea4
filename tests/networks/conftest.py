"""Small tokenizers and networks for the tests of this room."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

TEXTS = [
    "The animal did not cross the street because it was too tired.",
    "Strawberries are red, and the flightless bird was playing in the street.",
    "语言模型可以预测下一个词。猫坐在垫子上,狗在街上跑。",
    "The cat sat on the mat; the dog ran across the street again and again.",
] * 3


@pytest.fixture(scope="session")
def wordpiece():
    from sememe.tokens.subword_training import train_tokenizer

    return train_tokenizer(TEXTS, kind="wordpiece", vocab_size=300, min_frequency=1)


@pytest.fixture(scope="session")
def bpe():
    from sememe.tokens.subword_training import train_tokenizer

    return train_tokenizer(TEXTS, kind="bpe", vocab_size=400, min_frequency=1)


@pytest.fixture(scope="session")
def bert(wordpiece):
    from sememe.networks.bert import BERTNetwork
    from sememe.networks.presets import bert_config

    config = bert_config("tiny", vocab_size=wordpiece.vocab_size, max_length=32, width=32)
    return BERTNetwork(config).eval()


@pytest.fixture(scope="session")
def gpt(bpe):
    from sememe.networks.gpt import GPTNetwork
    from sememe.networks.presets import gpt_config

    # Wide spread first weights: scores far apart, as in a trained network.
    config = gpt_config("tiny", vocab_size=bpe.vocab_size, max_length=24, width=32, initial_std=0.4)
    return GPTNetwork(config).eval()
