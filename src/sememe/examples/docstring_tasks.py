"""Four labelled tasks generated from the built-in corpus.

    packages (classify)   which package wrote this docstring?
    summaries (pairs)     does this summary belong to this body?
    parameters (tag)      which words name parameters, and which their types?
    types (answer)        what type is this parameter?

Docstrings are split by module. What would give the answer away is removed: package names,
signatures and the layout of parameter sections; so are held-out rows that repeat training rows.

`docstring_pairs` has no labels: it gives each summary with its own body, to train and to evaluate
retrieval.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from sememe.errors import ArtifactError, InputError, OptionError, WriteError
from sememe.examples.labelled.rows import AnswerRow, AnswerSpan, LabelledRows, TagRow, TextRow
from sememe.machine import cache_dir
from sememe.storage.folder import read_text, write_text
from sememe.text import library
from sememe.text.docstrings import Parameter, parameters, prose

Split = Literal["train", "dev", "test"]
SPLITS = ("train", "dev", "test")

# Increased when other parts are taken from the same docstrings.
_RULES_VERSION = 1
_HELD_OUT = {"dev": 10, "test": 10}  # of 100 modules
OnFile = Callable[[int, int], None]


class Docstring(NamedTuple):
    """One docstring: its source, its prose (one paragraph per line), its parameters."""

    package: str
    module: str
    text: str
    parameters: tuple[Parameter, ...]

    @property
    def split(self) -> Split:
        """The split of its module: docstrings of one module resemble each other."""
        return split_of(self.module)

    @property
    def summary(self) -> str:
        """The first paragraph."""
        return self.text.partition("\n")[0]

    @property
    def body(self) -> str:
        """All that follows the summary, as one paragraph."""
        return self.text.partition("\n")[2].replace("\n", " ")


def draw(text: str) -> int:
    """A pseudo-random number that depends only on `text`."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def split_of(module: str) -> Split:
    """The split of a module, determined by its name."""
    place = draw(module) % 100
    if place < _HELD_OUT["test"]:
        return "test"
    return "dev" if place < _HELD_OUT["test"] + _HELD_OUT["dev"] else "train"


def collect(
    packages: Sequence[str] | None = None, on_file: OnFile | None = None
) -> list[Docstring]:
    """Every docstring of the corpus, or of some packages; from the cache, or read now."""
    path = _cache_path(packages)
    if path.exists():
        with suppress(ArtifactError, TypeError, ValueError):  # a damaged copy is made again
            checksum, _, content = read_text(path).partition("\n")
            if checksum == _checksum(content):
                return [_restored(kept) for kept in json.loads(content)]
    found = _read(packages, on_file)
    if not found:
        raise InputError("The built-in corpus is empty: no source of the packages could be read.")
    with suppress(WriteError):  # without a cache it is only slower
        content = json.dumps(found, ensure_ascii=False)
        write_text(path, f"{_checksum(content)}\n{content}")
    return found


def _checksum(content: str) -> str:
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


def _read(packages: Sequence[str] | None, on_file: OnFile | None) -> list[Docstring]:
    found: dict[str, Docstring] = {}
    with library.collector_off():
        for docstring, label in library.sources(packages, on_file):
            package, _, module = label.partition(" ")
            # Surrogates in other people's strings could not be written to a file.
            docstring = docstring.encode("utf-8", "replace").decode("utf-8")
            text = prose(docstring)
            if len(text) >= library.SHORTEST_DOCUMENT and text not in found:
                found[text] = Docstring(package, module, text, tuple(parameters(docstring)))
    return list(found.values())


def _restored(kept: list) -> Docstring:
    package, module, text, described = kept
    own = tuple(Parameter(tuple(names), type_, about) for names, type_, about in described)
    return Docstring(package, module, text, own)


def _cache_path(packages: Sequence[str] | None) -> Path:
    told = {**library.versions(), "parts": str(_RULES_VERSION), "only": ",".join(packages or ())}
    key = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=8)
    return cache_dir() / "library" / f"{key.hexdigest()}-docstrings.json"


_FEWEST_WORDS, _MOST_WORDS = 8, 48
_FEWEST_ROWS = 500  # minimum number of training docstrings of a package
# Names that are English words, and what packages are called beside their names.
_WORDS = ("rich", "click", "regex", "typer", "tokenizers")
_ALIASES = ("np", "mpl", "plt", "pyplot", "pylab", "nx", "jinja", "sp")
_NAMES = [own for own in (library.STANDARD, *library.PACKAGES) if own not in _WORDS]
_GIVEAWAY = re.compile(rf"{'|'.join(_NAMES)}|\b(?:{'|'.join(_WORDS + _ALIASES)})\b", re.IGNORECASE)


