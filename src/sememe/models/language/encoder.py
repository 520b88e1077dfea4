"""BERT and GPT under a head: sequences of ids in, a vector for each token or each sequence out.

B sequences, T positions of one, N tokens of all sequences concatenated, D width, L layers,
V vocabulary.
"""

from collections.abc import Sequence as Several
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from sememe.contract import KINDS
from sememe.errors import ArtifactError, OptionError
from sememe.models.bert.config import BERTConfig
from sememe.models.bert.network import BERTNetwork
from sememe.models.gpt.network import GPTNetwork
from sememe.models.huggingface.adapters import begin, check_base, finish, summary
from sememe.models.huggingface.folder import (
    Weights,
    kind_of,
    load_folder,
    load_network,
    manifest_of,
    token_fields,
    write_network,
)
from sememe.models.huggingface.growing import with_tokens
from sememe.models.huggingface.layout import HEAD_CLASSES, class_start, network_config
from sememe.models.huggingface.places import pretraining_heads
from sememe.nn.blocks import compile_parts, uncompile
from sememe.nn.encoders import (
    HEAD,
    Backbone,
    Coder,
    Inputs,
    Reads,
    SequenceMarks,
    UnderHead,
    means,
    refuse_vectors,
)
from sememe.nn.feature_layers import MIX, BiLSTM, Mix, choose_layers
from sememe.nn.heads import (
    ChoiceHead,
    ClassHead,
    Head,
    LabelSetHead,
    ScoreHead,
    SpanHead,
    TokenHead,
)
from sememe.nn.layers import initialise
from sememe.storage.tensors import write_tensors
from sememe.tokens.subwords.tokenizer import Encoding, SubwordTokenizer
from sememe.training.weights import check_finite, take_weights, tensors_in, weights_of


class NetworkEncoder(UnderHead):
    """BERT or GPT under a head, fine-tuned or frozen."""

    def __init__(
        self,
        network: BERTNetwork | GPTNetwork,
        *,
        features: str = "",
        is_frozen: bool = False,
        reader_width: int = 0,
    ) -> None:
        """`features` names the layers of a frozen network to use: one of six choices, or mix."""
        super().__init__()
        self.network, self.features = network, features
        self.is_frozen = is_frozen or bool(features)
        self.max_length = network.config.max_length
        self.num_depths = network.config.num_layers + 2
        self.dropout, self.initial_std = network.config.dropout, network.config.initial_std
        self.has_bias = isinstance(network, BERTNetwork)  # GPT's heads have none
        num_layers, width = network.config.num_layers, network.config.width
        self.mix = Mix(num_layers + 1) if features == MIX else None
        if features == "concat-last-four":
            width *= 4
        if features in ("concat-last-four", "sum-last-four") and num_layers < 4:
            raise OptionError(f"{features} needs four layers; this network has {num_layers}.")
        self.reader = BiLSTM(width, reader_width) if reader_width else None
        self.width = self.reader.output_width if self.reader is not None else width
        self.is_standard = not features and self.reader is None
        self._choose_parameters()

    def _choose_parameters(self) -> None:
        """Train only the parameters that the loss reaches."""
        # Several processes that exchange gradients would wait for the others.
        self.network.requires_grad_(not self.is_frozen)
        if isinstance(self.network, BERTNetwork):
            for _, parameter in self.network.head_parameters():
                parameter.requires_grad_(False)
            # The pooler belongs to the head rather than to the frozen part.
            self.network.pooler.requires_grad_(self.is_standard)

    def leave_pooler(self) -> None:
        """Declare that no head needs the vectors of sequences."""
        if isinstance(self.network, BERTNetwork):
            self.network.pooler.requires_grad_(False)

    def tokens(self, inputs: Inputs) -> Tensor:
        """One vector per token, (N, D)."""
        if not self.is_frozen:
            tokens_ND = self._last(inputs)
        else:
            with torch.no_grad():
                layers = (
                    self.network.encode_layers(*inputs[:4])
                    if self.features
                    else [self._last(inputs)]
                )
            tokens_ND = self._chosen(layers)
        return tokens_ND if self.reader is None else self.reader(tokens_ND, inputs)

    def _last(self, inputs: Inputs, wanted_M: Tensor | None = None) -> Tensor:
        return self.network.encode(*inputs[:4], wanted_M)

    def _chosen(self, layers: list[Tensor]) -> Tensor:
        if self.mix is not None:
            return self.mix(layers)
        return choose_layers(layers, self.features) if self.features else layers[-1]  # type: ignore

    def sequences(self, tokens_ND: Tensor, inputs: Inputs) -> Tensor:
        """One vector per sequence, (B, D): [CLS] through the pooler, or GPT's last token.

        Frozen layers and readers give the mean over the tokens.
        """
        if not self.is_standard:
            return means(tokens_ND, inputs)
        return self._pooled(tokens_ND.index_select(0, self._wanted(inputs)))

    def sequences_alone(self, inputs: Inputs) -> Tensor:
        """`sequences` of `tokens`, without computing the last block for the other tokens."""
        if not self.is_standard:
            return self.sequences(self.tokens(inputs), inputs)
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.is_frozen):
            wanted_BD = self._last(inputs, self._wanted(inputs))
        return self._pooled(wanted_BD)

    def _wanted(self, inputs: Inputs) -> Tensor:
        """The flat index of the token that represents each sequence, (B,)."""
        starts = inputs.rows.starts
        assert starts is not None
        return (
            starts[:-1].long() if isinstance(self.network, BERTNetwork) else starts[1:].long() - 1
        )

    def _pooled(self, wanted_BD: Tensor) -> Tensor:
        network = self.network
        return network.pool(wanted_BD) if isinstance(network, BERTNetwork) else wanted_BD

    def depth_of(self, name: str) -> int:
        """The embedding has depth 0, block i depth i + 1, the rest comes above the blocks."""
        parts = name.split(".")
        if parts[:2] == ["network", "embedding"]:
            return 0
        return (
            int(parts[3]) + 1
            if parts[:3] == ["network", "stack", "blocks"]
            else self.num_depths - 1
        )

    def compile(self, **options: Any) -> None:
        """Compile the embedding and the blocks, in place."""
        compile_parts(self.network, self.network.stack, **options)

    def uncompile(self) -> None:
        """Discard the compiled code, which belongs to one device."""
        uncompile(self.network, self.network.stack)


