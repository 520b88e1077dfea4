"""The classifier's kernels against the plain reference, and its steps against autograd."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sememe.examples.windows import build_tree
from sememe.models.fasttext.classifier import reference
from sememe.models.fasttext.classifier.config import FastTextClassifierConfig
from sememe.models.fasttext.classifier.dictionary import encode, scan
from sememe.models.fasttext.classifier.training import ClassifierRun

LOSSES = ("softmax", "hierarchical", "ova", "negative")
TEXT = """\
__label__food __label__home i like noodles and tea with rice
__label__travel the train to 北京 is fast
__label__food 我 喜欢 吃 面条
__label__weather rain today and rain tomorrow
__label__travel __label__weather snow on the train to the sea
__label__home the house is warm
__label__food tea
"""


def make_run(text: str = TEXT, **options) -> ClassifierRun:
    config = FastTextClassifierConfig(
        preset="fasttext",
        **{"dim": 21, "epochs": 30, "learning_rate": 0.9, "workers": 1, "seed": 5, **options},
    )
    run = ClassifierRun(config, encode([text.encode()], config))
    run.begin()
    return run


def drive(run: ClassifierRun) -> np.ndarray:
    stats, space = np.zeros(3), run.new_space()
    for step in range(run.num_steps):
        run.step(step, space, stats)
    return stats


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"word_ngrams": 3, "bucket": 50},
        {"minn": 1, "maxn": 3, "bucket": 80, "word_ngrams": 2, "min_count": 2},
        {"dim": 100},
        {"class_weights": "balanced", "epochs": 10},
        {"class_weights": {"food": 0.3, "weather": 4}},
        {"word_rates": "idf", "word_ngrams": 2, "learning_rate": 0.05},
        {"word_rates": "idf", "minn": 1, "maxn": 3, "learning_rate": 0.4},
    ],
    ids=[
        "words",
        "word n-grams",
        "both n-grams",
        "wide",
        "balanced",
        "weights by name",
        "idf of word n-grams",
        "idf of characters",
    ],
)
def test_training_equals_the_reference(loss, options):
    run = make_run(loss=loss, **options)
    dim = run.config.dim
    input = run.matrices["input"][:, :dim].astype(np.float64)
    output = run.matrices["output"][:, :dim].astype(np.float64)
    before = input.copy()
    stats = drive(run)
    expected_loss = reference.train(run, input, output)
    assert np.abs(input - before).max() > 0.01
    np.testing.assert_allclose(run.matrices["input"][:, :dim], input, atol=1e-4)
    np.testing.assert_allclose(run.matrices["output"][:, :dim], output, atol=1e-4)
    assert stats[0] / stats[1] == pytest.approx(expected_loss, rel=1e-5)
    assert not run.matrices["input"][:, dim:].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_workers_with_copies_of_rows_learn_the_same(loss):
    """Two workers take turns, so that their own copies of rows must be merged rightly."""
    apart, together = (make_run(TEXT * 40, loss=loss, workers=2) for _ in range(2))
    together.merge_every = together.num_hot = 0
    assert apart.merge_every > 0 and apart.num_hot > 10
    for run in (apart, together):
        stats, spaces = np.zeros(3), [run.new_space(), run.new_space()]
        assert [space[0] for space in spaces] == [0, 1]
        for step in range(run.num_steps):
            run.step(step, spaces[step % 2], stats)
        assert stats[1] == len(run.lines) * run.config.epochs
    for name in ("input", "output"):
        np.testing.assert_allclose(
            apart.matrices[name], together.matrices[name], rtol=1e-3, atol=2e-3
        )


@pytest.mark.parametrize("loss", LOSSES)
def test_steps_are_gradients(loss):
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(3)
    input, output = generator.normal(size=(9, 6)), generator.normal(size=(5, 6))
    rows, true_ids, target, rate = [1, 4, 7], [2, 3], 2, 0.01
    tree = build_tree(np.array([9, 7, 5, 3, 1]))
    asked = None
    if loss != "softmax":
        weights = np.array([1, 1, 2.5, 0.5, 1])
        asked = reference.decisions(loss, true_ids, target, 5, tree, [0, 4], weights)
    i, o = (torch.tensor(matrix, requires_grad=True) for matrix in (input, output))
    hidden = i[rows].mean(dim=0)
    if asked is None:
        value = torch.nn.functional.cross_entropy((o @ hidden)[None], torch.tensor([target]))
        value = 2.5 * value
    else:
        answers = torch.tensor([float(answer) for answer in asked.answers], dtype=torch.float64)
        value = torch.nn.functional.binary_cross_entropy_with_logits(
            o[asked.rows] @ hidden, answers, torch.tensor(asked.weights), reduction="sum"
        )
    value.backward()
    new_input, new_output = input.copy(), output.copy()
    got = reference.train_line(rows, new_input, new_output, rate, target, asked, 2.5)
    assert got == pytest.approx(value.item())
    np.testing.assert_allclose((input - new_input) / rate, i.grad.numpy(), atol=1e-9)
    np.testing.assert_allclose((output - new_output) / rate, o.grad.numpy(), atol=1e-9)


TOKENS = st.sampled_from(
    ["a", "bb", "</s>", "__label__x", "__label__", "北京", "é", "<", "a\u00a0b", "x" * 40]
)
BLANKS = st.sampled_from([" ", "\n", "\t", "\r\n", "\x00", "\x0b", "\x0c", "  "])


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TOKENS, BLANKS)), st.sampled_from(["", "a", "</s>"]))
def test_lines_are_cut_as_the_reference_cuts_them(parts, tail):
    data = ("".join(token + blank for token, blank in parts) + tail).encode()
    block = scan(data)
    words = [
        block.data[start : start + size].tobytes()
        for start, size in zip(block.starts, block.sizes, strict=True)
    ]
    starts = [0, *block.line_ends][: len(block.line_ends)]
    got = [
        [words[token] for token in block.tokens[start:end]]
        for start, end in zip(starts, block.line_ends, strict=True)
    ]
    assert got == reference.split_lines(data)
    assert len(set(words)) == len(words)
    assert [int(n) for n in block.counts] == np.bincount(
        block.tokens, minlength=len(words)
    ).tolist()


def test_a_table_of_types_grows():
    words = [f"w{index}" for index in range(30_000)]
    block = scan(" ".join(words + words).encode())
    assert len(block.starts) == len(words) + 1  # and the line's end
    assert block.counts[1:].tolist() == [2] * len(words)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(["un", "café", "三国", "zzz", "q"]), max_size=6), min_size=1),
    st.sampled_from([(1, 0, 0), (3, 0, 0), (1, 2, 4), (4, 1, 2)]),
    st.sampled_from([1, 7, 2_000_000]),
)
def test_rows_are_those_of_the_reference(lines, sizes, bucket):
    word_ngrams, minn, maxn = sizes
    config = FastTextClassifierConfig(
        preset="fasttext",
        word_ngrams=word_ngrams,
        minn=minn,
        maxn=maxn,
        bucket=bucket,
        min_count=2,
        workers=1,
    )
    text = "".join(f"__label__a {' '.join(line)}\n" for line in lines).encode()
    run = ClassifierRun(config, encode([text], config))
    found = run.lines
    num_words = len(found.words)
    expected = [
        reference.line_rows(line, found.words, config) for line in reference.split_lines(text)
    ]
    got = [
        [
            row if row < num_words else num_words + int(found.buckets[row - num_words])
            for row in reference.rows_in(run, number)
        ]
        for number in range(len(found))
    ]
    # The lines are mixed, and those without any row are left out.
    assert sorted(got) == sorted(rows for rows in expected if rows or maxn)


def test_lines_are_mixed_with_their_labels():
    text = "".join(f"__label__{n % 3} w{n}\n" for n in range(300)).encode()
    lines = make_run(text.decode()).lines
    assert len(lines) == 300
    seen = []
    for line in range(300):
        start, label = int(lines.ends[line - 1]) if line else 0, int(lines.label_ids[line])
        word = lines.words[int(lines.items[start])]
        assert lines.labels[label] == f"__label__{int(word[1:]) % 3}"
        seen.append(word)
    assert len(set(seen)) == 300 and seen != sorted(seen, key=lambda word: int(word[1:]))
