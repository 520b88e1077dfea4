"""From what a user gives as a model to an encoder with its coder, ready to learn a task."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from sememe.errors import ArtifactError, OptionError
from sememe.networks.awd import AWDNetwork
from sememe.networks.awd_model import ULMFiT
from sememe.networks.bert import BERTNetwork
from sememe.networks.elmo_encoder import ELMoEncoder
from sememe.networks.elmo_model import ELMo
from sememe.networks.encoders import NetworkEncoder
from sememe.networks.framing import Network
from sememe.networks.gpt import GPTNetwork
from sememe.networks.growing import with_tokens
from sememe.networks.interchange.huggingface import kind_of, load_folder
from sememe.networks.layers import initialise
from sememe.networks.subword_model import SubwordModel
from sememe.networks.words import Reads, WordEncoder
from sememe.storage.folder import kind_of_folder
from sememe.tasks.config import AnswerConfig, FinetuneConfig
from sememe.tasks.elmo import ELMoCoder, described_elmo, new_elmo_coder, new_elmo_encoder
from sememe.tasks.encoding import MARKS, SubwordCoder
from sememe.tasks.ulmfit import ULMFiTCoder, described_awd, new_awd_encoder, take_pooling
from sememe.tasks.words import WordCoder, described, model_of, new_word_encoder, words_of
from sememe.text.settings import TextSettings
from sememe.tokens.subwords import SubwordTokenizer
from sememe.training.weights import weights_hash
from sememe.vectors.lexicon import Lexicon

if TYPE_CHECKING:
    from sememe.networks.heads import Head
    from sememe.tasks.task import Task


class Earlier(NamedTuple):
    """The head that a model was fine-tuned with before."""

    head: Head
    labels: list[str]
    encoder: Any


class Opened(NamedTuple):
    """What a model becomes under a head."""

    encoder: Any
    coder: Any
    earlier: Earlier | None
    description: str  # BERT, 2 layers × 128


def open_encoder(model: Any, config: FinetuneConfig, reads: Reads) -> Opened:
    """Open what was given as the model to start from; what was given stays as it is.

    `reads` is what the head will ask for, which readers of word vectors must know.
    """
    if (elmo := model_of(ELMo, model)) is not None:
        return _open_elmo(new_elmo_coder(elmo, config), None, config, reads)
    if config.vectors:
        raise OptionError("vectors stand beside ELMo: the model to start from is none.")
    if (ulmfit := model_of(ULMFiT, model)) is not None:
        words_of_it = ULMFiTCoder(ulmfit.vocabulary, ulmfit.text, config.length)
        return _open_ulmfit(ulmfit.network, words_of_it, None, config, reads)
    if (words := words_of(model)) is not None:
        return _open_words(*words, None, config, reads)
    model = _task_of(model)
    if isinstance(getattr(model, "coder", None), ELMoCoder):
        return _open_elmo(model.coder, _taken_from(model), config, reads)
    if isinstance(coder := getattr(model, "coder", None), ULMFiTCoder):
        own = _taken_from(model)
        return _open_ulmfit(own.encoder.network, coder, own, config, reads)
    if isinstance(getattr(model, "coder", None), WordCoder):
        own = _taken_from(model)
        return _open_words(model.coder.lexicon, model.coder.text, own, config, reads)
    network, tokenizer, earlier = _network_of(model)
    if isinstance(network, GPTNetwork) and any(mark not in tokenizer for mark in MARKS):
        tokenizer = tokenizer.with_tokens(MARKS)
        network = with_tokens(network, tokenizer.vocab_size, seed=config.seed)
    if config.length > network.config.max_length:
        raise OptionError(
            f"length ({config.length}) must not pass {network.config.max_length}, the most tokens "
            "that the network can see."
        )
    if config.lm_weight and not isinstance(network, GPTNetwork):
        raise OptionError("lm_weight needs a GPT: a BERT does not predict the next token.")
    if config.dropout is not None:
        set_dropout(network, config.dropout)
    if isinstance(network, BERTNetwork) and "pooler" in network.untrained:
        generator = torch.Generator().manual_seed(config.seed)
        initialise(network.pooler, network.config.initial_std, generator)
    sizes = f"{network.config.num_layers} layers × {network.config.width}"
    return Opened(
        new_encoder(network, config),
        SubwordCoder(tokenizer, kind_of(network), _most_tokens(network, config)),
        earlier,
        f"{kind_of(network).upper()}, {sizes}",
    )


def _most_tokens(network: Network, config: FinetuneConfig) -> int:
    """The length asked for; windows, of which there may be more, end where positions are known."""
    if isinstance(config, AnswerConfig):
        return min(config.length, network.seen_length)
    return config.length


def _open_words(
    lexicon: Lexicon,
    text: TextSettings,
    earlier: Earlier | None,
    config: FinetuneConfig,
    reads: Reads,
) -> Opened:
    encoder = new_word_encoder(lexicon, reads, config)
    if earlier is not None:
        encoder.take_from(earlier.encoder)
    return Opened(encoder, WordCoder(lexicon, text, config.length), earlier, described(encoder))


def _open_elmo(
    coder: ELMoCoder, earlier: Earlier | None, config: FinetuneConfig, reads: Reads
) -> Opened:
    encoder = new_elmo_encoder(coder, reads, config)
    if earlier is not None:
        encoder.take_from(earlier.encoder)
    own = ELMoCoder(coder.model, coder.lexicon, config.length)
    return Opened(encoder, own, earlier, described_elmo(encoder))


def _open_ulmfit(
    network: AWDNetwork,
    coder: ULMFiTCoder,
    earlier: Earlier | None,
    config: FinetuneConfig,
    reads: Reads,
) -> Opened:
    encoder = new_awd_encoder(network, reads, config)
    if earlier is not None:
        take_pooling(encoder, earlier.encoder)
    own = ULMFiTCoder(coder.vocabulary, coder.text, config.length)
    return Opened(encoder, own, earlier, described_awd(encoder))


def new_encoder(network: Network, config: FinetuneConfig) -> NetworkEncoder:
    """A network as the options want it under a head."""
    encoder = NetworkEncoder(
        network, features=config.features, is_frozen=config.freeze, reader_width=config.reader_width
    )
    if encoder.reader is not None:
        encoder.reader.initialise(torch.Generator().manual_seed(config.seed))
    return encoder


def _network_of(model: Any) -> tuple[Network, SubwordTokenizer, Earlier | None]:
    from sememe.tasks.task import Task

    if isinstance(model, Task):
        earlier = _taken_from(model)
        coder: Any = model.coder
        return earlier.encoder.network, coder.tokenizer, earlier
    if isinstance(model, SubwordModel):
        if model.network is None:
            raise OptionError("The model has not learned yet: call its fit first.")
        return deepcopy(model.network), model.tokenizer, None
    if isinstance(model, tuple) and len(model) == 2:
        network, tokenizer = model
        return deepcopy(network), tokenizer, None
    if not isinstance(model, str | Path):
        raise OptionError(
            "The model to start from must be a folder, a sememe.BERT, GPT, ELMo or ULMFiT, word "
            f"vectors, a task, or a network with its tokenizer, not {type(model).__name__}."
        )
    folder = Path(model)
    if not folder.is_dir():
        raise ArtifactError(f"There is no model folder at {folder}.")
    network, tokenizer = load_folder(folder)
    return network, tokenizer, None


def _task_of(model: Any) -> Any:
    """The task that a folder holds, if it holds one; anything else as it is."""
    if not isinstance(model, str | Path) or kind_of_folder(Path(model)) != "task":
        return model
    from sememe.tasks.folder import load

    return load(Path(model))


def _taken_from(task: Task) -> Earlier:
    if task.objective is None:
        raise OptionError("The task to start from has not learned yet: call its fit first.")
    encoder, head = deepcopy((task.objective.encoder, task.objective.head))
    return Earlier(head, task.labels, encoder)


def set_dropout(network: Network, share: float) -> None:
    """Leave out that share in every place where a network leaves out some."""
    network.config = replace(network.config, dropout=share, attention_dropout=share)
    for part in network.modules():
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = share  # type: ignore[assignment]


def words_hash(objective: Any) -> dict[str, str]:
    """A hash of the word vectors that a run starts from, where it starts from some."""
    encoder, found = objective.encoder, {}
    if isinstance(encoder, WordEncoder):
        found["words"] = encoder.lexicon.fingerprint()
    if isinstance(encoder, ELMoEncoder):
        found["elmo"] = weights_hash(encoder.elmo.network)
    return found
