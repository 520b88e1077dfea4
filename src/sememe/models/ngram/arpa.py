"""ARPA files: what KenLM, SRILM and other language-model programs exchange.

After a header with the number of n-grams of each length come sections of lines: the log10 of the
probability, the words, and (but for the longest) the log10 of the back-off weight.
"""

import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from sememe.errors import ArtifactError, OptionError
from sememe.models.ngram.trie import NEVER, NGramTrie
from sememe.progress import Reporter
from sememe.storage.folder import write_file
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.formats.files import STREAM_ERRORS, open_for_reading, open_for_writing

UNKNOWN, END, BEGIN = b"<unk>", b"</s>", b"<s>"
_LINES = 1 << 16
_MOST_DIGITS = 15  # of a number of n-grams


def write_arpa(path: Path, vocabulary: Vocabulary, trie: NGramTrie, progress: Reporter) -> None:
    """Write the model atomically."""
    words = [word.encode() for word in vocabulary]
    if broken := next((word for word in words if len(word.split()) != 1), None):
        raise OptionError(
            f"An ARPA file separates words by spaces: it cannot hold “{broken.decode()}”."
        )
    names = [*words, UNKNOWN, END, BEGIN]
    with write_file(path) as scratch, open_for_writing(scratch) as file:
        sizes = "\n".join(f"ngram {k}={num}" for k, num in enumerate(trie.sizes, start=1))
        file.write(f"\\data\\\n{sizes}\n\n".encode())
        with progress.task("writing", len(trie.words), "n-grams") as task:
            for length in range(1, trie.order + 1):
                file.write(f"\\{length}-grams:\n".encode())
                first = int(trie.level_ends[length - 2]) if length > 1 else 0
                for start in range(first, int(trie.level_ends[length - 1]), _LINES):
                    end = min(start + _LINES, int(trie.level_ends[length - 1]))
                    file.write(b"".join(_lines(trie, names, length, start, end)))
                    task.update(end)
                file.write(b"\n")
        file.write(b"\\end\\\n")


def _lines(
    trie: NGramTrie, names: list[bytes], length: int, start: int, end: int
) -> Iterator[bytes]:
    probs = trie.probs[start:end].tolist()
    weights = [b"\n"] * len(probs)  # the longest have none
    if length < trie.order:
        weights = [b"\t%.7g\n" % backoff for backoff in trie.backoffs[start:end].tolist()]
    rows = trie.ngrams(length, start, end).tolist()
    for prob, row, weight in zip(probs, rows, weights, strict=True):
        yield b"%.7g\t%s%s" % (prob, b" ".join([names[one] for one in row]), weight)


def _log10(field: bytes) -> float:
    """A logarithm from a file; that of zero may be written as minus infinity."""
    number = float(field)
    if not number < math.inf:
        raise ValueError(f"{number} is not a log probability")
    return max(number, NEVER) if math.isinf(number) else number


