"""What word2vec sees and does, in words: the first training pairs and one update, step by step.

Only the first few megabytes of the text are read, so that an answer comes at once; counts and
noise words are those of that part.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Any

import numpy as np

from sememe.examples.randomness import stream_key
from sememe.examples.windows import draw_windows_plainly, keep_limits
from sememe.static.word2vec.config import Word2VecConfig
from sememe.text.settings import TextSettings

NUM_SENTENCES, NUM_PAIRS, NUM_SHOWN = 3, 12, 4
_LOOKED_AT = 200  # sentences; sub-sampling may leave the first ones empty
Pair = tuple[str, str]  # what predicts, what is predicted


def preview(corpus: Any, config: Word2VecConfig, text: TextSettings) -> str:
    """Describe the first pairs of a training and its first update."""
    sentences = _first_sentences(corpus, text)
    counts = Counter(word for words in sentences for word in words)
    known = [word for word, count in counts.most_common() if count >= config.min_count]
    words = known or list(counts)  # a short text would have nothing to show
    kept = set(words)
    rows = [[word for word in row if word in kept] for row in sentences[:_LOOKED_AT]]
    shown = [row for row in rows if len(row) > 1][:NUM_SENTENCES]
    pairs = _pairs(rows, words, counts, config)
    lines = [f"First sentences, words seen {config.min_count:,} times or more:"]
    lines += ["  " + " ".join(row[:16]) + (" …" if len(row) > 16 else "") for row in shown]
    if not pairs:
        return "\n".join([*lines, "", "Every window is empty: try --min-count 1 and --sample 0."])
    noise = _noise(words, counts, config)
    lines += ["", _caption(config)]
    lines += [_describe(pair, noise, number, config) for number, pair in enumerate(pairs)]
    return "\n".join([*lines, "", *_update(pairs[0], noise[0], config)])


def _first_sentences(corpus: Any, text: TextSettings) -> list[list[str]]:
    from sememe.text.records import DOCUMENT_END, SENTENCE_END, WORD_END
    from sememe.text.stream import segment

    with closing(segment(corpus, text)) as stream:  # type: ignore[type-var]
        data = next(iter(stream)).data.replace(DOCUMENT_END, b"")
    rows = [row.split(WORD_END)[:-1] for row in data.split(SENTENCE_END)]
    return [[word.decode("utf-8", "replace") for word in row] for row in rows if row]


def _pairs(
    sentences: list[list[str]], words: list[str], counts: Counter[str], config: Word2VecConfig
) -> list[Pair]:
    """The pairs of the first windows, drawn as training draws them."""
    ids = {word: number for number, word in enumerate(words)}
    flat = np.array([ids[word] for row in sentences for word in row], np.int32)
    ends = np.cumsum([len(row) for row in sentences])
    limits = keep_limits(np.array([counts[word] for word in words]), config.sample)
    key = stream_key(config.seed, 1, 0)
    tokens, left, right = draw_windows_plainly(flat, ends, limits, config.window, key)
    pairs: list[Pair] = []
    for c, token in enumerate(tokens):
        context = [words[tokens[q]] for q in range(left[c], right[c]) if q != c]
        if config.architecture == "skipgram":
            pairs += [(words[token], other) for other in context]
        elif context:
            pairs.append((" + ".join(context), words[token]))
    return pairs[:NUM_PAIRS]


def _noise(words: list[str], counts: Counter[str], config: Word2VecConfig) -> list[list[str]]:
    """Noise words for each pair shown, by count to the power of noise_exponent."""
    weights = np.array([counts[word] for word in words], float) ** config.noise_exponent
    draw = np.random.default_rng(config.seed)
    chosen = draw.choice(len(words), (NUM_PAIRS, config.negatives), p=weights / weights.sum())
    return [[words[number] for number in row] for row in chosen.tolist()]


def _caption(config: Word2VecConfig) -> str:
    who = "centre → context word" if config.architecture == "skipgram" else "context → centre"
    what = {
        "negative": "label 1, then noise words, label 0",
        "hierarchical": "label 1; decisions on the way to its leaf of the Huffman tree",
        "softmax": "label 1; every other word of the vocabulary, label 0",
    }
    return f"Training pairs ({who}: {what[config.loss]}):"


def _describe(pair: Pair, noise: list[list[str]], number: int, config: Word2VecConfig) -> str:
    line = f"  {pair[0]} → {pair[1]} 1"
    if config.loss == "negative":
        line += "   " + "  ".join(f"{word} 0" for word in noise[number])
    return line


def _update(pair: Pair, noise: list[str], config: Word2VecConfig) -> list[str]:
    """One step of negative sampling on the first pair, with the numbers it computes."""
    draw, rate = np.random.default_rng(config.seed), config.learning_rate
    # Training starts near zero, where every sigmoid is one half: later numbers show more.
    size = 1 / np.sqrt(np.sqrt(config.dim))
    start = draw.normal(0, size, config.dim)
    targets = list(dict.fromkeys([pair[1], *noise]))
    outputs = {word: draw.normal(0, size, config.dim) for word in targets}
    lines = [
        f"One update of “{pair[0]}” by negative sampling, rate {rate:g}, "
        "with numbers as in the middle of a training:",
        f"  vector {_row(start)}",
    ]
    change = np.zeros(config.dim)
    for word in targets:
        label = int(word == pair[1])
        score = float(outputs[word] @ start)
        guess = 1 / (1 + np.exp(-score))
        error = label - guess
        change += rate * error * outputs[word]
        outputs[word] = outputs[word] + rate * error * start
        lines += [
            f"  {word}: dot product {score:+.5f} → sigmoid {guess:.5f} → "
            f"error {label} - {guess:.5f} = {error:+.5f}",
            f"    its output vector becomes {_row(outputs[word])}",
        ]
    end = start + change
    again = float(outputs[pair[1]] @ end)
    lines += [f"  vector becomes {_row(end)}", f"  dot product with {pair[1]} is now {again:+.5f}"]
    return lines


def _row(vector: np.ndarray) -> str:
    more = ", …" if len(vector) > NUM_SHOWN else ""
    return "[" + ", ".join(f"{number:+.5f}" for number in vector[:NUM_SHOWN]) + more + "]"
