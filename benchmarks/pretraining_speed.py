"""Tokens per second of pre-training by the command's defaults, and the share of a chip's peak.

`speed` of benchmarks/pretraining.py: our training as `sememe train bert` runs it, data included,
and the steps of transformers' BERT, compiled, on the same batches. A line of the table takes about
two minutes on an H200, half of them for compiling, and is written at once; one that fails is
reported, and the next one starts.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

_WARM = 3  # records of our history before the clock runs: compiling, the first batches


def speed(options: argparse.Namespace) -> None:
    """Measure every preset and length, and print a table; finished lines are not made again."""
    options.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    for preset in options.presets:
        for length in options.lengths:
            for how in options.compile:
                place = options.out / f"{preset}-{length}-{how}-{options.recipe}.json"
                found = json.loads(place.read_text()) if place.exists() else {}
                needs_peer = how == options.compile[0] and not options.alone
                for name in ["ours"] * (not found) + ["theirs"] * needs_peer:
                    if name in found or time.monotonic() - begun > 60 * options.stop_after:
                        continue
                    try:
                        if name == "ours":
                            found |= ours(options, preset, length, how)
                        else:
                            found[name] = theirs(options, preset, length, found["rows"])
                    except Exception:  # the next line may have another fate
                        traceback.print_exc()
                        print(f"FAILED: {name}, {place.stem}", flush=True)
                        release()
                        break
                    place.write_text(json.dumps(found, indent=1))
                    print(json.dumps(found), flush=True)
    table(options)


def ours(options: argparse.Namespace, preset: str, length: int, how: str) -> dict[str, Any]:
    """Our training for some steps with the defaults of the command."""
    import sememe
    from sememe.progress import Reporter
    from sememe.tokens.subwords.store import SubwordStore

    model = sememe.BERT(
        preset, length=length, steps=options.steps, device=options.device, compile=how,
        batch_size=options.rows, evaluate_batches=0, checkpoint_minutes=0.0, recipe=options.recipe,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        model.fit(
            SubwordStore.open(options.store), tokenizer=options.tokenizer,
            out=Path(folder) / "model", progress=Reporter(line_s=20),
        )  # fmt: skip
        fit_s = time.monotonic() - begun
    speeds = [record["tokens_per_s"] for record in model.history if "tokens_per_s" in record]
    per_token = model.flops_per_step() / (model.training.batch_size * length)
    median = statistics.median(speeds[_WARM:] or speeds)
    found = {
        "preset": preset, "length": length, "compile": how, "recipe": options.recipe,
        "rows": model.training.batch_size, "tokens_per_s": median,
        "low": min(speeds[_WARM:] or speeds), "high": max(speeds[_WARM:] or speeds),
        "flops_per_token": per_token, "share": per_token * median / (options.peak * 1e12),
        "fit_s": fit_s, "seconds": model.history.last()["seconds"], **peak_memory(),
    }  # fmt: skip
    release()
    return found


def theirs(options: argparse.Namespace, preset: str, length: int, rows: int) -> dict[str, Any]:
    """The steps of transformers' BERT, compiled, with as many rows as fit."""
    import torch
    from pretraining import Theirs, timed

    from sememe.examples.masking.batches import MaskedBatches
    from sememe.models.bert.config import PRESETS
    from sememe.options import changed
    from sememe.tokens.subwords.store import SubwordStore
    from sememe.tokens.subwords.tokenizer import SubwordTokenizer
    from sememe.training.device import choose_device

    device, tokenizer = choose_device(options.device), SubwordTokenizer.load(options.tokenizer)
    is_gpu = device.type == "cuda"
    wait = torch.cuda.synchronize if is_gpu else (lambda: None)
    config = changed(PRESETS[preset].network, "BERT", {"vocab_size": tokenizer.vocab_size})
    while True:
        source = MaskedBatches(
            SubwordStore.open(options.store), tokenizer, length=length, batch_size=rows
        )
        batches = [source.batch(step) for step in range(options.steps // 2)]
        try:
            side = Theirs(config, device, is_gpu, is_gpu)
            warm = max(1, len(batches) // 3)
            timed(side, batches[:warm], wait)
            found, _ = timed(side, batches[warm:], wait)
            return {"tokens_per_s": found, "rows": rows}
        except torch.OutOfMemoryError:
            if rows < 2:
                raise
            rows //= 2
        side = batches = None
        release()


def peak_memory() -> dict[str, int]:
    """The bytes of tensors on a GPU, and those reserved, since the last release."""
    import torch

    if not torch.cuda.is_available():
        return {}
    return {
        "memory_bytes": torch.cuda.max_memory_allocated(),
        "reserved_bytes": torch.cuda.max_memory_reserved(),
    }


def release() -> None:
    """Free the memory of what was measured."""
    import torch

    gc.collect()
    torch._dynamo.reset()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def table(options: argparse.Namespace) -> None:
    """Print what was measured."""
    print(f"| preset | length | rows | compile | tokens/s | of {options.peak:g} TFLOP/s | "
          "transformers (rows) | ratio |")  # fmt: skip
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for path in sorted(options.out.glob("*.json")):
        own = json.loads(path.read_text())
        other = own.get("theirs")
        how = own["compile"] + (f", {own['recipe']}" if own["recipe"] != "paper" else "")
        cells = ["–", "–"]
        if other:
            ratio = own["tokens_per_s"] / other["tokens_per_s"]
            cells = [f"{other['tokens_per_s']:,.0f} ({other['rows']})", f"{ratio:.2f}"]
        print(
            f"| {own['preset']} | {own['length']} | {own['rows']} | {how} | "
            f"{own['tokens_per_s']:,.0f} | {own['share']:.1%} | {' | '.join(cells)} |"
        )
