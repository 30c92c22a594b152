"""A metadata loader at work on controllers of the feed stage, and what a publisher is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from quorate.broker.controllers.controllers import connect_controllers
from quorate.broker.metadata.loader import LoaderTiming, MetadataLoader
from quorate.broker.publisher import ControllerEpoch, Manifest, MetadataPublisher, PublisherSet
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.records.records import (
    FeatureLevelRecord,
    TopicRecord,
)
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay_state import ReplayState
from tests.guards.sound_images import watch
from tests.integration.broker_stage import seeded_machine
from tests.integration.feed_stage import FeedController
from tests.unit.broker.images import batch, uuid
from tests.waiting import eventually

TIMING = LoaderTiming(wait_ms=200, bytes_max=256 * 1024, retry_first_ms=5, retry_max_ms=20, silence_max_ms=9_000)


@dataclass
class Recorder(MetadataPublisher):
    """What a publisher was told."""

    wants_every_offset = True
    manifests: list[Manifest] = field(default_factory=list)
    controllers: list[ControllerEpoch] = field(default_factory=list)
    image: MetadataImage = EMPTY_IMAGE

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
    watch(lambda: recorder.image)
    async with connect_controllers([c.url for c in controllers], None, timeout_ms) as connected:
        loader = MetadataLoader(connected.feeds, PublisherSet([recorder]), timing, seeded_machine())
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


FIRST = [
    batch(0, 1, FeatureLevelRecord(name="metadata.version", feature_level=25)),
    batch(1, 1, TopicRecord(name="a", topic_id=uuid(1)), TopicRecord(name="b", topic_id=uuid(2))),
]


def with_checkpoint(node_id: int, batches: list[bytes], tail: list[bytes]) -> FeedController:
    """A controller whose log begins behind ``batches``."""
    controller = FeedController(node_id, [*batches, *tail])
    image = direct(batches)
    data = b"".join(checkpoint_batches(image, 1_000))
    controller.drop_prefix(CheckpointId(image.provenance.end_offset, image.provenance.epoch), data)
    return controller
