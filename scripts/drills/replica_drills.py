"""Drills on what an ISR rests on: a target that is not there, a follower that cannot keep up, a disk that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import aiohttp

from quorate.controller.protocol import (
    AlterPartitionReassignmentsRequest,
    CreatableTopic,
    CreateTopicsRequest,
    ReassignablePartition,
    ReassignableTopic,
    ReplicaAssignment,
)
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.ids import uuid_from_text
from quorate.scripts.cluster.members import LocalNode
from quorate.scripts.drills.drill import PAUSE, Drill, healthy_again
from quorate.scripts.drills.environment import DEADLINE_S, DrillBroken, Ground
from quorate.scripts.drills.outcome import Expectation

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
    await ground.load.more()
    await ground.settle(quick)


async def failed_directory(ground: Ground) -> None:
    """One of a broker's two log directories fails: its replicas alone go offline, until the broker is started anew."""
    nodes = [ground.brokers[number] for number in sorted(ground.brokers)]
    victim = nodes[0]
    name = await _create(ground, [node.id for node in nodes])
    before = await _places(ground, name, victim)
    failed = ground.event("fault", f"a log directory of {victim.name} fails")
    lost = await _fail_directory(victim)
    in_lost = {number for number, (directory, _) in before.items() if directory == lost}
    if not 0 < len(in_lost) < len(before):
        raise DrillBroken(f"{len(in_lost)} of {len(before)} replicas lay in the directory that failed")
    await _until_out(ground, name, victim, len(in_lost))
    moved = ground.event("seen", f"{len(in_lost)} replicas are offline, others lead their partitions")
    ground.measure("moved_ms", (moved - failed) * 1000)
    ground.measure("offline_partitions", (await ground.status()).partitions.offline)
    after = await _isrs(ground, name)
    wrong = [number for number, isr in after.items() if (victim.id in isr) == (number in in_lost)]
    ground.measure("wrong_replicas", len(wrong))
    await ground.load.more()
    await ground.kill(victim)
    started = await ground.restart(victim)
    await ground.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    full = ground.event("seen", "an empty directory has taken its place: all ISRs are full")
    ground.measure("isr_full_ms", (full - started) * 1000)
    await ground.settle(started)


async def _until_out(ground: Ground, topic: str, node: LocalNode, count: int) -> None:
    """Until so many of a topic's ISRs are without a broker."""

    async def look() -> bool | None:
        return sum(node.id not in isr for isr in (await _isrs(ground, topic)).values()) >= count or None

    await ground.cluster.until(look, "its replicas are out of the ISRs", DEADLINE_S)


async def _places(ground: Ground, topic: str, node: LocalNode) -> dict[int, tuple[bytes, tuple[int, ...]]]:
    """By partition where a broker's replica lies, once it has said so of all, and the ISR."""

    async def look() -> dict[int, tuple[bytes, tuple[int, ...]]] | None:
        known = (await ground.cluster.client.describe_broker(node.id)).directories
        found = {
            one.partition_index: (one.directories[one.replica_nodes.index(node.id)], tuple(one.isr_nodes))
            for one in (await ground.cluster.client.describe_topic(topic)).topic.partitions
        }
        return found if all(directory in known for directory, _ in found.values()) else None

    return await ground.cluster.until(look, f"{node.name} has said where its replicas lie", DEADLINE_S)


async def _isrs(ground: Ground, topic: str) -> dict[int, list[int]]:
    described = await ground.cluster.client.describe_topic(topic, is_linearizable=True)
    return {one.partition_index: one.isr_nodes for one in described.topic.partitions}


async def _fail_directory(node: LocalNode) -> bytes:
    url = f"{node.url}/v1/brokers/{node.id}/directories/fail"
    async with aiohttp.ClientSession() as session, session.post(url, json={}) as answer:
        if answer.status != 200:
            raise DrillBroken(f"no directory of {node.name} can be made to fail: {await answer.text()}")
        return uuid_from_text((await answer.json())["failed"][0])


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


async def _set_pace(node: LocalNode, copy_bytes_per_s: int) -> None:
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
    Drill(
        "failed-directory",
        "one of a broker's two log directories fails: what lay there is led by others, the rest is not touched",
        (
            Expectation(
                name="moved_ms", meaning="from the failure until its replicas are out of the ISRs, ms", at_most=3_000
            ),
            Expectation(name="offline_partitions", meaning="partitions without a leader meanwhile", at_most=0),
            Expectation(
                name="wrong_replicas", meaning="replicas out of an ISR that lay elsewhere, or still in one", at_most=0
            ),
            Expectation(
                name="isr_full_ms", meaning="from the broker's start until all ISRs are full, ms", at_most=20_000
            ),
            healthy_again(30_000),
        ),
        failed_directory,
        "rigs",
        broker_settings={"LOG_DIRECTORIES": "2"},
    ),
)  # fmt: skip
