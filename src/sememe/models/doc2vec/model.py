"""Doc2Vec: a corpus in, vectors of its documents and words out; vectors for new texts.

A step reads a chunk of the token store. In PV-DBOW it is word2vec's step, if words are trained,
followed by one step per kept word of the chunk, in which its document predicts it; in PV-DM its
document and the words around it do.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sememe.errors import OptionError
from sememe.examples.kernels import draw_noise, draw_windows
from sememe.examples.windows import alias_table, keep_limits
from sememe.models.doc2vec.config import Doc2VecConfig
from sememe.models.doc2vec.kernels import learn_documents
from sememe.models.static.model import ANY, StaticModel, matrix, padded
from sememe.models.word2vec.training import (
    LOSS_EVERY,
    WINDOWS,
    WindowModel,
    WindowRun,
    start_rows,
)
from sememe.randomness import stream_key
from sememe.text.stream import cut_texts
from sememe.tokens.store import TokenStore
from sememe.tokens.vocabulary import Vocabulary
from sememe.vectors.search import inverse_norms, nearest, unit

_DOCUMENT_NOISE, _INFERENCE = 4, 5  # purposes of random streams


class Words(NamedTuple):
    """Kept words: their ids, the bounds of their windows, and the index of their sentence."""

    tokens: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sentences: np.ndarray


def document_ends(store: TokenStore) -> np.ndarray:
    """The number of words of the store before the end of each document, int64."""
    last = np.asarray(store.document_ends)  # in sentences
    return np.where(last > 0, store.sentence_ends[np.maximum(last - 1, 0)], 0)


def sentence_windows(sentences: np.ndarray, window: int) -> tuple[np.ndarray, np.ndarray]:
    """The words up to `window` away in the same sentence: bounds, int32; no random distance."""
    places = np.arange(len(sentences))
    starts = np.searchsorted(sentences, sentences, "left")
    ends = np.searchsorted(sentences, sentences, "right")
    left, right = np.maximum(places - window, starts), np.minimum(places + window + 1, ends)
    return left.astype(np.int32), right.astype(np.int32)


class WordPrediction:
    """How documents predict words: the windows, the noise words, and the call of the kernel."""

    def __init__(
        self, config: Doc2VecConfig, counts: np.ndarray, input: np.ndarray, output: np.ndarray
    ) -> None:
        """counts: of the vocabulary; input, output: (words, padded dim · parts)."""
        self.config, self.width = config, input.shape[1]
        self.input, self.output = input.reshape(-1), output.reshape(-1)
        self.noise = alias_table(counts, config.noise_exponent)
        self.pool = padded(config.negatives, 8)
        self.weight = np.float32(config.negatives / self.pool)

    def learn(
        self, words: Words, owners: np.ndarray, documents: np.ndarray, key: int, rate: float,
        stats: np.ndarray, *, is_frozen: bool,
    ) -> None:  # fmt: skip
        """Train the documents, flat float32, on words; owners[n] is the row of word n's."""
        config, (tokens, left, right, sentences) = self.config, words
        num_words = len(tokens)
        if config.method == "dbow":
            left = right = np.zeros(num_words, np.int32)
        elif config.num_parts > 1:
            left, right = sentence_windows(sentences, config.window)
        noise = np.empty(num_words * self.pool, np.int32)
        draw_noise(*self.noise, np.uint64(key), noise)
        learn_documents(
            tokens, left, right, owners, num_words, noise, documents, self.input, self.output,
            self.width, config.window, config.num_parts, self.pool, self.weight,
            np.float32(rate), config.combine == "mean", is_frozen, LOSS_EVERY, stats,
        )  # fmt: skip


