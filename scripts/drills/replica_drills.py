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
from quorate.scripts.drills.environment import DEADLINE_S, DrillBroken, DrillEnvironment
from quorate.scripts.drills.outcome import Expectation

_PARTITIONS: Final = 20
_WRITE_BYTES_PER_S: Final = 1_000_000


async def frozen_target(environment: DrillEnvironment) -> None:
    """A reassignment goes on when its target does, and not before: nobody else's data are dropped meanwhile."""
    *others, target = [environment.brokers[number] for number in sorted(environment.brokers)]
    first, second = others[0].id, others[-1].id
    name = await _create(environment, [first, second])
    frozen = environment.event("fault", f"SIGSTOP {target.name}")
    await environment.control.pause(target)
    await _move(environment, name, [target.id, first])
    environment.event("seen", f"{_PARTITIONS} partitions are being moved to broker {target.id}, away from {second}")
    await environment.until(
        lambda s: all(b.state == "fenced" for b in s.brokers if b.id in target.ids), "the frozen broker is fenced"
    )
    fenced = environment.event("seen", f"broker {target.id} is fenced")
    environment.noted["fenced_after_s"] = round(fenced - frozen, 1)
    await environment.load.more()
    status = await environment.status()
    environment.event("seen", f"{status.partitions.reassigning} are being moved")
    environment.measure("completed_while_frozen", _PARTITIONS - status.partitions.reassigning)
    thawed = environment.event("repair", f"SIGCONT {target.name}")
    await environment.control.resume(target)
    await environment.until(lambda s: s.partitions.reassigning == 0, "the reassignments are complete")
    done = environment.event("seen", "all are complete")
    environment.measure("completed_ms", (done - thawed) * 1000)
    await environment.settle(thawed)


