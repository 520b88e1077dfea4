"""Which words a prediction depends on: a row in, the drop for each hidden word out.

    model = sememe.load("runs/reviews")
    word_importance(model, "the lovely film about the garden")

Every word of the row is hidden in turn, all of these rows are predicted together, and the score of
what was predicted for the whole row is compared (Zeiler & Fergus 2014; Li et al. 2016). A model
that reads [MASK] gets one in place of the word; from other models' texts the word is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sememe.contract import Model
from sememe.errors import InputError, OptionError, UnsupportedError
from sememe.examples.running_words import is_word, places_in
from sememe.text import characters as ch
from sememe.text.settings import TextSettings

MASK = "[MASK]"
_MOST_WORDS = 512
_ROWS_AT_ONCE = 16  # other requests are answered between two blocks
Row = str | Sequence[str] | Mapping[str, str]


class HiddenWord(NamedTuple):
    """A word, characters `start` to `end` of one text of the row, and what hiding it costs."""

    word: str
    text_index: int
    start: int
    end: int
    drop: float  # the score of the whole row less that without the word


class WordImportance(NamedTuple):
    """The words of a row with their drops; `score` is that of `prediction` for the whole row."""

    prediction: str
    score: float  # a probability; for a regression the predicted number
    hidden_by: str  # [MASK], or "" where words were removed
    words: list[HiddenWord]


def word_importance(model: Model, row: Row) -> WordImportance:
    """Hide each word of a row, and measure how far the score of its prediction drops.

    `row` is what `model.predict` takes: a text, a pair of texts, or a dict of texts. Words that
    belong to a predicted answer are not hidden, nor is the only word of a text.
    """
    (found,) = filter(None, importance_steps(model, row))
    return found


def importance_steps(model: Model, row: Row) -> Iterator[WordImportance | None]:
    """The same in steps: None after each block of predictions, at last the result."""
    model.require("predict")
    names, texts = _texts_of(row)
    mask = MASK if _reads_mask(model) else ""
    places = [
        (index, start, end)
        for index, text in enumerate(texts)
        for start, end in _word_places(text, model.text)
    ]
    if len(places) > _MOST_WORDS:
        raise InputError(f"The row has {len(places):,} words; at most {_MOST_WORDS} are hidden.")
    columns = list(model.prediction_columns(-1))
    hidden = [_without(row, names, texts, place, mask) for place in places]
    (whole,) = model.predict_scores([row])
    if whole is None:
        raise InputError("The row is empty: there is nothing to predict.")
    last = names.index("context") if "context" in names else len(names) - 1  # an answer is in it
    measured = _Measure(columns, model.prediction_cells(whole, -1))
    changed: list[Any] = []
    for first in range(0, len(hidden), _ROWS_AT_ONCE):
        yield None
        changed += model.predict_scores(hidden[first : first + _ROWS_AT_ONCE])
    words = []
    for (index, start, end), prediction in zip(places, changed, strict=True):
        if prediction is None or measured.holds(index == last, start, end):
            continue
        # A word of the text that an answer is in moves the answer.
        is_before = index == last and end <= measured.start
        moved = len(mask) - (end - start) if is_before else 0
        left = measured.score_in(model.prediction_cells(prediction, -1), moved)
        words.append(HiddenWord(texts[index][start:end], index, start, end, measured.score - left))
    yield WordImportance(measured.prediction, measured.score, mask, words)


class _Measure:
    """What was predicted for the whole row, and its score in the cells of other predictions."""

    def __init__(self, columns: list[str], cells: list[Any]) -> None:
        self.columns, self.start, self.end = columns, -1, -1
        own = dict(zip(columns, cells, strict=True))
        chances = {name[2:-1]: own[name] for name in columns if name.startswith("p(")}
        self.prediction, self._find = str(own["prediction"]), ""
        if chances:
            best = own["prediction"] if own["prediction"] in chances else None
            self.prediction = best or max(chances, key=lambda name: chances[name] or 0.0)
            self._find = f"p({self.prediction})"
        elif "candidates" in own:
            self.start, self.end = own["start"], own["end"]
        elif "choice" in own:
            self._find, self._number = "probabilities", own["prediction"]
            self.prediction = own["choice"]
        elif isinstance(own["prediction"], float):
            self._find = "prediction"
        else:
            raise OptionError(
                "A tagger predicts one tag per word: which words matter is measured for models "
                "that predict one label, score, choice or answer for a row."
            )
        self.score = self.score_in(cells, 0)

    def score_in(self, cells: list[Any], moved: int) -> float:
        """The score of the same prediction; 0 for an answer that is no longer a candidate."""
        own = dict(zip(self.columns, cells, strict=True))
        if "candidates" in own:
            place = (self.start, self.end)
            if place == (-1, -1):  # there is no answer
                return float(own["probability"]) if own["start"] == -1 else 0.0
            found = [c for c in own["candidates"] if (c.start - moved, c.end - moved) == place]
            return float(found[0].probability) if found else 0.0
        value = own[self._find]
        return float((value[self._number] if self._find == "probabilities" else value) or 0.0)

    def holds(self, is_last: bool, start: int, end: int) -> bool:
        """Whether a word is in the predicted answer."""
        return is_last and start < self.end and end > self.start


def _texts_of(row: Row) -> tuple[list[Any], list[str]]:
    """The names or indexes of the texts of a row, and these texts."""
    if isinstance(row, str):
        return [None], [row]
    items = row.items() if isinstance(row, Mapping) else enumerate(row)
    found = {name: text for name, text in items if isinstance(text, str)}
    if not found:
        raise InputError("The row has no text.")
    return list(found), list(found.values())


def _without(
    row: Row, names: list[Any], texts: list[str], place: tuple[int, int, int], mask: str
) -> Row:
    """The row with one word replaced by a mask, or removed."""
    index, start, end = place
    text = texts[index][:start] + mask + texts[index][end:]
    if isinstance(row, str):
        return text
    if isinstance(row, Mapping):
        return {**row, names[index]: text}
    return type(row)(text if name == names[index] else own for name, own in enumerate(row))  # type: ignore[call-arg]


def _reads_mask(model: Model) -> bool:
    """Whether [MASK] is one token of the model."""
    try:
        (tokens,) = model.tokenize([MASK])
    except UnsupportedError:
        return False
    return [token.text for token in tokens] == [MASK] and tokens[0].id >= 0


def _word_places(text: str, settings: TextSettings) -> list[tuple[int, int]]:
    """The words of a text; Chinese ones whatever language the model was trained in."""
    if settings.mode == "unicode" and any(ch.char_class(one) == ch.IDEOGRAPH for one in text):
        settings = replace(settings, language="zh")
    (places,) = places_in([text], settings)
    words = [(start, end) for start, end in places if is_word(text[start:end], settings)]
    return words if len(words) > 1 else []
