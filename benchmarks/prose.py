"""How plain the words of this project are: sentence length, long lines and dialect words.

python benchmarks/prose.py                       a table, by group
python benchmarks/prose.py --json > X            the same as JSON
python benchmarks/prose.py --compare X           X beside this tree, measured now
python benchmarks/prose.py --names [GROUP]       every dialect word, with file and line
python benchmarks/prose.py --source FOLDER       another tree

Groups: both READMEs, the pages in docs/, help texts, messages (every other string of three words or
more in src/), docstrings and comments. Dialect words are listed with their replacements in
tests/journeys/dialect_words.tsv. Tables and code blocks do not count as long lines.
prose_before.json holds the metrics from before the prose was rewritten in plain words.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
WORDS = ROOT / "tests" / "journeys" / "dialect_words.tsv"
GROUPS = ("readme", "readme_zh", "docs", "help", "messages", "docstrings", "comments")
NUM_LONG_WORDS = 25
NUM_LONG_CHARACTERS = 100
HELP_CALLS = {"option", "flag", "Option", "Argument"}
DECORATORS = {"command", "callback"}


class Passage(NamedTuple):
    """A piece of prose, and where it starts."""

    group: str
    path: str
    line: int
    text: str


class Dialect(NamedTuple):
    """A word that is not plain, what to write instead, and the language it belongs to."""

    pattern: re.Pattern[str]
    replacement: str
    is_chinese: bool


def read_dialect(path: Path = WORDS) -> list[Dialect]:
    """Read the list: a regular expression, a tab and its replacement on each line."""
    listed = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, replacement = line.split("\t")
            is_chinese = not pattern.isascii()
            bounded = pattern if is_chinese else rf"(?<![\w-]){pattern}(?![\w-])"
            listed.append(Dialect(re.compile(bounded, re.IGNORECASE), replacement, is_chinese))
    return listed


def dialect_in(passage: Passage, dialect: list[Dialect]) -> Iterator[tuple[str, str]]:
    """Yield every dialect word of a passage and its replacement."""
    text = re.sub(r"`[^`]*`", "`…`", " ".join(passage.text.split()))  # code keeps its names
    for word in dialect:
        if word.is_chinese == (passage.group == "readme_zh"):
            for found in word.pattern.finditer(text):
                yield found[0], word.replacement


def _markdown(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, list items and table cells of a page; code blocks are left out."""
    paragraph: list[str] = []
    begun, is_code = 1, False
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], start=1):
        is_fence = line.lstrip().startswith("```")
        is_table = line.startswith("|")
        starts = re.match(r"\s*([-*] |\d+\. |#|> )", line)
        if paragraph and (is_fence or is_table or starts or not line.strip()):
            yield begun, " ".join(paragraph)
            paragraph = []
        is_code ^= is_fence
        if is_code or is_fence or line.startswith("    "):
            continue
        if is_table:
            yield from ((number, cell.strip()) for cell in line.strip("| ").split(" | "))
        elif line.strip():
            begun = begun if paragraph else number
            paragraph.append(re.sub(r"^\s*([-*] |\d+\. |#+ |> )", "", line).strip())


def _name_of(call: ast.expr) -> str:
    call = call.func if isinstance(call, ast.Call) else call
    return call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")


def _string(node: ast.expr) -> str | None:
    """The text of a literal; what an f-string fills in becomes an ellipsis."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "…" for part in node.values]
        return "".join(map(str, parts))
    return None


def _strings(node: ast.AST, group: str) -> Iterator[tuple[str, int, str]]:
    """Yield the group, line and text of every string below a node, docstrings included."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if isinstance(node, ast.Call) and _name_of(node) in HELP_CALLS:
        group = "help"
    if isinstance(node, ast.expr) and (text := _string(node)) is not None:
        yield group, node.lineno, text
        return
    docstring = ast.get_docstring(node) if isinstance(node, documented) else None
    if docstring is not None:
        is_command = any(_name_of(x) in DECORATORS for x in getattr(node, "decorator_list", []))
        first = node.body[0]  # type: ignore[attr-defined]
        yield "help" if is_command else "docstrings", first.lineno, docstring
    for child in ast.iter_child_nodes(node):
        if docstring is None or child is not node.body[0]:  # type: ignore[attr-defined]
            yield from _strings(child, group)


