"""Writing on with GPT: memory, choices, seeds, streams and rows beside each other."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings, strategies as st

from sememe.errors import InputError, OptionError
from sememe.models.gpt.generation import Sampling, generate, narrowed, stream
from sememe.models.gpt.next_words import suggest

PROMPTS = ["The cat", "语言模型", "The animal did not cross the", ""]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_memory_changes_nothing_even_past_the_window(gpt, bpe, temperature):
    options = {"max_tokens": 60, "temperature": temperature, "seed": 5}
    with_memory = generate(gpt, bpe, PROMPTS, **options)
    without = generate(gpt, bpe, PROMPTS, use_cache=False, **options)
    assert with_memory == without
    assert any(len(bpe.encode(text).ids) > gpt.config.max_length for text in with_memory)


def test_no_row_is_longer_than_those_of_the_training(gpt, bpe, monkeypatch):
    lengths = []
    forward = type(gpt).forward
    monkeypatch.setattr(gpt, "seen_length", 8)
    monkeypatch.setattr(
        type(gpt), "forward", lambda own, ids: (lengths.append(ids.shape[1]), forward(own, ids))[1]
    )
    generate(gpt, bpe, PROMPTS, max_tokens=20, temperature=0.0, use_cache=False)
    assert max(lengths) == 8
    lengths.clear()
    suggest(gpt, bpe, "the " * 12)
    assert max(lengths) == 8


def test_rows_do_not_disturb_each_other(gpt, bpe):
    together = generate(gpt, bpe, PROMPTS, max_tokens=15, seed=3)
    for index, prompt in enumerate(PROMPTS):
        assert generate(gpt, bpe, prompt, max_tokens=15, seed=3 + index) == together[index]


def test_seed_decides(gpt, bpe):
    first = generate(gpt, bpe, "The cat", max_tokens=20, seed=1)
    assert first == generate(gpt, bpe, "The cat", max_tokens=20, seed=1)
    assert first != generate(gpt, bpe, "The cat", max_tokens=20, seed=2)


def test_no_temperature_takes_the_likeliest_token(gpt, bpe):
    ids = [int(token_id) for token_id in bpe.encode("The cat sat").ids]
    with torch.no_grad():
        best = int(gpt.next_logits(gpt(torch.tensor([ids])))[0, -1].argmax())
    assert generate(gpt, bpe, "The cat sat", max_tokens=1, temperature=0) == bpe.decode([best])


@pytest.mark.parametrize("prompt", ["The cat", "猫坐在"])
def test_streamed_pieces_join_to_the_whole(gpt, bpe, prompt):
    pieces = list(stream(gpt, bpe, prompt, max_tokens=25, seed=4))
    assert "".join(pieces) == generate(gpt, bpe, prompt, max_tokens=25, seed=4)
    assert len(pieces) > 3


def test_one_token_of_top_k_is_greedy(gpt, bpe):
    drawn = generate(gpt, bpe, "The dog", max_tokens=10, top_k=1, seed=9)
    assert drawn == generate(gpt, bpe, "The dog", max_tokens=10, temperature=0)


def test_end_of_text_ends_a_row(gpt, bpe, monkeypatch):
    monkeypatch.setattr(
        gpt, "next_logits",
        lambda hidden: torch.nn.functional.one_hot(
            torch.full(hidden.shape[:-1], bpe.end_id), gpt.config.vocab_size
        ).float(),
    )  # fmt: skip
    assert generate(gpt, bpe, ["The cat", "The"], temperature=0) == ["", ""]


@pytest.mark.parametrize("temperature", [0.0, 3.0])
def test_ids_without_a_token_are_never_written(bpe, monkeypatch, temperature):
    from presets import gpt_config
    from sememe.models.gpt.generation import continue_rows
    from sememe.models.gpt.network import GPTNetwork

    config = gpt_config("tiny", vocab_size=bpe.vocab_size + 60, max_length=24, width=32)
    network = GPTNetwork(config).eval()
    score = network.next_logits

    def favour_the_nameless(hidden):
        logits = score(hidden).clone()
        logits[..., bpe.vocab_size :] += 50
        return logits

    monkeypatch.setattr(network, "next_logits", favour_the_nameless)
    steps = list(continue_rows(network, bpe, ["The cat"], max_tokens=30, temperature=temperature))
    assert steps and all(token_id < bpe.vocab_size for (token_id,) in steps if token_id is not None)
    assert generate(network, bpe, "The cat", max_tokens=10, temperature=temperature)


@given(
    scores=st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=40),
    top_k=st.integers(0, 45),
    top_p=st.floats(0, 1),
    temperature=st.floats(0.1, 4),
)
@settings(max_examples=60, deadline=None)
def test_narrowing_keeps_the_fewest_likeliest(scores, top_k, top_p, temperature):
    logits = torch.tensor(scores)
    kept = narrowed(logits, Sampling(temperature=temperature, top_k=top_k, top_p=top_p))
    is_kept = kept > -float("inf")
    assert is_kept.any()
    if top_k > 0:
        assert is_kept.sum() <= top_k or len(set(scores)) < len(scores)
    assert logits[is_kept].min() >= logits[~is_kept].max() if not is_kept.all() else True
    pool = logits / temperature
    if 0 < top_k < len(scores):
        pool = pool.masked_fill(pool < pool.topk(top_k).values[-1], -float("inf"))
    probabilities = pool.softmax(-1)
    assert probabilities[is_kept].sum() >= top_p - 1e-4
    assert probabilities[is_kept].sum() - probabilities[is_kept].min() <= top_p + 1e-4


def test_bad_input_is_named(gpt, bpe):
    with pytest.raises(InputError, match="shorten the prompt"):
        generate(gpt, bpe, "The cat sat on the mat. " * 20)
    with pytest.raises(OptionError, match="top_p"):
        generate(gpt, bpe, "The", top_p=1.5)
    with pytest.raises(OptionError, match="no option beams"):
        generate(gpt, bpe, "The", beams=3)
