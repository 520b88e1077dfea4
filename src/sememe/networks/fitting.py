"""How BERT and GPT are fitted: a tokenizer, the text as ids, batches, the loop, a folder."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import InputError, MissingExtraError, OptionError
from sememe.networks.baseline import token_counts, unigram_figures
from sememe.networks.neighbor_baseline import neighbor_figures
from sememe.progress import SILENT, Reporter
from sememe.progress.figures import format_count
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import MANIFEST, write_folder
from sememe.storage.places import cache_dir
from sememe.text import stream
from sememe.tokens.caching import key_of
from sememe.tokens.chunks import RULES_VERSION
from sememe.tokens.subword_store import SubwordStore, open_or_build_subwords
from sememe.tokens.subwords import SubwordTokenizer
from sememe.training.distributed import Processes, joined
from sememe.training.evaluation import Validation
from sememe.training.loop import Loop
from sememe.training.run import Run

if TYPE_CHECKING:
    from sememe.networks.pretraining import Pretrained

# Counting the neighbors of so many tokens takes seconds; a larger text would have to wait.
_COUNTED_TOKENS = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of `fit` asks for beside the text."""

    tokenizer: Any = None
    store: str | Path | None = None
    out: Path | None = None
    resume: bool = False
    reporter: Reporter = SILENT


def fit(model: Pretrained, corpus: Any, request: Request) -> None:
    """Train `model` and save it where the request says so."""
    with joined() as processes:
        if not processes.is_main:  # one of them speaks
            request = replace(request, reporter=SILENT)
        _fit(model, corpus, request, processes)


def _fit(model: Pretrained, corpus: Any, request: Request, processes: Processes) -> None:
    training, reporter = model.training, request.reporter
    store = open_text(model, corpus, request)
    source = model.source(store, "train")
    held_out = _held_out(model, store, reporter)
    plan = _plan(model, store)
    if _take_finished(model, request, plan):
        return
    model.network = model.new_network()
    reporter.note(_greeting(model, store))
    num_batches = training.evaluate_batches
    run = Run(
        source=source,
        config=training,
        validation=Validation(held_out, num_batches) if held_out is not None else None,
        on_validation=_with_perplexity(model, store, held_out),
        reporter=reporter,
        keeper=_keeper(model, request),
        resume=request.resume,
        plan=plan,
        writer=_writer(training.tensorboard) if processes.is_main else None,
        processes=processes,
    )
    model.history = Loop(model.objective(), run).train()
    model.network.to("cpu")
    model.network.eval()
    model.plan = plan
    if request.out is not None and processes.is_main:
        model.save(request.out)
        Checkpoints(f"{request.out}.checkpoints").clear()


def _tokenizer(model: Pretrained, corpus: Any, request: Request) -> SubwordTokenizer:
    given = request.tokenizer
    if isinstance(given, SubwordTokenizer):
        return given
    if given is not None:
        return SubwordTokenizer.load(given)
    place = _tokenizer_place(model, corpus)
    if place is not None and place.exists():
        return SubwordTokenizer.load(place)
    trained = SubwordTokenizer.train(
        corpus, kind=model.tokenizer_kind, vocab_size=model.config.vocab_size, text=model.text,
        progress=request.reporter,
    )  # fmt: skip
    if place is not None:
        with write_folder(place) as scratch:
            trained.save(scratch)
    return trained


def _tokenizer_place(model: Pretrained, corpus: Any) -> Path | None:
    """Where the tokenizer of this text is kept for the next run, if the text can be told."""
    if isinstance(corpus, SubwordStore):
        raise OptionError("A SubwordStore needs the tokenizer that made it: give tokenizer.")
    known = stream.fingerprint(corpus, model.text)
    if known is None:
        return None
    key = key_of(known, RULES_VERSION, model.tokenizer_kind, model.config.vocab_size)
    return cache_dir() / "tokenizers" / key


def open_text(model: Pretrained, corpus: Any, request: Request) -> SubwordStore:
    """The text as ids of the tokenizer that is given, or trained on it."""
    model.tokenizer = _tokenizer(model, corpus, request)
    model.config = replace(model.config, vocab_size=model.tokenizer.vocab_size)
    store = open_or_build_subwords(
        corpus, model.tokenizer, text=model.text, path=request.store,
        workers=model.training.workers, progress=request.reporter,
    )  # fmt: skip
    store.validation_share = model.training.validation_share
    return store


def _held_out(model: Pretrained, store: SubwordStore, reporter: Reporter) -> Any:
    """The batches to validate with, or None where there are too few documents for that."""
    if not model.training.evaluate_batches or not model.training.validation_share:
        return None
    try:
        return model.source(store, "validation")
    except InputError as error:
        reporter.note(f"Training without validation. {error}")
        return None


def _plan(model: Pretrained, store: SubwordStore) -> dict[str, Any]:
    """What identifies a run: the options that shape it, and its text."""
    return {
        "network": model.config.to_dict(),
        "training": model.training.lasting(),
        "masking": asdict(model.masking),
        "content": {
            "text": store.manifest["files"]["ids.bin"]["hash"],
            "tokens": store.num_tokens,
            "tokenizer": model.tokenizer.fingerprint,
        },
    }


def _take_finished(model: Pretrained, request: Request, plan: dict[str, Any]) -> bool:
    """Open the model that a run to be resumed has finished already, where there is one."""
    out = request.out
    if not request.resume or out is None or not (out / MANIFEST).exists():
        return False
    if Checkpoints(f"{out}.checkpoints").latest() is not None:
        return False
    finished = type(model).load(out)
    if finished.plan != plan:
        return False
    request.reporter.note(f"{out} is finished already.")
    model.take_over(finished)
    return True


def _greeting(model: Pretrained, store: SubwordStore) -> str:
    num_weights = sum(parameter.numel() for parameter in model.network.parameters())
    config = model.config
    return (
        f"{type(model).__name__} {model.preset}: {config.num_layers} layers × {config.width}, "
        f"{format_count(num_weights)} weights, {config.vocab_size:,} tokens; text of "
        f"{format_count(store.num_tokens, 'tokens')}"
    )


def _with_perplexity(
    model: Pretrained, store: SubwordStore, held_out: Any
) -> Callable[[dict[str, float]], dict[str, float]]:
    """A function that puts perplexity and what counting scores beside the figures."""
    if held_out is None:
        return lambda figures: figures
    num_batches = model.training.evaluate_batches
    counts = token_counts(store, model.config.vocab_size)
    baseline = unigram_figures(counts, held_out, num_batches)
    if store.num_tokens <= _COUNTED_TOKENS:
        baseline |= neighbor_figures(store, held_out, model.tokenizer, counts, num_batches)

    def add(figures: dict[str, float]) -> dict[str, float]:
        loss = figures.get("masked_loss", figures.get("token_loss", math.nan))
        perplexity = math.exp(min(loss, 700.0))
        return {**figures, "perplexity": perplexity, **baseline}

    return add


def _keeper(model: Pretrained, request: Request) -> Checkpoints | None:
    """Where the checkpoints lie: beside the model to be."""
    if request.out is None:
        return None
    return Checkpoints(f"{request.out}.checkpoints", keep=model.training.keep)


def _writer(folder: str) -> Any:
    """TensorBoard's writer, where a folder for it is given."""
    if not folder:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("TensorBoard is not installed: pip install tensorboard.") from None
    return SummaryWriter(folder)
