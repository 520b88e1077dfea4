"""Documents of words in record form."""

from __future__ import annotations

from sememe.text.records import Records

Documents = list[list[list[str]]]


def to_records(documents: Documents, labels: list[str] | None = None) -> Records:
    """Write documents of sentences of words in record form, empty ones included."""
    text = "".join(
        "".join("".join(f"{word}\x1f" for word in sentence) + "\x1e" for sentence in document)
        + "\x1d"
        for document in documents
    )
    return Records(text.encode("utf-8", "surrogatepass"), labels)
