"""The command line: thin doors to the rooms; a command and its Python call share their words."""

from __future__ import annotations


def main() -> None:
    """Run the command that the shell typed."""
    from sememe.cli.app import run

    run()
