"""Read a corpus once: documents split into training and held-out text, words, sub-words.

A corpus in; a folder out with train.jsonl, heldout.jsonl and a text.json that describes them. Every
model is trained only on train.jsonl, from which its words and sub-words are taken.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from sememe.errors import InputError
from sememe.examples.docstring_tasks import docstring_texts, draw
from sememe.ladder.results import Corpus
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import (
    CHECKSUMS,
    read_errors,
    read_json,
    verify,
    write_checksums,
    write_file,
    write_json,
)
from sememe.text import library, stream
from sememe.text.settings import BUILT_IN, TextSettings
from sememe.text.sources import find_sources
from sememe.text.words import sentence_ends
from sememe.tokens.caching import open_or_build
from sememe.tokens.store import TokenStore
from sememe.tokens.subwords.store import SubwordStore, open_or_build_subwords
from sememe.tokens.subwords.tokenizer import Kind, SubwordTokenizer, trained_at


def sentences_of(document: str, settings: TextSettings) -> list[str]:
    """Split a document into sentences, which concatenate to the document."""
    data = document.encode("utf-8", "replace")
    if not data:
        return []
    ends = sentence_ends(data, np.array([len(data)], np.int64), settings).tolist()
    cuts = [0, *(end for end in ends if 0 < end < len(data)), len(data)]
    return [data[first:last].decode("utf-8", "replace") for first, last in pairwise(cuts)]


# Packages whose sources are read in seconds, for the smallest budgets.
FEW_PACKAGES = ("python", "scipy", "matplotlib", "sympy")
_FEW_WORDS = 1_500_000
_ALL_WORDS = 2_900_000  # approximate; an exact count would have to read all sources
TRAIN, HELDOUT = "train.jsonl", "heldout.jsonl"
_HELDOUT_WORDS = 60_000
_SHARES = (0.02, 0.1)  # of the documents, at least and at most
_FEWEST_DOCUMENTS = 20
_SENTENCES_A_PIECE = 20
# Bytes per word including separators, and the compression ratio of packed files.
_BYTES_A_WORD = 6
_PACKED = {".gz": 3, ".bz2": 4, ".xz": 4, ".zst": 3}


def documents_of(path: Path) -> Iterator[str]:
    """The documents of one of the files, one by one."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


# ---- the built-in corpus ------------------------------------------------------------------------


def write_built_in(folder: Path, max_words: int, progress: Reporter) -> dict[str, Any]:
    """Split the docstrings by module: no test row comes from a training module."""
    if told := library.lacking():
        progress.note(told)
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
        "split": f"by module: {share:.0%} of the docstrings, every fifth module, are held out",
    }


def _first_words(texts: list[str], max_words: int) -> list[str]:
    """Texts of about this many words, sampled by a hash; their order stays. 0 takes all."""
    if not max_words:
        return texts
    kept, num_words = set(), 0
    for index in sorted(range(len(texts)), key=lambda place: draw(texts[place])):
        num_words += texts[index].count(" ") + 1
        kept.add(index)
        if num_words >= max_words:
            break
    return [text for index, text in enumerate(texts) if index in kept]


