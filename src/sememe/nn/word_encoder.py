"""Word vectors under a head: texts as word ids, then one vector per word or per text.

B sequences, T positions, N words of all sequences concatenated, D dimensions of a word vector, R
width of a reader. Means of words, a BiLSTM over them, and a BiLSTM that attends to a second text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Several

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sememe.examples.running_words import places_in, written
from sememe.nn.encoders import Coder, Encoder, Inputs, Reads, SequenceMarks
from sememe.nn.feature_layers import BiLSTM
from sememe.nn.layers import Linear, drop_out
from sememe.text.settings import TextSettings
from sememe.tokens.subwords.tokenizer import Encoding
from sememe.vectors.lexicon import Lexicon

UNKNOWN_ID, START_ID, BETWEEN_ID = range(3)
NUM_MARKS = 3  # words have the ids that follow

# A single word has no context: tags and answers use a BiLSTM.
READER_WIDTH = 128


class WordCoder(Coder):
    """Tokenizes texts as for the vectors, with a mark before and between texts."""

    kind = "words"
    unknown_id = UNKNOWN_ID
    marks = SequenceMarks((START_ID,), (), (BETWEEN_ID,), ())

    def __init__(self, lexicon: Lexicon, text: TextSettings, length: int) -> None:
        self.lexicon, self.text, self.length = lexicon, text, length
        self._ids: dict[str, int] = {}

    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Split texts into words with their positions; a text that is a known word is one."""
        cut = places_in(texts, self.text)
        return [self._encoded(text, places) for text, places in zip(texts, cut, strict=True)]

    def _encoded(self, text: str, places: list[tuple[int, int]]) -> Encoding:
        if len(places) > 1 and self.lexicon.has_own(text):
            places = [(0, len(text))]
        ids = [self._id(text[start:end]) for start, end in places]
        if not any(ids):
            ids = [NUM_MARKS + self.lexicon.number(text[start:end]) for start, end in places]
        own = [place for place, word_id in zip(places, ids, strict=True) if word_id]
        own_N2 = np.array(own, np.int32).reshape(-1, 2)
        kept = np.array([word_id for word_id in ids if word_id], np.int32)
        return Encoding(kept, own_N2[:, 0], own_N2[:, 1], np.ones(len(kept), np.bool_))

    def _id(self, piece: str) -> int:
        """The id of a word as in a text, or 0 for punctuation that the vectors never saw.

        Such punctuation is omitted, unless a text has nothing else.
        """
        found = self._ids.get(piece)
        if found is None:
            word = self.lexicon.spelling(written(piece, self.text))
            is_kept = self._is_kept(piece, word)
            found = self._ids[piece] = NUM_MARKS + self.lexicon.number(word) if is_kept else 0
        return found

    def _is_kept(self, piece: str, word: str) -> bool:
        return any(map(str.isalnum, word)) or self.lexicon.has_own(word)


