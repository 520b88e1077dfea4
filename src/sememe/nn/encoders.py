"""Encoders under a head: sequences of ids in, one vector per token or per sequence out.

`Encoder` is the network, `Coder` turns texts into its ids, and `Backbone` holds both.

B sequences, T positions of one, N tokens of all sequences concatenated, D width, L layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence as Several
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from sememe.contract import Truncation
from sememe.errors import OptionError
from sememe.examples.batches import TokenSequence
from sememe.nn.rows import RowLayout, unpadded_rows
from sememe.storage.tensors import write_tensors
from sememe.tokens.subwords.tokenizer import Encoding
from sememe.training.objective import precision_of
from sememe.training.weights import take_weights, tensors_in, weights_of

HEAD = "head.safetensors"

# What a head needs: a vector of a text, or of two that are compared; one for each word, or for each
# word of a context given a question, or given the predicate that segments mark.
Reads = Literal["text", "texts", "words", "roles", "question"]


class Inputs(NamedTuple):
    """Sequences concatenated, without padding."""

    ids_N: Tensor
    segments_N: Tensor
    positions_N: Tensor
    rows: RowLayout
    lengths: tuple[int, ...]


def inputs_of(sequences: Several[TokenSequence]) -> Inputs:
    """Concatenate sequences; on the host, before the batch is moved."""
    lengths_B = np.array([len(sequence.ids_T) for sequence in sequences], np.int64)
    rows = unpadded_rows(lengths_B, int(lengths_B.max()))
    return Inputs(
        ids_N=_flat([sequence.ids_T for sequence in sequences]),
        segments_N=_flat([sequence.segments_T for sequence in sequences]),
        positions_N=rows.positions(),
        rows=rows,
        lengths=tuple(lengths_B.tolist()),
    )


def _flat(arrays: list[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.concatenate(arrays).astype(np.int64))


class Encoder(nn.Module, ABC):
    """The part under a head: BERT, for example, or word vectors with a reader."""

    width: int  # of the vectors that a head takes
    dropout: float  # dropout rate of a head
    initial_std: float  # standard deviation of a head's initial weights
    has_bias: bool  # whether heads have one
    is_standard: bool  # whether other programs have the same layers between input and head
    num_depths: int  # of parameters, see `depth_of`
    precision: torch.dtype  # of its activations; the loop sets it

    @abstractmethod
    def tokens(self, inputs: Inputs) -> Tensor:
        """One vector per token, (N, D)."""

    @abstractmethod
    def sequences(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """One vector per sequence from those of its tokens, (B, D)."""

    def sequences_alone(self, inputs: Inputs) -> Tensor:
        """`sequences` of `tokens`; faster if a network need not compute the other tokens."""
        return self.sequences(self.tokens(inputs), inputs)

    def leave_pooler(self) -> None:
        """Declare that no head needs the vectors of sequences."""

    @abstractmethod
    def depth_of(self, name: str) -> int:
        """A parameter's distance from the input: 0 for the lowest, `num_depths` - 1 the highest.

        Lower ones may have lower learning rates, or start later.
        """

    def compile(self, **options: Any) -> None:
        """Compile in place what gains from it on a GPU; by default nothing."""

    def uncompile(self) -> None:
        """Forget what `compile` made."""


class UnderHead(Encoder):
    """A network that is under a head, trained with it or frozen."""

    network: Any
    is_frozen: bool
    precision = precision_of("network")

    def train(self, mode: bool = True) -> Self:
        """Switch dropout; a frozen network is always in evaluation mode."""
        super().train(mode)
        if self.is_frozen:
            self.network.eval()
        return self


def means(tokens_ND: Tensor, inputs: Inputs) -> Tensor:
    """The mean over the tokens of each sequence, (B, D)."""
    sums_BD = inputs.rows.padded(tokens_ND).sum(1, dtype=torch.float32)
    starts = inputs.rows.starts
    assert starts is not None
    return sums_BD / (starts[1:] - starts[:-1])[:, None]


# ---- texts as ids ---------------------------------------------------------------------------


class Framed(NamedTuple):
    """A sequence, the positions of its texts, and what was truncated."""

    sequence: TokenSequence
    starts: tuple[int, ...]  # the index of the first token of each text
    sizes: tuple[int, ...]  # the number of tokens of each text
    cut: Truncation | None  # None: nothing


class SequenceMarks(NamedTuple):
    """The special ids around one text, or around and between two."""

    before: tuple[int, ...]
    after_first: tuple[int, ...]  # they belong to the first text
    before_second: tuple[int, ...]  # they belong to the second
    after: tuple[int, ...]


class Coder(ABC):
    """Turns texts into sequences of ids for an encoder: sub-word tokens or words."""

    kind: str  # bert, gpt or words
    length: int  # maximum length of a sequence, marks included
    unknown_id: int  # of a word that has no tokens
    marks: SequenceMarks
    is_gpt = False  # whether sequences are for a GPT, whose last token has seen all others

    @abstractmethod
    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Split texts into tokens with their positions in the text."""

    def encode_words(self, words: Several[str]) -> list[Encoding]:
        """Encode words that are already split; character-based models take each as it is."""
        return self.encode(words)

    def room(self, num_texts: int) -> int:
        """The number of tokens of this many texts that fit, besides the special ids."""
        before, after_first, before_second, after = map(len, self.marks)
        inside = after_first + before_second if num_texts == 2 else 0
        return self.length - before - inside - after

    def frame(self, first: np.ndarray, second: np.ndarray | None = None) -> Framed:
        """Add the special ids to one text or two; the longer one is truncated first."""
        texts = [first] if second is None else [first, second]
        sizes = kept_sizes([len(text) for text in texts], self.room(len(texts)))
        given, kept = sum(map(len, texts)), sum(sizes)
        marks = self.marks
        parts: list[Any] = [marks.before, first[: sizes[0]]]
        starts = [len(marks.before)]
        if second is not None:
            parts += [marks.after_first, marks.before_second, second[: sizes[1]]]
            starts.append(sum(map(len, parts[:-1])))
        ids_T = np.concatenate([*parts, marks.after]).astype(np.int32)
        segments_T = np.zeros(len(ids_T), np.int8)
        if second is not None and not self.is_gpt:
            segments_T[starts[1] - len(marks.before_second) :] = 1
        cut = Truncation(given, kept) if given > kept else None
        return Framed(TokenSequence(ids_T, segments_T), tuple(starts), tuple(sizes), cut)


