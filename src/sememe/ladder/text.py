"""The one reading of a corpus: documents split into training and held-out text, words, sub-words.

A corpus in; a folder out with train.jsonl, heldout.jsonl and a text.json that tells of them. Every
model learns from train.jsonl alone; its words and its sub-words are made from there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.errors import InputError
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import read_json, write_file, write_folder, write_json
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore, open_or_build

if TYPE_CHECKING:
    from sememe.tokens.subword_config import Kind
    from sememe.tokens.subword_store import SubwordStore
    from sememe.tokens.subwords import SubwordTokenizer

BUILT_IN = "docstrings of the installed Python packages"
# Those whose sources are read in seconds, for the smallest budgets.
FEW_PACKAGES = ("python", "scipy", "matplotlib", "sympy")
TRAIN, HELDOUT, FACTS = "train.jsonl", "heldout.jsonl", "text.json"
_HELDOUT_WORDS = 60_000
_SHARES = (0.02, 0.1)  # of the documents, at least and at most
_FEWEST_DOCUMENTS = 20
_SENTENCES_A_PIECE = 20
# Bytes of a word with what stands around it, and how much smaller packed files are.
_BYTES_A_WORD = 6
_PACKED = {".gz": 3, ".bz2": 4, ".xz": 4, ".zst": 3}


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
        """The documents that are trained on, a JSON object a line."""
        return self.folder / TRAIN

    @property
    def heldout(self) -> Path:
        """The documents that no rung may see before it is asked."""
        return self.folder / HELDOUT

    @cached_property
    def words(self) -> TokenStore:
        """The training text as words."""
        return self._store(self.train, "words")

    @cached_property
    def heldout_words(self) -> TokenStore:
        """The held-out text as words."""
        return self._store(self.heldout, "heldout-words")

    def _store(self, source: Path, name: str) -> TokenStore:
        return open_or_build(source, self.settings, min_count=1, path=self.folder / name)

    def tokenizer(
        self, kind: Kind, vocab_size: int, progress: Reporter = SILENT
    ) -> SubwordTokenizer:
        """The tokenizer of a kind, trained on the training text where there is none yet."""
        from sememe.tokens.subwords import SubwordTokenizer

        place = self.tokenizer_place(kind, vocab_size)
        if not place.exists():
            trained = SubwordTokenizer.train(
                self.train, kind=kind, vocab_size=vocab_size, text=self.settings, progress=progress
            )
            with write_folder(place) as scratch:
                trained.save(scratch)
        return SubwordTokenizer.load(place)

    def tokenizer_place(self, kind: Kind, vocab_size: int) -> Path:
        """Where the tokenizer of a kind lies."""
        return self.folder / f"{kind}-{vocab_size}"

    def subwords(
        self, tokenizer: SubwordTokenizer, vocab_size: int, progress: Reporter = SILENT
    ) -> SubwordStore:
        """The training text in the ids of a tokenizer."""
        from sememe.tokens.subword_store import open_or_build_subwords

        place = self.folder / f"{tokenizer.kind}-{vocab_size}-ids"
        return open_or_build_subwords(
            self.train, tokenizer, text=self.settings, path=place, progress=progress
        )

    def heldout_documents(self) -> Iterator[str]:
        """The held-out documents, one by one."""
        return _documents(self.heldout)

    def train_documents(self) -> Iterator[str]:
        """The training documents, one by one."""
        return _documents(self.train)


def _documents(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


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
    """Read a corpus once and split it; None is the built-in one; take what a run before left.

    Of a longer text, documents of about `max_words` words are drawn.
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
        # What can be read once (a pipe) has no fingerprint: it stays what it was.
        if isinstance(kept, dict) and kept.get("wanted") == wanted:
            return _opened(folder, settings, kept)
    folder.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if is_built_in:
        facts = _write_built_in(folder, max_words, progress)
    else:
        facts = _write(corpus, settings, folder, max_words, seed, progress)
        facts["name"] = name or _name_of(corpus)
    write_json(path, {"wanted": wanted, **facts})
    return _opened(folder, settings, facts)


