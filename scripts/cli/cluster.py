"""`quorate cluster`: the cluster in a few numbers, and evened out."""

from __future__ import annotations

from collections.abc import Iterator

import typer

from quorate.controller.api.resources import ClusterReply
from quorate.scripts.cli.moves.balance import balance
from quorate.scripts.cli.option_groups import command_of
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import AtMoment, Controllers, FromPath, SecretFile
from quorate.scripts.terminal.output import show
from quorate.scripts.terminal.tables import columns

app = typer.Typer(help="Describe the cluster in a few numbers, and even it out.", no_args_is_help=True)
app.command()(command_of(balance))


@app.command()
def describe(
    as_json: AsJson = False,
    from_path: FromPath = None,
    at: AtMoment = None,
    controllers: Controllers = None,
    secret_file: SecretFile = None,
) -> None:
    """Show the cluster's id, active controller, metadata.version and counts.

    Example: quorate cluster describe
    """
    reply = ask(controllers, secret_file, lambda client: client.describe_cluster(), path=from_path, at=at)
    show(reply, columns(list(_facts(reply))), as_json=as_json)


def _facts(cluster: ClusterReply) -> Iterator[tuple[str, str]]:
    yield "cluster id", cluster.cluster_id
    yield "active controller", "none" if cluster.active_id is None else f"{cluster.active_id} (epoch {cluster.epoch})"
    # What files answer is seen by no controller.
    observer = "files" if cluster.observed_by < 0 else f"controller {cluster.observed_by}"
    yield "as seen by", f"{observer} at offset {cluster.state_offset}"
    yield "metadata.version", str(cluster.metadata_version)
    yield "features", ", ".join(f"{name}={level}" for name, level in cluster.features.items())
    yield "controllers", ",".join(map(str, cluster.controllers))
    yield "brokers", ",".join(map(str, cluster.brokers)) or "none"
    yield "topics", str(cluster.topics)
    counts = cluster.partitions
    yield "partitions", str(counts.total)
    yield "  offline", str(counts.offline)
    yield "  under-replicated", str(counts.under_replicated)
    yield "  under min ISR", str(counts.under_min_isr)
    yield "  not led by preferred", str(counts.without_preferred_leader)
    yield "  reassigning", str(counts.reassigning)