def kept_sizes(sizes: list[int], room: int) -> list[int]:
    """The sizes after truncation: tokens are dropped from the end of the longer text.

    Ties truncate the second text. Same result as dropping one token at a time, as in the released
    BERT.
    """
    if sum(sizes) <= room:
        return sizes
    if len(sizes) == 1:
        return [room]
    short = min(sizes)
    if 2 * short <= room:
        rest = room - short
        return [short, rest] if sizes[0] <= sizes[1] else [rest, short]
    return [room - room // 2, room // 2]


# ---- what fine-tuning builds on -------------------------------------------------------------


class Earlier(NamedTuple):
    """The head of an earlier fine-tuning, and its input width."""

    head: Any
    labels: list[str]
    width: int


class Backbone(ABC):
    """What fine-tuning builds on: an encoder and its coder, and their files in a task's folder.

    `Model.encoder` returns one. A kind of model implements the abstract methods below. Every member
    of a task has its weights in head.safetensors, unless a kind has better files.
    """

    network: str  # its name in a task's sememe.json: a kind of model
    has_model: ClassVar[bool] = False  # whether `model` gives one

    def __init__(self, encoder: Any, coder: Coder, earlier: Earlier | None = None) -> None:
        self.encoder, self.coder, self.earlier = encoder, coder, earlier

    @classmethod
    @abstractmethod
    def of(cls, model: Any, reads: Reads, config: Any) -> Self:
        """A model for a head that needs `reads`; the model is not changed."""

    @abstractmethod
    def again(self, encoder: Any, reads: Reads, config: Any) -> Backbone:
        """The start of another task, after `encoder` was fine-tuned on these texts."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What the task starts from, such as BERT, 2 layers × 128."""

    def defaults(self, config: Any) -> tuple[float, float]:
        """The default learning rate and number of epochs."""
        return self.encoder.default_rate, self.encoder.default_epochs

    @property
    def seen_length(self) -> int | None:
        """The number of trained positions; None if positions do not matter."""
        return None

    def learn_rows(self, seed: int) -> None:  # noqa: B027  # only of words
        """Note the words of the training rows, once these are encoded."""

    def adapt(self, base: Any, config: Any) -> str:
        """Put LoRA's updates on the network of the model at `base`, and describe them."""
        raise OptionError("lora updates the matrices of a BERT or GPT, and the model is neither.")

    def finish_adapter(self) -> None:  # noqa: B027  # only of networks
        """Merge what LoRA has trained into the weights."""

    def drop_adapter(self, objectives: Several[Any]) -> None:  # noqa: B027  # only of networks
        """Let networks be saved as a whole, not as an adapter to another model."""

    def fingerprints(self) -> dict[str, str]:
        """Hashes of what a run starts from besides the trained weights."""
        return {}

    def model(self) -> Any:
        """The fine-tuned network as a model of its kind, if it can be one by itself."""
        raise NotImplementedError

    def share_words(self, encoder: Any) -> None:  # noqa: B027  # only of words
        """Let another member's encoder look words up by the ids of this coder."""

    # ---- the folder of a task -----------------------------------------------------------------

    @abstractmethod
    def write(self, folder: Path) -> None:
        """Write the files that all members of a task share."""

    @abstractmethod
    def manifest(self, objective: Any) -> dict[str, Any]:
        """What sememe.json says about the network under the head."""

    @classmethod
    @abstractmethod
    def read(cls, folder: Path, manifest: dict[str, Any], config: Any) -> Self:
        """Open what `write` wrote, with the encoder of the first member."""

    @abstractmethod
    def new_encoder(self, folder: Path, config: Any) -> Any:
        """The encoder of another ensemble member, whose files are in that folder."""

    def write_member(self, objective: Any, folder: Path, labels: Several[str]) -> None:
        """Write the weights of one member of a task."""
        kept = {name: x.float().cpu().numpy() for name, x in weights_of(objective).items()}
        write_tensors(folder / HEAD, kept)

    @torch.no_grad()
    def fill(self, objective: Any, folder: Path) -> None:
        """Load the weights that `write_member` wrote."""
        take_weights(objective, tensors_in(folder / HEAD), str(folder / HEAD))


def refuse_vectors(config: Any) -> None:
    """Raise an error for the option `vectors` of all encoders except ELMo."""
    if config.vectors:
        raise OptionError("vectors are combined with ELMo, but the base model is not one.")
