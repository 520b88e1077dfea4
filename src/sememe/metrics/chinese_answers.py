"""CMRC 2018's exact match and F1: Chinese by characters, other text by words, and the longest run.

Unlike SQuAD's, the F1 counts the longest common run of pieces, in order and without gaps. Pieces
are Chinese characters and, between them, words as the Penn Treebank cuts them (the official script
calls NLTK for these). Listed punctuation is dropped first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sememe.metrics.answers import AnswerScore

# The official list also holds "……", two characters long; it is compared with single characters,
# so that an ellipsis stays. The half-width comma, full stop and brackets are not on it either.
DROPPED = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")

_CHINESE = re.compile(r"[\u4e00-\u9fa5]")
_QUOTES = re.compile(r"[«‘„»]")
_MARKS = re.compile(r"\.{2,}|[;@#$%&?!\[\](){}<>\u2012-\u2015]|,(?!\d)")
_FINAL_STOP = re.compile(r"(?<!\.)\.(?=[\])}>\"'» ]*$)")
# NLTK splits sentences before words; it leaves the stops of initials and abbreviations alone.
_SENTENCE_END = re.compile(
    r"(?<=\w\w\.)(?<!\b(?:co|dr|jr|ms|mr|no|sr|st|vs)\.)(?<!\b(?:etc|inc|ltd|mrs|rev)\.)"
    r"(?<!\bcorp\.)(?<!\.\w\w\.)\s+|(?<=[?!])\s+"
)
_OPENING_QUOTE = re.compile(r"(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)")
_SUFFIXES = re.compile(r"(?<=[^' ])(n't|'(?:ll|re|ve|s|m|d)?)(?= )")
_JOINED = re.compile(r"\b(?:(can)(not)|(gim)(me)|(gon)(na)|(got)(ta)|(lem)(me)|(wan)(na)(?= ))\b")


def _words(sentence: str) -> list[str]:
    """Cut one sentence of lower-case text without Chinese as the Treebank does."""
    text = re.sub(r"^\"", " `` ", _QUOTES.sub(r" \g<0> ", sentence))
    text = re.sub(r"(?<=[ (\[{<])(?:\"|'')", " `` ", text)
    text = _OPENING_QUOTE.sub("' ", text)
    text = _FINAL_STOP.sub(" . ", text)
    text = _MARKS.sub(r" \g<0> ", text)
    text = re.sub(r"\"|''", " '' ", text)
    text = _SUFFIXES.sub(r" \g<0>", " ".join(f" {text} ".split()) + " ")
    joined = _JOINED.sub(lambda found: " ".join(part for part in found.groups() if part), text)
    return joined.split()


def cut_mixed(text: str) -> list[str]:
    """Cut text into Chinese characters and the words between them; drop listed punctuation."""
    pieces: list[str] = []
    kept = "".join(char for char in text.lower().strip() if char not in DROPPED)
    start = 0
    for found in [*_CHINESE.finditer(kept), None]:
        between = kept[start : found.start() if found else len(kept)]
        for sentence in _SENTENCE_END.split(between) if between else ():
            pieces += _words(sentence)
        if found:
            pieces.append(found.group())
            start = found.end()
    return pieces


def longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest run of pieces that both contain."""
    best, lengths = 0, [0] * (len(second) + 1)
    for piece in first:
        # From the right, so that lengths[column] is still that of the row above.
        for column in range(len(second), 0, -1):
            lengths[column] = lengths[column - 1] + 1 if second[column - 1] == piece else 0
        best = max(best, *lengths)
    return best


def _run_f1(predicted: list[str], gold: list[str]) -> float:
    length = longest_run(gold, predicted)
    if not length:
        return 0.0
    precision, recall = length / len(predicted), length / len(gold)
    return 2 * precision * recall / (precision + recall)


def _bare(text: str) -> str:
    return "".join(char for char in text.lower().strip() if char not in DROPPED)


def are_chinese(golds: Iterable[Sequence[str]]) -> bool:
    """Whether most questions with answers have one with a Chinese character in it.

    A foreign name in brackets makes no English question Chinese, nor the other way round.
    """
    answered = [texts for texts in golds if texts]
    num_chinese = sum(any(map(_CHINESE.search, texts)) for texts in answered)
    return 2 * num_chinese > len(answered)


def score_chinese_answer(predicted: str, answers: Sequence[str]) -> AnswerScore:
    """Score one answer as CMRC 2018 does: the best of the gold answers, each figure by itself."""
    if not answers:
        raise ValueError("every question of CMRC 2018 has an answer; this one has none")
    pieces = cut_mixed(predicted)
    is_exact = _bare(predicted) in {_bare(answer) for answer in answers}
    return AnswerScore(
        float(is_exact), max(_run_f1(pieces, cut_mixed(answer)) for answer in answers)
    )