def _dump(path: Path, texts: Iterable[str]) -> int:
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
    """Split a text by document; a text of few documents by runs of sentences."""
    spooled = folder / ".all.jsonl"
    num_words = words_in(corpus) if max_words else None
    share_kept = min(1.0, max_words / num_words) if num_words else 1.0
    num_bytes, what = 0, "document"

    def kept(documents: Iterable[str]) -> Iterator[str]:
        nonlocal num_bytes
        num_bytes = 0
        with progress.task("reading text", None, "bytes") as task:
            for index, part in enumerate(documents):
                if draw(f"{seed} {index}") / 2**64 < share_kept and part.strip():
                    num_bytes += len(part.encode("utf-8", "replace"))
                    task.update(num_bytes)
                    yield part

    def pieces(documents: Iterable[str]) -> Iterator[str]:
        for document in documents:
            sentences = sentences_of(document, settings)
            for first in range(0, len(sentences), _SENTENCES_A_PIECE):
                yield "".join(sentences[first : first + _SENTENCES_A_PIECE])

    try:
        num = _dump(spooled, kept(_read(corpus, settings)))
        if num < _FEWEST_DOCUMENTS:
            what = f"run of {_SENTENCES_A_PIECE} sentences"
            if share_kept < 1:  # few long documents: the sample may be empty or too large
                num = _dump(spooled, kept(pieces(_read(corpus, settings))))
            else:
                num = _dump(spooled, pieces(list(documents_of(spooled))))
        if not num:
            raise InputError("The corpus is empty.")
        low, high = _SHARES
        share = min(high, max(low, _HELDOUT_WORDS * _BYTES_A_WORD / max(1, num_bytes)))
        counts = _split(spooled, folder, max(2, round(1 / share)))
    finally:
        spooled.unlink(missing_ok=True)
    if not counts["heldout"]:
        raise InputError(
            "The corpus is too short or too repetitive to hold out a test set: give more text."
        )
    how = f"by {what}: a random {share:.0%} is held out"
    if share_kept < 1:
        how += f"; a sample of {share_kept:.0%} of the corpus fits the budget"
    return {"is_built_in": False, "packages": None, "documents": counts, "split": how}


def words_in(corpus: Any) -> int | None:
    """The approximate number of words, by file sizes; None if unknown."""
    if corpus is None:
        return _ALL_WORDS
    num_bytes = stream.total_bytes(corpus)
    names = [corpus] if isinstance(corpus, (str, Path)) else corpus
    if num_bytes is not None and isinstance(names, (list, tuple)):
        paths = [own.path for own in find_sources(names) if not isinstance(own.path, str)]
        num_bytes = sum(path.stat().st_size * _PACKED.get(path.suffix, 1) for path in paths)
    return None if num_bytes is None else num_bytes // _BYTES_A_WORD


def _read(corpus: Any, settings: TextSettings) -> Iterator[str]:
    for batch in stream.read(corpus, settings):
        first = 0
        for end in batch.ends.tolist():
            yield batch.text[first:end].decode("utf-8", "replace")
            first = end


def _split(spooled: Path, folder: Path, every: int) -> dict[str, int]:
    """Assign every n-th document, chosen by a hash, to the held-out ones.

    Duplicates end up on the same side, so held-out text was never trained on.
    """
    counts = {"train": 0, "heldout": 0}
    with spooled.open(encoding="utf-8") as lines:  # at least one document is on each side
        first = next(lines)
        chosen = next((line for line in lines if line != first), "")
    with (
        write_file(folder / TRAIN) as train,
        write_file(folder / HELDOUT) as heldout,
        train.open("w", encoding="utf-8") as train_lines,
        heldout.open("w", encoding="utf-8") as heldout_lines,
        spooled.open(encoding="utf-8") as lines,
    ):
        for line in lines:
            is_held = line == chosen or (line != first and draw(f"held {line}") % every == 0)
            (heldout_lines if is_held else train_lines).write(line)
            counts["heldout" if is_held else "train"] += 1
    return counts


FACTS = "text.json"