def hide_names(text: str) -> str:
    """Remove every word that contains the name of a package."""
    if not _GIVEAWAY.search(text):
        return text
    return " ".join(word for word in text.split() if not _GIVEAWAY.search(word))


def classes(trained: Iterable[Docstring]) -> frozenset[str]:
    """The packages with enough training docstrings."""
    found = Counter(docstring.package for docstring in trained if _first_words(docstring.text))
    return frozenset(package for package, count in found.items() if count >= _FEWEST_ROWS)


def package_rows(docstrings: Iterable[Docstring], labels: frozenset[str]) -> list[TextRow]:
    """Docstrings with their package as label, equally many of each package."""
    by_package: dict[str, list[TextRow]] = {label: [] for label in sorted(labels)}
    for docstring in docstrings:
        if docstring.package in labels and (text := _first_words(docstring.text)):
            source = f"{docstring.package} {docstring.module}"
            row = TextRow(text=text, label=docstring.package, source=source)
            by_package[docstring.package].append(row)
    num_each = min(map(len, by_package.values()), default=0)
    ranked = (sorted(rows, key=lambda row: draw(row.text)) for rows in by_package.values())
    return [row for rows in ranked for row in rows[:num_each]]


@lru_cache(maxsize=1 << 17)  # the rows of every split request those that are trained on again
def _first_words(prose: str) -> str:
    """The first words of a docstring without package names; "" if there are too few."""
    words = " ".join(prose.split(maxsplit=2 * _MOST_WORDS)[: 2 * _MOST_WORDS])
    kept = hide_names(words).split()[:_MOST_WORDS]
    return " ".join(kept) if len(kept) >= _FEWEST_WORDS else ""


YES, NO = "same", "other"
_FEWEST_PAIR_WORDS = (4, 12)  # of a summary, of a body
_MOST_PAIR_WORDS = 32
# A first line such as "nbdtrik(y, n, p, out=None)" is a signature and no summary.
_SIGNATURE = re.compile(r"[\w.]+\(")


def summary_rows(docstrings: Iterable[Docstring]) -> list[TextRow]:
    """Pairs of a summary and a body, labelled `same` or `other`."""
    groups: dict[tuple[str, str], list[Docstring]] = defaultdict(list)
    for docstring in docstrings:
        if _is_usable(docstring):
            groups[docstring.package, docstring.split].append(docstring)
    rows: list[TextRow] = []
    for group in groups.values():
        group.sort(key=lambda docstring: draw(docstring.text))
        half = len(group) // 2
        rows += [_row(own, own, YES) for own in group[:half]]
        others = group[half:]
        if len(others) > 1:
            rows += [
                _row(own, other, NO)
                for own, other in zip(others, others[1:] + others[:1], strict=True)
            ]
    return rows


def _is_usable(docstring: Docstring) -> bool:
    sizes = (len(part.split()) for part in (docstring.summary, docstring.body))
    is_long = all(size >= fewest for size, fewest in zip(sizes, _FEWEST_PAIR_WORDS, strict=True))
    return is_long and not _SIGNATURE.match(docstring.summary)


def _row(own: Docstring, other: Docstring, label: str) -> TextRow:
    return TextRow(
        text=_cut(own.summary),
        second=_cut(other.body),
        label=label,
        source=f"{own.package} {own.module}",
    )


def _cut(text: str) -> str:
    return " ".join(text.split()[:_MOST_PAIR_WORDS])


ORDERS = (("name", "type", "text"), ("type", "name", "text"), ("name", "text", "type"))
# Where an entry has each part, and the tags of its first and of its other words.
_PARTS = {
    "name": ("names", ("B-NAME", "B-NAME")),
    "type": ("type_words", ("B-TYPE", "I-TYPE")),
    "text": ("text_words", ("O", "O")),
}
_MOST_PASSAGE_WORDS = 48  # of a row
_MOST_TYPE_WORDS, _MOST_TEXT_WORDS = 8, 16
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_WORD = re.compile(r"\w+(?:'\w+)*")


class Entry(NamedTuple):
    """A parameter as lower-case words without punctuation."""

    names: tuple[str, ...]
    type_words: tuple[str, ...]
    text_words: tuple[str, ...]

    @property
    def num_words(self) -> int:
        """Words in all."""
        return len(self.names) + len(self.type_words) + len(self.text_words)


