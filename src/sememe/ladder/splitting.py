"""From a corpus to two files: documents that are trained on, and documents that are held out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sememe.errors import InputError
from sememe.ladder.sentences import sentences_of
from sememe.progress import Reporter
from sememe.storage.folder import write_file
from sememe.text import stream
from sememe.text.documents import find_sources
from sememe.text.settings import TextSettings

BUILT_IN = "docstrings of the installed Python packages"
# Those whose sources are read in seconds, for the smallest budgets.
FEW_PACKAGES = ("python", "scipy", "matplotlib", "sympy")
_FEW_WORDS = 1_500_000
_ALL_WORDS = 2_900_000  # about; to count them all sources would have to be read
TRAIN, HELDOUT = "train.jsonl", "heldout.jsonl"
_HELDOUT_WORDS = 60_000
_SHARES = (0.02, 0.1)  # of the documents, at least and at most
_FEWEST_DOCUMENTS = 20
_SENTENCES_A_PIECE = 20
# Bytes of a word with what stands around it, and how much smaller packed files are.
_BYTES_A_WORD = 6
_PACKED = {".gz": 3, ".bz2": 4, ".xz": 4, ".zst": 3}


Cut = Callable[[str], list[str]]


def documents_of(path: Path) -> Iterator[str]:
    """The documents of one of the files, one by one."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


# ---- the built-in corpus ------------------------------------------------------------------------


