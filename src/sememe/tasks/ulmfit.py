"""ULMFiT under a task: its third step, opened from a language model; words as it knows them; its
folder.

  head.safetensors         every weight, those of the language model among them
  vocabulary.safetensors   its words
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sememe.errors import ArtifactError, OptionError
from sememe.examples.running_words import is_word, places_in, written
from sememe.examples.word_rows import BEGIN_ID, END_ID, NUM_MARKS, UNKNOWN_ID
from sememe.networks.awd import AWDNetwork
from sememe.networks.awd_config import AWDConfig
from sememe.networks.awd_encoder import AWDEncoder
from sememe.networks.model_folder import WORDS
from sememe.networks.words import Reads
from sememe.storage.folder import MANIFEST
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tasks.config import FinetuneConfig
from sememe.tasks.encoding import Coder, Marks
from sememe.tasks.objective import TaskObjective
from sememe.tasks.words import settings_from
from sememe.text.settings import TextSettings
from sememe.tokens.subwords import Encoding
from sememe.tokens.vocabulary import Vocabulary
from sememe.training.weights import take_weights, weights_of

if TYPE_CHECKING:
    from sememe.tasks.task import Task

KIND = "ulmfit"  # what sememe.json says of the network
WEIGHTS = "head.safetensors"


class ULMFiTCoder(Coder):
    """Words as the language model has them; every text begins as a sentence does."""

    kind = "words"
    unknown_id = UNKNOWN_ID
    marks = Marks((BEGIN_ID,), (END_ID,), (BEGIN_ID,), ())

    def __init__(self, vocabulary: Vocabulary, text: TextSettings, length: int) -> None:
        self.vocabulary, self.text, self.length = vocabulary, text, length

    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Cut texts into words that know their places; punctuation is left out."""
        cut = places_in(texts, self.text)
        return [self._encoded(text, places) for text, places in zip(texts, cut, strict=True)]

    def _encoded(self, text: str, places: list[tuple[int, int]]) -> Encoding:
        own = [place for place in places if is_word(text[slice(*place)], self.text)]
        ids = np.array([self._id(text[slice(*place)]) for place in own], np.int32)
        own_N2 = np.array(own, np.int32).reshape(-1, 2)
        return Encoding(ids, own_N2[:, 0], own_N2[:, 1], np.ones(len(ids), np.bool_))

    def encode_words(self, words: Several[str]) -> list[Encoding]:
        """Words that are cut already, each of them one, whatever is in it."""
        return [self._encoded(word, [(0, len(word))]) for word in words]

    def _id(self, piece: str) -> int:
        found = self.vocabulary.find(written(piece, self.text))
        return UNKNOWN_ID if found < 0 else NUM_MARKS + found


# ---- from what a user gives -----------------------------------------------------------------


def new_awd_encoder(network: AWDNetwork, reads: Reads, config: FinetuneConfig) -> AWDEncoder:
    """A copy of a network as the options want it under a head."""
    if config.features or config.lm_weight or config.reader_width:
        raise OptionError(
            "ULMFiT is trained whole, under a layer of its own: leave out features, lm_weight and "
            "reader_width."
        )
    if reads == "roles":
        raise OptionError("ULMFiT knows no segments, by which predicates are marked.")
    own = AWDNetwork(_with_dropout(network.config, config.dropout))
    own.load_state_dict(network.state_dict())
    encoder = AWDEncoder(own, reads=reads, is_frozen=config.freeze)
    encoder.initialise(torch.Generator().manual_seed(config.seed))
    return encoder


def _with_dropout(config: AWDConfig, share: float | None) -> AWDConfig:
    """The sizes with that share left out of the output, and the other shares in proportion."""
    if share is None:
        return config
    if not config.output_dropout:
        return replace(config, output_dropout=share, dropout_factor=1.0)
    return replace(config, dropout_factor=min(10.0, share / config.output_dropout))


def take_pooling(encoder: AWDEncoder, earlier: AWDEncoder) -> None:
    """Go on from the layer under the head of an earlier task, where both have one."""
    if encoder.hidden is not None and earlier.hidden is not None:
        assert encoder.norm is not None and earlier.norm is not None
        encoder.hidden.load_state_dict(earlier.hidden.state_dict())
        encoder.norm.load_state_dict(earlier.norm.state_dict())


def described_awd(encoder: AWDEncoder) -> str:
    """What a task says that it starts from."""
    config = encoder.network.config
    pooling = "" if encoder.hidden is None else ", last, max and mean of the outputs"
    return f"ULMFiT, {config.num_layers} layers × {config.num_cells}/{config.width}{pooling}"


# ---- the folder -----------------------------------------------------------------------------


def write_words(coder: ULMFiTCoder, folder: Path) -> None:
    """Write the words of a task, once for all its members."""
    write_tensors(folder / WORDS, coder.vocabulary.to_tensors())


def write_weights(objective: TaskObjective, folder: Path) -> None:
    """Write the weights of one member."""
    kept = {name: x.float().cpu().numpy() for name, x in weights_of(objective).items()}
    write_tensors(folder / WEIGHTS, kept)


def described_ulmfit(task: Task, coder: ULMFiTCoder) -> dict[str, Any]:
    """What sememe.json says of the network."""
    assert task.objective is not None
    encoder = task.objective.encoder
    return {
        "network": KIND,
        "reads": encoder.reads,
        "config": encoder.network.config.to_dict(),
        "text": coder.text.to_dict(),
        "words": len(coder.vocabulary),
        "provenance": provenance(),
    }


def load_ulmfit(task: Task, places: list[Path], manifest: dict[str, Any]) -> None:
    """Open the words and the members of a task."""
    folder = places[0]
    try:
        config, text = AWDConfig(**manifest["config"]), settings_from(manifest["text"])
        reads: Reads = manifest["reads"]
    except (KeyError, TypeError, OptionError) as error:
        raise ArtifactError(f"{folder / MANIFEST} cannot be used: {error}.") from error
    vocabulary = Vocabulary.from_tensors(read_tensors(folder / WORDS))
    if config.vocab_size != NUM_MARKS + len(vocabulary):
        raise ArtifactError(f"{folder} has another number of words than its network.")
    task.coder = ULMFiTCoder(vocabulary, text, task.config.length)
    task.objective, *task.others = [_member(task, config, reads, place) for place in places]


@torch.no_grad()
def _member(task: Task, config: AWDConfig, reads: Reads, folder: Path) -> TaskObjective:
    encoder = AWDEncoder(AWDNetwork(config), reads=reads, is_frozen=task.config.freeze)
    head = task.make_head(encoder.width, dropout=encoder.dropout, has_bias=encoder.has_bias)
    objective = TaskObjective(encoder, head).eval()
    kept = {n: torch.from_numpy(np.array(x)) for n, x in read_tensors(folder / WEIGHTS).items()}
    take_weights(objective, kept, str(folder / WEIGHTS))
    return objective
