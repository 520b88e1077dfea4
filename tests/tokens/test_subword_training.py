"""Learning word pieces: the same ones every time, from any text, or a clear word why not."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers")
from subword_texts import HARD

from sememe.errors import InputError, OptionError
from sememe.progress import SILENT
from sememe.text.settings import TextSettings
from sememe.tokens.subwords import training
from sememe.tokens.subwords.tokenizer import SubwordTokenizer, TokenizerConfig
from sememe.tokens.subwords.training import FIRST

BLANKS = " \t\n\v\f\r"
ENGLISH = ["The strawberries were playing in the flightless café, and the berries played."] * 20
CHINESE = ["我喜欢红色的苹果。", "北京大学在中国的北京。", "老人给红色的猫一些牛奶。"] * 20


def hard_corpus() -> list[str]:
    """Text with every hard character, which must not depend on the run."""
    chosen = random.Random(7)
    words = ["playing", "played", "player", "berry", "berries", "strawberries", "Zoë", "naïve"]
    return [" ".join(chosen.choices([*words, *HARD], k=60)) for _ in range(100)]


def tokens(tokenizer: SubwordTokenizer) -> list[str]:
    return [tokenizer.token(number) for number in range(tokenizer.vocab_size)]


RUN = """
import sys
sys.path.insert(0, sys.argv[1])
from test_subword_training import hard_corpus
from sememe.tokens.subwords.tokenizer import SubwordTokenizer, TokenizerConfig
print(SubwordTokenizer.train(hard_corpus(), kind=sys.argv[2], vocab_size=600).fingerprint)
"""


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_two_processes_learn_the_same(kind: str) -> None:
    command = [sys.executable, "-c", RUN, str(Path(__file__).parent), kind]
    runs = [
        subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)
    ]
    assert runs[0] == runs[1] != ""
    own = SubwordTokenizer.train(hard_corpus(), kind=kind, vocab_size=600, workers=1)
    assert own.fingerprint == runs[0].strip()
    less = SubwordTokenizer.train(
        hard_corpus(), kind=kind, vocab_size=600, workers=3, memory=1 << 16
    )
    assert less.fingerprint == own.fingerprint


def test_special_tokens_have_the_ids_of_bert() -> None:
    own = SubwordTokenizer.train(ENGLISH, vocab_size=250)
    ids = (own.pad_id, own.unk_id, own.cls_id, own.sep_id, own.mask_id)
    assert ids == (0, 100, 101, 102, 103)
    assert tokens(own)[: len(FIRST)] == list(FIRST) and own.token(42) == "[unused42]"
    assert own.special_ids == set(ids)


def test_words_become_pieces() -> None:
    own = SubwordTokenizer.train(ENGLISH, vocab_size=200)
    pieces = [own.token(number) for number in own.encode("strawberries berries cafe").ids]
    assert "[UNK]" not in pieces and len(pieces) < len("strawberriesberriescafe")
    large = SubwordTokenizer.train(ENGLISH, vocab_size=5_000)
    assert large.vocab_size < 5_000
    assert [large.token(n) for n in large.encode("Strawberries").ids] == ["strawberries"]


def test_the_text_that_was_learned_is_never_unknown() -> None:
    corpus = hard_corpus()
    own = SubwordTokenizer.train(corpus, vocab_size=1_000, coverage=1.0)
    assert not any((own.encode(text, specials=False).ids == own.unk_id).any() for text in corpus)


def test_words_and_counts_are_those_of_the_tokenizer() -> None:
    """Counting chunks first gives the words that the tokenizer itself would count."""
    corpus = hard_corpus()
    for own in (
        SubwordTokenizer.train(corpus, vocab_size=1_000),
        SubwordTokenizer.train(corpus, kind="bpe", vocab_size=400),
        SubwordTokenizer.train(corpus, vocab_size=1_000, text=TextSettings(lowercase=False)),
    ):
        plain = [text.translate(dict.fromkeys(range(28, 32), " ")) for text in corpus]
        expected = Counter(word for text in plain for word in own.words_of(text.strip(BLANKS)))
        config = TokenizerConfig()
        chunks = training._count_chunks(corpus, own, TextSettings(), config, 1 << 20, SILENT)
        assert training.count_words(chunks, own) == expected


def test_case_and_accents() -> None:
    corpus = ["Zoë Zoë naïve"] * 9
    plain = SubwordTokenizer.train(corpus, vocab_size=200)
    assert plain.lowercase and plain.strip_accents and "zoe" in plain
    kept = SubwordTokenizer.train(corpus, vocab_size=200, accents="keep")
    assert kept.lowercase and not kept.strip_accents and "zoë" in kept
    cased = SubwordTokenizer.train(corpus, vocab_size=200, text=TextSettings(lowercase=False))
    assert not cased.lowercase and not cased.strip_accents and "Zoë" in cased
    both = SubwordTokenizer.train(
        corpus, vocab_size=200, accents="strip", text=TextSettings(lowercase=False)
    )
    assert "Zoe" in both


def test_chinese_characters_stand_alone() -> None:
    own = SubwordTokenizer.train(CHINESE, vocab_size=300, text=TextSettings(language="zh"))
    learned = tokens(own)[len(FIRST) :]
    assert {"我", "北", "京", "。"} <= set(learned)
    assert not any(len(token) > 1 and "京" in token for token in learned)
    assert own.decode(own.encode("我喜欢北京").ids) == "我喜欢北京"


def test_bytes() -> None:
    own = SubwordTokenizer.train(ENGLISH + CHINESE, kind="bpe", vocab_size=320)
    assert own.vocab_size == 320 and own.end_id == 319
    assert tokens(own)[0] == "!" and len(tokens(own)[255]) == 1
    assert "Ġthe" in own and not own.lowercase
    for text in (*ENGLISH[:1], *CHINESE[:3], "never seen: 😀\n\n ñ"):
        assert own.decode(own.encode(text).ids) == text


def test_the_rarest_characters_are_left_out() -> None:
    corpus = ["aaaa bbbb"] * 1_000 + ["rare: ж ж"]
    own = SubwordTokenizer.train(corpus, vocab_size=200, coverage=0.99)
    assert "ж" not in own and own.encode("ж").ids.tolist() == [own.unk_id]
    assert "ж" in SubwordTokenizer.train(corpus, vocab_size=200, coverage=1.0)


def test_a_long_text_is_thinned(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Counter({"the": 900, "of": 99, "rare": 1})
    assert Counter(" ".join(training._repeated(words)).split()) == words
    monkeypatch.setattr(training, "_MOST_WORDS", 100)
    thinned = Counter(" ".join(training._repeated(words)).split())
    assert thinned == {"the": 90, "of": 10}
    monkeypatch.setattr(training, "_WORDS_AT_ONCE", 7)
    assert Counter(" ".join(training._repeated(words)).split()) == thinned


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"vocab_size": 110},
            r"too small: 104 special tokens, 19 characters and .* lower coverage",
        ),
        ({"vocab_size": 256, "kind": "bpe"}, r"too small: 256 bytes and .*endoftext"),
        ({"vocab_size": 0}, "vocab_size must be between"),
        ({"kind": "unigram"}, "kind must be one of wordpiece, bpe"),
        ({"accents": "maybe"}, "accents must be one of"),
        ({"coverage": 1.5}, "coverage must be"),
        ({"vocabulary": 5}, "no option vocabulary"),
    ],
)
def test_absurd_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        SubwordTokenizer.train(ENGLISH, **options)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
@pytest.mark.parametrize("corpus", [[], [" \n\t"], iter([])])
def test_an_empty_corpus_is_refused(kind: str, corpus: Any) -> None:
    with pytest.raises(InputError, match="no text"):
        SubwordTokenizer.train(corpus, kind=kind, vocab_size=300)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        SubwordTokenizer.train(str(tmp_path / "nothing"))


def test_too_little_text_is_said() -> None:
    from recorded_notes import Notes  # another process imports this file alone

    notes = Notes()
    SubwordTokenizer.train(ENGLISH, vocab_size=9_000, progress=notes)
    assert "9,000" in notes.lines[-1]
