"""Greedy and beam search against trying everything; lengths, several sources, n-best."""

from __future__ import annotations

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from sememe.errors import OptionError
from sememe.models.translation.beam_search import length_penalty, search
from sememe.models.translation.config import SearchConfig

START, END, VOCAB = 0, 1, 5


class Table:
    """Writes by a table of scores that depends on the source and the last two tokens."""

    def __init__(self, sources, num_beams, seed=0):
        draws = torch.Generator().manual_seed(seed)
        self.scores = torch.randn(8, VOCAB, VOCAB, VOCAB, generator=draws) * 1.5
        self.sources = torch.tensor(sources)
        self.last = torch.full((len(sources), num_beams), START)
        self.num_rows = []

    def step(self, ids_BK):
        self.before, self.last = self.last, ids_BK
        self.num_rows.append(len(ids_BK))
        return self.scores[self.sources[:, None], self.before, ids_BK]

    def choose(self, kept_C, parents_CK):
        self.sources = self.sources[kept_C]
        self.last = self.last[kept_C[:, None], parents_CK]

    def log_probability(self, source, ids):
        before = last = START
        total = 0.0
        for token in [*ids, END]:
            total += float(self.scores[source, before, last].log_softmax(-1)[token])
            before, last = last, token
        return total


def every(table, source, limit, config, barred=(START,)):
    """All translations of at most `limit` tokens, the best first."""
    others = [token for token in range(VOCAB) if token not in (END, *barred)]
    found = []
    for num in range(limit + 1):
        for ids in itertools.product(others, repeat=num):
            total = table.log_probability(source, ids)
            found.append((total / length_penalty(num + 1, config), list(ids), total))
    return sorted(found, key=lambda one: -one[0])


@pytest.mark.parametrize("penalty", ["gnmt", "average", "none"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_wide_beam_finds_what_trying_everything_finds(penalty, seed):
    config = SearchConfig(beam=130, n_best=7, penalty=penalty, alpha=0.8)
    sources, limits = [0, 3, 5], [4, 4, 2]
    found = search(
        Table(sources, 130, seed), limits, config, start_id=START, end_id=END, barred=[START]
    )
    table = Table(sources, 1, seed)
    for source, limit, own in zip(sources, limits, found, strict=True):
        best = every(table, source, limit, config)[:7]
        assert [one.ids for one in own] == [ids for _, ids, _ in best]
        assert [one.score for one in own] == pytest.approx([score for score, _, _ in best])
        assert own[0].log_probability == pytest.approx(best[0][2], abs=1e-5)


def test_a_beam_of_one_takes_the_likeliest_token_each_time():
    config = SearchConfig(beam=1, penalty="none")
    for source in range(8):
        (own,) = search(Table([source], 1), [6], config, start_id=START, end_id=END, barred=[START])
        table, before, last, ids = Table([source], 1), START, START, []
        while len(ids) < 6:
            scores = table.scores[source, before, last].clone()
            scores[START] = -math.inf
            token = int(scores.argmax())
            if token == END:
                break
            ids.append(token)
            before, last = last, token
        assert own[0].ids == ids


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_sources_together_are_as_each_alone(beam):
    config = SearchConfig(beam=beam, n_best=beam)
    sources, limits = list(range(8)), [3, 7, 5, 7, 2, 6, 7, 4]
    options = {"start_id": START, "end_id": END, "barred": [START]}
    writer = Table(sources, beam)
    together = search(writer, limits, config, **options)
    for source, limit, own in zip(sources, limits, together, strict=True):
        (alone,) = search(Table([source], beam), [limit], config, **options)
        assert own == alone
        assert all(len(one.ids) <= limit and START not in one.ids for one in own)
        assert len({tuple(one.ids) for one in own}) == len(own)
        assert [one.score for one in own] == sorted((one.score for one in own), reverse=True)
    assert writer.num_rows[0] == 8 > writer.num_rows[-1]  # what is done is no longer computed


def test_a_wider_beam_is_no_less_likely_here():
    scores = []
    for beam in (1, 3, 130):
        config = SearchConfig(beam=beam, penalty="none")
        found = search(Table(range(8), beam), [4] * 8, config, start_id=START, end_id=END)
        scores.append(sum(own[0].log_probability for own in found))
    assert scores[0] <= scores[1] <= scores[2] and scores[0] < scores[2]


def test_penalties():
    assert length_penalty(7, SearchConfig(penalty="gnmt", alpha=1.0)) == 2.0
    assert length_penalty(9, SearchConfig(penalty="average", alpha=0.5)) == 3.0
    assert length_penalty(9, SearchConfig(penalty="none")) == 1.0


@pytest.mark.parametrize(
    ("options", "says"),
    [({"beam": 2, "n_best": 3}, "n_best"), ({"beam": 0}, "beam"), ({"penalty": "x"}, "penalty")],
)
def test_what_is_wrong_with_a_search(options, says):
    with pytest.raises(OptionError, match=says):
        SearchConfig(**options)
