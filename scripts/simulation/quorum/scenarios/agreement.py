"""Named scenarios of agreement itself: votes, entries and acknowledgements that are lost, late or of an older epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from quorate.quorum.messages.messages import Append, AppendReply, Message, StaleEpoch, VoteReply
from quorate.quorum.messages.wire import decode, encode
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from quorate.scripts.simulation.quorum.host import DIRECTORY
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage


def figure_8(seed: int) -> None:
    """An entry of an earlier epoch on a majority is not committed by counting alone (Raft paper, figure 8)."""
    stage = QuorumStage(seed, voters=5, options=replace(QUIET, append_bytes=1))
    stage.lead(0)
    stage.cut((0, 1), (2, 3, 4))
    old = stage.write(0)
    stage.wait("both to have it", lambda: stage.end_of(1) == old and _is_durable(stage, 0) and _is_durable(stage, 1))
    epoch = stage.epoch_of(0)
    stage.crash(0)
    stage.cut((4, 3, 2), (1,))
    stage.swallow = lambda source, target, message: isinstance(message, Append)
    stage.stand(4)
    stage.wait("node 4 to lead", lambda: stage.leads(4))
    stage.wait("its first entry to be durable", lambda: stage.nodes[4].node is not None and _is_durable(stage, 4))
    stage.crash(4)
    # Node 0 leads again and brings its old entry to node 2, but nothing of its own epoch.
    stage.restart(0)
    stage.mend()
    probed: set[int] = set()

    def swallow_own_entries(source: int, target: int, message: Message) -> bool:
        """Let the first probe through, so that the leader learns where the follower's log ends."""
        if not isinstance(message, Append) or not _is_of_own_epoch(message):
            return False
        is_first = target not in probed
        probed.add(target)
        return not is_first

    stage.swallow = swallow_own_entries
    stage.wait("connections", lambda: len(stage.nodes[0]._connections) == 3)
    while not stage.leads(0):
        stage.stand(0)
        stage.pass_time(0.01)
    stage.wait("node 2 to have the old entry", lambda: stage.end_of(2) >= old)
    stage.suppose(stage.epoch_of(0) > epoch, "node 0 leads a later epoch")
    stage.pass_time(0.3)
    stage.claim(old not in stage.world.checks.history, "an entry of an older epoch was committed by counting copies")
    stage.crash(0)
    # Node 4, whose log has the higher epoch, may still win and overwrite it.
    stage.restart(4)
    stage.swallow = lambda source, target, message: False
    stage.finish()


def _is_of_own_epoch(message: Append) -> bool:
    return bool(message.batches) and int.from_bytes(message.batches[12:16], "big") == message.epoch


def _is_durable(stage: QuorumStage, index: int) -> bool:
    storage = stage.nodes[index].storage
    return storage is not None and storage.log.durable_end == storage.log.end_offset


def follower_one_epoch_ahead(seed: int) -> None:
    """A follower that stood for election while cut off is one epoch ahead: it must follow again."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.cut((0, 1), (2,))
    node = stage.nodes[2].node
    assert node is not None
    # It had won a Pre-Vote, and its vote requests were lost with the link.
    node._core.adopt_epoch(node.epoch + 1)
    stage.pass_time(0.3)
    stage.write_acknowledged(0)
    stage.mend()
    stage.finish()


def late_acknowledgement(seed: int) -> None:
    """An acknowledgement of an old epoch arrives when its sender no longer has what it acknowledged."""
    stage = QuorumStage(seed, voters=5)
    stage.lead(0)
    kept: list[AppendReply] = []

    def keep(source: int, target: int, message: Message) -> bool:
        if (source, target) == (1, 0) and isinstance(message, AppendReply):
            kept.append(message)
            return True
        return False

    stage.swallow = keep
    stage.cut((0, 1), (2, 3, 4))
    for _ in range(10):
        high = stage.write(0)
    stage.wait("the acknowledgement", lambda: bool(kept) and kept[-1].acked_end == high)
    late = kept[-1]
    stage.swallow = lambda source, target, message: False
    stage.stand(2)
    # Committed there before the others are heard again: else the longer log of nodes 0 and 1 may rightly win.
    stage.wait("node 2 to lead", lambda: stage.nodes[2] in stage.world.leaders())
    stage.write_acknowledged(2)
    stage.mend()
    stage.lead(2)
    stage.lead(0)
    storage = stage.nodes[1].storage
    assert storage is not None
    stage.suppose(not storage.log.holds(late.acked_end, late.epoch), "node 1 lost what it had acknowledged")
    # Now node 0 leads a later epoch; only node 3 hears it.
    stage.cut((0, 3), (1, 2, 4))
    while stage.end_of(0) < late.acked_end:
        stage.write(0)
    leader = stage.nodes[0].node
    assert leader is not None
    at_boundary = replace(late, matched_end=stage.end_of(0), acked_end=stage.end_of(0))
    for message in (late, at_boundary):
        if leader._journal.index_of_end(message.acked_end) is not None:
            stage.nodes[0].call(lambda node, message=message: node.receive(stage.nodes[1].node_id, encode(message)))  # type: ignore[misc]
    stage.pass_time(0.2)
    stage.finish()


def frozen_leader_read(seed: int) -> None:
    """A leader is frozen with acknowledgements in its socket, deposed, and wakes up to a read."""
    stage = QuorumStage(seed)
    leader = stage.lead(0)
    stage.write_acknowledged(0)
    stage.pass_time(0.11)
    leader.freeze()
    stage.pass_time(0.01)
    waiting = [decode(item[2][2]) for item in leader._deferred if len(item[2]) == 3 and isinstance(item[2][2], bytes)]
    replies = [message for message in waiting if isinstance(message, AppendReply)]
    for _ in (1, 2):
        # What the followers would have answered to the last pass before the freeze.
        node = leader.node
        assert node is not None
        end = stage.end_of(0)
        replies.append(AppendReply(node.epoch, node._replication.round, end, end, is_voter=True))
    stage.cut((0,), (1, 2))
    stage.stand(1)
    stage.wait("node 1 to lead", lambda: stage.world.leaders() == [stage.nodes[1]])
    stage.write_acknowledged(1)
    confirmed = stage.world.confirmed_reads
    leader._deferred = []
    leader.thaw()
    leader.request_pump()
    stage.world.read(leader)
    stage.pass_time(0.001)
    for index, reply in enumerate(replies):
        peer_id = stage.nodes[1 + index % 2].node_id
        leader.call(lambda node, reply=reply, peer_id=peer_id: node.receive(peer_id, encode(reply)))  # type: ignore[misc]
    stage.pass_time(0.2)
    stage.claim(stage.world.confirmed_reads == confirmed, "a deposed leader confirmed a read")
    stage.finish()


def wiped_voter(seed: int) -> None:
    """A voter is wiped and restarts at once; the other follower is behind; the leader dies."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.cut((0, 1), (2,))
    stage.write_acknowledged(0)
    stage.world.wipe(stage.nodes[1])
    stage.crash(0)
    stage.restart(1)
    stage.mend()
    stage.pass_time(6.0)
    stage.claim(not stage.leads(1) and not stage.leads(2), "a node leads on the vote of a voter without memory")
    stage.restart(0)
    stage.finish()


