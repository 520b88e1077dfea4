"""Extractive question answering: a question and a context in, the answer's span out.

A start and an end vector (Devlin et al. 2019, 4.2). Contexts longer than the network's maximum are
read in overlapping windows; the answer is the best valid span of all windows, as characters of the
user's own text. If a question may have no answer, both vectors can point at the first token.
"""

import re
import warnings
from collections.abc import Iterable, Sequence as Several
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sememe import metrics
from sememe.contract import Truncation, numbered_columns, padded
from sememe.errors import InputError
from sememe.examples import answers as spans
from sememe.examples.answers import ContextWindow, TokenSpan, WindowScores
from sememe.examples.labelled.answers import open_answers, read_answers
from sememe.examples.labelled.rows import AnswerRow, LabelledRows, Note, silent
from sememe.metrics import AnswerScore
from sememe.nn.heads import SpanHead
from sememe.storage.folder import open_regular
from sememe.tasks.config import AnswerConfig
from sememe.tasks.objective import Item
from sememe.tasks.task import Task
from sememe.text.tables import FileTable
from sememe.tokens.subwords.tokenizer import Encoding

# The no-answer score of a context without tokens; JSON has no infinity.
_CERTAIN = 1e6
# Names by which models of transformers, their cards and folders mention SQuAD 2.0.
_SQUAD2 = re.compile(r"squad[-_ ]?v?2", re.IGNORECASE)
_CARD, _MOST_OF_CARD = "README.md", 20_000  # characters


class Candidate(NamedTuple):
    """Characters `start` to `end` of the context as a candidate answer."""

    text: str
    start: int
    end: int
    probability: float


class Answered(NamedTuple):
    """The answer to a question; text "" and positions -1 if the context has none."""

    id: str
    text: str
    start: int
    end: int
    probability: float
    no_answer: float  # the no-answer score minus that of the best span
    candidates: tuple[Candidate, ...]  # the best spans, whether or not one was chosen

    @property
    def best_text(self) -> str:
        """The best span's text, even if no answer was preferred."""
        return self.candidates[0].text if self.candidates else ""


class AnswerExtent(NamedTuple):
    """The window of an item, and the positions of its tokens in the sequence."""

    window: ContextWindow
    offset: int
    null_index: int
    encoding: Encoding  # of the full context


