"""Texts of words for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from token_texts import to_records

from sememe.tokens.store import TokenStore


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., TokenStore]:
    """Build a store of sentences, each a document, in a place of its own."""

    def make(sentences: list[str], name: str = "store", **options: object) -> TokenStore:
        records = [to_records([[sentence.split()]]) for sentence in sentences]
        return TokenStore.build(tmp_path / name, records, **options)  # type: ignore[arg-type]

    return make
