"""Networks of `transformers` beside ours: padded batches, a plain loop, gradients."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from sememe.models.huggingface.folder import places_of, prefix_of
from sememe.tasks.objective import ItemBatches

STEPS, RATE, BATCH = 100, 1e-3, 8


def padded(items: list[Any]) -> dict[str, Any]:
    """The sequences of items as a peer takes them."""
    sequences = [sequence for item in items for sequence in item.sequences]
    width = max(len(sequence.ids_T) for sequence in sequences)
    ids, segments, mask = (torch.zeros(len(sequences), width, dtype=torch.long) for _ in range(3))
    for row, sequence in enumerate(sequences):
        size = len(sequence.ids_T)
        ids[row, :size] = torch.from_numpy(sequence.ids_T.astype(np.int64))
        segments[row, :size] = torch.from_numpy(sequence.segments_T.astype(np.int64))
        mask[row, :size] = 1
    return {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask}


def plain_losses(
    peer: Any, items: list[Any], inputs_of: Callable[[list[Any]], dict[str, Any]], sort_batches: int
) -> list[float]:
    """What a loop that anybody would write gives, in the order of our batches."""
    source = ItemBatches(items, batch_size=BATCH, seed=7, sort_batches=sort_batches)
    is_plain = re.compile(r"bias|LayerNorm|ln_").search
    decayed = [p for name, p in peer.named_parameters() if not is_plain(name)]
    plain = [p for name, p in peer.named_parameters() if is_plain(name)]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}],
        lr=RATE, betas=(0.9, 0.999), eps=1e-8,
    )  # fmt: skip
    rising = 0.1 * STEPS
    losses = []
    for step in range(STEPS):
        loss = peer(**inputs_of([items[index] for index in source.order(step)])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(peer.parameters(), 1.0)
        share = (step + 1) / rising if step < rising else (STEPS - step) / (STEPS - rising)
        for group in optimizer.param_groups:
            group["lr"] = RATE * share
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses


def assert_equal_gradients(ours: Any, theirs: Any) -> None:
    """Compare the gradient of each weight of a pre-trained network with the peer's."""
    gradients = {name: p.grad for name, p in ours.named_parameters() if p.requires_grad}
    # A tied weight goes by two names.
    their_gradients = {name: p.grad for name, p in theirs.named_parameters(remove_duplicate=False)}
    for name, place in places_of(ours).items():
        if place.name not in gradients:  # a head that is not trained
            continue
        torch.testing.assert_close(
            place.of(gradients), their_gradients[prefix_of(ours, name) + name],
            atol=1e-5, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}",
        )  # fmt: skip
