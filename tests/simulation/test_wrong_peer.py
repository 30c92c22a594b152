"""One peer of three says anything that has the form of a message: the others keep every promise, and go on."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from quorate.quorum.versions import NEWEST_VERSION
from quorate.scripts.simulation.quorum.stage import QuorumStage
from tests.simulation.wrong_peer import WrongPeer

MESSAGES = 1_500
#: Between two messages: several in a turn, and an election now and then.
PAUSES_S = (0.0, 0.0, 0.0, 0.001, 0.02, 0.3)


def beside_a_wrong_peer(seed: int, monkeypatch: pytest.MonkeyPatch) -> WrongPeer:
    """Nodes 0 and 1 lead, follow, write and take checkpoints while node 2's process is another's."""
    stage, rng = QuorumStage(seed), Random(seed)
    leader, follower, wrong = stage.nodes
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.crash(2)
    announced = stage.world.checks.announced

    def heard_of(owner: Any, leader_id: int | None, epoch: int) -> None:
        """That a node believes somebody who says that it leads is no promise of anybody else's."""
        if leader_id != wrong.node_id:
            announced(owner, leader_id, epoch)

    violation = stage.world.violation

    def refused(message: str) -> None:
        """A false claim that is heard before the true one costs the epoch: the true leader's is refused like one."""
        if f", which node {wrong.node_id} leads: " in message:
            stage.world.network.break_connection(leader.node_id, follower.node_id)
        else:
            violation(message)

    monkeypatch.setattr(stage.world.checks, "announced", heard_of)
    monkeypatch.setattr(stage.world, "violation", refused)
    peer = WrongPeer(rng, wrong)
    for node in (leader, follower):
        node.call(lambda node: node.connected(wrong.node_id, wrong.directory_id, is_voter=True, version=NEWEST_VERSION))
    for count in range(MESSAGES):
        peer.speak_to(rng.choice((leader, follower)))
        stage.pass_time(rng.choice(PAUSES_S) if count % 3 == 0 else 0.0)
        if rng.random() < 0.1:
            stage.world.write()
    for node in (leader, follower):
        node.call(lambda node: node.disconnected(wrong.node_id))
    before = len(stage.world.checks.acknowledged)

    def is_written() -> bool:
        stage.world.write()
        return len(stage.world.checks.acknowledged) > before + 3

    stage.wait("writes of the two that are left", is_written)
    assert max(stage.epoch_of(0), stage.epoch_of(1)) < 1_100_000, "a peer cannot use the epochs up"
    stage.restart(2)
    stage.finish()
    return peer


@pytest.mark.parametrize("seed", range(4))
def test_wrong_peer_ends_nothing_but_its_connection(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = beside_a_wrong_peer(seed, monkeypatch)

    assert peer.refused > MESSAGES / 10
    assert peer.taken > MESSAGES / 10
