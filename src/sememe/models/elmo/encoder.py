"""Contextual word vectors from ELMo: sentences in, word vectors out; alone, or under a head.

L layers, W words of a sentence, T positions, B rows, D = 2 P dimensions of both directions. Layer 0
is the input vector, twice; layer 1 the output of the first LSTMs. A sentence is between its special
tokens.

B sequences, R rows of text (one or two per sequence), T positions, N words and special tokens
concatenated, D dimensions of word vectors, P width of a direction, E word forms seen so far. ELMo
itself is frozen; the mix, the reader and the head are trained (Peters et al. 2018, 3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from sememe.contract import KINDS
from sememe.errors import OptionError
from sememe.examples.running_words import is_word as holds_word, written
from sememe.models.elmo.network import ELMoInputs, ELMoNetwork, Forms, rows_of_words
from sememe.models.language.word_reading import read_sentences
from sememe.models.static.encoder import VECTORS, WordBackbone
from sememe.nn.character_cnn import BEGIN, END, MARKS
from sememe.nn.encoders import Inputs, Reads
from sememe.nn.feature_layers import Choice, Mix, choose_layers
from sememe.nn.layers import Linear
from sememe.nn.lstm import reversed_positions
from sememe.nn.word_encoder import (
    BETWEEN_ID,
    NUM_MARKS,
    READER_WIDTH,
    START_ID,
    WordCoder,
    WordEncoder,
    is_word,
)
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import Encoding
from sememe.training.device import to_device
from sememe.training.weights import weights_hash
from sememe.vectors import load
from sememe.vectors.lexicon import Lexicon

if TYPE_CHECKING:
    from sememe.models.elmo.model import ELMo


class Opened(NamedTuple):
    """A network with what it needs to encode words."""

    network: ELMoNetwork
    forms: Forms


def framed(words: Sequence[str]) -> list[str]:
    """A sentence between its special tokens."""
    return [BEGIN, *words, END]


def inputs_of(rows: Sequence[Sequence[str]], forms: Forms) -> ELMoInputs:
    """Rows of words as network inputs, with distinct words listed once."""
    numbers: dict[str, int] = {}
    lengths_B = np.array([len(row) for row in rows], np.int64)
    index_BT = np.zeros((len(rows), int(lengths_B.max())), np.int64)
    for index_T, row in zip(index_BT, rows, strict=True):
        index_T[: len(row)] = [numbers.setdefault(word, len(numbers)) for word in row]
    return rows_of_words(index_BT, lengths_B, forms.of_words(list(numbers)))


_WORDS_AT_ONCE = 4_096


@torch.no_grad()
def word_vectors(opened: Opened, words: Sequence[str]) -> list[Tensor]:
    """The input vectors of words, some thousands at a time, (U, P) each."""
    device, found = next(opened.network.parameters()).device, []
    for first in range(0, len(words), _WORDS_AT_ONCE):
        form = opened.forms.of_words(words[first : first + _WORDS_AT_ONCE])
        found.append(opened.network.words(to_device(form, device)).float())
    return found


def read_layers(opened: Opened, sentences: Sequence[Sequence[str]]) -> list[list[Tensor]]:
    """The L + 1 layers of each sentence, (W, D) each, without special tokens; on the device."""
    device = next(opened.network.parameters()).device

    def read(rows: list[Sequence[str]]) -> list[Tensor]:
        inputs = to_device(inputs_of([framed(words) for words in rows], opened.forms), device)
        return opened.network.read(inputs).layers()

    return read_sentences(read, sentences)


def embed_sentences(
    opened: Opened, sentences: Sequence[Sequence[str]], layers: Choice = "last"
) -> list[np.ndarray]:
    """The vectors of the words of each sentence, (W, D)."""
    found = [choose_layers(own, layers) for own in read_layers(opened, sentences)]
    if not found:
        return []
    # One transfer from the device for all: each transfer would be waited for.
    together_ND = torch.cat(found).cpu().numpy()
    return np.split(together_ND, np.cumsum([len(own) for own in found])[:-1])


_SAMPLE = 2_000  # words that say how large ELMo's numbers are
# A text begins with the first of ELMo's marks and ends with the second; words follow all three.
_BEGIN, _END = 0, 1
assert len(MARKS) == NUM_MARKS  # so that words have the same numbers as in the sequences


class _Frozen:
    """A network that a module uses but does not own: neither trained nor saved with it."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        opened.network.requires_grad_(False).eval()

    def __deepcopy__(self, memo: Any) -> _Frozen:
        """Itself: copies of an encoder share it."""
        return self


