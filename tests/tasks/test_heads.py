"""Heads and encoders against plain formulas: losses, gradients, layers, pooling, freezing."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional

from sememe.errors import OptionError
from sememe.examples.batches import TokenSequence
from sememe.models.language.encoder import NetworkEncoder
from sememe.nn.encoders import inputs_of
from sememe.nn.feature_layers import BiLSTM, Mix
from sememe.nn.heads import ChoiceHead, ClassHead, ScoreHead, SpanHead, TokenHead
from sememe.tasks.objective import Item, TaskObjective, labelled_of, say

LENGTHS = (5, 3, 7)
CPU = torch.device("cpu")


def sequence(length: int, first: int = 5) -> TokenSequence:
    segments = (np.arange(length) > length // 2).astype(np.int8)
    return TokenSequence(np.arange(first, first + length, dtype=np.int32), segments)


def items(targets, num_sequences=(1, 1, 1), weights=(1, 1, 1)):
    return [
        Item(tuple(sequence(length, 5 + n) for n in range(num)), i, np.array(target), weight=w)
        for i, (length, target, num, w) in enumerate(
            zip(LENGTHS, targets, num_sequences, weights, strict=True)
        )
    ]


def test_the_loss_of_classes_is_the_weighted_cross_entropy():
    head = ClassHead(4, 3)
    batch = labelled_of(items([0, 2, 1], weights=(1, 0.5, 2)), head)
    vectors = torch.randn(3, 4)
    outputs = head(vectors, batch)
    targets = torch.tensor([0, 2, 1])
    own = functional.cross_entropy(head.linear(vectors), targets, reduction="none")
    torch.testing.assert_close(head.loss(outputs, batch), (own * torch.tensor([1, 0.5, 2])).sum())
    assert head.count(batch) == 3


def test_the_vectors_of_both_orders_are_added():
    head = ScoreHead(4, 1)
    batch = labelled_of(items([0.5, 1, 2], num_sequences=(2, 2, 2)), head)
    vectors = torch.randn(6, 4)
    expected = head.linear(vectors.view(3, 2, 4).sum(1))
    torch.testing.assert_close(head(vectors, batch), expected)
    loss = (expected.squeeze(1) - torch.tensor([0.5, 1, 2])).square().sum()
    torch.testing.assert_close(head.loss(expected, batch).float(), loss)


def test_choices_may_be_of_different_number():
    head = ChoiceHead(4, 1)
    batch = labelled_of(items([1, 0, 3], num_sequences=(2, 3, 4)), head)
    outputs = torch.randn(9, requires_grad=True)
    loss = head.loss(outputs, batch)
    parts = outputs.detach().clone().requires_grad_()
    expected = sum(
        functional.cross_entropy(own[None], torch.tensor([target]))
        for own, target in zip(parts.split([2, 3, 4]), (1, 0, 3), strict=True)
    )
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(outputs.grad, parts.grad)
    assert [len(own) for own in head.split(outputs.detach(), batch)] == [2, 3, 4]


def test_tokens_that_are_not_asked_about_do_not_count():
    head = TokenHead(4, 3)
    targets = [np.array([-100, 1, 2, -100, 0]), np.array([-100] * 3), np.array([1] * 7)]
    batch = labelled_of(items(targets), head)
    outputs = torch.randn(15, 3)
    flat = torch.from_numpy(np.concatenate(targets))
    expected = functional.cross_entropy(outputs, flat, reduction="sum")
    torch.testing.assert_close(head.loss(outputs, batch), expected)
    assert head.count(batch) == 10
    assert [own.shape for own in head.split(outputs, batch)] == [(5, 3), (3, 3), (7, 3)]


def test_spans_are_found_within_their_own_sequence():
    head = SpanHead(4, 2)
    batch = labelled_of(items([(1, 2), (0, 0), (6, 6)]), head)
    outputs = torch.randn(15, 2)
    expected = sum(
        (functional.cross_entropy(own[None, :, 0], torch.tensor([start]))
         + functional.cross_entropy(own[None, :, 1], torch.tensor([end]))) / 2
        for own, (start, end) in zip(
            outputs.split(LENGTHS), [(1, 2), (0, 0), (6, 6)], strict=True)
    )  # fmt: skip
    torch.testing.assert_close(head.loss(outputs, batch), expected)


@pytest.mark.parametrize("name", ["bert", "gpt"])
@pytest.mark.parametrize("features", ["", "first", "last", "second-to-last", "sum-all", "mix"])
def test_an_encoder_gives_the_layers_of_its_network(request, name, features):
    network, _ = request.getfixturevalue(name)
    encoder = NetworkEncoder(network, features=features).eval()
    inputs = inputs_of([sequence(length) for length in LENGTHS])
    tokens = encoder.tokens(inputs).detach()
    for (start, end), own in zip(((0, 5), (5, 8), (8, 15)), LENGTHS, strict=True):
        one = sequence(own)
        ids, segments = (torch.from_numpy(x.astype(np.int64))[None] for x in one)
        layers = network.layers(ids, segments) if name == "bert" else network.layers(ids)
        expected = {
            "": layers[-1], "first": layers[0], "last": layers[-1], "second-to-last": layers[-2],
            "sum-all": sum(layers[1:]), "mix": sum(layers) / len(layers),
        }[features]  # fmt: skip
        torch.testing.assert_close(tokens[start:end], expected[0].detach(), atol=1e-5, rtol=1e-4)
    assert encoder.sequences(tokens, inputs).shape == (3, encoder.width)
    network.requires_grad_(True)


def test_four_layers_are_needed_for_the_last_four(bert):
    with pytest.raises(OptionError, match="four layers"):
        NetworkEncoder(bert[0], features="concat-last-four")
    bert[0].requires_grad_(True)


def test_a_frozen_network_neither_learns_nor_drops(bert):
    from presets import bert_config
    from sememe.models.bert.network import BERTNetwork

    network = BERTNetwork(bert_config("tiny", vocab_size=64, width=32, dropout=0.5))
    encoder = NetworkEncoder(network, features="mix", reader_width=6).train()
    inputs = inputs_of([sequence(length) for length in LENGTHS])
    torch.testing.assert_close(encoder.tokens(inputs), encoder.tokens(inputs))
    encoder.sequences(encoder.tokens(inputs), inputs).sum().backward()
    learned = {name for name, p in encoder.named_parameters() if p.grad is not None}
    assert {"mix.weights_L", "mix.scale"} < learned
    assert not any(name.startswith("network.") for name in learned)


def test_a_mix_is_a_weighted_sum_with_a_scale():
    mix = Mix(3)
    layers = [torch.randn(4, 2) for _ in range(3)]
    with torch.no_grad():
        mix.weights_L.copy_(torch.tensor([0.0, 1.0, 2.0]))
        mix.scale.fill_(3.0)
    shares = torch.tensor([0.0, 1.0, 2.0]).softmax(0)
    expected = 3 * sum(share * layer for share, layer in zip(shares, layers, strict=True))
    torch.testing.assert_close(mix(layers), expected)


def test_a_bilstm_reads_each_sequence_by_itself():
    reader = BiLSTM(4, 3)
    inputs = inputs_of([sequence(length) for length in LENGTHS])
    tokens = torch.randn(15, 4)
    together = reader(tokens, inputs)
    for start, end in ((0, 5), (5, 8), (8, 15)):
        alone, _ = reader.lstm(tokens[start:end][None])
        torch.testing.assert_close(together[start:end], alone[0], atol=1e-6, rtol=1e-5)


def test_what_is_said_does_not_depend_on_what_is_asked_with_it(bert):
    network, _ = bert
    objective = TaskObjective(NetworkEncoder(network), ClassHead(32, 3)).eval()
    own = items([0, 1, 2])
    together = say(objective, own, CPU)
    for item, output in zip(own, together.outputs, strict=True):
        np.testing.assert_allclose(say(objective, [item], CPU).outputs[0], output, atol=1e-5)
    assert together.loss > 0 and np.isnan(say(objective, [], CPU).loss)
    network.requires_grad_(True)
