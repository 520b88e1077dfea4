"""Exact match and F1 of answers, as the official scripts of SQuAD and CMRC 2018 compute them.

SQuAD compares normalised words as bags. CMRC compares Chinese characters and other words by the
longest common run.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


class AnswerScore(NamedTuple):
    """Exact match and F1 of one prediction, or their mean; from 0 to 1."""

    exact: float
    f1: float


class Threshold(NamedTuple):
    """The best score over all no-answer thresholds, and the `threshold` that reaches it."""

    score: float
    threshold: float


def normalize_answer(text: str) -> str:
    """Lower the case, drop punctuation, then articles, then extra white space: in that order.

    The order matters: `a-b` becomes `ab` and keeps its a; `(the)` becomes empty.
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _overlap(predicted: list[str], gold: list[str]) -> float:
    return _f1((Counter(predicted) & Counter(gold)).total(), len(predicted), len(gold))


def _f1(num_shared: int, num_predicted: int, num_gold: int) -> float:
    if not num_shared:
        return 0.0
    # As the official scripts round it: 2 shared / (predicted + gold) differs in the last digit.
    precision, recall = num_shared / num_predicted, num_shared / num_gold
    return 2 * precision * recall / (precision + recall)


def score_answer(predicted: str, answers: Sequence[str]) -> AnswerScore:
    """Score one answer as in SQuAD 1.1: the best over the gold answers, each metric separately.

    Two answers that normalise to nothing match exactly, but share no word: their F1 is 0.
    """
    if not answers:
        raise ValueError("a question without answers can only be scored by version 2.0")
    normal = normalize_answer(predicted)
    golds = [normalize_answer(answer) for answer in answers]
    return AnswerScore(
        float(normal in golds), max(_overlap(normal.split(), gold.split()) for gold in golds)
    )


def score_answer_or_none(predicted: str, answers: Sequence[str]) -> AnswerScore:
    """Score one answer by version 2.0; no `answers`: the question has none, and "" is right."""
    golds = [gold for gold in map(normalize_answer, answers) if gold] or [""]
    normal = normalize_answer(predicted)
    overlaps = [
        _overlap(normal.split(), gold.split()) if normal and gold else float(normal == gold)
        for gold in golds
    ]
    return AnswerScore(float(normal in golds), max(overlaps))


def mean_answer_score(scores: Sequence[AnswerScore]) -> AnswerScore:
    """Average the scores of all questions; NaN for none."""
    if not scores:
        return AnswerScore(math.nan, math.nan)
    return AnswerScore(
        sum(score.exact for score in scores) / len(scores),
        sum(score.f1 for score in scores) / len(scores),
    )


def best_threshold(
    scores: Sequence[float],
    no_answer: Sequence[float],
    has_answer: Sequence[bool],
    is_empty: Sequence[bool],
) -> Threshold:
    """Find the no-answer threshold with the best mean score, as the official script does.

    `scores` are the exact matches or F1s of the raw predictions, `is_empty` says which of those
    were "". Questions are added by rising no-answer score, ties in the given order: as in the
    official script, the best may be between equal scores, where no threshold can be.
    """
    if not len(scores):
        return Threshold(math.nan, 0.0)
    if any(math.isnan(value) for value in (*scores, *no_answer)):
        raise ValueError("a score or a no-answer score is NaN")
    # Nothing answered: every question without an answer is right.
    current = best = float(sum(not has for has in has_answer))
    threshold = 0.0
    rows = sorted(zip(no_answer, scores, has_answer, is_empty, strict=True), key=lambda row: row[0])
    for value, score, has, empty in rows:
        current += score if has else (0 if empty else -1)
        if current > best:
            best, threshold = current, value
    return Threshold(best / len(scores), threshold)


# The official list also holds "……", two characters long; it is compared with single characters,
# so that an ellipsis stays. The half-width comma, full stop and brackets are not on it either.
DROPPED = frozenset("-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")

# As in the official script of CMRC 2018, so that its scores can be compared.
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
    """Tokenize one sentence of lower-case text without Chinese as in the Treebank."""
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
    """Split text into Chinese characters and the words between them; drop listed punctuation."""
    pieces: list[str] = []
    kept, start = _bare(text), 0
    for found in [*_CHINESE.finditer(kept), None]:
        between = kept[start : found.start() if found else len(kept)]
        for sentence in _SENTENCE_END.split(between) if between else ():
            pieces += _words(sentence)
        if found:
            pieces.append(found.group())
            start = found.end()
    return pieces


def longest_run(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common contiguous run of parts."""
    return SequenceMatcher(None, first, second, autojunk=False).find_longest_match().size


def _bare(text: str) -> str:
    return "".join(char for char in text.lower().strip() if char not in DROPPED)


def are_chinese(golds: Iterable[Sequence[str]]) -> bool:
    """Whether most questions with answers have one with a Chinese character.

    A foreign name in parentheses does not make an English question Chinese, nor the reverse.
    """
    answered = [texts for texts in golds if texts]
    return 2 * sum(any(map(_CHINESE.search, texts)) for texts in answered) > len(answered)


def score_chinese_answer(predicted: str, answers: Sequence[str]) -> AnswerScore:
    """Score one answer as in CMRC 2018: the best over the gold answers, each metric separately."""
    if not answers:
        raise ValueError("every question of CMRC 2018 has an answer; this one has none")
    pieces = cut_mixed(predicted)
    is_exact = _bare(predicted) in {_bare(answer) for answer in answers}
    golds = [cut_mixed(answer) for answer in answers]
    runs = (_f1(longest_run(gold, pieces), len(pieces), len(gold)) for gold in golds)
    return AnswerScore(float(is_exact), max(runs))
