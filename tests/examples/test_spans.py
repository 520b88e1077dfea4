"""Phrases to hide whole: from a lexicon, or found in the text; what happens when there are none."""

from __future__ import annotations

import numpy as np
import pytest
from subword_text import Store, Tokenizer

from sememe.errors import InputError
from sememe.examples.masking.batches import MaskedBatches, find_phrases, read_lexicon
from sememe.examples.masking.cohesion import Rules
from sememe.examples.masking.config import MaskingConfig
from sememe.examples.packing.rows import Documents

CHARACTERS = "哈尔滨是黑龙江的省会国际冰雪文化名城"
ENTITIES = ["哈尔滨", "黑龙江", "冰雪文化"]


def spaced(text: str) -> str:
    return "|".join(text)


@pytest.fixture
def chinese():
    tokenizer = Tokenizer(list(CHARACTERS))
    # The segmenter cuts 冰雪|文化 into two words, the lexicon knows it as one.
    sentence = "哈|尔|滨 是 黑|龙|江 的 省|会 国|际 冰|雪 文|化 名|城"
    return Store([[sentence] * 3] * 60, tokenizer), tokenizer


def hidden_runs(source, tokenizer):
    """Runs of neighboring hidden tokens, as text."""
    runs = set()
    for step in range(source.batches_per_epoch):
        batch = source.batch(step)
        cuts = np.flatnonzero(np.diff(batch.hidden_N) > 1) + 1
        for run in np.split(batch.targets_N, cuts):
            runs.add("".join(map(tokenizer.token, run)))
    return runs


def test_entities_of_a_lexicon_are_hidden_whole(chinese, tmp_path):
    store, tokenizer = chinese
    lexicon = tmp_path / "lexicon.txt"
    lexicon.write_text("\ufeff" + "\r\n".join(map(spaced, [*ENTITIES, "不在"])), encoding="utf-8")
    config = MaskingConfig(unit="phrase", lexicon=str(lexicon), rate=0.1)
    source = MaskedBatches(store, tokenizer, config, length=64, batch_size=4, next_sentence=False)
    runs = hidden_runs(source, tokenizer)
    for run in runs:
        for entity in ENTITIES:
            assert not set(run) & set(entity) or entity in run
    assert set(ENTITIES) <= runs


def test_a_dictionary_of_jieba_is_a_lexicon(tmp_path):
    lexicon = tmp_path / "words.txt"
    lexicon.write_text("哈|尔|滨 100 n\n黑|龙|江 3\nnew york 9 z\n", encoding="utf-8")
    tokenizer = Tokenizer([*CHARACTERS, "new", "york", "9", "z"])
    found = {"".join(map(tokenizer.token, ids)) for ids in read_lexicon(lexicon, tokenizer)}
    assert found == {"哈尔滨", "黑龙江", "newyork9z"}


def test_a_phrase_inside_a_longer_word_does_not_count(tmp_path):
    tokenizer = Tokenizer(["new", "york", "##er", "a"])
    lexicon = tmp_path / "lexicon.txt"
    lexicon.write_text("new york\n", encoding="utf-8")
    config = MaskingConfig(unit="phrase", lexicon=str(lexicon))
    options = {"length": 16, "batch_size": 2, "next_sentence": False}
    inside = Store([["a new york|er a"]] * 3, tokenizer)
    with pytest.raises(InputError, match="occurs in the text"):
        MaskedBatches(inside, tokenizer, config, **options)
    MaskedBatches(Store([["a new york a"]] * 3, tokenizer), tokenizer, config, **options)


def test_a_phrase_does_not_reach_over_the_end_of_a_sentence(tmp_path):
    tokenizer = Tokenizer(["new", "york", "a"])
    lexicon = tmp_path / "lexicon.txt"
    lexicon.write_text("new york\n", encoding="utf-8")
    config = MaskingConfig(unit="phrase", lexicon=str(lexicon))
    with pytest.raises(InputError, match="occurs in the text"):
        MaskedBatches(
            Store([["a new", "york a"]] * 3, tokenizer), tokenizer, config, length=16, batch_size=2
        )


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"\n \n", "is empty"), ("城".encode("gbk"), "not UTF-8"), (None, "read")],
)
def test_lexicons_that_cannot_be_used_are_said(chinese, tmp_path, content, message):
    store, tokenizer = chinese
    path = tmp_path / "lexicon.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        MaskedBatches(
            store, tokenizer, MaskingConfig(unit="phrase", lexicon=str(path)), length=32,
            batch_size=2,
        )  # fmt: skip


def test_phrases_are_found_in_the_text():
    random = np.random.default_rng(4)
    words = [f"w{index}" for index in range(300)]
    tokenizer = Tokenizer([*words, "los", "angel", "##es", *"人工智能"])
    documents = []
    for _ in range(200):
        sentence = random.choice(words, 20).tolist()
        sentence[5:5] = ["los", "angel|es"] if random.random() < 0.3 else ["人|工", "智|能"]
        documents.append([" ".join(sentence)])
    store = Store(documents, tokenizer)
    phrases = find_phrases(Documents(store, "train"), tokenizer, threshold=20)
    text = {" ".join(tokenizer.token(index) for index in phrase) for phrase in phrases}
    assert text == {"los angel ##es", "人 工 智 能"}
    config = MaskingConfig(unit="phrase")
    with pytest.raises(InputError, match="often enough to be a phrase"):
        MaskedBatches(
            Store([["w1 w2 w3"], ["w2 w1"]], tokenizer), tokenizer, config, length=16, batch_size=2
        )


def test_a_second_pass_finds_longer_phrases(monkeypatch):
    from sememe.examples.masking import batches

    random = np.random.default_rng(4)
    words = [f"w{index}" for index in range(300)]
    tokenizer = Tokenizer([*words, "new", "york", "time", "##s", *"自然语言处理"])
    documents = []
    for number in range(240):
        sentence = random.choice(words, 20).tolist()
        longer = [["new", "york", "time|s"], ["自|然", "语|言", "处|理"]][number % 2]
        sentence[5:5] = longer
        documents.append([" ".join(sentence), " ".join(random.choice(words, 5))])
    own = Documents(Store(documents, tokenizer), "train")

    def found(**options):  # by pairs alone
        none_free = Rules(cohesion=1e9)
        phrases = find_phrases(own, tokenizer, threshold=20, rules=none_free, **options)
        return {" ".join(tokenizer.token(index) for index in phrase) for phrase in phrases}

    pairs = {"new york", "york time ##s", "自 然 语 言", "语 言 处 理"}
    assert found(passes=1) == pairs
    assert found() == pairs | {"new york time ##s", "自 然 语 言 处 理"}
    monkeypatch.setattr(batches, "_MAX_TOKENS", len(own.ids) // 2)  # every second document is read
    assert found(passes=1) == {"new york", "york time ##s"}
    assert found() == {"new york", "york time ##s", "new york time ##s"}
