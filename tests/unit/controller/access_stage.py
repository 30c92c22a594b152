"""A controller on a log that commits when it is told to: decisions as requests, with what they write."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from quorate.controller.decisions.decision import Decision
from quorate.metadata_log.batches.batch import iter_records
from quorate.metadata_log.records.records import FeatureLevelRecord, Record, VersionedRecord
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, read_checkpoint
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import digest_image
from tests.unit.controller.manual_quorum import Bench

T = TypeVar("T")


class AccessStage:
    """The active controller."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.bench.lead()
        self.bench.commit()

    @property
    def image(self) -> MetadataImage:
        return self.bench.controller.stable

    async def write(self, decide: Callable[[MetadataImage], Decision[T]]) -> tuple[T, list[Record]]:
        """The reply, once all is committed, and the records that were written for it."""
        before = len(self.bench.quorum.batches)
        task = asyncio.create_task(self.bench.controller.append_write_event("write", lambda c: decide(c.image)))
        await self.bench.settle()
        self.bench.commit()
        reply = await task
        batches = self.bench.quorum.batches[before:]
        return reply, [logged.record for batch in batches for logged in iter_records(batch)]

    async def write_level(self, level: int) -> None:
        """Another ``metadata.version``."""
        record = VersionedRecord(FeatureLevelRecord("metadata.version", level), 0)
        await self.write(lambda _: Decision([record], None))

    def check_checkpoint(self) -> None:
        """A checkpoint of the state is the state."""
        provenance = self.image.provenance
        batches = checkpoint_batches(self.image, 1_700_000_000_000)
        loaded = read_checkpoint(batches, provenance.end_offset, provenance.epoch)
        assert loaded == self.image
        assert digest_image(loaded).text == digest_image(self.image).text
