"""A linear-chain CRF over tags: scores of words in, the best or the right sequence of tags out.

B sequences, T positions, N tokens concatenated, W words of one sequence, C tags. The score of a
sequence is the sum of its words' scores (emissions) and of its tag pairs' scores (transitions); its
probability is normalized over all sequences by the forward algorithm (Lafferty et al. 2001).
"""

from collections.abc import Sequence as Several
from itertools import pairwise

import numpy as np
import torch
from scipy.special import logsumexp
from torch import Tensor, nn

from sememe.examples.tagging import IGNORE_ID, OUTSIDE, split_tag
from sememe.nn.heads import Labelled, TokenHead

# The score of forbidden transitions: lower than any other, but finite.
FORBIDDEN = -1e4


class CRF(nn.Module):
    """The transitions between tags, to the first one and from the last."""

    is_allowed_SC: Tensor

    def __init__(self, num_tags: int, is_allowed_SC: np.ndarray | None = None) -> None:
        """`is_allowed_SC` has C + 2 rows like `scores`, and says which transitions are allowed."""
        super().__init__()
        self.transitions_SC = nn.Parameter(torch.zeros(num_tags + 2, num_tags))
        if is_allowed_SC is None:
            is_allowed_SC = np.ones((num_tags + 2, num_tags), np.bool_)
        self.register_buffer("is_allowed_SC", torch.from_numpy(is_allowed_SC), persistent=False)

    def initialise(self, std: float, generator: torch.Generator) -> None:
        """Initialize the weights."""
        nn.init.normal_(self.transitions_SC, std=std, generator=generator)

    def scores(self) -> Tensor:
        """From each tag to each, then those of first tags and those of last ones, (C + 2, C)."""
        return self.transitions_SC.masked_fill(~self.is_allowed_SC, FORBIDDEN)

    def losses(self, emissions_BTC: Tensor, targets_BT: Tensor) -> Tensor:
        """The negative log probability of the right tags of each sequence, (B,).

        Positions with the target IGNORE_ID are skipped. Right tags that cannot begin or end a
        sentence are part of a longer one: there any neighboring tag is allowed.
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
    """One of C tags for each token, decoded jointly with its neighbors."""

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
        """Initialize the weights."""
        super().initialise(std, generator)
        self.crf.initialise(std, generator)

    def loss(self, outputs_NC: Tensor, batch: Labelled) -> Tensor:
        """The weighted sum of the losses of the sequences."""
        assert batch.targets is not None
        rows = batch.inputs.rows
        # Empty places are zero, and zero must mean no target.
        targets_BT = rows.padded(batch.targets - IGNORE_ID) + IGNORE_ID
        return (self.crf.losses(rows.padded(outputs_NC), targets_BT) * batch.weights_E).sum()

    def split(self, outputs_NC: Tensor, batch: Labelled) -> list[np.ndarray]:
        """The scores of the tokens of each item, followed by the transitions, (T + C + 2, C).

        So decoding needs no head, and ensembles average both.
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


def tag_marginals(emissions_WC: np.ndarray, scores_SC: np.ndarray) -> np.ndarray:
    """The marginal probability of each tag of each word, by forward-backward, (W, C)."""
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
        forward_WC[index] = logsumexp(reached_CC, 0) + emissions_WC[index]
    for index in range(len(emissions_WC) - 2, -1, -1):
        later_C = emissions_WC[index + 1] + backward_WC[index + 1]
        backward_WC[index] = logsumexp(between_CC + later_C, 1)
    joint_WC = forward_WC + backward_WC
    return np.exp(joint_WC - logsumexp(joint_WC, 1)[:, None])


def allowed_transitions(labels: Several[str], scheme: str) -> np.ndarray:
    """Allowed transitions in a scheme, then allowed first and last tags, (C + 2, C)."""
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
    """The first two consecutive tags of a sentence that a scheme forbids, if any."""
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
