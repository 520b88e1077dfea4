"""A page of a report as a browser would read it: what is open, the text, tables, references."""

from __future__ import annotations

from html.parser import HTMLParser

EMPTY_TAGS = {"meta", "br", "hr", "input", "col"}
TABLE_PARTS = ("th", "td")


class Reader(HTMLParser):
    """Reads a page as a browser would: what is open, the text, tables, references."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY_TAGS:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in TABLE_PARTS:
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, text):
        if self.open and self.open[-1] not in ("style", "title"):
            self.text.append(text)
        if any(tag in self.open for tag in TABLE_PARTS):
            self.tables[-1][-1][-1] += text


def rows_of(reader: Reader, index: int = 0) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in reader.tables[index] if row and row[0]}


def table_with(reader: Reader, heading: str) -> dict[str, list[str]]:
    """The rows of the first table that has this heading."""
    places = (
        index for index, rows in enumerate(reader.tables) if any(heading in row for row in rows)
    )
    return rows_of(reader, next(places))


def assert_alone(text: str) -> None:
    """The page asks for nothing outside itself and runs no script."""
    reader = Reader(text)
    assert reader.open == []
    assert not {"script", "link", "img", "iframe", "object", "base"} & {t for t, _ in reader.tags}
    ids = {found["id"] for _, found in reader.tags if "id" in found}
    for _, found in reader.tags:
        assert not any(name.startswith("on") for name in found)
        assert not {"src", "srcset", "xlink:href", "data"} & set(found)
        target = found.get("href")
        assert target is None or (target.startswith("#") and target[1:] in ids)
    assert "url(" not in text and "@import" not in text and "http" not in text
