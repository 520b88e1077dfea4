"""A corpus in an object store, read by the nodes of a cluster."""

from functools import partial

import pytest
from ray_nodes import cluster_of_two

from sememe.cluster.connection import nodes_of
from sememe.cluster.tasks import RayTasks
from sememe.executor import running_on
from sememe.text import shards
from sememe.text.settings import TextSettings
from sememe.tokens.caching import open_or_build

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow


def test_a_corpus_in_an_object_store_is_read_by_the_nodes(s3, tmp_path, monkeypatch):
    corpus, url = tmp_path / "corpus.txt", "s3://bucket/own/*.txt"
    lines = (f"The node{i % 97} saw n{i % 1_000} in café{i % 13}. It ran!\n" for i in range(40_000))
    corpus.write_text("".join(lines))
    s3.pipe_file("bucket/own/corpus.txt", corpus.read_bytes())
    monkeypatch.setattr(shards.cut_shards, "__defaults__", (60_000,))

    def build(source, name):
        return open_or_build(source, TextSettings(), path=tmp_path / name, min_count=2)

    one = build(corpus, "one")
    (tmp_path / "cache").mkdir()
    # Nodes that start now know where the bucket is.
    with cluster_of_two(tmp_path / "cache"), running_on(RayTasks(ray, partial(nodes_of, ray))):
        many = build(url, "many")
    assert one.manifest["files"] == many.manifest["files"]
    assert build(url, "many").manifest == many.manifest
