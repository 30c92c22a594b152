"""`quorate snapshot restore`: a fresh cluster, or one node, from a checkpoint or a state of a log."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from quorate.controller.engine.environment import new_uuid
from quorate.metadata_log.errors import InvalidId
from quorate.metadata_log.ids import uuid_from_text, uuid_text
from quorate.scripts.cli.snapshot.sources import Source, Target, left_lines, loaded, source_document
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.cluster.found_controllers import ask_each
from quorate.scripts.cluster.making import Ports, controller_directory
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
from quorate.scripts.cluster.restoring import RestoredNode, restore_cluster, restore_node
from quorate.scripts.cluster.source_state import SourceState, known_commit
from quorate.scripts.terminal.arguments import AsJson, broker_ids
from quorate.scripts.terminal.connecting import AtMoment, SecretFile
from quorate.scripts.terminal.output import format_time
from quorate.scripts.terminal.places.controllers import find_secret, find_tls, full_urls, is_insecure
from quorate.snapshots.image_digest import digest_image

_PLAYED: Final = ("live", "all", "none")

_Nodes = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        min=1,
        max=5,
        metavar="N",
        help="All voters of a cluster for `quorate up`.",
        show_default=False,
    ),
]
_NodeId = Annotated[
    int | None,
    typer.Option("--node-id", min=0, max=2**31 - 1, metavar="ID", help="One node's directory.", show_default=False),
]
_Voters = Annotated[
    str | None,
    typer.Option(
        "--voters",
        metavar="IDS",
        help="With --node-id, of a state with static voters (kraft.version 0): all of them, as 1-3.",
        show_default=False,
    ),
]
_ClusterId = Annotated[
    str | None,
    typer.Option(
        "--cluster-id", metavar="ID|same", help="Default: a new one; `same`: the source's.", show_default=False
    ),
]
_Brokers = Annotated[
    str, typer.Option("--brokers", metavar="live|all|none", help="With --nodes: which brokers are played.")
]
_WithVote = Annotated[
    bool,
    typer.Option(
        "--with-vote",
        help="With the source's cluster id: vote from the first start on, though votes and records since may be "
        "forgotten. Refused while one of --controllers answers.",
    ),
]
_OldControllers = Annotated[
    str | None,
    typer.Option(
        "--controllers",
        metavar="HOST:PORT,...",
        help="With --with-vote: HTTP addresses of all controllers of the source's cluster.",
        show_default=False,
    ),
]
_BasePort = Annotated[int, typer.Option(min=1024, max=65_000, help="With --nodes: the first of its loopback ports.")]
_Insecure = Annotated[bool, typer.Option("--insecure", help="With --nodes: without TLS and permissions.")]


def restore(
    source: Source,
    target: Target,
    at: AtMoment = None,
    nodes: _Nodes = None,
    node_id: _NodeId = None,
    voters: _Voters = None,
    cluster_id: _ClusterId = None,
    with_vote: _WithVote = False,
    controllers: _OldControllers = None,
    secret_file: SecretFile = None,
    brokers: _Brokers = "live",
    base_port: _BasePort = 18_080,
    insecure: _Insecure = False,
    as_json: AsJson = False,
) -> None:
    """Make new directories that start from a state: for a fresh cluster, or to rehearse on.

    The state at --at becomes the newest checkpoint; nothing behind it is taken, and what was left out is said. The
    epoch is above every one in the source. A directory that is there already is never touched, and one that cannot be
    made whole is not made. The source is only read: a stopped controller's directory, or a copy.

    This is no way to take a running cluster back: its brokers and other controllers have seen what is left out. For
    that there is `quorate recover`.

    A node with the source's cluster id is for that cluster: it has no vote, as after `quorate recover rejoin`, and a
    head start; the state is then at most what the source knew to be committed.

    Examples:

      quorate snapshot restore --from var/controller-1 --at 2000 --nodes 3 --to rehearsal

      quorate up --dir rehearsal

      quorate snapshot restore --from backup/controller-1 --node-id 1 --to /srv/quorate/1
    """
    if (nodes is None) == (node_id is None):
        raise typer.BadParameter("say --nodes N, for a local cluster, or --node-id ID, for one node")
    if brokers not in _PLAYED:
        raise typer.BadParameter(f"{brokers!r}: {', '.join(_PLAYED)}", param_hint="--brokers")
    wanted = _wanted(source, at, cluster_id, _Insisted(controllers, secret_file) if with_vote else None)
    if nodes is not None:
        make = partial(restore_cluster, source, wanted.state, target, Ports.from_base(base_port))
        plan = make(nodes, brokers, wanted.voting_id, is_secured=not insecure)
        used_id, made = plan.cluster_id, _cluster_document(target, plan)
    else:
        node = _node(node_id or 0, voters, wanted)
        restore_node(wanted.state, target, node)
        used_id, made = node.cluster_id, [_made(node.node_id, uuid_text(node.directory_id), target)]
    _show(wanted, used_id, made, as_json=as_json)


class _Insisted(NamedTuple):
    """The options that go with --with-vote."""

    controllers: str | None
    secret_file: Path | None


class _Wanted(NamedTuple):
    """The cluster that is to be restored."""

    state: SourceState
    #: None: a new one.
    cluster_id: str | None
    has_vote: bool

    @property
    def voting_id(self) -> str | None:
        """The cluster id for all voters of a cluster.

        Raises:
            typer.BadParameter: they are to have no vote.
        """
        if not self.has_vote:
            raise typer.BadParameter(
                "all voters of a cluster that has its own already: say --with-vote if those are gone for good",
                param_hint="--cluster-id",
            )
        return self.cluster_id


def _wanted(source: Path, at: str | None, cluster_id: str | None, insisted: _Insisted | None) -> _Wanted:
    """Directories of the source's own cluster join it, unless somebody insists and none of its controllers answers."""
    state = loaded(source, at)
    wanted_id = _cluster_id(cluster_id, state)
    if wanted_id is None or state.cluster_id not in (None, wanted_id):
        return _Wanted(state, wanted_id, has_vote=True)
    if insisted is not None:
        _require_silence(insisted, wanted_id)
        return _Wanted(state, wanted_id, has_vote=True)
    return _Wanted(_committed(source, at, state), wanted_id, has_vote=False)


