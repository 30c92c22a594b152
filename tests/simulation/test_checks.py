"""Each check of the simulated quorum, in a situation in which it must fail.

The cluster is a real one that runs quietly; what is told to the check, or done to the disks behind it, is false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import pytest

from quorate.metadata_log.batches.batch import BatchHeader, build_batch, parse_header, place_batch
from quorate.metadata_log.disk import OpenMode
from quorate.metadata_log.errors import NoRoom, StorageError
from quorate.metadata_log.segments.mark import MARK_NAME
from quorate.metadata_log.segments.segment_files import SegmentFiles, segment_base
from quorate.quorum.errors import DiskFailed, ProtocolError
from quorate.quorum.host import CommittedBatches
from quorate.quorum.node import QuorumNode
from quorate.scripts.simulation.quorum.checks import Violation
from quorate.scripts.simulation.quorum.host import DIRECTORY, SimulatedNode
from quorate.scripts.simulation.quorum.runner import run_seed
from quorate.scripts.simulation.quorum.stage import QUIET, QuorumStage
from quorate.scripts.simulation.quorum.state_machine import StateMachine

SEED: Final = 1


@pytest.fixture
def stage() -> QuorumStage:
    """Node 0 leads; some writes are acknowledged and applied everywhere."""
    stage = QuorumStage(SEED)
    stage.lead(0)
    for _ in range(3):
        stage.write_acknowledged(0)
    stage.pass_time(0.3)
    return stage


def violation_of(stage: QuorumStage, match: str) -> None:
    """What was told to the checks ends the run with the next event."""
    with pytest.raises(Violation, match=match):
        stage.pass_time(0.01)


def newest(stage: QuorumStage) -> tuple[int, BatchHeader]:
    """End and header of the newest acknowledged batch."""
    end, fact = max(stage.world.checks.acknowledged.items())
    time_ms = stage.world.checks.times[end]
    return end, BatchHeader(fact.base_offset, 0, fact.epoch, fact.crc, 0, time_ms, end - fact.base_offset)


def segment_of(node: SimulatedNode) -> str:
    paths = (path for path in node.disk.paths() if segment_base(path.rpartition("/")[2]) is not None)
    return next(reversed(list(paths)))


def without(node: SimulatedNode, is_gone: Callable[[BatchHeader], bool]) -> None:
    """Take batches out of the newest segment of a disk, as if they had never been written."""
    path = segment_of(node)
    data, kept, position = node.disk.content(path), b"", 0
    while position < len(data):
        header = parse_header(data, position)
        kept += b"" if is_gone(header) else data[position : position + header.size]
        position += header.size
    node.disk.put(path, kept)


# --- what is durable ---------------------------------------------------------------------------------


def test_acknowledged_write_that_no_disk_holds_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Production takes everything for durable that it has written; the disks know better."""

    def sync(self: SegmentFiles) -> Iterator[None]:
        self._is_dirty = False
        yield

    monkeypatch.setattr(SegmentFiles, "sync", sync)
    stage = QuorumStage(SEED)

    with pytest.raises(Violation, match=r"was acknowledged, durable only on \[\]"):
        _lead_and_write(stage)


def _lead_and_write(stage: QuorumStage) -> None:
    stage.lead(0)
    stage.write_acknowledged(0)


def test_acknowledged_write_that_only_a_minority_holds_is_found(stage: QuorumStage) -> None:
    """Of the disks of dead processes the same is demanded as of those that run."""
    end, fact = max(stage.world.checks.acknowledged.items())
    for index in (1, 2):
        stage.crash(index)
        without(stage.nodes[index], lambda header: header.end_offset == end)

    stage.world.checks._acknowledge(end, fact)

    violation_of(stage, rf"batch ending at {end} was acknowledged, durable only on \[3000\]")


def test_acknowledged_write_in_unsynced_bytes_does_not_count(stage: QuorumStage) -> None:
    """What lies in the page cache is not durable, nor is what has a name that no directory sync has kept."""
    node = stage.nodes[0]
    end, fact = max(stage.world.checks.acknowledged.items())
    assert node.durable.holds(end, fact)
    path = segment_of(node)

    node.disk.rename(path, f"{path}.gone")
    assert node.durable.holds(end, fact), "the old name is there as long as the directory is not synced"
    node.disk.sync_directory(DIRECTORY)

    assert not node.durable.holds(end, fact)


def test_acknowledged_write_with_other_bytes_does_not_count(stage: QuorumStage) -> None:
    node = stage.nodes[0]
    end, fact = max(stage.world.checks.acknowledged.items())
    path = segment_of(node)

    node.disk.flip_bit(path, len(node.disk.content(path)) - 3, 4)

    assert not node.durable.holds(end, fact)
    assert node.durable.holds(*max(list(stage.world.checks.acknowledged.items())[:-1]))


