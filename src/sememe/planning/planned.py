"""Trainings with a plan: a size is chosen, the training runs, planned and actual are compared.

A plan that was made is kept in the cache under the options and the text of its training, which
finds it there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sememe.errors import ArtifactError
from sememe.localization import say
from sememe.machine import cache_dir, key_of
from sememe.planning.calibration import this_machine
from sememe.planning.losses import Expected
from sememe.planning.plan import PlannedSize, plan, sibling
from sememe.planning.watch import Watch
from sememe.progress import format_count, format_duration
from sememe.storage.folder import read_json, write_json
from sememe.text import stream
from sememe.text.settings import TextSettings

# Options of a call that a plan does not depend on.
_PASSING = ("checkpoint_minutes", "keep", "tensorboard", "seed")


def fit_planned(
    model: Any,
    data: tuple[Any, ...],
    *,
    is_auto: bool,
    quiet: bool = False,
    fit: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    """Call model.fit(*data, **options), and return the model; with `is_auto` a plan sizes it first.

    `fit` is called with the model and these instead, if it is given: it trains on a cluster.
    If there is a plan of this training, the model's `forecast` says what was expected of it and
    what it took.
    """
    watch, text = Watch(quiet=quiet), options.get("text")
    if is_auto:
        model, planned = _of_best_size(model, data, watch, options)
    else:
        planned = {} if options.get("resume") else kept(key_of_training(model, data, text))
    if planned:
        model.forecast = {"expected": expected_of(planned), "actual": watch.actual}
    (fit or type(model).fit)(model, *data, **{"progress": watch} | options)
    return model


def _of_best_size(
    model: Any, data: tuple[Any, ...], reporter: Watch, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The model in the size with the lowest expected loss that fits, and what is expected of it."""
    names = ("text", "tokenizer", "columns", "skip_bad", "encoding", "dev")
    own = {name: options[name] for name in names if options.get(name) is not None}
    found = plan(model, *data, presets=list(model.presets), progress=reporter, **own)
    best, *others = [found.best, *found.ranked[1:]]
    reporter.note(f"The plan takes {best.preset}: {told(best)}.")
    if others:
        reporter.note(f"The second best is {others[0].preset}: {told(others[0])}.")
    return sibling(model, best.preset), best.to_dict()


def told(size: PlannedSize) -> str:
    """What a size needs and reaches, in words."""
    parts = [f"{size.steps:,} steps" if size.steps else "", format_duration(size.seconds or 0.0)]
    parts.append(format_count(size.memory_bytes or 0, "B"))
    if size.loss is not None:
        parts.append(f"validation loss {written(size.loss)}")
    return ", ".join(filter(None, parts))


def written(loss: Expected) -> str:
    """An expected loss with its range; one that is uncertain is only a range."""
    if loss.is_certain:
        return f"{loss.loss:.2f} ({loss.low:.2f}–{loss.high:.2f})"
    return f"{loss.low:.1f}–{loss.high:.1f}?"


def key_of_training(model: Any, data: tuple[Any, ...], text: TextSettings | None) -> str:
    """What a plan and its training share: the model's options, its text and the machine."""
    own = {name: value for name, value in model.options().items() if name not in _PASSING}
    settings = text or model.text
    parts = data[0] if data and isinstance(data[0], dict) else dict(enumerate(data))
    known = {
        str(name): None if own is None and name else stream.fingerprint(own, settings)
        for name, own in parts.items()
    }
    options = {name: repr(value) for name, value in own.items()}
    return key_of(options, model.kind, known, this_machine())


def keep(key: str, size: PlannedSize) -> None:
    """Keep the plan of a training."""
    place = _place(key)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_json(place, size.to_dict())


def kept(key: str) -> dict[str, Any]:
    """The plan that was made of a training; empty if there is none."""
    try:
        found = read_json(_place(key)) if _place(key).exists() else {}
    except (ArtifactError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def _place(key: str) -> Path:
    return cache_dir() / "plans" / "made" / f"{key}.json"


def expected_of(planned: dict[str, Any]) -> dict[str, Any]:
    """What the saved model says about its plan."""
    names = ("steps", "seconds", "memory_bytes", "loss", "measured")
    return {name: planned[name] for name in names if planned.get(name) is not None}


def compared(model: Any) -> str:
    """Planned and actual in one line; empty without both."""
    forecast = model.told_forecast().get("forecast", {})
    expected, actual = forecast.get("expected", {}), forecast.get("actual", {})
    parts = []
    if expected.get("seconds") and actual.get("seconds"):
        parts.append(
            say(
                "time {planned} and {actual} ({change:+.0%})",
                planned=format_duration(expected["seconds"]),
                actual=format_duration(actual["seconds"]),
                change=actual["seconds"] / expected["seconds"] - 1,
            )
        )
    if expected.get("memory_bytes") and actual.get("memory_bytes"):
        parts.append(
            say(
                "memory {planned} and {actual} ({change:+.0%})",
                planned=format_count(expected["memory_bytes"], "B"),
                actual=format_count(actual["memory_bytes"], "B"),
                change=actual["memory_bytes"] / expected["memory_bytes"] - 1,
            )
        )
    loss, found = expected.get("loss"), actual.get("validation_loss")
    if loss and found is not None:
        if "loss" in loss:
            parts.append(
                say(
                    "validation loss {planned:.2f} and {actual:.2f} ({change:+.0%})",
                    planned=loss["loss"], actual=found, change=found / loss["loss"] - 1,
                )
            )  # fmt: skip
        else:
            parts.append(
                say(
                    "validation loss between {low:.1f} and {high:.1f}, and {actual:.2f}",
                    low=loss["low"], high=loss["high"], actual=found,
                )
            )  # fmt: skip
    return say("Planned and actual: {parts}.", parts=say("; ").join(parts)) if parts else ""