def _opened(folder: Path, settings: TextSettings, facts: dict[str, Any]) -> LadderText:
    packages = facts.get("packages")
    return LadderText(
        folder=folder, name=facts["name"], split=facts["split"], settings=settings,
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


# ---- the built-in corpus ------------------------------------------------------------------------


def _write_built_in(folder: Path, max_words: int, progress: Reporter) -> dict[str, Any]:
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


_FEW_WORDS = 1_500_000


def _first_words(texts: list[str], max_words: int) -> list[str]:
    """Texts of about so many words, drawn by what they say; their order stays. 0 takes all."""
    if not max_words:
        return texts
    kept, num_words = set(), 0
    for index in sorted(range(len(texts)), key=lambda place: _draw(texts[place])):
        num_words += texts[index].count(" ") + 1
        kept.add(index)
        if num_words >= max_words:
            break
    return [text for index, text in enumerate(texts) if index in kept]


def _draw(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _dump(path: Path, texts: Iterator[str] | list[str]) -> int:
    num = 0
    with write_file(path) as scratch, scratch.open("w", encoding="utf-8") as lines:
        for text in texts:
            lines.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            num += 1
    return num


# ---- other text ---------------------------------------------------------------------------------


def _write(
    corpus: Any, settings: TextSettings, folder: Path, max_words: int, seed: int, progress: Reporter
) -> dict[str, Any]:
    """Split a text by document; one of few documents by runs of sentences."""
    spooled = folder / ".all.jsonl"
    share_kept = _share_kept(corpus, max_words)
    num_bytes = 0

    def kept() -> Iterator[str]:
        nonlocal num_bytes
        with progress.task("reading text", None, "bytes") as task:
            for index, document in enumerate(_read(corpus, settings)):
                if _chance(seed, index) < share_kept and document.strip():
                    num_bytes += len(document.encode("utf-8", "replace"))
                    task.update(num_bytes)
                    yield document

    try:
        num = _dump(spooled, kept())
        if not num:
            raise InputError("There is no text in the corpus: nothing to read.")
        low, high = _SHARES
        share = min(high, max(low, _HELDOUT_WORDS * _BYTES_A_WORD / max(1, num_bytes)))
        what = "document"
        if num < _FEWEST_DOCUMENTS:
            pieces = folder / ".pieces.jsonl"
            num = _dump(pieces, _pieces(_documents(spooled), settings))
            pieces.replace(spooled)
            what = f"run of {_SENTENCES_A_PIECE} sentences"
        if num < 2:
            raise InputError(
                f"The text is too short to hold some of it out: {num} {what}. Give more text."
            )
        counts = _split(spooled, folder, max(2, round(1 / share)))
    finally:
        spooled.unlink(missing_ok=True)
    how = f"by {what}: {share:.0%}, drawn, are never trained on"
    if share_kept < 1:
        how += f"; about {share_kept:.0%} of the corpus was drawn to fit the budget"
    return {"is_built_in": False, "packages": None, "documents": counts, "split": how}


def _share_kept(corpus: Any, max_words: int) -> float:
    """The share of the documents that makes about so many words."""
    total = stream.total_bytes(corpus) if max_words else None
    if not total:
        return 1.0
    names = [corpus] if isinstance(corpus, (str, Path)) else corpus
    packed = [_PACKED.get(Path(name).suffix, 1) for name in names if isinstance(name, (str, Path))]
    return min(1.0, max_words * _BYTES_A_WORD / (total * max(packed, default=1)))


def _chance(seed: int, index: int) -> float:
    return _draw(f"{seed} {index}") / 2**64


def _read(corpus: Any, settings: TextSettings) -> Iterator[str]:
    for batch in stream.read(corpus, settings):
        first = 0
        for end in batch.ends.tolist():
            yield batch.text[first:end].decode("utf-8", "replace")
            first = end


def _pieces(documents: Iterator[str], settings: TextSettings) -> Iterator[str]:
    from sememe.text.boundaries import raw_sentences

    for document in documents:
        sentences = raw_sentences(document, settings)
        for first in range(0, len(sentences), _SENTENCES_A_PIECE):
            yield " ".join(sentences[first : first + _SENTENCES_A_PIECE])


def _split(spooled: Path, folder: Path, every: int) -> dict[str, int]:
    """Write every so-manieth document, by a draw, to the held-out ones; at least one of each."""
    counts = {"train": 0, "heldout": 0}
    with (
        write_file(folder / TRAIN) as train,
        write_file(folder / HELDOUT) as heldout,
        train.open("w", encoding="utf-8") as train_lines,
        heldout.open("w", encoding="utf-8") as heldout_lines,
        spooled.open(encoding="utf-8") as lines,
    ):
        for index, line in enumerate(lines):
            is_held = index == 1 or (index > 1 and _draw(f"held {index}") % every == 0)
            (heldout_lines if is_held else train_lines).write(line)
            counts["heldout" if is_held else "train"] += 1
    return counts


def facts_of(text: LadderText) -> dict[str, Any]:
    """What identifies a text: what it is and how it is read."""
    settings = asdict(text.settings)
    return {"name": text.name, "split": text.split, "settings": settings}
