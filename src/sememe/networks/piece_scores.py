"""How well a GPT foretells a text: the chances of its pieces, told for each word.

R rows, T positions, M predictions. A document stands behind the mark of an end, and its own end is
foretold too. Longer ones than a row are read in rows that overlap by half.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from sememe.metrics.perplexity import TextScore
from sememe.networks.framing import device_of
from sememe.networks.gpt import GPTNetwork
from sememe.networks.grouping import grouped
from sememe.progress import SILENT, Reporter
from sememe.text.records import decode_documents
from sememe.text.settings import TextSettings
from sememe.tokens.subwords import SubwordTokenizer

_TOKENS_AT_ONCE = 8_192  # in one batch, padding counted
_MAX_SCORES = 1 << 25
_DOCUMENTS_AT_ONCE = 256


class Row(NamedTuple):
    """Some pieces of a document and those that follow them, asked from place `first` on."""

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
    """The chance of all pieces of a text over its words, the ends of its sentences counted as such.

    Words are those that a model over words reads, so that figures stand side by side; but here all
    that is written is foretold, punctuation and capitals too. `length` is that of a row, where the
    network was trained with shorter ones than it can see.
    """
    log, num_words, documents = 0.0, 0, []
    with progress.task("foretelling", None, "words") as task:
        for document, words in _documents(corpus, settings):
            documents.append(document)
            num_words += words
            if len(documents) == _DOCUMENTS_AT_ONCE:
                log += sum_logs(network, tokenizer, documents, length=length)
                documents = []
                task.update(num_words)
        log += sum_logs(network, tokenizer, documents, length=length)
        task.update(num_words)
    return TextScore(log / math.log(10), num_words, 0.0, 0)


def _documents(corpus: Any, settings: TextSettings) -> Iterator[tuple[str, int]]:
    """Documents as they are written, with the number of their words and sentences."""
    from sememe.text.stream import read, segmenter

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
def sum_logs(
    network: GPTNetwork,
    tokenizer: SubwordTokenizer,
    documents: Sequence[str],
    *,
    length: int = 0,
) -> float:
    """The logarithm of the chance of documents, all their pieces and ends."""
    size = min(length or network.config.max_length, network.config.max_length)
    rows = [
        row
        for encoding in tokenizer.encode_batch(documents)
        for row in _rows(np.asarray(encoding.ids, np.int64), tokenizer.end_id, size)
    ]
    rows.sort(key=lambda row: len(row.ids))
    network.eval()
    groups = grouped(rows, lambda row: len(row.ids), _TOKENS_AT_ONCE, is_padded=True)
    return sum(_sum_of(network, group) for group in groups)


def _rows(ids: np.ndarray, end_id: int, size: int) -> Iterator[Row]:
    given = np.concatenate([[end_id], ids])
    targets = np.concatenate([ids, [end_id]])
    seen = size // 2
    for start in range(0, max(1, len(given) - seen), size - seen):
        part = slice(start, start + size)
        yield Row(given[part], targets[part], seen if start else 0)


def _sum_of(network: GPTNetwork, group: list[Row]) -> float:
    device = device_of(network)
    longest = max(len(row.ids) for row in group)
    # What fills a row up stands behind all that is asked, which cannot see it.
    ids_RT = np.zeros((len(group), longest), np.int64)
    targets_RT = np.full_like(ids_RT, -1)
    for index, row in enumerate(group):
        ids_RT[index, : len(row.ids)] = row.ids
        targets_RT[index, row.first : len(row.ids)] = row.targets[row.first :]
    is_asked_RT = torch.from_numpy(targets_RT >= 0).to(device)
    hidden_MD = network(torch.from_numpy(ids_RT).to(device))[is_asked_RT]
    targets_M = torch.from_numpy(targets_RT[targets_RT >= 0]).to(device)
    size = max(1, _MAX_SCORES // network.config.vocab_size)
    total = 0.0
    for first in range(0, len(targets_M), size):
        logs_MV = network.next_logits(hidden_MD[first : first + size]).float().log_softmax(-1)
        own_M1 = targets_M[first : first + size, None]
        total += float(logs_MV.gather(1, own_M1).double().sum())
    return total