def test_acknowledged_write_below_a_whole_checkpoint_is_durable(stage: QuorumStage) -> None:
    """And one below a checkpoint whose footer is missing is not."""
    node = stage.nodes[1]
    end, fact = max(stage.world.checks.acknowledged.items())
    stage.world.take_checkpoint(node)
    stage.pass_time(0.3)
    without(node, lambda header: True)
    assert node.durable.holds(end, fact)

    path = next(path for path in node.disk.paths() if path.endswith(".checkpoint"))
    node.disk.put(path, node.disk.content(path)[:-1])

    assert not node.durable.holds(end, fact)


# --- the final logs ----------------------------------------------------------------------------------


def test_final_logs_without_what_was_acknowledged_are_found(stage: QuorumStage) -> None:
    """All are equal, and all lack the same."""
    end, fact = max(stage.world.checks.acknowledged.items())
    for node in stage.nodes:
        without(node, lambda header: header.end_offset == end)

    stage.world.checks.all_equal()

    violation_of(stage, rf"the disk of node 3000 has None up to {end}; acknowledged was .*crc={fact.crc}\)")


def test_final_logs_with_what_nobody_committed_are_found(stage: QuorumStage) -> None:
    end, fact = max(stage.world.checks.acknowledged.items())
    del stage.world.checks.acknowledged[end]
    del stage.world.checks.history[end]

    stage.world.checks.all_equal()

    violation_of(stage, rf"the disk of node 3000 has .*crc={fact.crc}\) up to {end}; committed was None")


def test_final_log_that_differs_is_found(stage: QuorumStage) -> None:
    end, _ = newest(stage)
    without(stage.nodes[1], lambda header: header.end_offset == end)

    stage.world.checks.all_equal()

    violation_of(stage, f"the disk of node 3001 has None up to {end}; acknowledged was")


def test_final_log_without_its_beginning_is_found(stage: QuorumStage) -> None:
    node = stage.nodes[2]
    path = segment_of(node)
    second = min(fact.base_offset for fact in stage.world.checks.acknowledged.values())
    without(node, lambda header: header.base_offset < second)
    node.disk.rename(path, f"{DIRECTORY}/{second:020d}.log")
    node.disk.sync_directory(DIRECTORY)

    stage.world.checks.all_equal()

    violation_of(stage, f"the log on the disk of node 3002 begins at {second}, with no checkpoint")


def test_final_checkpoint_that_nobody_committed_is_found(stage: QuorumStage) -> None:
    node = stage.nodes[2]
    assert node.machine is not None
    node.machine.applied_epoch += 7
    stage.world.take_checkpoint(node)
    node.disk.put(
        f"{DIRECTORY}/{newest(stage)[0]:020d}-{node.machine.applied_epoch:010d}.checkpoint",
        b"".join(node.machine.checkpoint_content()),
    )

    stage.world.checks.all_equal()

    violation_of(stage, "node 3002 has a checkpoint at .* that nobody committed")


def test_node_that_serves_what_its_disk_has_not_is_found(stage: QuorumStage) -> None:
    storage = stage.nodes[1].storage
    assert storage is not None
    other = place_batch(build_batch(b"never sent", 1, 0), storage.log.end_offset, storage.log.last_epoch)
    storage.log.append(other)

    stage.world.checks.all_equal()

    violation_of(stage, "node 3001 serves .*; its disk has None")


def test_handle_that_was_not_given_back_is_found(stage: QuorumStage) -> None:
    disk = stage.nodes[1].disk
    disk.open_file(f"{DIRECTORY}/{MARK_NAME}", OpenMode.READ)

    stage.world.checks.all_equal()

    violation_of(stage, f"node 3001 has 2 handles open on {DIRECTORY}/{MARK_NAME}")


def test_handle_on_a_file_that_is_gone_is_found(stage: QuorumStage) -> None:
    disk = stage.nodes[2].disk
    disk.open_file(f"{DIRECTORY}/gone", OpenMode.CREATE)
    disk.unlink(f"{DIRECTORY}/gone")

    stage.world.checks.all_equal()

    violation_of(stage, f"node 3002 has 1 handles open on {DIRECTORY}/gone")


# --- what nodes do -----------------------------------------------------------------------------------


def test_committed_batch_that_changes_is_found(stage: QuorumStage) -> None:
    end, header = newest(stage)

    stage.world.checks.applied(stage.nodes[1], header._replace(crc=header.crc ^ 1), b"")

    violation_of(stage, f"committed batch ending at {end} is")


def test_state_that_is_not_the_others_is_found(stage: QuorumStage) -> None:
    end, header = newest(stage)

    stage.world.checks.applied(stage.nodes[1], header, b"another digest")

    violation_of(stage, f"state at {end} on node 3001 is not the others'")


def test_loaded_state_that_is_not_the_others_is_found(stage: QuorumStage) -> None:
    end, header = newest(stage)

    stage.world.checks.loaded(stage.nodes[1], end, header.epoch, b"another digest")

    violation_of(stage, f"node 3001 loaded a state at {end} that is not the others'")


