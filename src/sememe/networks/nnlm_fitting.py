"""How NNLM is fitted: the text as words, a vocabulary, windows, the loop, a folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError, OptionError
from sememe.examples.batches import Split
from sememe.examples.word_rows import WordRowBatches
from sememe.networks.elmo_fitting import predicted_words
from sememe.networks.fitting import Request, keeper_of, take_finished, writer_of
from sememe.networks.nnlm import NNLMNetwork, RankingNetwork, new_network
from sememe.networks.nnlm_objective import NextWordObjective, RankingObjective, next_words
from sememe.networks.sampled_softmax import Sampler
from sememe.progress import SILENT, Reporter
from sememe.progress.figures import format_count
from sememe.storage.checkpoints import Checkpoints
from sememe.tokens.store import TokenStore, open_or_build
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.distributed import Processes, joined
from sememe.training.evaluation import Validation
from sememe.training.loop import Loop
from sememe.training.run import Run

if TYPE_CHECKING:
    from sememe.networks.nnlm_model import NNLM

# From so many words on a sample of them trains a CPU's network in less time.
_MANY_WORDS = 5_000


def fit(model: NNLM, corpus: Any, request: Request) -> None:
    """Train `model` and save it where the request says so."""
    with joined() as processes:
        if not processes.is_main:  # one of them speaks
            request = replace(request, reporter=SILENT)
        _fit(model, corpus, request, processes)


def _fit(model: NNLM, corpus: Any, request: Request, processes: Processes) -> None:
    training, reporter = model.training, request.reporter
    if model.config.num_inputs >= training.length:
        # A row inside a long sentence would have no whole window, and teach nothing.
        raise OptionError(
            f"length ({training.length}) must be above the {model.config.num_inputs} words that "
            "the network sees at once."
        )
    writer = writer_of(training.tensorboard) if processes.is_main else None
    store = open_or_build(
        corpus, model.text, min_count=training.min_count, workers=training.workers,
        path=request.store, progress=reporter,
    )  # fmt: skip
    num_words = predicted_words(store, training.min_count, training.max_words)
    counts = np.asarray(store.vocabulary.counts[:num_words], np.int64)
    model.vocabulary = Vocabulary.from_words(store.vocabulary[:num_words], counts.tolist())
    model.config = replace(model.config, num_words=num_words)
    source, plan = _source(model, store, "train"), _plan(model, store)
    validation = _validation(model, store, reporter)
    if take_finished(model, request, plan):
        return
    objective = _objective(model, store)
    reporter.note(_greeting(model, source))
    run = Run(
        source=source, config=training, validation=validation,
        on_validation=_with_perplexity(model, store, validation), reporter=reporter,
        keeper=keeper_of(model, request), resume=request.resume, plan=plan, writer=writer,
        processes=processes, shown=(_shown(model),),
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


def _source(model: NNLM, store: TokenStore, split: Split) -> WordRowBatches:
    training = model.training
    return WordRowBatches(
        store, length=training.length, batch_size=training.batch_size, seed=training.seed,
        split=split, validation_share=training.validation_share,
    )  # fmt: skip


def word_counts(store: TokenStore, num_words: int) -> np.ndarray:
    """How often each word is to be predicted, then <unk> and </s>."""
    counts = np.asarray(store.vocabulary.counts[:num_words], np.int64)
    unknown = store.num_tokens - int(counts.sum())
    return np.concatenate([counts, [unknown, len(store.sentence_ends)]])


def _objective(model: NNLM, store: TokenStore) -> NextWordObjective | RankingObjective:
    """A new network with what it is to learn."""
    training, size = model.training, model.config.num_words + 2
    network = model.network = new_network(model.config, seed=training.seed)
    counts = word_counts(store, model.config.num_words)
    if isinstance(network, RankingNetwork):
        return RankingObjective(network, np.maximum(counts[:-2], 1) ** training.noise_power)
    network.begin_with(counts)
    is_sampled = training.softmax == "sampled" or (
        training.softmax == "auto" and size >= _MANY_WORDS
    )
    has_sampler = is_sampled and training.num_samples < size
    return NextWordObjective(
        network, Sampler(counts, training.num_samples) if has_sampler else None
    )


def _validation(model: NNLM, store: TokenStore, reporter: Reporter) -> Validation | None:
    """What measures the network on held-out documents, where there are some."""
    training = model.training
    if not training.evaluate_batches or not training.validation_share:
        return None
    try:
        source = _source(model, store, "validation")
    except InputError as error:
        reporter.note(f"Training without validation. {error}")
        return None
    return Validation(source, training.evaluate_batches)


def _shown(model: NNLM) -> str:
    is_ranking = model.config.architecture == "ranking"
    return "validation_ranking_accuracy" if is_ranking else "validation_perplexity"


def _with_perplexity(
    model: NNLM, store: TokenStore, validation: Validation | None
) -> Callable[[dict[str, float]], dict[str, float]]:
    """A function that puts perplexity beside the figures, and what counts alone would reach."""
    if validation is None or model.config.architecture == "ranking":
        return lambda figures: figures
    counts = np.maximum(word_counts(store, model.config.num_words), 0.5)
    losses = -np.log(counts / counts.sum())
    batches = (validation.source.batch(step) for step in range(validation.num_batches))
    targets = [
        next_words(batch, model.config.window, model.config.num_words)[1] for batch in batches
    ]
    unigram = math.exp(float(losses[np.concatenate(targets)].mean()))

    def add(figures: dict[str, float]) -> dict[str, float]:
        perplexity = math.exp(min(figures["word_loss"], 300.0))
        return {**figures, "perplexity": perplexity, "unigram_perplexity": unigram}

    return add


def _plan(model: NNLM, store: TokenStore) -> dict[str, Any]:
    """What identifies a run: the options that shape it, and its text."""
    return {
        "network": model.config.to_dict(),
        "training": model.training.lasting(),
        "content": {
            "text": store.manifest["files"]["ids.bin"]["hash"],
            "tokens": store.num_tokens,
            "words": len(store.vocabulary),
        },
    }


def _greeting(model: NNLM, source: WordRowBatches) -> str:
    config, network = model.config, model.network
    assert isinstance(network, (NNLMNetwork, RankingNetwork))
    num_weights = sum(parameter.numel() for parameter in network.parameters())
    return (
        f"NNLM {model.preset} ({config.architecture}): {config.num_inputs} words × {config.dim}, "
        f"{config.num_hidden} hidden units, {format_count(num_weights)} weights; "
        f"{config.num_words:,} words; text of {format_count(source.num_tokens, 'words')}"
    )