class Passage(NamedTuple):
    """Some entries as running words with tags, and the position of each name's type."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    types: dict[str, tuple[int, int] | None]  # name: first word and the one after the last
    source: str

    @property
    def text(self) -> str:
        """The words with spaces between."""
        return " ".join(self.words)

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each word starts in the text."""
        return tuple(accumulate((len(word) + 1 for word in self.words[:-1]), initial=0))


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def entries(docstring: Docstring) -> list[Entry]:
    """The parameters of a docstring as words; only the first sentence of each description."""
    found = []
    for parameter in docstring.parameters:
        first = _SENTENCE_END.split(parameter.text.replace("\n", " "))[0]
        type_words = _words(parameter.type)
        if len(type_words) <= _MOST_TYPE_WORDS and bool(type_words) == bool(parameter.type):
            names = tuple(name.lower() for name in parameter.names)
            found.append(Entry(names, type_words, _words(first)[:_MOST_TEXT_WORDS]))
    return found


def passages(docstrings: Iterable[Docstring]) -> list[Passage]:
    """Sequences of at least two parameters of each docstring, without duplicates."""
    found: dict[str, Passage] = {}
    for docstring in docstrings:
        order = ORDERS[draw(docstring.text) % len(ORDERS)]
        source = f"{docstring.package} {docstring.module}"
        for run in _runs(entries(docstring)):
            passage = _passage(run, order, source)
            if passage is not None:
                found.setdefault(passage.text, passage)
    return list(found.values())


def _runs(own: list[Entry]) -> Iterator[list[Entry]]:
    run: list[Entry] = []
    for entry in own:
        if sum(kept.num_words for kept in run) + entry.num_words > _MOST_PASSAGE_WORDS:
            yield run
            run = []
        run.append(entry)
    yield run


def _passage(run: list[Entry], order: tuple[str, ...], source: str) -> Passage | None:
    names = [name for entry in run for name in entry.names]
    # Without a text or a type beside them, names are a list of words and nothing can be told.
    is_told = all(entry.type_words or entry.text_words for entry in run)
    if len(run) < 2 or len(set(names)) < len(names) or not is_told:
        return None
    words: list[str] = []
    tags: list[str] = []
    types: dict[str, tuple[int, int] | None] = {}
    for entry in run:
        for part in order:
            if part == "type" and entry.type_words:
                place = (len(words), len(words) + len(entry.type_words))
                types |= dict.fromkeys(entry.names, place)
            own, (first, rest) = getattr(entry, _PARTS[part][0]), _PARTS[part][1]
            words += own
            tags += [rest if index else first for index in range(len(own))]
        for name in entry.names:
            types.setdefault(name, None)
    return Passage(tuple(words), tuple(tags), types, source)


def tag_rows(found: Iterable[Passage]) -> list[TagRow]:
    """Passages with the tags of their words."""
    return [
        TagRow(
            words=own.words,
            tags=own.tags,
            source=own.source,
            text=own.text,
            starts=own.starts,
            ends=tuple(
                start + len(word) for start, word in zip(own.starts, own.words, strict=True)
            ),
        )
        for own in found
    ]


def answer_rows(found: Iterable[Passage]) -> list[AnswerRow]:
    """A question for each name of each passage; without a type it has no answer."""
    rows = []
    for own in found:
        starts = own.starts
        for name, place in own.types.items():
            answers: tuple[AnswerSpan, ...] = ()
            if place is not None:
                answers = (AnswerSpan(" ".join(own.words[place[0] : place[1]]), starts[place[0]]),)
            rows.append(
                AnswerRow(
                    id=f"{draw(own.text):016x}-{name}",
                    question=f"What type is {name}?",
                    context=own.text,
                    answers=answers,
                    is_impossible=not answers,
                    source=own.source,
                )
            )
    return rows


_SHINGLE_SIZE = 6  # words
_SHARE = 1 / 3
_SHINGLE_WORD = re.compile(r"\w+")

Row = TypeVar("Row")


def shingles(text: str) -> list[str]:
    """Every sequence of six words of a text; a shorter text is one sequence."""
    words = _SHINGLE_WORD.findall(text.lower())
    num_runs = max(1, len(words) - _SHINGLE_SIZE + 1)
    return [" ".join(words[first : first + _SHINGLE_SIZE]) for first in range(num_runs)]


def without_repeats(
    rows: Iterable[Row],
    trained: Iterable[str],
    text_of: Callable[[Row], str],
    *,
    is_each_new: bool = False,
) -> list[Row]:
    """The rows of which at most a third is in the training texts; `is_each_new`: or in others."""
    known = {run for text in trained for run in shingles(text)}
    kept = []
    for row in rows:
        own = shingles(text_of(row))
        if sum(run in known for run in own) <= _SHARE * len(own):
            kept.append(row)
            if is_each_new:
                known.update(own)
    return kept


