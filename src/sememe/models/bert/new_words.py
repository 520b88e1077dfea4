"""New words for the tokenizer of a BERT that is continued on the text of a domain.

A text and a tokenizer come in; the words that shorten the text most go out, and a model that knows
them. Their vectors start as the mean of the sub-word tokens that stood for them, in the input and
in the output layer.
"""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from sememe.errors import InputError, OptionError
from sememe.models.huggingface.growing import with_tokens
from sememe.progress import Reporter
from sememe.storage.folder import read_text
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.store import SubwordStore
from sememe.tokens.subwords.tokenizer import DEFAULT_MEMORY, SubwordTokenizer, TokenizerConfig
from sememe.tokens.subwords.training import count_text

_FEWEST = 5  # occurrences: the vector of a rarer word would barely move
_MOST_TOKENS = 1 << 20


class NewWords(NamedTuple):
    """Words for a tokenizer, best first, and how much shorter they make the text."""

    words: list[str]
    num_tokens: int  # of the text before; 0 if it was not counted
    num_saved: int
    num_left_out: int = 0  # words of a file that cannot be added

    def __str__(self) -> str:
        """The number of words, some of them, and what they save."""
        told = f"{len(self.words):,} new words are tokens now ({', '.join(self.words[:8])} …)"
        if self.num_tokens:
            told += f"; the text has {self.num_saved / self.num_tokens:.1%} fewer tokens"
        if self.num_left_out:
            told += f"; {self.num_left_out:,} lines are tokens already or several words"
        return f"{told}."


def choose_words(
    wanted: str,
    corpus: Any,
    tokenizer: SubwordTokenizer,
    text: TextSettings,
    reporter: Reporter,
    *,
    workers: int = 0,
) -> NewWords:
    """The words of a file, or the words of a corpus that shorten it most."""
    if tokenizer.kind != "wordpiece":
        raise OptionError(
            f"add_words adds words to a WordPiece tokenizer; this model has {tokenizer.kind}."
        )
    if not wanted.strip().isdecimal():
        return _of_file(Path(wanted), tokenizer)
    if isinstance(corpus, SubwordStore) or stream.reads_once(corpus):
        raise OptionError(
            "add_words counts the words of the corpus before it is tokenized: give it as files, or "
            "the words in a file."
        )
    number = int(wanted)
    if not 0 < number <= _MOST_TOKENS:
        raise OptionError(f"add_words must be 1 to {_MOST_TOKENS:,} words, or a file.")
    options = TokenizerConfig(workers=workers)
    counts = count_text(corpus, tokenizer, text, options, DEFAULT_MEMORY, reporter)
    return most_saving(counts, tokenizer, number)


def most_saving(counts: Counter[str], tokenizer: SubwordTokenizer, number: int) -> NewWords:
    """The words that would shorten the text most, if each were one token."""
    saved: dict[str, int] = {}
    num_tokens = 0
    for word, count in counts.items():
        num_pieces = len(tokenizer.pieces_of(word))
        num_tokens += count * num_pieces
        if count >= _FEWEST and _is_new(word, tokenizer) and any(map(str.isalpha, word)):
            # A character that the tokenizer does not know takes one token, and says nothing.
            saved[word] = count * max(1, num_pieces - 1)
    chosen = sorted(saved, key=lambda word: (-saved[word], word))[:number]
    if not chosen:
        raise InputError(
            f"No word that occurs {_FEWEST} times in the text takes more than one token: there is "
            "nothing to add."
        )
    num_saved = sum(counts[word] * (len(tokenizer.pieces_of(word)) - 1) for word in chosen)
    return NewWords(chosen, num_tokens, num_saved)


def _of_file(path: Path, tokenizer: SubwordTokenizer) -> NewWords:
    """The words of a file, one per line, as the tokenizer cleans them."""
    if not path.is_file():
        raise InputError(f"add_words must be a number or a file of words; there is no {path}.")
    lines = [line.strip() for line in read_text(path).splitlines()]
    found: dict[str, None] = {}
    num_left_out = 0
    for line in filter(None, lines):
        cleaned = tokenizer.words_of(line)
        if len(cleaned) == 1 and _is_new(cleaned[0], tokenizer):
            found[cleaned[0]] = None
        else:
            num_left_out += 1
    if not found:
        raise InputError(
            f"{path} has no word that can be added: each of its lines is a token already, or "
            "several words to this tokenizer (every Chinese character is a word to BERT)."
        )
    return NewWords([*found], 0, 0, num_left_out)


def _is_new(word: str, tokenizer: SubwordTokenizer) -> bool:
    return word not in tokenizer and (
        len(tokenizer.pieces_of(word)) > 1 or tokenizer.unk_id in tokenizer.pieces_of(word)
    )


def with_words(model: Any, words: list[str]) -> Any:
    """The model with these words as tokens of their own."""
    pieces = [model.tokenizer.pieces_of(word) for word in words]
    tokenizer = model.tokenizer.with_words(words)
    grown = type(model).around(
        with_tokens(model.network, tokenizer.vocab_size, pieces=pieces), tokenizer
    )
    grown.text, grown.preset = model.text, model.preset
    return grown
