"""The metadata loader against controllers that fail, over real sockets, on captured and made logs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from broker.controllers import connect_controllers
from broker.loader import LoaderFault, LoaderTiming, MetadataLoader
from broker.publisher import ControllerEpoch, Manifest, MetadataPublisher, PublisherSet
from metadata_log.batch import parse_header
from metadata_log.checkpoint_files import CheckpointId
from metadata_log.ids import METADATA_TOPIC_ID
from metadata_log.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from snapshots.checkpoint import checkpoint_batches
from snapshots.delta import MetadataDelta
from snapshots.image import MetadataImage
from snapshots.image_digest import digest_image
from snapshots.replay_state import ReplayState
from tests.integration.broker_stage import surroundings
from tests.integration.feed_stage import FeedController, captured_batches, captured_checkpoint, serving
from tests.unit.broker.images import batch, uuid
from tests.waiting import eventually

TIMING = LoaderTiming(wait_ms=200, bytes_max=256 * 1024, retry_first_ms=5, retry_max_ms=20)


@dataclass
class Recorder(MetadataPublisher):
    """What a publisher was told."""

    manifests: list[Manifest] = field(default_factory=list)
    controllers: list[ControllerEpoch] = field(default_factory=list)
    image: MetadataImage = field(default_factory=MetadataImage)

    @property
    def name(self) -> str:
        return "recorder"

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        assert delta.old.provenance == self.image.provenance
        assert delta.new is image
        self.image = image
        self.manifests.append(manifest)

    def on_controller_change(self, controller: ControllerEpoch) -> None:
        self.controllers.append(controller)


@asynccontextmanager
async def following(
    *controllers: FeedController, timing: LoaderTiming = TIMING, timeout_ms: float = 5_000
) -> AsyncIterator[tuple[MetadataLoader, Recorder]]:
    """A loader at work on the controllers, asking the first one first."""
    recorder = Recorder()
    async with connect_controllers([c.url for c in controllers], None, timeout_ms) as connected:
        loader = MetadataLoader(connected.feeds, PublisherSet([recorder]), timing, surroundings())
        task = asyncio.create_task(loader.run())
        try:
            yield loader, recorder
        finally:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.result()


def direct(batches: list[bytes]) -> MetadataImage:
    """What the batches add up to."""
    state = ReplayState()
    for one in batches:
        state = state.replay_batch(one)
    return state.stable


def digest(image: MetadataImage) -> str:
    return digest_image(image).text


async def published(recorder: Recorder, offset: int) -> MetadataImage:
    """The first published image that reaches an offset."""

    async def reached() -> bool:
        return recorder.image.provenance.end_offset >= offset

    await eventually(reached, f"an image at offset {offset} is published")
    return recorder.image


@pytest.fixture(scope="module")
def static_log(kafka_data: Path) -> list[bytes]:
    """The captured log of static/m2: 11,000 records in some thousand batches."""
    return captured_batches(kafka_data / "static" / "m2" / "log")


FIRST = [
    batch(0, 1, FeatureLevelRecord(name="metadata.version", feature_level=25)),
    batch(1, 1, TopicRecord(name="a", topic_id=uuid(1)), TopicRecord(name="b", topic_id=uuid(2))),
]


async def test_loader_captured_log_gives_the_image_that_direct_replay_gives(static_log: list[bytes]) -> None:
    controller = FeedController(1, static_log)
    async with serving(controller), following(controller) as (loader, recorder):
        image = await published(recorder, parse_header(static_log[-1]).end_offset)

        assert digest(image) == digest(direct(static_log))
        assert loader.is_caught_up
        assert loader.lag == 0
        assert loader.counters.batches == len(static_log)
        assert [manifest.is_checkpoint for manifest in recorder.manifests] == [True], "published first when caught up"
        assert recorder.controllers == [ControllerEpoch(1, controller.epoch)]


async def test_loader_new_batches_are_published_as_they_are_committed() -> None:
    controller = FeedController(1, FIRST)
    async with serving(controller), following(controller) as (_, recorder):
        await published(recorder, 3)
        controller.append(batch(3, 1, TopicRecord(name="c", topic_id=uuid(3))))
        image = await published(recorder, 4)

        assert sorted(image.topics.by_name) == ["a", "b", "c"]
        manifest = recorder.manifests[-1]
        assert (manifest.batch_count, manifest.is_checkpoint) == (1, False)
        assert manifest.byte_count == len(controller.log.batches[-1])
        assert manifest.provenance.end_offset == 4


async def test_loader_open_transaction_is_not_published_before_its_end() -> None:
    """The loader goes on through the log, and says that it has applied nothing of what may still be aborted."""
    controller = FeedController(1, FIRST)
    async with serving(controller), following(controller) as (loader, recorder):
        await published(recorder, 3)
        begin = BeginTransactionRecord(name="bulk")
        controller.append(batch(3, 1, begin, TopicRecord(name="c", topic_id=uuid(3))), batch(5, 1, NoOpRecord()))

        async def replayed() -> bool:
            return loader.position.offset == 6

        await eventually(replayed, "the transaction's beginning is replayed")
        assert loader.last_applied_offset == 2
        assert recorder.image.provenance.end_offset == 3
        controller.append(batch(6, 1, EndTransactionRecord()))
        image = await published(recorder, 7)
        assert "c" in image.topics.by_name
        assert len(recorder.manifests) == 2


async def test_loader_controller_dies_in_the_middle_of_an_answer_goes_on_with_another(static_log: list[bytes]) -> None:
    """Its socket breaks with half a batch sent: nothing of that answer is used, nothing is lost or applied twice."""
    first, second = FeedController(1, static_log), FeedController(2, static_log)
    first.leader_id = second.leader_id = 2
    first.cut_after = 100_001
    async with serving(first, second), following(first, second) as (loader, recorder):
        image = await published(recorder, parse_header(static_log[-1]).end_offset)

        assert digest(image) == digest(direct(static_log))
        assert loader.feed_name == second.url
        assert loader.counters.switches == 1


async def test_loader_controller_gone_and_back_is_followed_again() -> None:
    controller = FeedController(1, FIRST)
    async with serving(controller), following(controller) as (loader, recorder):
        await published(recorder, 3)
        await controller.stop()

        async def in_trouble() -> bool:
            return loader.trouble is not None

        await eventually(in_trouble, "the loader notices that its controller is gone")
        controller.append(batch(3, 2, TopicRecord(name="c", topic_id=uuid(3))))
        await controller.start()
        assert "c" in (await published(recorder, 4)).topics.by_name


async def test_loader_frozen_controller_is_left_for_another() -> None:
    """SIGSTOP: the connection stands, and no answer comes."""
    frozen, other = FeedController(1, FIRST), FeedController(2, FIRST)
    frozen.before_answer = lambda path, at: asyncio.get_running_loop().create_future()
    async with serving(frozen, other), following(frozen, other) as (loader, recorder):
        await published(recorder, 3)

        assert loader.feed_name == other.url


async def test_loader_damaged_batch_is_refused_and_had_from_another(static_log: list[bytes]) -> None:
    def flip(path: str, at: int, body: bytes) -> bytes:
        return body[:5_000] + bytes([body[5_000] ^ 1]) + body[5_001:] if len(body) > 5_000 else body

    damaging, sound = FeedController(1, static_log), FeedController(2, static_log)
    damaging.damage = flip
    async with serving(damaging, sound), following(damaging, sound) as (loader, recorder):
        image = await published(recorder, parse_header(static_log[-1]).end_offset)

        assert digest(image) == digest(direct(static_log))
        assert loader.counters.refused_answers == 1


async def test_loader_controller_of_a_lower_epoch_is_refused() -> None:
    """A standby that was cut off wakes up and serves what it knows: an epoch that is over."""
    new = FeedController(1, [*FIRST, batch(3, 5, NoOpRecord())])
    old = FeedController(2, FIRST)
    old.log.is_authoritative = False
    async with serving(new, old), following(new, old) as (loader, recorder):
        await published(recorder, 4)
        await new.stop()

        async def refused() -> bool:
            return loader.counters.refused_answers > 0

        await eventually(refused, "the old controller is refused")
        assert loader.status is not None
        assert loader.status.epoch == 5
        assert recorder.image.provenance.end_offset == 4
        old.append(batch(3, 5, NoOpRecord()), batch(4, 6, TopicRecord(name="c", topic_id=uuid(3))))
        assert "c" in (await published(recorder, 5)).topics.by_name


async def test_loader_checkpoint_of_a_lower_epoch_is_refused() -> None:
    """A leader that was frozen wakes up, finds the broker ahead of its log, and offers its checkpoint: an old one."""
    new = FeedController(1, [*FIRST, batch(3, 5, NoOpRecord())])
    old = with_checkpoint(2, FIRST, [])
    async with serving(new, old), following(new, old) as (loader, recorder):
        await published(recorder, 4)
        await new.stop()

        async def refused() -> bool:
            return loader.counters.refused_answers > 0

        await eventually(refused, "the old checkpoint is refused")
        assert loader.counters.checkpoint_loads == 0
        assert recorder.image.provenance.end_offset == 4


async def test_loader_controller_of_another_cluster_is_refused() -> None:
    ours, foreign = FeedController(1, FIRST), FeedController(2, FIRST)
    foreign.cluster_id = "another"
    async with serving(ours, foreign), following(ours, foreign) as (loader, recorder):
        await published(recorder, 3)
        await ours.stop()

        async def refused() -> bool:
            return "is of cluster another" in (loader.trouble or "")

        await eventually(refused, "the foreign controller is refused")


async def test_loader_controller_without_a_leader_is_left_for_one_that_has() -> None:
    """It answers, but is cut off from the others and will never hear of anything new."""
    cut_off, other = FeedController(1, FIRST), FeedController(2, [*FIRST, batch(3, 1, NoOpRecord())])
    cut_off.leader_id = None
    async with serving(cut_off, other), following(cut_off, other) as (loader, recorder):
        await published(recorder, 4)

        assert loader.feed_name == other.url


async def test_loader_log_that_begins_later_takes_the_checkpoint_first(kafka_data: Path) -> None:
    """static/m4: the head of the log is gone; checkpoint in several pieces, then the tail."""
    directory = kafka_data / "static" / "m4" / "log"
    tail = captured_batches(directory)
    controller = FeedController(2, tail)
    controller.drop_prefix(*captured_checkpoint(directory))
    timing = LoaderTiming(wait_ms=200, bytes_max=65_536, retry_first_ms=5, retry_max_ms=20)
    async with serving(controller), following(controller, timing=timing) as (loader, recorder):
        image = await published(recorder, parse_header(tail[-1]).end_offset)

        assert len(image.partitions) == 2823
        assert loader.counters.checkpoint_loads == 1
        pieces = [position for path, position in controller.requests if path == "checkpoint"]
        assert len(pieces) > 3
        assert pieces == sorted(set(pieces))
        assert recorder.manifests[0].is_checkpoint


async def test_loader_diverging_log_takes_the_checkpoint_and_replaces_the_image() -> None:
    """A quorum restored from a backup: offset 3 is there, but the batch before it has another epoch."""
    here = FeedController(1, FIRST)
    async with serving(here), following(here) as (loader, recorder):
        await published(recorder, 3)
        restored = [FIRST[0], batch(1, 2, TopicRecord(name="z", topic_id=uuid(9)), NoOpRecord())]
        image = direct(restored)
        here.log.batches[:] = restored
        here.epoch = 2
        here.checkpoint = (CheckpointId(3, 2), b"".join(checkpoint_batches(image, 1_000)))
        here.append(batch(3, 3, NoOpRecord()))
        await published(recorder, 4)

        assert sorted(recorder.image.topics.by_name) == ["z"]
        assert loader.counters.checkpoint_loads == 1
        assert digest(recorder.image) == digest(direct([*restored, here.log.batches[-1]]))


def with_checkpoint(node_id: int, batches: list[bytes], tail: list[bytes]) -> FeedController:
    """A controller whose log begins behind ``batches``."""
    controller = FeedController(node_id, [*batches, *tail])
    image = direct(batches)
    data = b"".join(checkpoint_batches(image, 1_000))
    controller.drop_prefix(CheckpointId(image.provenance.end_offset, image.provenance.epoch), data)
    return controller


PIECES = LoaderTiming(wait_ms=200, bytes_max=100, retry_first_ms=5, retry_max_ms=20)
TAIL = [batch(3, 1, TopicRecord(name="c", topic_id=uuid(3)))]


async def test_loader_checkpoint_piece_damaged_on_its_way_is_asked_for_again() -> None:
    damaged: list[int] = []

    def flip_once(path: str, at: int, body: bytes) -> bytes:
        if path == "checkpoint" and at > 0 and not damaged:
            damaged.append(at)
            return bytes([body[0] ^ 4]) + body[1:]
        return body

    controller = with_checkpoint(1, FIRST, TAIL)
    controller.damage = flip_once
    async with serving(controller), following(controller, timing=PIECES) as (loader, recorder):
        await published(recorder, 4)

        assert sorted(recorder.image.topics.by_name) == ["a", "b", "c"]
        assert [at for path, at in controller.requests if path == "checkpoint"].count(damaged[0]) == 2
        assert loader.counters.checkpoint_loads == 1
        assert loader.counters.refused_answers == 0


async def test_loader_checkpoint_always_damaged_is_had_from_another_controller() -> None:
    damaging, sound = with_checkpoint(1, FIRST, TAIL), with_checkpoint(2, FIRST, TAIL)
    damaging.damage = lambda path, at, body: body[:-1] + b"?" if path == "checkpoint" and at > 0 else body
    async with serving(damaging, sound), following(damaging, sound, timing=PIECES) as (loader, recorder):
        await published(recorder, 4)

        assert loader.feed_name == sound.url
        assert ("checkpoint", 0) in sound.requests, "it begins anew: the bytes of two controllers differ"


async def test_loader_slow_checkpoint_pieces_are_waited_for_or_asked_for_again() -> None:
    """One piece takes longer than a request may, the others almost as long."""
    slow = with_checkpoint(1, FIRST, TAIL)
    seen: list[int] = []

    def wait(path: str, at: int) -> asyncio.Future[None] | None:
        if path != "checkpoint" or at == 0:
            return None
        seen.append(at)
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if seen.count(at) > 1 or at != seen[0]:
            asyncio.get_running_loop().call_later(0.05, answer.set_result, None)
        return answer

    slow.before_answer = wait
    async with serving(slow), following(slow, timing=PIECES, timeout_ms=300) as (loader, recorder):
        await published(recorder, 4)

        assert seen.count(seen[0]) == 2
        assert loader.counters.checkpoint_loads == 1
        assert loader.counters.failed_calls == 0


async def test_loader_checkpoint_replaced_while_it_is_fetched_is_begun_anew() -> None:
    controller = with_checkpoint(1, FIRST, [*TAIL, batch(4, 1, NoOpRecord())])

    def replace(path: str, at: int, body: bytes) -> bytes:
        if path == "checkpoint" and at > 0 and controller.log.log_start_offset == 3:
            image = direct([*FIRST, *TAIL])
            controller.drop_prefix(CheckpointId(4, 1), b"".join(checkpoint_batches(image, 1_000)))
        return body

    controller.damage = replace
    async with serving(controller), following(controller, timing=PIECES) as (loader, recorder):
        await published(recorder, 5)

        assert sorted(recorder.image.topics.by_name) == ["a", "b", "c"]
        assert loader.counters.checkpoint_loads == 1


async def test_loader_checkpoint_cut_short_is_refused() -> None:
    """Its pieces are as they were sent, but there is no footer: it is no whole checkpoint."""
    cut, sound = with_checkpoint(1, FIRST, TAIL), with_checkpoint(2, FIRST, TAIL)
    assert cut.checkpoint is not None
    checkpoint, data = cut.checkpoint
    image = direct(FIRST)
    cut.checkpoint = (checkpoint, b"".join(list(checkpoint_batches(image, 1_000))[:-1]))
    assert len(cut.checkpoint[1]) < len(data)
    async with serving(cut, sound), following(cut, sound) as (loader, recorder):
        await published(recorder, 4)

        assert loader.feed_name == sound.url
        assert loader.counters.refused_answers == 1


async def test_loader_record_that_cannot_be_replayed_is_fatal() -> None:
    """Whole, committed, and impossible: going on would serve an image that is not the cluster's."""
    controller = FeedController(1, [*FIRST, batch(3, 1, RemoveTopicRecord(topic_id=METADATA_TOPIC_ID))])
    async with serving(controller), connect_controllers([controller.url], None, 1_000) as connected:
        loader = MetadataLoader(connected.feeds, PublisherSet(), TIMING, surroundings())
        with pytest.raises(LoaderFault, match="the batch at offset 3 cannot be replayed"):
            async with asyncio.timeout(20):
                await loader.run()