# ---- fine-tuning ----------------------------------------------------------------------------

Network = BERTNetwork | GPTNetwork
# The special tokens of GPT's input transformations, added to its tokenizer.
MARKS = ("<|start|>", "<|delimiter|>", "<|extract|>")
_EPOCHS = 3.0
_HEAD_RATE = 1e-3  # a head on frozen vectors starts from scratch
_LORA_RATE = 10  # times the rate of all weights


class SubwordCoder(Coder):
    """Sub-word tokens: [CLS] A [SEP] B [SEP] for BERT, start A delimiter B extract for GPT.

    The latter as in Radford et al. 2018, 3.3.
    """

    def __init__(self, tokenizer: SubwordTokenizer, kind: str, length: int) -> None:
        self.tokenizer, self.kind, self.length = tokenizer, kind, length
        self.is_gpt = kind == "gpt"
        if kind == "bert":
            before, between, after = tokenizer.cls_id, tokenizer.between_ids, tokenizer.sep_id
            self.unknown_id = tokenizer.unk_id
        else:
            before, delimiter, after = map(tokenizer.id, MARKS)
            between, self.unknown_id = (delimiter,), tokenizer.end_id
        self.marks = SequenceMarks((before,), between, (), (after,))

    def encode(self, texts: Several[str]) -> list[Encoding]:
        """Split texts into sub-word tokens; names of special tokens in them are plain text."""
        return self.tokenizer.encode_batch(texts, specials=False)


