"""The next word from GPT: its tokens are parts of words, so a short beam search finds words.

A prompt's last word, or its last characters in scripts without spaces, is removed and generated
again: at first only tokens that spell it are allowed, so that a partial word ("the weath") is
completed by whatever tokens the network prefers. V vocabulary, H hypotheses.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec

import torch

from sememe.contract import checked_finite
from sememe.errors import OptionError
from sememe.models.gpt.network import GPTNetwork
from sememe.text import characters as ch
from sememe.text.settings import TextSettings
from sememe.tokens.prompts import Suggestion, cut_sentences
from sememe.tokens.subwords.tokenizer import SubwordTokenizer

_BEAM = 24
_MAX_PIECES = 12
_MAX_CHARACTERS = 3  # characters to generate in a script without spaces
_TAKEN_BACK = 12  # characters of such a script; its tokens cross word boundaries
_TAIL = 24  # characters of context that show where words of such a script begin


@dataclass(frozen=True)
class WordHypothesis:
    """A possible continuation: tokens, their bytes, their log probability."""

    ids: tuple[int, ...] = ()
    written: bytes = b""
    log_chance: float = 0.0


def suggest(
    network: GPTNetwork, tokenizer: SubwordTokenizer, text: str, *, count: int = 5
) -> list[Suggestion]:
    """The most likely complete words after a text, or completions of its last word."""
    if count < 1:
        raise OptionError(f"count must be at least 1, not {count}.")
    pieces = _pieces(tokenizer)
    if text and ch.char_class(text[-1]) == ch.IDEOGRAPH:
        return _without_spaces(network, tokenizer, pieces, text, count)
    given, begun = _split(text)
    search = WordSearch(network, tokenizer, pieces, given, begun.encode())
    found: dict[tuple[str, str], float] = defaultdict(float)
    for hypothesis, chance in search.words():
        if hypothesis.written == search.begun:
            continue  # no list of words says whether what was typed is one
        found[hypothesis.written.decode("utf-8", "ignore").strip(), begun.strip()] += chance
        best = sorted(found.values(), reverse=True)[count - 1 : count]
        if best and best[0] >= search.highest:
            break
    return _ranked(found, search.begun_chance or 1.0, count)


def _ranked(found: dict[tuple[str, str], float], total: float, count: int) -> list[Suggestion]:
    """The most likely words, each with the part of it that the text already has."""
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:count]
    return [Suggestion(word, min(1.0, chance / total), begun) for (word, begun), chance in ranked]


def _is_of_word(char: str) -> bool:
    return char.isalnum() or char in "_'’" or ch.char_class(char) == ch.MARK


def _split(text: str) -> tuple[str, str]:
    """The text without its last word, and that word with the space before it."""
    if text.endswith((" ", "\t", "\n")):
        return text.rstrip(" \t"), " " if text.rstrip(" \t") else ""
    end = len(text)
    while end and _is_of_word(text[end - 1]):
        end -= 1
    if end and text[end - 1] == " ":
        end -= 1
    return text[:end], text[end:]


def _without_spaces(
    network: GPTNetwork, tokenizer: SubwordTokenizer, pieces: TokenSpellings, text: str, count: int
) -> list[Suggestion]:
    """Generate some characters and find the word at the end of the text, or after it."""
    place = len(text)
    while (
        place and len(text) - place < _TAKEN_BACK and ch.char_class(text[place - 1]) == ch.IDEOGRAPH
    ):
        place -= 1
    search = WordSearch(network, tokenizer, pieces, text[:place], text[place:].encode())
    tail = text[-_TAIL:]
    found: dict[tuple[str, str], float] = defaultdict(float)
    for hypothesis, chance in search.characters(_MAX_CHARACTERS):
        more = hypothesis.written[len(search.begun) :].decode("utf-8", "ignore")
        if more and (word := _word_at_end(tail, more)):
            found[word] += chance
    return _ranked(found, search.begun_chance or 1.0, count)


def _word_at_end(tail: str, more: str) -> tuple[str, str] | None:
    """The word that continues from the tail into what follows, or the first one after it.

    Returns it with the part that the tail already has.
    """
    language = "zh" if find_spec("rjieba") else "none"
    settings = TextSettings(language=language, lowercase=False)
    if language == "none":  # every character for itself
        return more[0], ""
    place, whole = 0, tail + more
    for word in (word for sentence in cut_sentences(whole, settings) for word in sentence):
        start = whole.find(word, place)
        if start < 0:
            continue
        place = start + len(word)
        if place > len(tail):
            return word, whole[start : max(start, len(tail))]
    return None


# ---- tokens as bytes ----------------------------------------------------------------------------


class TokenSpellings:
    """The bytes of every token, searchable by prefix."""

    def __init__(self, tokenizer: SubwordTokenizer) -> None:
        self.written = [_bytes_of(tokenizer, one) for one in range(tokenizer.vocab_size)]
        self.ids_of: dict[bytes, list[int]] = defaultdict(list)
        for token_id, written in enumerate(self.written):
            if written:
                self.ids_of[written].append(token_id)
        self.sorted = sorted(self.ids_of)
        firsts = [written.decode("utf-8", "replace")[:1] for written in self.written]
        # A byte in the middle of a character shows as U+FFFD, and continues with a word.
        goes_on = [bool(first) and (first == "\ufffd" or _is_of_word(first)) for first in firsts]
        self.goes_on_V = torch.tensor(goes_on)
        self.has_bytes_V = torch.tensor([bool(written) for written in self.written])

    def spelling(self, rest: bytes) -> list[int]:
        """The tokens that spell the start of `rest`, or all of it and more."""
        found = [one for size in range(1, len(rest)) for one in self.ids_of.get(rest[:size], ())]
        low = bisect_left(self.sorted, rest)
        high = bisect_left(self.sorted, rest + b"\xff")
        return found + [one for written in self.sorted[low:high] for one in self.ids_of[written]]


@lru_cache(4)
def _pieces(tokenizer: SubwordTokenizer) -> TokenSpellings:
    return TokenSpellings(tokenizer)


@lru_cache(1)
def _byte_of_char() -> dict[str, int]:
    """GPT-2's mapping of bytes to characters, inverted."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    written = {chr(byte): byte for byte in plain}
    return written | {chr(256 + index): byte for index, byte in enumerate(others)}


