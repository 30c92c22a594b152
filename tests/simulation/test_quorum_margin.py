"""May these controllers be stopped? The answer is what happens: they are stopped in the simulated quorum.

A thousand quorums: `scripts/test --hypothesis-profile=long tests/simulation/test_quorum_margin.py`.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings

from quorate.controller.answers.quorum_margin import quorum_without, reasons_against
from quorate.controller.api.resources import QuorumReply
from quorate.controller.http.handlers.views import quorum_reply
from quorate.controller.http.ports import Peer, QuorumView
from quorate.controller.process.served_cluster import voters_seen
from quorate.scripts.simulation.quorum.stage import QuorumStage
from quorate.snapshots.image.image import EMPTY_IMAGE

SEEDS = range(1_000 if settings.get_current_profile_name() == "long" else 40)
#: Virtual seconds: some elections.
PATIENCE_S = 12.0


def seen_by_leader(stage: QuorumStage, leader: int) -> QuorumReply:
    """As its HTTP API would tell it."""
    node = stage.nodes[leader].node
    assert node is not None
    status = node.status()
    view = QuorumView(
        leader_id=status.leader_id,
        epoch=status.epoch,
        high_watermark=status.high_watermark,
        log_start_offset=status.log_start_offset,
        log_end_offset=status.log_end_offset,
        durable_end=status.durable_end,
        is_voting=status.is_voter,
        voters=voters_seen(status, lambda _: None),
        voted_id=None,
        log_end_epoch=status.epoch,
    )
    peers = {one.node_id: Peer(one.node_id, "") for one in stage.nodes}
    return quorum_reply(EMPTY_IMAGE, node.node_id, view, peers, status.high_watermark)


def commits(stage: QuorumStage) -> bool:
    """Whether somebody takes a write, and it is acknowledged."""
    written: set[int] = set()

    def is_acknowledged() -> bool:
        if not any(end in stage.world.checks.acknowledged for end in written):
            end = stage.world.write() if stage.world.leaders() and len(written) < 50 else None
            written.update(() if end is None else (end,))
            return False
        return True

    return stage.world.run_until(is_acknowledged, PATIENCE_S)


@pytest.mark.parametrize("seed", SEEDS)
def test_answer_whether_controllers_may_be_stopped_is_what_happens_when_they_are(seed: int) -> None:
    """Of three or five voters some are down, and one may have lost its memory: some are stopped.

    What has lost its memory has no vote again as long as one of the others is down.
    """
    chance = Random(seed)
    voters = chance.choice((3, 5))
    stage = QuorumStage(seed, voters)
    leader = chance.randrange(voters)
    stage.lead(leader)
    stage.write_acknowledged(leader)
    others = [index for index in range(voters) if index != leader]
    down = chance.sample(others, chance.randint(0, voters // 2))
    for index in down:
        stage.crash(index, is_power_cut=chance.random() < 0.5)
    alive = [index for index in others if index not in down]
    if len(down) < voters // 2 and chance.random() < 0.5:
        without_memory = chance.choice(alive)
        stage.world.wipe(stage.nodes[without_memory])
        stage.restart(without_memory)
    stage.pass_time(3.0)
    assert stage.leads(leader), "a majority is left"
    stopping = chance.sample(range(voters), chance.randint(1, voters - 1))

    quorum, ids = seen_by_leader(stage, leader), [stage.nodes[index].node_id for index in stopping]
    margin = quorum_without(quorum, ids)
    reasons = reasons_against(quorum, ids, margin)
    assert margin.moves_leadership == (leader in stopping)
    without_vote = sum(voter.role == "non-voter" for voter in quorum.voters)
    assert margin.may_fail_now == voters - len(down) - without_vote - (voters // 2 + 1)
    for index in {*stopping} - {*down}:
        stage.crash(index)

    assert commits(stage) == (not reasons)