def _is_sentence(text: str) -> bool:
    """Whether a string is prose: three words between blanks, and no example of a command."""
    return len(re.findall(r"(?<!\\S)[(“]?[A-Za-z]{2,}", text)) > 2 and not text.startswith(
        "sememe "
    )


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield comments, those on neighboring lines as one."""
    block: list[str] = []
    begun = last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not re.match(r"#\s*(noqa|type:|fmt:)", token.string):
            if block and token.start[0] != last + 1:
                yield begun, " ".join(block)
                block = []
            begun = begun if block else token.start[0]
            last = token.start[0]
            block.append(token.string.lstrip("# "))
    if block:
        yield begun, " ".join(block)


def read_passages(root: Path) -> Iterator[Passage]:
    """Yield the prose of a tree."""
    pages = [("readme", root / "README.md"), ("readme_zh", root / "README.zh-CN.md")]
    pages += [("docs", path) for path in sorted((root / "docs").rglob("*.md"))]
    pages = [page for page in pages if page[1].name != "commands.md"]  # made from the help texts
    for group, path in pages:
        if path.suffix == ".md" and ".zh" in path.name:
            group = "readme_zh"
        for line, text in _markdown(path):
            yield Passage(group, str(path.relative_to(root)), line, text)
    for path in sorted((root / "src").rglob("*.py")):
        source, name = path.read_text(encoding="utf-8"), str(path.relative_to(root))
        for group, line, text in _strings(ast.parse(source), "messages"):
            if group != "messages" or _is_sentence(text):
                yield Passage(group, name, line, text)
        for line, text in _comments(source):
            yield Passage("comments", name, line, text)


def sentences_of(text: str) -> list[int]:
    """The numbers of words of a text's sentences; those of one or two words are no sentences."""
    text = re.sub(r"`[^`]*`|\]\([^)]*\)", " x ", text)
    parts = re.split(r"(?<=[.!?])[\"')*]*\s+|\n\s*\n", text)
    lengths = [len(re.findall(r"[^\W_][\w'’.,/%-]*", part)) for part in parts]
    return [length for length in lengths if length > 2]


def measure(root: Path) -> dict[str, dict[str, float]]:
    """Measure the prose of a tree, by group."""
    dialect = read_dialect()
    passages = list(read_passages(root))
    measured: dict[str, dict[str, float]] = {}
    for group in GROUPS:
        own = [passage for passage in passages if passage.group == group]
        seen: dict[str, float] = {"passages": len(own)}
        if group != "readme_zh":  # Chinese words are not between blanks
            lengths = [length for passage in own for length in sentences_of(passage.text)]
            long = sum(length > NUM_LONG_WORDS for length in lengths)
            seen["sentences"] = len(lengths)
            seen["words per sentence"] = round(sum(lengths) / max(len(lengths), 1), 1)
            seen["% over 25 words"] = round(100 * long / max(len(lengths), 1), 1)
        if group in ("readme", "readme_zh", "docs"):
            pages = [(root / path).read_text(encoding="utf-8") for path in {x.path for x in own}]
            prose = "\n".join(re.sub(r"(?ms)^ *```.*?^ *```", "", page) for page in pages)
            too_long = [len(line) > NUM_LONG_CHARACTERS for line in prose.splitlines()
                        if not line.startswith("|")]  # fmt: skip
            seen["lines over 100 characters"] = sum(too_long)
        seen["dialect words"] = sum(1 for one in own for _ in dialect_in(one, dialect))
        measured[group] = seen
    return measured


def _print_table(measured: dict[str, dict[str, Any]]) -> None:
    columns = list(dict.fromkeys(name for seen in measured.values() for name in seen))
    print("| group | " + " | ".join(columns) + " |")
    print("| --- |" + " ---: |" * len(columns))
    for group, seen in measured.items():
        cells = [str(seen.get(column, "–")) for column in columns]
        print(f"| {group} | " + " | ".join(cells) + " |")


def compare(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> None:
    """Print two trees' metrics as "before → after"."""
    both = {
        group: {name: f"{before[group][name]} → {value}" for name, value in seen.items()}
        for group, seen in after.items()
    }
    _print_table(both)


def _print_names(root: Path, groups: list[str]) -> None:
    dialect = read_dialect()
    for passage in read_passages(root):
        if passage.group in groups:
            for found, replacement in dialect_in(passage, dialect):
                print(f"{passage.path}:{passage.line}: {found} → {replacement}")


def main() -> None:
    """Measure a tree, or compare it with what was measured before."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, default=ROOT, help="root of the tree to measure")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--compare", type=Path, help="JSON file measured before")
    parser.add_argument("--names", nargs="*", choices=GROUPS, help="list the dialect words")
    arguments = parser.parse_args()
    if arguments.names is not None:
        _print_names(arguments.source, arguments.names or list(GROUPS))
        return
    measured = measure(arguments.source)
    if arguments.json:
        json.dump(measured, sys.stdout, indent=1)
        print()
    elif arguments.compare:
        compare(json.loads(arguments.compare.read_text(encoding="utf-8")), measured)
    else:
        _print_table(measured)


if __name__ == "__main__":
    main()
