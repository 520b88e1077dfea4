"""Addresses of clusters, and what is said where there is none."""

import sys

import pytest

from sememe.cluster.connection import check_address, connected, on_cluster
from sememe.errors import MissingExtraError, OptionError
from sememe.executor import cluster


@pytest.mark.parametrize("address", ["local", "auto", "ray://10.0.0.5:10001", "ray://head:10001"])
def test_addresses_of_clusters(address):
    check_address(address)


@pytest.mark.parametrize("address", ["", "head:6379", "ray://head", "ray://:10001", "ray://h:x"])
def test_other_addresses_are_refused(address):
    with pytest.raises(OptionError, match="ray://HOST:PORT"):
        check_address(address)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"sememe\[cluster\]"), connected("local"):
        pass


def test_without_an_address_work_stays_in_this_process():
    with on_cluster(None):
        assert cluster() is None


def test_processes_of_torchrun_start_no_cluster(monkeypatch):
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "2"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)
    with pytest.raises(OptionError, match="torchrun"), on_cluster("local"):
        pass
