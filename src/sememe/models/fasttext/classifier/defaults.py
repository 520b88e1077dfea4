"""Options that the data chooses: a look at labelled lines in, the options left open out.

How many labels there are, whether a line has several, and whether the text is Chinese decide the
loss, the dimensions and the n-grams. The original's defaults are the preset fasttext.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from sememe.models.fasttext.classifier.config import ORIGINAL, FastTextClassifierConfig
from sememe.models.fasttext.classifier.lines import read_blocks
from sememe.text.settings import TextSettings

_LOOKED_AT = 8 << 20  # bytes
_FIRST_ROWS = 1_000  # of an iterator, which can be read once only
_MANY_LABELS = 2_000  # from which a softmax over all of them is slow
_WORD_LENGTH = 6  # characters of Chinese between blanks, from which they are sentences
_CHINESE = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the first megabytes of labelled lines say."""

    num_labels: int
    has_sets: bool
    is_chinese: bool
    is_segmented: bool  # whether Chinese has blanks between words or characters


def look(
    blocks: Iterator[bytes], config: FastTextClassifierConfig
) -> tuple[Facts, Iterator[bytes]]:
    """The facts, and the blocks again."""
    seen: list[bytes] = []
    size = 0
    for block in blocks:
        seen.append(block)
        size += len(block)
        if size >= _LOOKED_AT:
            break
    prefix = config.label_prefix.encode()
    labels: set[bytes] = set()
    num_labelled = num_several = num_letters = num_chinese = num_words = 0
    for line in b"\n".join(seen).split(b"\n"):
        words = line.split()
        own = [word for word in words if word.startswith(prefix)]
        labels.update(own)
        num_labelled += bool(own)
        num_several += len(own) > 1
        text = b"".join(word for word in words if not word.startswith(prefix))
        text_read = text.decode("utf-8", "replace")
        num_chinese += len(_CHINESE.findall(text_read))
        num_letters += len(_LATIN.findall(text_read))
        num_words += len(words) - len(own)
    facts = Facts(
        num_labels=len(labels),
        has_sets=num_several > 0,
        is_chinese=2 * num_chinese > max(1, num_letters),
        is_segmented=num_letters <= _WORD_LENGTH * max(1, num_words),
    )
    return facts, chain(seen, blocks)


def words_of(
    train: Any, text: TextSettings, config: FastTextClassifierConfig
) -> tuple[Any, dict[str, Any]]:
    """The training data again, and how its texts are split into words if nobody says.

    Words of any language, in lower case and without punctuation. Chinese sentences stay whole: they
    are read by their characters.
    """
    given = train
    if isinstance(train, Iterator):
        given = list(islice(train, _FIRST_ROWS))
        train = chain(given, train)
    blocks = read_blocks(given, text, config.label_prefix, 1, separator=config.separator)
    with closing(blocks):
        facts, _ = look(iter([next(blocks, b"")]), config)
    is_whole = facts.is_chinese and not facts.is_segmented
    return train, {"language": "none" if is_whole else "und", "lowercase": True}


def with_sizes(config: FastTextClassifierConfig, facts: Facts) -> FastTextClassifierConfig:
    """The options with the loss, the dimensions and the n-grams that were left open."""
    chosen: dict[str, Any] = {}
    if config.loss == "auto":
        is_huge = facts.num_labels > _MANY_LABELS
        chosen["loss"] = "ova" if facts.has_sets else "hierarchical" if is_huge else "softmax"
    if not config.dim:
        chosen["dim"] = 32 if facts.num_labels <= 32 else 64 if facts.num_labels <= 200 else 100
    is_unsegmented = facts.is_chinese and not facts.is_segmented
    if config.maxn < 0:
        # Sentences without blanks are read by their characters.
        chosen["maxn"] = max(3, config.minn) if is_unsegmented or config.minn > 0 else 0
        chosen["maxn"] *= bool(config.bucket)
    maxn = chosen.get("maxn", config.maxn)
    if config.minn < 0:
        chosen["minn"] = min(1 if facts.is_chinese else 3, maxn)
    if not config.word_ngrams:
        longest = 3 if facts.is_chinese and not maxn else 2
        chosen["word_ngrams"] = longest if config.bucket and not is_unsegmented else 1
    if config.word_rates == "auto":
        # A learning rate that was given is that of every word.
        chosen["word_rates"] = "equal" if config.learning_rate else "idf"
    return replace(config, **chosen)


def chosen_note(asked: FastTextClassifierConfig, config: FastTextClassifierConfig) -> str:
    """The options that were chosen, as a sentence; "" if there are none."""
    chosen = [name for name in ORIGINAL if asked.is_open(name)]
    if not chosen:
        return ""
    told = ", ".join(
        f"{name} {getattr(config, name):g}"
        if isinstance(getattr(config, name), float)
        else f"{name} {getattr(config, name)}"
        for name in chosen
    )
    return f"Chosen by the data: {told}."
