"""Drills on brokers: half of them lost at once, a whole rack, one that comes and goes."""

from __future__ import annotations

import time
from typing import Final

from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ErrorCode
from quorate.scripts.drills.drill import KILL, Drill, healthy_again
from quorate.scripts.drills.environment import DEADLINE_S, DrillBroken, DrillEnvironment
from quorate.scripts.drills.outcome import Expectation

_PARTITIONS: Final = 1_000
_REPLICAS: Final = 3
_FLAPS: Final = 4


async def mass_broker_loss(environment: DrillEnvironment) -> None:
    """Half of the brokers at once: every partition that has anybody left in its ISR is led by that."""
    await _create(environment, _PARTITIONS)
    processes = [node for _, node in sorted(environment.brokers.items())]
    victims = processes[: len(processes) // 2]
    lost = {broker for node in victims for broker in node.ids}
    killed = await environment.kill(*victims)
    await environment.until(
        lambda s: all(b.state == "fenced" for b in s.brokers if b.id in lost), "the lost brokers are fenced"
    )
    status = await environment.until(lambda s: s.partitions.offline == 0, "every partition is led")
    led = environment.event("seen", f"all {status.partitions.total} partitions are led by those that are left")
    environment.measure("leaderless_ms", (led - killed) * 1000)
    await environment.load.more()
    started = await environment.restart(*victims)
    await environment.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    await environment.load.more()
    await environment.settle(started)


async def rack_lost(environment: DrillEnvironment) -> None:
    """All brokers of a rack at once: no partition has two replicas there, so every one goes on with all but one."""
    registered = (await environment.cluster.client.describe_brokers()).brokers
    racks = {broker.id: broker.rack for broker in registered if broker.state == "active"}
    rack = racks[min(racks)]
    victims = [node for node in environment.brokers.values() if any(racks.get(id_) == rack for id_ in node.ids)]
    lost = {broker for node in victims for broker in node.ids}
    if len(set(racks.values())) < _REPLICAS or {racks.get(id_) for id_ in lost} != {rack}:
        raise DrillBroken(f"the brokers are not on {_REPLICAS} racks, each process on one: {racks}")
    await _create(environment, _PARTITIONS)
    killed = await environment.kill(*victims)
    environment.event("fault", f"that was all of rack {rack}: brokers {sorted(lost)}")
    await environment.until(
        lambda s: all(b.state == "fenced" for b in s.brokers if b.id in lost), "the lost brokers are fenced"
    )
    await environment.until(lambda s: s.partitions.offline == 0, "every partition is led")
    environment.measure("leaderless_ms", (environment.event("seen", "every partition is led") - killed) * 1000)
    described = await environment.cluster.client.describe_topic(f"{environment.prefix}-drilled", is_linearizable=True)
    environment.measure("lost_twice", sum(len(one.isr_nodes) < _REPLICAS - 1 for one in described.topic.partitions))
    await environment.load.more()
    started = await environment.restart(*victims)
    await environment.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    await environment.load.more()
    await environment.settle(started)


async def broker_flap(environment: DrillEnvironment) -> None:
    """One broker dies and comes back, again and again, faster than its session ends or slower."""
    await _create(environment, 100)
    node = environment.brokers[max(environment.brokers)]
    last = time.monotonic()
    for number in range(_FLAPS):
        await environment.kill(node)
        if number % 2:
            await environment.until(
                lambda s: any(b.id == node.id and b.state == "fenced" for b in s.brokers), "the broker is fenced"
            )
        last = await environment.restart(node)
        await environment.cluster.wait_for_brokers(DEADLINE_S)
        await environment.load.more(5)
    await environment.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    full = environment.event("seen", "all ISRs are full")
    environment.measure("isr_full_ms", (full - last) * 1000)
    await environment.settle(last)


async def _create(environment: DrillEnvironment, partitions: int) -> None:
    topic = CreatableTopic(
        name=f"{environment.prefix}-drilled", num_partitions=partitions, replication_factor=_REPLICAS
    )
    reply = await environment.cluster.client.create_topics(CreateTopicsRequest(topics=[topic]))
    if reply.topics[0].error_code != ErrorCode.NONE:
        raise DrillBroken(f"topic {topic.name}: {reply.topics[0].error_message}")
    environment.noted["created_at_s"] = round(time.monotonic() - environment.begun, 1)


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