async def slow_follower(environment: DrillEnvironment) -> None:
    """A follower copies at half the rate of the writes: it leaves the ISRs, and is back when it is quick again."""
    nodes = [environment.brokers[number] for number in sorted(environment.brokers)]
    await _create(environment, [node.id for node in nodes])
    await environment.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    victim = nodes[-1]
    slowed = environment.event("fault", f"{victim.name} copies at half the rate at which is written")
    await _set_pace(environment, victim, _WRITE_BYTES_PER_S // 2)
    # Of those that it leads itself it has everything.
    await environment.until(lambda s: s.partitions.under_replicated > 0, "its replicas are out of the ISRs")
    out = environment.event("seen", "its replicas are out of the ISRs")
    environment.measure("fell_out_ms", (out - slowed) * 1000)
    environment.measure("offline_partitions", (await environment.status()).partitions.offline)
    quick = environment.event("repair", f"{victim.name} copies without a limit")
    await _set_pace(environment, victim, 0)
    await environment.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    full = environment.event("seen", "all ISRs are full")
    environment.measure("isr_full_ms", (full - quick) * 1000)
    await environment.load.more()
    await environment.settle(quick)


async def failed_directory(environment: DrillEnvironment) -> None:
    """One of a broker's two log directories fails: its replicas alone go offline, until the broker is started anew."""
    nodes = [environment.brokers[number] for number in sorted(environment.brokers)]
    victim = nodes[0]
    name = await _create(environment, [node.id for node in nodes])
    before = await _places(environment, name, victim)
    failed = environment.event("fault", f"a log directory of {victim.name} fails")
    lost = await _fail_directory(environment, victim)
    in_lost = {number for number, (directory, _) in before.items() if directory == lost}
    if not 0 < len(in_lost) < len(before):
        raise DrillBroken(f"{len(in_lost)} of {len(before)} replicas lay in the directory that failed")
    await _until_out(environment, name, victim, len(in_lost))
    moved = environment.event("seen", f"{len(in_lost)} replicas are offline, others lead their partitions")
    environment.measure("moved_ms", (moved - failed) * 1000)
    environment.measure("offline_partitions", (await environment.status()).partitions.offline)
    after = await _isrs(environment, name)
    wrong = [number for number, isr in after.items() if (victim.id in isr) == (number in in_lost)]
    environment.measure("wrong_replicas", len(wrong))
    await environment.load.more()
    await environment.kill(victim)
    started = await environment.restart(victim)
    await environment.until(lambda s: s.partitions.under_replicated == 0, "all ISRs are full")
    full = environment.event("seen", "an empty directory has taken its place: all ISRs are full")
    environment.measure("isr_full_ms", (full - started) * 1000)
    await environment.settle(started)


async def _until_out(environment: DrillEnvironment, topic: str, node: LocalNode, count: int) -> None:
    """Until so many of a topic's ISRs are without a broker."""

    async def look() -> bool | None:
        return sum(node.id not in isr for isr in (await _isrs(environment, topic)).values()) >= count or None

    await environment.cluster.until(look, "its replicas are out of the ISRs", DEADLINE_S)


async def _places(
    environment: DrillEnvironment, topic: str, node: LocalNode
) -> dict[int, tuple[bytes, tuple[int, ...]]]:
    """By partition where a broker's replica lies, once it has said so of all, and the ISR."""

    async def look() -> dict[int, tuple[bytes, tuple[int, ...]]] | None:
        known = (await environment.cluster.client.describe_broker(node.id)).directories
        found = {
            one.partition_index: (one.directories[one.replica_nodes.index(node.id)], tuple(one.isr_nodes))
            for one in (await environment.cluster.client.describe_topic(topic, is_linearizable=True)).topic.partitions
        }
        return found if all(directory in known for directory, _ in found.values()) else None

    return await environment.cluster.until(look, f"{node.name} has said where its replicas lie", DEADLINE_S)


async def _isrs(environment: DrillEnvironment, topic: str) -> dict[int, list[int]]:
    described = await environment.cluster.client.describe_topic(topic, is_linearizable=True)
    return {one.partition_index: one.isr_nodes for one in described.topic.partitions}


async def _fail_directory(environment: DrillEnvironment, node: LocalNode) -> bytes:
    url = f"{node.url}/v1/brokers/{node.id}/directories/fail"
    async with aiohttp.ClientSession() as session, session.post(url, json={}, ssl=environment.ssl) as answer:
        if answer.status != 200:
            raise DrillBroken(f"no directory of {node.name} can be made to fail: {await answer.text()}")
        return uuid_from_text((await answer.json())["failed"][0])


async def _create(environment: DrillEnvironment, brokers: Sequence[int]) -> str:
    """A topic whose partitions have these replicas."""
    name = f"{environment.prefix}-drilled"
    places = [ReplicaAssignment(partition_index=n, broker_ids=list(brokers)) for n in range(_PARTITIONS)]
    reply = await environment.cluster.client.create_topics(
        CreateTopicsRequest(topics=[CreatableTopic(name=name, assignments=places)])
    )
    if reply.topics[0].error_code != ErrorCode.NONE:
        raise DrillBroken(f"topic {name}: {reply.topics[0].error_message}")
    return name


async def _move(environment: DrillEnvironment, name: str, brokers: Sequence[int]) -> None:
    partitions = [ReassignablePartition(partition_index=n, replicas=list(brokers)) for n in range(_PARTITIONS)]
    reply = await environment.cluster.client.alter_partition_reassignments(
        AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=name, partitions=partitions)])
    )
    for result in reply.responses[0].partitions:
        if result.error_code != ErrorCode.NONE:
            raise DrillBroken(f"{name}-{result.partition_index} cannot be moved: {result.error_message}")


async def _set_pace(environment: DrillEnvironment, node: LocalNode, copy_bytes_per_s: int) -> None:
    url, body = f"{node.url}/v1/rehearsal", {"copy_bytes_per_s": copy_bytes_per_s}
    async with aiohttp.ClientSession() as session, session.put(url, json=body, ssl=environment.ssl) as answer:
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
