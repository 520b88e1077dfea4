"""Word2Vec, and a preview for learners: the first pairs of a corpus, one update.

The preview draws the same random numbers as the first training step: same seed, streams and tables.
Only the first megabytes of the corpus are read, so that it is fast; counts, and with them
sub-sampling and noise words, are those of that part. The arithmetic is that of `reference`;
`render` formats the preview for a terminal of 80 columns, wide Chinese characters included.
"""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from textwrap import wrap
from typing import Any

import numpy as np

from sememe.errors import DivergedError, InputError
from sememe.examples.kernels import draw_noise
from sememe.examples.windows import alias_table, build_tree, draw_windows_reference, keep_limits
from sememe.localization import current, say
from sememe.models.static.model import matrix
from sememe.models.word2vec import reference
from sememe.models.word2vec.config import Word2VecConfig
from sememe.models.word2vec.training import (
    CHUNK,
    NOISE,
    WINDOWS,
    DeviceModel,
    block_size,
    pool_size,
    start_rows,
)
from sememe.randomness import number, stream_key
from sememe.text.settings import TextSettings
from sememe.text.stream import segment
from sememe.text.words import decode_documents

NUM_LINES = 3
_MOST_CENTRES = 128  # of the lines shown; a "line" may be an entire book
Line = list[tuple[str, str]]  # words with their state: kept, thinned (sub-sampled), rare
Chunk = tuple[np.ndarray, np.ndarray, np.ndarray]  # kept words, bounds of their windows


