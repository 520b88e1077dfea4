"""Labelled rows: files of any format or Python lists in, rows of texts, tags or answers out."""

from sememe.examples.labelled.answers import read_answers
from sememe.examples.labelled.rows import (
    Answer,
    AnswerRow,
    Rows,
    TagRow,
    TextRow,
    sorted_labels,
)
from sememe.examples.labelled.tags import read_tags
from sememe.examples.labelled.texts import read_texts

__all__ = [
    "Answer",
    "AnswerRow",
    "Rows",
    "TagRow",
    "TextRow",
    "read_answers",
    "read_tags",
    "read_texts",
    "sorted_labels",
]
