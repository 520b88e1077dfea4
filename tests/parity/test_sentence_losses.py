"""The losses of sentence-transformers: the same values and gradients for the same vectors."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers")

from sentence_transformers.sentence_transformer import losses as theirs
from torch import nn

from sememe.models.sentence import losses


class Vectors(nn.Module):
    """Stands where sentence-transformers has a model: gives the vectors it is handed."""

    similarity_fn_name = None

    def forward(self, features: Any) -> dict[str, Any]:
        return {"sentence_embedding": features["vectors"]}

    def __getitem__(self, index: int) -> Any:
        return self

    device = torch.device("cpu")


def some(num: int, seed: int) -> Any:
    vectors = torch.randn(num, 8, generator=torch.Generator().manual_seed(seed))
    return vectors.requires_grad_()


def compared(ours: Any, their: Any, inputs: list[Any]) -> None:
    torch.testing.assert_close(ours, their, rtol=1e-5, atol=1e-6)
    own = torch.autograd.grad(ours, inputs, retain_graph=True)
    for one, other in zip(own, torch.autograd.grad(their, inputs), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("num_negatives", [0, 1])
def test_multiple_negatives_ranking(num_negatives):
    columns = [some(6, seed) for seed in range(2 + num_negatives)]
    peer = theirs.MultipleNegativesRankingLoss(Vectors(), scale=20.0)
    expected = peer([{"vectors": own} for own in columns], None)
    first, *others = map(losses.unit, columns)
    hidden = torch.zeros(6, 6 * len(others), dtype=torch.bool)
    found = losses.ranking_loss(first, torch.cat(others), hidden, 0.05)[0] / 6
    compared(found, expected, columns)


def test_cosent():
    columns, scores = [some(6, 1), some(6, 2)], torch.tensor([0.1, 0.5, 0.9, 0.5, 0.0, 1.0])
    expected = theirs.CoSENTLoss(Vectors(), scale=20.0)([{"vectors": x} for x in columns], scores)
    found = losses.cosent_loss(*map(losses.unit, columns), scores, 0.05) / 6
    compared(found, expected, columns)


def test_cosine():
    columns, scores = [some(6, 1), some(6, 2)], torch.tensor([0.1, 0.5, 0.9, 0.5, 0.0, 1.0])
    expected = theirs.CosineSimilarityLoss(Vectors())([{"vectors": x} for x in columns], scores)
    found = losses.cosine_loss(*map(losses.unit, columns), scores) / 6
    compared(found, expected, columns)
