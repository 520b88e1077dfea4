"""How a language model is fitted: the text as ids, batches, the loop, a folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sememe.errors import MissingExtraError
from sememe.examples.batches import Split
from sememe.progress import SILENT, Reporter
from sememe.training.distributed import Processes, joined
from sememe.training.loop import Loop
from sememe.training.objective import Source
from sememe.training.places import finished_before, keeper_of, save_finished
from sememe.training.precision import TYPES
from sememe.training.run import Run

if TYPE_CHECKING:
    from sememe.networks.language_model import LanguageModel

Figures = dict[str, float]


class Text(Protocol):
    """A text as ids, which a model has opened: its batches, and what tells it from others."""

    @property
    def content(self) -> dict[str, Any]:
        """What tells this text from others."""

    def source(self, model: Any, split: Split) -> Source:
        """The batches of a split."""

    def validation(self, model: Any, reporter: Reporter) -> Any:
        """What measures a network on held-out text; None where there is none."""

    def described(self, source: Any) -> str:
        """How much text there is, in words."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a call of `fit` asks for beside the text."""

    tokenizer: Any = None
    store: str | Path | None = None
    out: Path | None = None
    resume: bool = False
    reporter: Reporter = SILENT


def fit(model: LanguageModel, corpus: Any, request: Request) -> None:
    """Train `model` and save it where the request says so."""
    with joined() as processes:
        if not processes.is_main:  # one of them speaks
            request = replace(request, reporter=SILENT)
        _fit(model, corpus, request, processes)


def _fit(model: LanguageModel, corpus: Any, request: Request, processes: Processes) -> None:
    training, reporter = model.training, request.reporter
    writer = _writer_of(training.tensorboard) if processes.is_main else None
    text = model.open_text(corpus, request)
    source = text.source(model, "train")
    validation = text.validation(model, reporter)
    plan = model.plan_of(text)
    if (finished := finished_before(model, request, plan)) is not None:
        model.take_over(finished)
        return
    model.network = model.new_network()
    objective = model.begin(text, source, reporter)
    reporter.note(model.greeting())
    reporter.note(text.described(source))
    run = Run(
        source=source,
        config=training,
        validation=validation,
        on_validation=model.add_figures(text, validation),
        shown=(model.shown(),),
        rate_groups=model.rate_groups(),
        reporter=reporter,
        keeper=keeper_of(request, training.keep),
        resume=request.resume,
        plan=plan,
        writer=writer,
        processes=processes,
    )
    try:
        model.history = Loop(objective, run).train()
    finally:
        if writer is not None:
            writer.close()
    model.network.to("cpu").eval()
    objective.precision = TYPES["fp32"]  # what it says now is what it says once loaded
    model.plan = plan
    save_finished(model, request, processes)


def _writer_of(folder: str) -> Any:
    """TensorBoard's writer, where a folder for it is given."""
    if not folder:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("TensorBoard is not installed: pip install tensorboard.") from None
    return SummaryWriter(folder)