class WordEncoder(Encoder):
    """Word vectors, frozen or trained, optionally with a reader."""

    initial_std, has_bias = 0.02, True
    is_standard = False
    center_D: Tensor  # what the vectors have in common, and what tells nothing of a word
    table_WD: Tensor  # the vectors of the lexicon's words, from there and of one length
    is_known_W: Tensor  # which of them have one

    def __init__(
        self,
        lexicon: Lexicon,
        *,
        reads: Reads,
        is_frozen: bool = False,
        reader_width: int = 0,
        dropout: float = 0.1,
        extra_width: int = 0,
    ) -> None:
        """`extra_width` is the number of further dimensions that a reader gets."""
        super().__init__()
        self.lexicon, self.reads, self.dropout = lexicon, reads, dropout
        # One-hot rows cannot be frozen: the matrix above them is trained.
        self.is_frozen = is_frozen and not lexicon.is_one_hot
        self.reader_width = reader_width
        self.precision = torch.float32
        width = lexicon.dim
        self.marks = nn.Embedding(NUM_MARKS, width, _weight=torch.zeros(NUM_MARKS, width))
        # The offsets that a task adds to the vectors of its training words.
        self.added_WD = nn.Parameter(torch.zeros(0, width), requires_grad=not self.is_frozen)
        self.register_buffer("center_D", torch.zeros(width))
        self.register_buffer("table_WD", torch.zeros(0, width), persistent=False)
        self.register_buffer("is_known_W", torch.zeros(0, dtype=torch.bool), persistent=False)
        width += extra_width + (reads == "roles")
        self.reader: BiLSTM | CrossReader | None = None
        if reader_width and reads in ("texts", "question"):
            self.reader = CrossReader(width, reader_width)
        elif reader_width:
            self.reader = BiLSTM(width, reader_width, num_layers=1)
        self.word_width = width if self.reader is None else self.reader.output_width
        self.width = {"texts": 4, "question": 2}.get(reads, 1) * self.word_width
        self.num_depths = 2

    @property
    def default_rate(self) -> float:
        """The default learning rate, which is high: few layers are between words and labels."""
        return 5e-3 if self.reader is None else 2e-3

    default_epochs = 10.0

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the initial weights of the reader."""
        if self.reader is not None:
            self.reader.initialise(generator)

    @torch.no_grad()
    def learn_words(self, num_words: int, generator: torch.Generator) -> None:
        """Make room for the offsets of the first words of the lexicon; existing ones stay."""
        rows, is_known = self.lexicon.rows(0, num_words)
        if not len(self.added_WD) and is_known.sum() > 1 and not self.lexicon.is_one_hot:
            self.center_D.copy_(torch.from_numpy(rows[is_known].mean(0, dtype=np.float64)))
        num_old = len(self.added_WD)
        if self.is_frozen or num_words <= num_old:
            return
        added_WD = torch.zeros(num_words, self.lexicon.dim)
        if self.lexicon.is_one_hot:
            nn.init.normal_(added_WD[num_old:], std=1.0, generator=generator)
        added_WD[:num_old] = self.added_WD
        self.added_WD = nn.Parameter(added_WD)

    @torch.no_grad()
    def take_from(self, earlier: WordEncoder) -> None:
        """Continue from an earlier task over the same words."""
        self.center_D.copy_(earlier.center_D)
        self.marks.load_state_dict(earlier.marks.state_dict())
        self.added_WD = nn.Parameter(earlier.added_WD.detach().clone(), not self.is_frozen)
        has_same = type(self.reader) is type(earlier.reader)
        has_same = has_same and self.word_width == earlier.word_width
        if has_same and self.reader is not None and earlier.reader is not None:
            self.reader.load_state_dict(earlier.reader.state_dict())

    def share(self, lexicon: Lexicon) -> None:
        """Use another lexicon, which begins with the words that were learned here."""
        num_words = len(self.added_WD)
        assert lexicon.words[:num_words] == self.lexicon.words[:num_words]
        self.lexicon = lexicon
        self.table_WD, self.is_known_W = self.table_WD[:0], self.is_known_W[:0]

    @torch.no_grad()
    def _grow(self) -> None:
        """Add the vectors of words that are new in the lexicon."""
        first, last = len(self.table_WD), len(self.lexicon)
        if first == last:
            return
        rows, is_known = (torch.from_numpy(x) for x in self.lexicon.rows(first, last))
        device = self.table_WD.device
        if not self.lexicon.is_one_hot:
            # Frequent words have long vectors, and all of them lean to one side; which words
            # resemble each other shows without both. Readers expect numbers of about one.
            apart_WD = functional.normalize(rows - self.center_D.to("cpu"), dim=1)
            rows = math.sqrt(self.lexicon.dim) * apart_WD * is_known[:, None]
        self.table_WD = torch.cat([self.table_WD, rows.to(device)])
        self.is_known_W = torch.cat([self.is_known_W, is_known.to(device)])

    def look_up(self, ids_N: Tensor) -> Tensor:
        """The vectors of words and marks, (N, D)."""
        self._grow()
        vectors_ND = self.marks(ids_N.clamp(max=NUM_MARKS - 1))
        if not len(self.table_WD):
            return vectors_ND
        is_word_N = ids_N >= NUM_MARKS
        words_N = (ids_N - NUM_MARKS).clamp(min=0)
        own_ND = self.table_WD.index_select(0, words_N)
        is_strange_N = ~self.is_known_W.index_select(0, words_N)
        own_ND = own_ND + is_strange_N[:, None] * self.marks.weight[UNKNOWN_ID]
        if len(self.added_WD):
            is_trained_N = words_N < len(self.added_WD)
            places_N = words_N.clamp(max=len(self.added_WD) - 1)
            own_ND = own_ND + is_trained_N[:, None] * self.added_WD.index_select(0, places_N)
        return torch.where(is_word_N[:, None], own_ND, vectors_ND)

    def vectors(self, inputs: Inputs) -> Tensor:
        """What a reader sees of each word and mark, (N, D)."""
        return self.look_up(inputs.ids_N)

    def tokens(self, inputs: Inputs) -> Tensor:
        """A vector for each word and mark, (N, D), or what a reader made of it.

        For a question it is given as it is and times the mean over the question's words.
        """
        vectors_ND = self.vectors(inputs)
        vectors_ND = drop_out(vectors_ND, self.dropout if self.training else 0.0)
        if self.reads == "roles":
            vectors_ND = torch.cat([vectors_ND, inputs.segments_N[:, None].to(vectors_ND.dtype)], 1)
        read_ND = vectors_ND if self.reader is None else self.reader(vectors_ND, inputs)
        if self.reads != "question":
            return read_ND
        asked_BD, rows = segment_means(read_ND, inputs, 0), inputs.rows
        assert rows.places_N is not None
        rows_N = rows.places_N.div(rows.max_length, rounding_mode="floor")
        return torch.cat([read_ND, read_ND * asked_BD.index_select(0, rows_N)], 1)

    def sequences(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """The mean over the words of a text; of two texts u and v: u, v, |u - v| and u v.

        Those four are what a linear head needs to compare (Conneau et al. 2017).
        """
        first_BD = segment_means(tokens_ND, inputs, 0)
        if self.reads != "texts":
            return first_BD
        second_BD = segment_means(tokens_ND, inputs, 1)
        both = [first_BD, second_BD, (first_BD - second_BD).abs(), first_BD * second_BD]
        return torch.cat(both, 1)

    def depth_of(self, name: str) -> int:
        """Words are at 0, what reads them at 1."""
        return 0 if name.startswith(("marks", "added")) else 1


class CrossReader(nn.Module):
    """A BiLSTM over the words of two texts that know of each other (Chen et al. 2017, ESIM).

    Each word comes with the words of the other text that resemble it, weighted by how much, with
    how the two differ, and with whether it is one of them.
    """

    def __init__(self, width: int, reader_width: int) -> None:
        super().__init__()
        self.align = Linear(width, width)
        self.compare = Linear(4 * width + 2, 2 * reader_width)
        self.lstm = BiLSTM(2 * reader_width, reader_width, num_layers=1)
        self.output_width = self.lstm.output_width

    def initialise(self, generator: torch.Generator) -> None:
        """Let words resemble each other as their vectors do; draw the other weights evenly."""
        bound = 1 / math.sqrt(self.compare.in_features)
        nn.init.eye_(self.align.weight)
        nn.init.uniform_(self.compare.weight, -bound, bound, generator=generator)
        for layer in (self.align, self.compare):
            nn.init.zeros_(layer.bias)
        self.lstm.initialise(generator)

    def forward(self, vectors_ND: Tensor, inputs: Inputs) -> Tensor:
        """A vector for each word, (N, 2 R)."""
        rows = inputs.rows
        vectors_BTD = rows.padded(vectors_ND)
        ids_BT, segments_BT = rows.padded(inputs.ids_N), rows.padded(inputs.segments_N)
        is_word_BT = rows.padded(is_word(inputs))
        is_other_BTT = (segments_BT[:, :, None] != segments_BT[:, None]) & is_word_BT[:, None]
        keys_BTD = self.align(vectors_BTD)
        scores_BTT = keys_BTD @ keys_BTD.transpose(1, 2) / math.sqrt(keys_BTD.shape[2])
        lowest = torch.finfo(scores_BTT.dtype).min
        shares_BTT = scores_BTT.masked_fill(~is_other_BTT, lowest).softmax(2)
        # Nothing resembles a word where the other text is empty.
        aligned_BTD = (shares_BTT @ vectors_BTD) * is_other_BTT.any(2)[..., None]
        is_same_BTT = (ids_BT[:, :, None] == ids_BT[:, None]) & is_other_BTT
        marks_BT2 = torch.stack([is_same_BTT.any(2), segments_BT == 0], 2).to(vectors_BTD.dtype)
        own_ND, other_ND = vectors_ND, rows.flat(aligned_BTD)
        compared = [own_ND, other_ND, (own_ND - other_ND).abs(), own_ND * other_ND]
        seen_ND = torch.cat([*compared, rows.flat(marks_BT2)], 1)
        return self.lstm(torch.relu(self.compare(seen_ND)), inputs)


def is_word(inputs: Inputs) -> Tensor:
    """Which places of a batch hold words rather than marks between them, (N,)."""
    return (inputs.ids_N != START_ID) & (inputs.ids_N != BETWEEN_ID)


def segment_means(tokens_ND: Tensor, inputs: Inputs, segment: int) -> Tensor:
    """The mean over the words of one text of each sequence, (B, D); zero where it has none."""
    is_own_N = is_word(inputs) & (inputs.segments_N == segment)
    weights_N = is_own_N.to(tokens_ND.dtype)
    sums_BD = inputs.rows.padded(tokens_ND * weights_N[:, None]).sum(1)
    counts_B = inputs.rows.padded(weights_N).sum(1)
    return sums_BD / counts_B.clamp(min=1)[:, None]
