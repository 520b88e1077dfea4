"""Connect to a Ray cluster: an address in, an executor of tasks out.

The nodes must have the same version of sememe, and see the same files under the same paths: the
corpus, the output folder and the cache (SEMEME_CACHE).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any, NamedTuple

from sememe import __version__
from sememe.cluster.tasks import RayTasks, on_each_node
from sememe.cluster.team import first_line
from sememe.errors import ClusterError, MissingExtraError, OptionError
from sememe.executor import running_on
from sememe.machine import available_cores, cache_dir, torchrun_ranks
from sememe.progress import SILENT, Reporter
from sememe.storage.folder import is_left_over, remove_folder, scratch_mark

LOCAL, AUTO, _PREFIX = "local", "auto", "ray://"
_FOLDER, _OWNER = "sememe-ray-", "owner-"
# Ray reports its use over the network, and gives a busy machine 30 to 60 seconds for each start.
_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_gcs_server_port_wait_time_s": "120",
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_worker_register_timeout_seconds": "300",
    # Otherwise 15: on a busy machine its workers would wait for all that is not as nice.
    "RAY_worker_niceness": "0",
}
_GB = 1e9
_LONGEST_PLACE = 24


class Node(NamedTuple):
    """A machine of the cluster and what it offers."""

    name: str
    address: str
    cores: int
    gpus: int
    memory: int  # bytes for tasks

    @property
    def told(self) -> str:
        """One line about it."""
        gpus = f", {self.gpus} GPUs" if self.gpus else ""
        return f"{self.name} ({self.cores} cores{gpus}, {self.memory / _GB:.0f} GB)"


def check_address(address: str) -> None:
    """Raise an error for an address that is none of the three kinds."""
    host, _, port = address.removeprefix(_PREFIX).rpartition(":")
    is_client = address.startswith(_PREFIX) and host and port.isdecimal()
    if address not in (LOCAL, AUTO) and not is_client:
        raise OptionError(f"--cluster takes local, auto or ray://HOST:PORT, not {address!r}.")


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to Ray within this context and yield its library.

    `local` starts a cluster of this machine's cores and ends it; `auto` joins the one that this
    machine is a node of.
    """
    check_address(address)
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "A cluster needs Ray: pip install 'sememe[cluster]', on all nodes."
        ) from error
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    folder = None
    if address == LOCAL:
        folder = _new_folder()
        options |= {"address": LOCAL, "num_cpus": available_cores(), "_temp_dir": str(folder)}
        options["include_dashboard"] = False
    else:
        options["address"] = address
    try:
        try:
            _start(ray, options)
        except Exception as error:  # of many kinds: no cluster, another version, no answer
            raise ClusterError(
                f"The cluster {address} cannot be reached: {first_line(error)}. Start one with "
                "`ray start --head`, or use --cluster local."
            ) from error
        yield ray
    finally:
        ray.shutdown()
        if folder is not None:
            remove_folder(folder)


def _start(ray: Any, options: dict[str, Any]) -> None:
    """Connect to a cluster; a local one that Ray has given up starting is started again."""
    try:
        ray.init(**options)
    except Exception:
        if options["address"] != LOCAL:
            raise
        ray.shutdown()
        ray.init(**options)


def _new_folder() -> Path:
    """A folder for the sockets and logs of Ray; those of killed processes are removed."""
    # The path of a socket has 107 bytes at most, so the mark of this process is a file.
    place = Path(gettempdir() if len(gettempdir()) <= _LONGEST_PLACE else "/tmp")
    for mark in place.glob(f"{_FOLDER}*/{_OWNER}*"):
        if is_left_over(mark.name):
            remove_folder(mark.parent)
    folder = Path(mkdtemp(prefix=_FOLDER, dir=place))
    (folder / f"{_OWNER}{scratch_mark()}").touch()
    return folder


def nodes_of(ray: Any) -> list[Node]:
    """The living nodes."""
    found = []
    for node in ray.nodes():
        offers = node["Resources"]
        if node["Alive"]:
            found.append(
                Node(
                    node["NodeManagerHostname"],
                    node["NodeManagerAddress"],
                    int(offers.get("CPU", 0)),
                    int(offers.get("GPU", 0)),
                    int(offers.get("memory", 0)),
                )
            )
    return sorted(found)


@contextmanager
def on_cluster(
    address: str | None, progress: Reporter = SILENT, num_workers: int = 0
) -> Iterator[None]:
    """Let work within this context run on a cluster; None: in this process.

    num_workers: how many workers train word vectors together; 0: one on each node.
    """
    if address is None:
        yield
        return
    if torchrun_ranks()[1] > 1:
        raise OptionError("--cluster and torchrun cannot be combined; use one of them.")
    with connected(address) as ray:
        nodes = nodes_of(ray)
        _check_nodes(ray)
        progress.note(f"Cluster: {', '.join(node.told for node in nodes)}.")
        with running_on(RayTasks(ray, partial(nodes_of, ray), num_workers, progress.note)):
            yield


def _check_nodes(ray: Any) -> None:
    """Raise an error for a node that cannot do the work of this one."""
    folder = cache_dir() / "stores"
    folder.mkdir(parents=True, exist_ok=True)
    probe = folder / f"probe-{scratch_mark()}"
    probe.write_text(__version__)
    try:
        for name, (version, is_shared) in on_each_node(ray, _report, probe):
            if version != __version__:
                raise ClusterError(
                    f"The node {name} has sememe {version}, this process {__version__}: install "
                    "the same version on all nodes."
                )
            if not is_shared:
                raise ClusterError(
                    f"The node {name} does not see the folder {folder}: set SEMEME_CACHE to a "
                    "folder on storage that all nodes share."
                )
    finally:
        probe.unlink(missing_ok=True)


def _report(probe: Path) -> tuple[str, bool]:
    """A node's version of sememe, and whether it sees a file."""
    return __version__, probe.exists()