class Section:
    """The n-grams of one length as they are in the file."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.ids, self.probs, self.backoffs = array("I"), array("f"), array("f")

    @property
    def rows(self) -> np.ndarray:
        """The ids, (n-grams, length)."""
        return np.frombuffer(self.ids, np.uint32).reshape(-1, self.length).astype(np.int64)


def read_arpa(path: Path) -> tuple[list[str], NGramTrie]:
    """Read the words, most likely first, and the tree; decompresses .gz and the like."""
    try:
        with open_for_reading(path) as file:
            return _ArpaReader(path, file).read()
    except FileNotFoundError:
        raise ArtifactError(f"{path} does not exist.") from None
    except STREAM_ERRORS as error:
        raise ArtifactError(f"{path} cannot be read: {error}.") from error


class _ArpaReader:
    """Reads one file line by line, and knows the line number."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file, self.number = path, file, 0
        self.names: dict[bytes, int] = {}

    def fail(self, what: str) -> NoReturn:
        raise ArtifactError(f"{self.path}, line {self.number:,}: {what}.")

    def lines(self) -> Iterator[bytes]:
        """The lines that are not empty."""
        for line in self.file:
            self.number += 1
            if line := line.strip():
                yield line

    def read(self) -> tuple[list[str], NGramTrie]:
        lines = self.lines()
        sizes = self._header(lines)
        sections = []
        for length, size in enumerate(sizes, start=1):
            section = self._section(lines, length, size)
            sections.append(self._sorted_words(section) if length == 1 else section)
        if next(lines, None) != b"\\end\\":
            self.fail("there must be \\end\\ after the last section")
        try:
            words = [name.decode() for name in list(self.names)[:-3]]
        except UnicodeDecodeError as error:
            raise ArtifactError(f"{self.path} is not in UTF-8: {error}.") from error
        return words, self._tree(sections)

    def _header(self, lines: Iterator[bytes]) -> list[int]:
        if not any(line == b"\\data\\" for line in lines):
            raise ArtifactError(f"{self.path} is not an ARPA file: it has no line \\data\\.")
        sizes: list[int] = []
        for line in lines:
            if line == b"\\1-grams:":
                break
            name, _, size = line.partition(b"=")
            if (
                name.split() != [b"ngram", str(len(sizes) + 1).encode()]
                or not size.strip().isdigit()
                or len(size) > _MOST_DIGITS
            ):
                self.fail(f"“ngram {len(sizes) + 1}=…” was expected")
            sizes.append(int(size))
        if not sizes:
            self.fail("the header names no n-grams")
        return sizes

    def _section(self, lines: Iterator[bytes], length: int, size: int) -> Section:
        if length > 1 and next(lines, b"") != f"\\{length}-grams:".encode():
            self.fail(f"\\{length}-grams: was expected")
        section, names = Section(length), self.names
        for _ in range(size):
            parts = next(lines, b"").split()
            if len(parts) not in (length + 1, length + 2):
                self.fail(f"a probability, {length} words and perhaps a weight were expected")
            own = parts[1 : length + 1]
            if length == 1:
                name = UNKNOWN if own[0] == b"<UNK>" else own[0]
                if names.setdefault(name, len(names)) != len(names) - 1:
                    self.fail(f"the word {name.decode(errors='replace')} is there already")
                own = [name]
            try:
                section.ids.extend([names[word] for word in own])
                section.probs.append(_log10(parts[0]))
                section.backoffs.append(_log10(parts[-1]) if len(parts) > length + 1 else 0.0)
            except KeyError as error:
                self.fail(f"the word {error} is not among the words alone")
            except ValueError:
                self.fail("a number was expected")
        return section

    def _sorted_words(self, section: Section) -> Section:
        """Renumber the words: most likely first, <unk>, </s> and <s> last."""
        probs = dict(
            zip(self.names, zip(section.probs, section.backoffs, strict=True), strict=True)
        )
        special = {name: probs.pop(name, (NEVER, 0.0)) for name in (UNKNOWN, END, BEGIN)}
        order = sorted(probs, key=lambda name: -probs[name][0])
        self.names = {name: index for index, name in enumerate([*order, *special])}
        found = Section(1)
        for name in self.names:
            prob, backoff = special[name] if name in special else probs[name]
            found.probs.append(NEVER if name == BEGIN else prob)
            found.backoffs.append(backoff)
        found.ids.extend(range(len(self.names)))
        return found

    def _tree(self, sections: list[Section]) -> NGramTrie:
        """Sort every section and find each n-gram's place below the one without its last word."""
        num_ids = len(self.names)
        keys = [np.arange(num_ids)]
        ends = [num_ids]
        arrays: dict[str, list[np.ndarray]] = {
            "words": [],
            "probs": [],
            "backoffs": [],
            "starts": [],
        }
        parents = np.zeros(num_ids, np.int64)
        for section in sections:
            rows = section.rows
            if section.length > 1:
                parents = rows[:, 0]
                for depth in range(1, section.length - 1):
                    parents = self._places(keys[depth], parents * num_ids + rows[:, depth], rows)
                own = parents * num_ids + rows[:, -1]
                order = np.argsort(own, kind="stable")
                keys.append(own[order])
                if len(own) and np.any(np.diff(keys[-1]) == 0):
                    raise ArtifactError(f"{self.path} has an n-gram twice.")
                edges = np.searchsorted(
                    parents[order], np.arange(ends[-1] - (ends[-2] if len(ends) > 1 else 0))
                )
                arrays["starts"].append((edges + ends[-1]).astype(np.uint32))
                ends.append(ends[-1] + len(own))
            else:
                order = np.arange(num_ids)
            arrays["words"].append(rows[order, -1].astype(np.uint32))
            arrays["probs"].append(np.frombuffer(section.probs, np.float32)[order])
            if section.length < len(sections):
                arrays["backoffs"].append(np.frombuffer(section.backoffs, np.float32)[order])
        arrays["starts"].append(np.array([ends[-1]], np.uint32))
        arrays["backoffs"].append(np.empty(0, np.float32))
        joined = {name: np.concatenate(parts) for name, parts in arrays.items()}
        return NGramTrie(**joined, level_ends=np.array(ends, np.int64))

    def _places(self, keys: np.ndarray, wanted: np.ndarray, rows: np.ndarray) -> np.ndarray:
        places = np.searchsorted(keys, wanted)
        is_there = places < len(keys)
        is_there[is_there] = keys[places[is_there]] == wanted[is_there]
        if not is_there.all():
            names = list(self.names)
            row = rows[np.argmin(is_there)]
            shown = b" ".join(names[one] for one in row).decode(errors="replace")
            raise ArtifactError(
                f"{self.path}: the n-gram “{shown}” lacks the one without its last word."
            )
        return places
