"""How ELMo is fitted: the text as words, a vocabulary, batches, the loop, a folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sememe.errors import InputError
from sememe.examples.batches import Split
from sememe.examples.word_rows import NUM_MARKS, WordRowBatches
from sememe.networks.elmo import ELMoNetwork
from sememe.networks.elmo_objective import BidirectionalObjective
from sememe.networks.fitting import Request, keeper_of, take_finished, writer_of
from sememe.networks.sampled_softmax import Sampler
from sememe.networks.word_forms import forms_of
from sememe.progress import SILENT
from sememe.progress.figures import format_count
from sememe.storage.checkpoints import Checkpoints
from sememe.tokens.store import TokenStore, open_or_build
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.distributed import Processes, joined
from sememe.training.evaluation import Validation
from sememe.training.loop import Loop
from sememe.training.run import Run

if TYPE_CHECKING:
    from sememe.networks.elmo_model import ELMo

# From so many words on the softmax of a step would take longer than its LSTMs.
_MANY_WORDS = 100_000


def fit(model: ELMo, corpus: Any, request: Request) -> None:
    """Train `model` and save it where the request says so."""
    with joined() as processes:
        if not processes.is_main:  # one of them speaks
            request = replace(request, reporter=SILENT)
        _fit(model, corpus, request, processes)


def _fit(model: ELMo, corpus: Any, request: Request, processes: Processes) -> None:
    training, reporter = model.training, request.reporter
    writer = writer_of(training.tensorboard) if processes.is_main else None
    store = _open(model, corpus, request)
    num_words = predicted_words(store, training.min_count, training.max_words)
    model.vocabulary = copied(store.vocabulary.cut(num_words))
    model.config = replace(model.config, vocab_size=NUM_MARKS + num_words)
    source = source_of(model, store, "train")
    validation = validation_of(model, store, reporter)
    plan = _plan(model, store)
    if take_finished(model, request, plan):
        return
    model.network = ELMoNetwork(model.config, seed=training.seed)
    objective = objective_of(model, store)
    reporter.note(_greeting(model, source, objective))
    run = Run(
        source=source, config=training, validation=validation,
        on_validation=with_perplexity(store, num_words, validation), reporter=reporter,
        keeper=keeper_of(model, request), resume=request.resume, plan=plan, writer=writer,
        processes=processes, shown=("validation_perplexity",),
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


def _open(model: ELMo, corpus: Any, request: Request) -> TokenStore:
    """The text as words: every word of it has its spelling, whether it is predicted or not."""
    min_count = model.training.min_count if isinstance(corpus, TokenStore) else 1
    return open_or_build(
        corpus, model.text, min_count=min_count, workers=model.training.workers,
        path=request.store, progress=request.reporter,
    )  # fmt: skip


def predicted_words(store: TokenStore, min_count: int, max_words: int) -> int:
    """How many of the store's words, from the most frequent on, are predicted."""
    counts = np.asarray(store.vocabulary.counts)
    num_words = min(int(np.searchsorted(-counts, -min_count, "right")), max_words)
    if not num_words:
        highest = int(counts[0]) if len(counts) else 0
        raise InputError(
            f"No word occurs {min_count:,} times (the most frequent one {highest:,} times): lower "
            "min_count or add text."
        )
    return num_words


def copied(vocabulary: Vocabulary) -> Vocabulary:
    """The same words in memory: a store of what was read once goes when it is no more used."""
    return Vocabulary.from_words(list(vocabulary), np.asarray(vocabulary.counts).tolist())


def source_of(model: Any, store: TokenStore, split: Split) -> WordRowBatches:
    """The batches of a split."""
    training = model.training
    return WordRowBatches(
        store, length=training.length, batch_size=training.batch_size, seed=training.seed,
        split=split, validation_share=training.validation_share,
    )  # fmt: skip


def objective_of(model: ELMo, store: TokenStore) -> BidirectionalObjective:
    """The network with what it is to learn."""
    training, size = model.training, model.config.vocab_size
    is_sampled = training.softmax == "sampled" or (
        training.softmax == "auto" and size >= _MANY_WORDS
    )
    sampler = None
    if is_sampled and training.num_samples < size:
        sampler = Sampler(word_counts(store, size - NUM_MARKS), training.num_samples)
    return BidirectionalObjective(model.network, forms_of(store.vocabulary, model.config), sampler)


def word_counts(store: TokenStore, num_words: int) -> np.ndarray:
    """How often each mark and predicted word occurs."""
    counts = np.asarray(store.vocabulary.counts, np.int64)
    num_sentences = len(store.sentence_ends)
    unknown = store.num_tokens - int(counts[:num_words].sum())
    return np.concatenate([[num_sentences, num_sentences, unknown], counts[:num_words]])


def validation_of(model: Any, store: TokenStore, reporter: Any) -> Validation | None:
    """What measures the network on held-out documents, where there are some."""
    training = model.training
    if not training.evaluate_batches or not training.validation_share:
        return None
    try:
        source = source_of(model, store, "validation")
    except InputError as error:
        reporter.note(f"Training without validation. {error}")
        return None
    return Validation(source, training.evaluate_batches)


def unigram_perplexity(store: TokenStore, num_words: int, validation: Validation) -> float:
    """What foretelling words by their counts alone reaches on held-out rows."""
    # Forwards no sentence begins, so its mark is none of the words to expect.
    counts = word_counts(store, num_words)[1:] + 1
    losses = np.concatenate([[0.0], -np.log(counts / counts.sum())])
    sums, total = 0.0, 0
    for step in range(validation.num_batches):
        batch = validation.source.batch(step)
        is_own_BT = np.arange(batch.ids_BT.shape[1]) < batch.lengths_B[:, None]
        own = batch.ids_BT[:, 1:][is_own_BT[:, 1:]]
        own = np.where(own < len(losses), own, 2)[own > 0]
        sums, total = sums + float(losses[own].sum()), total + len(own)
    return math.exp(sums / max(total, 1))


def with_perplexity(
    store: TokenStore, num_words: int, validation: Validation | None
) -> Callable[[dict[str, float]], dict[str, float]]:
    """A function that puts perplexities beside the figures, and what counts alone would reach."""
    if validation is None:
        return lambda figures: figures
    unigram = unigram_perplexity(store, num_words, validation)

    def add(figures: dict[str, float]) -> dict[str, float]:
        forward, backward = (_perplexity(figures[f"{name}_loss"]) for name in _DIRECTIONS)
        return {
            **figures, "forward_perplexity": forward, "backward_perplexity": backward,
            "perplexity": math.sqrt(forward * backward), "unigram_perplexity": unigram,
        }  # fmt: skip

    return add


_DIRECTIONS = ("forward", "backward")


def _perplexity(loss: float) -> float:
    return math.exp(min(loss, 300.0))


def _plan(model: ELMo, store: TokenStore) -> dict[str, Any]:
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


def _greeting(model: ELMo, source: WordRowBatches, objective: BidirectionalObjective) -> str:
    num_weights = sum(parameter.numel() for parameter in model.network.parameters())
    config, sampler = model.config, objective.sampler
    softmax = "all of them" if sampler is None else f"{model.training.num_samples:,} at a time"
    return (
        f"ELMo {model.preset}: {config.num_layers} layers each way × {config.num_cells}/"
        f"{config.width}, words by {config.input}, {format_count(num_weights)} weights; "
        f"{config.vocab_size:,} words to predict, {softmax}; text of "
        f"{format_count(source.num_tokens, 'words')}"
    )
