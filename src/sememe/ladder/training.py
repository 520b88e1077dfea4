"""One rung: a plan and a text in, a saved model and what it cost out."""

from __future__ import annotations

import math
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from sememe.ladder.pilot import measured
from sememe.ladder.plan import Plan
from sememe.ladder.results import Point, Rung
from sememe.ladder.rungs import SPECS, Spec
from sememe.ladder.text import LadderText
from sememe.progress import Reporter
from sememe.text.settings import TextSettings

_MOST_POINTS = 120
_CHECKPOINT_S = (2.0, 300.0)
_START = 0.25  # of a budget, for the skip-gram that a network begins with (told by notes.py)
# Options of a run that say nothing of the model.
_PASSING = (
    "workers", "device", "evaluate_batches", "checkpoint_minutes", "budget", "compile",
)  # fmt: skip


def planned(spec: Spec, rung: Rung, plan: Plan, text: LadderText, reporter: Reporter) -> Rung:
    """Fix the options of a rung: epochs by a pilot run, or steps by tokens."""
    options = spec.options(plan)
    if spec.name == "untrained":
        options |= {"steps": 1, "learning_rate": 1e-12}
    elif spec.is_network:
        if options.get("start_epochs"):
            options["start_epochs"], plan = _with_start(plan, options, text, reporter)
        options |= _network_extent(spec, plan, options, text)
    elif spec.command in ("word2vec", "fasttext", "glove"):
        options["epochs"] = _epochs(spec, plan, options, text, reporter)
    return replace(rung, options=options, state="training")


def trained(
    spec: Spec, rung: Rung, plan: Plan, text: LadderText, out: Path, reporter: Reporter
) -> Rung:
    """Train a rung as its options say, from its last checkpoint where there is one."""
    model = _model(spec, plan, rung.options)
    checkpoint_s = min(_CHECKPOINT_S[1], max(_CHECKPOINT_S[0], plan.budget_s / 6))
    begun_s = time.monotonic()
    if spec.is_network:
        _fit_network(spec, model, plan, text, out, reporter)
    else:
        model.fit(
            text.words, text=text.settings, out=out, resume=True, progress=reporter,
            checkpoint_minutes=checkpoint_s / 60,
        )  # fmt: skip
    elapsed_s = time.monotonic() - begun_s
    history = _points(model.history)
    counted_s = float(model.history.last().get("seconds", 0.0))
    # A skip-gram, or pairs counted, before the first step are no part of the history.
    train_s = counted_s + getattr(model, "start_s", 0.0) if counted_s > 0 else elapsed_s
    tokens = _tokens(model, spec, text, rung)
    return replace(
        rung,
        state="done",
        path=str(out),
        command=_command(spec, model, rung, plan, text, out),
        train_s=round(train_s, 3),
        tokens=tokens,
        tokens_per_s=round(tokens / train_s, 1) if train_s else 0.0,
        parameters=_parameters(model),
        megabytes=round(folder_size(out) / 1e6, 2),
        history=history,
    )


def _model(spec: Spec, plan: Plan, options: dict[str, Any]) -> Any:
    if spec.preset is None:
        return spec.model_class(**options)
    return spec.model_class(spec.preset(plan), **options)


# ---- how long -----------------------------------------------------------------------------------


def _network_extent(
    spec: Spec, plan: Plan, options: dict[str, Any], text: LadderText
) -> dict[str, Any]:
    checkpoint_s = min(_CHECKPOINT_S[1], max(_CHECKPOINT_S[0], plan.budget_s / 6))
    more: dict[str, Any] = {"checkpoint_minutes": checkpoint_s / 60}
    if plan.is_timed:
        return {**more, "budget": f"{plan.budget_s:g}s"}
    return {**more, "steps": _steps(spec, plan, options, text)}