@dataclass
class FirstLines:
    """Kept words, bounds of their windows, noise pools, and the matrices to update."""

    config: Word2VecConfig
    num_tokens: int  # of the part of the text that was read
    num_words: int
    lines: list[Line]
    words: list[str]  # by the ids used here
    tokens: np.ndarray
    left: np.ndarray
    right: np.ndarray
    noise: np.ndarray
    pool: int
    block: int
    tree: Any
    input: np.ndarray
    output: np.ndarray

    @property
    def is_skipgram(self) -> bool:
        """Whether single words predict, not joined windows."""
        return self.config.architecture == "skipgram"

    def learn(self, chunk: Chunk, noise: np.ndarray, block: int) -> None:
        """Update the matrices by plain steps over a chunk."""
        config, given, name = (
            self.config,
            [*chunk],
            f"{self.config.architecture}_{self.config.loss}",
        )
        options: dict[str, Any] = {"rate": config.start_rate}
        if not self.is_skipgram or config.loss == "softmax":
            options["is_mean"] = config.combine == "mean"
        if config.loss == "softmax":
            name, options["is_skipgram"] = "full_softmax", self.is_skipgram
        elif config.loss == "hierarchical":
            given.append(self.tree)
        else:
            given.append(noise)
            options |= {"pool": self.pool, "block": block, "negatives": config.negatives}
        getattr(reference, name)(*given, self.input, self.output, **options)

    def pairs(self) -> list[tuple[np.ndarray, int, int]]:
        """(source words, target word, centre) in the direction in which the kernels predict."""
        found: list[tuple[np.ndarray, int, int]] = []
        for c, centre in enumerate(self.tokens):
            context = self.tokens[reference.window_of(c, self.left, self.right)]
            if not self.is_skipgram:
                found += [(context, int(centre), c)] if len(context) else []
            elif self.config.loss == "softmax":
                found += [(self.tokens[c : c + 1], int(word), c) for word in context]
            else:
                found += [(context[n : n + 1], int(centre), c) for n in range(len(context))]
        return found

    def pool_of(self, c: int) -> np.ndarray:
        """The noise words that centre c shares with its neighbors."""
        return self.noise[c // self.block * self.pool :][: self.pool]


def read_lines(corpus: Any, config: Word2VecConfig, text: TextSettings) -> FirstLines:
    """Draw windows and noise as step 0 of training does, for the first lines."""

    with closing(segment(corpus, text)) as stream:  # type: ignore[type-var]
        sentences = list(chain.from_iterable(decode_documents(next(iter(stream)).data)))
    words, counts = _count(sentences, config)
    tokens, left, right, lines = _draw_lines(sentences, words, counts, config)
    num_tokens, num_words, pool = sum(map(len, sentences)), len(words), pool_size(config)
    block = block_size(config, counts, keep_limits(counts, config.sample))
    noise: np.ndarray = np.empty(-(-len(tokens) // block) * pool, np.int32)
    key = np.uint64(stream_key(config.seed, NOISE, 0))
    draw_noise(*alias_table(counts, config.noise_exponent), key, noise)
    rows = matrix(num_words, config.dim)
    start_rows(rows, config.dim, config.seed)
    input: np.ndarray = rows[:, : config.dim].astype(float)
    tree = build_tree(counts) if config.loss == "hierarchical" else None
    if config.loss == "negative":
        # The reference creates full matrices for every block: absent words would cost time.
        used, ids = np.unique(np.concatenate([tokens, noise]), return_inverse=True)
        words, input = [words[word_id] for word_id in used], input[used]
        tokens, noise = ids[: len(tokens)], ids[len(tokens) :]
    output = np.zeros_like(input)  # one row more than a tree has nodes
    return FirstLines(
        config, num_tokens, num_words, lines, words, tokens, left, right, noise, pool, block, tree,
        input, output,
    )  # fmt: skip


def _count(sentences: list[list[str]], config: Word2VecConfig) -> tuple[list[str], np.ndarray]:
    """(words, counts) in the order of a token store: by falling count, then bytes."""
    counts = Counter(chain.from_iterable(sentences))
    words = [word for word, count in counts.items() if count >= config.min_count]
    if not words:
        raise InputError(
            f"No word occurs {config.min_count:,} times in the first {counts.total():,} words: "
            "lower min_count or add text."
        )
    words.sort(key=lambda word: (-counts[word], word.encode("utf-8", "surrogatepass")))
    words = words[: config.max_words or None]
    return words, np.array([counts[word] for word in words])


def _draw_lines(
    sentences: list[list[str]], words: list[str], counts: np.ndarray, config: Word2VecConfig
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Line]]:
    """(kept words, bounds of their windows, lines) up to the end of the lines shown."""

    id_of, rare = {word: word_id for word_id, word in enumerate(words)}, len(words)
    ids = [id_of.get(word, rare) for row in sentences for word in row][:CHUNK]
    ends = np.minimum(np.cumsum([len(row) for row in sentences]), len(ids))
    limits, key = keep_limits(counts, config.sample), stream_key(config.seed, WINDOWS, 0)
    drawn = draw_windows_reference(np.array(ids), ends, limits, config.window, key)
    lines: list[Line] = []
    num_centres = start = 0
    for row, end in zip(sentences, ends.tolist(), strict=True):
        is_kept = [number(key, p) >> 32 < int(limits[ids[p]]) for p in range(start, end)]
        fates = (
            "kept" if k else "rare" if i == rare else "thinned"
            for k, i in zip(is_kept, ids[start:end], strict=True)
        )
        if sum(is_kept) > 1:
            lines.append(list(zip(row, fates, strict=False)))
        num_centres, start = min(num_centres + sum(is_kept), _MOST_CENTRES), end
        if len(lines) == NUM_LINES or num_centres == _MOST_CENTRES:
            break
    if not lines:
        raise InputError("Every window of the first lines is empty: try min_count 1 and sample 0.")
    size = max(drawn[2][:num_centres])
    tokens, left, right = (np.array(column[:size], np.int32) for column in drawn)
    left[num_centres:] = right[num_centres:] = 0  # words of other windows, without one of their own
    return tokens, left, right, lines


NUM_PAIRS, NUM_SHOWN = 10, 5
_PASSES = 40
_WORK = 2e8  # multiplications that full softmax may take, with fewer passes


@dataclass(frozen=True)
class Decision:
    """One binary decision of a pair for one output vector, and its part of the update."""

    name: str  # a word; with a tree the node (row of the output matrix) and the branch
    label: int
    weight: float
    score: float  # dot product
    probability: float  # sigmoid of the score, or its softmax
    step: float  # rate × weight × (label - probability)


@dataclass(frozen=True)
class PreviewPair:
    """Words whose input vector (joined, if several) predicts a target."""

    source: list[str]
    target: str
    decisions: list[Decision]


@dataclass(frozen=True)
class Change:
    """A vector before and after the update of the first pair."""

    name: str
    before: list[float]
    after: list[float]


@dataclass(frozen=True)
class Word2VecPreview:
    """The preview; `pairs` are as after `num_passes` over the lines, `update` is the first's."""

    config: dict[str, Any]
    rate: float
    num_tokens: int
    num_words: int
    lines: list[Line]
    pairs: list[PreviewPair]
    pool: int  # noise words shared by `block` centres; 0 without negative sampling
    block: int
    num_passes: int
    update: list[Decision]  # all of them, with equal noise words merged
    inputs: list[Change]
    outputs: list[Change]

    def __str__(self) -> str:
        return render(self)


def preview(corpus: Any, config: Word2VecConfig, text: TextSettings) -> Word2VecPreview:
    """Draw the first pairs of a training and compute the update of the first one."""
    first = read_lines(corpus, config, text)
    cost = len(first.tokens) * first.output.size if config.loss == "softmax" else 1
    num_passes = min(_PASSES, 1 + int(_WORK / cost))
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(num_passes):
            first.learn((first.tokens, first.left, first.right), first.noise, first.block)
    if not np.isfinite(first.input).all() or not np.isfinite(first.output).all():
        raise DivergedError(
            f"{num_passes} passes over the first lines diverged: lower learning_rate "
            f"({config.start_rate})."
        )
    pairs = []
    for index, (source, target, c) in enumerate(first.pairs()[:NUM_PAIRS]):
        # Adjacent pairs show different parts of their pool.
        noise = np.roll(first.pool_of(c), -index * config.negatives)[: config.negatives]
        decisions = [decision for _, decision in _decide(first, source, target, noise)]
        pairs.append(PreviewPair([first.words[w] for w in source], first.words[target], decisions))
    pool, block = (first.pool, first.block) if config.loss == "negative" else (0, 0)
    return Word2VecPreview(
        config.to_dict(), config.start_rate, first.num_tokens, first.num_words, first.lines, pairs,
        pool, block, num_passes, *_update(first),
    )  # fmt: skip


def _decide(
    first: FirstLines, source: np.ndarray, target: int, noise: np.ndarray
) -> list[tuple[int, Decision]]:
    """(row of the output matrix, decision) for every prediction of the pair."""
    config, words = first.config, first.words
    hidden = reference.joined(first.input, source, config.combine == "mean")
    if config.loss == "hierarchical":
        rows, codes = first.tree.path(target)
        labels = 1 - codes.astype(int)
        names = [
            f"{row} {'right' if code else 'left'}" for row, code in zip(rows, codes, strict=True)
        ]
    else:
        others = noise
        if config.loss == "softmax":
            others = np.argsort(-(first.output @ hidden), kind="stable")[: NUM_SHOWN + 1]
            others = others[others != target][:NUM_SHOWN]
        rows, labels = np.array([target, *others]), np.array([1] + [0] * len(others))
        names = [words[row] for row in rows]
    noise_weight = config.negatives / first.pool if config.loss == "negative" else 1.0
    weights, scores = np.where(labels, 1.0, noise_weight), first.output[rows] @ hidden
    chances = reference.sigmoid(scores)
    if config.loss == "softmax":
        chances = np.exp(scores - np.logaddexp.reduce(first.output @ hidden))
    steps = config.start_rate * weights * (labels - chances)
    columns = (names, *(x.tolist() for x in (labels, weights, scores, chances, steps)))
    return [(int(row), Decision(*d)) for row, *d in zip(rows, *columns, strict=True)]


def _update(first: FirstLines) -> tuple[list[Decision], list[Change], list[Change]]:
    """(decisions, changed input vectors, changed output vectors) of the first pair alone."""
    source, target, c = first.pairs()[0]
    noise = first.pool_of(c)
    merged: dict[tuple[int, int], Decision] = {}
    for row, one in _decide(first, source, target, noise):
        if old := merged.get((row, one.label)):  # a noise word drawn twice
            one = replace(one, weight=old.weight + one.weight, step=old.step + one.step)
        merged[row, one.label] = one
    # A chunk with one centre, the last word.
    is_turned = first.is_skipgram and first.config.loss == "softmax"
    tokens = np.array([target, *source] if is_turned else [*source, target])
    left, right = np.zeros_like(tokens), np.zeros_like(tokens)
    right[-1] = len(tokens)
    old_input, old_output = first.input.copy(), first.output.copy()
    first.learn((tokens, left, right), noise, len(tokens))
    rows = {row: decision.name for (row, _), decision in merged.items()}
    inputs, outputs = (
        [Change(name, old[row].tolist(), new[row].tolist()) for row, name in names.items()]
        for names, old, new in (
            ({word: first.words[word] for word in source}, old_input, first.input),
            (rows, old_output, first.output),
        )
    )
    return list(merged.values()), inputs, outputs


WIDTH = 80
_NUM_NUMBERS = 4


def render(preview: Word2VecPreview) -> str:
    """Format the first lines, their pairs and the update of the first pair, step by step."""
    config = preview.config
    forms = {"kept": "{}", "thinned": "({})", "rare": "·"}
    text = _told(
        "First lines ({words:,} words seen {min_count:,} times or more in the first {tokens:,} of "
        "the text; · is rarer; sub-sampling drops the words in parentheses):",
        words=preview.num_words, min_count=config["min_count"], tokens=preview.num_tokens,
    )  # fmt: skip
    for line in preview.lines:
        shown = " ".join(forms[fate].format(word) for word, fate in line[:WIDTH])
        text.append(_fit(f"  {shown}", WIDTH, " …").rstrip())
    text += ["", *_told("Training pairs ({what}):", what=_caption(preview))]
    text += [_pair(pair, config["loss"]) for pair in preview.pairs]
    if preview.pool:
        text += _told(
            "{block} neighboring centres share a pool of {pool} noise words: each pair is scored "
            "against all of them (some are shown here), and one of them weighs {negatives}/{pool}.",
            block=preview.block, pool=preview.pool, negatives=config["negatives"],
        )  # fmt: skip
    return "\n".join([*text, "", *_update_text(preview)])


def _told(template: str, **values: Any) -> list[str]:
    """A text in the language of the user; English is wrapped, Chinese by the terminal."""
    told = say(template, **values)
    return wrap(told, WIDTH) if current() == "en" else [told]


def _caption(preview: Word2VecPreview) -> str:
    loss = preview.config["loss"]
    if preview.config["architecture"] == "cbow":
        who = f"{preview.config['combine']} of a window → its centre"
    elif loss == "softmax":
        who = "centre → word of its window"
    else:
        who = "word of a window → its centre"
    what = {
        "negative": "{pair}, label 1 | noise words, label 0",
        "hierarchical": "{pair} | nodes from the root of the Huffman tree: turn and label",
        "softmax": "{pair}, label 1, probability | the most likely other words, label 0",
    }
    return say(what[loss], pair=say(who))


def _update_text(preview: Word2VecPreview) -> list[str]:
    pair, shown = preview.pairs[0], preview.update[: NUM_SHOWN + 1]
    is_softmax = preview.config["loss"] == "softmax"
    name = f"{_fit(_source(pair), 26).rstrip()} → {_fit(pair.target, 16).rstrip()}"
    title = "softmax" if is_softmax else "sigmoid"
    sizes = {"label": 7, "dot product": 13, title: 10, "error": 10, "weight": 9, "step": 10}
    titles = "".join(_fit(say(own), size, is_right=True) for own, size in sizes.items())
    table = [f"{'':20}{titles}"] + [
        f"  {_fit(one.name, 18)}{one.label:7}{one.score:+13.5f}{one.probability:10.5f}"
        f"{one.label - one.probability:+10.5f}{one.weight:9.4f}{one.step:+10.5f}"
        for one in shown
    ]
    num_decisions = preview.num_words if is_softmax else len(preview.update)
    if num_decisions > len(shown):
        table.append("  " + say("… and {num:,} more", num=num_decisions - len(shown)))
    is_cbow = preview.config["architecture"] == "cbow"
    one = (
        "error = label - {kind}; step = rate × weight × error. Each output vector moves by step × "
        "input vector, the input vector by the sum of step × output vector:"
    )
    several = (
        "error = label - {kind}; step = rate × weight × error. Each output vector moves by step × "
        "{combine} of the input vectors, each input vector by the sum of step × output vector:"
    )
    rule = _told(several if is_cbow else one, kind=title, combine=preview.config["combine"])
    vectors = [_change_text(say("in"), change) for change in preview.inputs[:2]]
    vectors += [_change_text(say("out"), change) for change in preview.outputs[: NUM_SHOWN + 1]]
    head = say("One update by {pair} alone, rate {rate:g}:", pair=name, rate=preview.rate)
    return [head, *table, *rule, *vectors, *_about_start(preview)]


def _about_start(preview: Word2VecPreview) -> list[str]:
    """Why the vectors are as they are: how they start, and why some are equal."""
    text = _told(
        "Input vectors start at small random values, output vectors at zero, as in the original "
        "program: a first update changes no input vector. So {num} passes over these lines came "
        "before.",
        num=preview.num_passes,
    )
    names: dict[tuple[float, ...], list[str]] = {}
    for change in preview.outputs[: NUM_SHOWN + 1]:
        names.setdefault(tuple(change.before), []).append(change.name)
    equal = [" = ".join(own) for own in names.values() if len(own) > 1]
    if not equal:
        return text
    reasons = {
        "negative": "So far they were only noise words, in the same pools and equally often.",
        "hierarchical": "So far the same words have passed these nodes, with the same turns.",
        "softmax": "None is the target of a pair of these lines; they were only wrong answers.",
    }
    told = say("Equal output vectors had equal updates: {words}.", words="; ".join(equal))
    return [*text, _fit(told, WIDTH, " …").rstrip(), *_told(reasons[preview.config["loss"]])]


def _pair(pair: PreviewPair, loss: str) -> str:
    def form(one: Decision) -> str:
        chance = f" {one.probability:.5f}" if loss == "softmax" else ""
        return f"{one.name} {one.label}{chance}"

    target, rest = pair.target, pair.decisions
    if loss != "hierarchical":  # there the target itself is the decision
        target, rest = form(rest[0]), rest[1:]
    line = f"  {_source(pair)} → {target} | " + "  ".join(map(form, rest))
    return _fit(line, WIDTH, " …").rstrip()


def _source(pair: PreviewPair) -> str:
    return " + ".join(pair.source[:4]) + (" + …" if len(pair.source) > 4 else "")


def _change_text(side: str, change: Change) -> str:
    before, after = (
        " ".join(map(_short, vector[:_NUM_NUMBERS])) for vector in (change.before, change.after)
    )
    return f"{_fit(f'{side} {change.name}', 14)} {before} → {after}"


def _short(number: float) -> str:
    """Format a number in seven characters, without a zero before the point."""
    text = f"{number:+.5f}"
    return text[0] + text[2:] if text[1:3] == "0." else f"{number:+#.5g}"


def _fit(text: str, size: int, mark: str = "…", *, is_right: bool = False) -> str:
    """Truncate or pad a text to `size` terminal columns."""
    from rich.cells import cell_len, set_cell_size

    if is_right:
        return " " * (size - cell_len(text)) + text
    if cell_len(text) <= size:
        return set_cell_size(text, size)
    return set_cell_size(text, size - len(mark)) + mark


class Word2Vec(DeviceModel):
    """Word vectors by predicting neighbors (Mikolov et al. 2013).

    model = sememe.Word2Vec(dim=100).fit("corpus.txt")
    model.vectors.neighbors("king")
    """

    kind = "word2vec"
    config_class = Word2VecConfig

    def preview(self, corpus: Any = None, *, text: TextSettings | None = None) -> Word2VecPreview:
        """The first training pairs and one update, for learning how word2vec works."""
        return preview(corpus, self.config, text or TextSettings())
