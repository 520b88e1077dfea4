"""A student learns from a teacher's predictions and token relations."""

from __future__ import annotations

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from recorded_notes import Notes
from sememe import BERT
from sememe.errors import OptionError, SememeError
from sememe.models.bert.distillation import relation_loss, soft_loss
from sememe.nn.rows import unpadded_rows
from stopping import assert_equal, killed_at

TEXTS = [f"the {a} sees the {b} in the old castle" for a in "abcdef" for b in "ghijkl"] + [
    "猫狗"
] * 9
QUICK = {
    "steps": 4, "batch_size": 4, "length": 24, "device": "cpu", "workers": 1, "compile": "no",
    "next_sentence": False, "validation_share": 0.2,
}  # fmt: skip
SIZES = {"width": 32, "num_heads": 4, "max_length": 32, "vocab_size": 150}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert") / "teacher"
    BERT("tiny", num_layers=4, **SIZES, **QUICK).fit(TEXTS, out=folder)
    return folder


def student(teacher, **more):
    return BERT("tiny", num_layers=2, teacher=str(teacher), **{**SIZES, **QUICK, **more})


def test_losses_are_those_of_the_formulas():
    generator = torch.Generator().manual_seed(1)
    ours_MV, theirs_MV = (torch.randn(5, 7, generator=generator) for _ in range(2))
    targets_M = torch.tensor([1, 2, -100, 0, 6])
    expected = 0.0
    for row in (0, 1, 3, 4):
        p, q = (np.exp(own[row].numpy() / 2) for own in (theirs_MV, ours_MV))
        p, q = p / p.sum(), q / q.sum()
        expected += 4 * float((p * np.log(p / q)).sum())
    assert soft_loss(ours_MV, theirs_MV, targets_M, 2.0).item() == pytest.approx(expected, rel=1e-5)

    lengths = np.array([3, 2])
    rows = unpadded_rows(lengths, 3)
    ours_ND, theirs_ND = (
        torch.randn(5, 4, generator=generator),
        torch.randn(5, 8, generator=generator),
    )
    expected, first = 0.0, 0
    for length in lengths:
        for group in range(2):
            shares = []
            for tokens_ND, size in ((ours_ND, 2), (theirs_ND, 4)):
                own = tokens_ND[first : first + length, group * size : (group + 1) * size].numpy()
                scores = np.exp(own @ own.T / math.sqrt(size))
                np.fill_diagonal(scores, 0)
                shares.append(scores / scores.sum(1, keepdims=True))
            ours, theirs = (np.where(np.eye(length), 1, own) for own in shares)
            expected += (
                float((np.where(np.eye(length), 0, theirs) * np.log(theirs / ours)).sum()) / 2
            )
        first += length
    found = relation_loss(ours_ND.requires_grad_(), theirs_ND, rows, 2)
    assert found.item() == pytest.approx(expected, rel=1e-4)
    found.backward()
    assert ours_ND.grad is not None and ours_ND.grad.abs().sum() > 0
    assert relation_loss(theirs_ND, theirs_ND, rows, 2).item() == pytest.approx(0, abs=1e-6)


def test_a_student_starts_from_the_teachers_blocks(teacher):
    notes = Notes()
    model = student(teacher, steps=1, learning_rate=1e-12).fit(TEXTS, progress=notes)
    assert "2 of its blocks are the start" in notes
    theirs = BERT.load(teacher).network.state_dict()
    for name, value in model.network.state_dict().items():
        known = name.replace("blocks.1.", "blocks.3.").replace("blocks.0.", "blocks.1.")
        if not name.startswith(("pooler", "next_head")):
            torch.testing.assert_close(value, theirs[known], atol=1e-6, rtol=0)
    smaller = student(teacher, steps=1, width=16, num_heads=2).fit(TEXTS, progress=notes)
    assert "starts with weights of its own" in notes and smaller.config.width == 16


def test_a_student_resumes_to_the_bit_and_is_saved_alone(teacher, tmp_path):
    whole = student(teacher).fit(TEXTS, out=tmp_path / "whole")
    with killed_at(2):
        student(teacher).fit(TEXTS, out=tmp_path / "stopped")
    resumed = student(teacher).fit(TEXTS, out=tmp_path / "stopped", resume=True)
    assert_equal(resumed, whole)
    assert {"soft_loss", "relation_loss", "validation_soft_loss"} <= {*whole.history.last()}
    again = BERT.load(tmp_path / "whole")
    for name, value in whole.network.state_dict().items():
        if not name.startswith(("pooler", "next_head")):  # which were not trained
            np.testing.assert_array_equal(again.network.state_dict()[name], value)
    assert again.config.num_layers == 2 and again.distillation.teacher == str(teacher)
    assert len(again.network.state_dict()) == len(whole.network.state_dict())
    # Another teacher is another run.
    with pytest.raises(SememeError, match="soft_weight"):
        student(teacher, soft_weight=0.9).fit(TEXTS, out=tmp_path / "whole", resume=True)


def test_the_teacher_changes_what_is_learned(teacher):
    own = {"learning_rate": 1e-2, "steps": 3}
    plain = BERT("tiny", num_layers=2, **{**SIZES, **QUICK, **own}).fit(
        TEXTS, tokenizer=BERT.load(teacher).tokenizer
    )
    taught = [student(teacher, **own, soft_weight=share).fit(TEXTS) for share in (0.0, 1.0)]
    weights = [one.network.masked_bias.detach().numpy() for one in (plain, *taught)]
    assert not np.allclose(weights[1], weights[2]) and not np.allclose(weights[0], weights[1])


def test_a_teacher_that_does_not_fit_is_refused(teacher, tmp_path):
    other = BERT("tiny", num_layers=1, **{**SIZES, "vocab_size": 140}, **QUICK).fit(TEXTS)
    with pytest.raises(OptionError, match="another tokenizer"):
        student(teacher).fit(TEXTS, tokenizer=other.tokenizer)
    with pytest.raises(OptionError, match="maximum sequence length of the teacher"):
        student(teacher, length=64, max_length=64).fit(TEXTS)
    with pytest.raises(OptionError, match="rtd"):
        student(teacher, objective="rtd").fit(TEXTS)
    with pytest.raises(OptionError, match="compile"):
        student(teacher, compile="step").fit(TEXTS)
    for own in ({"soft_weight": 0.9}, {"temperature": 5.0}, {"relation_weight": 3.0}):
        with pytest.raises(OptionError, match="teacher"):
            BERT("tiny", **own)
    headless = BERT.load(teacher)
    headless.network.untrained |= {"masked head"}
    headless.save(tmp_path / "headless")
    notes = Notes()
    student(tmp_path / "headless").fit(TEXTS, progress=notes)
    assert "teaches token relations;" in notes
    with pytest.raises(OptionError, match="relation_weight"):
        student(tmp_path / "headless", relation_weight=0.0).fit(TEXTS)
