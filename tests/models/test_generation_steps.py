"""The steps of a generation: the same tokens as `generate`, with the network's probabilities."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import sememe
from sememe.errors import OptionError, UnsupportedError

SAMPLING = {"max_tokens": 12, "seed": 3}


def test_gpt_chooses_the_tokens_of_generate(golden: Path) -> None:
    model = sememe.load(golden / "gpt")
    for options in ({}, {"temperature": 0.0}, {"temperature": 0.7, "top_k": 20, "top_p": 0.9}):
        steps = list(model.generate_steps("The old king", **SAMPLING, **options))
        ids = [own.chosen.id for own in steps if own.chosen.text or own.chosen.id]
        written = model.tokenizer.decode([one for one in ids if one != model.tokenizer.end_id])
        assert written == model.generate("The old king", **SAMPLING, **options)
        kept = list(model.generate_steps("The old king", ids=ids[:5], **SAMPLING, **options))
        assert [own.chosen.id for own in kept][:4] == ids[5:9]


def test_gpt_probabilities_are_those_of_the_network(golden: Path) -> None:
    model = sememe.load(golden / "gpt")
    (step,) = model.generate_steps(
        "The old king", count=300, max_tokens=1, temperature=0.5, top_k=5, top_p=0.8
    )
    ids = torch.tensor([model.tokenizer.encode("The old king").ids.tolist()])
    with torch.no_grad():
        logits_V = model.network.next_logits(model.network(ids)[:, -1])[0]
    logits_V = logits_V[: model.tokenizer.vocab_size]
    chances_V = logits_V.softmax(-1)
    assert len(step.tokens) == model.tokenizer.vocab_size
    for own in step.tokens:
        assert own.probability == pytest.approx(float(chances_V[own.id]), abs=1e-6)
    # Narrowed in the plain way: five tokens at temperature 0.5, then 80 percent of them.
    best = sorted(step.tokens, key=lambda own: -own.probability)[:5]
    weights = np.array([own.probability**2 for own in best])
    weights /= weights.sum()
    num_kept = int(np.searchsorted(weights.cumsum(), 0.8) + 1)
    weights = weights[:num_kept] / weights[:num_kept].sum()
    assert step.num_kept == num_kept == sum(own.drawn > 0 for own in step.tokens)
    assert [own.drawn for own in best[:num_kept]] == pytest.approx(list(weights), abs=1e-5)
    assert step.chosen.drawn > 0


def test_gpt2_probabilities_are_those_of_transformers(golden: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = sememe.load(golden / "huggingface-gpt2")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(golden / "huggingface-gpt2").eval()
    (step,) = model.generate_steps("The cat", count=20, max_tokens=1)
    ids = torch.tensor([model.tokenizer.encode("The cat").ids.tolist()])
    with torch.no_grad():
        chances_V = theirs(ids).logits[0, -1].softmax(-1)
    for own in step.tokens:
        assert own.probability == pytest.approx(float(chances_V[own.id]), abs=1e-5)


@pytest.mark.parametrize(("name", "prompt"), [("ngram", "the old"), ("ngram-chinese", "国王")])
def test_an_ngram_model_draws_the_words_of_generate(golden: Path, name: str, prompt: str) -> None:
    model = sememe.load(golden / name)
    steps = list(model.generate_steps(prompt, **SAMPLING, count=4))
    assert "".join(own.chosen.text for own in steps) == "".join(model.stream(prompt, **SAMPLING))
    ids = [own.chosen.id for own in steps]
    again = list(model.generate_steps(prompt, ids=ids[:2], **SAMPLING, count=4))
    assert again[: len(steps) - 2] == steps[2:]
    words = [model.vocabulary[one] for one in model.ids_of([prompt.split()[-1]])]
    chances = model.distribution(words if name == "ngram-chinese" else prompt.split())
    best = np.argsort(-chances, kind="stable")[:4]
    assert [own.id for own in steps[0].tokens] == best.tolist()
    assert [own.probability for own in steps[0].tokens] == pytest.approx(chances[best], abs=1e-6)


def test_bad_options_are_refused(golden: Path) -> None:
    gpt, ngram = sememe.load(golden / "gpt"), sememe.load(golden / "ngram")
    for model in (gpt, ngram):
        with pytest.raises(OptionError):
            list(model.generate_steps("The", ids=[10**6]))
        with pytest.raises(OptionError):
            list(model.generate_steps("The", count=0))
    with pytest.raises(OptionError, match="temperature"):
        list(ngram.generate_steps("the", temperature=0.5))
    with pytest.raises(UnsupportedError):
        sememe.load(golden / "bert").generate_steps("The")
