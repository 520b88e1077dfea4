"""A linear-chain CRF over tags: scores of words in, the best or the right sequence of tags out.

B sequences, T positions, N tokens laid end to end, W words of one sequence, C tags. A sequence
scores the sum of what its words say (emissions) and of what its neighbors say (transitions); its
chance is that score against all sequences, summed by the forward algorithm (Lafferty et al. 2001).
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from sememe.examples.tagging import IGNORE_ID, OUTSIDE, split_tag
from sememe.networks.heads import Labelled, TokenHead

# What may not be: lower than any score, and still a number.
FORBIDDEN = -1e4


class CRF(nn.Module):
    """The transitions between tags, to the first one and from the last."""

    is_allowed_SC: Tensor

    def __init__(self, num_tags: int, is_allowed_SC: np.ndarray | None = None) -> None:
        """`is_allowed_SC` says of C + 2 rows, as `scores` has them, what may be."""
        super().__init__()
        self.transitions_SC = nn.Parameter(torch.zeros(num_tags + 2, num_tags))
        if is_allowed_SC is None:
            is_allowed_SC = np.ones((num_tags + 2, num_tags), np.bool_)
        self.register_buffer("is_allowed_SC", torch.from_numpy(is_allowed_SC), persistent=False)

    def initialise(self, std: float, generator: torch.Generator) -> None:
        """Draw the first weights."""
        nn.init.normal_(self.transitions_SC, std=std, generator=generator)

    def scores(self) -> Tensor:
        """From each tag to each, then those of first tags and those of last ones, (C + 2, C)."""
        return self.transitions_SC.masked_fill(~self.is_allowed_SC, FORBIDDEN)

    def losses(self, emissions_BTC: Tensor, targets_BT: Tensor) -> Tensor:
        """The negative logarithm of the chance of the right tags of each sequence, (B,).

        Places whose target is IGNORE_ID are stepped over, as if they were not there. Right tags
        that no sentence begins or ends with are part of a longer one: there any tag may stand.
        """
        between_CC = self.scores()[:-2]
        num_rows, _, num_tags = emissions_BTC.shape
        all_BC = emissions_BTC.new_zeros(num_rows, num_tags)
        right_B = emissions_BTC.new_zeros(num_rows)
        before_B = torch.zeros(num_rows, dtype=torch.int64, device=emissions_BTC.device)
        has_begun_B = torch.zeros(num_rows, dtype=torch.bool, device=emissions_BTC.device)
        is_asked_BT = targets_BT != IGNORE_ID
        first_BC = self._edges(-2, targets_BT, is_asked_BT)
        last_BC = self._edges(-1, targets_BT.flip(1), is_asked_BT.flip(1))
        for emissions_BC, targets_B, is_asked_B in zip(
            emissions_BTC.unbind(1), targets_BT.unbind(1), is_asked_BT.unbind(1), strict=True
        ):
            tags_B = targets_B.clamp(min=0)
            following_BC = (all_BC[:, :, None] + between_CC).logsumexp(1)
            begun_BC = torch.where(has_begun_B[:, None], following_BC, first_BC)
            all_BC = torch.where(is_asked_B[:, None], begun_BC + emissions_BC, all_BC)
            step_B = torch.where(has_begun_B, between_CC[before_B, tags_B], _at(first_BC, tags_B))
            step_B = step_B + _at(emissions_BC, tags_B)
            right_B = right_B + step_B * is_asked_B
            before_B = torch.where(is_asked_B, tags_B, before_B)
            has_begun_B = has_begun_B | is_asked_B
        total_B = (all_BC + last_BC).logsumexp(1) - (right_B + _at(last_BC, before_B))
        return torch.where(has_begun_B, total_B, 0.0)

    def _edges(self, row: int, targets_BT: Tensor, is_asked_BT: Tensor) -> Tensor:
        """The scores of the outermost tags, (B, C); `row` is that of first or last ones."""
        outer_B = _at(targets_BT, is_asked_BT.int().argmax(1)).clamp(min=0)
        is_open_B1 = ~self.is_allowed_SC[row][outer_B][:, None]
        return torch.where(is_open_B1, self.transitions_SC[row], self.scores()[row])


def _at(values_BC: Tensor, places_B: Tensor) -> Tensor:
    return values_BC.gather(1, places_B[:, None]).squeeze(1)


class CRFHead(TokenHead):
    """One of C tags for each token, chosen together with those beside it."""

    def __init__(
        self,
        width: int,
        num_outputs: int,
        *,
        dropout: float = 0.0,
        is_allowed_SC: np.ndarray | None = None,
    ) -> None:
        super().__init__(width, num_outputs, dropout=dropout)
        self.crf = CRF(num_outputs, is_allowed_SC)

    def initialise(self, std: float, generator: torch.Generator) -> None:
        """Draw the first weights."""
        super().initialise(std, generator)
        self.crf.initialise(std, generator)

    def loss(self, outputs_NC: Tensor, batch: Labelled) -> Tensor:
        """The losses of the sequences, weighted and summed."""
        assert batch.targets is not None
        rows = batch.inputs.rows
        # Empty places are zero, and zero must mean that nothing is asked.
        targets_BT = rows.padded(batch.targets - IGNORE_ID) + IGNORE_ID
        return (self.crf.losses(rows.padded(outputs_NC), targets_BT) * batch.weights_E).sum()

    def split(self, outputs_NC: Tensor, batch: Labelled) -> list[np.ndarray]:
        """The scores of the tokens of each item, and below them the transitions, (T + C + 2, C).

        So what decodes them needs no head, and ensembles take the mean of both.
        """
        scores_SC = self.crf.scores().detach().cpu().numpy()
        return [np.concatenate([own, scores_SC]) for own in super().split(outputs_NC, batch)]


def parted(output: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The scores of tokens and the transitions that `CRFHead.split` put together."""
    num_transitions = output.shape[1] + 2
    return output[:-num_transitions], output[-num_transitions:]


