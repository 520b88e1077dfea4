"""GPT from raw text: a corpus in, a network with its tokenizer out; generation and scores.

    model = sememe.GPT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
    model.generate("Once upon a time")

R rows, T positions, M predictions. A document is scored after an end-of-text token, and its own end
is predicted too. Documents longer than a row are read in rows that overlap by half.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from sememe.contract import GenerationStep
from sememe.examples.batches import Split
from sememe.examples.packing.rows import PackedBatches
from sememe.metrics.perplexity import TextScore
from sememe.models.gpt.config import PRESETS, GPTConfig, GPTTrainingConfig
from sememe.models.gpt.continuations import continuation_log_probs
from sememe.models.gpt.generation import generate, generation_steps, stream
from sememe.models.gpt.network import CausalObjective, GPTNetwork
from sememe.models.gpt.next_words import suggest
from sememe.models.language.features import device_of, token_vectors, tokens_in
from sememe.models.language.subword_model import SubwordModel
from sememe.nn.rows import grouped
from sememe.nn.softmax import target_log_probs
from sememe.progress import SILENT, Reporter
from sememe.text.settings import TextSettings
from sememe.text.stream import read, segmenter
from sememe.text.words import decode_documents
from sememe.tokens.prompts import Suggestion
from sememe.tokens.subwords.tokenizer import Encoding, SubwordTokenizer

_TOKENS_AT_ONCE = 8_192  # in one batch, including padding
_DOCUMENTS_AT_ONCE = 256


class DocumentRow(NamedTuple):
    """Some tokens of a document and their next tokens, scored from position `first` on."""

    document: int
    start: int
    ids: np.ndarray
    targets: np.ndarray
    first: int


def score_corpus(
    network: GPTNetwork,
    tokenizer: SubwordTokenizer,
    corpus: Any,
    settings: TextSettings,
    *,
    length: int = 0,
    progress: Reporter = SILENT,
) -> TextScore:
    """Score all tokens of a text per word; a sentence end counts as a word.

    Words are those of a word-level model, so that the metrics are comparable; but here everything
    is predicted, including punctuation and capitals. `length` is that of a row, if the network was
    trained with shorter ones than its maximum.
    """
    log, num_words, documents = 0.0, 0, []

    def sum_of(texts: list[str]) -> float:
        found = token_log_probs(network, tokenizer, texts, length=length)
        return float(sum(own.sum() for own in found))

    with progress.task("foretelling", None, "words") as task:
        for document, words in _documents(corpus, settings):
            documents.append(document)
            num_words += words
            if len(documents) == _DOCUMENTS_AT_ONCE:
                log += sum_of(documents)
                documents = []
                task.update(num_words)
        log += sum_of(documents)
        task.update(num_words)
    return TextScore(log / math.log(10), num_words, 0.0, 0)


def _documents(corpus: Any, settings: TextSettings) -> Iterator[tuple[str, int]]:
    """Documents as written, with their numbers of words and sentences."""

    with segmenter(settings, 1) as cut:
        for batch in read(corpus, settings):
            start = 0
            for end in batch.ends.tolist():
                data, start = batch.text[start:end], end
                records = cut(batch._replace(text=data, ends=np.array([len(data)]), labels=None))
                sentences = [own for document in decode_documents(records.data) for own in document]
                if sentences:
                    yield data.decode("utf-8").strip(), sum(len(own) + 1 for own in sentences)


@torch.no_grad()
def token_log_probs(
    network: GPTNetwork,
    tokenizer: SubwordTokenizer,
    documents: Sequence[str],
    *,
    length: int = 0,
) -> list[np.ndarray]:
    """The natural log probability of each token of documents, then of their ends."""
    size = min(length or network.config.max_length, network.config.max_length)
    encodings = tokenizer.encode_batch(documents)
    rows = [
        row
        for document, encoding in enumerate(encodings)
        for row in _rows(document, np.asarray(encoding.ids, np.int64), tokenizer.end_id, size)
    ]
    rows.sort(key=lambda row: len(row.ids))
    network.eval()
    found = [np.zeros(len(encoding.ids) + 1) for encoding in encodings]
    for group in grouped(rows, lambda row: len(row.ids), _TOKENS_AT_ONCE, is_padded=True):
        sizes = [len(row.ids) - row.first for row in group]
        for row, logs in zip(
            group, np.split(_logs_of(network, group), np.cumsum(sizes)[:-1]), strict=True
        ):
            first = row.start + row.first
            found[row.document][first : first + len(logs)] = logs
    return found


def _rows(document: int, ids: np.ndarray, end_id: int, size: int) -> Iterator[DocumentRow]:
    given = np.concatenate([[end_id], ids])
    targets = np.concatenate([ids, [end_id]])
    seen = size // 2
    for start in range(0, max(1, len(given) - seen), size - seen):
        part = slice(start, start + size)
        yield DocumentRow(document, start, given[part], targets[part], seen if start else 0)


def _logs_of(network: GPTNetwork, group: list[DocumentRow]) -> np.ndarray:
    """The log probabilities of all predictions of some rows, row after row, (M,)."""
    device = device_of(network)
    longest = max(len(row.ids) for row in group)
    # Padding comes after all predictions, which cannot see it.
    ids_RT = np.zeros((len(group), longest), np.int64)
    targets_RT = np.full_like(ids_RT, -1)
    for index, row in enumerate(group):
        ids_RT[index, : len(row.ids)] = row.ids
        targets_RT[index, row.first : len(row.ids)] = row.targets[row.first :]
    is_asked_RT = torch.from_numpy(targets_RT >= 0).to(device)
    hidden_MD = network(torch.from_numpy(ids_RT).to(device))[is_asked_RT]
    return target_log_probs(network.next_logits, hidden_MD, targets_RT[targets_RT >= 0])


class GPT(SubwordModel):
    """GPT (Radford et al. 2018, 2019): the next token.

    model = sememe.GPT(preset="tiny", budget="5m").fit("texts/", out="runs/mine")
    """

    kind = "gpt"
    tokenizer_kind = "bpe"
    config_class, network_class, presets = GPTConfig, GPTNetwork, PRESETS
    training_class = GPTTrainingConfig

    def objective(self) -> Any:
        """The next token."""

        return CausalObjective(self.network)

    def generate(self, prompts: str | Sequence[str], **options: Any) -> Any:
        """Continue a prompt, or several at once; the options are those of Sampling by name."""
        return generate(self.trained(), self.tokenizer, prompts, **options)

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        """Continue a prompt and yield each part of the text as soon as it is known."""
        return stream(self.trained(), self.tokenizer, prompt, **options)

    def generate_steps(
        self, prompt: str, *, ids: Sequence[int] = (), count: int = 10, **options: Any
    ) -> Iterator[GenerationStep]:
        """The steps of `generate` with the most likely tokens at each; options are Sampling's."""
        return generation_steps(
            self.trained(), self.tokenizer, prompt, ids=ids, count=count, **options
        )

    def next_words(self, text: str, *, count: int = 5) -> list[Suggestion]:
        """The most likely complete words after a text, or completions of its last word."""
        return suggest(self.trained(), self.tokenizer, text, count=count)

    def score(self, text: str) -> float:
        """The log10 probability of a text, including its end."""
        network = self.trained()
        (logs,) = token_log_probs(network, self.tokenizer, [text], length=self.training.length)
        return float(logs.sum()) / math.log(10)

    def continuation_scores(
        self, prompts: Sequence[str], continuations: Sequence[str]
    ) -> np.ndarray:
        """The natural log probability of each continuation after each prompt."""
        return continuation_log_probs(self.trained(), self.tokenizer, prompts, continuations)

    def evaluate(self, data: Any, *, progress: Reporter | None = None) -> TextScore:
        """Compute the perplexity of a text, per word and sentence end."""
        return score_corpus(
            self.trained(), self.tokenizer, data, self.text, length=self.training.length,
            progress=progress or SILENT,
        )  # fmt: skip

    def word_log_probs(
        self, documents: Sequence[tuple[str, Sequence[np.ndarray]]]
    ) -> list[np.ndarray]:
        """The natural log probability of each word: the sum over its tokens.

        A token that spans several words, as in Chinese, is shared by them.
        """
        network, texts = self.trained(), [text for text, _ in documents]
        logs = token_log_probs(network, self.tokenizer, texts, length=network.seen_length)
        encodings = self.tokenizer.encode_batch(texts)
        return [
            _word_sums(encoding, np.concatenate([np.empty((0, 2), np.int64), *spans]), own)
            for (_, spans), encoding, own in zip(documents, encodings, logs, strict=True)
        ]

    def embed_expected(self, texts: Sequence[str], spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """The last layer before the word of each text, which sees only the text before it."""
        rows = []
        found = token_vectors(self.trained(), self.tokenizer, texts)
        for (start, _), own in zip(spans, found, strict=True):
            first = int(np.searchsorted(own.encoding.ends, start, "right"))
            rows.append(own.vectors_TD[first - 1] if first else np.zeros(self.config.width))
        return np.array(rows, np.float32).reshape(-1, self.config.width)

    def source(self, store: Any, split: Split, length: int = 0) -> Any:
        """Batches of running text."""
        length = length or self.training.length
        return PackedBatches(
            store, self.tokenizer, length=length,
            batch_size=self.rows_of(length), seed=self.training.seed, split=split,
        )  # fmt: skip


def _word_sums(encoding: Encoding, places_W2: np.ndarray, logs_T: np.ndarray) -> np.ndarray:
    """The sum over the tokens of each word, (W,)."""
    firsts_W, lasts_W = tokens_in(encoding, places_W2)
    changes_T = np.bincount(firsts_W, minlength=len(logs_T) + 1)
    changes_T = changes_T - np.bincount(lasts_W, minlength=len(logs_T) + 1)
    num_words_T = np.cumsum(changes_T)[:-1]
    sums_T = np.concatenate([[0.0], np.cumsum(logs_T / np.maximum(num_words_T, 1))])
    return sums_T[lasts_W] - sums_T[firsts_W]
