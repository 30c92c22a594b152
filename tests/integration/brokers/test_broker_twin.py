"""A real cluster's metadata (static/m2: two of four brokers dead, 782 partitions without a leader), played again.

What is to come of it is known: static/m3 is the log of the same cluster after they had come back.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol import ElectionPartitions, ElectLeadersRequest
from quorate.metadata_log.batches.batch import control_batch, parse_header, place_batch
from quorate.metadata_log.records.records import LeaderChangeMessage
from quorate.scripts.cluster.ports import LOOPBACK, free_ports
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.views.summary import summarize
from tests.elections_in_logs import doubtful_elections
from tests.integration.broker_stage import Played, playing
from tests.integration.feed_stage import FeedController, captured_batches, serving
from tests.integration.http_stage import Stage, stage
from tests.waiting import eventually


def commit(built: Stage, batches: list[bytes]) -> None:
    """All members have them, and know it."""
    quorum = built.quorum
    quorum.batches.extend(batches)
    for member in built.members.values():
        for batch in batches:
            member.log.append(batch)
    quorum.commit()


async def import_log(built: Stage, batches: list[bytes]) -> None:
    """The log begins with what another cluster wrote; then a controller of ours leads, in a later epoch."""
    commit(built, batches)
    last = parse_header(built.quorum.batches[-1])
    opening = control_batch([(LeaderChangeMessage(1), 0)], last.timestamp)
    commit(built, [place_batch(opening, last.end_offset, last.epoch + 1)])
    built.quorum.leader_epoch = last.epoch
    await built.elect(1)


def image_of(built: Stage) -> MetadataImage:
    return built.members[1].controller.stable


def roles(image: MetadataImage) -> dict[tuple[str, int], tuple[object, ...]]:
    """Who leads and who may. In which directory a replica is, brokers say where the source's had not yet said it."""
    return {
        (name, number): (one.leader, one.leader_epoch, one.replicas, one.isr, one.elr, one.last_known_elr)
        for name, topic in image.topics.by_name.items()
        for number, one in image.partitions.partitions_of(topic.id)
    }


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
            assert roles(image_of(built)) == roles(imported), "the picture is as it was imported"
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


async def test_twin_broker_that_left_is_not_taken_for_alive_in_an_image_of_before(kafka_data: Path) -> None:
    """A controller that has just started knows less to be committed than is; static/m3 ends with 12's departure."""
    source = captured_batches(kafka_data / "static" / "m3" / "log")
    last = parse_header(source[-1])
    opening = place_batch(control_batch([(LeaderChangeMessage(1), 0)], 0), last.end_offset, last.epoch + 1)
    known = [batch for batch in source if parse_header(batch).end_offset <= 17_539]
    controller = FeedController(1, known)
    controller.epoch = last.epoch + 1
    async with serving(controller), playing([12], [controller.url], is_imported=True) as played:
        await image_until(played, 17_539)
        assert not played.host.cache.image.cluster.brokers[12].is_fenced
        controller.append(*source[len(known) :])
        await image_until(played, last.end_offset)
        assert played.host.sessions == {}, "nobody knows whether that is all"
        controller.append(opening)

        async def begun() -> bool:
            return 12 in played.host.sessions

        await eventually(begun, "broker 12 begins")
        left = played.host.cache.image.cluster.brokers[12]
        identity = played.host.sessions[12].identity
        assert (left.is_fenced, left.in_controlled_shutdown) == (True, True)
        assert identity.incarnation_id != left.incarnation_id
        assert identity.previous_broker_epoch == left.epoch


async def image_until(played: Played, offset: int) -> None:
    """Until the process has an image that ends there."""

    async def look() -> bool:
        return played.host.cache.image.provenance.end_offset >= offset

    await eventually(look, f"an image that ends at {offset}")
