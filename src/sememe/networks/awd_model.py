"""ULMFiT's language model from raw text: a corpus in, an AWD-LSTM with its words out.

general = sememe.ULMFiT(preset="tiny", budget="5m").fit("texts/", out="runs/general")
target = sememe.ULMFiT(start="runs/general", epochs=5).fit("reviews/", out="runs/reviews")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.examples.word_rows import BEGIN_ID, NUM_MARKS, UNKNOWN_ID
from sememe.networks.awd_config import (
    BATCH_SIZES,
    MAX_WORDS,
    RATES,
    AWDConfig,
    ULMFiTTrainingConfig,
    awd_config,
)
from sememe.networks.installed import need_torch
from sememe.networks.model_folder import CURVE, HISTORY
from sememe.options import changed, sorted_options
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_folder, write_json
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.prompts import Suggestion, read_prompt, suggest_words
from sememe.tokens.vocabulary import Vocabulary

FORMAT = 1
WEIGHTS, WORDS = "model.safetensors", "vocabulary.safetensors"
_SIZES = ("num_layers", "num_cells", "width")


class ULMFiT:
    """ULMFiT (Howard & Ruder 2018): a language model that goes on to the text of a task.

    general = sememe.ULMFiT(preset="tiny", budget="5m").fit("texts/", out="runs/general")
    target = sememe.ULMFiT(start=general, epochs=5).fit("reviews/", out="runs/reviews")
    task = sememe.Classify(target, epochs=5, schedule="slanted").fit("train.tsv")
    """

    kind: ClassVar[str] = "ulmfit"

    def __init__(
        self, preset: str = "tiny", *, start: str | Path | ULMFiT | None = None, **options: Any
    ) -> None:
        """Take a size by name, and options of the network and the training.

        With `start`, a model or its folder, the size is that of the model, whose weights are gone
        on from.
        """
        classes = {"network": AWDConfig, "training": ULMFiTTrainingConfig}
        own = sorted_options(type(self).__name__, options, classes)
        self.start = None if start is None else _opened(start)
        if self.start is None:
            self.preset, self.config = preset, awd_config(preset, **own["network"])
        else:
            self.preset, self.config = self.start.preset, self.start.config
            for name in _SIZES:
                if own["network"].get(name, getattr(self.config, name)) != getattr(
                    self.config, name
                ):
                    raise OptionError(f"{name} is that of the model to start from: leave it out.")
            self.config = changed(self.config, type(self).__name__, own["network"])
        training = ULMFiTTrainingConfig(**own["training"])
        self.training = replace(
            training,
            learning_rate=training.learning_rate or RATES[self.preset],
            batch_size=training.batch_size or BATCH_SIZES.get(self.preset, 64),
            max_words=training.max_words or MAX_WORDS.get(self.preset, 60_000),
        )
        self.text = TextSettings()
        self.history = History()
        self.plan: dict[str, Any] = {}
        self.vocabulary = Vocabulary.from_words([])
        self.network: Any = None

    def __repr__(self) -> str:
        sizes = f"{self.config.num_layers} × {self.config.num_cells}/{self.config.width}"
        state = "untrained" if self.network is None else f"{len(self.vocabulary):,} words"
        return f"{type(self).__name__}({self.preset}: {sizes}, {state})"

    def fit(
        self,
        corpus: Any = None,
        *,
        text: TextSettings | None = None,
        store: str | Path | None = None,
        out: str | Path | None = None,
        resume: bool = False,
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> Self:
        """Learn from `corpus`: paths, token lists, documents, a TokenStore; None: the built-in one.

        text or its fields by name (language="zh") say how text is read; left out, it is read as
        that of the model to start from was. `store` is the place of the token store. With `out`
        the model is saved there, checkpoints lie beside it while it trains, and `resume` continues
        from the last one.
        """
        need_torch()
        from sememe.networks.awd_fitting import fit
        from sememe.networks.fitting import Request

        before = TextSettings() if self.start is None else self.start.text
        self.text = changed(text or before, "fit", text_options)
        request = Request(
            store=store, out=None if out is None else Path(out), resume=resume,
            reporter=as_reporter(progress),
        )  # fmt: skip
        if request.out is not None:
            check_replaceable(request.out, self.kind)
        elif resume:
            raise OptionError("To resume, `out` must say where the model was to be saved.")
        fit(self, corpus, request)
        return self

    # ---- asking ---------------------------------------------------------------------------------

    def ids_of(self, words: Sequence[str]) -> np.ndarray:
        """The ids of words as the network has them, int64; words not known are the unknown one."""
        found = [self.vocabulary.find(word) for word in words]
        return np.array([UNKNOWN_ID if one < 0 else NUM_MARKS + one for one in found], np.int64)

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The chances of each word to come after those of a sentence so far, (words,)."""
        import torch

        if self.network is None:
            raise OptionError("This model has not learned yet: call fit first.")
        ids_T = np.concatenate([[BEGIN_ID], self.ids_of(words)])
        with torch.no_grad():
            outputs = self.network.eval()(torch.from_numpy(ids_T)[:, None])
            logits_1V = self.network.next_logits(outputs.dropped_TBE[-1])
        return logits_1V[0].double().softmax(0).numpy()[NUM_MARKS:]

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The likeliest words after a text, or to complete the one that it ends in."""
        prompt = read_prompt(text, self.text)
        return suggest_words(self.vocabulary, prompt, self.distribution, count)

    # ---- the folder -----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model to `folder`, which appears whole or not at all."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        if self.network is None:
            raise OptionError("This model has nothing to save yet: call fit first.")
        from sememe.training.weights import weights_of

        weights = {name: x.cpu().numpy() for name, x in weights_of(self.network).items()}
        with write_folder(folder) as scratch:
            write_tensors(scratch / WEIGHTS, weights)
            write_tensors(scratch / WORDS, self.vocabulary.to_tensors())
            self.history.save(scratch / HISTORY)
            self._draw(scratch / CURVE)
            write_json(scratch / MANIFEST, self.manifest())

    def _draw(self, path: Path) -> None:
        """Draw the loss over the steps, once there is a line to draw."""
        from sememe.plots.curves import history

        records = [record for record in self.history if "loss" in record]
        if len(records) > 1:
            history(records, path, title=f"ULMFiT {self.preset}: loss")

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "preset": self.preset,
            "config": self.config.to_dict(),
            "words": len(self.vocabulary),
            "training": self.training.to_dict(),
            "text": self.text.to_dict(),
            "plan": self.plan,
            "figures": self.history.last(),
            "provenance": provenance(),
        }

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Open a model that was saved by `fit` or `save`."""
        need_torch()
        folder = Path(folder)
        if not folder.is_dir():
            raise ArtifactError(f"There is no model folder at {folder}.")
        manifest = read_json(folder / MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("kind") != cls.kind:
            raise ArtifactError(f"{folder} is not a model of kind {cls.kind}.")
        if manifest.get("format") != FORMAT:
            raise ArtifactError(
                f"{folder} has format {manifest.get('format')!r}; this version reads {FORMAT}."
            )
        try:
            model = cls(manifest["preset"], **manifest["training"])
            model.config = AWDConfig(**manifest["config"])
            model.text = TextSettings(**manifest["text"])
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
        model.vocabulary = Vocabulary.from_tensors(read_tensors(folder / WORDS))
        model._read_weights(folder / WEIGHTS)
        model.history = History.load(folder / HISTORY)
        model.plan = manifest.get("plan", {})
        return model

    def _read_weights(self, path: Path) -> None:
        import torch

        from sememe.networks.awd import AWDNetwork
        from sememe.training.weights import take_weights

        if self.config.vocab_size != NUM_MARKS + len(self.vocabulary):
            raise ArtifactError(f"{path.parent} has another number of words than its network.")
        kept = {name: torch.from_numpy(np.array(x)) for name, x in read_tensors(path).items()}
        self.network = AWDNetwork(self.config).eval()
        with torch.no_grad():
            take_weights(self.network, kept, str(path))

    def take_over(self, other: Self) -> None:
        """Become what another model of the same kind is, but for the options."""
        self.network, self.config, self.vocabulary = other.network, other.config, other.vocabulary
        self.history, self.plan = other.history, other.plan


def _opened(start: str | Path | ULMFiT) -> ULMFiT:
    """The model to start from."""
    model = start if isinstance(start, ULMFiT) else ULMFiT.load(start)
    if model.network is None:
        raise OptionError("The model to start from has not learned yet: call its fit first.")
    return model
