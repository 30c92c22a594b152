"""Drills on what an ISR rests on: a reassignment to a broker that is not there, a follower that cannot keep up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aiohttp

from controller.protocol import (
    AlterPartitionReassignmentsRequest,
    CreatableTopic,
    CreateTopicsRequest,
    ReassignablePartition,
    ReassignableTopic,
    ReplicaAssignment,
)
from metadata_log.errors import ErrorCode
from scripts.cluster.members import Node
from scripts.drills.drill import PAUSE, Drill, healthy_again
from scripts.drills.ground import DrillBroken, Ground
from scripts.drills.outcome import Expectation

_PARTITIONS: Final = 20
_WRITE_BYTES_PER_S: Final = 1_000_000


async def frozen_target(ground: Ground) -> None:
    """A reassignment goes on when its target does, and not before: nobody else's data are dropped meanwhile."""
    *others, target = [ground.brokers[number] for number in sorted(ground.brokers)]
    first, second = others[0].id, others[-1].id
    name = await _create(ground, [first, second])
    frozen = ground.event("fault", f"SIGSTOP {target.name}")
    await ground.control.pause(target)
    await _move(ground, name, [target.id, first])
    ground.event("seen", f"{_PARTITIONS} partitions are being moved to broker {target.id}, away from {second}")
    await ground.until(
        lambda s: all(b.state == "fenced" for b in s.brokers if b.id in target.ids), "the frozen broker is fenced"
    )
    status = await ground.status()
    fenced = ground.event("seen", f"broker {target.id} is fenced; {status.partitions.reassigning} are being moved")
    ground.noted["fenced_after_s"] = round(fenced - frozen, 1)
    ground.measure("completed_while_frozen", _PARTITIONS - status.partitions.reassigning)
    thawed = ground.event("repair", f"SIGCONT {target.name}")
    await ground.control.resume(target)
    await ground.until(lambda s: s.partitions.reassigning == 0, "the reassignments are complete")
    done = ground.event("seen", "all are complete")
    ground.measure("completed_ms", (done - thawed) * 1000)
    await ground.settle(thawed)


async def slow_follower(ground: Ground) -> None:
    """A follower copies at half the rate of the writes: it leaves the ISRs, and is back when it is quick again."""
    nodes = [ground.brokers[number] for number in sorted(ground.brokers)]
    await _create(ground, [node.id for node in nodes])
    await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    victim = nodes[-1]
    async with ground.load() as load:
        slowed = ground.event("fault", f"{victim.name} copies at half the rate at which is written")
        await _set_pace(victim, _WRITE_BYTES_PER_S // 2)
        # Of those that it leads itself it has everything.
        await ground.until(lambda s: s.partitions.under_replicated > 0, "its replicas are out of the ISRs")
        out = ground.event("seen", "its replicas are out of the ISRs")
        ground.measure("fell_out_ms", (out - slowed) * 1000)
        ground.measure("offline_partitions", (await ground.status()).partitions.offline)
        quick = ground.event("repair", f"{victim.name} copies without a limit")
        await _set_pace(victim, 0)
        await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
        full = ground.event("seen", "all ISRs are full")
        ground.measure("isr_full_ms", (full - quick) * 1000)
        await load.more()
    await ground.settle(quick)


async def _create(ground: Ground, brokers: Sequence[int]) -> str:
    """A topic whose partitions have these replicas."""
    name = f"{ground.prefix}-drilled"
    places = [ReplicaAssignment(partition_index=n, broker_ids=list(brokers)) for n in range(_PARTITIONS)]
    reply = await ground.cluster.client.create_topics(
        CreateTopicsRequest(topics=[CreatableTopic(name=name, assignments=places)])
    )
    if reply.topics[0].error_code != ErrorCode.NONE:
        raise DrillBroken(f"topic {name}: {reply.topics[0].error_message}")
    return name


async def _move(ground: Ground, name: str, brokers: Sequence[int]) -> None:
    partitions = [ReassignablePartition(partition_index=n, replicas=list(brokers)) for n in range(_PARTITIONS)]
    reply = await ground.cluster.client.alter_partition_reassignments(
        AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=name, partitions=partitions)])
    )
    for result in reply.responses[0].partitions:
        if result.error_code != ErrorCode.NONE:
            raise DrillBroken(f"{name}-{result.partition_index} cannot be moved: {result.error_message}")


async def _set_pace(node: Node, copy_bytes_per_s: int) -> None:
    url, body = f"{node.url}/v1/rehearsal", {"copy_bytes_per_s": copy_bytes_per_s}
    async with aiohttp.ClientSession() as session, session.put(url, json=body) as answer:
        if answer.status != 200:
            raise DrillBroken(f"{node.name} cannot be slowed down: {await answer.text()}")


DRILLS: Final = (
    Drill(
        "frozen-target",
        "partitions are moved to a frozen broker: nothing is complete before it wakes, and everything soon after",
        (
            Expectation(
                name="completed_while_frozen", meaning="reassignments complete without their target", at_most=0
            ),
            Expectation(
                name="completed_ms", meaning="from its waking until all are complete, ms", at_most=20_000
            ),
            healthy_again(30_000),
        ),
        frozen_target,
        "kills",
        PAUSE,
        controller_settings={"BROKERS__SESSION_TIMEOUT_MS": "3000"},
    ),
    Drill(
        "slow-follower",
        "a broker copies at half the rate of the writes: it leaves the ISRs by its lag, and is back when it is quick",
        (
            # At half the rate the lag grows by half a second a second: some 6 s, and half the limit until it is seen.
            Expectation(
                name="fell_out_ms", meaning="from its slowing down until it is out of ISRs, ms", at_most=15_000
            ),
            Expectation(name="offline_partitions", meaning="partitions without a leader meanwhile", at_most=0),
            Expectation(
                name="isr_full_ms", meaning="from its being quick again until all ISRs are full, ms", at_most=15_000
            ),
            healthy_again(30_000),
        ),
        slow_follower,
        "rigs",
        broker_settings={
            "REHEARSAL__WRITE_BYTES_PER_S": str(_WRITE_BYTES_PER_S),
            "REPLICAS__LAG_TIME_MAX_MS": "3000",
        },
    ),
)  # fmt: skip
