"""The cluster a drill runs on: one made for it, one in a directory, running or not, or one named by its addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.client.client import ControllerClient
from quorate.scripts.certificates.local_files import admin_tls
from quorate.scripts.cluster.control import Act, LocalControl
from quorate.scripts.cluster.lending import LentCluster, RemoteControl
from quorate.scripts.cluster.local import LocalCluster, LocalOptions
from quorate.scripts.cluster.making import Ports, make_fresh, make_twin
from quorate.scripts.cluster.members import LocalNode, Members
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.cluster.watched import WatchedCluster
from quorate.scripts.drills.commands import CommandControl
from quorate.scripts.drills.drill import Drill, DrillKind
from quorate.scripts.drills.environment import DrillEnvironment

#: Drills look at what follows from a fault, not at the wait before it: brokers are quick to heartbeat.
_BROKER_SETTINGS: Final = {"LIFECYCLE__HEARTBEAT_INTERVAL_MS": "500"}
#: Why a drill may not be run on processes that serve others.
_REFUSED: Final[Mapping[DrillKind, str]] = {
    "rigs": "starts processes in a way of its own",
    "destroys": "changes or takes away controllers' files",
}


class NotHere(ClusterError):
    """A drill that may not be run on this cluster. One sentence that says why."""


@dataclass(frozen=True, slots=True)
class ForeignCluster:
    """A cluster that somebody else runs, and the commands by which its processes are ended and started."""

    urls: tuple[str, ...]
    commands: Mapping[Act, Sequence[str]] = field(default_factory=dict)
    #: With which it is asked; None: it speaks none.
    tls: TlsContexts | None = None


@dataclass(frozen=True, slots=True)
class GivenDirectory:
    """A directory of `quorate up`, running or not."""

    path: Path
    #: Whether somebody said that drills may change and take away the files of its controllers while it does not run.
    may_destroy: bool


#: None: a cluster made for the drill. A directory of `quorate up`. A cluster by its addresses.
On = GivenDirectory | ForeignCluster | None


async def prepare(drill: Drill, on: On, workplace: Path) -> DrillEnvironment:
    """The environment of a drill. Nothing has been started or changed, except that a cluster was made if there is none.

    Raises:
        NotHere: the drill may not be run there. ClusterError: there is no cluster. PortTaken: somebody else listens.
        ApiError: the named cluster does not answer.
    """
    if isinstance(on, ForeignCluster):
        return await _named(drill, on, workplace)
    if on is None:
        return _local(drill, workplace / "var", _made(drill, workplace / "var"), workplace)
    plan = ClusterPlan.load(on.path)
    if plan is None:
        raise ClusterError(f"{on.path} holds no cluster: make one with `quorate up --dir {on.path}`")
    if drill.source is not None:
        raise NotHere(f"{drill.name} imports a cluster of its own: run it without --on")
    _require_members(drill, plan.members, str(on.path))
    control = await RemoteControl.borrow(on.path)
    if control is None:
        if drill.kind == "destroys" and not on.may_destroy:
            raise NotHere(f"{drill.name} {_REFUSED['destroys']}: say --destroy if those in {on.path} may be")
        return _local(drill, on.path, plan, workplace)
    try:
        _require_harmless(drill, f"{on.path} runs; stop it first, or run the drill without --on")
    except NotHere:
        await control.end()
        raise
    tls = admin_tls(on.path) if plan.is_secured else None
    return DrillEnvironment(LentCluster(plan.members, control, tls), control, workplace)


def _made(drill: Drill, directory: Path) -> ClusterPlan:
    ports = Ports.of(free_ports(2 * drill.controllers + drill.brokers + 4))
    if drill.source is not None:
        return make_twin(directory, drill.source, ports, "all", is_secured=True)
    return make_fresh(directory, ports, drill.controllers, drill.brokers, is_secured=True)


def _local(drill: Drill, directory: Path, plan: ClusterPlan, workplace: Path) -> DrillEnvironment:
    cluster = LocalCluster(directory, plan, _options(drill, workplace))
    plan.require_ports()
    return DrillEnvironment(cluster, LocalControl(cluster), workplace)


def _options(drill: Drill, workplace: Path) -> LocalOptions:
    if drill.files:
        from quorate.scripts.certificates.certificate_files import write_whole  # slow to import

        write_whole(workplace, {name: content().encode() for name, content in drill.files.items()})
    own = {name: value.replace("{place}", str(workplace)) for name, value in drill.controller_settings.items()}
    settings = LocalOptions(own, {**_BROKER_SETTINGS, **drill.broker_settings})
    if not drill.is_faulty:
        return settings

    def faulty(node: int) -> tuple[str, ...]:
        return ("-m", "quorate.scripts.cli.clusters.faulty_controller", str(workplace / f"faults-{node}.json"))

    return LocalOptions(own, {**_BROKER_SETTINGS, **drill.broker_settings}, faulty)


async def _named(drill: Drill, on: ForeignCluster, workplace: Path) -> DrillEnvironment:
    _require_harmless(drill, "a cluster that is named by its addresses runs; run the drill without --on")
    members = await find_members(on.urls, on.tls)
    _require_members(drill, members, f"cluster {members.cluster_id}")
    return DrillEnvironment(WatchedCluster(members, tls=on.tls), CommandControl(on.commands, on.tls), workplace)


async def find_members(urls: Sequence[str], tls: TlsContexts | None = None) -> Members:
    """The members of a running cluster: its voters, and the brokers that are active."""
    async with ControllerClient(urls, tls=tls) as client:
        status = await client.status()
    controllers = {
        voter.node_id: LocalNode(
            "controller", voter.node_id, urlsplit(voter.http).hostname or "", voter.http, (voter.node_id,)
        )
        for voter in status.quorum.voters
    }
    brokers = {
        broker.id: LocalNode(
            "broker", broker.id, broker.listeners[0].host if broker.listeners else "", None, (broker.id,)
        )
        for broker in status.brokers
        if broker.state == "active"
    }
    return Members(status.cluster_id, controllers, brokers)


def _require_harmless(drill: Drill, because: str) -> None:
    """Processes that serve others may be killed and started; their files and the way they run are theirs."""
    if drill.kind in _REFUSED:
        raise NotHere(f"{drill.name} {_REFUSED[drill.kind]}, and {because}")


def _require_members(drill: Drill, members: Members, where: str) -> None:
    brokers = len(members.broker_ids)
    if len(members.controllers) < drill.controllers or brokers < drill.brokers:
        raise NotHere(
            f"{drill.name} needs {drill.controllers} controllers and {drill.brokers} brokers; {where} has"
            f" {len(members.controllers)} and {brokers}"
        )