def _cluster_id(text: str | None, state: SourceState) -> str | None:
    if text != "same":
        try:
            return None if text is None else uuid_text(uuid_from_text(text))
        except InvalidId as error:
            raise typer.BadParameter(str(error), param_hint="--cluster-id") from None
    if state.cluster_id is None:
        raise typer.BadParameter("the source does not say to which cluster it belongs", param_hint="--cluster-id")
    return state.cluster_id


def _require_silence(insisted: _Insisted, cluster_id: str) -> None:
    """Nobody may be there who remembers what a restored voter has forgotten.

    Raises:
        typer.BadParameter: nobody can be asked. ClusterError: a controller answers.
    """
    urls = full_urls([part for part in (insisted.controllers or "").split(",") if part.strip()])
    if not urls:
        raise typer.BadParameter("whose vote may be forgotten? Name that cluster's controllers with --controllers")
    secret = find_secret(insisted.secret_file)
    tls = find_tls(urls, is_administrator=secret is None)
    for one in ask_each(urls, secret, tls, insecure=is_insecure()):
        if not one.is_silent and (one.quorum is None or one.cluster_id == cluster_id):
            raise ClusterError(
                f"{one.url} answers: while a controller of cluster {cluster_id} runs, no other is given a vote that it"
                " may have used; leave out --with-vote, and it joins"
            )


def _committed(source: Path, at: str | None, state: SourceState) -> SourceState:
    """The state, or the last one that the source knew to be committed: what is behind it the cluster may not have."""
    commit = known_commit(source)
    if commit is None or state.image.provenance.end_offset <= commit:
        return state
    if at is not None:
        raise ClusterError(
            f"{source} knew only what is before offset {commit} to be committed: the cluster may have lost what is"
            " after it; name a moment before it with --at"
        )
    return loaded(source, str(commit))


def _node(node_id: int, voters: str | None, wanted: _Wanted) -> RestoredNode:
    is_static = wanted.state.image.kraft.version == 0 and wanted.has_vote
    if is_static and voters is None:
        raise typer.BadParameter("this state has static voters: who are they?", param_hint="--voters")
    ids = tuple(broker_ids(voters or "", "--voters")) if is_static else ()
    if is_static and node_id not in ids:
        raise typer.BadParameter(f"node {node_id} is not among them", param_hint="--voters")
    return RestoredNode(node_id, wanted.cluster_id or new_id(), new_uuid(), ids, wanted.has_vote)


def _cluster_document(target: Path, plan: ClusterPlan) -> list[dict[str, Any]]:
    return [_made(one.id, one.directory_id, controller_directory(target, one)) for one in plan.controllers]


def _made(node_id: int, directory_id: str, directory: Path) -> dict[str, Any]:
    return {"id": node_id, "directory_id": directory_id, "directory": str(directory)}


def _show(wanted: _Wanted, cluster_id: str, made: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        document = {"cluster_id": cluster_id, "has_vote": wanted.has_vote, "nodes": made}
        sys.stdout.write(json.dumps(source_document(wanted.state) | document) + "\n")
        return
    sys.stdout.writelines(f"{line}\n" for line in _lines(wanted.state, cluster_id, made))
    if not wanted.has_vote:
        typer.echo("  it has no vote: started alongside the others, it joins them, and votes when it has caught up")


def _lines(state: SourceState, cluster_id: str, made: list[dict[str, Any]]) -> Iterator[str]:
    provenance = state.image.provenance
    when = format_time(provenance.log_time_ms)
    yield f"Restored the state at offset {provenance.end_offset} (epoch {provenance.epoch}, {when})."
    yield f"  cluster {cluster_id}, epochs from {state.next_epoch} on, digest {digest_image(state.image).text}"
    yield from (f"  {line}" for line in left_lines(state))
    for one in made:
        yield f"  node {one['id']}, directory id {one['directory_id']}: {one['directory']}"
