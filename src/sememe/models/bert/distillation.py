"""A smaller BERT that learns from a teacher: what it predicts, and how its tokens are related.

At masked positions the student learns the teacher's probabilities beside the right token (Hinton et
al. 2015; Sanh et al. 2019, *DistilBERT*). The softmax over the dot products of each token's vector
with those of the other tokens, in groups of dimensions, should be the teacher's (as in Wang et al.
2021, *MiniLMv2*, which compares queries, keys and values); widths may differ.

B rows, T positions, N tokens of all rows concatenated, M of them masked, D width, H groups, V
vocabulary.
"""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from sememe.errors import OptionError
from sememe.models.bert.config import DistillationConfig
from sememe.models.bert.network import BERTNetwork, MaskedObjective
from sememe.nn.layers import keep_cast
from sememe.nn.rows import BERTInputs, RowLayout
from sememe.nn.softmax import metrics_of, score

_NONE = -1e9  # a logit without a share; infinities would make 0 × ∞


class DistilledObjective(MaskedObjective):
    """BERT's objectives; the teacher's probabilities and token relations are targets too."""

    def __init__(
        self,
        network: BERTNetwork,
        teacher: BERTNetwork,
        options: DistillationConfig,
        *,
        has_pairs: bool,
    ) -> None:
        super().__init__(network, has_pairs=has_pairs)
        self.soft_weight = 0.0 if "masked head" in teacher.untrained else options.soft_weight
        self.temperature, self.relation_weight = options.temperature, options.relation_weight
        # In a tuple, so that it is not a part of this module: not trained, not saved.
        self._teachers = (teacher.requires_grad_(False).eval(),)
        self._teacher_is: Any = None  # on which device, in which precision
        self.num_groups = math.gcd(network.config.num_heads, teacher.config.num_heads)
        if self.soft_weight:
            self.counted_by |= {"soft_loss": "masked"}
        if self.relation_weight:
            self.counted_by |= {"relation_loss": "tokens"}

    def _teacher(self, tokens: Tensor) -> BERTNetwork:
        """The teacher on the device and in the precision of the student."""
        (teacher,), wanted = self._teachers, (tokens.device, self.network.precision)
        if self._teacher_is != wanted:
            self._teacher_is = wanted
            teacher.to(tokens.device)
            teacher.precision = self.network.precision
            keep_cast(teacher, teacher.precision)
        return teacher

    def forward(
        self, inputs: BERTInputs, counts: Mapping[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch divided by the counts of the step, and the sums of its metrics."""
        network, teacher = self.network, self._teacher(inputs.ids_N)
        hidden_ND = network.encode(*inputs[:4])
        with torch.no_grad():
            known_ND = teacher.encode(*inputs[:4])
        logits_MV = network.masked_logits(hidden_ND.index_select(0, inputs.hidden_M))
        scores = {"masked": score(logits_MV, inputs.targets_M)}
        loss = (1 - self.soft_weight) * scores["masked"].loss / counts["masked"]
        more: dict[str, Tensor] = {}
        if self.soft_weight:
            with torch.no_grad():
                known_MV = teacher.masked_logits(known_ND.index_select(0, inputs.hidden_M))
            soft = soft_loss(logits_MV, known_MV, inputs.targets_M, self.temperature)
            loss = loss + self.soft_weight * soft / counts["masked"]
            more["soft_loss"] = soft.detach()
        if self.relation_weight:
            related = relation_loss(hidden_ND, known_ND, inputs.rows, self.num_groups)
            loss = loss + self.relation_weight * related / counts["tokens"]
            more["relation_loss"] = related.detach()
        if inputs.follows_B is not None and "pairs" in counts:
            first_B = inputs.rows.first_tokens(inputs.hidden_M.device)
            pooled_BD = network.pool(hidden_ND.index_select(0, first_B))
            scores["next"] = score(network.next_logits(pooled_BD), inputs.follows_B)
            loss = loss + scores["next"].loss / counts["pairs"]
        return loss, metrics_of(**scores) | more


def soft_loss(logits_MV: Tensor, known_MV: Tensor, targets_M: Tensor, temperature: float) -> Tensor:
    """The summed divergence from the teacher's probabilities, times the squared temperature."""
    num_tokens = min(logits_MV.shape[-1], known_MV.shape[-1])
    ours_MV, theirs_MV = (
        functional.log_softmax(own[:, :num_tokens].float() / temperature, -1)
        for own in (logits_MV, known_MV)
    )
    each_M = functional.kl_div(ours_MV, theirs_MV, log_target=True, reduction="none").sum(-1)
    return temperature**2 * (each_M * (targets_M >= 0)).sum()


def relation_loss(hidden_ND: Tensor, known_ND: Tensor, rows: RowLayout, num_groups: int) -> Tensor:
    """The divergence of the token relations, summed over tokens, the mean over the groups."""
    is_token_BT = rows.padded(torch.ones_like(hidden_ND[:, :1]))[..., 0] > 0
    ours, theirs = (
        relations(rows.padded(own), is_token_BT, num_groups) for own in (hidden_ND, known_ND)
    )
    each_BHT = functional.kl_div(ours, theirs, log_target=True, reduction="none").sum(-1)
    return (each_BHT.mean(1) * is_token_BT).sum()


def relations(tokens_BTD: Tensor, is_token_BT: Tensor, num_groups: int) -> Tensor:
    """The log-softmax over each token's scaled dot products with the others, (B, H, T, T)."""
    num_rows, length, width = tokens_BTD.shape
    size = width // num_groups
    groups_BHTD = tokens_BTD.float().view(num_rows, length, num_groups, size).transpose(1, 2)
    scores_BHTT = groups_BHTD @ groups_BHTD.transpose(-1, -2) / math.sqrt(size)
    # After a layer norm a token is most like itself, which would leave nothing to learn.
    itself_TT = torch.eye(length, dtype=torch.bool, device=tokens_BTD.device)
    is_out_BHTT = ~is_token_BT[:, None, None, :] | itself_TT
    return functional.log_softmax(scores_BHTT.masked_fill(is_out_BHTT, _NONE), -1)


@torch.no_grad()
def start_from(network: BERTNetwork, teacher: BERTNetwork) -> int:
    """Copy evenly spaced blocks, the embeddings and heads of a teacher of the same width.

    Return the number of blocks that were copied: none if the sizes differ.
    """
    ours, theirs = network.config, teacher.config
    sizes = ("family", "width", "num_heads", "inner_width", "num_segments", "embedding_width")
    if any(getattr(ours, name) != getattr(theirs, name) for name in sizes):
        return 0
    if not 0 < ours.num_layers <= theirs.num_layers:
        return 0
    known = teacher.state_dict()
    for name, tensor in network.state_dict().items():
        source = known.get(_named(name, ours.num_layers, theirs.num_layers))
        if source is None or source.shape[1:] != tensor.shape[1:]:
            continue
        num_rows = min(len(source), len(tensor)) if source.dim() else 0
        if source.dim() and tensor.shape[0] != source.shape[0]:
            tensor[:num_rows] = source[:num_rows]  # positions, and rows for no token
        else:
            tensor.copy_(source)
    return ours.num_layers


def _named(name: str, num_layers: int, num_known: int) -> str:
    """The name of a parameter in the teacher; the last block is always the teacher's last."""
    parts = name.split(".")
    if parts[:2] != ["stack", "blocks"]:
        return name
    index = round((int(parts[2]) + 1) * num_known / num_layers) - 1
    return ".".join([*parts[:2], str(index), *parts[3:]])


def check_teacher(teacher: Any, student: Any, tokenizer: Any) -> None:
    """Raise an error for a teacher that does not read what the student reads."""
    if teacher.tokenizer.fingerprint != tokenizer.fingerprint:
        raise OptionError(
            f"The teacher {teacher!r} has another tokenizer: its predictions are of other tokens. "
            "Leave out the tokenizer, and the student takes the teacher's."
        )
    if student.training.length > teacher.config.max_length:
        raise OptionError(
            f"length ({student.training.length}) must not exceed {teacher.config.max_length}, the "
            "maximum sequence length of the teacher."
        )
