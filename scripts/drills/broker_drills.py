"""Drills on brokers: half of them lost at once, a whole rack, one that comes and goes."""

from __future__ import annotations

import time
from typing import Final

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.drills.drill import KILL, Drill, healthy_again
from quorate.scripts.drills.environment import DEADLINE_S, DrillBroken, Ground
from quorate.scripts.drills.outcome import Expectation

_PARTITIONS: Final = 1_000
_REPLICAS: Final = 3
_FLAPS: Final = 4


async def mass_broker_loss(ground: Ground) -> None:
    """Half of the brokers at once: every partition that has anybody left in its ISR is led by that."""
    await _create(ground, _PARTITIONS)
    processes = [node for _, node in sorted(ground.brokers.items())]
    victims = processes[: len(processes) // 2]
    lost = {broker for node in victims for broker in node.ids}
    killed = await ground.kill(*victims)
    await ground.until(
        lambda s: all(b.state == "fenced" for b in s.brokers if b.id in lost), "the lost brokers are fenced"
    )
    status = await ground.until(lambda s: s.partitions.offline == 0, "every partition is led")
    led = ground.event("seen", f"all {status.partitions.total} partitions are led by those that are left")
    ground.measure("leaderless_ms", (led - killed) * 1000)
    started = await ground.restart(*victims)
    await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    await ground.load.more()
    await ground.settle(started)


async def rack_lost(ground: Ground) -> None:
    """All brokers of a rack at once: no partition has two replicas there, so every one goes on with all but one."""
    registered = (await ground.cluster.client.describe_brokers()).brokers
    racks = {broker.id: broker.rack for broker in registered if broker.state == "active"}
    rack = racks[min(racks)]
    victims = [node for node in ground.brokers.values() if any(racks.get(id_) == rack for id_ in node.ids)]
    lost = {broker for node in victims for broker in node.ids}
    if len(set(racks.values())) < _REPLICAS or {racks.get(id_) for id_ in lost} != {rack}:
        raise DrillBroken(f"the brokers are not on {_REPLICAS} racks, each process on one: {racks}")
    await _create(ground, _PARTITIONS)
    killed = await ground.kill(*victims)
    ground.event("fault", f"that was all of rack {rack}: brokers {sorted(lost)}")
    await ground.until(
        lambda s: all(b.state == "fenced" for b in s.brokers if b.id in lost), "the lost brokers are fenced"
    )
    await ground.until(lambda s: s.partitions.offline == 0, "every partition is led")
    ground.measure("leaderless_ms", (ground.event("seen", "every partition is led") - killed) * 1000)
    described = await ground.cluster.client.describe_topic(f"{ground.prefix}-drilled", is_linearizable=True)
    ground.measure("lost_twice", sum(len(one.isr_nodes) < _REPLICAS - 1 for one in described.topic.partitions))
    started = await ground.restart(*victims)
    await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    await ground.load.more()
    await ground.settle(started)


async def broker_flap(ground: Ground) -> None:
    """One broker dies and comes back, again and again, faster than its session ends or slower."""
    await _create(ground, 100)
    node = ground.brokers[max(ground.brokers)]
    last = time.monotonic()
    for number in range(_FLAPS):
        await ground.kill(node)
        if number % 2:
            await ground.until(
                lambda s: any(b.id == node.id and b.state == "fenced" for b in s.brokers), "the broker is fenced"
            )
        last = await ground.restart(node)
        await ground.cluster.wait_for_brokers(DEADLINE_S)
        await ground.load.more(5)
    await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    full = ground.event("seen", "all ISRs are full")
    ground.measure("isr_full_ms", (full - last) * 1000)
    await ground.settle(last)


async def _create(ground: Ground, partitions: int) -> None:
    topic = CreatableTopic(name=f"{ground.prefix}-drilled", num_partitions=partitions, replication_factor=_REPLICAS)
    reply = await ground.cluster.client.create_topics(CreateTopicsRequest(topics=[topic]))
    if reply.topics[0].error_code != ErrorCode.NONE:
        raise DrillBroken(f"topic {topic.name}: {reply.topics[0].error_message}")
    ground.noted["created_at_s"] = round(time.monotonic() - ground.begun, 1)


#: Short sessions: what is measured is what follows from their end.
_SESSIONS = {"BROKERS__SESSION_TIMEOUT_MS": "3000"}

DRILLS: Final = (
    Drill(
        "mass-broker-loss",
        "half of the brokers die at once: when their sessions have ended every partition is led by those that are left",
        (
            Expectation(
                name="leaderless_ms", meaning="from the kill until every partition is led, the session included, ms",
                at_most=8_000,
            ),
            healthy_again(30_000),
        ),
        mass_broker_loss,
        "kills",
        KILL,
        brokers=4,
        controller_settings=_SESSIONS,
        limits_elsewhere={"leaderless_ms": 14_000},  # Kafka's and our default session: 9 s
    ),
    Drill(
        "rack-lost",
        "all brokers of one rack die at once: every partition loses one replica at most, and is led by another rack",
        (
            Expectation(
                name="leaderless_ms", meaning="from the kill until every partition is led, the session included, ms",
                at_most=8_000,
            ),
            Expectation(name="lost_twice", meaning="partitions that lost more than one replica", at_most=0),
            healthy_again(30_000),
        ),
        rack_lost,
        "kills",
        KILL,
        brokers=6,
        controller_settings=_SESSIONS,
        limits_elsewhere={"leaderless_ms": 14_000},  # as above
    ),
    Drill(
        "broker-flap",
        "a broker dies and comes back four times: nothing is left behind, and all ISRs are full again",
        (
            Expectation(
                name="isr_full_ms", meaning="from its last start until all ISRs are full, ms", at_most=20_000
            ),
            healthy_again(30_000),
        ),
        broker_flap,
        "kills",
        KILL,
        controller_settings=_SESSIONS,
    ),
)  # fmt: skip
