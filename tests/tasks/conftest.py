"""A small BERT and GPT with their tokenizers, and rows that can be learned in seconds."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")

TEXTS = [
    "the old cat sat on a warm mat and slept all day long",
    "a young dog ran over the green field and barked at the birds",
    "good great lovely fine nice film story song book",
    "bad poor awful dull ugly film story song book",
    "猫坐在垫子上,狗在街上跑,电影很好看,故事很无聊。",
]
GOOD, BAD = ("good", "great", "lovely", "fine", "nice"), ("bad", "poor", "awful", "dull", "ugly")
THINGS = ("film", "story", "song", "book")


@pytest.fixture(scope="session")
def wordpiece():
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    return SubwordTokenizer.train(TEXTS * 3, kind="wordpiece", vocab_size=300, min_frequency=1)


@pytest.fixture(scope="session")
def bpe():
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer

    return SubwordTokenizer.train(TEXTS * 3, kind="bpe", vocab_size=400, min_frequency=1)


@pytest.fixture(scope="session")
def bert(wordpiece):
    from presets import bert_config
    from sememe.models.bert.network import BERTNetwork

    config = bert_config(
        "tiny", vocab_size=wordpiece.vocab_size, max_length=40, width=32, dropout=0.0,
        attention_dropout=0.0, initial_std=0.1,
    )  # fmt: skip
    return BERTNetwork(config).eval(), wordpiece


@pytest.fixture(scope="session")
def gpt(bpe):
    from presets import gpt_config
    from sememe.models.gpt.network import GPTNetwork

    config = gpt_config(
        "tiny", vocab_size=bpe.vocab_size, max_length=64, width=32, dropout=0.0,
        attention_dropout=0.0, initial_std=0.1,
    )  # fmt: skip
    return GPTNetwork(config).eval(), bpe


@pytest.fixture(scope="session")
def opinions():
    """Texts of two labels, 80 rows: a good or a bad word decides."""
    return [
        (f"the {word} {thing} of the day {'and night ' * (index % 3)}", label)
        for label, words in (("good", GOOD), ("bad", BAD))
        for word in words
        for index, thing in enumerate(THINGS * 2)
    ]


@pytest.fixture(scope="session")
def topics(bert, opinions, tmp_path_factory):
    """A task that has learned, and its folder."""
    from quick_tasks import QUICK

    from sememe import Classify

    folder = tmp_path_factory.mktemp("task") / "topics"
    return Classify(bert, **QUICK).fit(opinions, out=folder), folder
