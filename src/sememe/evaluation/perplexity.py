"""How well any language model foretells a text: a model and a corpus in, figures out."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from sememe.errors import ArtifactError, OptionError
from sememe.metrics.perplexity import TextScore
from sememe.networks.interchange.layout import find_bilm, network_kind
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import kind_of_folder, manifest_in
from sememe.text.settings import TextSettings

_HOMES = {
    "elmo": ("sememe.networks.elmo_model", "ELMo"),
    "gpt": ("sememe.networks.pretraining", "GPT"),
    "ngram": ("sememe.static.ngram.model", "NGram"),
    "nnlm": ("sememe.networks.nnlm_model", "NNLM"),
    "ulmfit": ("sememe.networks.awd_model", "ULMFiT"),
}
# Why the others cannot be asked, each in a sentence.
_REASONS = {
    "bert": "a BERT sees both sides of a word and gives no chance to a text; ask it with sememe "
    "fill, or train a GPT",
    "seq2seq": "it foretells a translation, not a text; sememe translate --reference scores those",
    "transformer": "it foretells a translation, not a text; sememe translate --reference scores "
    "those",
    "task": "a fine-tuned task tells labels and foretells no words; ask the model it began with",
    "tokenizer": "a tokenizer cuts texts and foretells none",
}
_LANGUAGE_MODELS = "an n-gram model, NNLM, ELMo, ULMFiT or GPT"


def evaluate_perplexity(
    model: Any, corpus: Any, *, device: str = "auto", progress: Reporter | None = None
) -> TextScore:
    """Measure how well a language model foretells a text, for each word and sentence's end.

    `model` is a folder of an n-gram model, NNLM, ELMo (its forward half), ULMFiT or GPT, an ARPA
    file, or such a model in memory. Texts are cut into words as the model's own text was, and words
    that it does not know are one; a GPT foretells all that is written, told for each word.
    """
    opened = open_language_model(model, device) if isinstance(model, str | Path) else model
    if not hasattr(opened, "evaluate") or not hasattr(opened, "next_words"):
        raise OptionError(
            f"The model must be {_LANGUAGE_MODELS}, or its folder, not {type(model).__name__}."
        )
    score: TextScore = opened.evaluate(corpus, progress=progress or SILENT)
    return score


def open_language_model(path: str | Path, device: str = "auto") -> Any:
    """Open a language model of any kind: it has `next_words` and `evaluate`."""
    path = Path(path)
    if not path.exists():
        raise ArtifactError(f"There is no language model at {path}.")
    kind = kind_of(path)
    if kind not in _HOMES:
        what = f"is of kind {kind}" if kind else "is no model folder of ours"
        reason = f": {_REASONS[kind]}" if kind in _REASONS else f"; needed is {_LANGUAGE_MODELS}"
        raise ArtifactError(f"{path} {what}{reason}.")
    if kind == "gpt":
        return _opened_gpt(path, device)
    module, name = _HOMES[kind]
    model = getattr(import_module(module), name).load(path)
    if kind in ("elmo", "ulmfit"):
        _move(model, device)
    return model


def kind_of(path: Path) -> str | None:
    """What kind of model lies at a path, as far as its files say."""
    if path.is_file():
        return "ngram"
    own = kind_of_folder(path)
    if own != "task" and (found := network_kind(path)) is not None:
        return found
    return "elmo" if own is None and find_bilm(path) is not None else own


def _move(model: Any, device: str) -> None:
    from sememe.training.precision import choose_device

    model.network.to(choose_device(device))


class _ForeignGPT:
    """A GPT of Hugging Face's: nobody says how its text was read."""

    def __init__(self, network: Any, tokenizer: Any) -> None:
        self.network, self.tokenizer = network, tokenizer

    def evaluate(self, corpus: Any, *, progress: Reporter = SILENT) -> TextScore:
        """Measure how well it foretells a text."""
        from sememe.networks.piece_scores import score_corpus

        settings = TextSettings()
        return score_corpus(self.network, self.tokenizer, corpus, settings, progress=progress)

    def next_words(self, text: str, *, count: int = 5) -> Any:
        """The likeliest words after a text."""
        from sememe.networks.suggesting import suggest

        return suggest(self.network.eval(), self.tokenizer, text, count=count)


def _opened_gpt(path: Path, device: str) -> Any:
    from sememe.networks.installed import need_torch

    need_torch()
    if "training" in manifest_in(path):
        from sememe.networks.pretraining import GPT

        model: Any = GPT.load(path)
    else:
        from sememe.networks.interchange.huggingface import load_folder

        model = _ForeignGPT(*load_folder(path))
    _move(model, device)
    return model