class Answer(Task):
    """A span of the context for each question.

    task = sememe.Answer("runs/bert").fit("train-v1.1.json", dev="dev-v1.1.json", out="runs/qa")
    """

    kind = "answer"
    reads = "question"
    main_metric = "f1"
    has_labels = False
    config_class = AnswerConfig
    config: AnswerConfig

    def read(self, data: Any, *, labelled: bool, **reading: Any) -> LabelledRows[AnswerRow]:
        """Read questions with their contexts and answers."""
        reading["columns"] = reading.get("columns") or self.columns
        return read_answers(data, labelled=labelled, **reading)

    def open_rows(
        self, data: Any, *, encoding: str, columns: Any = None, on_note: Note = silent
    ) -> Iterable[FileTable]:
        """The tables of data without labels."""
        return open_answers(data, columns or self.columns, encoding, on_note)

    def labels_of(self, rows: Several[AnswerRow]) -> list[str]:
        """No labels; but record whether some questions have no answer."""
        for row in rows:
            if row.answers and all(answer.start < 0 for answer in row.answers):
                raise InputError(
                    f"{row.source}: the place of the answer {row.answers[0].text!r:.40} is not "
                    "known, so it cannot be learned."
                )
        self.learned = {"has_impossible": any(row.is_impossible for row in rows)}
        return []

    def learn_foreign(self, content: dict[str, Any], folder: Path) -> None:
        """Find out from the model's name, folder or card whether it was trained on SQuAD 2.0."""
        self.learned = {"has_impossible": _knows_no_answer(content, folder), "threshold": 0.0}

    # ---- windows --------------------------------------------------------------------------

    def encode(self, rows: Several[AnswerRow]) -> list[Item]:
        """One sequence per window: the question, then the tokens of the window."""
        questions = self.coder.encode([row.question for row in rows])
        distinct = list(dict.fromkeys(row.context for row in rows))
        contexts = dict(zip(distinct, self.coder.encode(distinct), strict=True))
        items = []
        for index, (row, question) in enumerate(zip(rows, questions, strict=True)):
            items += self._items(index, row, question, contexts[row.context])
        return items

    def _items(
        self, index: int, row: AnswerRow, question: Encoding, context: Encoding
    ) -> list[Item]:
        # At least half of a short sequence is left for the context.
        most = min(self.config.question_length, self.coder.room(2) // 2)
        question_ids = question.ids[:most]
        cut = Truncation(len(question.ids), most) if len(question.ids) > most else None
        size = self.coder.room(2) - len(question_ids)
        is_known, span = self._span(row, context)
        items = []
        for window in spans.context_windows(len(context.ids), size, self.config.stride):
            framed = self.coder.frame(question_ids, context.ids[window.start : window.end])
            # A GPT's first token has seen nothing yet; its last one has read everything.
            null_index = len(framed.sequence.ids_T) - 1 if self.coder.is_gpt else 0
            extent = AnswerExtent(window, framed.starts[1], null_index, context)
            target = spans.window_target(span, window, extent.offset, null_index)
            items.append(
                Item(
                    (framed.sequence,), index, target if is_known else None,
                    cut=cut, extra=extent,
                )
            )  # fmt: skip
        return items

    def _span(self, row: AnswerRow, context: Encoding) -> tuple[bool, TokenSpan | None]:
        """Whether the answer is known, and the token span of the first one with a position."""
        placed = next((answer for answer in row.answers if answer.start >= 0), None)
        if placed is None:
            return row.is_impossible, None
        end = placed.start + len(placed.text)
        return True, spans.token_span(placed.start, end, context.starts, context.ends)

    def make_head(self, width: int, *, dropout: float, has_bias: bool) -> Any:
        """A linear map from each token to the scores of a start and an end."""
        # The papers' programs use no dropout before it, and a bias on every network.
        return SpanHead(width, 2, dropout=0.0, has_bias=True)

    # ---- predictions ----------------------------------------------------------------------

    def decode(
        self, row: AnswerRow, items: Several[Item], outputs: Several[np.ndarray]
    ) -> Answered:
        """The best valid span over all windows, or no answer if that scores better."""
        windows, nulls = [], []
        for item, output in zip(items, outputs, strict=True):
            window, offset, null_index, context = item.extra
            own = output[offset : offset + window.end - window.start].astype(np.float64)
            windows.append(WindowScores(window, own[:, 0], own[:, 1]))
            nulls.append(float(output[null_index].sum(dtype=np.float64)))
        table_SL = spans.span_scores(windows, len(context.ids), self.config.answer_length)
        null_score = min(nulls)
        may_be_none = self.learned.get("has_impossible", False)
        found = spans.best_spans(
            table_SL, self.config.num_best, null_score if may_be_none else -np.inf
        )
        candidates = []
        for one in found:
            start, end = spans.char_span(
                row.context, TokenSpan(one.first, one.last), context.starts, context.ends
            )
            candidates.append(Candidate(row.context[start:end], start, end, one.probability))
        no_answer = null_score - found[0].score if found else _CERTAIN
        return self._chosen(row, candidates, float(no_answer))

    def _chosen(self, row: AnswerRow, candidates: list[Candidate], no_answer: float) -> Answered:
        is_none = self.learned.get("has_impossible", False) and no_answer > self.threshold
        if is_none or not candidates:
            best = candidates[0].probability if candidates else 0.0
            # The no-answer score is normalized together with the scores of all spans.
            chance = best * float(np.exp(min(no_answer, 700.0))) if candidates else 1.0
            return Answered(row.id, "", -1, -1, min(chance, 1.0), no_answer, tuple(candidates))
        return Answered(row.id, *candidates[0], no_answer, tuple(candidates))

    @property
    def threshold(self) -> float:
        """How much better no answer must score than the best span to be preferred."""
        return float(self.learned.get("threshold", 0.0))

    def prediction_line(
        self, prediction: Answered, *, k: int = 1, has_chances: bool = False
    ) -> str:
        """The best answers."""
        return "\t".join(
            f"{one.text} {one.probability:.6g}" if has_chances else one.text
            for one in _best(prediction, k)
        ).replace("\n", " ")

    def prediction_columns(self, k: int = 1) -> dict[str, Any]:
        """The best answers with their positions and probabilities, or all candidates."""
        one = {"prediction": str, "start": int, "end": int, "probability": float}
        return {**one, "candidates": list[Candidate]} if k < 0 else numbered_columns(one, k)

    def prediction_cells(self, prediction: Answered, k: int = 1) -> list[Any]:
        """The cells of these columns."""
        best = _best(prediction, max(k, 1))
        cells = [cell for o in best for cell in (o.text, o.start, o.end, o.probability)]
        return [*cells, [*prediction.candidates]] if k < 0 else padded(cells, 4 * k)

    # ---- scores ---------------------------------------------------------------------------

    def settle(self, rows: Several[AnswerRow], predictions: Several[Answered]) -> None:
        """Choose the no-answer threshold by the F1 of the dev rows.

        If every dev row has an answer, it is 0: later rows must not choose it.
        """
        if not self.learned.get("has_impossible"):
            return
        if not any(row.is_impossible for row in rows):
            self.learned = {**self.learned, "threshold": 0.0}
            return
        scores = self._scores(rows, [one.best_text for one in predictions])
        has_answer = [not row.is_impossible for row in rows]
        best = best_threshold(predictions, [score.f1 for score in scores], has_answer)
        threshold = best.threshold
        if best.score <= sum(row.is_impossible for row in rows) / len(rows):
            # No threshold beats answering nothing, for which the official script has no value.
            threshold = min(one.no_answer for one in predictions) - 1.0
        self.learned = {**self.learned, "threshold": threshold}

    def measure(self, rows: Several[AnswerRow], predictions: Several[Answered]) -> dict[str, float]:
        """Exact match and F1, as the official script computes them.

        During the training of a task with unanswerable questions, the threshold is not chosen yet:
        the scores are then those at the best threshold, which the official script reports too.
        """
        is_open = self.learned.get("has_impossible") and "threshold" not in self.learned
        if is_open and any(row.is_impossible for row in rows):
            scores = self._scores(rows, [one.best_text for one in predictions])
            has_answer = [not row.is_impossible for row in rows]
            return {
                name: best_threshold(
                    predictions, [getattr(one, name) for one in scores], has_answer
                ).score
                for name in ("f1", "exact")
            }
        mean = metrics.mean_answer_score(self._scores(rows, [one.text for one in predictions]))
        return {"f1": mean.f1, "exact": mean.exact}

    def metric_names(self, rows: Several[Any]) -> dict[str, str]:
        """Those of the scorer; CMRC's has none for questions without an answer."""
        by_character = self._counts_characters(rows)
        if by_character and not all(row.answers for row in rows):
            return {}
        return {name: f"{'cmrc' if by_character else 'squad2'}_{name}" for name in ("f1", "exact")}

    def _counts_characters(self, rows: Several[AnswerRow]) -> bool:
        if self.config.scorer == "auto":
            return metrics.are_chinese([one.text for one in row.answers] for row in rows)
        return self.config.scorer == "cmrc"

    def _scores(self, rows: Several[AnswerRow], said: list[str]) -> list[AnswerScore]:
        by_character = self._counts_characters(rows)
        return [
            _score(text, [answer.text for answer in row.answers], by_character)
            for row, text in zip(rows, said, strict=True)
        ]


def _best(prediction: Answered, k: int) -> list[Any]:
    """The answer and the best other candidates, `k` in all; all if negative."""
    others = [one for one in prediction.candidates if one.start != prediction.start]
    return [prediction, *others][: None if k < 0 else k]


def _score(text: str, golds: list[str], by_character: bool) -> AnswerScore:
    if not by_character:
        return metrics.score_answer_or_none(text, golds)
    if not golds or not text:  # CMRC has no such questions; treated as in SQuAD 2.0
        return AnswerScore(float(bool(golds) == bool(text)), float(bool(golds) == bool(text)))
    return metrics.score_chinese_answer(text, golds)


def best_threshold(
    predictions: Several[Answered], scores: Several[float], has_answer: Several[bool]
) -> metrics.Threshold:
    """The best no-answer threshold for the given scores of best spans."""
    return metrics.best_threshold(
        scores,
        [one.no_answer for one in predictions],
        has_answer=has_answer,
        is_empty=[not one.best_text for one in predictions],
    )


def _knows_no_answer(content: dict[str, Any], folder: Path) -> bool:
    """Whether a model learned that questions may have no answer; its weights do not say."""
    told = f"{folder.resolve().name} {content.get('_name_or_path', '')}"
    with suppress(OSError), open_regular(folder / _CARD) as card:
        told += card.read(_MOST_OF_CARD).decode("utf-8", "replace")
    found = _SQUAD2.search(told)
    taken = (
        f"it is taken as one that does, for its name or card says {found[0]!r}"
        if found
        else "it is taken as one that does not, for neither its name nor its card names SQuAD 2.0"
    )
    warnings.warn(
        f"The files of {folder} do not say whether the model knows questions without an answer: "
        f"{taken}.",
        stacklevel=2,
    )
    return bool(found)
