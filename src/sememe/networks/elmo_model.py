"""ELMo from raw text: a corpus in, a network with its words out; `fit`, `embed`, `save`, `load`.

model = sememe.ELMo(preset="tiny", budget="5m").fit("texts/", out="runs/elmo")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from sememe.errors import ArtifactError, InputError, OptionError
from sememe.examples.word_rows import NUM_MARKS
from sememe.networks.elmo_config import (
    BATCH_SIZES,
    MAX_WORDS,
    RATES,
    CasedTextSettings,
    ELMoConfig,
    ELMoTrainingConfig,
    elmo_config,
)
from sememe.networks.installed import need_torch
from sememe.networks.interchange.layout import find_bilm
from sememe.networks.model_folder import CURVE, HISTORY
from sememe.options import changed, sorted_options
from sememe.progress import SILENT, History, Reporter
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_folder, write_json
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from sememe.networks.elmo_reading import Opened
    from sememe.tokens.prompts import Suggestion

FORMAT = 1
WEIGHTS, WORDS = "model.safetensors", "vocabulary.safetensors"


class ELMo:
    """ELMo (Peters et al. 2018): the next word and the word before, by what words look like.

    model = sememe.ELMo(preset="tiny", budget="5m").fit("texts/", out="runs/elmo")
    """

    kind: ClassVar[str] = "elmo"

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a size by name, and options of the network and the training."""
        classes = {"network": ELMoConfig, "training": ELMoTrainingConfig}
        own = sorted_options(type(self).__name__, options, classes)
        self.preset = preset
        self.config = elmo_config(preset, **own["network"])
        training = ELMoTrainingConfig(**own["training"])
        self.training = replace(
            training,
            learning_rate=training.learning_rate or RATES[preset],
            batch_size=training.batch_size or BATCH_SIZES.get(preset, 128),
            max_words=training.max_words or MAX_WORDS.get(preset, 100_000),
        )
        self.text: TextSettings = CasedTextSettings()
        self.history = History()
        self.plan: dict[str, Any] = {}
        self.vocabulary = Vocabulary.from_words([])  # the words that are predicted
        self.network: Any = None
        self._opened: Any = None

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

        text or its fields by name (language="zh") say how text is read; words keep their case
        unless they say otherwise. `store` is the place of the token store. With `out` the model is
        saved there, checkpoints lie beside it while it trains, and `resume` continues from the
        last one.
        """
        need_torch()
        from sememe.networks.elmo_fitting import fit
        from sememe.networks.fitting import Request

        self.text = changed(text or CasedTextSettings(), "fit", text_options)
        if isinstance(progress, bool) or progress is None:
            progress = Reporter() if progress else SILENT
        request = Request(
            store=store, out=None if out is None else Path(out), resume=resume, reporter=progress
        )
        if request.out is not None:
            check_replaceable(request.out, self.kind)
        elif resume:
            raise OptionError("To resume, `out` must say where the model was to be saved.")
        fit(self, corpus, request)
        return self

    # ---- use ------------------------------------------------------------------------------

    @property
    def opened(self) -> Opened:
        """The network with what it needs to take words."""
        from sememe.networks.elmo_reading import Opened
        from sememe.networks.word_forms import forms_of

        if self.network is None:
            raise OptionError("This model has not learned yet: call fit first.")
        if self._opened is None or self._opened.network is not self.network:
            self._opened = Opened(self.network, forms_of(self.vocabulary, self.config), self.text)
        return self._opened

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """All layers of sentences of words, (layers + 1, words, 2 × width) each."""
        from sememe.networks.elmo_reading import read_layers

        found = read_layers(self.opened, _checked(sentences))
        return [np.stack([layer.cpu().numpy() for layer in own]) for own in found]

    def embed(
        self, sentences: Sequence[Sequence[str]] | Sequence[str], *, layers: Any = "last"
    ) -> list[np.ndarray]:
        """A vector for each word of each sentence, in its context, (words, 2 × width) each.

        A sentence is a list of words, or text, which is cut as the model's own was. `layers` is a
        number (0: words by themselves), first, last, second-to-last or sum-all.
        """
        from sememe.networks.elmo_reading import embed_sentences, embed_text_words

        if sentences and all(isinstance(one, str) for one in sentences):
            texts: Any = list(sentences)
            return [own.vectors_WD for own in embed_text_words(self.opened, texts, layers)]
        return embed_sentences(self.opened, _checked(sentences), layers)

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The likeliest words to come after a text, or to complete the one that it ends in."""
        from sememe.networks.elmo_reading import next_chances
        from sememe.tokens.prompts import read_prompt, suggest_words

        opened = self.opened
        if not self.config.has_softmax:
            raise OptionError("These weights came without their softmax: they predict no words.")
        return suggest_words(
            self.vocabulary,
            read_prompt(text, self.text),
            lambda words: next_chances(opened, words)[NUM_MARKS:],
            count,
        )

    # ---- the folder -----------------------------------------------------------------------

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
            history(records, path, title=f"{type(self).__name__} {self.preset}: loss")

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
    def load(cls, folder: str | Path, *, vocabulary: str | Path | None = None) -> Self:
        """Open a model that was saved by `fit` or `save`, or the files of a released ELMo.

        Of those `folder` is the folder or the .hdf5 file, with the options beside it; `vocabulary`
        lists the words that they predict, where the file holds a softmax.
        """
        need_torch()
        folder = Path(folder)
        if (found := find_bilm(folder)) is not None:
            return cls._from_bilm(*found, None if vocabulary is None else Path(vocabulary))
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
            model.config = ELMoConfig(**manifest["config"])
            model.text = CasedTextSettings(**manifest["text"])
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
        model.vocabulary = Vocabulary.from_tensors(read_tensors(folder / WORDS))
        model._read_weights(folder)
        model.history = History.load(folder / HISTORY)
        model.plan = manifest.get("plan", {})
        return model

    @classmethod
    def _from_bilm(cls, options: Path, weights: Path, vocabulary: Path | None) -> Self:
        from sememe.networks.interchange.bilm import read_bilm

        model = cls("original")
        model.network, model.vocabulary = read_bilm(options, weights, vocabulary)
        model.config = model.network.config
        # They were trained on words with spaces between them, punctuation among them.
        model.text = CasedTextSettings(language="none")
        return model

    def _read_weights(self, folder: Path) -> None:
        import torch

        from sememe.networks.elmo import ELMoNetwork
        from sememe.training.weights import take_weights

        kept = read_tensors(folder / WEIGHTS)
        self.network = ELMoNetwork(self.config).eval()
        with torch.no_grad():
            own = {name: torch.from_numpy(np.array(x)) for name, x in kept.items()}
            take_weights(self.network, own, str(folder / WEIGHTS))

    def take_over(self, other: Self) -> None:
        """Become what another model of the same kind is, but for the options."""
        self.network, self.config, self.vocabulary = other.network, other.config, other.vocabulary
        self.history, self.plan = other.history, other.plan


def _checked(sentences: Any) -> list[list[str]]:
    """Sentences as lists of words; one that is text among others is refused."""
    if isinstance(sentences, str):
        raise InputError("Give a list of sentences, not one text.")
    found = []
    for index, words in enumerate(sentences):
        if isinstance(words, str) or not all(isinstance(word, str) for word in words):
            raise InputError(f"Sentence {index + 1} is no list of words, as the others are.")
        found.append(list(words))
    return found
