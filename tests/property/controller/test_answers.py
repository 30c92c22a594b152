"""Answers about stopping brokers: equal to what the controller does when they are really stopped.

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
from quorate.controller.api.answer_models import StopManner
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.snapshots.table.partition import RECOVERING, Partition
from tests.unit.controller.answer_stage import CONFIG, RandomState, RealController

CLUSTERS = 200
if settings.get_current_profile_name() == "long":
    CLUSTERS *= 5

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
