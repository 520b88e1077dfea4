"""Tiles in PyTorch, on any device: the draws of the CPU, bit for bit, and the updates.

The stream of random numbers is that of `sememe.randomness`, so a position in training can be
returned to exactly. PyTorch has no arithmetic of unsigned 64-bit numbers: products wrap around in
the same way for signed ones, and a right shift clears the copies of the sign.

One batch after the other is computed: the tiles that are in flight together, one of each stretch.
`reference.py` does the same in plain NumPy. T tiles of the batch, C centres of a tile, S words
around them, K noise words, D dimensions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch.nn.functional import softplus

from sememe.models.word2vec.tiles.plan import tile_starts
from sememe.models.word2vec.tiles.softmax import hierarchical_batch, softmax_batch
from sememe.randomness import GOLDEN, MIX_1, MIX_2

LOSS_EVERY = 16  # batches, or tiles of a stretch
_LOW = (1 << 32) - 1


def _signed(value: int) -> int:
    """The signed 64-bit number with the same bits."""
    return (value & (1 << 64) - 1) - (1 << 64 if value >> 63 & 1 else 0)


def _shift(value: torch.Tensor, bits: int) -> torch.Tensor:
    return (value >> bits) & ((1 << 64 - bits) - 1)


def numbers(key: int, indices: torch.Tensor) -> torch.Tensor:
    """The numbers at these indices (int64) of the stream `key`, as signed 64 bits."""
    value = (indices + 1) * _signed(GOLDEN) + _signed(key)
    value = (value ^ _shift(value, 30)) * _signed(MIX_1)
    value = (value ^ _shift(value, 27)) * _signed(MIX_2)
    return value ^ _shift(value, 31)


class Words(NamedTuple):
    """Subsampled words and the bounds of their windows, as `examples.kernels.draw_windows`."""

    tokens: torch.Tensor  # int32
    left: torch.Tensor
    right: torch.Tensor


def draw_windows(
    ids: torch.Tensor, ends: torch.Tensor, limits: torch.Tensor, window: int, key: int
) -> Words:
    """Subsample ids (int32) with sentences that end at `ends` (int64), and draw windows.

    limits: int64, for every id the 32-bit number below which a random number keeps it.
    """
    places = torch.arange(len(ids), device=ids.device)
    is_kept = _shift(numbers(key, places), 32) < limits[ids.long()]
    num_before = torch.zeros(len(ids) + 1, dtype=torch.int64, device=ids.device)
    torch.cumsum(is_kept, 0, out=num_before[1:])
    kept = torch.nonzero(is_kept).flatten()
    sentence = torch.bucketize(kept, ends, right=True)
    # An id that is kept is in a sentence, so there is one that ends after it.
    last = num_before[ends[sentence]]
    first = torch.where(sentence > 0, num_before[ends[(sentence - 1).clamp(min=0)]], 0)
    centres = torch.arange(len(kept), device=ids.device)
    draws = _shift(numbers(key, len(ids) + centres), 32)
    reach = 1 + (draws * window >> 32)
    left = torch.maximum(first, centres - reach).int()
    right = torch.minimum(last, centres + reach + 1).int()
    return Words(ids[kept], left, right)


def draw_noise(limits: torch.Tensor, alias: torch.Tensor, key: int, num: int) -> torch.Tensor:
    """`num` word ids (int32) from the noise distribution of an alias table; limits: int64."""
    drawn = numbers(key, torch.arange(num, device=limits.device))
    columns = _shift(drawn, 32) * len(limits) >> 32
    return torch.where((drawn & _LOW) < limits[columns], columns.int(), alias[columns])


@dataclass(frozen=True)
class Tables:
    """The matrices on the device, and the damping of their rows.

    With `starts` an input vector is the mean of several rows (fastText), each of which gets the
    full change: rows[starts[w]:starts[w + 1]] for word w.
    """

    input: torch.Tensor  # float32 (V, D), perhaps with padding
    output: torch.Tensor
    damp_input: torch.Tensor  # float32 (V)
    damp_output: torch.Tensor
    starts: torch.Tensor | None = None  # int64 (V + 1)
    rows: torch.Tensor | None = None  # int32
    # Hierarchical softmax: the path of each word in the tree, see `softmax.padded_paths`.
    nodes: torch.Tensor | None = None
    labels: torch.Tensor | None = None

    def take_input(self, words: torch.Tensor) -> torch.Tensor:
        """The input vectors of words of any shape."""
        if self.starts is None:
            return self.input[words]
        owner, row = self._rows_of(words)
        num = (self.starts[words + 1] - self.starts[words]).flatten()
        total = self.input.new_zeros(words.numel(), self.input.shape[1])
        total.index_add_(0, owner, self.input[row])
        return (total / num[:, None]).view(*words.shape, -1)

    def add_input(self, words: torch.Tensor, change: torch.Tensor, rate: float) -> None:
        """Add a change (T, words, D) of the input vectors of words (T, words)."""
        if self.starts is None:
            _add(self.input, self.damp_input, words, change, rate)
        else:
            owner, row = self._rows_of(words)
            _add(self.input, self.damp_input, row[None], change.flatten(0, 1)[owner][None], rate)

    def add_output(self, rows: torch.Tensor, change: torch.Tensor, rate: float) -> None:
        """Add a change (T, rows, D) of rows (T, rows) of the output matrix."""
        _add(self.output, self.damp_output, rows, change, rate)

    def _rows_of(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(places in `words`, rows) of all rows of all words."""
        assert self.starts is not None and self.rows is not None
        first = self.starts[words.flatten()]
        num = self.starts[words.flatten() + 1] - first
        owner = torch.repeat_interleave(num)
        before = num.cumsum(0) - num
        place = torch.arange(len(owner), device=owner.device) - before[owner]
        return owner, self.rows[first[owner] + place].long()