class TransformerBackbone(Backbone):
    """BERT or GPT. A task's folder is that of its network, which `transformers` opens."""

    has_model = True
    encoder: NetworkEncoder
    coder: SubwordCoder

    @classmethod
    def of(cls, model: Any, reads: Reads, config: Any) -> Self:
        """A copy of a model's network, for a head that needs `reads`."""
        return cls.of_network(model.trained(), model.tokenizer, reads, config)

    @classmethod
    def of_network(
        cls, network: Network, tokenizer: SubwordTokenizer, reads: Reads, config: Any
    ) -> Self:
        """A copy of a network, for a head that needs `reads`."""
        refuse_vectors(config)
        network = deepcopy(network)
        network.adapter = None  # its weights will change
        if isinstance(network, GPTNetwork) and any(mark not in tokenizer for mark in MARKS):
            tokenizer = tokenizer.with_tokens(MARKS)
            network = with_tokens(network, tokenizer.vocab_size, seed=config.seed)
        if config.length > network.config.max_length:
            raise OptionError(
                f"length ({config.length}) must not exceed {network.config.max_length}, the "
                "maximum sequence length of the network."
            )
        if config.lm_weight and not isinstance(network, GPTNetwork):
            raise OptionError("lm_weight needs a GPT: a BERT does not predict the next token.")
        if config.dropout is not None:
            set_dropout(network, config.dropout)
        if isinstance(network, BERTNetwork) and "pooler" in network.untrained:
            generator = torch.Generator().manual_seed(config.seed)
            initialise(network.pooler, network.config.initial_std, generator)
            # The task will train it; otherwise it is marked untrained when the task is saved.
            network.untrained -= {"pooler"}
        # Windows over a long context end at the last trained position.
        length = config.length
        if reads == "question":
            length = min(length, network.seen_length)
        coder = SubwordCoder(tokenizer, kind_of(network), length)
        return cls(_under_head(network, config), coder)

    def again(self, encoder: NetworkEncoder, reads: Reads, config: Any) -> Self:
        """Continue from the network of an earlier task."""
        return self.of_network(encoder.network, self.coder.tokenizer, reads, config)

    @property
    def description(self) -> str:
        """What the task starts from, in words."""
        config = self.encoder.network.config
        return f"{self.coder.kind.upper()}, {config.num_layers} layers × {config.width}"

    def defaults(self, config: Any) -> tuple[float, float]:
        """The learning rate for the size of the network, and three epochs."""
        sizes = self.encoder.network.config
        rate = _HEAD_RATE if config.is_frozen else _default_rate(sizes.width, sizes.num_layers)
        return rate * (_LORA_RATE if config.lora else 1), _EPOCHS

    @property
    def seen_length(self) -> int:
        """The number of positions that the network was trained with."""
        return self.encoder.network.seen_length

    def adapt(self, base: Any, config: Any) -> str:
        """Put LoRA's updates on the network of a model, and say how many weights are trained."""
        if config.is_frozen:
            raise OptionError("lora has nothing to update in a frozen network.")
        network, place = self.encoder.network, check_base(base)
        begin(network, place, config, config.seed, network_config(place).vocab_size)
        if isinstance(network, BERTNetwork):
            network.pooler.requires_grad_(True)  # it belongs to the head
        return summary(network)

    def finish_adapter(self) -> None:
        """Merge what LoRA has trained into the weights."""
        finish(self.encoder.network)

    def drop_adapter(self, objectives: Several[Any]) -> None:
        """Let networks be saved as a whole."""
        for own in (self, *objectives):
            own.encoder.network.adapter = None

    def model(self) -> Any:
        """A BERT or GPT that shares this network."""
        cls = KINDS[self.coder.kind].cls()
        return cls.around(self.encoder.network, self.coder.tokenizer)

    # ---- the folder of a task -----------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write the tokenizer."""
        self.coder.tokenizer.save(
            folder, max_length=self.encoder.max_length, has_segments=not self.coder.is_gpt
        )

    def manifest(self, objective: Any) -> dict[str, Any]:
        """What sememe.json says about the network."""
        network = self.encoder.network
        return {
            **manifest_of(network),
            "network": self.coder.kind,
            "untrained": sorted({*network.untrained, *_untrained(objective)}),
        }

    @classmethod
    def read(cls, folder: Path, manifest: dict[str, Any], config: Any) -> Self:
        """Open the network and the tokenizer of a task, of sememe or of `transformers`."""
        network, tokenizer = load_folder(folder)
        coder = SubwordCoder(tokenizer, kind_of(network), config.length)
        return cls(_under_head(network, config), coder)

    def new_encoder(self, folder: Path, config: Any) -> Any:
        """The encoder of another ensemble member, from its folder."""
        return _under_head(load_network(folder), config)

    def write_member(self, objective: Any, folder: Path, labels: Several[str]) -> None:
        """Write the network with its head, as `transformers` does if it has such a head."""
        encoder, head = objective.encoder, objective.head
        peer = peer_of(encoder, head)
        config = token_fields(encoder.network, self.coder.tokenizer)
        config |= self._labels_config(head, labels)
        tensors = {}
        if peer is not None:
            config["architectures"] = [peer.architecture]
            tensors = _linear(head, peer.prefix)
        else:
            extras = {name: x.float().cpu().numpy() for name, x in _extras(objective).items()}
            write_tensors(folder / HEAD, extras)
        write_network(
            encoder.network, folder, without=_untrained(objective), config=config,
            tensors=tensors, as_adapter=True,
        )  # fmt: skip

    def _labels_config(self, head: Head, labels: Several[str]) -> dict[str, Any]:
        """The label fields of config.json for `transformers`."""
        config: dict[str, Any] = {}
        if labels:
            config["id2label"] = {str(index): label for index, label in enumerate(labels)}
            config["label2id"] = {label: index for index, label in enumerate(labels)}
        elif isinstance(head, ScoreHead):
            config["id2label"], config["label2id"] = {"0": "score"}, {"score": 0}
        if isinstance(head, ScoreHead):
            config["problem_type"] = "regression"
        elif isinstance(head, LabelSetHead):
            config["problem_type"] = "multi_label_classification"
        return config

    @torch.no_grad()
    def fill(self, objective: Any, folder: Path) -> None:
        """Load a head's weights; the network has its own already."""
        objective.head.is_plain = not (folder / HEAD).exists()
        peer = peer_of(objective.encoder, objective.head)
        if peer is None:
            own, extras = weights_of(objective), _extras(objective)
            network = {name: x for name, x in own.items() if name not in extras}
            kept = tensors_in(folder / HEAD)
            take_weights(objective, {**network, **kept}, str(folder / HEAD))
            return
        weights = Weights(folder)
        for name, tensor in _linear(objective.head, peer.prefix).items():
            if name not in weights or weights[name].shape != tensor.shape:
                raise ArtifactError(f"{folder} lacks the head of its task: {name}.")
            check_finite(weights[name], name, folder)
            tensor.copy_(weights[name])


