"""Where a local cluster has its sockets and logs."""

import os
import subprocess
import sys

from sememe.cluster import connection


def test_folders_of_killed_commands_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(connection, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(connection, "_LONGEST_PLACE", len(str(tmp_path)))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    alive = connection._new_folder()
    dead = connection._new_folder()
    (mark,) = dead.iterdir()
    mark.rename(dead / mark.name.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))
    (dead / "session").mkdir()
    (dead / "session" / "log").touch()
    unknown = tmp_path / "sememe-ray-unknown"
    unknown.mkdir()
    new = connection._new_folder()
    assert {*tmp_path.iterdir()} == {alive, unknown, new}
