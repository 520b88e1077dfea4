"""What attention is for: sequences of growing length to turn round, for three models.

A recurrent encoder that keeps all of a sequence in one vector, the same one with attention, and the
Transformer learn to write a made sequence of symbols backwards. A folder comes out with how many
sequences of each length each of them gets wholly right, a table and a picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import ArtifactError
from sememe.evaluation.studies.reversal_config import ReversalConfig
from sememe.progress import SILENT, Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_file, write_json
from sememe.storage.provenance import provenance

KIND = "reversal study"
DEFAULT_STEPS = 2_000
PICTURES, TABLE = ("study.png", "study.svg"), "study.md"
START, END, FIRST_SYMBOL = 0, 1, 2
# By the name in results: the title in the picture and the rate that suits it.
MODELS = {
    "fixed": ("LSTM, one vector", 3e-3),
    "attention": ("LSTM with attention", 3e-3),
    "transformer": ("Transformer", 2e-3),
}


@dataclass(frozen=True, kw_only=True)
class Reversal:
    """How many sequences of each length, from 1 on, each model got wholly right."""

    right: dict[str, list[float]]
    facts: dict[str, Any]

    def table(self) -> list[list[Any]]:
        """A row for each length: the length, then a share for each model."""
        lengths = range(1, len(next(iter(self.right.values()))) + 1)
        return [
            [length, *(f"{self.right[name][length - 1]:.0%}" for name in MODELS)]
            for length in lengths
        ]


HEADINGS = ("length", *(title for title, _ in MODELS.values()))


def study_reversal(
    config: ReversalConfig | None = None,
    *,
    out: str | Path,
    resume: bool = False,
    progress: Reporter = SILENT,
) -> Reversal:
    """Train the three models on the same sequences, and test them length by length.

    Each does as many steps (2,000), or those that fit into the budget. `resume` goes on where a
    study into `out` was stopped, within a model too.
    """
    from sememe.networks.installed import need_torch

    need_torch()
    from sememe.training.tensorboard import check_tensorboard

    config, out = config or ReversalConfig(), Path(out)
    if not (config.budget or config.steps or config.epochs):
        config = replace(config, steps=DEFAULT_STEPS)
    check_replaceable(out, KIND)
    check_tensorboard(config.tensorboard)
    plan = {"options": config.lasting()}
    kept = _kept(out, plan) if resume else {"right": {}, "models": {}}
    _write(out, plan, kept)  # so that a study stopped within its first model can go on
    for name, (title, _) in MODELS.items():
        if name in kept["right"]:
            continue
        progress.note(f"{title} ({len(kept['right']) + 1} of {len(MODELS)} models).")
        network, last = _trained(name, config, out, resume, plan, progress)
        kept["right"][name] = accuracy_by_length(network, config)
        num_weights = sum(parameter.numel() for parameter in network.parameters())
        kept["models"][name] = {"weights": num_weights, "steps": last["step"], "loss": last["loss"]}
        _write(out, plan, kept)
        Checkpoints(out / f"{name}.checkpoints").clear()
    study = Reversal(
        right={name: kept["right"][name] for name in MODELS},
        facts={
            "num_symbols": config.num_symbols,
            "num_tests": config.num_tests,
            "models": kept["models"],
        },
    )
    _draw(study, out)
    return study


def _write(out: Path, plan: dict[str, Any], kept: dict[str, Any]) -> None:
    write_json(out / MANIFEST, {"kind": KIND, **kept, "plan": plan, "provenance": provenance()})


def _kept(out: Path, plan: dict[str, Any]) -> dict[str, Any]:
    """What a study that was stopped has measured already."""
    from sememe.training.checkpointing import check_plan

    if not (out / MANIFEST).exists():
        return {"right": {}, "models": {}}
    manifest = read_json(out / MANIFEST)
    try:
        kept = {"right": dict(manifest["right"]), "models": dict(manifest["models"])}
        before = manifest["plan"]
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{out / MANIFEST} is damaged ({error}): start anew.") from error
    check_plan(out / MANIFEST, before, plan)
    return kept


# ---- sequences ----------------------------------------------------------------------------------


def made_pairs(config: ReversalConfig) -> Any:
    """Random sequences of every length with what they are turned round, as ids."""
    from sememe.examples.pair_batches import PairIds, Side

    draws = np.random.default_rng(config.seed)
    lengths = draws.integers(1, config.longest + 1, config.num_sequences)
    sequences = [draws.integers(0, config.num_symbols, length) for length in lengths]
    return PairIds(
        Side(source_of(own) for own in sequences), Side(target_of(own) for own in sequences)
    )


def source_of(symbols: np.ndarray) -> np.ndarray:
    """A sequence as an encoder reads it."""
    return np.append(symbols + FIRST_SYMBOL, END)


def target_of(symbols: np.ndarray) -> np.ndarray:
    """The same sequence backwards, as a decoder writes it."""
    return np.concatenate([[START], symbols[::-1] + FIRST_SYMBOL, [END]])


def asked_of(config: ReversalConfig) -> Iterator[list[np.ndarray]]:
    """Sequences to test with, those of one length after the other; others than are learned."""
    # Short sequences are few: of those, some are among the ones that were learned.
    draws = np.random.default_rng([config.seed, 1])
    for length in range(1, config.longest + 1):
        yield [draws.integers(0, config.num_symbols, length) for _ in range(config.num_tests)]


# ---- models -------------------------------------------------------------------------------------


def new_network(name: str, config: ReversalConfig) -> Any:
    """An untrained network that knows the symbols."""
    from sememe.networks.seq2seq import Seq2SeqNetwork
    from sememe.networks.transformer import TransformerNetwork
    from sememe.networks.translation_config import seq2seq_config, transformer_config

    vocab_size, max_length = FIRST_SYMBOL + config.num_symbols, config.longest + 2
    if name == "transformer":
        sizes = transformer_config(
            "tiny", vocab_size=vocab_size, max_length=max_length, num_layers=2, width=config.width,
            num_heads=4 if config.width % 4 == 0 else 1, inner_size=2 * config.width, dropout=0.0,
            attention_dropout=0.0, norm="pre",
        )  # fmt: skip
        return TransformerNetwork(sizes, seed=config.seed)
    attention = "none" if name == "fixed" else "multiplicative"
    own = seq2seq_config(
        "tiny", vocab_size=vocab_size, max_length=max_length, num_layers=1, dropout=0.0,
        width=config.width, embedding_size=config.width, attention=attention,
    )  # fmt: skip
    return Seq2SeqNetwork(own, seed=config.seed)


def _trained(
    name: str,
    config: ReversalConfig,
    out: Path,
    resume: bool,
    plan: dict[str, Any],
    progress: Reporter,
) -> tuple[Any, dict[str, Any]]:
    """A network after its training, and the last figures of it."""
    from sememe.examples.pair_batches import PairBatches
    from sememe.networks.translation_objective import TranslationObjective
    from sememe.training.loop import Loop
    from sememe.training.run import Run

    config = replace(config, learning_rate=config.learning_rate or MODELS[name][1])
    config = config.one_of_several(name)
    network = new_network(name, config)
    run = Run(
        source=PairBatches(made_pairs(config), batch_tokens=config.batch_size, seed=config.seed),
        config=config,
        reporter=progress,
        keeper=Checkpoints(out / f"{name}.checkpoints", keep=config.keep),
        resume=resume,
        plan={**plan, "model": {"name": name}},
        shown=(),
    )
    history = Loop(TranslationObjective(network, smoothing=0.0), run).train()
    network.uncompile()
    return network, history.last()


def accuracy_by_length(network: Any, config: ReversalConfig) -> list[float]:
    """The share of the test sequences of each length that are turned round without a mistake."""
    import torch

    from sememe.networks.search import search
    from sememe.networks.translation_config import SearchConfig
    from sememe.training.precision import choose_device, reproducible

    device, greedy = choose_device(config.device), SearchConfig(beam=1)
    network.to(device)
    network.eval()
    network.precision = torch.float32
    shares = []
    with reproducible(device, "fp32", config.num_workers), torch.no_grad():
        for sequences in asked_of(config):
            writer = network.writer([source_of(own) for own in sequences], 1)
            found = search(
                writer, [config.longest] * len(sequences), greedy, start_id=START, end_id=END,
                barred=[START], device=device,
            )  # fmt: skip
            right = [
                own[0].ids == target_of(symbols)[1:-1].tolist()
                for own, symbols in zip(found, sequences, strict=True)
            ]
            shares.append(sum(right) / len(right))
    return shares


def _draw(study: Reversal, out: Path) -> None:
    from sememe.plots.rates import Panel, draw_rates

    lines = {title: study.right[name] for name, (title, _) in MODELS.items()}
    lengths = [row[0] for row in study.table()]
    panel = Panel("sequences turned round without a mistake", lines, is_share=True)
    draw_rates(
        lengths, [panel], [out / name for name in PICTURES], name="symbols of a sequence",
        is_share=False,
    )  # fmt: skip
    rows = [HEADINGS, ["---"] * len(HEADINGS), *study.table()]
    with write_file(out / TABLE) as scratch:
        text = "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)
        scratch.write_text(text + "\n", encoding="utf-8")
