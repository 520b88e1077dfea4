"""Small texts as sub-word stores and tokenizers would give them, without building either."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]", "[unused2]"]


class Tokenizer:
    """Words to pieces: a word is cut before every "|"."""

    kind = "wordpiece"
    pad_id, unk_id, cls_id, sep_id, mask_id = range(5)
    end_id = sep_id
    special_ids = frozenset(range(5))

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = [*SPECIALS, *dict.fromkeys(pieces)]
        self.vocab_size = len(self.pieces)
        self._ids = {piece: index for index, piece in enumerate(self.pieces)}
        self.is_continuation = np.array([piece.startswith("##") for piece in self.pieces])

    def id(self, piece: str) -> int:
        return self._ids[piece]

    def token(self, index: int) -> str:
        return self.pieces[index]

    def encode(self, text: str) -> SimpleNamespace:
        pieces = [piece for word in text.split() for piece in cut(word)]
        return SimpleNamespace(ids=np.array([self._ids.get(p, 1) for p in pieces], np.int32))

    def encode_batch(self, texts: list[str]) -> list[SimpleNamespace]:
        return [self.encode(text) for text in texts]


class Store:
    """Documents of sentences as flat arrays; every `held_out`-th document is for validation."""

    def __init__(self, documents: list[list[str]], tokenizer: Tokenizer, held_out: int = 0) -> None:
        ids, starts, sentence_ends, document_ends = [], [], [], []
        for document in documents:
            for sentence in document:
                for word in sentence.split():
                    pieces = cut(word)
                    ids += [tokenizer._ids.get(piece, 1) for piece in pieces]
                    starts += [1] + [0] * (len(pieces) - 1)
                sentence_ends.append(len(ids))
            document_ends.append(len(sentence_ends))
        self.ids = np.array(ids, np.uint16)
        self.word_starts = np.array(starts, np.uint8)
        self.sentence_ends = np.array(sentence_ends, np.int64)
        self.document_ends = np.array(document_ends, np.int64)
        self.num_tokens, self._held_out = len(ids), held_out

    def is_validation(self, document):
        if not self._held_out:
            return np.zeros(np.shape(document), bool)
        return np.asarray(document) % self._held_out == self._held_out - 1


def cut(word: str) -> list[str]:
    """play|ing → play ##ing; 北|京 → 北 京, for Chinese characters are no continuations."""
    first, *rest = word.split("|")
    return [first, *(piece if piece > "\u3000" else f"##{piece}" for piece in rest)]


def made_up(num_documents: int, seed: int = 0, num_words: int = 50) -> tuple[Store, Tokenizer]:
    """Documents of random size with English and Chinese words of one to three pieces."""
    random = np.random.default_rng(seed)
    latin = [f"w{index}" + "|x|y"[: 2 * (index % 3)] for index in range(num_words)]
    han = [chr(0x4E00 + index) + ("|" + chr(0x5E00 + index)) * (index % 2) for index in range(20)]
    words = [*latin, *han]
    documents = [
        [" ".join(random.choice(words, random.integers(1, 15))) for _ in range(num_sentences)]
        for num_sentences in random.integers(1, 12, num_documents)
    ]
    tokenizer = Tokenizer([piece for word in words for piece in cut(word)])
    return Store(documents, tokenizer, held_out=10), tokenizer
