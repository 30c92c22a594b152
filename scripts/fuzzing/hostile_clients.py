"""``scripts/hostile``: intruders at every port of a cluster with TLS and ACLs, while an honest client writes.

Nothing of what they try may be let in, the state at the end is what the honest client made and nothing else, on all
nodes alike, and no process ends.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Annotated, Final

import typer

from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.protocol.acls import AclFilter
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.private_files import read_secret
from quorate.scripts.benchmarks.programs.member_process import quorum_config
from quorate.scripts.benchmarks.workspace import temporary_directory
from quorate.scripts.certificates.authority import CertificateAuthority
from quorate.scripts.certificates.certificate_files import read_certificate_file, read_key_file
from quorate.scripts.certificates.holders import CA_KEY_NAME, CA_NAME
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME, SECRET_NAME, admin_tls, node_paths
from quorate.scripts.cluster.local import LocalCluster
from quorate.scripts.cluster.making import Ports, make_fresh
from quorate.scripts.cluster.members import socket_path
from quorate.scripts.cluster.ports import free_ports
from quorate.scripts.fuzzing.intruders import Attempt, Doors, Intruders, Overheard
from quorate.scripts.fuzzing.knocking import request
from quorate.scripts.fuzzing.replays import recorded, sealed_request, voter_hello
from quorate.scripts.terminal.command_line import run
from quorate.scripts.tour.digests import digests_at_one_offset
from quorate.scripts.tour.writes import WriteStream

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

_READY_S: Final = 60.0
#: Of the time, before the attack: what the honest client's writes take then is compared with.
_QUIET_SHARE: Final = 0.25
_PAUSE_S: Final = 0.01
_BROKERS: Final = 2
#: Ends of outcomes that are 2xx and yet let nobody in: what is asked is asked of each item, or a list of none.
_NOTHING_TOLD: Final = ("about items", ", empty")
#: Begins of outcomes without an answer that are yet a way in.
_OPENED: Final = ("kept", "let in")
#: With the attack the slowest hundredth of the writes may take so many times as long as without.
SLOWER_MAX: Final = 2.0


@dataclass(slots=True)
class Siege:
    """The account of one run."""

    #: By what was tried, and what came of it.
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    acknowledged: int = 0
    refused: int = 0
    #: 99th percentile of the time between two acknowledged writes, in milliseconds.
    quiet_p99_ms: float = 0.0
    p99_ms: float = 0.0
    findings: list[str] = field(default_factory=list)


@app.command()
def hostile(
    seconds: Annotated[float, typer.Option(min=2, help="How long it lasts, a quarter of it without an attack.")] = 20.0,
    seed: Annotated[int, typer.Option(help="Another seed, other ports, routes and bytes.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, max=64, help="Intruders at once.")] = 8,
    directory: Annotated[Path, typer.Option("--dir", help="What is made there is removed again.")] = Path("var"),
) -> None:
    """Let intruders at every port of a cluster with TLS and ACLs: nothing is let in, and honest writes go on.

    They have no, wrong, expired or foreign certificates, wrong tokens, forged seals, recorded seals and sessions, or
    too few rights; or they are another user of this machine, which takes root. Loopback only.

    scripts/hostile --seconds 300
    """
    with temporary_directory(directory) as place:
        siege = asyncio.run(besiege(place, seconds, seed, jobs))
    print(f"{'tried':36} {'times':>7}  what came of it")
    for tried in sorted({name for name, _ in siege.outcomes}):
        came = {what: times for (name, what), times in siege.outcomes.items() if name == tried}
        said = ", ".join(f"{what}: {times:,}" for what, times in sorted(came.items()))
        print(f"{tried:36} {sum(came.values()):>7,}  {said}")
    slower = siege.p99_ms / siege.quiet_p99_ms if siege.quiet_p99_ms else 0.0
    print(f"{siege.acknowledged:,} honest writes acknowledged, {siege.refused} refused")
    print(f"p99 between two {siege.quiet_p99_ms:.1f} ms before, {siege.p99_ms:.1f} ms meanwhile: {slower:.2f} times")
    if slower > SLOWER_MAX:
        siege.findings.append(f"honest writes are {slower:.2f} times slower, and {SLOWER_MAX:g} times is the most")
    for finding in siege.findings:
        print(f"WRONG: {finding}")
    sys.exit(1 if siege.findings else 0)


async def besiege(directory: Path, seconds: float, seed: int, jobs: int) -> Siege:
    """Start the cluster, let them at it, and stop. What is wrong with its state and processes is among the findings."""
    home = directory / "cluster"
    plan = make_fresh(home, Ports.of(free_ports(6 + _BROKERS)), 3, _BROKERS, is_secured=True)
    cluster, siege = LocalCluster(home, plan), Siege()
    doors = Doors(
        [one.quorum_port for one in plan.controllers],
        [one.http_port for one in plan.controllers],
        [one.http_port for one in plan.brokers],
        [socket_path(home.resolve(), one.id) for one in plan.controllers],
    )
    place = directory / "intruders"
    place.mkdir(mode=0o700)
    try:
        await cluster.start()
        await cluster.wait_for_controllers(_READY_S)
        await cluster.wait_for_brokers(_READY_S)
        known = await _overhear(cluster, home, doors)
        await _run(cluster, Intruders(doors, known, place, Random(seed)).attempts, seconds, jobs, siege)
        await _judge_brokers(cluster, known, siege)
        _judge_outcomes(siege)
    finally:
        await cluster.stop()
    return siege


async def _overhear(cluster: LocalCluster, home: Path, doors: Doors) -> Overheard:
    """Find out what intruders know: the brokers, and what nodes and the administrator have sent."""
    certificates = home / CERTIFICATES_NAME
    ca = CertificateAuthority.of(
        read_certificate_file(certificates / CA_NAME), read_key_file(certificates / CA_KEY_NAME)
    )
    first, *others = (one.id for one in cluster.plan.controllers)
    voter = TlsFiles(node_paths(home, f"controller-{first}"), is_server=True).as_peer_client()
    hello = voter_hello(quorum_config(cluster.plan, first))
    sessions = [
        (doors.quorum[1:], await recorded(doors.quorum[1], voter, hello)),
        (doors.controllers, await recorded(doors.controllers[0], admin_tls(home)(), request("GET", "/v1/status"))),
    ]
    sealed = partial(sealed_request, read_secret(home / SECRET_NAME), (first, *others))
    return Overheard(ca, (await cluster.client.describe_brokers()).brokers, sealed, sessions)


async def _run(cluster: LocalCluster, attempts: dict[str, Attempt], seconds: float, jobs: int, siege: Siege) -> None:
    stream, stop = WriteStream(cluster.client, "honest", pause_s=_PAUSE_S), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(stream.run(stop))
        await asyncio.sleep(seconds * _QUIET_SHARE)
        attacked_at = time.monotonic()
        ends_at = attacked_at + seconds * (1 - _QUIET_SHARE)
        turns = count()
        intruders = [group.create_task(_intrude(attempts, turns, ends_at, siege)) for _ in range(jobs)]
        await asyncio.wait(intruders)
        stop.set()
    siege.acknowledged, siege.refused = len(stream.acknowledged), stream.refused
    siege.quiet_p99_ms = _p99_ms([at for at in stream.times if at < attacked_at])
    siege.p99_ms = _p99_ms([at for at in stream.times if at >= attacked_at])
    await _judge(cluster, stream, siege)


async def _intrude(attempts: dict[str, Attempt], turns: Iterator[int], ends_at: float, siege: Siege) -> None:
    names = list(attempts)
    while time.monotonic() < ends_at:
        name = names[next(turns) % len(names)]
        try:
            outcome = await attempts[name]()
        except OSError:
            outcome = "closed"
        siege.outcomes[name, outcome] += 1


async def _judge(cluster: LocalCluster, stream: WriteStream, siege: Siege) -> None:
    """The state is what the honest client made, on every node."""
    try:
        cluster.check()
        names = await cluster.topic_names()
        known = set(stream.acknowledged)
        if missing := known - names:
            siege.findings.append(f"{len(missing)} acknowledged writes are gone")
        if strange := names - known - set(stream.unknown):
            siege.findings.append(f"{len(strange)} topics that no honest client made, such as {min(strange)!r}")
        access = cluster.client.access
        if (await access.describe_acls(AclFilter())).resources:
            siege.findings.append("there are ACLs that no honest client made")
        if (await access.describe_user_scram_credentials()).results:
            siege.findings.append("there are users whom no honest client made")
        _, digests = await digests_at_one_offset(cluster, _READY_S)
        if len(set(digests.values())) != 1:
            siege.findings.append(f"the nodes differ: {digests}")
    except QuorateError as error:  # of a process that has ended, too
        siege.findings.append(f"the cluster does not answer any more: {error}")


async def _judge_brokers(cluster: LocalCluster, known: Overheard, siege: Siege) -> None:
    """They are in the life in which they were found, and live."""
    try:
        status = await cluster.wait_for_brokers(_READY_S)
    except QuorateError as error:
        siege.findings.append(f"not all brokers are active: {error}")
        return
    lives = {one.id: (one.epoch, one.incarnation_id) for one in status.brokers}
    if lives != {one.id: (one.epoch, one.incarnation_id) for one in known.brokers}:
        siege.findings.append(f"the brokers are others, or in another life: {sorted(lives)}")


def _judge_outcomes(siege: Siege) -> None:
    for (tried, outcome), times in siege.outcomes.items():
        is_let_in = outcome.startswith("2") and not outcome.endswith(_NOTHING_TOLD)
        # Nodes of the cluster may read its digests and its feed.
        if is_let_in and tried != "route as a broker of another id":
            siege.findings.append(f"{tried}: {times} times {outcome}")
        if outcome == "500":
            siege.findings.append(f"{tried}: {times} times an error that nobody thought of")
        if outcome.startswith(_OPENED):
            siege.findings.append(f"{tried}: {times} times {outcome}")


def _p99_ms(times: list[float]) -> float:
    """Of the time between two moments (s), in milliseconds; 0: there are too few."""
    gaps = [(later - earlier) * 1000 for earlier, later in pairwise(times)]
    return quantiles(gaps, n=100)[-1] if len(gaps) > 1 else 0.0


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/hostile")