def best_tags(emissions_WC: np.ndarray, scores_SC: np.ndarray) -> np.ndarray:
    """The sequence of tags with the highest score, by Viterbi's algorithm, (W,)."""
    if not len(emissions_WC):
        return np.zeros(0, np.int64)
    between_CC, first_C, last_C = scores_SC[:-2], scores_SC[-2], scores_SC[-1]
    best_C = first_C + emissions_WC[0]
    origins = []
    for emissions_C in emissions_WC[1:]:
        reached_CC = best_C[:, None] + between_CC
        origins.append(reached_CC.argmax(0))
        best_C = reached_CC.max(0) + emissions_C
    tags = [int((best_C + last_C).argmax())]
    for origin_C in reversed(origins):
        tags.append(int(origin_C[tags[-1]]))
    return np.array(tags[::-1], np.int64)


def tag_chances(emissions_WC: np.ndarray, scores_SC: np.ndarray) -> np.ndarray:
    """The chance of each tag of each word, by the forward-backward algorithm, (W, C)."""
    if not len(emissions_WC):
        return np.zeros_like(emissions_WC, np.float64)
    between_CC, first_C, last_C = (
        part.astype(np.float64) for part in (scores_SC[:-2], scores_SC[-2], scores_SC[-1])
    )
    emissions_WC = emissions_WC.astype(np.float64)
    forward_WC, backward_WC = np.zeros_like(emissions_WC), np.zeros_like(emissions_WC)
    forward_WC[0], backward_WC[-1] = first_C + emissions_WC[0], last_C
    for index in range(1, len(emissions_WC)):
        reached_CC = forward_WC[index - 1][:, None] + between_CC
        forward_WC[index] = _summed(reached_CC, 0) + emissions_WC[index]
    for index in range(len(emissions_WC) - 2, -1, -1):
        later_C = emissions_WC[index + 1] + backward_WC[index + 1]
        backward_WC[index] = _summed(between_CC + later_C, 1)
    joint_WC = forward_WC + backward_WC
    return np.exp(joint_WC - _summed(joint_WC, 1)[:, None])


def _summed(scores: np.ndarray, axis: int) -> np.ndarray:
    highest = scores.max(axis, keepdims=True)
    return np.log(np.exp(scores - highest).sum(axis)) + highest.squeeze(axis)


def allowed_transitions(labels: Several[str], scheme: str) -> np.ndarray:
    """Which tags may follow which in a scheme, which may come first and which last, (C + 2, C)."""
    is_allowed_SC = np.ones((len(labels) + 2, len(labels)), np.bool_)
    if scheme not in ("iob2", "bioes"):  # in the others every sequence means something
        return is_allowed_SC
    parts = [split_tag(label) for label in labels]
    outside = (OUTSIDE, "")
    for column, following in enumerate(parts):
        for row, before in enumerate([*parts, outside]):
            is_allowed_SC[row, column] = _may_follow(before, following, scheme)
        is_allowed_SC[-1, column] = _may_follow(following, outside, scheme)
    return is_allowed_SC


def forbidden_pair(tags: Several[str], scheme: str) -> tuple[str, str] | None:
    """The first two tags of a sentence that a scheme forbids behind each other, if any are."""
    if scheme not in ("iob2", "bioes"):
        return None
    for before, following in pairwise([OUTSIDE, *tags, OUTSIDE]):
        if not _may_follow(split_tag(before), split_tag(following), scheme):
            return before, following
    return None


def _may_follow(before: tuple[str, str], following: tuple[str, str], scheme: str) -> bool:
    goes_on = following[0] in ("I", "E")
    if scheme == "iob2":
        return not goes_on or (before[0] in ("B", "I") and before[1] == following[1])
    if before[0] in ("B", "I"):  # an open span wants more of itself
        return goes_on and before[1] == following[1]
    return not goes_on