def write_built_in(folder: Path, max_words: int, progress: Reporter) -> dict[str, Any]:
    """Split the docstrings by module: no task row that is asked comes from a trained one."""
    from sememe.examples.docstrings import docstring_texts

    packages = FEW_PACKAGES if max_words and max_words < _FEW_WORDS else None
    with progress.task("reading docstrings", None, "files") as task:

        def on_file(num_read: int, num_files: int) -> None:
            task.total = num_files
            task.update(num_read)

        parts = {
            split: docstring_texts(split, packages=packages, on_file=on_file)
            for split in ("train", "dev", "test")
        }
    heldout = parts["dev"] + parts["test"]
    train = _first_words(parts["train"], max_words)
    share = len(heldout) / max(1, len(heldout) + len(parts["train"]))
    heldout = _first_words(heldout, max(_HELDOUT_WORDS, max_words // 10) if max_words else 0)
    counts = {"train": _dump(folder / TRAIN, train), "heldout": _dump(folder / HELDOUT, heldout)}
    return {
        "name": BUILT_IN,
        "is_built_in": True,
        "packages": packages,
        "documents": counts,
        "split": f"by module: {share:.0%} of the docstrings, those of every fifth module or so, "
        "are never trained on",
    }


def _first_words(texts: list[str], max_words: int) -> list[str]:
    """Texts of about so many words, drawn by what they say; their order stays. 0 takes all."""
    if not max_words:
        return texts
    kept, num_words = set(), 0
    for index in sorted(range(len(texts)), key=lambda place: draw(texts[place])):
        num_words += texts[index].count(" ") + 1
        kept.add(index)
        if num_words >= max_words:
            break
    return [text for index, text in enumerate(texts) if index in kept]


def draw(text: str) -> int:
    """A number that looks random and depends on `text` alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _dump(path: Path, texts: Iterator[str] | list[str]) -> int:
    num = 0
    with write_file(path) as scratch, scratch.open("w", encoding="utf-8") as lines:
        for text in texts:
            lines.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            num += 1
    return num


# ---- other text ---------------------------------------------------------------------------------


def write_split(
    corpus: Any, settings: TextSettings, folder: Path, max_words: int, seed: int, progress: Reporter
) -> dict[str, Any]:
    """Split a text by document; one of few documents by runs of sentences."""
    spooled = folder / ".all.jsonl"
    share_kept = _share_kept(corpus, max_words)
    num_bytes, what = 0, "document"

    def kept(cut: Cut | None = None) -> Iterator[str]:
        nonlocal num_bytes
        num_bytes, index = 0, 0
        with progress.task("reading text", None, "bytes") as task:
            for document in _read(corpus, settings):
                for part in [document] if cut is None else cut(document):
                    if _chance(seed, index) < share_kept and part.strip():
                        num_bytes += len(part.encode("utf-8", "replace"))
                        task.update(num_bytes)
                        yield part
                    index += 1

    def pieces(document: str) -> list[str]:
        return _pieces(document, settings)

    try:
        num = _dump(spooled, kept())
        if num < _FEWEST_DOCUMENTS:
            what = f"run of {_SENTENCES_A_PIECE} sentences"
            if share_kept < 1:  # few long documents: none, or too much, may have been drawn
                num = _dump(spooled, kept(pieces))
            else:
                documents = list(documents_of(spooled))
                num = _dump(spooled, (piece for one in documents for piece in pieces(one)))
        if not num:
            raise InputError("There is no text in the corpus: nothing to read.")
        low, high = _SHARES
        share = min(high, max(low, _HELDOUT_WORDS * _BYTES_A_WORD / max(1, num_bytes)))
        counts = _split(spooled, folder, max(2, round(1 / share)))
    finally:
        spooled.unlink(missing_ok=True)
    if not counts["heldout"]:
        raise InputError(
            "The text is too short, or repeats itself too much, to hold some of it out: give more."
        )
    how = f"by {what}: {share:.0%}, drawn, are never trained on"
    if share_kept < 1:
        how += f"; about {share_kept:.0%} of the corpus was drawn to fit the budget"
    return {"is_built_in": False, "packages": None, "documents": counts, "split": how}


def _share_kept(corpus: Any, max_words: int) -> float:
    """The share of the documents that makes about so many words."""
    num_words = words_in(corpus) if max_words else None
    return min(1.0, max_words / num_words) if num_words else 1.0


def words_in(corpus: Any) -> int | None:
    """About how many words there are, by the sizes of files, packed or not; None: not known."""
    if corpus is None:
        return _ALL_WORDS
    num_bytes = stream.total_bytes(corpus)
    names = [corpus] if isinstance(corpus, (str, Path)) else corpus
    if num_bytes is not None and isinstance(names, (list, tuple)):
        paths = [source.path for source in find_sources(names) if isinstance(source.path, Path)]
        num_bytes = sum(path.stat().st_size * _PACKED.get(path.suffix, 1) for path in paths)
    return None if num_bytes is None else num_bytes // _BYTES_A_WORD


def _chance(seed: int, index: int) -> float:
    return draw(f"{seed} {index}") / 2**64


def _read(corpus: Any, settings: TextSettings) -> Iterator[str]:
    for batch in stream.read(corpus, settings):
        first = 0
        for end in batch.ends.tolist():
            yield batch.text[first:end].decode("utf-8", "replace")
            first = end


def _pieces(document: str, settings: TextSettings) -> list[str]:
    sentences = sentences_of(document, settings)
    firsts = range(0, len(sentences), _SENTENCES_A_PIECE)
    return ["".join(sentences[first : first + _SENTENCES_A_PIECE]) for first in firsts]


def _split(spooled: Path, folder: Path, every: int) -> dict[str, int]:
    """Write every so-manieth document, drawn by what it says, to the held-out ones.

    The same document twice is on one side twice: what is held out was never trained on.
    """
    counts = {"train": 0, "heldout": 0}
    first, chosen = _first_two(spooled)
    with (
        write_file(folder / TRAIN) as train,
        write_file(folder / HELDOUT) as heldout,
        train.open("w", encoding="utf-8") as train_lines,
        heldout.open("w", encoding="utf-8") as heldout_lines,
        spooled.open(encoding="utf-8") as lines,
    ):
        for line in lines:
            # At least one document is on each side.
            is_held = line == chosen or (line != first and draw(f"held {line}") % every == 0)
            (heldout_lines if is_held else train_lines).write(line)
            counts["heldout" if is_held else "train"] += 1
    return counts


def _first_two(spooled: Path) -> tuple[str, str]:
    """The first two documents that differ; nothing in the place of a second that is not there."""
    with spooled.open(encoding="utf-8") as lines:
        first = next(lines)
        return first, next((line for line in lines if line != first), "")