@dataclass(frozen=True, kw_only=True)
class LadderText:
    """A corpus as every rung reads it."""

    folder: Path
    name: str
    split: str
    settings: TextSettings
    is_built_in: bool = False
    packages: tuple[str, ...] | None = None
    documents: dict[str, int] = field(default_factory=dict)  # of each part

    @property
    def train(self) -> Path:
        """The training documents, one JSON object per line."""
        return self.folder / TRAIN

    @property
    def heldout(self) -> Path:
        """The documents that no rung may see before its evaluation."""
        return self.folder / HELDOUT

    @property
    def names(self) -> list[str]:
        """What the cards of its models say about the text."""
        return [f"{self.name} (the training part of a ladder)"]

    @cached_property
    def words(self) -> TokenStore:
        """The training text as words."""
        store = open_or_build(self.train, self.settings, min_count=1, path=self.folder / "words")
        store.names = self.names
        return store

    @cached_property
    def heldout_words(self) -> TokenStore:
        """The held-out text as words."""
        place = self.folder / "heldout-words"
        return open_or_build(self.heldout, self.settings, min_count=1, path=place)

    def subwords(
        self, kind: Kind, vocab_size: int, progress: Reporter = SILENT
    ) -> tuple[SubwordTokenizer, SubwordStore]:
        """The tokenizer of a kind, trained on the training text, and that text in its ids."""
        place = self.tokenizer_place(kind, vocab_size)
        train = partial(
            SubwordTokenizer.train, self.train, kind=kind, vocab_size=vocab_size,
            text=self.settings, progress=progress,
        )  # fmt: skip
        tokenizer = trained_at(place, train, progress.note)
        store = open_or_build_subwords(
            self.train, tokenizer, text=self.settings, path=Path(f"{place}-ids"), progress=progress
        )
        store.names = self.names
        return tokenizer, store

    def tokenizer_place(self, kind: Kind, vocab_size: int) -> Path:
        """The path of the tokenizer of a kind."""
        return self.folder / f"{kind}-{vocab_size}"

    @property
    def corpus(self) -> Corpus:
        """What the report says about the text."""
        train, heldout = self.words, self.heldout_words
        return Corpus(
            name=self.name,
            language=self.settings.language,
            documents=sum(self.documents.values()),
            words=train.num_tokens + heldout.num_tokens,
            train_documents=self.documents["train"],
            train_words=train.num_tokens,
            heldout_documents=self.documents["heldout"],
            heldout_words=heldout.num_tokens,
            vocabulary=len(train.vocabulary),
            split=self.split,
        )

    def heldout_documents(self) -> Iterator[str]:
        """The held-out documents, shuffled so that the first ones are a sample."""
        return iter(sorted(documents_of(self.heldout), key=draw))


def open_text(
    corpus: Any,
    settings: TextSettings,
    folder: Path,
    *,
    name: str = "",
    max_words: int = 0,
    seed: int = 1,
    progress: Reporter = SILENT,
) -> LadderText:
    """Read a corpus (None: the built-in one) once and split it, or open an earlier split.

    Longer texts are sampled down to about `max_words` words, by document.
    """
    is_built_in = corpus is None
    wanted = {
        "corpus": None if is_built_in else stream.fingerprint(corpus, settings),
        "settings": settings.to_dict(),
        "max_words": max_words,
        "seed": seed,
    }
    wanted = json.loads(json.dumps(wanted))
    path = folder / FACTS
    if path.exists():
        kept = read_json(path)
        # What can be read only once (a pipe) has no fingerprint and counts as unchanged.
        if isinstance(kept, dict) and kept.get("wanted") == wanted:
            verify(folder)  # a damaged text would be compared under the same name
            with read_errors(path):
                return _opened(folder, settings, kept)
    for own in (FACTS, CHECKSUMS):
        (folder / own).unlink(missing_ok=True)
    if is_built_in:
        facts = write_built_in(folder, max_words, progress)
    else:
        facts = write_split(corpus, settings, folder, max_words, seed, progress)
        facts["name"] = name or _name_of(corpus)
    write_json(path, {"wanted": wanted, **facts})
    write_checksums(folder, (TRAIN, HELDOUT, FACTS))
    return _opened(folder, settings, facts)


def _opened(folder: Path, settings: TextSettings, facts: dict[str, Any]) -> LadderText:
    packages = facts.get("packages")
    # The original format no longer matters: the split files are JSON lines in UTF-8.
    plain = TextSettings()
    own = replace(
        settings, layout=plain.layout, columns={}, encoding=plain.encoding,
        errors=plain.errors,
    )  # fmt: skip
    return LadderText(
        folder=folder, name=facts["name"], split=facts["split"], settings=own,
        is_built_in=facts["is_built_in"], documents=facts["documents"],
        packages=None if packages is None else tuple(packages),
    )  # fmt: skip


def _name_of(corpus: Any) -> str:
    if isinstance(corpus, (str, Path)):
        return Path(corpus).name or str(corpus)
    if isinstance(corpus, (list, tuple)) and all(isinstance(one, (str, Path)) for one in corpus):
        names = [Path(one).name if len(str(one)) < 256 else "" for one in corpus[:3]]
        if all(names):
            return ", ".join(names) + (" …" if len(corpus) > 3 else "")
    return "own text"
