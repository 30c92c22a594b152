"""Three real voters with middle-boxes between them that forget connections: nobody is told, new ones pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, encode_quorum_state
from quorate.metadata_log.disk import RealDisk
from quorate.quorum.config import VoterAddress
from quorate.quorum.host import CommittedBatches, SnapshotReader
from quorate.quorum.runtime import QuorumRuntime
from quorate.quorum.storage.storage import NodeStorage
from quorate.scripts.cluster.ports import free_ports
from tests.default_parts import log_config, quorum_config
from tests.integration.forgetful_link import HOST, ForgetfulLink
from tests.waiting import eventually, within

#: Seconds in which those that can reach each other have a leader, whatever was forgotten.
LEADER_SECONDS = 3.0
#: And where only their leader vanished.
VANISHED_LEADER_SECONDS = 2.0
IDS = (1, 2, 3)


class Program:
    """Knows who leads."""

    leader: int | None = None

    def on_commit(self, batches: CommittedBatches) -> None:
        pass

    def on_snapshot(self, reader: SnapshotReader) -> None:
        raise AssertionError("no checkpoint is ever written here")

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        self.leader = leader_id


class Voters:
    """Three runtimes on one loop. The higher dials the lower, through a middle-box of their own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.links: dict[tuple[int, int], ForgetfulLink] = {}
        self.programs = {node: Program() for node in IDS}
        self.runtimes: dict[int, QuorumRuntime] = {}

    async def start(self) -> None:
        ports = dict(zip(IDS, free_ports(len(IDS)), strict=True))
        for node in IDS:
            shown = dict(ports)
            for lower in range(1, node):
                link = self.links[lower, node] = ForgetfulLink(ports[lower])
                shown[lower] = await link.start()
            voters = tuple(VoterAddress(other, HOST, shown[other], bytes([other]) * 16) for other in IDS)
            config = quorum_config("c", node, bytes([node]) * 16, voters)
            place = self._directory / str(node)
            place.mkdir()
            (place / QUORUM_STATE_NAME).write_bytes(encode_quorum_state(QuorumState(0)))
            storage = NodeStorage.open(RealDisk(), str(place), config, log_config())
            self.runtimes[node] = QuorumRuntime(config, storage, self.programs[node], self._die)
            await self.runtimes[node].start()

    async def led(self, among: tuple[int, ...] = IDS) -> int:
        """Wait until these know the same leader, one of them; its id."""

        async def look() -> int | None:
            leaders = {self.programs[node].leader for node in among}
            leader = leaders.pop()
            return leader if not leaders and leader in among else None

        leader = await eventually(look, f"{among} have a leader")
        assert leader is not None
        return leader

    def knows(self, node: int, peers: set[int]) -> Callable[[], Awaitable[bool]]:
        """A look at whether a node is connected with these, as it says itself."""

        async def look() -> bool:
            status = self.runtimes[node].node.status()
            return {peer.node_id for peer in status.peers if peer.is_connected} == peers

        return look

    async def stop(self) -> None:
        for runtime in self.runtimes.values():
            await runtime.stop()
        for link in self.links.values():
            await link.close()

    def _die(self, error: BaseException) -> None:
        raise AssertionError(error)


@pytest.fixture
async def voters(tmp_path: Path) -> AsyncIterator[Voters]:
    made = Voters(tmp_path)
    try:
        await made.start()
        yield made
    finally:
        await made.stop()


async def test_followers_whose_idle_link_was_forgotten_elect_a_leader_soon(voters: Voters) -> None:
    """Between elections they say nothing to each other, so a firewall forgets; that moment their leader ends."""
    leader = await voters.led()
    low, high = (node for node in IDS if node != leader)
    link = voters.links[low, high]
    stood = link.made
    link.swallow("out", "back")
    with within(LEADER_SECONDS, "those that are left have a leader"):
        await voters.runtimes[leader].stop()

        assert await voters.led((low, high)) in (low, high)

    assert link.made > stood


async def test_leader_that_vanished_is_replaced_soon_and_follows_when_it_is_back(voters: Voters) -> None:
    """Its host is silent: connections to it stay, and new ones are taken and say nothing."""
    leader = await voters.led()
    others = tuple(node for node in IDS if node != leader)
    vanished = [link for ends, link in voters.links.items() if leader in ends]
    for link in vanished:
        link.go_down()

    with within(VANISHED_LEADER_SECONDS, "those that are left have a leader"):
        await voters.led(others)

    await eventually(voters.knows(leader, set()), "it knows that it is alone")
    for link in vanished:
        link.come_up()
    with within(LEADER_SECONDS, "all have a leader"):
        await voters.led()


async def test_network_that_was_gone_is_used_as_soon_as_it_is_back(voters: Voters) -> None:
    """All connections are dead, whatever their kernels think, and all attempts of the meantime lead nowhere."""
    await voters.led()
    for link in voters.links.values():
        link.go_down()
    for node in IDS:
        await eventually(voters.knows(node, set()), f"{node} knows that it is alone")
    for link in voters.links.values():
        link.come_up()

    with within(LEADER_SECONDS, "all are connected and have a leader"):
        for node in IDS:
            await eventually(voters.knows(node, set(IDS) - {node}), f"{node} is connected")
        await voters.led()


async def test_status_of_a_swallowed_link_says_that_it_is_not_connected(voters: Voters) -> None:
    """Nothing is sent on it but pings, and no end is told."""
    leader = await voters.led()
    low, high = (node for node in IDS if node != leader)
    link = voters.links[low, high]
    link.go_down()

    with within(LEADER_SECONDS, "both know that the link is dead"):
        for node in (low, high):
            await eventually(voters.knows(node, {leader}), f"{node} knows that the link is dead")
    assert await voters.led() == leader
