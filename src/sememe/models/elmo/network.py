"""ELMo: a language model that reads forwards and one that reads backwards (Peters et al. 2018).

Words come in by characters, by a vector each, or by sub-words: forms, made on the host by the
thread that prepares batches, say what a word looks like; a module turns them into vectors.

U distinct words of a batch, T positions, B rows, N = T × B places, M predictions, P width of a
direction, V vocabulary, L layers. Both directions share what comes before and after the LSTMs: the
vectors of words by themselves, and the softmax. `BidirectionalObjective` is what the loop sees.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from sememe.examples.word_rows import NUM_MARKS, UNKNOWN_ID, WordRows, has_target, neighbors_of
from sememe.models.elmo.config import ELMoConfig
from sememe.nn.character_cnn import MARKS, CharacterCNN, spell_ids, spell_words, trimmed
from sememe.nn.layers import drop_out, table_logits
from sememe.nn.lstm import LSTMLayer, State, reverse_rows, reversed_positions
from sememe.nn.softmax import Sampler, Samples, log_shares, sampled_loss, score_tokens
from sememe.tokens.ngrams import ngram_rows_of
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.objective import NetworkObjective

MINN, MAXN = 3, 6  # characters of a sub-word, as in fastText

Form = tuple[Tensor, ...]


class CharacterForms:
    """The characters of words, (U, C)."""

    def __init__(self, vocabulary: Vocabulary, config: ELMoConfig) -> None:
        self.vocabulary, self.places = vocabulary, config.max_characters
        self.widest = max(size for size, _ in config.filter_sizes)

    def of_ids(self, ids_U: np.ndarray) -> Form:
        """Spell the words with these ids."""
        return self._form(spell_ids(ids_U, self.vocabulary, self.places))

    def of_words(self, words: Sequence[str]) -> Form:
        """Spell words."""
        return self._form(spell_words(words, self.places))

    def _form(self, chars_UC: np.ndarray) -> Form:
        return (torch.from_numpy(np.ascontiguousarray(trimmed(chars_UC, self.widest))),)


class WordForms:
    """The ids of words, (U,); words that are not predicted share the unknown word's id."""

    def __init__(self, vocabulary: Vocabulary, config: ELMoConfig) -> None:
        self.vocabulary, self.vocab_size = vocabulary, config.vocab_size

    def of_ids(self, ids_U: np.ndarray) -> Form:
        """The ids as they are."""
        ids_U = np.where(ids_U < self.vocab_size, ids_U, UNKNOWN_ID)
        return (torch.from_numpy(ids_U.astype(np.int64)),)

    def of_words(self, words: Sequence[str]) -> Form:
        """Look words up."""
        return self.of_ids(np.array([word_id(word, self.vocabulary) for word in words], np.int64))


class SubwordForms:
    """The rows of words and of their n-grams concatenated, and where each word's start."""

    def __init__(self, vocabulary: Vocabulary, config: ELMoConfig) -> None:
        self.vocab_size, self.bucket = config.vocab_size, config.bucket
        self.vocabulary = vocabulary
        self._kept: dict[str, np.ndarray] = {}

    def of_ids(self, ids_U: np.ndarray) -> Form:
        """The rows of the words with these ids."""
        return self.of_words(
            [MARKS[i] if i < NUM_MARKS else self.vocabulary[i - NUM_MARKS] for i in ids_U.tolist()]
        )

    def of_words(self, words: Sequence[str]) -> Form:
        """The rows of words; an unknown one has those of its n-grams."""
        rows = [self._rows(word) for word in words]
        starts_U = np.cumsum([0, *(len(own) for own in rows)])[:-1]
        return torch.from_numpy(np.concatenate(rows)), torch.from_numpy(starts_U)

    def _rows(self, word: str) -> np.ndarray:

        if word not in self._kept:
            own_id = word_id(word, self.vocabulary)
            own_id = own_id if own_id < self.vocab_size else UNKNOWN_ID
            rows: Any = []
            if word not in MARKS:
                rows = ngram_rows_of(word, self.vocab_size, MINN, MAXN, self.bucket)
            self._kept[word] = np.concatenate([[own_id], rows]).astype(np.int64)
        return self._kept[word]


def word_id(word: str, vocabulary: Vocabulary) -> int:
    """The id of a word or special token; that of the unknown word otherwise."""
    if word in MARKS:
        return MARKS.index(word)
    found = vocabulary.find(word)
    return UNKNOWN_ID if found < 0 else NUM_MARKS + found


Forms = CharacterForms | WordForms | SubwordForms
_FORMS: dict[str, Any] = {
    "characters": CharacterForms, "words": WordForms, "subwords": SubwordForms,
}  # fmt: skip


