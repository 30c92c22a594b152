"""A disk that hangs: what waits for it is bounded, and a process that is told to end does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from quorate.metadata_log.batches.batch import build_batch, place_batch
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME, QuorumState, encode_quorum_state
from quorate.metadata_log.disk import RealDisk, drain
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum import runtime as module
from quorate.quorum.config import QuorumConfig, QuorumLimits, VoterAddress
from quorate.quorum.errors import DiskFailed
from quorate.quorum.host import CommittedBatches, SnapshotReader
from quorate.quorum.messages.messages import StaleEpoch
from quorate.quorum.messages.outbox import Outbox
from quorate.quorum.metrics import QuorumMetrics
from quorate.quorum.runtime import QuorumRuntime
from quorate.quorum.storage.disk_queue import DiskGroup, DiskQueue
from quorate.quorum.storage.disk_thread import DiskThread
from quorate.quorum.storage.fitness import Fitness
from quorate.quorum.storage.storage import NodeStorage
from quorate.scripts.simulation.machine.memory_disk import MemoryDisk
from tests.default_parts import log_config, quorum_config, quorum_limits
from tests.waiting import eventually

WAIT_S = 10.0


class Stuck:
    """A job that ends when it is told to."""

    def __init__(self) -> None:
        self.may_end = threading.Event()

    def run(self) -> Iterator[None]:
        assert self.may_end.wait(WAIT_S)
        yield


def test_thread_of_a_hanging_disk_is_not_waited_for_without_end() -> None:
    job, reports = Stuck(), list[Exception | None]()
    thread = DiskThread("hangs", lambda job, error: reports.append(error))
    thread.submit(job)

    assert not thread.close(0.01)
    job.may_end.set()
    assert thread.close(WAIT_S)
    assert reports == [None]


def test_bytes_that_wait_for_the_disk_are_counted_until_their_job_is_done() -> None:
    disk = MemoryDisk(Random(0))
    disk.put("log/partition.metadata", b"")
    log = MetadataLog.open(disk, "log", log_config())

    def append() -> int:
        batch = place_batch(build_batch(bytes(100), 1, 0), log.end_offset, 1)
        log.append(batch)
        return len(batch)

    size = append()
    assert log.unwritten_bytes == size
    job = log.flush_job()
    assert job is not None
    append()
    assert log.unwritten_bytes == 2 * size
    # What is cut off again stays in memory until the disk has seen it come and go.
    log.truncate_to(1)
    assert log.unwritten_bytes == 2 * size
    drain(job)
    log.job_done(job)
    assert log.unwritten_bytes == size
    job = log.flush_job()
    assert job is not None
    drain(job)
    log.job_done(job)
    assert log.unwritten_bytes == 0


class Votes:
    """A vote state that is not durable yet."""

    staged_generation = 1
    durable_generation = 0


def test_messages_that_wait_for_the_vote_are_bounded_and_the_last_ones_are_kept() -> None:
    sent: list[bytes] = []
    votes = Votes()
    outbox = Outbox(votes, lambda peer, channel, payload: sent.append(payload))  # type: ignore[arg-type]
    for epoch in range(5_000):
        outbox.put(2, StaleEpoch(epoch))
    outbox.flush()
    assert sent == []
    votes.durable_generation = 1
    outbox.flush()

    assert len(sent) == 1_000
    assert sent[-1] != sent[0]


class Program:
    """Nothing behind the quorum."""

    def on_commit(self, batches: CommittedBatches) -> None:
        pass

    def on_snapshot(self, reader: SnapshotReader) -> None:
        raise AssertionError("there is no checkpoint")

    def on_leader_change(self, leader_id: int | None, epoch: int) -> None:
        pass


async def test_stop_with_a_disk_that_hangs_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_QUIET_STOP", 0.01)
    monkeypatch.setattr(module, "_STOP_MAX", 0.05)
    (tmp_path / QUORUM_STATE_NAME).write_bytes(encode_quorum_state(QuorumState(0)))
    voter = VoterAddress(1, "127.0.0.1", 0, bytes(16))
    config = quorum_config("c", 1, voter.directory_id, (voter,))
    ends: list[BaseException] = []
    runtime = QuorumRuntime(
        config, NodeStorage.open(RealDisk(), str(tmp_path), config, log_config()), Program(), ends.append
    )
    await runtime.start()

    async def leads() -> bool:
        return runtime.node.is_leader and runtime.node.high_watermark > 0

    await eventually(leads, "the only voter leads", WAIT_S)
    job = Stuck()
    runtime._groups.submit(job)
    await runtime.stop()

    (end,) = ends
    assert isinstance(end, DiskFailed)
    assert "a write of the log did not end within 0.05 s of stopping" in str(end)
    assert "waiting for the disk to finish a write of the log" in caplog.text
    job.may_end.set()
    assert runtime._groups.close(WAIT_S)
    assert runtime._bulk.close(WAIT_S)
    runtime._storage.close()


def opened(limits: QuorumLimits) -> tuple[QuorumConfig, NodeStorage]:
    """The only voter, over an empty directory."""
    disk = MemoryDisk(Random(0))
    disk.put("log/partition.metadata", b"")
    voter = VoterAddress(1, "127.0.0.1", 0, bytes(16))
    config = quorum_config("c", 1, voter.directory_id, (voter,), limits=limits)
    return config, NodeStorage.open(disk, "log", config, log_config())


def append(log: MetadataLog) -> int:
    """A batch, not yet durable; its bytes."""
    batch = place_batch(build_batch(bytes(100), 1, 0), log.end_offset, 1)
    log.append(batch)
    return len(batch)


def handed_to(groups: list[DiskGroup]) -> Callable[[DiskGroup], bool]:
    """A disk thread that the test is."""

    def run_group(group: DiskGroup) -> bool:
        groups.append(group)
        return False

    return run_group


def test_leader_whose_own_write_took_too_long_gives_up_and_may_lead_after_the_next_one() -> None:
    """The loop itself waited for it: nobody could ask meanwhile, and the group is done when anybody can."""
    config, storage = opened(quorum_limits())
    took, clock = [config.timing.disk_timeout + 0.1, 0.001], [0.0]

    def run_group(group: DiskGroup) -> bool:
        drain(group)
        clock[0] += took.pop(0)
        return True

    queue = DiskQueue(storage.log, storage.votes, run_group, lambda: clock[0], QuorumMetrics())
    fitness = Fitness(config, storage.log, queue, lambda: 1 << 40)

    def write() -> None:
        append(storage.log)
        assert queue.kick()

    assert not fitness.must_resign(clock[0])
    write()
    assert fitness.must_resign(clock[0])
    assert "5.1 s for one write" in (fitness.hindrance or "")
    assert fitness.may_stand(clock[0])
    write()
    assert not fitness.must_resign(clock[0])


def test_node_does_not_stand_before_its_disk_has_answered() -> None:
    config, storage = opened(quorum_limits())
    groups: list[DiskGroup] = []
    queue = DiskQueue(storage.log, storage.votes, handed_to(groups), lambda: 0.0, QuorumMetrics())
    fitness = Fitness(config, storage.log, queue, lambda: 1 << 40)
    append(storage.log)
    queue.kick()

    assert fitness.may_stand(config.timing.disk_timeout)
    late = config.timing.disk_timeout + 0.1
    assert not fitness.may_stand(late)
    assert "has not answered for 5.1 s" in (fitness.hindrance or "")
    drain(groups[0])
    queue.done(groups[0])
    assert fitness.may_stand(late)
    assert fitness.hindrance is None


def test_node_over_its_bound_does_not_stand_and_takes_entries_again_once_half_of_it_is_free() -> None:
    size = len(place_batch(build_batch(bytes(100), 1, 0), 0, 1))
    config, storage = opened(quorum_limits(unwritten_bytes=3 * size))
    log, groups = storage.log, list[DiskGroup]()
    queue = DiskQueue(log, storage.votes, handed_to(groups), lambda: 0.0, QuorumMetrics())
    fitness = Fitness(config, log, queue, lambda: 1 << 40)

    def write() -> None:
        drain(groups[-1])
        queue.done(groups[-1])

    append(log)
    queue.kick()
    append(log)
    append(log)
    assert (fitness.is_full, fitness.may_stand(0.0)) == (True, False)
    assert f"{3 * size} bytes wait for its disk" in (fitness.hindrance or "")
    write()
    assert (fitness.is_full, fitness.is_relieved, fitness.may_stand(0.0)) == (False, False, True)
    queue.kick()
    append(log)
    write()
    assert fitness.is_relieved
