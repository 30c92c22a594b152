"""The metadata loader and checkpoints: when one is taken, and what may happen to its pieces on their way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.records.records import (
    NoOpRecord,
    TopicRecord,
)
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.table.kept_counts import NOT_KEPT
from tests.integration.feed_stage import FeedController, captured_batches, captured_checkpoint, serving
from tests.integration.loader_stage import FIRST, TIMING, digest, direct, following, published, with_checkpoint
from tests.unit.broker.images import batch, uuid
from tests.waiting import eventually


async def test_loader_log_that_begins_later_takes_the_checkpoint_first(kafka_data: Path) -> None:
    """static/m4: the head of the log is gone; checkpoint in several pieces, then the tail."""
    directory = kafka_data / "static" / "m4" / "log"
    tail = captured_batches(directory)
    controller = FeedController(2, tail)
    controller.drop_prefix(*captured_checkpoint(directory))
    timing = replace(TIMING, bytes_max=65_536)
    async with serving(controller), following(controller, timing=timing) as (loader, recorder):
        image = await published(recorder, parse_header(tail[-1]).end_offset)

        assert len(image.partitions) == 2823
        assert image.partitions.counts is NOT_KEPT
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


PIECES = replace(TIMING, bytes_max=100)
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