def _bytes_of(tokenizer: SubwordTokenizer, token_id: int) -> bytes:
    """The bytes of a token; empty for a special token."""
    if token_id in tokenizer.special_ids:
        return b""
    try:
        token = tokenizer.token(token_id)
    except KeyError:  # a gap among the ids
        return b""
    if tokenizer.kind == "bpe":
        byte_of = _byte_of_char()
        return bytes(byte_of[char] for char in token) if all(c in byte_of for c in token) else b""
    if token.startswith("##"):
        return token[2:].encode()
    return token.encode() if ch.char_class(token[0]) == ch.IDEOGRAPH else f" {token}".encode()


# ---- the search ---------------------------------------------------------------------------------


class WordSearch:
    """A beam search for what follows a text, given its first bytes."""

    def __init__(
        self, network: GPTNetwork, tokenizer: SubwordTokenizer, pieces: TokenSpellings, text: str,
        begun: bytes,
    ) -> None:  # fmt: skip
        self.network, self.pieces, self.begun = network, pieces, begun
        self.vocab_size = tokenizer.vocab_size
        self.given = [int(one) for one in tokenizer.encode(text).ids] or [tokenizer.end_id]
        self.begun_chance = 0.0  # of all that begins as it must
        self.highest = math.inf  # chance of the most likely hypothesis that may still become a word

    @torch.no_grad()
    def _log_probs(self, hypotheses: list[WordHypothesis]) -> torch.Tensor:
        """The log probability of every token after each hypothesis, (H, V), on the host."""
        device = self.network.embedding.tokens.weight.device
        size = self.network.seen_length
        rows = [[*self.given, *one.ids][-size:] for one in hypotheses]
        longest = max(map(len, rows))
        ids = torch.zeros(len(rows), longest, dtype=torch.int64)
        for row, own in zip(ids, rows, strict=True):
            row[: len(own)] = torch.tensor(own)
        hidden = self.network(ids.to(device))
        last = torch.tensor([len(own) - 1 for own in rows], device=device)
        logits = self.network.next_logits(hidden[torch.arange(len(rows), device=device), last])
        logs = logits[:, : self.vocab_size].float().log_softmax(-1).cpu()
        checked_finite("GPT", logs.numpy())
        return logs

    def words(self) -> Iterator[tuple[WordHypothesis, float]]:
        """Yield complete words as hypotheses with probabilities, most likely first in each step.

        A word is complete when what follows cannot belong to it; that probability is multiplied in.
        """
        hypotheses = [WordHypothesis()]
        for _ in range(len(self.begun) + _MAX_PIECES):
            if not hypotheses:
                break
            grown: list[WordHypothesis] = []
            for one, log_V in zip(hypotheses, self._log_probs(hypotheses), strict=True):
                if len(one.written) < len(self.begun):
                    grown += self._spelled(one, log_V)
                    continue
                has_word = bool(one.written.strip())
                # A letter or digit is the last character of a word that may be whole.
                if one.written.decode("utf-8", "replace")[-1:].isalnum():
                    ends = float(log_V[~self.pieces.goes_on_V].logsumexp(0))
                    yield one, math.exp(one.log_chance + ends)
                grown += self._grown(one, log_V, is_inside=has_word)
            hypotheses = sorted(grown, key=lambda one: -one.log_chance)[:_BEAM]
            self.highest = math.exp(hypotheses[0].log_chance) if hypotheses else 0.0
        self.highest = 0.0

    def characters(self, num: int) -> list[tuple[WordHypothesis, float]]:
        """Continuations of up to `num` characters or to a word's end, with their probabilities."""
        hypotheses, found = [WordHypothesis()], []
        for _ in range(len(self.begun) + _MAX_PIECES):
            if not hypotheses:
                break
            grown: list[WordHypothesis] = []
            for one, log_V in zip(hypotheses, self._log_probs(hypotheses), strict=True):
                if len(one.written) < len(self.begun):
                    grown += self._spelled(one, log_V)
                    continue
                if one.written:
                    ends = float(log_V[~self.pieces.goes_on_V].logsumexp(0))
                    found.append((one, math.exp(one.log_chance + ends)))
                grown += self._grown(one, log_V, is_inside=True)
            grown = sorted(grown, key=lambda one: -one.log_chance)[:_BEAM]
            written = [one.written[len(self.begun) :].decode("utf-8", "ignore") for one in grown]
            found += [
                (one, math.exp(one.log_chance))
                for one, text in zip(grown, written, strict=True)
                if len(text) >= num
            ]
            hypotheses = [one for one, text in zip(grown, written, strict=True) if len(text) < num]
        return found + [(one, math.exp(one.log_chance)) for one in hypotheses]

    def _spelled(self, one: WordHypothesis, log_V: torch.Tensor) -> list[WordHypothesis]:
        """Continue with the tokens that spell the given prefix."""
        allowed = self.pieces.spelling(self.begun[len(one.written) :])
        grown = [self._with(one, token, log_V) for token in allowed]
        grown = [new for new in grown if _may_be_word(new.written)]
        self.begun_chance += sum(
            math.exp(new.log_chance) for new in grown if len(new.written) >= len(self.begun)
        )
        return grown

    def _grown(
        self, one: WordHypothesis, log_V: torch.Tensor, *, is_inside: bool
    ) -> list[WordHypothesis]:
        """Continue with the most likely tokens that belong to the word, or begin it."""
        is_allowed_V = self.pieces.goes_on_V if is_inside else self.pieces.has_bytes_V
        allowed_V = torch.where(is_allowed_V, log_V, -math.inf)
        tokens = allowed_V.topk(min(4 * _BEAM, len(allowed_V))).indices.tolist()
        grown = [self._with(one, token, allowed_V) for token in tokens]
        return [new for new in grown if new.log_chance > -math.inf and _may_be_word(new.written)]

    def _with(self, one: WordHypothesis, token: int, log_V: torch.Tensor) -> WordHypothesis:
        return WordHypothesis(
            (*one.ids, token),
            one.written + self.pieces.written[token],
            one.log_chance + float(log_V[token]),
        )


def _may_be_word(written: bytes) -> bool:
    """Whether bytes are a word, or the start of one, after at most one space."""
    text = written.decode("utf-8", "replace").removeprefix(" ")
    return all(char == "\ufffd" or _is_of_word(char) for char in text)