def wiped_voter_and_deposed_leader(seed: int) -> None:
    """A wiped voter meets a leader that was deposed and does not know it: that leader must not make it a voter."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.cut((0,), (1, 2))
    stage.stand(1)
    stage.wait("node 1 to lead", lambda: stage.world.leaders()[-1:] == [stage.nodes[1]])
    stage.write_acknowledged(1)
    stage.world.wipe(stage.nodes[2])
    stage.cut((0, 2), (1,))
    stage.restart(2)
    stage.suppose(stage.leads(0), "node 0 still believes that it leads")
    stage.wait("node 2 to hear node 0", lambda: stage.nodes[2].node is not None and stage.end_of(2) == stage.end_of(0))
    for _ in range(3):
        if stage.leads(0):
            stage.world.write(stage.nodes[0])
        stage.pass_time(0.1)
    stage.finish()


def flipped_bit(seed: int) -> None:
    """A bit flips in the acknowledged tail of a follower's log: it must not vote until it has recovered."""
    stage = QuorumStage(seed)
    stage.world.is_damage_expected = True
    stage.lead(0)
    stage.cut((0, 1), (2,))
    stage.write_acknowledged(0)
    stage.pass_time(0.2)
    stage.crash(1)
    disk = stage.nodes[1].disk
    path = next(path for path in reversed(disk.paths()) if path.startswith(DIRECTORY) and path.endswith(".log"))
    disk.flip_bit(path, len(disk.content(path)) - 3, 4)
    stage.crash(0)
    stage.restart(1)
    stage.mend()
    storage = stage.nodes[1].storage
    assert storage is not None
    stage.claim(bool(storage.damage), "the flipped bit was not noticed")
    stage.pass_time(6.0)
    stage.claim(not stage.leads(1) and not stage.leads(2), "a node leads on the vote of a voter with a damaged log")
    stage.restart(0)
    stage.finish()


def checkpoint_over_diverging_log(seed: int) -> None:
    """An ex-leader with a tail of its own is so far behind that only a checkpoint helps."""
    stage = QuorumStage(seed, options=replace(QUIET, retention_bytes=0, chunk_bytes=64, segment_bytes=500))
    stage.lead(0)
    stage.cut((0,), (1, 2))
    for _ in range(5):
        stage.write(0)
    stage.stand(1)
    stage.wait("node 1 to lead", lambda: stage.world.leaders()[-1:] == [stage.nodes[1]])
    for _ in range(25):
        stage.write_acknowledged(1)
    for _ in range(2):
        stage.write_acknowledged(1)
        for index in (1, 2):
            stage.world.take_checkpoint(stage.nodes[index])
        stage.pass_time(0.3)
    node = stage.nodes[1].node
    assert node is not None
    stage.suppose(node.status().log_start_offset > stage.end_of(0), "the new leader's log begins behind it")
    before = stage.world.checkpoints_installed
    stage.mend()
    stage.finish()
    stage.suppose(stage.world.checkpoints_installed > before, "the ex-leader was brought back by a checkpoint")