class Settings(NamedTuple):
    """What the updates need to know besides rows and words."""

    is_skipgram: bool
    is_mean: bool
    window: int
    tile: int
    pool: int
    negatives: int
    loss: str = "negative"


class Batch(NamedTuple):
    """The words of the tiles in flight together, and which of them are pairs."""

    centres_TC: torch.Tensor  # words, int64
    around_TS: torch.Tensor
    noise_TK: torch.Tensor
    is_pair_TCS: torch.Tensor  # float32


def take_batch(words: Words, starts: torch.Tensor, noise_TK: torch.Tensor, own: Settings) -> Batch:
    """Collect the words of the tiles that begin at `starts` (int64)."""
    num, device = len(words.tokens), starts.device
    place_TC = starts[:, None] + torch.arange(own.tile, device=device)
    is_centre_TC = place_TC < num
    place_TC = place_TC.clamp(max=num - 1)  # of the last tile, which may be shorter
    around = torch.arange(-own.window, own.tile + own.window, device=device)
    around_TS = starts[:, None] + around
    left_TC, right_TC = words.left[place_TC], words.right[place_TC]
    is_pair_TCS = (
        (around_TS[:, None] >= left_TC[..., None])
        & (around_TS[:, None] < right_TC[..., None])
        & (around_TS[:, None] != place_TC[..., None])
        & is_centre_TC[..., None]
    )
    return Batch(
        words.tokens[place_TC].long(), words.tokens[around_TS.clamp(0, num - 1)].long(),
        noise_TK.long(), is_pair_TCS.float(),
    )  # fmt: skip


