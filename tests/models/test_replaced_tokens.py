"""Replaced-token detection: the objective beside a plain one, the folder, resume, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animal_sentences import DOCUMENTS
from recorded_notes import Notes
from stopping import assert_equal, ctrl_c_at

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from sememe.errors import OptionError, UnsupportedError
from sememe.examples.batches import Batch
from sememe.examples.masking.batches import MaskedBatches
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.network import BERTNetwork
from sememe.models.bert.replaced import (
    ReplacedObjective,
    discriminator_config,
    new_generator,
    part_embedding,
    sampled,
    share_embedding,
)

SMALL = {
    "num_layers": 2, "width": 32, "num_heads": 2, "max_length": 32, "length": 32, "batch_size": 8,
    "workers": 1, "steps": 12, "evaluate_batches": 2, "validation_share": 0.2, "device": "cpu",
    "vocab_size": 160, "objective": "rtd",
}  # fmt: skip


def bert(**options: Any) -> Any:
    return sememe.BERT("tiny", **{**SMALL, **options})


@pytest.fixture(name="trained", scope="module")
def trained_fixture(tmp_path_factory) -> tuple[Any, Path]:
    out = tmp_path_factory.mktemp("rtd") / "model"
    return bert(steps=300, learning_rate=3e-3, rate=0.3).fit(DOCUMENTS, out=out), out


def pair(**sizes: Any) -> tuple[BERTNetwork, BERTNetwork]:
    config = discriminator_config(
        BERTConfig(vocab_size=50, num_layers=2, width=32, num_heads=4, max_length=16, dropout=0.0,
                   attention_dropout=0.0, **sizes)
    )  # fmt: skip
    network, generator = BERTNetwork(config, seed=1), new_generator(config, 0.5, seed=2)
    share_embedding(network, generator)
    return network, generator


def draw_batch() -> Batch:
    random = np.random.default_rng(1)
    ids = random.integers(5, 50, (3, 12)).astype(np.int32)
    lengths = np.array([12, 9, 5], np.int32)
    hidden = np.array([1, 4, 12 + 2, 24 + 3])
    targets = ids.reshape(-1)[hidden].copy()
    ids.reshape(-1)[hidden] = 4
    return Batch(
        ids_BT=ids, lengths_B=lengths, num_tokens=26, hidden_N=hidden, targets_N=targets
    )  # fmt: skip


def test_the_loss_is_that_of_a_plain_computation():
    network, generator = pair()
    with torch.no_grad():  # tables of its own that are not zero
        network.embedding.tokens.weight.normal_(std=0.1)
        network.embedding.positions.weight.normal_(std=0.1)
    objective, batch = ReplacedObjective(network, generator, weight=50.0), draw_batch()
    objective.eval()
    prepared = objective.prepare(batch)
    counts = {"tokens": torch.tensor(26.0), "masked": torch.tensor(4.0)}
    loss, metrics = objective(prepared, counts)

    ids = torch.from_numpy(batch.ids_BT.astype(np.int64))
    lengths = torch.from_numpy(batch.lengths_B)
    is_token = torch.arange(12) < lengths[:, None]
    rows, places = np.divmod(batch.hidden_N, 12)
    logits = generator.masked_logits(generator(ids, None, lengths)[rows, places])
    targets = torch.from_numpy(batch.targets_N.astype(np.int64))
    masked = torch.nn.functional.cross_entropy(logits, targets)
    replaced = ids.clone()
    chances = logits.softmax(-1)
    for row, place, own, draw in zip(rows, places, chances, prepared.draws_M, strict=True):
        replaced[row, place] = int((own.cumsum(0) < draw * own.sum()).sum())
    original = ids.clone()
    original[rows, places] = targets
    parted, base = pair()  # another network, whose embedding holds the sums
    parted.load_state_dict(network.state_dict())
    base.load_state_dict(generator.state_dict())
    part_embedding(parted, base)
    scores = parted.eval().replaced_logits(parted(replaced, None, lengths).flatten(0, 1))
    labels = (replaced != original).flatten()
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        scores, labels.float(), reduction="none"
    )[is_token.flatten()]
    torch.testing.assert_close(loss, masked + 50 * losses.mean(), atol=1e-5, rtol=1e-5)
    own = is_token.flatten()
    right = ((scores > 0) == labels)[own].sum()
    assert metrics["replaced_accuracy"] == right and metrics["replaced_share"] == labels.sum()
    assert metrics["replaced_found"] == ((scores > 0) & labels)[own].sum()


def test_the_generator_learns_nothing_from_the_discriminator():
    network, generator = pair()
    objective, batch = ReplacedObjective(network, generator, weight=50.0), draw_batch()
    counts = {"tokens": torch.tensor(26.0), "masked": torch.tensor(4.0)}
    objective(objective.prepare(batch), counts)[0].backward()
    both = {name: p.grad.clone() for name, p in generator.named_parameters() if p.requires_grad}
    generator.zero_grad()
    objective.weight = 0.0
    objective(objective.prepare(batch), counts)[0].backward()
    for name, parameter in generator.named_parameters():
        if parameter.requires_grad:
            torch.testing.assert_close(parameter.grad, both[name], atol=1e-7, rtol=1e-6)
    assert network.embedding.tokens.weight.grad is not None
    for own in (network, generator):  # every weight that is trained has a gradient
        assert all((p.grad is not None) == p.requires_grad for p in own.parameters())


def test_tokens_are_sampled_by_their_probabilities():
    logits = torch.tensor([[0.0, 1.0, 2.0, -9.0]]).expand(20_000, -1)
    draws = (torch.arange(20_000) + 0.5) / 20_000
    shares = torch.bincount(sampled(logits, draws), minlength=4) / 20_000
    torch.testing.assert_close(shares, logits[0].softmax(-1), atol=2e-4, rtol=0)
    assert sampled(logits[:2], torch.tensor([1e-9, 1.0])).tolist()[0] == 0


def test_a_batch_has_the_same_draws_again_and_another_one_others():
    network, generator = pair()
    objective, batch = ReplacedObjective(network, generator, weight=50.0), draw_batch()
    first, again = (objective.prepare(batch).draws_M for _ in range(2))
    assert torch.equal(first, again) and first.min() > 0 and first.max() < 1
    batch.ids_BT[0, 2] += 1
    assert not torch.equal(first, objective.prepare(batch).draws_M)


def test_it_learns_to_detect_replaced_tokens(trained):
    model, _ = trained
    last = model.history.last()
    assert model.history[0]["replaced_loss"] > last["replaced_loss"]
    assert last["validation_replaced_accuracy"] > last["validation_replaced_baseline"]
    assert last["validation_masked_loss"] < last["validation_unigram_loss"]
    found = last["validation_replaced_found"] / last["validation_replaced_share"]
    assert last["validation_replaced_recall"] == pytest.approx(found) and found > 0.2
    assert model.network.embedding.shared == ()


def test_the_folder_opens_in_transformers_with_the_same_outputs(trained):
    transformers = pytest.importorskip("transformers")
    model, out = trained
    theirs, told = transformers.AutoModelForPreTraining.from_pretrained(
        out, output_loading_info=True
    )
    assert type(theirs) is transformers.ElectraForPreTraining and not any(told.values()), told
    filler, told = transformers.AutoModelForMaskedLM.from_pretrained(
        out / "generator", output_loading_info=True
    )
    assert type(filler) is transformers.ElectraForMaskedLM and not any(told.values()), told
    tokens = transformers.AutoTokenizer.from_pretrained(out / "generator")
    own = tokens("the king sees the [MASK]", "rain falls", return_tensors="pt")
    ids, segments = own["input_ids"], own["token_type_ids"]
    with torch.no_grad():
        ours = model.network.replaced_logits(model.network(ids, segments))
        torch.testing.assert_close(ours, theirs.eval()(**own).logits, atol=1e-5, rtol=1e-5)
        ours = model.generator.masked_logits(model.generator(ids, segments))
        torch.testing.assert_close(ours, filler.eval()(**own).logits, atol=1e-5, rtol=1e-5)


def test_it_is_opened_whole(trained, tmp_path):
    model, out = trained
    again = sememe.load(out)
    assert_equal(model, again)
    text = "The king sees the [MASK]."
    assert again.fill(text) == model.fill(text) == sememe.load(out / "generator").fill(text)
    assert again.replaced("The cat sees the dog.") == model.replaced("The cat sees the dog.")
    tokens = [token for token, _ in model.replaced("The cat " * 40)]
    assert len(tokens) == len(model.tokenizer.encode("The cat " * 40).ids)
    assert again.evaluate(DOCUMENTS[:20]).accuracy == model.evaluate(DOCUMENTS[:20]).accuracy
    assert "fill" in again.capabilities and "follows" not in again.capabilities
    again.save(tmp_path / "copy")
    assert sememe.load(tmp_path / "copy").fill(text) == model.fill(text)
    kept = json.loads((tmp_path / "copy" / "sememe.json").read_text())
    assert kept["generator"]["width"] == 16 and "replaced head" not in kept["untrained"]


def test_a_discriminator_is_fine_tuned(trained, tmp_path):
    _, out = trained
    rows = [(text, "king" if "king" in text else "none") for text in DOCUMENTS]
    task = sememe.Classify(out, steps=5, batch_size=4, length=24, device="cpu", workers=1)
    task.fit(rows, dev=False, out=tmp_path / "task")
    assert sememe.load(tmp_path / "task").predict(DOCUMENTS[:2])


@pytest.mark.parametrize(
    ("step", "options"),
    [(3, {}), (9, {"architecture": "modern", "optimizer": "muon", "average_share": 0.5})],
)
def test_it_resumes_to_the_bit(step, options, tmp_path, own_cache):
    whole, out = bert(**options).fit(DOCUMENTS), tmp_path / "model"
    with ctrl_c_at(step, MaskedBatches):
        bert(**options).fit(DOCUMENTS, out=out)
    resumed = bert(**options).fit(DOCUMENTS, out=out, resume=True)
    assert_equal(whole, resumed)
    state = resumed.generator.state_dict()
    for name, tensor in whole.generator.state_dict().items():
        assert torch.equal(tensor, state[name]), name


def test_it_continues_from_where_a_run_ended(trained):
    model, out = trained
    notes = Notes()
    options = {name: own for name, own in SMALL.items() if name not in
               ("num_layers", "width", "num_heads", "max_length", "vocab_size")}  # fmt: skip
    more = sememe.BERT(pretrained=out, **options | {"steps": 1, "learning_rate": 1e-12})
    more.fit(DOCUMENTS, progress=notes)
    for own, before in ((more.network, model.network), (more.generator, model.generator)):
        for name, tensor in before.state_dict().items():
            torch.testing.assert_close(own.state_dict()[name], tensor, atol=1e-6, rtol=0)
    assert not any("random weights" in line for line in notes.lines)
    # Training masked tokens instead starts a new masked head, and leaves the generator behind.
    masked = sememe.BERT(pretrained=out, **options | {"objective": "masked"}).fit(
        DOCUMENTS, progress=notes
    )
    assert any("no masked head" in line for line in notes.lines)
    assert masked.generator is None and masked.fill("The [MASK]")
    with pytest.raises(UnsupportedError, match="replaced"):
        masked.replaced("The cat")


def test_what_is_refused(trained, tmp_path, own_cache):
    plain = bert(objective="masked", steps=1).fit(DOCUMENTS)
    with pytest.raises(OptionError, match="no generator"):
        sememe.BERT(pretrained=plain, objective="rtd")
    with pytest.raises(OptionError, match="generator_share"):
        sememe.BERT(pretrained=trained[1], objective="rtd", generator_share=0.5)
    for name in ("generator_share", "replaced_weight"):
        with pytest.raises(OptionError, match=name):
            bert(objective="masked", **{name: 0.7})
    with pytest.raises(OptionError, match="lora"):
        sememe.BERT(pretrained=trained[1], objective="rtd", lora=4)
    with pytest.raises(UnsupportedError, match="rtd"):
        plain.replaced("The cat")


def test_planning_counts_the_generator_and_expects_no_loss():
    model, plain = bert(), bert(objective="masked")
    assert model.num_weights() > plain.num_weights()
    assert model.flops_per_step() > plain.flops_per_step()
    assert model.frequency_loss({"unigram_loss": 3.0}) is None