def both_followers_lose_the_leader(seed: int) -> None:
    """The leader dies and both followers notice in the same millisecond: the next commit takes well under a timeout."""
    stage = QuorumStage(seed)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.pass_time(0.05)
    died = stage.world.scheduler.now
    stage.crash(0)
    stage.wait("a new leader", lambda: any(node is not stage.nodes[0] for node in stage.world.leaders()))
    stage.write_acknowledged(stage.nodes.index(stage.world.leaders()[0]))
    took = stage.world.scheduler.now - died
    stage.claim(took < 0.25, f"the next commit took {took:.3f} s")
    stage.restart(0)
    stage.finish()


def forgotten_vote(seed: int) -> None:
    """A voter loses power at the moment its vote is heard: it must remember it."""
    stage = QuorumStage(seed, options=replace(QUIET, crash_policy=CrashPolicy.NOTHING))
    stage.lead(0)
    stage.crash(0)
    stage.cut((1, 2), (0,))
    stage.pass_time(0.0)
    stage.restart(0)
    # Nodes 0 and 2 will both stand in the same epoch; node 1 has the vote that decides.
    stage.cut((0, 1), (2,))
    stage.wait("connections", lambda: bool(stage.nodes[0]._connections) or stage.world.scheduler.now > 5)
    stage.mend()
    stage.lead(0)
    stage.cut((0,), (1,), (2,))
    epoch = stage.epoch_of(1)
    stage.nodes[1].disk_slowness = 40.0
    voted = False

    def power_cut_after_vote(source: int, target: int, message: Message) -> bool:
        nonlocal voted
        if source == 1 and isinstance(message, VoteReply) and message.is_granted:
            voted = True
        return not isinstance(message, VoteReply) and source == 0 and target == 2

    stage.swallow = power_cut_after_vote
    stage.world.network.cut.clear()
    leader = stage.nodes[0].node
    assert leader is not None
    leader.resign(epoch)
    stage.cut((0, 1), (2,))
    stage.stand(0)
    stage.wait("the vote of node 1", lambda: voted)
    stage.pass_time(0.002)
    stage.crash(1, is_power_cut=True)
    stage.nodes[1].disk_slowness = 1.0
    stage.restart(1)
    stage.cut((0,), (1, 2))
    stage.wait("node 1 and 2 to meet", lambda: stage.nodes[2].node_id in stage.nodes[1]._connections)
    stage.stand(2)
    stage.pass_time(3.0)
    stage.finish()


def commit_beyond_the_match(seed: int) -> None:
    """An ex-leader's own tail lies below the new leader's commit point while only part of its log is known to match."""
    stage = QuorumStage(seed, options=replace(QUIET, append_bytes=1))
    stage.lead(0)
    stage.swallow = lambda source, target, message: target == 0 and isinstance(message, AppendReply)
    for _ in range(3):
        high = stage.write(0)
    stage.wait("the others to have them", lambda: stage.end_of(1) == high and stage.end_of(2) == high)
    stage.cut((0,), (1, 2))
    for _ in range(6):
        stage.write(0)
    stage.stand(1)
    stage.wait("node 1 to lead", lambda: stage.world.leaders()[-1:] == [stage.nodes[1]])
    stage.write_acknowledged(1)
    stage.stand(2)
    stage.wait("node 2 to lead", lambda: stage.world.leaders()[-1:] == [stage.nodes[2]])
    for _ in range(8):
        stage.write_acknowledged(2)
    stage.swallow = lambda source, target, message: False
    stage.mend()
    stage.finish()


def lost_stale_answers(seed: int) -> None:
    """The first answers to a deposed leader are lost: it must still learn the epoch from later ones."""
    stage = QuorumStage(seed)
    stage.lead(0)
    lost = 0

    def lose(source: int, target: int, message: Message) -> bool:
        nonlocal lost
        lost += isinstance(message, StaleEpoch)
        return isinstance(message, StaleEpoch) and lost < 5

    stage.swallow = lose
    node = stage.nodes[2].node
    assert node is not None
    node._core.adopt_epoch(node.epoch + 1)
    stage.finish()


AGREEMENT_SCENARIOS: Final[dict[str, Callable[[int], None]]] = {
    "figure-8": figure_8,
    "follower-one-epoch-ahead": follower_one_epoch_ahead,
    "late-acknowledgement": late_acknowledgement,
    "frozen-leader-read": frozen_leader_read,
    "wiped-voter": wiped_voter,
    "wiped-voter-and-deposed-leader": wiped_voter_and_deposed_leader,
    "flipped-bit": flipped_bit,
    "checkpoint-over-diverging-log": checkpoint_over_diverging_log,
    "both-followers-lose-the-leader": both_followers_lose_the_leader,
    "forgotten-vote": forgotten_vote,
    "commit-beyond-the-match": commit_beyond_the_match,
    "lost-stale-answers": lost_stale_answers,
}
