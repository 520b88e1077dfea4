"""The classifier in plain NumPy and Python: simple, slow, and what the kernels must equal.

Lines as bytes become words and labels, words become rows; matrices are updated line by line.
"""

import re
from dataclasses import dataclass

import numpy as np

from sememe.examples.windows import HuffmanTree
from sememe.models.fasttext.classifier.config import FastTextClassifierConfig
from sememe.models.fasttext.classifier.training import DRAWS, ClassifierRun
from sememe.randomness import number, stream_key
from sememe.tokens.ngrams import LINE_END, hash_bytes, split_ngrams
from sememe.tokens.vocabulary import Vocabulary

_MASK = 2**64 - 1


def split_lines(data: bytes) -> list[list[bytes]]:
    """The tokens of each line: </s> ends it, also where it occurs elsewhere."""
    end = LINE_END.encode()
    lines: list[list[bytes]] = [[]]
    for piece in re.findall(rb"\n|[^ \n\r\t\v\f\0]+", data):
        token = end if piece == b"\n" else piece
        lines[-1].append(token)
        if token == end:
            lines.append([])
    return [line for line in lines if line]


def word_ngram_buckets(words: list[bytes], longest: int, bucket: int) -> list[int]:
    """The buckets of runs of 2 to `longest` words; hashes are int32, their sums uint64."""
    hashes = [(hash_bytes(word) + 2**31) % 2**32 - 2**31 for word in words]
    buckets = []
    for first in range(len(hashes)):
        value = hashes[first] & _MASK
        for other in hashes[first + 1 : first + longest]:
            value = (value * 116049371 + other) & _MASK
            buckets.append(value % bucket)
    return buckets


def line_rows(line: list[bytes], words: Vocabulary, config: FastTextClassifierConfig) -> list[int]:
    """The rows of a line if every bucket has one: words, their n-grams, word n-grams."""
    prefix = config.label_prefix.encode()
    text = [token for token in line if not token.startswith(prefix)]
    rows = []
    for token in text:
        word = token.decode("utf-8", "surrogatepass")
        if (own := words.find(word)) >= 0:
            rows.append(own)
        if config.maxn:
            ngrams = split_ngrams(word, config.minn, config.maxn)
            rows += [len(words) + hash_bytes(ngram) % config.bucket for ngram in ngrams]
    if config.word_ngrams > 1:
        buckets = word_ngram_buckets(text, config.word_ngrams, config.bucket)
        rows += [len(words) + bucket for bucket in buckets]
    return rows


@dataclass(frozen=True)
class Decisions:
    """The binary decisions of a line: output rows, and their targets."""

    rows: list[int]
    answers: list[bool]
    weights: list[float]  # of each in the loss


def decisions(
    loss: str, true_ids: list[int], target: int, num_labels: int, tree: HuffmanTree | None,
    noise: list[int], label_weights: np.ndarray,
) -> Decisions:  # fmt: skip
    """The binary decisions of a line, for every loss except softmax."""
    weight = float(label_weights[target])
    if loss == "hierarchical":
        assert tree is not None
        nodes, codes = tree.path(target)
        return Decisions(
            nodes.tolist(), [code == 1 for code in codes.tolist()], [weight] * len(nodes)
        )
    if loss == "ova":
        answers = [label in true_ids for label in range(num_labels)]
        weights = np.where(answers, label_weights, 1.0).tolist()
        return Decisions(list(range(num_labels)), answers, weights)
    answers = [True] + [False] * len(noise)
    return Decisions([target, *noise], answers, [weight] * len(answers))


def softmax_step(
    hidden: np.ndarray, output: np.ndarray, target: int, rate: float
) -> tuple[float, np.ndarray]:
    """Train one label of a line: update `output`, return (loss, gradient of the hidden vector)."""
    scores = output @ hidden
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    errors = -chances
    errors[target] += 1
    step = rate * errors @ output
    output += rate * np.outer(errors, hidden)
    return -float(np.log(chances[target])), step