class Doc2VecRun(WindowRun):
    """A run that trains document vectors, and optionally word vectors."""

    config: Doc2VecConfig

    def __init__(
        self, config: Doc2VecConfig, store: TokenStore, vocabulary: Vocabulary, id_map: np.ndarray
    ) -> None:
        """id_map: from the store's ids to the vocabulary's."""
        super().__init__(config, store, vocabulary, id_map)
        self.document_ends = document_ends(store)
        documents = self.matrices["documents"] = matrix(len(self.document_ends), config.dim)
        start_rows(documents, config.dim, config.seed, first=len(vocabulary))
        self.documents = documents.reshape(-1)
        if config.num_parts > 1:
            wide = self.width * config.num_parts
            self.matrices["output"] = matrix(len(vocabulary), wide)
        self.prediction = WordPrediction(
            config, np.asarray(vocabulary.counts), self.matrices["input"], self.matrices["output"]
        )

    def start_message(self) -> str:
        """One line that describes the training about to start."""
        config = self.config
        told = {"dbow": "PV-DBOW", "dm": f"PV-DM ({config.combine})"}[config.method]
        return (
            f"{len(self.document_ends):,} documents, {len(self.vocabulary):,} words, "
            f"{self.tokens_per_epoch:,} in the text, {config.epochs} epochs: {told}, "
            f"{config.dim} dimensions, {config.num_workers} workers"
        )

    def hand_over(self, model: StaticModel, *, is_final: bool) -> None:
        """Give the matrices to the model, without padding; copies while they still change."""
        own = {name: _parts(rows, self.width)[..., : self.config.dim].reshape(len(rows), -1)
               for name, rows in self.matrices.items()}  # fmt: skip
        model.adopt(
            self.vocabulary,
            **{name: rows if is_final else rows.copy() for name, rows in own.items()},
        )

    def take(self, model: StaticModel) -> None:
        """Copy the word vectors of a smaller model; the documents are new."""
        for name in ("input", "output"):
            rows = model.tensors[name]
            _parts(self.matrices[name], self.width)[: len(rows), :, : self.config.dim] = _parts(
                rows, self.config.dim
            )

    def step(self, step: int, space: list[np.ndarray], stats: np.ndarray) -> None:
        """Train on the chunk of `step`."""
        config, (positions, left, right) = self.config, space
        chunk = step % self.text.num_chunks
        ids, ends = self.text.read(chunk)
        key = np.uint64(stream_key(config.seed, WINDOWS, step))
        # Positions instead of words: they identify the documents of the kept words, too.
        num = draw_windows(
            np.arange(len(ids), dtype=np.int32), ends, self.limits[ids], config.window, key, *space
        )
        tokens, places = ids[positions[:num]], positions[:num] + chunk * np.int64(self.chunk_size)
        words = Words(tokens, left, right, np.searchsorted(ends, positions[:num], "right"))
        if config.train_words and config.method == "dbow":
            noise = self.draw_noise(step, num)
            self.learn(step, (tokens, tokens, left, right, 0, num), noise, self.input, stats)
        owners = np.searchsorted(self.document_ends, places, "right").astype(np.int32)
        self.prediction.learn(
            words, owners, self.documents, stream_key(config.seed, _DOCUMENT_NOISE, step),
            self.rate_at(step), stats, is_frozen=False,
        )  # fmt: skip


