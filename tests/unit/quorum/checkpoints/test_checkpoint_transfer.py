"""Both sides of a checkpoint's transfer, on disks in memory, with what they say to each other carried by hand."""

from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest
from crc32c import crc32c

from quorate.metadata_log.checkpoints.checkpoint_files import (
    CheckpointId,
    checkpoint_name,
    manifest_name,
    survey_checkpoints,
)
from quorate.metadata_log.checkpoints.checkpoint_manifest import CheckpointManifest
from quorate.metadata_log.checkpoints.checkpoints import CheckpointContent, CheckpointStore
from quorate.metadata_log.checkpoints.retention import RetentionConfig
from quorate.metadata_log.errors import StorageError
from quorate.quorum.checkpoints.own_checkpoints import OwnCheckpoints
from quorate.quorum.checkpoints.receiving import CheckpointReceiver
from quorate.quorum.checkpoints.sending import CheckpointSender
from quorate.quorum.messages.messages import CheckpointOffer, ChunkMessage, ChunkRequest, Message
from quorate.quorum.messages.outbox import Channel
from quorate.scripts.simulation.machine.memory_disk import MemoryDisk
from tests.log_support import DIRECTORY, checkpoint_bytes, finish

LEADER: Final = 1
FOLLOWER: Final = 2
EPOCH: Final = 1
CHUNK: Final = 64
ID = CheckpointId(100, 3)


class Sent:
    """An outbox: what was put there and not yet taken."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def put(self, peer: int, message: Message, channel: Channel = Channel.CONSENSUS) -> None:
        self.messages.append(message)

    def take(self) -> list[Message]:
        taken, self.messages = self.messages, []
        return taken


class Now:
    """A bulk queue that has done everything at once."""

    def submit(self, job: object, done: Callable[[StorageError | None], None]) -> None:
        try:
            finish(job.run())  # type: ignore[attr-defined]  # a DiskJob
        except StorageError as error:
            done(error)
        else:
            done(None)


class OneSegment:
    """A log of which only its extent is asked for."""

    start_offset = 0
    segments = ((0, 1_000),)


class Side:
    """A node's disk, its store, and what works on them."""

    def __init__(self) -> None:
        self.disk = MemoryDisk(Random(0))
        self.disk.put(f"{DIRECTORY}/partition.metadata", b"")
        self.store = CheckpointStore(self.disk, DIRECTORY, survey_checkpoints(self.disk, DIRECTORY))
        self.sent = Sent()
        bulk: Any = Now()
        outbox: Any = self.sent
        self.sender = CheckpointSender(self.store, bulk, outbox, CHUNK)
        self.receiver = CheckpointReceiver(self.disk, DIRECTORY, self.store, bulk, outbox)
        self.own = OwnCheckpoints(self.disk, self.store, bulk, self.sender.kept)
        self.damaged: list[CheckpointId] = []
        self.sender.on_damaged = self.damaged.append

    def write(self, checkpoint: CheckpointId) -> bytes:
        data = checkpoint_bytes(checkpoint, b"x" * 400)
        job = self.store.write_job(checkpoint, CheckpointContent((data,), lambda: CheckpointManifest({}, b"d" * 32)))
        finish(job.run())
        self.store.job_done(job)
        return data

    def kept(self) -> list[CheckpointId]:
        return [info.id for info in self.store.infos]

    def retire(self, now: float) -> int:
        log = OneSegment()
        return self.own.retire(log, 10**13, now, RetentionConfig(0, 0))  # type: ignore[arg-type]


def offer(leader: Side, follower: Side, now: float) -> None:
    """The leader's next heartbeat, as far as it is an offer, and what the follower does about it."""
    stored = leader.sender.offer(FOLLOWER, now)
    if stored is not None:
        message = CheckpointOffer(EPOCH, 1, *stored.id, stored.size, stored.crc, stored.manifest or b"")
        follower.receiver.on_offer(LEADER, message, now, is_voter=True)


def carry(leader: Side, follower: Side, now: float, turns: int = 1_000) -> None:
    """Everything both have to say, until neither has or ``turns`` are over."""
    for _ in range(turns):
        requests, chunks = follower.sent.take(), leader.sent.take()
        if not requests and not chunks:
            return
        for message in requests:
            if isinstance(message, ChunkRequest):
                leader.sender.on_request(FOLLOWER, message, EPOCH, now)
        for message in chunks:
            assert isinstance(message, ChunkMessage)
            follower.receiver.on_chunk(LEADER, message, now)


def test_checkpoint_that_lost_its_end_is_set_aside_and_another_is_sent() -> None:
    leader, follower = Side(), Side()
    older, newer = CheckpointId(50, 3), ID
    leader.write(older)
    data = leader.write(newer)
    leader.disk.put(f"{DIRECTORY}/{checkpoint_name(newer)}", data[: 3 * CHUNK])
    for now in (0.0, 1.0):
        offer(leader, follower, now)
        carry(leader, follower, now)
    assert leader.damaged == [newer]
    received = follower.receiver.take_received()
    assert received is not None
    assert received.info.id == older


