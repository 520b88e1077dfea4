"""The CRF against every sequence of tags written out: sums, the best one, chances, what may be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sememe.examples.batches import TokenSequence
from sememe.examples.tagging import IGNORE_ID
from sememe.nn.crf import CRF, CRFHead, allowed_transitions, best_tags, parted, tag_marginals
from sememe.nn.encoders import inputs_of
from sememe.nn.heads import Labelled

C = 3


@pytest.fixture
def crf() -> CRF:
    crf = CRF(C)
    crf.initialise(1.0, torch.Generator().manual_seed(1))
    return crf


def emissions_of(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2))


def score_of(tags, emissions_WC, scores_SC) -> float:
    found = scores_SC[-2, tags[0]] + scores_SC[-1, tags[-1]]
    found += sum(emissions_WC[i, tag] for i, tag in enumerate(tags))
    return float(found + sum(scores_SC[a, b] for a, b in itertools.pairwise(tags)))


def every(num_words: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(C), repeat=num_words))


@pytest.mark.parametrize("num_words", [1, 2, 5])
def test_losses_count_every_sequence(crf, num_words):
    emissions = emissions_of(1, num_words, C)
    scores = crf.scores().detach().numpy()
    all_scores = [score_of(tags, emissions[0].numpy(), scores) for tags in every(num_words)]
    total = np.log(np.exp(all_scores).sum())
    chances = 0.0
    for tags, own in zip(every(num_words), all_scores, strict=True):
        loss = float(crf.losses(emissions, torch.tensor([tags])).detach())
        assert loss == pytest.approx(total - own, abs=1e-4)
        chances += np.exp(-loss)
    assert chances == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("num_words", [0, 1, 2, 6])
def test_viterbi_finds_the_best_of_all(crf, num_words):
    emissions, scores = emissions_of(num_words, C).numpy(), crf.scores().detach().numpy()
    best = best_tags(emissions, scores)
    if not num_words:
        assert len(best) == 0
        return
    wanted = max(every(num_words), key=lambda tags: score_of(tags, emissions, scores))
    assert tuple(best) == wanted


def test_chances_are_sums_over_sequences(crf):
    emissions, scores = emissions_of(4, C).numpy(), crf.scores().detach().numpy()
    wanted = np.zeros((4, C))
    for tags in every(4):
        for place, tag in enumerate(tags):
            wanted[place, tag] += np.exp(score_of(tags, emissions, scores))
    np.testing.assert_allclose(
        tag_marginals(emissions, scores), wanted / wanted[0].sum(), rtol=1e-5
    )


def test_places_that_are_not_asked_about_and_padding_change_nothing(crf):
    emissions = emissions_of(1, 3, C)
    tags = torch.tensor([[2, 0, 1]])
    wide = torch.full((1, 7, C), 9.0)
    wide[0, [1, 2, 5]] = emissions[0]
    targets = torch.full((1, 7), IGNORE_ID)
    targets[0, [1, 2, 5]] = tags[0]
    torch.testing.assert_close(crf.losses(wide, targets), crf.losses(emissions, tags))
    nothing = torch.full((1, 7), IGNORE_ID)
    assert crf.losses(wide, nothing).tolist() == [0.0]


def test_gradients_agree_with_differences():
    crf = CRF(C).double()
    crf.initialise(1.0, torch.Generator().manual_seed(1))
    emissions = emissions_of(2, 4, C).double().requires_grad_()
    targets = torch.tensor([[0, 2, 1, IGNORE_ID], [1, IGNORE_ID, 1, 2]])
    assert torch.autograd.gradcheck(
        lambda x, _: crf.losses(x, targets), (emissions, crf.transitions_SC)
    )


@pytest.mark.parametrize(
    ("scheme", "labels", "good", "bad"),
    [
        (
            "iob2",
            ["O", "B-X", "I-X", "B-Y", "I-Y"],
            ["O B-X I-X I-X B-X", "B-Y I-Y O", "B-X B-Y I-Y"],
            ["I-X O", "O I-X", "B-X I-Y", "O O I-Y"],
        ),
        (
            "bioes",
            ["O", "B-X", "I-X", "E-X", "S-X", "S-Y"],
            ["O S-X S-X O", "B-X E-X", "B-X I-X E-X S-Y"],
            ["B-X O", "B-X", "E-X", "O I-X E-X", "B-X S-Y", "S-X E-X"],
        ),
    ],
)
def test_only_what_a_scheme_writes_may_be(scheme, labels, good, bad):
    allowed = allowed_transitions(labels, scheme)

    def is_allowed(text: str) -> bool:
        tags = [labels.index(tag) for tag in text.split()]
        pairs = all(allowed[a, b] for a, b in itertools.pairwise(tags))
        return bool(allowed[-2, tags[0]] and allowed[-1, tags[-1]] and pairs)

    assert all(map(is_allowed, good)) and not any(map(is_allowed, bad))
    assert allowed_transitions(labels, "iob1").all()


def test_forbidden_sequences_are_never_chosen():
    labels = ["O", "B-X", "I-X"]
    crf = CRF(C, allowed_transitions(labels, "iob2"))
    emissions = np.array([[0.0, 0, 9], [0, 0, 9], [9, 0, 0]], np.float32)  # I-X I-X O
    scores = crf.scores().detach().numpy()
    assert [labels[tag] for tag in best_tags(emissions, scores)] == ["B-X", "I-X", "O"]
    assert tag_marginals(emissions, scores)[0, 2] == pytest.approx(0, abs=1e-6)


def test_a_head_gives_scores_with_transitions_and_sums_losses():
    head = CRFHead(6, C)
    head.initialise(0.5, torch.Generator().manual_seed(3))
    ids = [np.arange(size, dtype=np.int32) for size in (4, 2)]
    inputs = inputs_of([TokenSequence(own, np.zeros(len(own), np.int8)) for own in ids])
    targets = head.collate([np.array([IGNORE_ID, 1, 0, 2]), np.array([IGNORE_ID, 2])])
    batch = Labelled(inputs, torch.arange(2), 2, targets, torch.tensor([1.0, 0.5]))
    outputs = head(emissions_of(6, 6), batch)
    first = head.crf.losses(outputs[None, :4], targets[None, :4])
    second = head.crf.losses(outputs[None, 4:], targets[None, 4:])
    torch.testing.assert_close(head.loss(outputs, batch), (first + 0.5 * second)[0])
    assert head.count(batch) == 4
    own, scores = parted(head.split(outputs.detach(), batch)[1])
    np.testing.assert_array_equal(own, outputs[4:].detach())
    np.testing.assert_array_equal(scores, head.crf.scores().detach())


def test_part_of_a_sentence_may_begin_and_end_inside_a_span():
    labels = ["O", "B-X", "I-X", "E-X", "S-X"]
    crf = CRF(5, allowed_transitions(labels, "bioes"))
    crf.initialise(1.0, torch.Generator().manual_seed(1))
    emissions = emissions_of(3, 4, 5)
    inside = [IGNORE_ID, 2, 3, 1]  # a window over a long sentence answers for these words
    whole = [1, 2, 3, 0]
    losses = crf.losses(emissions, torch.tensor([inside, whole, whole])).detach()
    open_edges = CRF(5, crf.is_allowed_SC.numpy().copy())
    open_edges.is_allowed_SC[-2:] = True
    with torch.no_grad():
        open_edges.transitions_SC.copy_(crf.transitions_SC)
    (expected,) = open_edges.losses(emissions[:1], torch.tensor([inside])).detach()
    assert losses[0] == pytest.approx(float(expected), abs=1e-4)
    assert losses[0] < 100
    (alone,) = crf.losses(emissions[1:2], torch.tensor([whole])).detach()
    assert losses[1] == pytest.approx(float(alone), abs=1e-4)  # a neighbor opens nothing here
