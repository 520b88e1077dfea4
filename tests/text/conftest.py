"""What the tests of reading share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.text.words import decode_documents

Documents = list[list[list[str]]]


@pytest.fixture
def words_of() -> Callable[..., Documents]:
    """Cut a corpus and give its documents as lists of sentences of words."""

    def cut(corpus: Any, *, workers: int = 1, **settings: Any) -> Documents:
        records = stream.segment(corpus, TextSettings(**settings), workers=workers)
        return [document for record in records for document in decode_documents(record.data)]

    return cut
