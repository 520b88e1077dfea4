"""The model card: the README.md of a saved folder, written from its sememe.json.

The sentences are in card.md, a template. A card holds nothing that two equal runs would not share,
such as times: a resumed training ends with the same card.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sememe.contract import KINDS
from sememe.progress import (
    FEW,
    baseline_remark,
    format_count,
    format_interval,
    shown,
)
from sememe.storage.folder import MANIFEST, read_json, write_card, write_json
from sememe.text.settings import BUILT_IN

_CONFIG, _WEIGHTS, _HEAD = "config.json", "model.safetensors", "head.safetensors"
_MODULES = "modules.json"  # of sentence-transformers
# What Hugging Face calls a model that has a capability; the first one that fits counts.
_PIPELINES = {
    "translate": "translation", "predict": "text-classification", "fill": "fill-mask",
    "generate": "text-generation", "embed": "feature-extraction",
}  # fmt: skip
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|])")
_PER_PARAMETER = 20  # tokens that compute-optimal pretraining reads (Hoffmann et al. 2022)
_SMALL_CORPUS = 10_000_000  # words; published vectors come from billions
# Metrics that two equal runs do not share, and those that say nothing about quality.
_PASSING = ("seconds", "_per_s", "learning_rate", "gradient_norm", "discounts")
# Options that do not affect the model, and may change when a run is resumed.
_OF_THE_RUN = (
    "workers", "device", "deterministic", "memory", "compile", "checkpoint_minutes", "keep",
    "tensorboard",
)  # fmt: skip


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write sememe.json and the model card of a folder that the caller makes atomic."""
    write_json(folder / MANIFEST, manifest)
    write_card(folder, card_of(folder, manifest))


def part_of(manifest: Any, name: str) -> dict[str, Any]:
    """An object in a manifest; empty if there is none."""
    own = manifest.get(name) if isinstance(manifest, dict) else None
    return own if isinstance(own, dict) else {}


def card_of(folder: Path, manifest: dict[str, Any]) -> str:
    """The text of the card of a folder whose other files are written already."""
    from jinja2 import Environment, TemplateError

    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "plain": _plain, "code": _code, "cell": _cell, "count": _count, "short": format_count,
        "yaml": _yaml,
    }  # fmt: skip
    template = environment.from_string(Path(__file__).with_suffix(".md").read_text("utf-8"))
    # As it will be read back: dicts and lists alone.
    known = json.loads(json.dumps(manifest, default=str))
    try:
        text = template.render(**facts_of(folder, known))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, TemplateError):
        # What an earlier, damaged sememe.json said must not keep a model from being saved.
        text = template.render(**facts_of(folder, {"kind": known.get("kind")}))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def facts_of(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """What the template says about a model, from its manifest and the files beside it."""
    name = str(manifest.get("task") or manifest.get("kind"))
    kind = KINDS.get(name)
    can = set(kind.capabilities if kind else ())
    untrained = [str(one) for one in manifest.get("untrained") or ()]
    can -= {"fill"} if "masked head" in untrained else set()
    data, text = part_of(manifest, "data"), part_of(manifest, "text")
    metrics = {
        key: value
        for key, value in {**part_of(manifest, "metrics")}.items()
        if not any(one in key for one in _PASSING) and isinstance(value, int | float)
    }
    parameters = manifest.get("parameters") or _num_parameters(folder, manifest)
    options = {
        **part_of(manifest, "config"), **part_of(manifest, "network"),
        **part_of(manifest, "training"), **part_of(manifest, "options"),
    }  # fmt: skip
    is_task = "task" in manifest
    return {
        "kind": name,
        "title": _title(kind.title if kind else name),
        "about": (kind.cls().__doc__ or "").partition("\n")[0] if kind else "",
        "can": can,
        "example": _example(kind, part_of(manifest, "columns")),
        "pipeline": _pipeline(name, can),
        "languages": _languages(manifest, text),
        "version": part_of(part_of(manifest, "provenance"), "versions").get("sememe"),
        "parameters": parameters,
        "manifest": manifest,
        "data": data,
        "learned": part_of(manifest, "learned"),
        "base": part_of(data, "base"),
        "text": text,
        "options": {key: own for key, own in options.items() if key not in _OF_THE_RUN},
        "metrics": metrics,
        "scores": _scores(manifest, metrics),
        "trials": [
            {"options": part_of(one, "options"), "value": _main(part_of(one, "scores"))}
            for one in manifest.get("trials") or ()
        ],
        "is_task": is_task,
        "seen": metrics.get("tokens", 0),
        "is_short": not is_task and 0 < metrics.get("tokens", 0) < _PER_PARAMETER * parameters,
        "per_parameter": _PER_PARAMETER,
        "is_small": "rows" not in data and 0 < (data.get("tokens") or 0) < _SMALL_CORPUS,
        "is_built_in": any(BUILT_IN in str(name) for name in data.get("train") or ()),
        "is_beaten": _is_beaten(metrics),
        "has_seen_dev": _has_seen_dev(part_of(part_of(manifest, "plan"), "content")),
        "untrained": untrained,
        "opens": _transformers_class(folder),
        "is_encoder": (folder / _MODULES).is_file(),
        "gensim": _gensim_format(manifest),
    }


def _title(name: str) -> str:
    """A heading: names such as fastText keep their case."""
    return re.sub(r"^[a-z]{2,}(?![A-Za-z0-9])", lambda word: word[0].capitalize(), name)


def _plain(text: Any) -> str:
    """A value in Markdown: control characters and markup escaped, on one line."""
    return _MARKDOWN.sub(r"\\\1", " ".join(shown(_count(text)).split()))


def _code(text: Any) -> str:
    """A name as inline code."""
    return "`" + " ".join(shown(str(text)).replace("`", "'").split()) + "`"


def _cell(value: Any) -> str:
    """A value in a table: inline code, or a dash for none."""
    return "–" if value in (None, "") else _code(value).replace("|", "\\|")


def _count(value: Any) -> str:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_number else str(value)


def _yaml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)  # JSON is YAML


