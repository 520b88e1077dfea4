"""Decoding: greedy search and beam search, for every translation model.

B sources, K hypotheses of each, C candidates, V vocabulary. A model provides a Writer: it takes the
newest token of every hypothesis and scores the next one, and it follows when hypotheses are dropped
or duplicated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from sememe.contract import not_finite
from sememe.models.translation.config import SearchConfig


class Writer(Protocol):
    """Hypotheses of some sources that grow by a token per step."""

    def step(self, ids_BK: Tensor) -> Tensor:
        """Take the newest token of every hypothesis; score its next one, (B, K, V)."""

    def choose(self, kept_C: Tensor, parents_CK: Tensor) -> None:
        """Continue with these sources, each hypothesis from its parent."""


@dataclass(frozen=True)
class Hypothesis:
    """A translation as ids, without start and end, and its score."""

    ids: list[int]
    score: float  # the length-normalized log probability
    log_probability: float


def length_penalty(num_tokens: int, config: SearchConfig) -> float:
    """What a logarithm is divided by, so that long hypotheses can win; the end counts as a token.

    GNMT's is ((5 + n) / 6)^α (Wu et al. 2016, 7), the average's n^α.
    """
    if config.penalty == "gnmt":
        return ((5 + num_tokens) / 6) ** config.alpha
    return num_tokens**config.alpha if config.penalty == "average" else 1.0


@torch.no_grad()
def search(
    writer: Writer,
    limits: Sequence[int],
    config: SearchConfig,
    *,
    start_id: int,
    end_id: int,
    barred: Sequence[int] = (),
    device: torch.device | None = None,
) -> list[list[Hypothesis]]:
    """The best translations of each source, at most `n_best` of them, best first.

    A source is done when as many hypotheses have ended as the beam is wide. `limits` are the
    maximum lengths; `barred` are ids that no translation may contain.
    """
    num_beams = config.beam
    found: list[list[Hypothesis]] = [[] for _ in limits]
    open_ = list(range(len(found)))  # the sources that still grow, as the writer has them
    ids_BKT = torch.full((len(found), num_beams, 1), start_id, device=device)
    # At first all hypotheses are the same, so one of them speaks.
    sums_BK = torch.full((len(found), num_beams), -math.inf, device=device)
    sums_BK[:, 0] = 0.0
    while open_:
        num_tokens = ids_BKT.shape[2] - 1
        logs_BKV = writer.step(ids_BKT[:, :, -1]).float().log_softmax(-1)
        if barred:
            logs_BKV[:, :, list(barred)] = -math.inf
        is_last = [num_tokens >= limits[source] for source in open_]
        logs_BKV = _ending(logs_BKV, is_last, end_id)
        sums_BC, parents_BC, tokens_BC = _candidates(sums_BK[:, :, None] + logs_BKV, num_beams)
        if sums_BC.isnan().any():
            raise not_finite("translator")
        is_end_BC = tokens_BC == end_id
        own = [found[source] for source in open_]
        _collect(own, ids_BKT, sums_BC, parents_BC, is_end_BC, config)
        can_grow = (~is_end_BC & sums_BC.isfinite()).any(-1).tolist()
        kept = [
            place
            for place, source in enumerate(open_)
            if can_grow[place] and not is_last[place] and len(found[source]) < num_beams
        ]
        open_ = [open_[place] for place in kept]
        if not open_:
            break
        kept_C = torch.tensor(kept, device=device)
        # The first that have not ended, in the order of their sums.
        order_BK = is_end_BC[kept_C].to(torch.int8).argsort(dim=-1, stable=True)[:, :num_beams]
        sums_BK = sums_BC[kept_C].gather(1, order_BK)
        sums_BK = sums_BK.masked_fill(is_end_BC[kept_C].gather(1, order_BK), -math.inf)
        parents_BK = parents_BC[kept_C].gather(1, order_BK)
        tokens_BK = tokens_BC[kept_C].gather(1, order_BK)
        ids_BKT = ids_BKT[kept_C[:, None], parents_BK]
        ids_BKT = torch.cat([ids_BKT, tokens_BK[:, :, None]], 2)
        writer.choose(kept_C, parents_BK)
    return [sorted(own, key=lambda one: -one.score)[: config.n_best] for own in found]


def _ending(logs_BKV: Tensor, is_last: list[bool], end_id: int) -> Tensor:
    """Force hypotheses that have reached their limit to end."""
    if not any(is_last):
        return logs_BKV
    is_last_B = torch.tensor(is_last, device=logs_BKV.device)
    is_other_V = torch.arange(logs_BKV.shape[-1], device=logs_BKV.device) != end_id
    return logs_BKV.masked_fill(is_last_B[:, None, None] & is_other_V, -math.inf)


def _candidates(sums_BKV: Tensor, num_beams: int) -> tuple[Tensor, Tensor, Tensor]:
    """The most likely continuations of each source: twice the beam, because half may end."""
    vocab_size = sums_BKV.shape[2]
    num = min(2 * num_beams, num_beams * vocab_size)
    # Each hypothesis alone first: one selection among all of them is slow where K × V is large.
    sums_BKC, tokens_BKC = sums_BKV.topk(min(num, vocab_size), -1)
    sums_BC, places_BC = sums_BKC.flatten(1).topk(min(num, sums_BKC[0].numel()), -1)
    parents_BC = places_BC // sums_BKC.shape[2]
    return sums_BC, parents_BC, tokens_BKC.flatten(1).gather(1, places_BC)


def _collect(
    found_B: list[list[Hypothesis]],
    ids_BKT: Tensor,
    sums_BC: Tensor,
    parents_BC: Tensor,
    is_end_BC: Tensor,
    config: SearchConfig,
) -> None:
    """Keep the hypotheses that end among the first of their source."""
    is_found_BK = (is_end_BC & sums_BC.isfinite())[:, : config.beam]
    rows, places = (index.tolist() for index in is_found_BK.nonzero(as_tuple=True))
    if not rows:
        return
    parents = parents_BC[rows, places]
    ids_FT, sums = ids_BKT[rows, parents, 1:].tolist(), sums_BC[rows, places].tolist()
    for row, ids, total in zip(rows, ids_FT, sums, strict=True):
        if len(found_B[row]) < config.beam:
            score = total / length_penalty(len(ids) + 1, config)
            found_B[row].append(Hypothesis(ids, score, total))
