"""Ray clusters of two nodes on this machine, which may be slow; nodes that come and go."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sememe.machine import cache_dir

PATIENCE_S = 600.0  # for what surely comes, on a machine that is busy with other work
_TRIES = 5
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_raylet_start_wait_time_s": "300",
    "RAY_gcs_server_port_wait_time_s": "300",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_worker_niceness": "0",  # as --cluster local
    # A node that refuses connections is gone after five seconds; one that is slow stays.
    "RAY_health_check_period_ms": "1000",
    # Memory that other programs use is no reason to end a worker.
    "RAY_memory_monitor_refresh_ms": "0",
}


def wait_for(state: Callable[[], Any]) -> Any:
    """Wait until something is so, and return it; on a lost cluster it never is."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (found := state()):
        assert time.monotonic() < deadline_s, "this state never came"
        time.sleep(0.05)
    return found


def processes_below(process_id: int, name: str = "") -> list[int]:
    """The descendants of a process whose command contains a name."""
    parents, named = {}, []
    for place in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            parents[int(place.name)] = int(fields[1])
            if name in (place / "cmdline").read_text(errors="replace"):
                named.append(int(place.name))

    def is_below(one: int) -> bool:
        while (parent := parents.get(one)) is not None:
            if parent == process_id:
                return True
            one = parent
        return False

    return [one for one in named if is_below(one)]


def add_node(cluster: Any, **options: Any) -> Any:
    """Add a node; Ray gives it 30 seconds to start, however busy the machine is."""
    for last in range(_TRIES):
        try:
            node = cluster.add_node(**options, wait=False)
        except Exception:
            if last == _TRIES - 1:
                raise
        else:
            cluster._wait_for_node(node, PATIENCE_S)
            return node
    raise AssertionError


def is_alive(node: Any) -> bool:
    """Whether the cluster takes a node for a living one, which it may do for some seconds more."""
    import ray

    return any(own["Alive"] for own in ray.nodes() if own["NodeID"] == node.node_id)


def lose(cluster: Any, node: Any) -> None:
    """End a node and its workers at once, as if its machine had lost its power."""
    raylet = node.all_processes["raylet"][0].process.pid
    workers = processes_below(raylet)
    for process_id in (raylet, *workers):
        with suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGKILL)
    cluster.remove_node(node, allow_graceful=False)


@contextmanager
def cluster_of_two(cache: Path) -> Iterator[Any]:
    """A cluster of two nodes with one core each and a cache of their own, except for kernels."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    kernels = (cache_dir() / "kernels").resolve()
    kernels.mkdir(parents=True, exist_ok=True)
    (cache / "kernels").symlink_to(kernels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEMEME_CACHE", str(cache))
        for name, value in _SETTINGS.items():
            patch.setenv(name, value)
        made = Cluster()
        add_node(made, num_cpus=1, include_dashboard=False)
        add_node(made, num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()
