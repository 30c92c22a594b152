"""The metadata loader against controllers that fail, over real sockets, on captured and made logs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from quorate.broker.controllers.controllers import connect_controllers
from quorate.broker.metadata import loader as loader_module
from quorate.broker.metadata.loader import LoaderFault, MetadataLoader
from quorate.broker.publisher import ControllerEpoch, PublisherSet
from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.ids import METADATA_TOPIC_ID
from quorate.metadata_log.records.records import (
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.snapshots.table.kept_counts import NOT_KEPT
from tests.integration.broker_stage import seeded_machine
from tests.integration.feed_stage import FeedController, captured_batches, serving
from tests.integration.loader_stage import FIRST, TIMING, digest, direct, following, published
from tests.unit.broker.images import batch, uuid
from tests.waiting import PATIENCE_S, eventually


@pytest.fixture(scope="module")
def static_log(kafka_data: Path) -> list[bytes]:
    """The captured log of static/m2: 11,000 records in some thousand batches."""
    return captured_batches(kafka_data / "static" / "m2" / "log")


async def test_loader_captured_log_gives_the_image_that_direct_replay_gives(static_log: list[bytes]) -> None:
    controller = FeedController(1, static_log)
    async with serving(controller), following(controller) as (loader, recorder):
        image = await published(recorder, parse_header(static_log[-1]).end_offset)

        assert digest(image) == digest(direct(static_log))
        assert image.partitions.counts is NOT_KEPT, "nobody asks a broker for counts of partitions"
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


async def test_loader_answer_of_many_records_is_published_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader_module, "RECORDS_PUBLISHED_TOGETHER", 2)
    controller = FeedController(1, FIRST)
    async with serving(controller), following(controller) as (loader, recorder):
        await published(recorder, 3)
        noops = [batch(3 + n, 1, NoOpRecord()) for n in range(2)]
        topics = [batch(5 + n, 1, TopicRecord(name=f"t{n}", topic_id=uuid(3 + n))) for n in range(5)]
        controller.append(*noops, *topics)
        await published(recorder, 10)

        parts = [(manifest.batch_count, manifest.provenance.end_offset) for manifest in recorder.manifests[1:]]
        assert parts == [(2, 5), (2, 7), (2, 9), (1, 10)]
        assert sum(manifest.byte_count for manifest in recorder.manifests[1:]) == sum(map(len, [*noops, *topics]))
        assert loader.counters.batches == len(FIRST) + 7


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


async def test_loader_record_that_cannot_be_replayed_is_fatal() -> None:
    """Whole, committed, and impossible: going on would serve an image that is not the cluster's."""
    controller = FeedController(1, [*FIRST, batch(3, 1, RemoveTopicRecord(topic_id=METADATA_TOPIC_ID))])
    async with serving(controller), connect_controllers([controller.url], None, 1_000) as connected:
        loader = MetadataLoader(connected.feeds, PublisherSet(), TIMING, seeded_machine())
        with pytest.raises(LoaderFault, match="the batch at offset 3 cannot be replayed"):
            async with asyncio.timeout(PATIENCE_S):
                await loader.run()