class ELMoEncoder(WordEncoder):
    """A mix of ELMo's layers, optionally concatenated with word vectors, read by a BiLSTM."""

    forms_EP: Tensor  # the vectors of words by themselves: marks, then the lexicon's words
    shared_LD: Tensor  # what all words of a layer share

    def __init__(
        self,
        opened: Opened,
        lexicon: Lexicon,
        *,
        reads: Reads,
        features: str = "",
        is_frozen: bool = False,
        reader_width: int = 128,
        dropout: float = 0.3,
    ) -> None:
        """`features` selects one layer instead of the mix; `is_frozen` is for the word vectors."""
        config = opened.network.config
        super().__init__(
            lexicon, reads=reads, is_frozen=is_frozen or not lexicon.dim,
            reader_width=reader_width, dropout=dropout, extra_width=2 * config.width,
        )  # fmt: skip
        self._frozen, self.features = _Frozen(opened), features
        self.mix = None if features not in ("", "mix") else Mix(config.num_layers + 1)
        self.pool = AttentionPool(self.word_width) if reads == "text" and reader_width else None
        self.marks.requires_grad_(bool(lexicon.dim))
        self.register_buffer("forms_EP", torch.zeros(0, config.width), persistent=False)
        self.register_buffer("shared_LD", torch.zeros(config.num_layers + 1, 2 * config.width))

    @property
    def elmo(self) -> Opened:
        """The network that is used."""
        return self._frozen.opened

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> ELMoEncoder:
        """Move the network along with the rest."""
        super()._apply(fn, recurse)
        self.elmo.network._apply(fn)
        return self

    def initialise(self, generator: torch.Generator) -> None:
        """Initialize the weights of the reader and of the attention pooling."""
        super().initialise(generator)
        if self.pool is not None:
            self.pool.initialise(generator)

    def leave_pooler(self) -> None:
        """Declare that no head needs the vectors of sequences."""
        if self.pool is not None:
            self.pool.requires_grad_(False)

    @torch.no_grad()
    def learn_words(self, num_words: int, generator: torch.Generator) -> None:
        """Make room for word offsets; compute the mean of contextual vectors.

        Readers expect values of about unit scale around zero. The mean of each layer is subtracted,
        as a bias could do, and the mix starts at the right scale.
        """
        super().learn_words(num_words, generator)
        words = self.lexicon.words[:_SAMPLE]
        if self.shared_LD.any() or not words:
            return
        # Words in the order in which the texts brought them are a text of sorts.
        rows = [words[first : first + 20] for first in range(0, len(words), 20)]
        layers = [torch.cat(parts) for parts in zip(*read_layers(self.elmo, rows), strict=True)]
        self.shared_LD.copy_(torch.stack([layer.mean(0) for layer in layers]))
        size = float(self._joined(layers).square().mean().sqrt())
        if self.mix is not None and size > 0:
            self.mix.scale.fill_(1 / size)

    def take_from(self, earlier: WordEncoder) -> None:
        """Continue from an earlier task over the same words."""
        super().take_from(earlier)
        if isinstance(earlier, ELMoEncoder):
            self.shared_LD.copy_(earlier.shared_LD)
        for name in ("mix", "pool"):
            own, other = getattr(self, name), getattr(earlier, name, None)
            has_same = name == "mix" or self.word_width == earlier.word_width
            if own is not None and other is not None and has_same:
                own.load_state_dict(other.state_dict())

    def share(self, lexicon: Any) -> None:
        """Use another lexicon, which begins with the words that were learned here."""
        super().share(lexicon)
        self.forms_EP = self.forms_EP[:0]

    def _grow_forms(self) -> None:
        """Compute the input vectors of words added since the last call, once for all."""
        known = [*MARKS, *self.lexicon.words]
        if new := word_vectors(self.elmo, known[len(self.forms_EP) :]):
            self.forms_EP = torch.cat([self.forms_EP, *new])

    def vectors(self, inputs: Inputs) -> Tensor:
        """Word vectors and the mixed layers of each word and special token, (N, D + 2 P)."""
        mixed_ND = self.in_context(inputs)
        if not self.lexicon.dim:
            return mixed_ND
        return torch.cat([self.look_up(inputs.ids_N), mixed_ND], 1)

    def in_context(self, inputs: Inputs) -> Tensor:
        """The mixed layers of each word and special token, (N, 2 P)."""
        self._grow_forms()
        with torch.no_grad():
            rows, places_N = self._rows(inputs)
            read = self.elmo.network.read_vectors(self.forms_EP, rows)
            layers = [layer.flatten(0, 1).index_select(0, places_N) for layer in read.layers()]
        return self._joined(layers)

    def _joined(self, layers: list[Tensor]) -> Tensor:
        """The mix of layers, or the selected ones, (N, 2 P)."""
        own = [layer - shared_D for layer, shared_D in zip(layers, self.shared_LD, strict=True)]
        if self.mix is not None:
            return self.mix(own)
        return choose_layers(own, self.features)  # type: ignore[arg-type]

    def _rows(self, inputs: Inputs) -> tuple[ELMoInputs, Tensor]:
        """Each text of a batch as a separate row, and the position of each word in them."""
        ids_N, segments_N, rows = inputs.ids_N, inputs.segments_N, inputs.rows
        assert rows.starts is not None and rows.places_N is not None
        texts = 2 if self.reads in ("texts", "question") else 1
        num_rows, num_positions = texts * rows.num_rows, rows.max_length + 1
        sequence_N = rows.places_N.div(rows.max_length, rounding_mode="floor")
        row_N = texts * sequence_N + (segments_N if texts == 2 else 0)
        sizes_R = torch.zeros(num_rows, dtype=torch.int64, device=ids_N.device)
        sizes_R.index_add_(0, row_N, torch.ones_like(row_N))
        # A second text begins where the first one ends.
        position_N = inputs.positions_N
        if texts == 2:
            position_N = position_N - segments_N * sizes_R[0::2].index_select(0, sequence_N)
        places_N = position_N * num_rows + row_N
        is_mark_N = (ids_N == START_ID) | (ids_N == BETWEEN_ID)
        words_N = torch.where(is_mark_N, _BEGIN, torch.where(ids_N < NUM_MARKS, 2, ids_N))
        grid = ids_N.new_full((num_positions * num_rows,), _END).index_copy(0, places_N, words_N)
        return ELMoInputs(
            (), grid, reversed_positions(sizes_R + 1, num_positions), num_rows
        ), places_N

    def sequences(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """One vector per text, its words weighted by attention; pairs as for word vectors."""
        if self.pool is None:
            return super().sequences(tokens_ND, inputs)
        return self.pool(tokens_ND, inputs)


class AttentionPool(nn.Module):
    """Attention pooling: a weighted mean of a text's words (Yang et al. 2016)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.score = Linear(width, width), Linear(width, 1, bias=False)

    def initialise(self, generator: torch.Generator) -> None:
        """Initialize the weights."""
        for part in (self.hidden, self.score):
            nn.init.xavier_uniform_(part.weight, generator=generator)
        nn.init.zeros_(self.hidden.bias)

    def forward(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """The weighted mean over the words of each text, (B, D); over its mark if it has none."""
        scores_N = self.score(self.hidden(tokens_ND).tanh()).squeeze(1)
        scores_N = scores_N.masked_fill(~is_word(inputs), torch.finfo(scores_N.dtype).min)
        rows = inputs.rows
        assert rows.is_token_BT is not None
        scores_BT = rows.padded(scores_N).masked_fill(~rows.is_token_BT, float("-inf"))
        return (scores_BT.softmax(1)[..., None] * rows.padded(tokens_ND)).sum(1)


# ---- fine-tuning ----------------------------------------------------------------------------

_FOLDER = "elmo"  # ELMo's own folder inside a task's, which opens by itself too
_DROPOUT = 0.3
_LAYERS = ("", "mix", "first", "last", "second-to-last", "sum-all")


class ELMoCoder(WordCoder):
    """Words as they are written, with a mark before and between texts."""

    lexicon: Lexicon

    def _is_kept(self, piece: str, word: str) -> bool:
        return holds_word(piece, self.text) or super()._is_kept(piece, word)

    def encode_words(self, words: Sequence[str]) -> list[Encoding]:
        """Tokenized words, each kept as one word whatever it contains."""
        found = []
        for word in words:
            ids = np.array([NUM_MARKS + self.lexicon.number(written(word, self.text))], np.int32)
            place = np.array([0], np.int32), np.array([len(word)], np.int32)
            found.append(Encoding(ids, *place, np.ones(1, np.bool_)))
        return found


class ELMoBackbone(WordBackbone):
    """A frozen ELMo, optionally with word vectors."""

    network = "elmo"
    encoder: ELMoEncoder
    coder: ELMoCoder
    elmo: ELMo

    @classmethod
    def of(cls, model: ELMo, reads: Reads, config: Any) -> Self:
        """ELMo for a head that needs `reads`, with the word vectors that the options name."""
        vectors = load(config.vectors) if config.vectors else None
        return cls._with(model, Lexicon(vectors, is_written=True), reads, config)

    @classmethod
    def _with(cls, model: ELMo, lexicon: Lexicon, reads: Reads, config: Any) -> Self:
        if config.features not in _LAYERS:
            raise OptionError(
                f"features of ELMo must be one of {', '.join(_LAYERS[1:])}, not "
                f"{config.features!r}."
            )
        if config.lm_weight:
            raise OptionError("lm_weight needs a GPT: ELMo stays as it is.")
        encoder = ELMoEncoder(
            model.opened, lexicon, reads=reads, features=config.features,
            is_frozen=config.freeze, reader_width=config.reader_width or READER_WIDTH,
            dropout=_DROPOUT if config.dropout is None else config.dropout,
        )  # fmt: skip
        encoder.initialise(torch.Generator().manual_seed(config.seed))
        backbone = cls(encoder, ELMoCoder(lexicon, model.text, config.length))
        backbone.elmo = model
        return backbone

    def _renewed(self, reads: Reads, config: Any) -> Self:
        return self._with(self.elmo, self.coder.lexicon, reads, config)

    @property
    def description(self) -> str:
        """What the task starts from, in words."""
        config, lexicon = self.encoder.elmo.network.config, self.coder.lexicon
        vectors = f" beside vectors of {len(lexicon.vectors):,} words" if lexicon.dim else ""
        sizes = f"{config.num_layers} layers per direction × {config.num_cells}/{config.width}"
        return f"ELMo, {sizes}{vectors}, BiLSTM of {self.encoder.reader_width} per direction"

    def fingerprints(self) -> dict[str, str]:
        """Hashes of the words seen so far with their vectors, and of ELMo's weights."""
        return super().fingerprints() | {"elmo": weights_hash(self.encoder.elmo.network)}

    def _write_vectors(self, folder: Path) -> None:
        self.elmo.save(folder / _FOLDER)
        if self.coder.lexicon.has_vectors:
            self.coder.lexicon.vectors.save(folder / VECTORS)

    @classmethod
    def _read(
        cls, folder: Path, words: list[str], text: TextSettings, reads: Reads, config: Any
    ) -> Self:
        vectors = load(folder / VECTORS) if (folder / VECTORS).is_dir() else None
        model = KINDS[cls.network].cls().load(folder / _FOLDER)
        return cls._with(model, Lexicon(vectors, words, is_written=True), reads, config)
