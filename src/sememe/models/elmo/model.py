"""ELMo from raw text: a corpus in, a network with its words out; `fit`, `embed`, `save`, `load`.

model = sememe.ELMo(preset="tiny", budget="5m").fit("texts/", out="runs/elmo")

Its initial weights may come from skip-gram vectors of the same text, which reads a text a hundred
times as fast as LSTMs do. Its input vectors say which words are of a kind, its output vectors
which words are beside them: what the table of words and the softmax of a language model have to
learn before its LSTMs are of use. V words, P width.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from sememe.errors import InputError
from sememe.examples.word_rows import NUM_MARKS
from sememe.metrics.perplexity import TextScore, perplexity
from sememe.models.elmo.config import (
    PRESETS,
    CasedTextSettings,
    ELMoConfig,
    ELMoTrainingConfig,
)
from sememe.models.elmo.encoder import (
    Opened,
    embed_sentences,
    framed,
    inputs_of,
    read_layers,
    word_vectors,
)
from sememe.models.elmo.network import (
    BidirectionalObjective,
    ELMoInputs,
    ELMoNetwork,
    RowTable,
    forms_of,
    word_id,
)
from sememe.models.elmo.released import read_bilm
from sememe.models.fitting import Plan, Prepared, Request
from sememe.models.huggingface.layout import find_bilm
from sememe.models.language.model import are_texts
from sememe.models.language.texts import Metrics, WordText
from sememe.models.language.word_model import WordModel
from sememe.models.language.word_reading import (
    LONGEST,
    network_ids,
    score_streams,
    sentence_log_probs,
)
from sememe.models.word2vec.model import Word2Vec
from sememe.nn.character_cnn import MARKS, UNKNOWN
from sememe.nn.softmax import Sampler
from sememe.progress import Reporter
from sememe.storage.checkpoints import Checkpoints
from sememe.storage.folder import check_replaceable, kind_of_folder, reads_artifact
from sememe.tokens.store import TokenStore, is_held_out
from sememe.training.device import to_device
from sememe.training.distributed import this_process
from sememe.vectors import WordVectors


class SkipgramStart(NamedTuple):
    """Where skip-gram's vectors are saved until the network is, and whether to resume from them."""

    out: Path | None = None
    resume: bool = False

    @classmethod
    def beside(cls, out: str | Path | None, resume: bool) -> SkipgramStart:
        """The path next to the output folder; only one of several processes writes there."""
        if out is None or not this_process().is_main:
            return cls()
        place = Path(f"{out}.start")
        check_replaceable(place, Word2Vec.kind)  # before any text is read
        return cls(place, resume)

    def clear(self) -> None:
        """Remove skip-gram's files, including checkpoints of a stopped run."""
        if self.out is None:
            return
        Checkpoints(f"{self.out}.checkpoints").clear()
        if kind_of_folder(self.out) == Word2Vec.kind:
            shutil.rmtree(self.out, ignore_errors=True)


def start_with_skipgram(
    network: ELMoNetwork,
    text: WordText,
    training: ELMoTrainingConfig,
    reporter: Reporter,
    start: SkipgramStart,
) -> float:
    """Initialize the softmax with skip-gram's output vectors, and a word table with its input.

    Returns the seconds of skip-gram training, including those before an interruption.
    """
    num = training.start_epochs
    reporter.note(f"Skip-gram first: {num} {'pass' if num == 1 else 'passes'} over the text.")
    model = Word2Vec(
        dim=network.config.width, epochs=training.start_epochs, min_count=training.min_count,
        workers=training.workers, seed=training.seed,
    )  # fmt: skip
    share = training.validation_share
    sentences = TrainingSentences(text.store, share) if share else text.store
    model.fit(
        sentences, out=start.out, resume=start.resume, overwrite=True, progress=reporter,
        checkpoint_minutes=training.checkpoint_minutes,
    )  # fmt: skip
    seconds = float(model.history.last().get("seconds", 0.0))
    found_V = np.array([model.vocabulary.find(word) for word in text.vocabulary], np.int64)
    known_V = np.flatnonzero(found_V >= 0)
    if not len(known_V):
        return seconds
    _fill(network.table_VP, known_V, model.tensors["output"][found_V[known_V]])
    if isinstance(network.input, RowTable):
        _fill(network.input.rows.weight, known_V, model.tensors["input"][found_V[known_V]])
    return seconds


@torch.no_grad()
def _fill(table_VP: torch.Tensor, words: np.ndarray, rows_VP: np.ndarray) -> None:
    """Copy rows into a table, scaled to its standard deviation."""
    rows_VP = np.asarray(rows_VP, np.float32)
    places = torch.from_numpy(NUM_MARKS + words)
    spread = float(table_VP[places].std())
    table_VP[places] = torch.from_numpy(rows_VP * (spread / max(float(rows_VP.std()), 1e-9)))