def decision_step(
    hidden: np.ndarray, output: np.ndarray, asked: Decisions, rate: float
) -> tuple[float, np.ndarray]:
    """Train binary decisions one after the other; returns the same as `softmax_step`."""
    loss, step = 0.0, np.zeros_like(hidden)
    for row, answer, weight in zip(asked.rows, asked.answers, asked.weights, strict=True):
        score = float(output[row] @ hidden)
        chance = 1 / (1 + np.exp(-score))
        step += rate * weight * (answer - chance) * output[row]
        output[row] += rate * weight * (answer - chance) * hidden
        loss -= weight * float(np.log(chance if answer else 1 - chance))
    return loss, step


def train_line(
    rows: list[int], input: np.ndarray, output: np.ndarray, rate: float,
    target: int, asked: Decisions | None, weight: float = 1.0,
    word_rates: np.ndarray | None = None,
) -> float:  # fmt: skip
    """Update both matrices for one line: its target and `weight`, or with `asked` its decisions."""
    hidden = input[rows].mean(axis=0)
    if asked is None:
        loss, step = softmax_step(hidden, output, target, rate * weight)
        loss *= weight
    else:
        loss, step = decision_step(hidden, output, asked, rate)
    rates = np.ones(len(rows)) if word_rates is None else word_rates[rows]
    np.add.at(input, rows, np.outer(rates, step / len(rows)))
    return loss


def _noise(run: ClassifierRun, key: int, line: int, target: int) -> list[int]:
    limits, alias = run._noise
    drawn: list[int] = []
    index = line << 20
    while len(drawn) < run.config.negatives:
        index += 1
        z = number(key, index)
        column = (z >> 32) * len(limits) >> 32
        label = column if z & 0xFFFFFFFF < int(limits[column]) else int(alias[column])
        if label != target:
            drawn.append(label)
    return drawn


def train(run: ClassifierRun, input: np.ndarray, output: np.ndarray) -> float:
    """Do a complete run with one worker in the given matrices; return the mean loss."""
    lines, config, loss, num = run.lines, run.config, 0.0, 0
    tree = None
    if config.loss == "hierarchical":
        tree = HuffmanTree(*run._tree)
    for step in range(run.num_steps):
        epoch, first, last = run.span(step)
        key = stream_key(config.seed, DRAWS, epoch)
        rates = np.linspace(run.rate_at(step), run.rate_at(step + 1), last - first + 1)
        for line in range(first, last):
            rows = rows_in(run, line)
            start = int(lines.label_ends[line - 1]) if line else 0
            true_ids = lines.label_ids[start : int(lines.label_ends[line])].tolist()
            target = true_ids[0]
            if len(true_ids) > 1:
                target = true_ids[number(key, line) % len(true_ids)]
            noise = _noise(run, key, line, target) if config.loss == "negative" else []
            asked = None
            weights = run.label_weights
            if config.loss != "softmax":
                asked = decisions(
                    config.loss, true_ids, target, len(lines.labels), tree, noise, weights
                )
            weight = float(weights[target])
            own = run.word_rates if len(run.word_rates) else None
            loss += train_line(rows, input, output, rates[line - first], target, asked, weight, own)
            num += 1
    return loss / num


def rows_in(run: ClassifierRun, line: int) -> list[int]:
    """The rows of a line as the run has them."""
    lines = run.lines
    start = int(lines.ends[line - 1]) if line else 0
    rows: list[int] = []
    num_types = len(lines.type_ends)
    for item in lines.items[start : int(lines.ends[line])].tolist():
        if item < num_types:
            first = int(lines.type_ends[item - 1]) if item else 0
            rows += lines.type_rows[first : int(lines.type_ends[item])].tolist()
        else:
            rows.append(item - num_types + len(lines.words) if num_types else item)
    return rows