def _steps(spec: Spec, plan: Plan, options: dict[str, Any], text: LadderText) -> int:
    """The steps that read the tokens of the budget; rows of BERT and ELMo are not all full."""
    model = _model(spec, plan, options)
    size = model.training.batch_size * model.training.length
    if spec.subwords:
        tokenizer = text.tokenizer(spec.subwords, plan.vocab_size)  # type: ignore[arg-type]
        store = text.subwords(tokenizer, plan.vocab_size)
        store.validation_share = 0.0
        model.tokenizer = tokenizer
        source = model.source(store, "train")
        size = min(size, source.num_tokens // max(1, source.batches_per_epoch))
    return max(1, round(plan.tokens / max(1, size)))


def _shared(plan: Plan, share: float) -> Plan:
    return replace(plan, budget_s=share * plan.budget_s, tokens=round(share * plan.tokens))


def _with_start(
    plan: Plan, options: dict[str, Any], text: LadderText, reporter: Reporter
) -> tuple[int, Plan]:
    """The passes of skip-gram that its share of the budget is enough for, and what they leave."""
    spec, rest = SPECS["skipgram"], _shared(plan, 1 - _START)
    own = {**spec.options(plan), "dim": options["width"]}
    if not plan.is_timed:
        return _epochs(spec, _shared(plan, _START), own, text, reporter), rest
    speed = measured(spec, _shared(plan, _START), own, text, reporter)
    epochs = speed.epochs_within(_START * plan.budget_s)
    # One pass over a large text may take more than the share; the network is to learn too.
    left_s = max(plan.budget_s / 2, plan.budget_s - epochs * speed.pass_s)
    return epochs, replace(rest, budget_s=round(left_s, 3))


def _epochs(
    spec: Spec, plan: Plan, options: dict[str, Any], text: LadderText, reporter: Reporter
) -> int:
    """The passes over the text that the budget is enough for, one at least."""
    if not plan.is_timed:
        return max(1, round(plan.tokens / text.words.num_tokens))
    return measured(spec, plan, options, text, reporter).epochs_within(plan.budget_s)


# ---- fitting ------------------------------------------------------------------------------------


def _fit_network(
    spec: Spec, model: Any, plan: Plan, text: LadderText, out: Path, reporter: Reporter
) -> None:
    if not spec.subwords:
        model.fit(text.words, text=text.settings, out=out, resume=True, progress=reporter)
        return
    tokenizer = text.tokenizer(spec.subwords, plan.vocab_size, reporter)  # type: ignore[arg-type]
    store = text.subwords(tokenizer, plan.vocab_size, reporter)
    model.fit(
        store, tokenizer=tokenizer, text=text.settings, out=out, resume=True, progress=reporter
    )


def _points(history: Any) -> list[Point]:
    """The curve of a training, in few points."""
    records = [one for one in history if "loss" in one and "seconds" in one]
    every = max(1, math.ceil(len(records) / _MOST_POINTS))
    kept = records[::every]
    if records and kept[-1] is not records[-1]:
        kept.append(records[-1])
    return [
        Point(float(one["seconds"]), int(one.get("tokens", one.get("words", 0))), one["loss"])
        for one in kept
    ]


def _tokens(model: Any, spec: Spec, text: LadderText, rung: Rung) -> int:
    """How many tokens it has read in training, all passes together."""
    if spec.is_network:
        before = text.words.num_tokens * int(rung.options.get("start_epochs", 0))
        return before + int(model.history.last().get("tokens", 0))
    return text.words.num_tokens * int(rung.options.get("epochs", 1))


def _parameters(model: Any) -> int:
    network = getattr(model, "network", None)
    if network is not None:
        return sum(parameter.numel() for parameter in network.parameters())
    named: Callable[[str], bool] = lambda name: name not in ("starts", "columns")  # noqa: E731
    return sum(int(own.size) for name, own in model.tensors.items() if named(name))


def folder_size(folder: Path) -> int:
    """The bytes of a model; that of a file, if it is one."""
    if folder.is_file():
        return folder.stat().st_size
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def forget(out: Path) -> None:
    """Remove a model, its checkpoints and what else lay beside it while it was trained."""
    beside = (".checkpoints", ".pairs", ".start", ".start.checkpoints")
    for path in (out, *(Path(f"{out}{ending}") for ending in beside)):
        shutil.rmtree(path, ignore_errors=True)


def _command(spec: Spec, model: Any, rung: Rung, plan: Plan, text: LadderText, out: Path) -> str:
    """The command that trains the same again.

    One that corrected its length by the clock had a rate that fell a little otherwise.
    """
    parts = ["sememe", "train", spec.command, str(text.train), "--out", str(out)]
    options = {name: x for name, x in rung.options.items() if name not in _PASSING}
    if spec.preset is not None:
        parts += ["--preset", spec.preset(plan)]
        options["steps"] = max((one.get("step", 0) for one in model.history), default=0)
        options["precision"] = model.precision or "auto"
    if spec.subwords:
        place = text.tokenizer_place(spec.subwords, plan.vocab_size)  # type: ignore[arg-type]
        parts += ["--tokenizer", str(place)]
        options.pop("vocab_size", None)
    parts += _text_options(text.settings, is_elmo=spec.command == "elmo")
    for name, value in options.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            parts.append(f"--{option}" if value else f"--no-{option}")
        else:
            parts += [f"--{option}", f"{value}"]
    return shlex.join(parts)


def _text_options(settings: TextSettings, *, is_elmo: bool) -> list[str]:
    """How the text is read, where the command would read it otherwise."""
    parts = []
    if settings.language != "en":
        parts += ["--language", settings.language]
    if settings.dictionary:
        parts += ["--dictionary", settings.dictionary]
    if not settings.sentences:
        parts.append("--no-sentences")
    if settings.lowercase == is_elmo:  # whose characters are read as they are written
        parts.append("--lowercase" if is_elmo else "--keep-case")
    return parts
