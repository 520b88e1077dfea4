"""A batch that does not fit into memory is computed in parts; the rows of a step on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from animal_sentences import DOCUMENTS
from recorded_notes import Notes
from stopping import assert_equal, ctrl_c_at

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

import sememe
from sememe.errors import OptionError
from sememe.examples.masking.batches import MaskedBatches
from sememe.models.bert.config import gpu_rows
from sememe.models.bert.network import MaskedObjective

SMALL = {
    "num_layers": 1, "width": 32, "num_heads": 2, "max_length": 32, "length": 32, "batch_size": 12,
    "workers": 1, "steps": 10, "evaluate_batches": 2, "validation_share": 0.2, "device": "cpu",
    "vocab_size": 160, "dropout": 0.0, "attention_dropout": 0.0,
}  # fmt: skip


def bert(**options: Any) -> Any:
    return sememe.BERT("tiny", **{**SMALL, **options})


@pytest.fixture(name="room")
def room_fixture(monkeypatch) -> dict[str, int]:
    """A device whose memory holds that many rows in a training step."""
    room, forward = {"rows": 5}, MaskedObjective.forward

    def limited(self: Any, inputs: Any, counts: Any) -> Any:
        if torch.is_grad_enabled() and inputs.rows.num_rows > room["rows"]:
            raise torch.OutOfMemoryError("no memory")
        return forward(self, inputs, counts)

    monkeypatch.setattr(MaskedObjective, "forward", limited)
    monkeypatch.setattr("sememe.training.loop.LIMITED", ("cpu",))
    return room


def test_parts_are_doubled_until_they_fit_and_the_result_is_the_same(room):
    notes = Notes()
    found = bert().fit(DOCUMENTS, progress=notes)
    assert any("12 rows" in line and "4 parts of 3 rows" in line for line in notes.lines)
    room["rows"] = 12
    whole = bert().fit(DOCUMENTS, progress=(notes := Notes()))
    assert not any("parts" in line for line in notes.lines)
    for name, tensor in whole.network.state_dict().items():
        torch.testing.assert_close(found.network.state_dict()[name], tensor, atol=1e-5, rtol=1e-4)


def test_a_schedule_is_tried_at_its_largest(room):
    notes = Notes()
    room["rows"] = 12  # the first rows are few
    bert(batch_warmup=0.5, short_length=16).fit(DOCUMENTS, progress=notes)
    assert any("2 parts" in line for line in notes.lines)  # 24 short rows


def test_a_resumed_run_keeps_its_parts(room, tmp_path, own_cache):
    whole, out = bert(dropout=0.1).fit(DOCUMENTS), tmp_path / "model"
    with ctrl_c_at(6, MaskedBatches):
        bert(dropout=0.1).fit(DOCUMENTS, out=out)
    room["rows"] = 12  # on another machine all rows would fit
    assert_equal(whole, bert(dropout=0.1).fit(DOCUMENTS, out=out, resume=True))


def test_rows_that_never_fit_are_said(room):
    room["rows"] = 0
    with pytest.raises(OptionError, match="memory of the GPU"):
        bert().fit(DOCUMENTS)


def test_a_gpu_takes_larger_batches_unless_told(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert sememe.BERT("medium").training.batch_size == 1024 == gpu_rows("medium", 128)
    assert sememe.BERT("base", length=512).training.batch_size == 256
    assert sememe.BERT("tiny").training.batch_size == 512
    assert sememe.BERT("base", accumulate=2).training.batch_size == 1024
    assert sememe.BERT("tiny", length=48, accumulate=2).training.batch_size == 1364
    assert sememe.BERT("medium", batch_size=48).training.batch_size == 48
    assert sememe.BERT("medium", device="cpu").training.batch_size == 256
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert sememe.BERT("medium").training.batch_size == 256
    assert np.isclose(gpu_rows("large", 10**6), 1)