def _under_head(network: Network, config: Any) -> NetworkEncoder:
    """A network set up for a head as in the options."""
    encoder = NetworkEncoder(
        network, features=config.features, is_frozen=config.freeze, reader_width=config.reader_width
    )
    if encoder.reader is not None:
        encoder.reader.initialise(torch.Generator().manual_seed(config.seed))
    return encoder


def _default_rate(width: int, num_layers: int) -> float:
    """The learning rate for a network of these sizes: the papers' for base and large.

    Small networks learn little at such rates; Turc et al. 2019 tried up to 3e-4.
    """
    middle = 1e-4 if num_layers > 4 else 2e-4
    for least, rate in ((1_024, 2e-5), (768, 5e-5), (384, middle), (256, 3e-4)):
        if width >= least:
            return rate
    return 5e-4


def set_dropout(network: Network, share: float) -> None:
    """Set every dropout rate of a network."""
    network.config = replace(network.config, dropout=share, attention_dropout=share)
    for part in network.modules():
        if isinstance(getattr(part, "dropout", None), float):
            part.dropout = share  # type: ignore[assignment]


def _untrained(objective: Any) -> list[str]:
    """The pre-training heads that a task did not train, which would mislead users of the folder."""
    heads = pretraining_heads(objective.encoder.network)
    if objective.head.takes == "tokens" or not objective.encoder.is_standard:
        heads.append("pooler")
    return heads


def _linear(head: Head, prefix: str) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": x.detach() for name, x in head.linear.named_parameters()}


def _extras(objective: Any) -> dict[str, Tensor]:
    """Every weight that is not the network's; beside an adapter, the pooler belongs to the head."""
    own, network = weights_of(objective), "encoder.network."
    is_adapted = objective.encoder.network.adapter is not None
    return {
        name: x
        for name, x in own.items()
        if not name.startswith(network) or (is_adapted and name.startswith(f"{network}pooler."))
    }


class Peer(NamedTuple):
    """A class of `transformers`, and its name for the linear layer of the head."""

    architecture: str
    prefix: str


_ENDINGS = {
    ClassHead: "ForSequenceClassification",
    LabelSetHead: "ForSequenceClassification",
    ScoreHead: "ForSequenceClassification",
    ChoiceHead: "ForMultipleChoice",
    TokenHead: "ForTokenClassification",
    SpanHead: "ForQuestionAnswering",
}


def peer_of(encoder: NetworkEncoder, head: Head) -> Peer | None:
    """The class of `transformers` for an encoder with a head, or None."""
    if not encoder.is_standard or not head.is_plain or type(head) not in _ENDINGS:
        return None
    ending = _ENDINGS[type(head)]
    config = encoder.network.config
    if isinstance(config, BERTConfig):
        start = class_start(config)
        prefix = "qa_outputs" if isinstance(head, SpanHead) else "classifier"
        return Peer(start + ending, prefix) if ending in HEAD_CLASSES.get(start, ()) else None
    start = {"pre": "GPT2", "post": "OpenAIGPT"}[config.norm]
    allowed = {"GPT2": (ClassHead, TokenHead, SpanHead), "OpenAIGPT": (ClassHead,)}[start]
    if not isinstance(head, allowed):
        return None
    names: dict[type[Head], str] = {SpanHead: "qa_outputs", TokenHead: "classifier"}
    return Peer(start + ending, names.get(type(head), "score"))
