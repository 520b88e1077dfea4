"""FastTextClassifier: labelled lines in, labels of new text out; `fit`, `predict`, `evaluate`."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sememe.card import part_of, write_manifest
from sememe.contract import Model, PredictedRow, label_cells, label_columns
from sememe.errors import ArtifactError, OptionError, WriteError
from sememe.estimator import not_fitted, text_array
from sememe.examples.labelled.rows import BadRowError, Note, silent
from sememe.frames import is_frame, texts_of
from sememe.machine import provenance
from sememe.metrics.baselines import baselines_of
from sememe.metrics.decisions import check_thresholds
from sememe.models.fasttext.classifier import training, tuning
from sememe.models.fasttext.classifier.config import LABEL_PREFIX, FastTextClassifierConfig
from sememe.models.fasttext.classifier.defaults import words_of
from sememe.models.fasttext.classifier.lines import (
    PLAIN,
    is_path,
    label_name,
    label_text,
    labelled_rows,
    read_blocks,
    rows_of,
    source_name,
    table_settings,
)
from sememe.models.fasttext.classifier.prediction import FoundLabels, LabelsResult, Predictor, score
from sememe.models.fasttext.classifier.shrinking import VALIDATED, Shrinking, shrink
from sememe.models.fasttext.classifier.weights import (
    ClassifierWeights,
    from_file,
    is_file_name,
    read_weights,
    to_file,
    write_weights,
)
from sememe.models.fitting import Prepared, Request, fit
from sememe.models.static.loop import HISTORY, Callback
from sememe.models.static.model import FORMAT, open_manifest, take_options
from sememe.options import changed
from sememe.progress import History, Reporter, as_reporter
from sememe.storage.folder import (
    MANIFEST,
    check_replaceable,
    read_errors,
    reads_artifact,
    write_folder,
)
from sememe.text.documents import TextRecord, read_records
from sememe.text.settings import TextSettings
from sememe.text.stream import as_names
from sememe.vectors import SubwordVectors, WordVectors
from sememe.vectors.formats.fasttext import read_model, readable, write_model

_MOST_CALIBRATED = 1_000  # labels whose probabilities are all compared with the truth


class Prediction(NamedTuple):
    """A label and its probability."""

    label: str
    probability: float


class FastTextClassifier(Model):
    """Labels of texts from the mean of their words' vectors (Joulin et al. 2016).

    model = sememe.FastTextClassifier(word_ngrams=2).fit("train.txt")
    model.predict("a gripping film")
    model.predict("a gripping film", k=3)  # with probabilities
    """

    kind = "fasttext-classifier"
    settings = PLAIN
    embed_options: Mapping[str, Any] = {"pool": "mean"}
    is_classifier = True
    config_class: ClassVar[Any] = FastTextClassifierConfig

    def __init__(
        self,
        config: FastTextClassifierConfig | None = None,
        *,
        text: TextSettings | None = None,
        **options: Any,
    ) -> None:
        """Take options by name, of FastTextClassifierConfig and of the text that `fit` reads.

        A complete config or TextSettings may be given instead, or be changed by options.
        """
        take_options(self, config, text, options)
        self._asked = self._chosen = self.config  # as given, and as the data chose
        self.history = History()
        self.plan: dict[str, Any] = {}  # identifies the run that made it
        # Besides the weights: whether texts have several labels, calibration, thresholds.
        self.learned: dict[str, Any] = {}
        self.scores: dict[str, Any] = {}  # on the validation rows, with baselines
        self._weights: ClassifierWeights | None = None
        self._predictor: Predictor | None = None
        self._words: WordVectors | None = None
        self._classes: np.ndarray | None = None  # the labels as `fit` was given them
        self._labels: list[str] | None = None

    def __repr__(self) -> str:
        if self._weights is None:
            return "FastTextClassifier(not fitted)"
        num_words = len(self._weights.words)
        return f"FastTextClassifier({len(self.labels):,} labels, {num_words:,} words)"

    def describe(self) -> dict[str, Any]:
        """The kind and sizes, the options, the text settings, and the model's origin."""
        if self._weights is None:
            return super().describe()
        more = {name: value for name, value in self.manifest().items() if name != "plan"}
        return {**super().describe(), **more, "quantized": self.is_quantized}

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model, besides the layout of its tensors."""
        return {
            "kind": self.kind,
            "format": FORMAT,
            "words": len(self.weights.words),
            "labels": len(self.weights.labels),
            "dim": self.config.dim,
            "config": self.config.to_dict(),
            "text": self.text.to_dict(),
            "learned": self.learned,
            "data": self.data,
            "plan": self.plan,
            "metrics": self.history.last(),
            **({"scores": self.scores} if self.scores else {}),
            "provenance": provenance(),
        }

    def fit(
        self,
        train: Any,
        y: Any = None,
        *,
        validation: Any = None,
        text: TextSettings | None = None,
        start: Any = None,
        autotune: str | float | None = None,
        metric: str = "f1",
        out: str | Path | None = None,
        resume: bool = False,
        overwrite: bool = False,
        checkpoint_minutes: float = 10.0,
        callbacks: Sequence[Callback] = (),
        progress: Reporter | bool | None = None,
        **text_options: Any,
    ) -> FastTextClassifier:
        """Train on `train`: `__label__x text` lines, tables, a DataFrame, or rows (text, label).

        With labels `y`, as scikit-learn gives them, `train` is a list of texts.
        Words are separated by blanks, as in Facebook's program, unless text settings such as
        language="zh" or lowercase=True are given. `start` gives pretrained vectors; `validation` is
        scored at the end. `autotune` ("5m", or seconds) searches options on the validation set for
        that time. With `out` the model is saved there, as a folder or a .bin file; a folder has
        checkpoints next to it during training; `resume` continues from the last one; `overwrite`
        allows replacing an existing model.
        """
        classes = None
        if y is not None:
            train, classes = labelled_rows(train, y)
        elif is_path(train) and as_names(train) is None:
            raise OptionError(
                "FastTextClassifier requires y to be passed, but the target y is None: give a "
                "label for each text, or rows (text, label)."
            )
        file = Path(out) if out is not None and is_file_name(Path(out)) else None
        if file is not None and (resume or file.suffix.lower() == ".ftz"):
            raise OptionError(f"{file}: only a folder can be resumed, and a .ftz is quantised.")
        if file is not None and file.is_file() and not overwrite:
            raise WriteError(f"{file} exists; choose another name, or --overwrite to replace it.")
        if file is not None and file.is_dir():
            raise OptionError(
                f"{file} is a folder, but its name is that of a file; choose another."
            )
        if file is not None and self.config.thresholds != "default":
            raise OptionError(f"{file}: a .bin or .ftz file has no place for thresholds.")
        request = Request(
            start=start, dev=validation, out=None if file is not None else out, resume=resume,
            overwrite=overwrite,
            checkpoint_minutes=checkpoint_minutes, callbacks=callbacks,
            reporter=as_reporter(progress),
        )  # fmt: skip
        if self.config is self._chosen:  # an earlier fit chose these options for other data
            self.config = self._asked
        is_open = self.config.preset == "auto" and text is None and self.settings == PLAIN
        is_open &= file is None and not {"language", "dictionary"} & {*text_options}
        settings = changed(text or self.settings, "fit", text_options)
        self.text, separator = table_settings(
            train, replace(settings, columns={}), request.reporter.note, named=settings.columns,
            separator=self.config.label_separator,
        )  # fmt: skip
        if is_open:
            train, words = words_of(train, self.text, self.config)
            kept = {name: text_options[name] for name in ("lowercase",) if name in text_options}
            self.text = replace(self.text, **words | kept)
        if separator:
            self.config = replace(self.config, label_separator=separator)
        if autotune is not None:
            request.check(self.kind)
            tuning.tune(self, train, validation, autotune, metric, request)
            if not isinstance(validation, Iterator):
                self._scored(validation, request, train)
                if request.out is not None:
                    self.save(request.out)
        else:
            fit(self, train, request)
            self._validate(validation, request, train)
        self._classes = classes
        if file is not None:
            self.save(file)
        return self

    def options(self) -> dict[str, Any]:
        """The options of the constructor, by name: without what the data chose."""
        config = self._asked if self.config is self._chosen else self.config
        return super().options() | {own.name: getattr(config, own.name) for own in fields(config)}

    def choose(self, config: FastTextClassifierConfig) -> None:
        """Take the options that the data chose."""
        self._asked, self.config, self._chosen = self.config, config, config

    def prepare(self, train: Any, request: Request) -> Prepared:
        """Read the labelled text; return the run's plan and the function that trains."""
        return training.prepare(self, train, request)

    def _validate(self, validation: Any, request: Request, train: Any = None) -> None:
        """Score the validation set, and save the scores with the model."""
        if validation is None:
            return
        result = self._scored(validation, request, train)
        request.reporter.note(str(result))
        scores = (result.precision, result.recall, result.f1, result.num_examples)
        self.history.append(dict(zip(VALIDATED, scores, strict=True)))
        if request.out is not None:
            self.save(request.out)

    def _scored(self, validation: Any, request: Request, train: Any) -> LabelsResult:
        """Score the validation set and, with `train`, the baselines."""
        result = self.evaluate(validation, on_note=request.reporter.note)
        beside: list[dict[str, Any]] = []
        if train is not None and self.config.baselines:
            beside = self.baselines(train, validation)
        self.scores = {
            "metrics": {"precision": result.precision, "recall": result.recall, "f1": result.f1},
            "main_metric": "f1", "num_rows": result.num_examples, "interval": result.interval,
            "seeds": result.seeds, "baselines": beside,
        }  # fmt: skip
        return result

    def baselines(self, train: Any, data: Any) -> list[dict[str, Any]]:
        """The F1 on `data` of baselines that learn from `train`, which is read again.

        Rows of a generator, which can be read once only, have none.
        """
        if any(isinstance(source, Iterator) for source in (train, data)):
            return []
        prefix, separator = self.config.label_prefix, self.config.separator
        known = {*self.labels}
        rows, asked = (
            [
                row
                for row in rows_of(source, self.text, prefix, separator)
                if known.issuperset(row.label_set)
            ]
            for source in (train, data)
        )
        metric = "micro_f1"
        if not self.has_sets and all(len(row.label_set) == 1 for row in (*rows, *asked)):
            metric = "accuracy"  # the same as the F1 of lines with one label each
            rows, asked = (
                [replace(row, label=row.label_set[0], labels=None) for row in own]
                for own in (rows, asked)
            )
        gold = [row.label if row.labels is None else sorted(row.labels) for row in asked]
        return [one.to_dict() for one in baselines_of("classify", rows).scores(asked, gold, metric)]

    @property
    def weights(self) -> ClassifierWeights:
        """The learned weights; raises an error if there are none."""
        if self._weights is None:
            raise not_fitted("This classifier has not been fitted yet: call fit first.")
        return self._weights

    @property
    def is_fitted(self) -> bool:
        """Whether there are weights."""
        return self._weights is not None

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: not what can be made again from the weights."""
        return {**vars(self), "_predictor": None, "_words": None}

    @property
    def labels(self) -> list[str]:
        """The names of the labels, most frequent first, without their prefix."""
        if self._labels is None:
            prefix = self.config.label_prefix
            self._labels = [label_name(word, prefix) for word in self.weights.labels]
        return self._labels

    @property
    def words(self) -> WordVectors:
        """The vectors of the words that have a row, most frequent first, and of all others."""
        if self._words is None:
            weights, config = self.weights, self.config
            words, spellings = readable(weights.words)
            pruned = None if weights.buckets is None else weights.kept()
            self._words = SubwordVectors(
                words, weights.input, minn=config.minn, maxn=config.maxn,
                bucket=None if pruned is None else config.bucket, pruned=pruned,
                spellings=spellings,
            )  # fmt: skip
            self._words.text = self.text
        return self._words

    @property
    def is_quantized(self) -> bool:
        """Whether the rows are quantized to bytes."""
        return not isinstance(self.weights.input, np.ndarray)

    @property
    def predictor(self) -> Predictor:
        """The model prepared for prediction."""
        if self._predictor is None:
            self._predictor = Predictor(self.weights, self.config)
        return self._predictor

    def adopt(self, weights: ClassifierWeights) -> None:
        """Take over what was learned."""
        self._weights, self._predictor, self._words, self._labels = weights, None, None, None

    def take_over(self, other: FastTextClassifier) -> None:
        """Take over the state of another classifier, options included."""
        self.config, self.text = other.config, other.text
        self.history, self.plan, self.learned = other.history, other.plan, other.learned
        self.scores = other.scores
        self.adopt(other.weights)

    @property
    def has_sets(self) -> bool:
        """Whether a text may have any number of labels."""
        return bool(self.learned.get("multi_label"))

    @property
    def own_k(self) -> int:
        """One label; as many as reach their thresholds if a text may have several."""
        return 0 if self.has_sets else 1

    def _thresholds(self, k: int, threshold: float) -> np.ndarray | None:
        """The thresholds that decide with this `k`, or None if the most likely labels are wanted.

        Without thresholds of its own, a label needs one half.
        """
        if k != self.own_k or (k and (threshold or "thresholds" not in self.learned)):
            return None
        if threshold or "thresholds" not in self.learned:
            return np.full(len(self.weights.labels), threshold or 0.5)
        return np.array([self.learned["thresholds"][label] for label in self.labels])

    @property
    def classes_(self) -> np.ndarray:
        """The labels in ascending order, of the type that `fit` was given; text in saved models."""
        return np.array(sorted(self.labels)) if self._classes is None else self._classes

    def _class_of_label(self) -> np.ndarray:
        """The place in `classes_` of each of the model's labels."""
        places = {label_text(name): place for place, name in enumerate(self.classes_)}
        return np.array([places[name] for name in self.labels], np.int64)

    def predict(
        self,
        data: str | Iterable[str],
        k: int | None = None,
        threshold: float = 0.0,
        *,
        columns: Mapping[str, str] | None = None,
    ) -> Any:
        """The most likely label of a text, or an array with that of each of many texts.

        With `k` or `threshold`, a list for each text with its `k` most likely labels and their
        probabilities; those below `threshold` are dropped; k = -1 gives all. If texts have several
        labels, such a list holds all that reach their thresholds. A text without a known word has
        none; where it must have one, it gets the most frequent label. Of a DataFrame,
        `columns={"text": "body"}` names the column; by default it is that of the training rows.
        """
        if is_frame(data):
            columns = columns or {"text": self.text.text_column}
        texts = [data] if isinstance(data, str) else texts_of(data, columns)
        parts = self._found(self._blocks(texts), k, threshold)
        found: Any
        if k is None and not threshold and not self.has_sets:
            places, usual = self._class_of_label(), int(self._shares().argmax())
            ids = [np.empty(0, np.int64), *(part.label_ids[:, 0] for part in parts)]
            label_ids = np.concatenate(ids)
            found = self.classes_[np.where(label_ids < 0, usual, places[label_ids])]
        else:
            found = [answer for part in parts for answer in self._named(part)]
        return found[0] if isinstance(data, str) else found

    def predict_proba(self, X: Iterable[str]) -> np.ndarray:
        """The probability of every label for each text, (texts, labels), as in `classes_`.

        Rows sum to 1, also with losses that judge each label by itself, unless texts may have
        several labels. A text without a known word gets the shares of the labels in training.
        """
        parts = self._found(self._blocks(text_array(X)), 1, 0.0, has_all=True)
        all_chances = [np.asarray(part.all_chances_BL, np.float64) for part in parts]
        places, shares = self._class_of_label(), self._shares()
        found_NC = np.zeros((sum(map(len, all_chances)), len(shares)))
        if all_chances:
            found_NC[:, places] = np.concatenate(all_chances)
        if self.has_sets:
            return found_NC
        sums_N1 = found_NC.sum(1, keepdims=True)
        return np.where(sums_N1 > 0, found_NC / np.where(sums_N1 > 0, sums_N1, 1), shares)

    def score(self, text: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The accuracy of the predicted labels of texts."""
        if y is None:
            raise self.unsupported("score")
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(text_array(text)), sample_weight=sample_weight))

    def _shares(self) -> np.ndarray:
        """How many of the training texts have each of `classes_`; they sum to 1."""
        counts = np.zeros(len(self.classes_))
        counts[self._class_of_label()] = np.maximum(self.weights.labels.counts, 1)
        return counts / counts.sum()

    def _blocks(self, texts: Iterable[str]) -> Iterator[bytes]:
        prefix, workers = self.config.label_prefix, self.config.num_workers
        return read_blocks(texts, self.text, prefix, workers, has_labels=False)

    def predict_file(
        self, source: Any, k: int | None = None, threshold: float = 0.0
    ) -> Iterator[list[Prediction]]:
        """Predict each line of files or of standard input ("-"); labels in them are ignored."""
        for block in self.predict_blocks(source, k, threshold):
            yield from self._named(block)

    def predict_stream(
        self,
        data: Any,
        *,
        k: int = 1,
        threshold: float = 0.0,
        has_cells: bool = False,
        skip_bad: bool = False,
        on_note: Note = silent,
        **reading: Any,
    ) -> Iterator[PredictedRow]:
        """Every line or row with its labels: none if it has no known word."""
        model = self._for_lines(data, has_labels=False, on_note=on_note, **reading)
        if has_cells or skip_bad:
            yield from model._predict_cells(data, k, threshold, skip_bad, on_note)
            return
        for found in model.predict_blocks(data, k, threshold, on_note):
            yield from (PredictedRow({}, own) for own in model._named(found))

    def _predict_cells(
        self, data: Any, k: int, threshold: float, skip_bad: bool, note: Note
    ) -> Iterator[PredictedRow]:
        """Like `predict_file`, with the cells of each row; a skipped one has no prediction."""
        # Blocks are predicted ahead in threads: their rows wait here until it is their turn.
        waiting: deque[TextRecord] = deque()
        num_bad = num_empty = 0

        def texts() -> Iterator[str]:
            nonlocal num_bad, num_empty
            for record in read_records(data, self.text):
                if record.problem and not skip_bad:
                    raise BadRowError(record.problem)
                num_bad += bool(record.problem)
                num_empty += not (record.text.strip() or record.problem)
                waiting.append(record)
                yield record.text

        for found in self._found(self._blocks(texts()), k, threshold):
            for own in self._named(found):
                record = waiting.popleft()
                has_text = bool(record.text.strip())
                yield PredictedRow(record.cells, own if has_text else None, record.source)
        if num_bad:
            note(f"{num_bad:,} bad rows get no label.")
        if num_empty:
            note(f"{num_empty:,} rows without a text get no label.")

    def prediction_line(
        self, prediction: list[Prediction], *, k: int = 1, has_chances: bool = False
    ) -> str:
        """The labels, most likely first."""
        if not has_chances:
            return " ".join([one.label for one in prediction])
        return " ".join(f"{one.label} {one.probability:.6g}" for one in prediction)

    def predict_json(self, rows: Sequence[Any]) -> list[Any]:
        """The labels of a list of texts with their probabilities."""
        return [self.prediction_json(own) for own in self.predict(rows, k=self.own_k)]

    def predict_scores(self, rows: Sequence[Any]) -> list[Any]:
        """All labels of each text with their probabilities; None for an empty text."""
        found = self.predict(rows, k=-1)
        return [own if text.strip() else None for own, text in zip(found, rows, strict=True)]

    def prediction_json(self, prediction: list[Prediction]) -> Any:
        """The labels with their probabilities."""
        return {"labels": [one._asdict() for one in prediction]}

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The most likely labels with their probabilities, or the probabilities of all."""
        return label_columns(self.labels, k, has_sets=self.has_sets)

    def prediction_cells(self, prediction: list[Prediction], k: int = 1) -> list[Any]:
        """The cells of these columns; Facebook's formula exceeds 1 by a hundred-thousandth."""
        chosen = [(one.label, min(one.probability, 1.0)) for one in prediction]
        chances = dict(chosen)
        if k < 0 and self.has_sets:
            least = self.learned.get("thresholds", {})
            chosen = [(name, chance) for name, chance in chosen if chance >= least.get(name, 0.5)]
        own = [*map(chances.get, self.labels)]
        return label_cells(chosen, own, self.labels, k, has_sets=self.has_sets)

    def _for_lines(
        self,
        data: Any,
        *,
        has_labels: bool = True,
        columns: Any = None,
        skip_bad: bool = False,
        encoding: str = "",
        on_note: Note | None = None,
    ) -> FastTextClassifier:
        """The model for these files, with their columns."""
        if skip_bad:
            raise OptionError("skip_bad is for predictions and tasks; a classifier skips no lines.")
        model = copy(self)
        settings = replace(self.text, encoding=encoding or self.text.encoding)
        model.text, separator = table_settings(
            data, settings, on_note or silent, named=columns, has_labels=has_labels,
            separator=self.config.label_separator, known=self.labels,
        )  # fmt: skip
        if separator:
            model.config = replace(self.config, label_separator=separator)
        return model

    def with_label_prefix(self, prefix: str) -> FastTextClassifier:
        """The model with another prefix of labels, which .bin and .ftz files do not store."""
        if prefix in (LABEL_PREFIX, self.config.label_prefix):
            return self
        model = copy(self)
        model.config = replace(self.config, label_prefix=prefix)
        model.adopt(self.weights)
        return model

    def predict_blocks(
        self, source: Any, k: int | None = None, threshold: float = 0.0, note: Note = silent
    ) -> Iterator[FoundLabels]:
        """Like `predict_file`; yields label ids and probabilities of many lines at a time."""
        settings, _ = table_settings(source, self.text, has_labels=False)
        blocks = read_blocks(
            source, settings, self.config.label_prefix, self.config.num_workers, note=note
        )
        return self._found(blocks, k, threshold)

    def _found(
        self, blocks: Iterable[bytes], k: int | None, threshold: float, *, has_all: bool = False
    ) -> Iterator[FoundLabels]:
        k = self.own_k if k is None else k
        if k not in (-1, self.own_k) and k < 1:
            raise OptionError(f"k must be 1 or more, or -1 for every label, not {k}.")
        if not 0 <= threshold <= 1:
            raise OptionError(f"threshold must be between 0 and 1, not {threshold}.")
        num, thresholds = len(self.weights.labels) if k == -1 else k, self._thresholds(k, threshold)
        chosen = None if thresholds is None else (thresholds, not self.has_sets)
        return self.predictor.predict_all(blocks, num, threshold, has_all=has_all, decide_by=chosen)

    def _named(self, found: FoundLabels) -> Iterator[list[Prediction]]:
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

    def evaluate(
        self, data: Any, k: int | None = None, threshold: float = 0.0, *, train: Any = None,
        **reading: Any,
    ) -> LabelsResult:  # fmt: skip
        """Score the first `k` predictions on labelled files or rows: precision, recall, F1.

        `train`, the training rows, adds the scores of baselines that learn from them.
        """
        k = self.own_k if k is None else k
        model = self._for_lines(data, **reading)
        prefix, workers = model.config.label_prefix, model.config.num_workers
        blocks = read_blocks(
            data, model.text, prefix, workers, separator=model.config.separator,
            note=reading.get("on_note") or silent,
        )  # fmt: skip
        has_all = len(model.weights.labels) <= _MOST_CALIBRATED
        found = model._found(blocks, k, threshold, has_all=has_all)
        name = source_name(data, "The data")
        is_one = model.config.is_softmax
        result = score(found, model.labels, k, threshold, name, is_one=is_one)
        beside = [] if train is None else model.baselines(train, data)
        return replace(result, baselines=beside)

    def embed(
        self, texts: Sequence[str], *, pool: str = "mean", layers: Any = "last"
    ) -> np.ndarray:
        """The mean over the words and n-grams of each text, (texts, D): the classifier's input.

        `pool="max"` takes the maximum over the words alone.
        """
        self.check_list(texts)
        if pool != "mean" or layers != "last":
            return self.words.embed(texts, pool=pool, layers=layers)
        parts = [self.predictor.embed(block) for block in self._blocks(texts)]
        return np.concatenate(parts) if parts else np.empty((0, self.config.dim), np.float32)

    @staticmethod
    def check_quantize(**options: Any) -> None:
        """Refuse options that `quantize` could not follow, before a model is trained."""
        Shrinking(**options)

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
        validation: Any = None,
        progress: Reporter | bool | None = None,
    ) -> FastTextClassifier:
        """Compress the model: each `dsub` dimensions of a row become one byte.

        `cutoff` keeps that many rows, those with the largest norm, and `retrain` names the training
        text on which they are retrained for `epochs`; `qnorm` quantizes the rows' norms separately,
        `qout` quantizes the labels' rows too. The scores of the larger model are not taken over:
        `validation` scores the new one.
        """

        if self.is_quantized:
            raise OptionError("This model is quantised already.")
        if retrain is not None and "calibration" in self.learned:
            raise OptionError("retrain would undo the calibration of this model.")
        options = Shrinking(
            cutoff=cutoff, qnorm=qnorm, qout=qout, dsub=dsub, epochs=epochs,
            learning_rate=learning_rate,
        )  # fmt: skip
        found = shrink(self, options, retrain, as_reporter(progress))
        found._classes = self._classes
        found._validate(validation, Request(reporter=as_reporter(progress)))
        if found.scores:
            found.scores["baselines"] = self.scores.get("baselines", [])
        return found

    def save(self, path: str | Path) -> None:
        """Write the model to a folder, or as a .bin or .ftz file of Facebook's program."""
        path = Path(path)
        if not is_file_name(path):
            check_replaceable(path, self.kind)
            with write_folder(path) as scratch:
                details = write_weights(scratch, self.weights)
                self.history.save(scratch / HISTORY)
                write_manifest(scratch, {**self.manifest(), **details})
            return
        if (path.suffix.lower() == ".ftz") != self.is_quantized:
            wanted = ".ftz" if self.is_quantized else ".bin"
            raise OptionError(
                f"{path}: the file name of this model must end in {wanted}: .ftz files are "
                "quantised, .bin files are not."
            )
        if self.text.mode != "whitespace" or self.text.lowercase:
            warnings.warn(
                f"{path} has no place for how texts are read (language {self.text.language}"
                f"{', lower case' if self.text.lowercase else ''}): give it texts whose words are "
                "separated by blanks in the same way, save a folder, or train with language none.",
                stacklevel=2,
            )
        write_model(path, to_file(self.weights, self.config))

    @classmethod
    @reads_artifact
    def load(cls, path: str | Path, *, label_prefix: str = LABEL_PREFIX) -> FastTextClassifier:
        """Open a model folder, or a .bin or .ftz file of Facebook's program.

        Such files do not store the label prefix: `label_prefix` gives it.
        """
        path = Path(path)
        if not path.exists():
            raise ArtifactError(f"There is no model at {path}.")
        if path.is_dir():
            otherwise = (
                "which gives no labels; sememe finetune and sememe train fasttext --supervised "
                "make models that do"
            )
            model, manifest = open_manifest(cls, path, otherwise)
            model.adopt(read_weights(path, manifest, model.config))
            with read_errors(path / MANIFEST):
                model.learned = part_of(manifest, "learned")
                model.scores = part_of(manifest, "scores")
                check_thresholds(model.learned.get("thresholds"), model.labels)
            return model
        config, weights = from_file(read_model(path), path, label_prefix)
        model = cls(config)
        model.adopt(weights)
        return model
