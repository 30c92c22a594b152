"""A node without memory: what gives it its vote back, step by step, and what a leader asks for before it vouches."""

from __future__ import annotations

from random import Random

import pytest

from quorate.metadata_log.batches.batch import build_batch, place_batch
from quorate.metadata_log.disk import drain
from quorate.quorum.config import VoterAddress
from quorate.quorum.elections.membership import Membership
from quorate.quorum.replication.progress import Progress
from quorate.quorum.replication.vouching import Vouching
from quorate.quorum.storage.storage import NodeStorage
from quorate.quorum.versions import NEWEST_VERSION
from quorate.scripts.simulation.machine.memory_disk import MemoryDisk
from quorate.scripts.simulation.quorum.stage import QuorumStage
from tests.default_parts import log_config, quorum_config

LEADER = 2


class Wiped:
    """Node 1 over an empty directory."""

    def __init__(self) -> None:
        disk = MemoryDisk(Random(0))
        disk.put("log/partition.metadata", b"")
        voters = tuple(VoterAddress(node_id, "127.0.0.1", 0, bytes([node_id]) * 16) for node_id in (1, 2, 3))
        storage = NodeStorage.open(disk, "log", quorum_config("c", 1, voters[0].directory_id, voters), log_config())
        self.log, self.votes = storage.log, storage.votes
        self.membership = Membership(self.log, self.votes, self.votes.stage)

    def append(self, epoch: int) -> int:
        """A batch of one record that is not durable yet; the log's end."""
        self.log.append(place_batch(build_batch(bytes(100), 1, 0), self.log.end_offset, epoch))
        return self.log.end_offset

    def write(self) -> None:
        """All of the log that waits for the disk is durable."""
        job = self.log.flush_job()
        if job is not None:
            drain(job)
            self.log.job_done(job)

    def is_being_restored(self, epoch: int) -> bool:
        """Whether the node, in this epoch, has begun to write the file that gives it its vote back."""
        self.membership.check(epoch)
        return self.votes.has_file


def test_vote_comes_back_once_the_goal_and_then_the_right_are_durable() -> None:
    node = Wiped()
    end = node.append(epoch=5)
    node.membership.leader_reported(5, LEADER, end, is_vouched=True)
    assert not node.is_being_restored(5), "the goal is not durable"
    node.write()
    assert node.is_being_restored(5)
    assert (node.votes.epoch, node.votes.voted_id) == (5, LEADER), "it votes above this epoch only"
    node.membership.check(5)
    assert not node.membership.is_voter, "the right is not durable"
    job = node.votes.make_job()
    assert job is not None
    drain(job)
    node.votes.job_done(job)
    node.membership.check(5)
    assert node.membership.is_voter


@pytest.mark.parametrize(
    ("epoch", "end", "is_vouched", "now_in"),
    [(5, 2, False, 5), (5, 1, True, 5), (5, 3, True, 5), (5, 2, True, 6)],
    ids=["nobody-vouches", "commit-point-of-an-earlier-epoch", "beyond-the-own-log", "epoch-is-over"],
)
def test_report_that_restores_nobody(epoch: int, end: int, is_vouched: bool, now_in: int) -> None:
    node = Wiped()
    assert (node.append(epoch=4), node.append(epoch=5)) == (1, 2)
    node.write()

    node.membership.leader_reported(epoch, LEADER, end, is_vouched=is_vouched)

    assert not node.is_being_restored(now_in)


@pytest.mark.parametrize(
    ("answered", "majority_echoed", "holds"), [(5, 5, True), (4, 5, False), (5, 4, False)], ids=repr
)
def test_leader_vouches_once_all_others_and_a_majority_answered_since_the_last_loss(
    answered: int, majority_echoed: int, holds: bool
) -> None:
    vouching = Vouching()
    progress = {1: Progress(1), 3: Progress(1, answered_round=answered), 4: Progress(1, answered_round=9)}
    vouching.joined(5)

    assert vouching.holds(1, progress, majority_echoed) is holds
    assert vouching.awaited(1, progress) == ((3,) if answered < 5 else ())


def test_leader_of_a_new_epoch_waits_for_its_own_rounds_only() -> None:
    vouching = Vouching()
    vouching.joined(5)

    vouching.begin_epoch()

    assert vouching.holds(1, {1: Progress(1), 3: Progress(1, answered_round=1)}, 1)


def test_voter_that_returns_with_another_directory_has_acknowledged_nothing() -> None:
    """Another leader may have restored its vote meanwhile: what it told this one it may have forgotten."""
    stage = QuorumStage(1)
    leader = stage.lead(0).node
    end = stage.write_acknowledged(0)
    assert leader is not None
    stage.wait("its acknowledgement", lambda: leader.status().peers[0].acknowledged_end == end)

    leader.connected(leader.status().peers[0].node_id, b"another one's id", is_voter=True, version=NEWEST_VERSION)

    assert leader.status().peers[0].acknowledged_end == 0


def test_of_a_voter_that_has_not_answered_in_this_epoch_no_log_is_known() -> None:
    stage = QuorumStage(1)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.crash(2)
    stage.crash(0)
    stage.restart(0)
    leader = stage.lead(0).node
    assert leader is not None
    end = stage.write_acknowledged(0)

    stage.wait("its acknowledgement", lambda: end in [one.acknowledged_end for one in leader.status().peers])
    assert [one.acknowledged_end for one in leader.status().peers] == [end, None]
