"""NNLM from raw text: a corpus in, a language model with its word vectors out.

model = sememe.NNLM(preset="tiny", budget="2m").fit("texts/", out="runs/nnlm")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.metrics.perplexity import TextScore
from sememe.networks.installed import need_torch
from sememe.networks.model_folder import CURVE, HISTORY
from sememe.networks.nnlm_config import (
    BATCH_SIZES,
    MAX_WORDS,
    RATES,
    NNLMConfig,
    NNLMTrainingConfig,
    nnlm_config,
)
from sememe.options import changed, sorted_options
from sememe.progress import SILENT, History, Reporter, as_reporter
from sememe.storage.folder import MANIFEST, check_replaceable, read_json, write_folder, write_json
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.text.settings import TextSettings
from sememe.tokens.prompts import Suggestion, cut_sentences, read_prompt, suggest_words
from sememe.tokens.store import open_or_build
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors import WordVectors

FORMAT = 1
TENSORS = "model.safetensors"
VECTORS, MARKS, TABLE = "vectors", "marks", "words.weight"


class NNLM:
    """Neural language model over a window of words (Bengio et al. 2003), or its ranking variant.

    model = sememe.NNLM(preset="tiny", budget="2m").fit("texts/", out="runs/nnlm")
    model.next_words("the king of", count=5)
    model.vectors.neighbors("king")
    """

    kind: ClassVar[str] = "nnlm"

    def __init__(self, preset: str = "tiny", **options: Any) -> None:
        """Take a size by name, and options of the network and the training."""
        classes = {"network": NNLMConfig, "training": NNLMTrainingConfig}
        own = sorted_options(type(self).__name__, options, classes)
        self.preset = preset
        self.config = nnlm_config(preset, **own["network"])
        training = NNLMTrainingConfig(**own["training"])
        self.training = replace(
            training,
            learning_rate=training.learning_rate or RATES[preset],
            batch_size=training.batch_size or BATCH_SIZES.get(preset, 128),
            max_words=training.max_words or MAX_WORDS.get(preset, 100_000),
        )
        self.text = TextSettings()
        self.history = History()
        self.plan: dict[str, Any] = {}
        self.vocabulary = Vocabulary.from_words([])
        self.network: Any = None

    def __repr__(self) -> str:
        sizes = f"{self.config.num_inputs} × {self.config.dim}, {self.config.num_hidden} hidden"
        state = "untrained" if self.network is None else f"{len(self.vocabulary):,} words"
        return f"NNLM({self.preset}, {self.config.architecture}: {sizes}, {state})"

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

        text or its fields by name (language="zh") say how text is read; `store` is the place of
        the token store. With `out` the model is saved there, checkpoints lie beside it while it
        trains, and `resume` continues from the last one.
        """
        need_torch()
        from sememe.networks.fitting import Request
        from sememe.networks.nnlm_fitting import fit

        self.text = changed(text or TextSettings(), "fit", text_options)
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

    @property
    def vectors(self) -> WordVectors:
        """The vectors of the words, as the network reads them."""
        table = self._trained().words.weight.detach().cpu().numpy()
        return WordVectors(self.vocabulary, table[: len(self.vocabulary)])

    def _trained(self) -> Any:
        if self.network is None:
            raise OptionError("This model has not learned yet: call fit first.")
        return self.network

    def _language_model(self) -> Any:
        network = self._trained()
        if self.config.architecture == "ranking":
            raise OptionError(
                "A ranking network scores windows and predicts no word; train one with "
                "architecture softmax for that."
            )
        return network

    def ids_of(self, words: Sequence[str]) -> np.ndarray:
        """The ids of words, int64; those of words that are not known are <unk>'s."""
        found = [self.vocabulary.find(word) for word in words]
        return np.array([len(self.vocabulary) if one < 0 else one for one in found], np.int64)

    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The chance of each word to come after those of a sentence so far; they add up to one.

        Behind the words of the vocabulary stand <unk> and </s>.
        """
        import torch

        network, window = self._language_model(), self.config.window
        begin = np.full(window, len(self.vocabulary) + 2, np.int64)
        ids = np.concatenate([begin, self.ids_of(words)])[-window:]
        with torch.no_grad():
            logits_1V = network.logits(torch.from_numpy(ids)[None])
        return logits_1V[0].double().softmax(0).numpy()

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The likeliest words after a text, or to complete the one that it ends in."""
        self._language_model()
        prompt = read_prompt(text, self.text)
        return suggest_words(self.vocabulary, prompt, self.distribution, count)

    def score(self, text: str) -> float:
        """The log10 of a text's probability, the ends of its sentences included."""
        sentences = cut_sentences(text, self.text)
        return self.evaluate(sentences).log10 if sentences else 0.0

    def perplexity(self, corpus: Any, *, progress: Reporter | None = None) -> float:
        """The perplexity of a text, unknown words and the ends of sentences included."""
        return self.evaluate(corpus, progress=progress).perplexity

    def evaluate(self, corpus: Any, *, progress: Reporter | None = None) -> TextScore:
        """Measure how well the model foretells a text: all that `fit` takes."""
        from sememe.networks.nnlm_reading import score_text

        tokens = open_or_build(
            corpus, self.text, min_count=1, workers=self.training.workers,
            progress=progress or SILENT,
        )  # fmt: skip
        id_map = np.append(self.ids_of(tokens.vocabulary), len(self.vocabulary))
        return score_text(self._language_model(), tokens, id_map.astype(np.uint32))

    # ---- the folder -----------------------------------------------------------------------------

    def save(self, folder: str | Path) -> None:
        """Write the model to `folder`, which appears whole or not at all."""
        folder = Path(folder)
        check_replaceable(folder, self.kind)
        if self.network is None:
            raise OptionError("This model has nothing to save yet: call fit first.")
        from sememe.training.weights import weights_of

        weights = {name: x.cpu().numpy() for name, x in weights_of(self.network).items()}
        # By that name the commands that ask word vectors find them.
        table, num_words = weights.pop(TABLE), len(self.vocabulary)
        named = {VECTORS: table[:num_words], MARKS: table[num_words:]}
        with write_folder(folder) as scratch:
            tensors = {**named, **weights, **self.vocabulary.to_tensors()}
            write_tensors(scratch / TENSORS, tensors)
            self.history.save(scratch / HISTORY)
            self._draw(scratch / CURVE)
            write_json(scratch / MANIFEST, self.manifest())

    def _draw(self, path: Path) -> None:
        """Draw the loss over the steps, once there is a line to draw."""
        from sememe.plots.curves import history

        records = [record for record in self.history if "loss" in record]
        if len(records) > 1:
            history(records, path, title=f"NNLM {self.preset}: loss")

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says of the model."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "preset": self.preset,
            "words": len(self.vocabulary),
            "dim": self.config.dim,
            "config": self.config.to_dict(),
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
            model.config = NNLMConfig(**manifest["config"])
            model.text = TextSettings(**manifest["text"])
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
        model._read_weights(folder / TENSORS)
        model.history = History.load(folder / HISTORY)
        model.plan = manifest.get("plan", {})
        return model

    def _read_weights(self, path: Path) -> None:
        import torch

        from sememe.networks.nnlm import new_network
        from sememe.training.weights import take_weights

        kept = read_tensors(path)
        self.vocabulary = Vocabulary.from_tensors(kept)
        if VECTORS not in kept or MARKS not in kept:
            raise ArtifactError(f"{path} lacks the vectors of its words.")
        table = np.concatenate([kept.pop(VECTORS), kept.pop(MARKS)])
        weights = {name: np.array(x) for name, x in kept.items()} | {TABLE: table}
        self.network = new_network(self.config).eval()
        with torch.no_grad():
            own = {name: torch.from_numpy(x) for name, x in weights.items()}
            take_weights(self.network, own, str(path))

    def take_over(self, other: Self) -> None:
        """Become what another model of the same kind is, but for the options."""
        self.network, self.config, self.vocabulary = other.network, other.config, other.vocabulary
        self.history, self.plan = other.history, other.plan
