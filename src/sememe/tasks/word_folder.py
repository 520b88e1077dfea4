"""The folder of a task over word vectors: the vectors whole, what was learned, and its words.

  vectors/              a folder of ours, which opens by itself too
  head.safetensors      what was learned: added to the words, the reader, the head
  words.json            the words that something was added to, in their order
  elmo/                 the ELMo that reads the words, where it is one

The vectors stay whole because texts to come may hold any of their words, or none of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sememe.errors import ArtifactError
from sememe.networks.words import WordEncoder
from sememe.storage.folder import read_json, write_json
from sememe.storage.provenance import provenance
from sememe.storage.tensors import read_tensors, write_tensors
from sememe.tasks.elmo import ELMO, ELMoCoder, new_elmo_encoder, read_elmo, write_elmo
from sememe.tasks.objective import TaskObjective
from sememe.tasks.words import WordCoder, new_word_encoder, settings_from
from sememe.training.weights import take_weights, weights_of
from sememe.vectors import load as load_vectors
from sememe.vectors.lexicon import Lexicon

if TYPE_CHECKING:
    from sememe.tasks.task import Task

KIND = "vectors"  # what sememe.json says of the network
VECTORS, WORDS, HEAD = "vectors", "words.json", "head.safetensors"


def write_words(task: Task, folder: Path) -> None:
    """Write the vectors and the words of a task, once for all its members."""
    coder, encoder = task.coder, _encoder(task)
    assert isinstance(coder, WordCoder)
    if isinstance(coder, ELMoCoder):
        write_elmo(coder, folder)
    else:
        coder.lexicon.vectors.save(folder / VECTORS)
    write_json(folder / WORDS, coder.lexicon.words[: len(encoder.added_WD)])


def write_learned(objective: TaskObjective, folder: Path) -> None:
    """Write the weights of one member."""
    kept = {name: x.float().cpu().numpy() for name, x in weights_of(objective).items()}
    write_tensors(folder / HEAD, kept)


def described_words(task: Task) -> dict[str, Any]:
    """What sememe.json says of the vectors."""
    coder, encoder = task.coder, _encoder(task)
    assert isinstance(coder, WordCoder)
    return {
        "network": ELMO if isinstance(coder, ELMoCoder) else KIND,
        "reads": encoder.reads,
        "text": coder.text.to_dict(),
        "words": len(coder.lexicon.vectors) if coder.lexicon.dim else 0,
        "dim": coder.lexicon.dim and coder.lexicon.vectors.dim,
        "provenance": provenance(),
    }


def load_coder(task: Task, folder: Path, manifest: dict[str, Any]) -> WordCoder:
    """Open the vectors and the words of a task."""
    words = read_json(folder / WORDS)
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ArtifactError(f"{folder / WORDS} is no list of words.")
    if len(set(words)) != len(words):
        raise ArtifactError(f"{folder / WORDS} holds a word twice.")
    if manifest.get("network") == ELMO:
        return read_elmo(folder, words, task.config.length)
    lexicon = Lexicon(load_vectors(folder / VECTORS), words)
    try:
        settings = settings_from(manifest["text"])
    except (KeyError, TypeError) as error:
        raise ArtifactError(f"{folder} does not say how its text is cut ({error}).") from error
    return WordCoder(lexicon, settings, task.config.length)


@torch.no_grad()
def load_learned(
    task: Task, folder: Path, coder: WordCoder, num_words: int, reads: Any
) -> TaskObjective:
    """Open the weights of one member over words that all members share."""
    encoder: WordEncoder
    if isinstance(coder, ELMoCoder):
        encoder = new_elmo_encoder(coder, reads, task.config)
    else:
        encoder = new_word_encoder(coder.lexicon, reads, task.config)
    encoder.learn_words(num_words, torch.Generator())
    head = task.make_head(encoder.width, dropout=encoder.dropout, has_bias=encoder.has_bias)
    objective = TaskObjective(encoder, head).eval()
    kept = {n: torch.from_numpy(np.array(x)) for n, x in read_tensors(folder / HEAD).items()}
    take_weights(objective, kept, str(folder / HEAD))
    return objective


def _encoder(task: Task) -> WordEncoder:
    assert task.objective is not None
    return task.objective.encoder
