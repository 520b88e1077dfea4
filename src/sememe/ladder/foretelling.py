"""How well rungs foretell held-out text: chances of words, comparable across vocabularies.

Asked are the held-out words that stand among the words all language models know. Each model gives
the chance of the word after what stands before it: of the sentence (n-gram, NNLM, ELMo forwards),
or of the document (GPT, whose chance of a word is the product over its pieces). Other words,
punctuation and the ends of sentences are context and are not asked. T places, V words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sememe.ladder.reading import Opened, Words, cut, overlaps
from sememe.ladder.sentences import sentences_of
from sememe.ladder.text import LadderText

if TYPE_CHECKING:
    from sememe.tokens.subwords import Encoding

_ROWS_AT_ONCE = 64
_SCORES_AT_ONCE = 1 << 24
_OVERLAP = 0.5  # of a window of GPT's: what it has seen at least before it is asked


class Document(NamedTuple):
    """A held-out document: its text, and the words of its sentences with their places in it."""

    text: str
    sentences: list[Words]


class Foretold(NamedTuple):
    """The sum of the logarithms of chances, and how many there are."""

    log: float
    num: int

    @property
    def perplexity(self) -> float:
        """The number of words that would be equally likely at each place."""
        return math.exp(min(-self.log / self.num, 700.0)) if self.num else math.nan


def sample_documents(text: LadderText, num_words: int) -> list[Document]:
    """The first held-out documents, until they have so many words."""
    found, num = [], 0
    for document in text.heldout_documents():
        pieces = [piece for piece in sentences_of(document, text.settings) if piece.strip()]
        starts, place = [], 0
        for piece in pieces:
            place = document.index(piece, place)
            starts.append(place)
            place += len(piece)
        sentences = [
            own._replace(starts=own.starts + start, ends=own.ends + start)
            for own, start in zip(cut(pieces, text.settings), starts, strict=True)
            if own.words
        ]
        found.append(Document(document, sentences))
        num += sum(len(own.words) for own in sentences)
        if num >= num_words:
            break
    return found


def foretell(opened: Opened, documents: Sequence[Document], known: frozenset[str]) -> Foretold:
    """Ask a language model for the chances of all known words of documents."""
    sentences = [own.words for document in documents for own in document.sentences]
    if opened.kind == "ngram":
        return _by_counts(opened.model, sentences, known)
    if opened.kind == "nnlm":
        return _by_windows(opened.model, sentences, known)
    if opened.kind == "elmo":
        return _by_elmo(opened.model, sentences, known)
    return _by_gpt(opened.network, opened.tokenizer, documents, known)


def unigram(text: LadderText, documents: Sequence[Document], known: frozenset[str]) -> float:
    """What foretelling words by how often they were read reaches."""
    store = text.words.vocabulary
    total = float(np.asarray(store.counts, np.float64).sum())
    words = [w for document in documents for own in document.sentences for w in own.words]
    logs = [math.log(int(store.counts[store.id(word)]) / total) for word in words if word in known]
    return Foretold(sum(logs), len(logs)).perplexity


def _by_counts(model: Any, sentences: Sequence[list[str]], known: frozenset[str]) -> Foretold:
    log, num = 0.0, 0
    for words in sentences:
        logs_T = model.trie.advance(model.trie.state(), model.ids_of(words))
        is_asked_T = np.array([word in known for word in words])
        log += float(logs_T[is_asked_T].sum(dtype=np.float64)) * math.log(10)
        num += int(is_asked_T.sum())
    return Foretold(log, num)


def _by_windows(model: Any, sentences: Sequence[list[str]], known: frozenset[str]) -> Foretold:
    import torch

    window = model.config.window
    begin = np.full(window, len(model.vocabulary) + 2, np.int64)
    windows, targets = [], []
    for words in sentences:
        ids_T = np.concatenate([begin, model.ids_of(words)])
        for index, word in enumerate(words):
            if word in known:
                windows.append(ids_T[index : index + window])
                targets.append(ids_T[index + window])
    log, size = 0.0, max(1, _SCORES_AT_ONCE // (len(model.vocabulary) + 2))
    device = next(model.network.parameters()).device
    with torch.no_grad():
        for first in range(0, len(targets), size):
            rows_MW = torch.from_numpy(np.stack(windows[first : first + size])).to(device)
            asked_M = torch.from_numpy(np.array(targets[first : first + size])).to(device)
            logs_MV = model.network.logits(rows_MW).float().log_softmax(1)
            log += float(logs_MV.gather(1, asked_M[:, None]).double().sum())
    return Foretold(log, len(targets))


def _by_elmo(model: Any, sentences: Sequence[list[str]], known: frozenset[str]) -> Foretold:
    import torch

    from sememe.examples.word_rows import NUM_MARKS
    from sememe.networks.elmo_reading import framed, inputs_of
    from sememe.training.feeding import to_device

    opened = model.opened
    network, device = opened.network, next(opened.network.parameters()).device
    log, num = 0.0, 0
    order = sorted(sentences, key=len)
    size = max(1, _SCORES_AT_ONCE // (len(model.vocabulary) + NUM_MARKS))
    with torch.no_grad():
        for first in range(0, len(order), _ROWS_AT_ONCE):
            group = order[first : first + _ROWS_AT_ONCE]
            inputs = to_device(inputs_of([framed(words) for words in group], opened.forms), device)
            vectors_NP = network.words(inputs.form).index_select(0, inputs.index_N)
            outputs, _ = network.reads_forward(vectors_NP.unflatten(0, (-1, inputs.num_rows)))
            # Place 0 is the mark that begins a sentence: what stands there foretells word 0.
            asked = [
                (place, row, NUM_MARKS + model.vocabulary.id(word))
                for row, words in enumerate(group)
                for place, word in enumerate(words)
                if word in known
            ]
            asked_M3 = torch.tensor(asked, dtype=torch.int64).reshape(-1, 3).to(device)
            for part_M3 in asked_M3.split(size):
                hidden_MP = outputs[-1][part_M3[:, 0], part_M3[:, 1]].to(network.precision)
                logs_MV = network.next_logits(hidden_MP).float().log_softmax(1)
                log += float(logs_MV.gather(1, part_M3[:, 2:]).double().sum())
            num += len(asked_M3)
    return Foretold(log, num)


def _by_gpt(
    network: Any, tokenizer: Any, documents: Sequence[Document], known: frozenset[str]
) -> Foretold:
    log, num = 0.0, 0
    for document, (pieces, logs_T) in zip(
        documents, _piece_logs(network, tokenizer, documents), strict=True
    ):
        starts = np.concatenate([own.starts for own in document.sentences] or [np.empty(0, int)])
        ends = np.concatenate([own.ends for own in document.sentences] or [np.empty(0, int)])
        words = [word for own in document.sentences for word in own.words]
        if not words:
            continue
        pieces_P, owners_P = overlaps(pieces.starts, pieces.ends, starts, ends)
        # A piece over several words, as there are in Chinese, is shared by them.
        shares_T = np.bincount(pieces_P, minlength=len(logs_T))
        sums_W = np.zeros(len(words))
        np.add.at(sums_W, owners_P, logs_T[pieces_P] / shares_T[pieces_P])
        is_asked_W = np.array([word in known for word in words])
        log += float(sums_W[is_asked_W].sum())
        num += int(is_asked_W.sum())
    return Foretold(log, num)


def _piece_logs(
    network: Any, tokenizer: Any, documents: Sequence[Document]
) -> Iterator[tuple[Encoding, np.ndarray]]:
    """The pieces of each document, and the logarithms of their chances."""
    import torch

    from sememe.networks.framing import device_of

    size, device = network.seen_length, device_of(network)
    encodings = tokenizer.encode_batch([document.text for document in documents])
    for own in encodings:
        ids_T = np.concatenate([[tokenizer.end_id], own.ids]).astype(np.int64)
        logs_T = np.zeros(len(own.ids))
        seen = int(size * _OVERLAP)
        for first in range(0, max(1, len(own.ids)), size - seen):
            part = torch.from_numpy(ids_T[first : first + size])[None].to(device)
            targets = own.ids[first : first + size].astype(np.int64)
            with torch.no_grad():
                hidden_TD = network(part)[0][: len(targets)]
                logs_TV = network.next_logits(hidden_TD).float().log_softmax(-1)
            asked = torch.from_numpy(targets).to(device)[:, None]
            found = logs_TV.gather(1, asked)[:, 0].double().cpu().numpy()
            skipped = 0 if not first else seen  # they were asked with more before them
            logs_T[first + skipped : first + len(targets)] = found[skipped:]
            if first + size >= len(own.ids):
                break
        yield own, logs_T


# ---- hidden tokens ------------------------------------------------------------------------------


class Hidden(NamedTuple):
    """Shares of hidden tokens that were found: by the network, and by the commonest token."""

    accuracy: float
    commonest: float
    num: int


def find_hidden(
    opened: Opened, text: LadderText, vocab_size: int, num_batches: int, seed: int
) -> Hidden:
    """Hide every seventh token or so of held-out text from a BERT and count what it finds."""
    from sememe.examples.masked_batches import MaskedBatches
    from sememe.examples.masking_config import MaskingConfig
    from sememe.networks.baseline import token_counts, unigram_figures
    from sememe.networks.framing import device_of
    from sememe.networks.objectives import MaskedObjective
    from sememe.tokens.subword_store import open_or_build_subwords
    from sememe.training.distributed import Processes
    from sememe.training.evaluation import Validation

    tokenizer = opened.tokenizer
    place = text.folder / f"heldout-{tokenizer.fingerprint[:8]}"
    store = open_or_build_subwords(text.heldout, tokenizer, text=text.settings, path=place)
    store.validation_share = 0.0
    source = MaskedBatches(
        store, tokenizer, MaskingConfig(), length=min(128, opened.network.seen_length),
        batch_size=16, seed=seed, next_sentence=False, split="train",
    )  # fmt: skip
    validation = Validation(source, num_batches)
    objective = MaskedObjective(opened.network, has_pairs=False)
    figures = validation(objective, device_of(opened.network), Processes())
    counts = token_counts(store, tokenizer.vocab_size)
    commonest = unigram_figures(counts, source, validation.num_batches)["unigram_accuracy"]
    num = 0
    for step in range(validation.num_batches):
        targets = source.batch(step).targets_N
        num += 0 if targets is None else len(targets)
    return Hidden(figures["masked_accuracy"], commonest, num)
