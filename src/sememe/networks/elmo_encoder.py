"""ELMo under a head: its layers mixed as a task wants them, beside word vectors, under a reader.

B sequences, R rows of text (one or two of a sequence), T positions, N words and marks laid end to
end, D numbers of word vectors, P width of a direction, E forms of words that ELMo has met. ELMo
itself stays as it is; the mix, the reader and the head are learned (Peters et al. 2018, 3.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from sememe.networks.characters import MARKS
from sememe.networks.elmo import ELMoInputs
from sememe.networks.elmo_reading import Opened, read_layers
from sememe.networks.encoders import Inputs
from sememe.networks.features import choose_layers
from sememe.networks.layers import Linear
from sememe.networks.readers import Mix
from sememe.networks.words import BETWEEN_ID, NUM_MARKS, START_ID, Reads, WordEncoder, is_word
from sememe.training.feeding import to_device
from sememe.vectors.lexicon import WrittenLexicon

_WORDS_AT_ONCE = 4_096
_SAMPLE = 2_000  # words that tell how large ELMo's numbers are
# A text begins with the first of ELMo's marks and ends with the second; words follow all three.
_BEGIN, _END = 0, 1
assert len(MARKS) == NUM_MARKS  # so that words have the same numbers as in the sequences


class _Frozen:
    """A network that a module uses and does not own: it is neither trained nor saved with it."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        opened.network.requires_grad_(False).eval()

    def __deepcopy__(self, memo: Any) -> _Frozen:
        """Itself: copies of an encoder share it."""
        return self


class ELMoEncoder(WordEncoder):
    """The mixed layers of ELMo, with word vectors beside them or none, read by a BiLSTM."""

    forms_EP: Tensor  # the vectors of words by themselves: marks, then the lexicon's words
    shared_LD: Tensor  # what all words of a layer share

    def __init__(
        self,
        opened: Opened,
        lexicon: WrittenLexicon,
        *,
        reads: Reads,
        features: str = "",
        is_frozen: bool = False,
        reader_width: int = 128,
        dropout: float = 0.3,
    ) -> None:
        """`features` takes one layer instead of the mix; `is_frozen` is of the word vectors."""
        config = opened.network.config
        super().__init__(
            lexicon, reads=reads, is_frozen=is_frozen or not lexicon.dim,
            reader_width=reader_width, dropout=dropout, beside=2 * config.width,
        )  # fmt: skip
        self._frozen, self.features = _Frozen(opened), features
        self.mix = None if features not in ("", "mix") else Mix(config.num_layers + 1)
        self.pool = Attention(self.word_width) if reads == "text" and reader_width else None
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
        """Draw the first weights of the reader and of what looks over its words."""
        super().initialise(generator)
        if self.pool is not None:
            self.pool.initialise(generator)

    @torch.no_grad()
    def learn_words(self, num_words: int, generator: torch.Generator) -> None:
        """Make room for what is learned of words; find what all words in context share.

        Readers expect numbers of about one around zero. What each layer adds to every word
        alike is taken away, which a bias could do, and the mix starts at the fitting scale.
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
        """Go on from what another task taught over the same words."""
        super().take_from(earlier)
        if isinstance(earlier, ELMoEncoder):
            self.shared_LD.copy_(earlier.shared_LD)
        for name in ("mix", "pool"):
            own, other = getattr(self, name), getattr(earlier, name, None)
            if own is not None and other is not None:
                own.load_state_dict(other.state_dict())

    def share(self, lexicon: Any) -> None:
        """Take the words of another lexicon, which begins with those that were learned here."""
        super().share(lexicon)
        self.forms_EP = self.forms_EP[:0]

    @torch.no_grad()
    def _grow_forms(self) -> None:
        """Compute the vectors of words that were met since, by themselves, once for all."""
        known = [*MARKS, *self.lexicon.words]
        parts, device = [self.forms_EP], self.forms_EP.device
        for first in range(len(self.forms_EP), len(known), _WORDS_AT_ONCE):
            form = self.elmo.forms.of_words(known[first : first + _WORDS_AT_ONCE])
            parts.append(self.elmo.network.words(to_device(form, device)).float())
        if len(parts) > 1:
            self.forms_EP = torch.cat(parts)

    def vectors(self, inputs: Inputs) -> Tensor:
        """Word vectors and the mixed layers of each word and mark, (N, D + 2 P)."""
        mixed_ND = self.in_context(inputs)
        if not self.lexicon.dim:
            return mixed_ND
        return torch.cat([self.look_up(inputs.ids_N), mixed_ND], 1)

    def in_context(self, inputs: Inputs) -> Tensor:
        """The mixed layers of each word and mark, (N, 2 P)."""
        self._grow_forms()
        with torch.no_grad():
            rows, places_N = self._rows(inputs)
            read = self.elmo.network.read_vectors(self.forms_EP, rows)
            layers = [layer.flatten(0, 1).index_select(0, places_N) for layer in read.layers()]
        return self._joined(layers)

    def _joined(self, layers: list[Tensor]) -> Tensor:
        """The mix of layers, or those that were asked for, (N, 2 P)."""
        own = [layer - shared_D for layer, shared_D in zip(layers, self.shared_LD, strict=True)]
        if self.mix is not None:
            return self.mix(own)
        return choose_layers(own, self.features)  # type: ignore[arg-type]

    def _rows(self, inputs: Inputs) -> tuple[ELMoInputs, Tensor]:
        """Each text of a batch as a row of its own, and where each word and mark lies in them."""
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
        return ELMoInputs((), grid, _turned(sizes_R + 1, num_positions), num_rows), places_N

    def sequences(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """A vector for each text, words weighted by attention; of two texts as word vectors do."""
        if self.pool is None:
            return super().sequences(tokens_ND, inputs)
        return self.pool(tokens_ND, inputs)


def _turned(lengths_R: Tensor, num_positions: int) -> Tensor:
    """Where each place goes when rows are turned round, as `turned_places` says, on a device."""
    positions_T1 = torch.arange(num_positions, device=lengths_R.device)[:, None]
    partners_TR = torch.where(positions_T1 < lengths_R, lengths_R - 1 - positions_T1, positions_T1)
    rows_R = torch.arange(len(lengths_R), device=lengths_R.device)
    return (partners_TR * len(lengths_R) + rows_R).flatten()


class Attention(nn.Module):
    """One vector for a text: its words, weighted by what each scores (Yang et al. 2016)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.score = Linear(width, width), Linear(width, 1, bias=False)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the first weights."""
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
