"""The one reading of a corpus: documents split into training and held-out text, words, sub-words.

A corpus in; a folder out with train.jsonl, heldout.jsonl and a text.json that tells of them. Every
model learns from train.jsonl alone; its words and its sub-words are made from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sememe.ladder.results import Corpus
from sememe.ladder.splitting import (
    HELDOUT,
    TRAIN,
    documents_of,
    draw,
    write_built_in,
    write_split,
)
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import read_json, write_folder, write_json
from sememe.text import stream
from sememe.text.settings import TextSettings
from sememe.tokens.store import TokenStore, open_or_build

if TYPE_CHECKING:
    from sememe.tokens.subword_config import Kind
    from sememe.tokens.subword_store import SubwordStore
    from sememe.tokens.subwords import SubwordTokenizer

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

    @property
    def corpus(self) -> Corpus:
        """What the report tells of the text."""
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
        """The held-out documents, in an order that looks random: the first ones are a sample."""
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
        facts = write_built_in(folder, max_words, progress)
    else:
        facts = write_split(corpus, settings, folder, max_words, seed, progress)
        facts["name"] = name or _name_of(corpus)
    write_json(path, {"wanted": wanted, **facts})
    return _opened(folder, settings, facts)


def _opened(folder: Path, settings: TextSettings, facts: dict[str, Any]) -> LadderText:
    packages = facts.get("packages")
    # How the corpus was written is over: what was split is JSON lines in UTF-8.
    plain = TextSettings()
    own = replace(
        settings, layout=plain.layout, field=plain.field, label_field="", encoding=plain.encoding,
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