def forms_of(vocabulary: Vocabulary, config: ELMoConfig) -> Forms:
    """The class of forms for a network of these sizes."""
    return _FORMS[config.input](vocabulary, config)


class RowTable(nn.Module):
    """A vector per row; a word with several rows is their mean."""

    def __init__(self, num_rows: int, width: int) -> None:
        super().__init__()
        self.rows = nn.EmbeddingBag(num_rows, width, mode="mean")

    def initialise(self, generator: torch.Generator) -> None:
        """Initialize the weights."""
        nn.init.normal_(self.rows.weight, std=0.5, generator=generator)

    def forward(
        self, rows: Tensor, starts_U: Tensor | None = None, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """A vector for each word, (U, D)."""
        if starts_U is None:
            starts_U = torch.arange(len(rows), device=rows.device)
        return self.rows(rows, starts_U).to(dtype)


def input_layer(config: ELMoConfig) -> CharacterCNN | RowTable:
    """The module that turns forms into vectors."""
    if config.input == "characters":
        return CharacterCNN(
            config.filter_sizes, config.width, char_width=config.char_width,
            num_highways=config.num_highways, activation=config.activation,
        )  # fmt: skip
    num_rows = config.vocab_size + (config.bucket if config.input == "subwords" else 0)
    return RowTable(num_rows, config.width)


class ELMoInputs(NamedTuple):
    """Rows of words: the form of each distinct word, and the index of the one at each position."""

    form: Form
    index_N: Tensor  # indices of the distinct words, position by position
    turned_N: Tensor  # the position of each entry when rows are reversed
    num_rows: int


def rows_of_words(index_BT: np.ndarray, lengths_B: np.ndarray, form: Form) -> ELMoInputs:
    """Rows as network inputs; built on the host."""
    return ELMoInputs(
        form=form,
        index_N=torch.from_numpy(np.ascontiguousarray(index_BT.T).reshape(-1).astype(np.int64)),
        turned_N=reversed_positions(
            torch.from_numpy(lengths_B.astype(np.int64)), index_BT.shape[1]
        ),
        num_rows=len(index_BT),
    )


class Read(NamedTuple):
    """The network's outputs for rows: input vectors, then each direction's layers."""

    words_TBP: Tensor
    forward: list[Tensor]  # L of (T, B, P)
    backward: list[Tensor]

    def layers(self) -> list[Tensor]:
        """L + 1 layers of both directions concatenated, (T, B, 2 P); layer 0 is doubled."""
        pairs = [(self.words_TBP, self.words_TBP), *zip(self.forward, self.backward, strict=True)]
        return [torch.cat(pair, 2) for pair in pairs]


class Direction(nn.Module):
    """The layers of one direction, with residual connections above the first."""

    def __init__(self, config: ELMoConfig) -> None:
        super().__init__()
        self.residual, self.dropout = config.residual, config.dropout
        self.layers: Any = nn.ModuleList(
            LSTMLayer(
                config.width, config.num_cells, config.width, cell_clip=config.cell_clip,
                output_clip=config.output_clip,
            )
            for _ in range(config.num_layers)
        )  # fmt: skip

    def forward(
        self, x_TBP: Tensor, states: Sequence[State] | None = None
    ) -> tuple[list[Tensor], list[State]]:
        """The outputs of every layer, and its state after the last position."""
        found, ends = [], []
        for index, layer in enumerate(self.layers):
            seen_TBP = drop_out(x_TBP, self.dropout if self.training else 0.0)
            said_TBP, end = layer(seen_TBP, None if states is None else states[index])
            x_TBP = said_TBP + seen_TBP if self.residual and index else said_TBP
            found.append(x_TBP)
            ends.append(end)
        return found, ends


class ELMoNetwork(nn.Module):
    """Two stacks of LSTMs between one input layer and one softmax."""

    def __init__(self, config: ELMoConfig, *, seed: int = 1) -> None:
        super().__init__()
        self.config = config
        # The activation precision outside the LSTMs; the weights stay float32.
        self.precision = torch.float32
        self.input = input_layer(config)
        self.reads_forward, self.reads_backward = Direction(config), Direction(config)
        self.table_VP: Any = None  # parameters, where there is a softmax
        self.bias_V: Any = None
        if config.has_softmax:
            self.table_VP = nn.Parameter(torch.zeros(config.padded_vocab_size, config.width))
            self.bias_V = nn.Parameter(torch.zeros(config.padded_vocab_size))
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Draw the initial weights; the same seed gives the same weights."""
        generator = torch.Generator().manual_seed(seed)
        self.input.initialise(generator)
        for direction in (self.reads_forward, self.reads_backward):
            for layer in direction.layers:
                layer.initialise(generator)
        if self.table_VP is not None:
            std = 1 / math.sqrt(self.config.width)
            nn.init.normal_(self.table_VP, std=std, generator=generator)
            with torch.no_grad():
                self.table_VP[self.config.vocab_size :] = 0

    @torch.no_grad()
    def begin_with(self, counts_V: np.ndarray) -> None:
        """Start from word frequencies, so that only the effect of context must be learned."""
        self.bias_V[: self.config.vocab_size] = log_shares(counts_V)

    def words(self, form: Form) -> Tensor:
        """The input vectors of distinct words, (U, P)."""
        return self.input(*form, dtype=self.precision)

    def read(self, inputs: ELMoInputs) -> Read:
        """Read rows in both directions."""
        return self.read_vectors(self.words(inputs.form), inputs)

    def read_vectors(self, words_UP: Tensor, inputs: ELMoInputs) -> Read:
        """Read rows in both directions, given the vectors of their distinct words."""
        words_NP = words_UP.index_select(0, inputs.index_N)
        words_TBP = words_NP.unflatten(0, (-1, inputs.num_rows))
        forward, _ = self.reads_forward(words_TBP)
        backward, _ = self.reads_backward(reverse_rows(words_TBP, inputs.turned_N))
        return Read(words_TBP, forward, [reverse_rows(own, inputs.turned_N) for own in backward])

    def next_logits(self, hidden_MP: Tensor) -> Tensor:
        """Score every word as the next one, (M, V)."""
        return table_logits(hidden_MP, self.table_VP, self.bias_V, self.config.vocab_size)

    def loss(
        self, hidden_TBP: Tensor, places_M: Tensor, targets_M: Tensor, samples: Samples | None
    ) -> Tensor:
        """The summed loss of one direction's predictions, over all words or over a sample."""
        hidden_MP = hidden_TBP.flatten(0, 1).index_select(0, places_M)
        hidden_MP = drop_out(hidden_MP, self.config.dropout if self.training else 0.0)
        hidden_MP = hidden_MP.to(self.precision)
        if samples is not None:
            return sampled_loss(hidden_MP, self.table_VP, self.bias_V, targets_M, samples)
        size = self.config.vocab_size
        return score_tokens(hidden_MP, self.table_VP, self.bias_V, size, targets_M).loss


class ELMoBatch(NamedTuple):
    """A batch as tensors."""

    inputs: ELMoInputs
    forward: tuple[Tensor, Tensor]  # positions and their target words
    backward: tuple[Tensor, Tensor]
    samples: Samples | None


class BidirectionalObjective(NetworkObjective):
    """Both directions' losses, added (Peters et al. 2018, 3.1)."""

    counted_by: Mapping[str, str] = {
        "forward_loss": "forward", "backward_loss": "backward",
    }  # fmt: skip

    def __init__(self, network: ELMoNetwork, forms: Forms, sampler: Sampler | None = None) -> None:
        """With a sampler, training uses a sampled softmax."""
        super().__init__(network)
        self.forms, self.sampler = forms, sampler

    def counts(self, batch: WordRows) -> dict[str, int]:
        """Words and special tokens of a batch, and the predictions of each direction."""
        return {
            "tokens": int(batch.lengths_B.sum()),
            "forward": int(has_target(batch, +1).sum()),
            "backward": int(has_target(batch, -1).sum()),
        }

    def prepare(self, batch: WordRows) -> ELMoBatch:
        """Find the distinct words of a batch and its targets."""
        distinct_U, index = np.unique(batch.ids_BT, return_inverse=True)
        inputs = rows_of_words(
            index.reshape(batch.ids_BT.shape), batch.lengths_B, self.forms.of_ids(distinct_U)
        )
        samples = None if self.sampler is None else self.sampler.draw(batch.key)
        return ELMoBatch(inputs, self._targets_at(batch, +1), self._targets_at(batch, -1), samples)

    def _targets_at(self, batch: WordRows, step: int) -> tuple[Tensor, Tensor]:
        """The positions and target words of the direction that moves by `step`."""
        places_M, targets_M = neighbors_of(batch, step, self.network.config.vocab_size)
        return torch.from_numpy(places_M), torch.from_numpy(targets_M)

    def forward(
        self, batch: ELMoBatch, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        read = self.network.read(batch.inputs)
        samples = batch.samples if self.training else None
        forward = self.network.loss(read.forward[-1], *batch.forward, samples)
        backward = self.network.loss(read.backward[-1], *batch.backward, samples)
        loss = forward / counts["forward"] + backward / counts["backward"]
        return loss, {"forward_loss": forward.detach(), "backward_loss": backward.detach()}