# The name of each task, and the kind of rows that it has.
NAMES = {"packages": "classify", "summaries": "pairs", "parameters": "tag", "types": "answer"}


def docstring_rows(
    name: str,
    split: Split = "train",
    *,
    limit: int | None = None,
    packages: Sequence[str] | None = None,
    on_file: OnFile | None = None,
) -> LabelledRows[Any]:
    """The rows of a task generated from the built-in corpus, or from some of its packages.

    Each module is in one split only, and rows that repeat training rows are removed from the
    others.
    """
    if name not in NAMES:
        raise OptionError(f"The built-in tasks are {', '.join(NAMES)}; there is no {name!r}.")
    _check(split, limit)
    docstrings = _collected(None if packages is None else tuple(packages), on_file)
    rows = _made(name, docstrings, "train")
    if split != "train":
        trained = map(_all_text, rows)
        rows = without_repeats(_made(name, docstrings, split), trained, _all_text)
    if not rows:
        raise InputError(f"The packages hold no docstrings for the {split} rows of {name}.")
    rows.sort(key=lambda row: draw(_all_text(row)))
    return LabelledRows(rows[:limit])


def _check(split: str, limit: int | None) -> None:
    if split not in SPLITS:
        raise OptionError(f"The splits are {', '.join(SPLITS)}; there is no {split!r}.")
    if limit is not None and limit < 1:
        raise OptionError(f"limit must be at least 1, not {limit}.")


def docstring_texts(
    split: Split = "train", *, packages: Sequence[str] | None = None, on_file: OnFile | None = None
) -> list[str]:
    """The prose of a split's docstrings, to pre-train on text without held-out rows."""
    docstrings = _collected(None if packages is None else tuple(packages), on_file)
    return [docstring.text for docstring in docstrings if docstring.split == split]


_MOST_BODY_WORDS = 256


def docstring_pairs(
    split: Split = "train",
    *,
    limit: int | None = None,
    packages: Sequence[str] | None = None,
    on_file: OnFile | None = None,
) -> LabelledRows[TextRow]:
    """Summaries (`text`) with their bodies (`second`): train on them, or retrieve the body.

    No body contains its summary and no pair occurs twice. In dev and test, at most a third of a
    body is in the training texts (`docstring_texts`) or in another body, so that each summary has
    one right body, which no training has seen.
    """
    _check(split, limit)
    docstrings = _collected(None if packages is None else tuple(packages), on_file)
    rows = _pairs(docstrings, split)
    if split != "train":
        trained = (own.text for own in docstrings if own.split == "train")
        rows = without_repeats(rows, trained, _second, is_each_new=True)
    if not rows:
        raise InputError(f"The packages hold no docstrings for the {split} pairs.")
    return LabelledRows(rows[:limit])


def _pairs(docstrings: list[Docstring], split: Split) -> list[TextRow]:
    found: dict[tuple[str, str], TextRow] = {}
    for own in docstrings:
        if own.split == split and _is_usable(own):
            body = " ".join(own.body.split()[:_MOST_BODY_WORDS])
            key = (_plain(own.summary), _plain(body))
            if key[0] not in key[1]:
                source = f"{own.package} {own.module}"
                found.setdefault(key, TextRow(text=own.summary, second=body, source=source))
    return sorted(found.values(), key=lambda row: draw(_all_text(row)))


def _plain(text: str) -> str:
    """The words alone: neither case nor punctuation makes a repetition another text."""
    return f" {' '.join(_SHINGLE_WORD.findall(text.lower()))} "


def _second(row: TextRow) -> str:
    return row.second or ""


@lru_cache(maxsize=1)
def _collected(packages: tuple[str, ...] | None, on_file: OnFile | None) -> list[Docstring]:
    return collect(packages, on_file)


def _made(name: str, docstrings: list[Docstring], split: Split) -> list[Any]:
    own = [docstring for docstring in docstrings if docstring.split == split]
    if name == "packages":
        trained = (docstring for docstring in docstrings if docstring.split == "train")
        return package_rows(own, classes(trained))
    if name == "summaries":
        return summary_rows(own)
    found = passages(own)
    return list(tag_rows(found)) if name == "parameters" else list(answer_rows(found))


def _all_text(row: Any) -> str:
    """What two rows must not share: all that a model sees of them."""
    parts = (getattr(row, part, None) for part in ("text", "second", "question", "context"))
    return "\n".join(part for part in parts if part)
