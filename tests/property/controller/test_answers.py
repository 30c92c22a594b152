"""Answers about events: equal to what the controller does when they really happen.

Five times as many clusters as here: `scripts/test --hypothesis-profile=long tests/property/controller/test_answers.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.controller.answers.can_stop import stop_brokers
from quorate.controller.answers.hardship import Hardship
from quorate.controller.answers.rehearsal import Rehearsal
from quorate.controller.api.answer_models import StopManner
from quorate.controller.protocol import ReassignablePartition, ReassignableTopic
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.snapshots.table.partition import RECOVERING, Partition
from tests.unit.controller.answer_stage import CONFIG, RandomState, RealController

CLUSTERS = 200
if settings.get_current_profile_name() == "long":
    CLUSTERS *= 5

EVENTS = ("stop", "crash", "start", "start", "lose", "reassign", "reassign", "catch up", "catch up")

Named = set[tuple[str, int]]


def partitions(image: MetadataImage) -> Iterator[tuple[str, int, Partition]]:
    for topic in image.topics.by_id.values():
        for number, partition in image.partitions.partitions_of(topic.id):
            yield topic.name, number, partition


def min_isr(image: MetadataImage, topic: str, partition: Partition) -> int:
    """As the configs of the topic and of all brokers say it, read off one by one."""
    default = image.configs.of(BROKER_RESOURCE, "").get("min.insync.replicas", "1")
    wanted = image.configs.of(TOPIC_RESOURCE, topic).get("min.insync.replicas", default)
    return min(int(wanted), len(partition.replicas))


def suffering(image: MetadataImage) -> tuple[Named, Named, Named]:
    """Partitions that are offline, under their minimum, recovering: by their definitions, one by one."""
    offline, under, recovering = set(), set(), set()
    for topic, number, partition in partitions(image):
        if partition.leader == -1:
            offline.add((topic, number))
        if len(partition.isr) < min_isr(image, topic, partition):
            under.add((topic, number))
        if partition.leader_recovery_state == RECOVERING:
            recovering.add((topic, number))
    return offline, under, recovering


def named(image: MetadataImage, hardship: Hardship) -> tuple[Named, ...]:
    table = image.partitions
    return tuple(
        {(image.topics.by_id[table.topic_id(row)].name, table.partition_id(row)) for row in rows.tolist()}
        for rows in hardship
    )


def states(image: MetadataImage) -> list[object]:
    """All that is said of partitions and brokers, but for the epochs of brokers."""
    brokers = sorted((one.id, one.is_fenced, one.in_controlled_shutdown) for one in image.cluster.brokers.values())
    return [*brokers, *sorted(partitions(image), key=lambda one: one[:2])]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["shutdown", "crash"]))
@settings(max_examples=CLUSTERS)
def test_answer_whether_brokers_may_be_stopped_is_what_happens_when_they_are(seed: int, manner: StopManner) -> None:
    state, chance = RandomState(seed), Random(seed)
    chosen = chance.sample(state.brokers, chance.randint(1, len(state.brokers)))
    asyncio.run(_compared(state, chosen, manner))


async def _compared(state: RandomState, chosen: list[int], manner: StopManner) -> None:
    real = RealController(state.records)
    before = real.image
    answer = stop_brokers(before, CONFIG, chosen, manner)

    await (real.crash(chosen) if manner == "crash" else real.stop(chosen))

    happened = tuple(now - then for now, then in zip(suffering(real.image), suffering(before), strict=True))
    assert named(before, answer.hardship) == happened
    assert answer.may_stop == (not any(happened))
    assert states(answer.after) == states(real.image)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=CLUSTERS // 2)
def test_state_after_events_that_do_not_happen_is_the_one_after_they_have(seed: int) -> None:
    asyncio.run(_followed(RandomState(seed), Random(seed)))


async def _followed(state: RandomState, chance: Random) -> None:
    real = RealController(state.records)
    rehearsal = Rehearsal(real.image, CONFIG)
    for event in chance.choices(EVENTS, k=chance.randint(1, 5)):
        brokers = rehearsal.image.cluster.brokers.values()
        running = [broker for broker in brokers if not broker.is_fenced]
        match event:
            case "stop" if running:
                chosen = chance.choice(running).id
                rehearsal.stop(chosen)
                await real.stop([chosen])
            case "crash" if running:
                silent = {broker.id for broker in chance.sample(running, chance.randint(1, len(running)))}
                rehearsal.crash(silent)
                await real.crash(silent)
            case "start" if len(running) < len(brokers):
                chosen = chance.choice([broker.id for broker in brokers if broker.is_fenced])
                rehearsal.start(chosen)
                await real.start(chosen)
            case "lose" if any(broker.directories for broker in running):
                loser = chance.choice([broker for broker in running if broker.directories])
                directory = chance.choice(loser.directories)
                rehearsal.lose_directory(directory)
                await real.lose_directory(loser.id, directory)
            case "reassign":
                await _reassigned(rehearsal, real, chance)
            case "catch up":
                rehearsal.catch_up()
                await real.catch_up()
        assert states(rehearsal.image) == states(real.image)
    assert rehearsal.elected == real.elected


async def _reassigned(rehearsal: Rehearsal, real: RealController, chance: Random) -> None:
    name, number, _ = chance.choice(list(partitions(rehearsal.image)))
    ids = [broker.id for broker in rehearsal.image.cluster.brokers.values()]
    target = chance.sample(ids, chance.randint(1, len(ids))) if chance.random() < 0.8 else None
    topics = [ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=number, replicas=target)])]
    code = ErrorCode.NONE
    try:
        rehearsal.reassign(topics)
    except ApiError as error:
        code = error.code
    assert await real.reassign(topics) == code
