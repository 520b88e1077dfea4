"""How ULMFiT's language model is fitted: words, a vocabulary, batches, the loop, a folder."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.examples.word_rows import BEGIN_ID, NUM_MARKS, WordRowBatches
from sememe.networks.awd import AWDNetwork
from sememe.networks.awd_objective import NextWordObjective
from sememe.networks.elmo_fitting import (
    copied,
    predicted_words,
    source_of,
    unigram_perplexity,
    validation_of,
    word_counts,
)
from sememe.networks.fitting import Request, keeper_of, take_finished, writer_of
from sememe.progress import SILENT
from sememe.progress.figures import format_count
from sememe.storage.checkpoints import Checkpoints
from sememe.tokens.store import TokenStore, open_or_build
from sememe.training.distributed import Processes, joined
from sememe.training.evaluation import Validation
from sememe.training.loop import Loop
from sememe.training.optimizers import RateGroup
from sememe.training.run import Run

if TYPE_CHECKING:
    from sememe.networks.awd_model import ULMFiT


def fit(model: ULMFiT, corpus: Any, request: Request) -> None:
    """Train `model` and save it where the request says so."""
    with joined() as processes:
        if not processes.is_main:  # one of them speaks
            request = replace(request, reporter=SILENT)
        _fit(model, corpus, request, processes)


def _fit(model: ULMFiT, corpus: Any, request: Request, processes: Processes) -> None:
    training, reporter = model.training, request.reporter
    writer = writer_of(training.tensorboard) if processes.is_main else None
    store = open_or_build(
        corpus, model.text, min_count=training.min_count, workers=training.workers,
        path=request.store, progress=reporter,
    )  # fmt: skip
    num_words = predicted_words(store, training.min_count, training.max_words)
    model.vocabulary = copied(store.vocabulary.cut(num_words))
    model.config = replace(model.config, vocab_size=NUM_MARKS + num_words)
    source = source_of(model, store, "train")
    validation = validation_of(model, store, reporter)
    plan = _plan(model, store)
    if take_finished(model, request, plan):
        return
    model.network = _new_network(model, store, request)
    objective = NextWordObjective(
        model.network, activation=training.activation_penalty, change=training.change_penalty
    )
    reporter.note(_greeting(model, source))
    run = Run(
        source=source, config=training, validation=validation,
        on_validation=_with_perplexity(store, num_words, validation), reporter=reporter,
        keeper=keeper_of(model, request), resume=request.resume, plan=plan, writer=writer,
        processes=processes, shown=("validation_perplexity",),
        rate_groups=_rate_groups(model) if training.layer_decay < 1 else None,
    )  # fmt: skip
    try:
        model.history = Loop(objective, run).train()
    finally:
        if writer is not None:
            writer.close()
    model.network.to("cpu")
    model.network.eval()
    model.plan = plan
    if request.out is not None and processes.is_main:
        model.save(request.out)
        Checkpoints(f"{request.out}.checkpoints").clear()


def _new_network(model: ULMFiT, store: TokenStore, request: Request) -> AWDNetwork:
    """A network that has learned nothing, or what the model to start from has learned."""
    network = AWDNetwork(model.config, seed=model.training.seed)
    start, num_words = model.start, len(model.vocabulary)
    if start is None:
        counts = word_counts(store, num_words)
        counts[BEGIN_ID] = 0  # which is never to be predicted
        network.begin_with(counts)
        return network
    found = np.array([start.vocabulary.find(word) for word in model.vocabulary], np.int64)
    old_ids = np.concatenate([np.arange(NUM_MARKS), np.where(found < 0, -1, NUM_MARKS + found)])
    network.take_from(start.network, old_ids)
    request.reporter.note(
        f"Going on from {start!r}: {int((found >= 0).sum()):,} of {num_words:,} words are known; "
        "the others start as the mean of all."
    )
    return network


def _rate_groups(model: ULMFiT) -> Callable[[int], list[RateGroup]]:
    """A function that gives the layers as groups, lower ones slower (Howard & Ruder 2018, 3.2)."""
    network, decay = model.network, model.training.layer_decay

    def factor_at(depth: int) -> Callable[[int], float]:
        share = decay ** (model.config.num_layers - depth)
        return lambda step: share

    def groups(num_steps: int) -> list[RateGroup]:
        by_depth: dict[int, list[Any]] = {}
        for name, parameter in network.named_parameters():
            by_depth.setdefault(network.depth_of(name), []).append(parameter)
        return [RateGroup(own, factor_at(depth)) for depth, own in sorted(by_depth.items())]

    return groups


def _with_perplexity(
    store: TokenStore, num_words: int, validation: Validation | None
) -> Callable[[dict[str, float]], dict[str, float]]:
    """A function that puts perplexity beside the figures, and what counts alone would reach."""
    if validation is None:
        return lambda figures: figures
    unigram = unigram_perplexity(store, num_words, validation)

    def add(figures: dict[str, float]) -> dict[str, float]:
        perplexity = math.exp(min(figures["word_loss"], 300.0))
        return {**figures, "perplexity": perplexity, "unigram_perplexity": unigram}

    return add


def _plan(model: ULMFiT, store: TokenStore) -> dict[str, Any]:
    """What identifies a run: the options that shape it, its text, and what it starts from."""
    return {
        "network": model.config.to_dict(),
        "training": model.training.lasting(),
        "content": {
            "text": store.manifest["files"]["ids.bin"]["hash"],
            "tokens": store.num_tokens,
            "words": len(store.vocabulary),
            "start": "" if model.start is None else _hash(model.start.network),
        },
    }


def _hash(network: AWDNetwork) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in network.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.cpu().contiguous().numpy())
    return digest.hexdigest()


def _greeting(model: ULMFiT, source: WordRowBatches) -> str:
    config = model.config
    num_weights = sum(parameter.numel() for parameter in model.network.parameters())
    return (
        f"ULMFiT {model.preset}: {config.num_layers} layers × {config.num_cells}/{config.width}, "
        f"{format_count(num_weights)} weights; {config.vocab_size:,} words; text of "
        f"{format_count(source.num_tokens, 'words')}"
    )
