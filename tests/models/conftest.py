"""Small tokenizers and networks for the tests of this room."""

from __future__ import annotations

import pytest

TEXTS = [
    "The animal did not cross the street because it was too tired.",
    "Strawberries are red, and the flightless bird was playing in the street.",
    "语言模型可以预测下一个词。猫坐在垫子上,狗在街上跑。",
    "The cat sat on the mat; the dog ran across the street again and again.",
] * 3


@pytest.fixture(scope="session")
def wordpiece():
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    return SubwordTokenizer.train(TEXTS, kind="wordpiece", vocab_size=300, min_frequency=1)


@pytest.fixture(scope="session")
def bpe():
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    return SubwordTokenizer.train(TEXTS, kind="bpe", vocab_size=400, min_frequency=1)


@pytest.fixture(scope="session")
def bert(wordpiece):
    from presets import bert_config
    from sememe.models.bert.network import BERTNetwork

    config = bert_config("tiny", vocab_size=wordpiece.vocab_size, max_length=32, width=32)
    return BERTNetwork(config).eval()


@pytest.fixture(scope="session")
def gpt(bpe):
    from presets import gpt_config
    from sememe.models.gpt.network import GPTNetwork

    # Wide spread first weights: scores far apart, as in a trained network.
    config = gpt_config("tiny", vocab_size=bpe.vocab_size, max_length=24, width=32, initial_std=0.4)
    return GPTNetwork(config).eval()
