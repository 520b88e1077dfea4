"""Losses of benchmarks/finetuning.py: the same rows, the same start on both sides, in float32."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from finetuning_rows import OURS, THEIRS, Material, circumstances
from result_lines import append


def losses(options: argparse.Namespace) -> None:
    """Print the losses of both and the largest difference, for each set."""
    options.max_train = options.max_train or 2 * options.steps * options.batch_size
    for key in options.task:
        material = Material(key, options)
        own, other, note = losses_of(material)
        differences = np.abs(np.array(own) - np.array(other))
        worst = int(differences.argmax())
        print(f"{key}: {len(own)} steps of {options.batch_size} rows; {note}")
        for step in sorted({*range(0, len(own), max(1, len(own) // 5)), worst, len(own) - 1}):
            print(
                f"  step {step + 1:4}: {OURS} {own[step]:.6f}, {THEIRS} {other[step]:.6f}, "
                f"difference {differences[step]:.1e}"
            )
        print(f"  largest difference {differences[worst]:.2e}, at step {worst + 1}", flush=True)
        record = {
            "comparison": "losses", "task": key, "largest": float(differences[worst]),
            OURS: own, THEIRS: other, "compared": note, "length": material.length,
            "batch_size": options.batch_size, **circumstances(options),
        }  # fmt: skip
        append(options.json, record)


def losses_of(material: Material) -> tuple[list[float], list[float], str]:
    """The losses of our task and of the peer, and how their rows compare."""
    from finetuning_features import Reader
    from finetuning_peer import Peer

    from sememe.tasks.objective import ItemBatches
    from sememe.training import loop
    from sememe.training.device import choose_device

    options, hyper = material.options, material.hyper
    if material.kind == "answer":
        material.task_class = filled(material.task_class)
    loop.LEAST_PERIOD.clear()  # the loss of every step, on a GPU too
    exact = {"dropout": 0.0, "precision": "fp32", "seed": 1}
    with tempfile.TemporaryDirectory() as scratch:
        # A step at no rate leaves the head as it was drawn.
        start, first = Path(scratch) / "start", replace(hyper, steps=1, learning_rate=1e-30)
        material.fitted(options.model, first, **exact).save(start)
        task = material.fitted(options.model, hyper, **exact)
        reader = Reader(material.kind, options.model, material.labels, hyper.length)
        peer = Peer(reader, start, hyper, choose_device(options.device), is_exact=True)
    items, features = task.encode(material.learned), reader(material.learned)
    if material.kind == "answer":
        features = [feature for feature in features if len(feature.ids) == hyper.length]
    source = ItemBatches(
        items, batch_size=hyper.batch_size, seed=1, sort_batches=task.config.sort_batches
    )
    batches = [source.order(step).tolist() for step in range(hyper.steps)]
    theirs = peer.train(features, batches).losses
    return task.history.column("loss").tolist(), theirs, compared(items, features)


def filled(cls: Any) -> Any:
    """Our task for answers, learning from windows that fill their length alone."""

    class Filled(cls):  # type: ignore[misc]
        def encode(self, rows: Any) -> Any:
            return [i for i in super().encode(rows) if i.num_tokens == self.config.length]

    return Filled


def compared(items: Sequence[Any], features: Sequence[Any]) -> str:
    """How many rows the two sides cut or label differently."""
    num = sum(
        not np.array_equal(item.sequences[0].ids_T, feature.ids)
        or not np.array_equal(item.sequences[0].segments_T, feature.segments)
        or not np.allclose(item.target, feature.target)
        for item, feature in zip(items, features, strict=True)
    )
    return f"{num} of {len(items)} differ in tokens, segments or labels"
