"""What attention is for: three models reverse sequences of growing length.

A recurrent encoder-decoder with a single context vector, the same with attention, and the
Transformer are trained to reverse random sequences. The output is a folder with each model's
accuracy by length, a table and a picture.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from sememe.examples.pair_batches import PairBatches, PairIds, Side
from sememe.models.study_folder import draw_study, keep_in, kept_in
from sememe.models.translation.beam_search import search
from sememe.models.translation.config import (
    ReversalConfig,
    SearchConfig,
    seq2seq_config,
    transformer_config,
)
from sememe.models.translation.seq2seq import Seq2SeqNetwork
from sememe.models.translation.training import TranslationObjective
from sememe.models.translation.transformer import TransformerNetwork
from sememe.plots.charts import RatePanel
from sememe.progress import SILENT, Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import check_replaceable
from sememe.training.device import choose_device, reproducible
from sememe.training.loop import Loop
from sememe.training.run import TrainingRun, check_tensorboard

KIND = "reversal study"
DEFAULT_STEPS = 2_000
START, END, FIRST_SYMBOL = 0, 1, 2
# By the name in results: the title in the picture and the rate that suits it.
MODELS = {
    "fixed": ("LSTM, one vector", 3e-3),
    "attention": ("LSTM with attention", 3e-3),
    "transformer": ("Transformer", 2e-3),
}


HEADINGS = ("length", *(title for title, _ in MODELS.values()))


@dataclass(frozen=True, kw_only=True)
class Reversal:
    """The accuracy of each model on sequences of each length, from 1 on."""

    headings: ClassVar[tuple[str, ...]] = HEADINGS
    right: dict[str, list[float]]
    facts: dict[str, Any]

    def table(self) -> list[list[Any]]:
        """One row per length: the length, then the accuracy of each model."""
        lengths = range(1, len(next(iter(self.right.values()))) + 1)
        return [
            [length, *(f"{self.right[name][length - 1]:.0%}" for name in MODELS)]
            for length in lengths
        ]


def study_reversal(
    config: ReversalConfig | None = None,
    *,
    out: str | Path,
    resume: bool = False,
    overwrite: bool = False,
    progress: Reporter = SILENT,
) -> Reversal:
    """Train the three models on the same sequences, and test them by length.

    Each does as many steps (2,000), or those that fit into the budget. `resume` continues a study
    that was stopped in `out`, even within a model; `overwrite` allows replacing an existing one.
    """

    config, out = config or ReversalConfig(), Path(out)
    if not (config.budget or config.steps or config.epochs):
        config = replace(config, steps=DEFAULT_STEPS)
    check_replaceable(out, KIND, overwrite=resume or overwrite)
    check_tensorboard(config.tensorboard)
    plan = {"options": config.lasting()}
    nothing: dict[str, Any] = {"right": {}, "models": {}}
    kept = kept_in(out, plan, nothing) if resume else nothing
    keep_in(out, KIND, plan, kept)  # so that a study stopped within its first model can be resumed
    for name, (title, _) in MODELS.items():
        if name in kept["right"]:
            continue
        progress.note(f"{title} ({len(kept['right']) + 1} of {len(MODELS)} models).")
        network, last = _trained(name, config, out, resume, plan, progress)
        kept["right"][name] = accuracy_by_length(network, config)
        num_weights = sum(parameter.numel() for parameter in network.parameters())
        kept["models"][name] = {"weights": num_weights, "steps": last["step"], "loss": last["loss"]}
        keep_in(out, KIND, plan, kept)
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


# ---- sequences ----------------------------------------------------------------------------------


def synthetic_pairs(config: ReversalConfig) -> Any:
    """Random sequences of every length with their reversals, as ids."""

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
    """Test sequences, sorted by length; different from the training sequences."""
    # Short sequences are few: of those, some are among the ones that were learned.
    draws = np.random.default_rng([config.seed, 1])
    for length in range(1, config.longest + 1):
        yield [draws.integers(0, config.num_symbols, length) for _ in range(config.num_tests)]


# ---- models -------------------------------------------------------------------------------------


def new_network(name: str, config: ReversalConfig) -> Any:
    """An untrained network that knows the symbols."""

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
    """A network after its training, and the last metrics of it."""

    config = replace(config, learning_rate=config.learning_rate or MODELS[name][1])
    config = config.one_of_several(name)
    network = new_network(name, config)
    run = TrainingRun(
        source=PairBatches(
            synthetic_pairs(config), batch_tokens=config.batch_size, seed=config.seed
        ),
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
    """The fraction of the test sequences of each length that are reversed without error."""

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

    lines = {title: study.right[name] for name, (title, _) in MODELS.items()}
    lengths = [row[0] for row in study.table()]
    panel = RatePanel("sequences reversed without an error", lines, is_share=True)
    axis = {"name": "symbols of a sequence", "is_share": False}
    draw_study(out, HEADINGS, study.table(), lengths, [panel], **axis)
