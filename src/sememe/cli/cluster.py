"""What a cluster offers (`cluster status`)."""

from __future__ import annotations

from typing import Annotated

import typer

from sememe.cli.options import Json
from sememe.cli.program import examples, group, print_json, print_table

app = group("cluster", "Work on several machines.")


@app.command(
    epilog=examples(
        "sememe cluster status",
        "sememe cluster status --cluster ray://10.0.0.5:10001",
    ),
)
def status(
    cluster: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Ray cluster: local, auto or ray://HOST:PORT.")
    ] = "auto",
    json: Json = False,
) -> None:
    """Show the nodes of a cluster, their cores, GPUs and memory."""
    from sememe.cluster.connection import connected, nodes_of

    with connected(cluster) as ray:
        nodes = nodes_of(ray)
    if json:
        print_json([node._asdict() for node in nodes])
        return
    rows = [(*node[:4], f"{node.memory / 1e9:.1f} GB") for node in nodes]
    print_table(("node", "address", "cores", "GPUs", "memory"), rows, always_headed=True)