class Inference:
    """Infers vectors for new documents; those of words are not changed."""

    def __init__(
        self, config: Doc2VecConfig, counts: np.ndarray, input: np.ndarray, output: np.ndarray
    ) -> None:
        """counts: of the vocabulary; input, output: (words, dim · parts)."""
        self.config = config
        width = padded(config.dim)
        rows = [matrix(len(own), own.shape[1] // config.dim * width) for own in (input, output)]
        for own, wide in zip((input, output), rows, strict=True):
            _parts(wide, width)[..., : config.dim] = _parts(own, config.dim)
        self.limits = keep_limits(counts, config.sample)
        self.prediction = WordPrediction(config, counts, *rows)

    def infer(self, ids: np.ndarray) -> np.ndarray:
        """Infer the vector (dim,) of a document from its words, int32; zeros without words.

        It starts at zero, and every draw is a function of the seed and of the words, so that the
        same document always gets the same vector.
        """
        config = self.config
        content = int.from_bytes(hashlib.blake2b(ids.tobytes(), digest_size=8).digest(), "little")
        vector, stats = matrix(1, config.dim).reshape(-1), np.zeros(3)
        space = [np.empty(len(ids), np.int32) for _ in range(3)]
        owners, end = np.zeros(len(ids), np.int32), np.array([len(ids)])
        rates = np.linspace(config.start_rate, config.min_learning_rate, config.infer_epochs)
        for epoch, rate in enumerate(rates):
            key = stream_key(config.seed, _INFERENCE, content, epoch)
            num = draw_windows(ids, end, self.limits, config.window, np.uint64(key), *space)
            tokens, left, right = (own[:num] for own in space)
            words = Words(tokens, left, right, owners[:num])
            self.prediction.learn(
                words, owners, vector, stream_key(key), rate, stats, is_frozen=True
            )
        return vector[: config.dim]


def _parts(rows: np.ndarray, width: int) -> np.ndarray:
    """A matrix whose rows are concatenated vectors as (rows, parts, width)."""
    return rows.reshape(len(rows), -1, width)


class NearDocument(NamedTuple):
    """A document of the training text, by its index, and its cosine similarity."""

    document: int
    score: float


class Doc2Vec(WindowModel):
    """One vector per document, learned by predicting its words (Le & Mikolov 2014).

    model = sememe.Doc2Vec(dim=100).fit("corpus.txt")
    model.nearest_documents("a text about kings")
    model.embed(["a text about kings"])
    """

    kind = "doc2vec"
    config_class = Doc2VecConfig
    config: Doc2VecConfig
    run_class = Doc2VecRun
    embed_options: Mapping[str, Any] = {}
    _inference: Inference | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_inference": None}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {size:,}" for name, size in self.sizes().items())
        return f"Doc2Vec({sizes})"

    @property
    def documents(self) -> np.ndarray:
        """The vectors of the training documents, in their order, (documents, dim)."""
        return self._tensor("documents")

    def embed(
        self, texts: Sequence[str], *, pool: str = "mean", layers: Any = "last"
    ) -> np.ndarray:
        """Infer one vector per text, (texts, dim), deterministically; zeros without known words.

        Words outside the vocabulary are ignored.
        """
        self.check_list(texts)
        for name, value, only in (("pool", pool, "mean"), ("layers", layers, "last")):
            if value != only:
                raise OptionError(
                    f"Doc2Vec infers one vector for a whole text: leave out {name} {value!r}."
                )
        found_ND = np.zeros((len(texts), self.config.dim), np.float32)
        cut = cut_texts(texts, self.text)
        for row_D, sentences in zip(found_ND, cut, strict=True):
            row_D[:] = self.infer(word for sentence in sentences for word in sentence)
        return found_ND

    def infer(self, words: Iterable[str]) -> np.ndarray:
        """Infer the vector (dim,) of a tokenized document."""
        if self._inference is None:
            counts = np.asarray(self.vocabulary.counts)
            self._inference = Inference(self.config, counts, self.input, self.output)
        found = (self.vocabulary.find(word) for word in words)
        return self._inference.infer(np.array([one for one in found if one >= 0], np.int32))

    def nearest_documents(
        self, query: str | int | np.ndarray, *, num: int = 10
    ) -> list[NearDocument]:
        """The training documents with the largest cosine to a text, a vector or another document.

        A document given by its index is not among its own neighbors.
        """
        own, num_documents = -1, len(self.documents)
        if isinstance(query, str):
            vector_D = self.embed([query])[0]
        elif isinstance(query, np.ndarray):
            vector_D = query
        elif 0 <= query < num_documents:
            own, vector_D = int(query), self.documents[query]
        else:
            raise OptionError(
                f"The documents are numbered 0 to {num_documents - 1:,}: there is no {query:,}."
            )
        rows = np.asarray(self.documents)
        units = unit(vector_D)[None]
        ((ids, scores),) = nearest(rows, inverse_norms(rows), units, min(num + 1, len(rows)))
        pairs = zip(ids.tolist(), scores.tolist(), strict=True)
        return [NearDocument(*pair) for pair in pairs if pair[0] != own][:num]

    def adopt(self, vocabulary: Vocabulary, **tensors: np.ndarray) -> None:
        """Take over what was learned."""
        super().adopt(vocabulary, **tensors)
        self._inference = None

    def sizes(self) -> dict[str, Any]:
        """The sizes in sememe.json and `describe`."""
        return {"documents": len(self.tensors.get("documents", ())), **super().sizes()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors that the model must have, with their shapes."""
        dim = self.config.dim
        size = len(self.vocabulary)
        wide = dim * self.config.num_parts
        return {"input": (size, dim), "output": (size, wide), "documents": (ANY, dim)}