def _example(kind: Any, columns: dict[str, Any]) -> str:
    """The argument of `predict`."""
    if kind is not None and kind.example:
        return str(kind.example)
    return '[("A text.", "Another text.")]' if "second" in columns else '["A text."]'


def _pipeline(name: str, can: set[str]) -> str | None:
    own = KINDS[name].pipeline if name in KINDS else ""
    return own or next((tag for capability, tag in _PIPELINES.items() if capability in can), None)


def _languages(manifest: dict[str, Any], text: dict[str, Any]) -> list[str]:
    """The codes of the languages, as Hugging Face knows them."""
    base = part_of(part_of(manifest, "data"), "base")
    named = list(part_of(manifest, "languages")) or [
        str(text.get("language") or base.get("language") or "")
    ]
    codes = (name.replace("_", "-").split("-")[0].lower() for name in named)
    return [code for code in dict.fromkeys(codes) if re.fullmatch("(?!und)[a-z]{2,3}", code)]


def _scores(manifest: dict[str, Any], metrics: dict[str, float]) -> dict[str, Any]:
    """The scores on held-out rows by name, how many rows, and what to say about them."""
    scores = part_of(manifest, "scores")
    found = part_of(scores, "metrics") or {
        key: own for key, own in scores.items() if isinstance(own, float)
    }
    if not found:
        found = {
            key.removeprefix("validation_"): own
            for key, own in metrics.items()
            if "validation_" in key and key != "validation_words"
        }
    if not found and "f1" in metrics:  # a classifier's validation rows
        found = {key: metrics[key] for key in ("precision", "recall", "f1") if key in metrics}
    told = {
        key.replace("_", " "): "–" if value is None else f"{value:.4g}"
        for key, value in found.items()
        if value is None or isinstance(value, int | float)
    }
    majority = scores.get("majority")
    beside = [one for one in scores.get("baselines") or () if isinstance(one.get("score"), float)]
    return {
        "interval": format_interval(scores.get("interval")) if scores.get("interval") else "",
        "seeds": scores.get("seeds") or "",
        "beside": {
            one["name"]: f"{one['score']:.4g} ({format_interval(one['interval'])})"
            for one in beside
        },
        "table": told,
        "main": scores.get("main_metric"),
        "num_rows": scores.get("num_rows") or scores.get("pairs") or metrics.get("rows"),
        "few": FEW,
        "baseline": baseline_remark(
            float(found.get("accuracy") or 0.0), majority, str(scores.get("only") or "")
        ),
        "signatures": [own for key, own in scores.items() if "signature" in key],
    }


def _main(scores: dict[str, Any]) -> str:
    value = part_of(scores, "metrics").get(scores.get("main_metric", ""))
    return f"{value:.4g}" if isinstance(value, int | float) else "–"


def _is_beaten(metrics: dict[str, float]) -> bool:
    """Whether the frequencies of words alone predict held-out text as well as the model does."""
    pairs = (
        ("perplexity", "unigram_perplexity"), ("masked_loss", "unigram_loss"),
        ("token_loss", "unigram_loss"),
    )  # fmt: skip
    found = ((metrics.get(f"validation_{a}"), metrics.get(f"validation_{b}")) for a, b in pairs)
    return any(own is not None and other is not None and own >= other for own, other in found)


def _has_seen_dev(content: dict[str, Any]) -> bool:
    return content.get("train") is not None and content.get("train") == content.get("dev")


def _num_parameters(folder: Path, manifest: dict[str, Any]) -> int:
    """The weights of a network; 0 where the tensors are of something else, such as words."""
    is_network = (folder / _WEIGHTS).is_file() and not ("words" in manifest and "dim" in manifest)
    from sememe.storage.tensors import num_weights

    return num_weights(folder / _WEIGHTS) if is_network else 0


def _transformers_class(folder: Path) -> str:
    """The class of `transformers` that opens the folder as what it is; empty if none does."""
    if not (folder / _CONFIG).is_file() or (folder / _HEAD).exists():
        return ""
    names = read_json(folder / _CONFIG).get("architectures") or [""]
    return str(names[0])


def _gensim_format(manifest: dict[str, Any]) -> str:
    """The format of `sememe convert` for gensim, if the folder has one vector per word."""
    if "labels" in manifest or not (manifest.get("words") and manifest.get("dim")):
        return ""
    has_ngrams = part_of(manifest, "subwords").get("bucket")
    is_floret = part_of(manifest, "config").get("hash_count")
    return "fasttext" if has_ngrams and not is_floret else "word2vec-binary"