class TrainingSentences:
    """The sentences of the training documents, as lists of words."""

    def __init__(self, store: TokenStore, validation_share: float) -> None:
        self._store, self._share = store, validation_share

    def __iter__(self) -> Iterator[list[str]]:
        store, words = self._store, list(self._store.vocabulary)
        ends = np.asarray(store.sentence_ends)
        documents = np.searchsorted(store.document_ends, np.arange(len(ends)), "right")
        for sentence in np.flatnonzero(~is_held_out(documents, self._share)).tolist():
            first = int(ends[sentence - 1]) if sentence else 0
            ids = store.ids[first : int(ends[sentence])].tolist()
            yield [words[word_id] for word_id in ids if word_id < len(words)]


class ELMo(WordModel):
    """ELMo (Peters et al. 2018): the next word and the word before, by what words look like.

    model = sememe.ELMo(preset="tiny", budget="5m").fit("texts/", out="runs/elmo")

    Words keep their case unless `fit` is told otherwise: lowercase=True.
    """

    kind = "elmo"
    config_class, network_class = ELMoConfig, ELMoNetwork
    training_class = ELMoTrainingConfig
    text_class = CasedTextSettings
    presets = PRESETS
    reads_rare_words = True  # every word has its spelling
    learned = (*WordModel.learned, "start_s")
    start_s = 0.0  # spent on skip-gram before the first step, not part of the history

    _opened: Opened | None = None
    _start = SkipgramStart()

    # ---- use ------------------------------------------------------------------------------

    words_are = "words by themselves, by their spelling"

    def lacking(self) -> dict[str, str]:
        """What released weights may lack: the softmax, or the list of its words."""
        if self.network is None:
            return {}
        calls = [] if self.config.has_softmax else ["next_words", "score"]
        calls += [] if len(self.vocabulary) else ["words"]
        why = "these weights came without their softmax or the list of its words"
        return dict.fromkeys(calls, why)

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The width of the words, which are twice, and of each layer of both directions."""
        return (2 * self.config.width,) * (self.config.num_layers + 1)

    @property
    def opened(self) -> Opened:
        """The network with what it needs to encode words."""
        network = self.trained()
        if self._opened is None or self._opened.network is not network:
            self._opened = Opened(network, forms_of(self.vocabulary, self.config))
        return self._opened

    def layers(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """All layers of tokenized sentences, (layers + 1, words, 2 × width) each."""
        if are_texts(sentences):
            raise InputError("Give sentences as lists of words.")
        found = read_layers(self.opened, sentences)
        return [np.stack([layer.cpu().numpy() for layer in own]) for own in found]

    @torch.no_grad()
    def distribution(self, words: Sequence[str]) -> np.ndarray:
        """The probability of each word to follow a sentence so far, (words,)."""
        network = self.trained()
        hidden_BP = self._forward([words[-LONGEST:]])[len(words[-LONGEST:])]
        logits_BV = network.next_logits(hidden_BP.to(network.precision))
        return logits_BV[0].float().softmax(0).cpu().numpy()[NUM_MARKS:]

    def _has_word(self, word: str) -> bool:
        return self.config.input != "words" or super()._has_word(word)

    def _word_table(self) -> WordVectors:
        parts = word_vectors(self.opened, list(self.vocabulary))
        return WordVectors(self.vocabulary, torch.cat(parts).cpu().numpy())

    def _embed_sentences(self, sentences: list[list[str]], layers: Any) -> list[np.ndarray]:
        return embed_sentences(self.opened, sentences, layers)

    def _beside(self, rows: list[Sequence[str]]) -> list[Tensor]:
        # A sentence is between special tokens, so that every word has a neighbor on each side.
        read = self.network.read(self._inputs([framed(words) for words in rows]))
        return [read.forward[-1].roll(1, 0), read.backward[-1].roll(-1, 0)]

    def _inputs(self, rows: Sequence[Sequence[str]]) -> ELMoInputs:
        return to_device(inputs_of(rows, self.opened.forms), self.device)

    def _forward(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """The softmax's inputs for sentences read forwards, (T, B, P); position 0 is the start."""
        inputs, network = self._inputs([framed(words) for words in sentences]), self.network
        vectors_NP = network.words(inputs.form).index_select(0, inputs.index_N)
        outputs, _ = network.reads_forward(vectors_NP.unflatten(0, (-1, inputs.num_rows)))
        return outputs[-1]

    def _log_probs(self, sentences: list[list[str]]) -> list[np.ndarray]:
        def ids_of(words: list[str]) -> np.ndarray:
            return np.array([word_id(word, self.vocabulary) for word in words], np.int64)

        return sentence_log_probs(self.network, self._forward, ids_of, sentences)

    def _score(self, tokens: TokenStore) -> TextScore:
        network, words = self.network, [*MARKS, *tokens.vocabulary, UNKNOWN]

        def read(ids_TB: np.ndarray, states: Any) -> tuple[Tensor, Any]:
            distinct_U, index = np.unique(ids_TB, return_inverse=True)
            form = self.opened.forms.of_words([words[one] for one in distinct_U])
            places = torch.from_numpy(index.reshape(ids_TB.shape)).to(self.device)
            vectors_TBP = network.words(to_device(form, self.device))[places]
            outputs, states = network.reads_forward(vectors_TBP, states)
            return outputs[-1], states

        return score_streams(network, network_ids(tokens, self.vocabulary), read, tokens)

    # ---- learning ---------------------------------------------------------------------------

    def _shape(self) -> str:
        config = self.config
        layers = f"{config.num_layers} layers per direction × {config.num_cells}/{config.width}"
        return f"{layers}, words by {config.input}"

    def prepare(self, corpus: Any, request: Request) -> Prepared:
        """Open the corpus; return the run's plan and the function that trains."""
        has_start = bool(self.training.start_epochs)
        self._start = SkipgramStart.beside(request.out if has_start else None, request.resume)
        return super().prepare(corpus, request)

    def learn(self, text: Any, plan: Plan, request: Request) -> None:
        """Train a new network on a text, or continue the run to resume."""
        super().learn(text, plan, request)
        self._start.clear()

    def take_over(self, other: Any) -> None:
        """Take over another ELMo, such as a finished one; removes a stopped skip-gram start."""
        super().take_over(other)
        self._start.clear()

    def begin(self, text: WordText, source: Any, reporter: Reporter) -> Any:
        """Initialize from word counts or skip-gram; return both directions' objective."""
        training, sampler = self.training, None
        self.network.begin_with(text.counts)
        if training.start_epochs:
            begun_s = time.monotonic()
            trained_s = start_with_skipgram(self.network, text, training, reporter, self._start)
            # Of a run that was resumed skip-gram may have been done before.
            self.start_s = round(max(trained_s, time.monotonic() - begun_s), 3)
        if training.is_sampled(self.config.vocab_size):
            reporter.note(f"The softmax looks at {training.num_samples:,} words at a time.")
            sampler = Sampler(text.counts, training.num_samples)
        forms = forms_of(text.store.vocabulary, self.config)
        return BidirectionalObjective(self.network, forms, sampler)

    def frequency_loss(self, metrics: Metrics) -> float | None:
        """The loss of predicting by frequency alone, in both directions together."""
        found = super().frequency_loss(metrics)
        return None if found is None else 2 * found

    def _perplexities(self, metrics: Metrics) -> Metrics:
        forward, backward = (
            perplexity(metrics[f"{name}_loss"]) for name in ("forward", "backward")
        )
        return {
            "forward_perplexity": forward, "backward_perplexity": backward,
            "perplexity": float(np.sqrt(forward * backward)),
        }  # fmt: skip

    # ---- the folder -------------------------------------------------------------------------

    def describe(self) -> dict[str, Any]:
        """What the model is, and how long skip-gram took before its first step."""
        return super().describe() | {"start_s": self.start_s}

    def manifest(self) -> dict[str, Any]:
        """What sememe.json says about the model."""
        return super().manifest() | {"start_s": self.start_s}

    def _take_up(self, manifest: dict[str, Any]) -> None:
        super()._take_up(manifest)
        self.start_s = float(manifest.get("start_s", 0.0))

    # ---- released files ---------------------------------------------------------------------

    @classmethod
    @reads_artifact
    def load(cls, folder: str | Path, *, vocabulary: str | Path | None = None) -> Self:
        """Open a model saved by `fit` or `save`, or the files of a released ELMo.

        For a released ELMo, `folder` is the folder or the .hdf5 file, next to its options;
        `vocabulary` lists the words that it predicts, if the file has a softmax.
        """
        if (found := find_bilm(Path(folder))) is not None:
            return cls._from_bilm(*found, None if vocabulary is None else Path(vocabulary))
        return super().load(folder)

    @classmethod
    def _from_bilm(cls, options: Path, weights: Path, vocabulary: Path | None) -> Self:

        model = cls("original")
        model.network, model.vocabulary = read_bilm(options, weights, vocabulary)
        model.config = model.network.config
        # They were trained on words with spaces between them, punctuation among them.
        model.text = CasedTextSettings(language="none")
        return model