def test_second_leader_of_an_epoch_is_found(stage: QuorumStage) -> None:
    stage.world.checks.announced(stage.nodes[1], 3001, stage.epoch_of(0))

    violation_of(stage, f"nodes 3000 and 3001 lead epoch {stage.epoch_of(0)}")


def test_epoch_that_falls_is_found(stage: QuorumStage) -> None:
    stage.world.checks._epochs[3001] = stage.epoch_of(1) + 1

    stage.world.checks.after_event(stage.nodes[1])

    violation_of(stage, "the epoch of node 3001 fell to")


def test_read_that_misses_what_was_acknowledged_is_found(stage: QuorumStage) -> None:
    end = stage.world.checks.acknowledged_end

    stage.world.checks.read_confirmed(stage.nodes[0], end - 1, end)

    violation_of(stage, f"node 3000 confirmed a read at {end - 1}; {end} was acknowledged before")


def test_batch_that_is_handed_over_twice_is_found(stage: QuorumStage) -> None:
    node = stage.nodes[1]
    assert node.machine is not None
    assert node.node is not None
    journal = node.node._journal

    node.machine.on_commit(CommittedBatches(journal, journal.last_index, journal.last_index))

    violation_of(stage, r"node 3001 was handed offset .* was due")


def test_checkpoint_whose_manifest_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    content = StateMachine.checkpoint_content

    def another_state(self: StateMachine) -> list[bytes]:
        digest, self.digest = self.digest, b"another digest"
        try:
            return content(self)
        finally:
            self.digest = digest

    monkeypatch.setattr(StateMachine, "checkpoint_content", another_state)
    stage = QuorumStage(SEED)
    stage.lead(0)
    stage.write_acknowledged(0)
    stage.pass_time(0.2)
    stage.world.take_checkpoint(stage.nodes[1])
    stage.pass_time(0.2)
    stage.crash(1)
    stage.restart(1)

    violation_of(stage, "the manifest of checkpoint .* is not that of its content")


# --- what nodes report -------------------------------------------------------------------------------


def test_damage_that_nobody_did_is_found(stage: QuorumStage) -> None:
    node = stage.nodes[1]
    stage.crash(1)
    without(node, lambda header: header.base_offset == 0)

    stage.restart(1)

    violation_of(stage, "node 3001 found damage that nobody did")


def test_node_that_stops_by_itself_is_found(stage: QuorumStage) -> None:
    stage.world.fatal(stage.nodes[1], DiskFailed(OSError("nobody asked for it")))

    violation_of(stage, "node 3001 stopped: DiskFailed")


@pytest.mark.parametrize("error", [StorageError("no checkpoint"), NoRoom("no checkpoint")])
def test_checkpoint_that_cannot_be_written_is_found(stage: QuorumStage, error: StorageError) -> None:
    stage.world.checkpoint_taken(stage.nodes[0], error)

    violation_of(stage, "a checkpoint was not written: no checkpoint")


def test_message_that_a_peer_refuses_is_found(monkeypatch: pytest.MonkeyPatch, stage: QuorumStage) -> None:
    def receive(self: QuorumNode, peer: int, payload: bytes) -> None:
        raise ProtocolError("refused")

    monkeypatch.setattr(QuorumNode, "receive", receive)

    with pytest.raises(Violation, match=r"refuses what node .* sent: refused"):
        stage.pass_time(1.0)


def test_cluster_that_does_not_converge_is_found(stage: QuorumStage) -> None:
    stage.world.options = replace(QUIET, heal_seconds=2.0)
    stage.swallow = lambda source, target, message: target == 2

    with pytest.raises(Violation, match=r"no convergence 2.0 s after everything healed"):
        stage.world.converge()


def test_largest_batch_ever_appended_is_known_though_smaller_ones_followed(stage: QuorumStage) -> None:
    """The bounds of what is on its way count with it: it may have left the log since it was sent."""
    (node,) = stage.world.leaders()
    for filler in (b"small", bytes(5_000), b"small again"):
        stage.world.write(node, filler)
    stage.pass_time(0.3)

    assert node.storage is not None
    log = node.storage.log
    assert stage.world.largest_batch == max(log.entry(index).size for index in range(log.entry_count)) > 5_000


def test_what_a_check_finds_ends_a_random_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def restarted(self: object, owner: SimulatedNode) -> None:
        owner.world.violation("for a test")

    monkeypatch.setattr("quorate.scripts.simulation.quorum.checks.Checks.restarted", restarted)

    with pytest.raises(Violation, match="event 1: for a test"):
        run_seed(SEED)


def test_a_committed_batch_that_is_earlier_than_the_one_before_is_noticed(stage: QuorumStage) -> None:
    owner, end = stage.nodes[0], newest(stage)[0]

    stage.world.checks.applied(owner, BatchHeader(end, 62, stage.epoch_of(0), 1, 0, timestamp=1, record_count=1), b"")

    violation_of(stage, "is earlier than the one before it")