def test_what_is_not_to_be_had_is_not_offered_any_more() -> None:
    leader = Side()
    leader.write(ID)
    assert leader.sender.offer(FOLLOWER, 0.0) is not None
    newer = CheckpointId(200, 3)
    leader.write(newer)
    leader.sender.on_request(FOLLOWER, ChunkRequest(EPOCH, *ID, 10_000), EPOCH, 1.0)
    (chunk,) = leader.sent.take()
    assert isinstance(chunk, ChunkMessage)
    assert chunk.data == b""
    offered = leader.sender.offer(FOLLOWER, 1.0)
    assert offered is not None
    assert offered.id == newer


def test_rotten_manifest_does_not_stop_a_sound_checkpoint(caplog: pytest.LogCaptureFixture) -> None:
    leader, follower = Side(), Side()
    data = leader.write(ID)
    leader.disk.flip_bit(f"{DIRECTORY}/{manifest_name(ID)}", 20, 3)
    offer(leader, follower, 0.0)
    carry(leader, follower, 0.0)
    received = follower.receiver.take_received()
    assert received is not None
    assert received.read() == data
    assert received.manifest() is None
    (said,) = caplog.messages
    assert said.startswith("a checkpoint is offered without its manifest")
    assert "the CRC of the manifest does not match" in said


def test_checkpoint_offered_with_a_wrong_manifest_is_kept_without_it(caplog: pytest.LogCaptureFixture) -> None:
    leader, follower = Side(), Side()
    data = leader.write(ID)
    stored = leader.sender.offer(FOLLOWER, 0.0)
    assert stored is not None
    message = CheckpointOffer(EPOCH, 1, *ID, stored.size, stored.crc, b"nonsense")
    follower.receiver.on_offer(LEADER, message, 0.0, is_voter=True)
    carry(leader, follower, 0.0)
    received = follower.receiver.take_received()
    assert received is not None
    assert received.read() == data
    assert received.manifest() is None
    (said,) = caplog.messages
    assert said.startswith("a checkpoint was received without its manifest")


def test_slow_link_carries_hardly_a_chunk_twice() -> None:
    """What is asked for again while it is on its way takes the link from what comes next."""
    for chunk_seconds in (0.5, 5.0, 30.0, 100.0):
        leader, follower = Side(), Side()
        size = len(leader.write(ID))
        free_at = now = 0.0
        on_the_way: list[tuple[float, ChunkMessage]] = []
        carried = 0
        while follower.store.latest is None:
            assert now < 100 * size / CHUNK * chunk_seconds, f"{chunk_seconds} s for a chunk: never arrives"
            offer(leader, follower, now)
            while on_the_way and on_the_way[0][0] <= now:
                follower.receiver.on_chunk(LEADER, on_the_way.pop(0)[1], now)
            for message in follower.sent.take():
                if isinstance(message, ChunkRequest):
                    leader.sender.on_request(FOLLOWER, message, EPOCH, now)
            for message in leader.sent.take():
                assert isinstance(message, ChunkMessage)
                free_at = max(now, free_at) + chunk_seconds
                on_the_way.append((free_at, message))
                carried += 1
            now += 0.1
        # Before the first has come nobody knows how slow the link is: those requests are doubled in time.
        first = chunk_seconds.__ceil__().bit_length()
        assert carried <= size / CHUNK + 2 * first, f"{chunk_seconds} s for a chunk: {carried} were carried"


def test_follower_that_gets_nowhere_has_nothing_kept_for_it() -> None:
    """It has no room: it answers every offer, and asks for the beginning again and again."""
    leader, follower = Side(), Side()
    leader.write(ID)
    follower.disk.capacity = follower.disk.used
    for second in range(200):
        now = float(second)
        offer(leader, follower, now)
        carry(leader, follower, now)
        if second == 30:
            leader.write(CheckpointId(200, 3))
            leader.retire(now)
            assert ID in leader.kept()
    leader.write(CheckpointId(300, 3))
    assert leader.retire(200.0) == 300
    assert leader.kept() == [CheckpointId(300, 3)]


def test_follower_on_a_very_slow_link_keeps_its_checkpoint() -> None:
    """A chunk takes two minutes, a checkpoint less."""
    leader = Side()
    leader.write(ID)
    assert leader.sender.offer(FOLLOWER, 0.0) is not None
    for number in range(6):
        now = 50.0 + 120.0 * number
        leader.sender.on_request(FOLLOWER, ChunkRequest(EPOCH, *ID, number * CHUNK), EPOCH, now)
        for later in (50.0, 100.0):
            leader.write(CheckpointId(200 + 2 * number + int(later // 100), 3))
            leader.retire(now + later)
            offered = leader.sender.offer(FOLLOWER, now + later)
            assert offered is not None
            assert offered.id == ID, f"after {now + later} s"


def test_checkpoints_between_one_being_sent_and_the_newest_are_removed() -> None:
    leader = Side()
    leader.write(ID)
    assert leader.sender.offer(FOLLOWER, 0.0) is not None
    for end in (200, 300, 400):
        leader.write(CheckpointId(end, 3))
    assert leader.retire(1.0) == ID.end_offset, "the log behind what is being sent is needed"
    assert leader.kept() == [ID, CheckpointId(400, 3)]
    assert crc32c(leader.store.read(ID)) == leader.store.offer(ID).crc
