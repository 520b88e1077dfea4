"""FastTextClassifier: labelled lines in, labels of new text out; `fit`, `predict`, `evaluate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.options import changed
from sememe.progress import History, Reporter, as_reporter
from sememe.static.callbacks import Callback
from sememe.static.fasttext.classifier.config import FastTextClassifierConfig
from sememe.static.fasttext.classifier.dictionary import Lines
from sememe.static.fasttext.classifier.evaluation import LabelsResult, score
from sememe.static.fasttext.classifier.files import (
    from_file,
    is_file_name,
    load_folder,
    save_folder,
    to_file,
)
from sememe.static.fasttext.classifier.lines import (
    PLAIN,
    label_name,
    read_blocks,
    read_file_blocks,
    source_name,
)
from sememe.static.fasttext.classifier.prediction import Found, Predictor
from sememe.static.fasttext.classifier.weights import Weights
from sememe.static.fitting import Request
from sememe.text.settings import TextSettings


class Prediction(NamedTuple):
    """A label and how likely the model takes it to be."""

    label: str
    probability: float


class FastTextClassifier:
    """Labels of texts from the mean of their words' vectors (Joulin et al. 2016).

    model = sememe.FastTextClassifier(word_ngrams=2).fit("train.txt")
    model.predict("a gripping film")
    """

    kind: ClassVar[str] = "fasttext-classifier"
    config_class: ClassVar[Any] = FastTextClassifierConfig

    def __init__(self, config: FastTextClassifierConfig | None = None, **options: Any) -> None:
        """Take the options of FastTextClassifierConfig by name, or a whole config, or both."""
        self.config = changed(config or FastTextClassifierConfig(), "FastTextClassifier", options)
        self.text = PLAIN
        self.history = History()
        self.plan: dict[str, Any] = {}  # what identifies the run that made it
        self._weights: Weights | None = None
        self._predictor: Predictor | None = None

    def __repr__(self) -> str:
        if self._weights is None:
            return "FastTextClassifier(not fitted)"
        return f"FastTextClassifier({len(self.labels):,} labels, {len(self.words):,} words)"

    def fit(
        self,
        train: Any,
        validation: Any = None,
        *,
        text: TextSettings | None = None,
        start: Any = None,
        autotune: str | float | None = None,
        metric: str = "f1",
        out: str | Path | None = None,
        resume: bool = False,
        checkpoint_minutes: float = 10.0,
        callbacks: Sequence[Callback] = (),
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> FastTextClassifier:
        """Learn from `train`: files of `__label__x text` lines, tables, or rows (text, label).

        Words are what stands between blanks, as Facebook's program reads them, unless text
        settings such as language="zh" or lowercase=True are given. `start` gives vectors for the
        words it knows; `validation` is scored at the end. `autotune` ("5m", or seconds) tries
        options on the validation set for that time. With `out` the model is saved there, in a
        folder or a .bin file; beside a folder checkpoints lie while it trains, and `resume`
        continues from the last one.
        """
        from sememe.static.fasttext.classifier import fitting, tuning

        file = Path(out) if out is not None and is_file_name(Path(out)) else None
        if file is not None and (resume or file.suffix.lower() == ".ftz"):
            raise OptionError(f"{file}: only a folder can be resumed, and a .ftz is quantised.")
        if file is not None and file.is_dir():
            raise OptionError(f"{file} is a folder, but its name asks for a file; choose another.")
        request = Request(
            start=start, out=None if file is not None else out, resume=resume,
            checkpoint_minutes=checkpoint_minutes, callbacks=callbacks,
            reporter=as_reporter(progress),
        )  # fmt: skip
        self.text = changed(text or PLAIN, "fit", text_options)
        request.check(self.kind)
        if autotune is not None:
            tuning.tune(self, train, validation, autotune, metric, request)
        else:
            fitting.fit_classifier(self, train, validation, request)
        if file is not None:
            self.save(file)
        return self

    @property
    def weights(self) -> Weights:
        """What was learned; an error where nothing was."""
        if self._weights is None:
            raise OptionError("This classifier has not been fitted yet: call fit first.")
        return self._weights

    @property
    def labels(self) -> list[str]:
        """The names of the labels, the most frequent first, without their prefix."""
        prefix = self.config.label_prefix
        return [label_name(word, prefix) for word in self.weights.labels]

    @property
    def words(self) -> list[str]:
        """The words that have a row, the most frequent first."""
        return list(self.weights.words)

    @property
    def is_quantized(self) -> bool:
        """Whether the rows are kept as bytes."""
        return not isinstance(self.weights.input, np.ndarray)

    @property
    def predictor(self) -> Predictor:
        """The model made ready to predict."""
        if self._predictor is None:
            self._predictor = Predictor(self.weights, self.config)
        return self._predictor

    def adopt(self, weights: Weights) -> None:
        """Take over what was learned."""
        self._weights, self._predictor = weights, None

    def adopt_lines(self, lines: Lines, input: np.ndarray, output: np.ndarray) -> None:
        """Take over the dictionary of a text and the matrices trained on it."""
        self.adopt(Weights.of_lines(lines, input, output))

    def take_over(self, other: FastTextClassifier) -> None:
        """Become what another classifier is, options included."""
        self.config, self.text = other.config, other.text
        self.history, self.plan = other.history, other.plan
        self.adopt(other.weights)

    def predict(self, text: str | Iterable[str], k: int = 1, threshold: float = 0.0) -> Any:
        """Give the `k` most likely labels of a text, or a list of them for each of many texts.

        Labels below the probability `threshold` are left out; k = -1 gives all.
        """
        texts = [text] if isinstance(text, str) else text
        blocks = read_blocks(
            texts, self.text, self.config.label_prefix, self.config.num_workers, has_labels=False
        )
        found = [
            answer for block in self._found(blocks, k, threshold) for answer in self._named(block)
        ]
        if isinstance(text, str):
            return found[0]
        return found

    def predict_file(
        self, source: Any, k: int = 1, threshold: float = 0.0
    ) -> Iterator[list[Prediction]]:
        """Predict each line of files or of standard input ("-"); labels in them do not matter."""
        for block in self.predict_blocks(source, k, threshold):
            yield from self._named(block)

    def predict_blocks(self, source: Any, k: int = 1, threshold: float = 0.0) -> Iterator[Found]:
        """Predict as `predict_file` does; label ids and probabilities of many lines at a time."""
        settings = replace(self.text, label_field="")
        blocks = read_file_blocks(
            source, settings, self.config.label_prefix, self.config.num_workers
        )
        return self._found(blocks, k, threshold)

    def _found(self, blocks: Iterable[bytes], k: int, threshold: float) -> Iterator[Found]:
        if k != -1 and k < 1:
            raise OptionError(f"k must be 1 or more, or -1 for every label, not {k}.")
        if not 0 <= threshold <= 1:
            raise OptionError(f"threshold must lie between 0 and 1, not {threshold}.")
        num_labels = len(self.weights.labels)
        return self.predictor.predict_all(blocks, num_labels if k == -1 else k, threshold)

    def _named(self, found: Found) -> Iterator[list[Prediction]]:
        names = self.labels
        all_ids, all_chances = found.label_ids.tolist(), found.chances.tolist()
        for ids, chances in zip(all_ids, all_chances, strict=True):
            if ids[-1] >= 0:
                yield [*map(Prediction, map(names.__getitem__, ids), chances)]
            else:
                yield [
                    Prediction(names[label], chance)
                    for label, chance in zip(ids, chances, strict=True)
                    if label >= 0
                ]

    def evaluate(self, data: Any, k: int = 1, threshold: float = 0.0) -> LabelsResult:
        """Score the first `k` predictions on labelled files or rows: precision, recall, F1."""
        prefix, workers = self.config.label_prefix, self.config.num_workers
        blocks = read_blocks(data, self.text, prefix, workers)
        found = self._found(blocks, k, threshold)
        return score(found, self.labels, k, threshold, source_name(data, "The data"))

    def embed(self, text: str | Iterable[str]) -> np.ndarray:
        """The vector of a text, the mean of its rows; (B, D) for many texts."""
        texts = [text] if isinstance(text, str) else text
        blocks = read_blocks(
            texts, self.text, self.config.label_prefix, self.config.num_workers, has_labels=False
        )
        parts = [self.predictor.embed(block) for block in blocks]
        vectors = np.concatenate(parts) if parts else np.empty((0, self.config.dim), np.float32)
        return vectors[0] if isinstance(text, str) else vectors

    def quantize(
        self,
        *,
        cutoff: int = 0,
        retrain: Any = None,
        qnorm: bool = False,
        qout: bool = False,
        dsub: int = 2,
        epochs: int = 5,
        learning_rate: float = 0.05,
        progress: Reporter | bool | None = None,
    ) -> FastTextClassifier:
        """Make a smaller model: each `dsub` numbers of a row become one byte.

        `cutoff` keeps that many rows, the longest, and `retrain` names the training text on which
        those are trained again for `epochs`; `qnorm` keeps the rows' lengths as bytes of their
        own, `qout` quantises the labels' rows too.
        """
        from sememe.static.fasttext.classifier.shrinking import Shrinking, shrink

        if self.is_quantized:
            raise OptionError("This model is quantised already.")
        options = Shrinking(
            cutoff=cutoff, qnorm=qnorm, qout=qout, dsub=dsub, epochs=epochs,
            learning_rate=learning_rate,
        )  # fmt: skip
        return shrink(self, options, retrain, as_reporter(progress))

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, or as a .bin or .ftz file of Facebook's program."""
        path = Path(path)
        if is_file_name(path):
            self._save_file(path)
            return
        save_folder(self, path)

    def _save_file(self, path: Path) -> None:
        from sememe.vectors.formats.fasttext import write_model

        if (path.suffix.lower() == ".ftz") != self.is_quantized:
            wanted = ".ftz" if self.is_quantized else ".bin"
            raise OptionError(
                f"{path}: the name of this model's file must end in {wanted}, which tells whether "
                "it is quantised."
            )
        write_model(path, to_file(self.weights, self.config))

    @classmethod
    def load(cls, path: str | Path, *, label_prefix: str = "__label__") -> FastTextClassifier:
        """Open a model folder, or a .bin or .ftz file of Facebook's program.

        Such files do not say how labels start: `label_prefix` does.
        """
        path = Path(path)
        if not path.exists():
            raise ArtifactError(f"There is no model at {path}.")
        if path.is_dir():
            return load_folder(path, cls)
        from sememe.vectors.formats.fasttext import read_model

        config, weights = from_file(read_model(path), path, label_prefix)
        model = cls(config)
        model.adopt(weights)
        return model
