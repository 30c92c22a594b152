"""Drills on brokers: half of them lost at once, one that comes and goes."""

from __future__ import annotations

import time
from typing import Final

from controller.protocol import CreatableTopic, CreateTopicsRequest
from metadata_log.errors import ErrorCode
from scripts.drills.drill import Drill, healthy_again
from scripts.drills.ground import DEADLINE_S, DrillBroken, Ground
from scripts.drills.outcome import Expectation

_PARTITIONS: Final = 1_000
_FLAPS: Final = 4


async def mass_broker_loss(ground: Ground) -> None:
    """Half of the brokers at once: every partition that has anybody left in its ISR is led by that."""
    await _create(ground, _PARTITIONS)
    victims = sorted(ground.brokers)[: len(ground.brokers) // 2]
    killed = ground.event("fault", f"kill -9 brokers {', '.join(map(str, victims))}")
    for broker in victims:
        ground.brokers[broker].kill()
    for broker in victims:
        await ground.brokers[broker].wait(DEADLINE_S)
    await ground.until(
        lambda s: all(b.state == "fenced" for b in s.brokers if b.id in victims), "the lost brokers are fenced"
    )
    status = await ground.until(lambda s: s.partitions.offline == 0, "every partition is led")
    led = ground.event("seen", f"all {status.partitions.total} partitions are led by those that are left")
    ground.measure("leaderless_ms", (led - killed) * 1000)
    async with ground.load() as load:
        started = ground.event("repair", "start them again")
        for broker in victims:
            await ground.brokers[broker].start()
        await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
        await load.more()
    await ground.settle(started)


async def broker_flap(ground: Ground) -> None:
    """One broker dies and comes back, again and again, faster than its session ends or slower."""
    await _create(ground, 100)
    broker = max(ground.brokers)
    process = ground.brokers[broker]
    async with ground.load() as load:
        last = time.monotonic()
        for number in range(_FLAPS):
            await ground.kill(process)
            if number % 2:
                await ground.until(
                    lambda s: any(b.id == broker and b.state == "fenced" for b in s.brokers), "the broker is fenced"
                )
            last = await ground.restart(process)
            await ground.cluster.wait_for_brokers(DEADLINE_S)
            await load.more(5)
    await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    full = ground.event("seen", "all ISRs are full")
    ground.measure("isr_full_ms", (full - last) * 1000)
    await ground.settle(last)


async def _create(ground: Ground, partitions: int) -> None:
    topic = CreatableTopic(name="drilled", num_partitions=partitions, replication_factor=3)
    reply = await ground.cluster.client.create_topics(CreateTopicsRequest(topics=[topic]))
    if reply.topics[0].error_code != ErrorCode.NONE:
        raise DrillBroken(f"topic drilled: {reply.topics[0].error_message}")
    ground.noted["created_at_s"] = round(time.monotonic() - ground.begun, 1)


#: Short sessions: what is measured is what follows from their end.
_SESSIONS = {"BROKERS__SESSION_TIMEOUT_MS": "3000"}

DRILLS: Final = (
    Drill(
        "mass-broker-loss",
        "half of the brokers die at once: when their sessions have ended every partition is led by those that are left",
        (
            Expectation(
                name="leaderless_ms", meaning="from the kill until every partition is led (session: 3 s), ms",
                at_most=8_000,
            ),
            healthy_again(30_000),
        ),
        mass_broker_loss,
        brokers=4,
        controller_settings=_SESSIONS,
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
        controller_settings=_SESSIONS,
    ),
)  # fmt: skip
