"""A real cluster's metadata (static/m2: two of four brokers dead, 782 partitions without a leader), played again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from controller.client import ControllerClient
from metadata_log.batch import parse_header
from snapshots.image import MetadataImage
from snapshots.summary import summarize
from tests.integration.broker_stage import playing
from tests.integration.feed_stage import captured_batches
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually


async def import_log(built: Stage, batches: list[bytes]) -> None:
    """The log begins with what another cluster wrote; then a controller of ours leads, in a later epoch."""
    quorum = built.quorum
    quorum.batches.extend(batches)
    for member in built.members.values():
        for batch in batches:
            member.log.append(batch)
    quorum.commit()
    quorum.leader_epoch = parse_header(batches[-1]).epoch
    await built.elect(1)


def image_of(built: Stage) -> MetadataImage:
    return built.members[1].controller.stable


async def test_twin_dead_brokers_come_back_and_everything_is_led_cleanly(kafka_data: Path) -> None:
    async with stage(1, active=None) as built, ControllerClient(built.urls) as client:
        await import_log(built, captured_batches(kafka_data / "static" / "m2" / "log"))
        imported = image_of(built)
        before = summarize(imported)
        assert (before.partitions, before.without_leader, before.reassigning) == (3061, 782, 2)

        async with playing([11, 12], built.urls, is_imported=True) as live:
            await live.ready()
            assert image_of(built).partitions.pages == imported.partitions.pages, "the picture is as it was imported"
            assert image_of(built).cluster.brokers == imported.cluster.brokers

            async with playing([13, 14], built.urls, is_imported=True) as returned:
                await returned.ready()

                async def healed() -> bool:
                    now = summarize(image_of(built))
                    return (now.without_leader, now.under_replicated, now.reassigning, now.with_elr) == (0, 0, 0, 0)

                await eventually(healed, "all partitions are led, fully in sync, and no reassignment is open")
                after = image_of(built)
                assert summarize(after).recovering == before.recovering, "no leader was elected uncleanly"
                epochs = {id_: broker.epoch for id_, broker in after.cluster.brokers.items()}
                assert epochs == {id_: broker.epoch for id_, broker in imported.cluster.brokers.items()}
                assert built.members[1].faults.seen == []
                leads = [len(after.partitions.rows_led_by(broker)) for broker in (11, 12, 13, 14)]
                assert np.sum(leads) == 3061
                assert (await client.status()).verdict == "healthy"
