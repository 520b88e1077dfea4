"""A ladder on three nodes: the scores of one machine, though a node dies on the way."""

from pathlib import Path

import pytest
from ray_nodes import lose

from sememe.cluster.connection import nodes_of
from sememe.cluster.tasks import RayTasks
from sememe.executor import running_on
from sememe.ladder.running import Ladder
from sememe.ladder.view import View

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.slow
OPTIONS = {"tokens": 60_000, "workers": 1, "rungs": "onehot,counts,skipgram,cbow", "rows": 20}


class Watching(View):
    """A view that does something when the second rung begins to train."""

    def __init__(self, act):
        super().__init__(quiet=True)
        self.act, self.begun = act, []

    def begin(self, rung, what):
        super().begin(rung, what)
        if what == "training" and self.act is not None:
            self.begun.append(rung)
            if len(self.begun) == 2:
                self.act()
                self.act = None


@pytest.fixture
def corpus(tmp_path) -> Path:
    path = tmp_path / "corpus.txt"
    words = ("king", "queen", "sea", "castle", "horse", "bird", "fish", "house", "tree", "road")
    lines = (
        f"The {words[i % 10]} saw the {words[(i // 3) % 10]} near a {words[(i * 7) % 9]}.\n\n"
        for i in range(6_000)
    )
    path.write_text("".join(lines))
    return path


def scores(results):
    return {(cell.rung, cell.task): cell.mean for cell in results.cells}


def test_scores_are_those_of_one_machine_though_a_node_dies(nodes, doomed, corpus, tmp_path):
    one = Ladder(**OPTIONS).run(corpus, out=tmp_path / "one", progress=View(quiet=True))
    view = Watching(lambda: lose(nodes, doomed))
    with running_on(RayTasks(ray, lambda: nodes_of(ray))):
        many = Ladder(**OPTIONS).run(corpus, out=tmp_path / "many", progress=view)
    assert view.act is None
    assert {rung.name: rung.state for rung in many.rungs} == dict.fromkeys(
        OPTIONS["rungs"].split(","), "done"
    )
    assert scores(many) == scores(one)
    assert len(many.cells) == len({(cell.rung, cell.task) for cell in many.cells})
    left = [path.name for path in (tmp_path / "many" / "models").iterdir()]
    assert sorted(left) == sorted(OPTIONS["rungs"].split(","))

    # A finished ladder that continues has nothing to do, and keeps its scores.
    with running_on(RayTasks(ray, lambda: nodes_of(ray))):
        again = Ladder(**OPTIONS).run(
            corpus, out=tmp_path / "many", resume=True, progress=View(quiet=True)
        )
    assert scores(again) == scores(one)
