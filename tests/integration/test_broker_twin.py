"""A real cluster's metadata (static/m2: two of four brokers dead, 782 partitions without a leader), played again.

What is to come of it is known: static/m3 is the log of the same cluster after they had come back.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from controller.client import ControllerClient
from controller.protocol import ElectionPartitions, ElectLeadersRequest
from metadata_log.batch import parse_header
from scripts.cluster.ports import LOOPBACK, free_ports
from snapshots.image import MetadataImage
from snapshots.summary import summarize
from tests.elections_in_logs import doubtful_elections
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


def told_of_those_before(*processes: str) -> dict[str, dict[str, Any]]:
    """Settings of processes that play imported brokers, which keep Kafka's listeners: others hear where they are."""
    ports = dict(zip(processes, free_ports(len(processes)), strict=True))
    peers = [f"{ids}@{LOOPBACK}:{port}" for ids, port in ports.items()]
    return {
        ids: {"port": port, "peers": peers[:number], "is_imported": True}
        for number, (ids, port) in enumerate(ports.items())
    }


async def until_no_follower_lags(built: Stage, leader: int) -> None:
    """Until everything that a broker leads has its replicas of live brokers in sync."""

    async def look() -> bool:
        image = image_of(built)
        live = [broker.id for broker in image.cluster.brokers.values() if not broker.is_fenced]
        rows = image.partitions.gather(image.partitions.rows_led_by(leader))
        return not np.any(rows.replicas & ~rows.adding & rows.slots_in(live) & ~rows.isr)

    await eventually(look, f"those that follow broker {leader} are in sync")


async def test_twin_dead_brokers_come_back_and_make_the_elections_of_the_real_log(kafka_data: Path) -> None:
    """In the real cluster 14 came back first, an operator had stuck-0 and stuck-1 elected, then 13 came back."""
    source = captured_batches(kafka_data / "static" / "m2" / "log")
    real = captured_batches(kafka_data / "static" / "m3" / "log")
    end = parse_header(source[-1]).end_offset
    expected = doubtful_elections(real, since=end)
    assert Counter((one.kind, one.leader) for one in expected) == {
        ("last known", 13): 777, ("last known", 14): 1, ("unclean", 14): 4,
    }  # fmt: skip

    async with stage(1, active=None) as built, ControllerClient(built.urls) as client:
        await import_log(built, source)
        imported = image_of(built)
        before = summarize(imported)
        assert (before.partitions, before.without_leader, before.reassigning) == (3061, 782, 2)

        twins = told_of_those_before("11-12", "14", "13")
        async with playing([11, 12], built.urls, **twins["11-12"]) as live:
            await live.ready()
            assert image_of(built).partitions.pages == imported.partitions.pages, "the picture is as it was imported"
            assert image_of(built).cluster.brokers == imported.cluster.brokers

            async with playing([14], built.urls, **twins["14"]) as first:
                await first.ready()
                stuck = ElectionPartitions(topic="stuck", partitions=[0, 1])
                await client.elect_leaders(ElectLeadersRequest(election_type="UNCLEAN", topic_partitions=[stuck]))
                for leader in (11, 12, 14):
                    await until_no_follower_lags(built, leader)
                async with playing([13], built.urls, **twins["13"]) as last:
                    await last.ready()

                    async def healed() -> bool:
                        now = summarize(image_of(built))
                        return (now.without_leader, now.under_replicated, now.reassigning, now.with_elr) == (0, 0, 0, 0)

                    await eventually(healed, "all partitions are led, fully in sync, and no reassignment is open")
                    after = image_of(built)
                    for broker in (13, 14):
                        known, now = imported.cluster.brokers[broker], after.cluster.brokers[broker]
                        assert now.incarnation_id != known.incarnation_id
                        assert now.epoch >= end
                        assert (now.listeners, now.rack) == (known.listeners, known.rack)
                    assert after.cluster.brokers[11] == imported.cluster.brokers[11]
                    assert built.members[1].faults.seen == []
                    leads = [len(after.partitions.rows_led_by(broker)) for broker in (11, 12, 13, 14)]
                    assert np.sum(leads) == 3061
                    assert doubtful_elections(built.quorum.batches, since=end) == expected
                    status = await client.status()
                    assert (status.elections.last_known, status.elections.unclean) == (778, 4)
                    assert status.verdict == "healthy"
