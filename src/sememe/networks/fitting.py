"""How a language model is fitted: the text as ids, batches, the loop, a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sememe.examples.batches import Split
from sememe.progress import SILENT, Reporter
from sememe.training.distributed import Processes
from sememe.training.loop import Loop
from sememe.training.objective import Source
from sememe.training.places import finished_before, keeper_of, save_finished
from sememe.training.precision import TYPES
from sememe.training.run import Run, started

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
    with started(request, model.training) as (own, processes):
        _fit(model, corpus, own, processes)


def _fit(model: LanguageModel, corpus: Any, request: Request, processes: Processes) -> None:
    training, reporter = model.training, request.reporter
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
        processes=processes,
    )
    loop = Loop(objective, run)
    model.history, model.precision = loop.train(), loop.precision
    model.network.to("cpu").eval()
    objective.precision = TYPES["fp32"]  # what it says now is what it says once loaded
    model.plan = plan
    save_finished(model, request, processes)
