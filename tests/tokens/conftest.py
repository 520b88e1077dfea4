"""Texts of words, and a place for stores, for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from token_texts import build_store, to_records

from sememe.tokens.store import TokenStore


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep stores of a test to itself; compiled kernels stay where they are."""
    folder = tmp_path / "cache"
    monkeypatch.setattr("sememe.tokens.caching.cache_dir", lambda: folder)
    return folder / "stores"


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., TokenStore]:
    """Build a store of sentences, each a document, in a place of its own."""

    def make(sentences: list[str], name: str = "store", **options: object) -> TokenStore:
        records = [to_records([[sentence.split()]]) for sentence in sentences]
        return build_store(tmp_path / name, records, **options)  # type: ignore[arg-type]

    return make
