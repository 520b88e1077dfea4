"""A Ray cluster of two nodes, and a third one that a test may lose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from ray_nodes import add_node, cluster_of_two, is_alive, lose, wait_for


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster for the tests of a file."""
    with cluster_of_two(tmp_path_factory.mktemp("cache")) as made:
        yield made


@pytest.fixture
def doomed(nodes: Any) -> Iterator[Any]:
    """A third node, which the test may lose; the next test finds two again."""
    node = add_node(nodes, num_cpus=1)
    wait_for(lambda: is_alive(node))
    yield node
    if node in nodes.worker_nodes:
        lose(nodes, node)
    wait_for(lambda: not is_alive(node))


@pytest.fixture
def own_tmp() -> Iterator[Path]:
    """A folder for temporary files with a short name, as sockets need, of one test alone."""
    with TemporaryDirectory(prefix="sr-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)