def train_words(
    words: Words, stretches: int, noise: torch.Tensor, tables: Tables, own: Settings,
    rates: tuple[float, float],
) -> torch.Tensor:  # fmt: skip
    """Train on a part of the text; the learning rate falls from the first of `rates` to the second.

    noise: (tiles, K). Returns float64 [loss, pairs in it, all pairs].
    """
    updates = {"hierarchical": hierarchical_batch, "softmax": softmax_batch}
    update = updates.get(own.loss, skipgram_batch if own.is_skipgram else cbow_batch)
    first, last = rates
    starts = tile_starts(len(words.tokens), own.tile, stretches)
    # Only the last stretches are shorter than the others.
    sizes = (starts >= 0).sum(1).tolist()
    device = words.tokens.device
    stats = torch.zeros(3, dtype=torch.float64, device=device)
    on_device = torch.from_numpy(starts).to(device)
    for k, size in enumerate(sizes):
        in_flight = on_device[k, :size]
        batch = take_batch(words, in_flight, noise[in_flight // own.tile], own)
        rate = first + (last - first) * k / len(sizes)
        update(batch, tables, own, rate, stats, k % LOSS_EVERY == 0)
    return stats


def _add(
    matrix: torch.Tensor, damp: torch.Tensor, words: torch.Tensor, change: torch.Tensor, rate: float
) -> None:
    words = words.flatten()
    matrix.index_add_(0, words, change.flatten(0, 1) * (rate * damp[words, None]))


def skipgram_batch(
    batch: Batch, tables: Tables, own: Settings, rate: float, stats: torch.Tensor, is_counted: bool
) -> None:
    """A centre predicts every word of its window."""
    centres_TC, around_TS, noise_TK, is_pair_TCS = batch
    hidden_TCD = tables.take_input(centres_TC)
    around_TSD, noise_TKD = tables.output[around_TS], tables.output[noise_TK]
    true_TCS = hidden_TCD @ around_TSD.mT
    false_TCK = hidden_TCD @ noise_TKD.mT
    is_target_TSK = (around_TS[..., None] == noise_TK[:, None]).float()
    weight_TCK = is_pair_TCS.sum(-1, keepdim=True) - is_pair_TCS @ is_target_TSK
    weight_TCK = weight_TCK * (own.negatives / own.pool)
    num_pairs = is_pair_TCS.sum(dtype=torch.float64)
    stats[2] += num_pairs
    if is_counted:
        stats[0] += (is_pair_TCS * softplus(-true_TCS)).sum(dtype=torch.float64)
        stats[0] += (weight_TCK * softplus(false_TCK)).sum(dtype=torch.float64)
        stats[1] += num_pairs
    g_true_TCS = is_pair_TCS * torch.sigmoid(-true_TCS)
    g_false_TCK = -weight_TCK * torch.sigmoid(false_TCK)
    change_TCD = g_true_TCS @ around_TSD + g_false_TCK @ noise_TKD
    tables.add_input(centres_TC, change_TCD, rate)
    tables.add_output(around_TS, g_true_TCS.mT @ hidden_TCD, rate)
    tables.add_output(noise_TK, g_false_TCK.mT @ hidden_TCD, rate)


def cbow_batch(
    batch: Batch, tables: Tables, own: Settings, rate: float, stats: torch.Tensor, is_counted: bool
) -> None:
    """The joined window predicts its centre; every word of it gets the full gradient."""
    centres_TC, around_TS, noise_TK, is_pair_TCS = batch
    num_TC1 = is_pair_TCS.sum(-1, keepdim=True)
    has_window_TC1 = (num_TC1 > 0).float()
    join_TCS = is_pair_TCS / num_TC1.clamp(min=1) if own.is_mean else is_pair_TCS
    hidden_TCD = join_TCS @ tables.take_input(around_TS)
    target_TCD, noise_TKD = tables.output[centres_TC], tables.output[noise_TK]
    true_TC1 = (hidden_TCD * target_TCD).sum(-1, keepdim=True)
    false_TCK = hidden_TCD @ noise_TKD.mT
    weight_TCK = has_window_TC1 * (centres_TC[..., None] != noise_TK[:, None])
    weight_TCK = weight_TCK * (own.negatives / own.pool)
    num_pairs = has_window_TC1.sum(dtype=torch.float64)
    stats[2] += num_pairs
    if is_counted:
        stats[0] += (has_window_TC1 * softplus(-true_TC1)).sum(dtype=torch.float64)
        stats[0] += (weight_TCK * softplus(false_TCK)).sum(dtype=torch.float64)
        stats[1] += num_pairs
    g_true_TC1 = has_window_TC1 * torch.sigmoid(-true_TC1)
    g_false_TCK = -weight_TCK * torch.sigmoid(false_TCK)
    change_TCD = g_true_TC1 * target_TCD + g_false_TCK @ noise_TKD
    tables.add_input(around_TS, is_pair_TCS.mT @ change_TCD, rate)
    tables.add_output(centres_TC, g_true_TC1 * hidden_TCD, rate)
    tables.add_output(noise_TK, g_false_TCK.mT @ hidden_TCD, rate)
