"""Drills on brokers: half of them lost at once, one that comes and goes."""

from __future__ import annotations

import time
from typing import Final

from controller.protocol import CreatableTopic, CreateTopicsRequest
from metadata_log.errors import ErrorCode
from scripts.drills.drill import KILL, Drill, healthy_again
from scripts.drills.ground import DEADLINE_S, DrillBroken, Ground
from scripts.drills.outcome import Expectation

_PARTITIONS: Final = 1_000
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
    async with ground.load() as load:
        started = await ground.restart(*victims)
        await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
        await load.more()
    await ground.settle(started)


async def broker_flap(ground: Ground) -> None:
    """One broker dies and comes back, again and again, faster than its session ends or slower."""
    await _create(ground, 100)
    node = ground.brokers[max(ground.brokers)]
    async with ground.load() as load:
        last = time.monotonic()
        for number in range(_FLAPS):
            await ground.kill(node)
            if number % 2:
                await ground.until(
                    lambda s: any(b.id == node.id and b.state == "fenced" for b in s.brokers), "the broker is fenced"
                )
            last = await ground.restart(node)
            await ground.cluster.wait_for_brokers(DEADLINE_S)
            await load.more(5)
    await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    full = ground.event("seen", "all ISRs are full")
    ground.measure("isr_full_ms", (full - last) * 1000)
    await ground.settle(last)


async def _create(ground: Ground, partitions: int) -> None:
    topic = CreatableTopic(name=f"{ground.prefix}-drilled", num_partitions=partitions, replication_factor=3)
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
