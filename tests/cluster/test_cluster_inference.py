"""Vectors, predictions and indexes of two nodes: those of one process, also if a node dies."""

import os
import sys
import time
from contextlib import closing, contextmanager

import numpy as np
import pytest
from ray_nodes import lose, wait_for

import sememe
from sememe.cluster.connection import nodes_of
from sememe.cluster.tasks import RayTasks
from sememe.errors import ClusterError, SememeError
from sememe.executor import running_on
from sememe.models.inference import ModelAt, OnModel, computed, embed_parts, keeping

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.slow
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
TEXTS = [f"the old king {i % 7} lives by the sea {i % 11} times" for i in range(1_200)]
PARTS = [TEXTS[start : start + 20] for start in range(0, len(TEXTS), 20)]


@pytest.fixture
def spread(nodes):
    """Let the work of a block run on the cluster; its workers end with it, and free their cores."""

    @contextmanager
    def spread():
        with closing(RayTasks(ray, lambda: nodes_of(ray))) as executor, running_on(executor):
            yield

    return spread


def slowly(model, part):
    """Vectors, slowly enough to be met by a kill; and the node and process that made them."""
    time.sleep(0.3)
    node = ray.get_runtime_context().get_node_id() if ray.is_initialized() else ""
    return {
        "rows": model.embed(part),
        "process": np.array([os.getpid()]),
        "node": np.frombuffer(node.encode(), np.uint8),
    }


def node_of(part) -> str:
    return part["node"].tobytes().decode()


def test_vectors_are_those_of_one_process_though_a_node_dies(
    nodes, doomed, spread, golden, tmp_path
):
    work = OnModel(ModelAt(str(golden / "bert")), slowly)
    expected = [own["rows"] for own in computed(work, PARTS)]
    on_doomed = 0
    found: list[dict[str, np.ndarray]] = []
    with spread():
        # Its worker may start long after the others.
        wait_for(lambda: doomed.node_id in {*map(node_of, computed(work, PARTS[:9]))})
        with keeping(tmp_path / "parts", resume=False):
            for own in computed(work, PARTS):
                found.append(own)
                if node_of(own) == doomed.node_id:
                    on_doomed += 1
                    if on_doomed == 1:  # its worker has other parts by now
                        lose(nodes, doomed)
    assert 1 <= on_doomed < len(PARTS) // 2
    assert len(found) == len(PARTS)
    differences = [
        float(np.abs(one - own["rows"]).max()) for one, own in zip(expected, found, strict=True)
    ]
    assert max(differences) < 1e-6
    assert len({int(own["process"][0]) for own in found}) >= 2
    assert list(tmp_path.iterdir()) == []


def test_each_worker_opens_the_model_once(spread, golden):
    work = OnModel(ModelAt(str(golden / "bert")), slowly)
    with spread():
        found = [
            int(own["process"][0]) for parts in (PARTS[:6], PARTS[6:12])
            for own in computed(work, parts)
        ]  # fmt: skip
    assert len({*found}) <= 2


def test_an_index_and_its_evaluation_are_those_of_one_process(spread, golden, tmp_path):
    rows = [{"id": str(n), "text": text} for n, text in enumerate(TEXTS)]
    model = golden / "bert"
    one = sememe.Search.build(rows, model, folder=tmp_path / "one")
    with spread():
        many = sememe.Search.build(rows, model, folder=tmp_path / "many")
    a, b = (np.load(tmp_path / name / "vectors.npy") for name in ("one", "many"))
    assert float(np.abs(a - b).max()) < 1e-6
    query = "a king by the sea"
    assert [hit.id for hit in one.search(query)] == [hit.id for hit in many.search(query)]
    words = golden / "skipgram" if (golden / "skipgram").exists() else model
    opened = sememe.load(words)
    with spread():
        found = np.concatenate([*embed_parts(opened, PARTS)])
    assert np.abs(found - np.concatenate([*embed_parts(opened, PARTS)])).max() < 1e-6


def test_predictions_are_those_of_one_process(spread, golden, tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{text}\troyal\n" for text in TEXTS))
    task = sememe.load(golden / "classify", able="predict")
    label = task.labels[0]
    path.write_text(path.read_text().replace("\troyal", f"\t{label}"))
    one, scores = [*task.predict_stream(path)], task.evaluate(path)
    with spread():
        many, found = [*task.predict_stream(path)], task.evaluate(path)
    assert [row.prediction for row in one] == [row.prediction for row in many]
    assert scores.metrics == found.metrics


def test_errors_of_workers_are_told_once(spread, golden):
    def fails(model, part):
        raise RuntimeError("a fault")

    def dies(model, part):
        os._exit(1)

    words = ModelAt(str(golden / "counts"))
    with spread():
        with pytest.raises(ClusterError, match="a fault"):
            list(computed(OnModel(words, fails), PARTS))
        with pytest.raises(SememeError, match="no-such-model"):
            list(computed(OnModel(ModelAt("/no-such-model"), slowly), PARTS))
        with pytest.raises(ClusterError, match="lost"):
            list(computed(OnModel(words, dies), PARTS[:1]))
