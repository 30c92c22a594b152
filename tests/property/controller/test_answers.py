"""Answers about events: equal to what the controller does when they really happen.

Five times as many clusters as here: `scripts/test --hypothesis-profile=long tests/property/controller/test_answers.py`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from quorate.answers import answers_of
from quorate.controller.answers.can_stop import stop_brokers
from quorate.controller.answers.explain import explain
from quorate.controller.answers.hardship import Hardship
from quorate.controller.answers.rehearsal import Rehearsal
from quorate.controller.answers.subjects import AskedPartitions
from quorate.controller.answers.what_if import rehearsed
from quorate.controller.api.answers.answer_models import StopManner, WhatIfStep
from quorate.controller.protocol import ReassignablePartition, ReassignableTopic
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import BROKER_RESOURCE, TOPIC_RESOURCE
from quorate.snapshots.table.partition import RECOVERING, Partition
from tests.unit.controller.answer_stage import CONFIG, RandomState, RealController

STATIC = Path(__file__).parents[2] / "data" / "kafka" / "static"
CLUSTERS = 200
if settings.get_current_profile_name() == "long":
    CLUSTERS *= 5

EVENTS = (
    "stop",
    "stop rack",
    "crash",
    "start",
    "start",
    "start rack",
    "lose",
    "apply",
    "apply",
    "catch up",
    "catch up",
)

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


def captured(moment: str) -> RealController:
    """The controller on the state of a captured cluster of some 3,000 partitions."""
    image = load_image(STATIC / moment / "log")
    real = RealController([(one.record, one.version) for one in image_records(image)])
    assert states(real.image) == states(image)
    return real


async def status_of(image: MetadataImage) -> dict[str, object]:
    """What `status` says of it, but for the quorum, whose offsets are those of each log."""
    now = (await answers_of(image).what_if([WhatIfStep(event="catch-up")])).before
    return now.model_dump(exclude={"quorum"})


async def test_status_of_a_captured_cluster_after_a_stop_is_the_one_that_was_told() -> None:
    """With the counts of all derived states, and each partition to its epochs."""
    real = captured("m3")
    stop = WhatIfStep(event="stop", brokers=[14])
    told = (await answers_of(real.image).what_if([stop])).after
    expected = rehearsed(real.image, CONFIG, [stop]).image
    assert (told.partitions.offline, told.partitions.under_replicated) == (1, 2806)

    await real.stop([14])

    assert await status_of(real.image) == told.model_dump(exclude={"quorum"})
    assert states(real.image) == states(expected)


async def test_explanation_of_a_captured_cluster_says_how_many_are_led_again_and_so_it_comes() -> None:
    real = captured("m2")
    first, second = explain(AskedPartitions().scope(real.image), CONFIG, 0, {}).remedies
    for remedy, led_again, left in ((first, 780, 2), (second, 2, 0)):
        before = real.elected.last_known
        assert (remedy.code, remedy.led_again, remedy.risk) == ("START_BROKER", led_again, "LAST_KNOWN_LEADER")
        assert remedy.broker is not None
        await real.start(remedy.broker)
        assert real.elected.last_known - before == led_again
        assert len(suffering(real.image)[0]) == left


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
@example(30)  # a leader's request for several partitions, of which one changes the minimum of another
@example(39_916_800)  # a rack in which one broker is down already is stopped
@settings(max_examples=CLUSTERS // 2)
def test_state_after_events_that_do_not_happen_is_the_one_after_they_have(seed: int) -> None:
    asyncio.run(_followed(RandomState(seed), Random(seed)))


async def _followed(state: RandomState, chance: Random) -> None:
    """Step by step, and then all of them in one question."""
    real = RealController(state.records)
    first = image = real.image
    steps: list[WhatIfStep] = []
    for event in chance.choices(EVENTS, k=chance.randint(1, 5)):
        step = _step(image, event, chance)
        if step is None:
            continue
        image = rehearsed(image, CONFIG, [step]).image
        await _happened(real, step)
        assert states(image) == states(real.image), step
        steps.append(step)
    if steps:
        whole = rehearsed(first, CONFIG, steps)
        assert states(whole.image) == states(real.image)
        assert whole.elected == real.elected


def _step(image: MetadataImage, event: str, chance: Random) -> WhatIfStep | None:
    """An event of this kind that can happen; None: there is none."""
    brokers = sorted(image.cluster.brokers.values(), key=lambda one: one.id)
    running = [one for one in brokers if not one.is_fenced]
    fenced = [one for one in brokers if one.is_fenced]
    racks = {one.rack for one in brokers if one.rack is not None}
    step: WhatIfStep | None = None
    match event:
        case "stop" if running:
            step = WhatIfStep(event="stop", brokers=[chance.choice(running).id])
        case "stop rack":
            step = WhatIfStep(event="stop", racks=[chance.choice(sorted(racks))])
        case "crash" if running:
            # One: in which order several are fenced is the memory of a controller that has seen them come and go.
            step = WhatIfStep(event="crash", brokers=[chance.choice(running).id])
        case "start" if fenced:
            step = WhatIfStep(event="start", brokers=[chance.choice(fenced).id])
        case "start rack":
            down = sorted(racks - {one.rack for one in running})
            step = WhatIfStep(event="start", racks=[chance.choice(down)]) if down else None
        case "lose" if any(one.directories for one in running):
            loser = chance.choice([one for one in running if one.directories])
            step = WhatIfStep(event="lose-directory", directories=[chance.choice(loser.directories)])
        case "apply":
            plan = _plan(image, chance)
            step = WhatIfStep(event="reassign", topics=plan) if plan else None
        case "catch up":
            step = WhatIfStep(event="catch-up")
    return step


def _plan(image: MetadataImage, chance: Random) -> list[ReassignableTopic]:
    """Moves of some partitions, and cancellations, that are in order one by one."""
    ids = sorted(broker.id for broker in image.cluster.brokers.values())
    chosen = [(name, number) for name, number, _ in partitions(image) if chance.random() < 0.4]
    plan: dict[str, list[ReassignablePartition]] = {}
    for name, number in chosen:
        target = chance.sample(ids, chance.randint(1, len(ids))) if chance.random() < 0.8 else None
        moved = ReassignablePartition(partition_index=number, replicas=target)
        try:
            Rehearsal(image, CONFIG).reassign([ReassignableTopic(name=name, partitions=[moved])])
        except ApiError:
            continue
        plan.setdefault(name, []).append(moved)
    return [ReassignableTopic(name=name, partitions=moves) for name, moves in plan.items()]


async def _happened(real: RealController, step: WhatIfStep) -> None:
    """The same, done to the whole controller."""
    brokers = sorted(real.image.cluster.brokers.values(), key=lambda one: one.id)
    meant = [*step.brokers, *(one.id for one in brokers if one.rack in step.racks)]
    match step.event:
        case "stop":
            await real.stop(meant)
        case "crash":
            await real.crash(meant)
        case "start":
            for broker in meant:
                await real.start(broker)
        case "lose-directory":
            (directory,) = step.directories
            (owner,) = [one.id for one in brokers if directory in one.directories]
            await real.lose_directory(owner, directory)
        case "reassign":
            assert set(await real.reassign(list(step.topics))) == {ErrorCode.NONE}
        case "catch-up":
            await real.catch_up()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=CLUSTERS // 2)
def test_reassignment_is_refused_in_an_answer_as_it_is_in_reality(seed: int) -> None:
    asyncio.run(_refused_alike(RandomState(seed), Random(seed)))


async def _refused_alike(state: RandomState, chance: Random) -> None:
    real = RealController(state.records)
    name, number, _ = chance.choice(list(partitions(real.image)))
    ids = [broker.id for broker in real.image.cluster.brokers.values()]
    target = chance.sample(ids, chance.randint(1, len(ids))) if chance.random() < 0.5 else None
    topics = [ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=number, replicas=target)])]
    code = ErrorCode.NONE
    try:
        rehearsed(real.image, CONFIG, [WhatIfStep(event="reassign", topics=topics)])
    except ApiError as error:
        code = error.code
    assert await real.reassign(topics) == [code]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=CLUSTERS // 2)
def test_remedies_bring_what_they_say_when_they_are_carried_out_in_their_order(seed: int) -> None:
    asyncio.run(_remedied(RandomState(seed)))


async def _remedied(state: RandomState) -> None:
    real = RealController(state.records)
    found = explain(AskedPartitions().scope(real.image), CONFIG, 0, {})
    assert {one.code: one.partitions for one in found.symptoms} == _symptoms(real.image)
    for symptom in found.symptoms:
        causes = {(one.code, one.broker): one.partitions for one in symptom.causes}
        assert causes == _missed(real.image, symptom.code), symptom
    for remedy in found.remedies:
        if remedy.code == "START_BROKER" and remedy.broker is not None:
            offline, elected = suffering(real.image)[0], real.elected
            await real.start(remedy.broker)
            assert len(offline) - len(suffering(real.image)[0]) == remedy.led_again
            last_known = real.elected.last_known - elected.last_known
            unclean = real.elected.unclean - elected.unclean - last_known
            told = (remedy.elections.from_eligible, remedy.elections.last_known, remedy.elections.unclean)
            assert told == (real.elected.from_eligible - elected.from_eligible, last_known, unclean)
            assert remedy.risk == ("UNCLEAN" if unclean else "LAST_KNOWN_LEADER" if last_known else "NONE")


def _symptoms(image: MetadataImage) -> dict[str, int]:
    """How many partitions are in each, one by one; what nobody is in is left out."""
    counts = Counter[str]()
    for topic, _, partition in partitions(image):
        counts["PARTITIONS_OFFLINE"] += partition.leader == -1
        counts["PARTITIONS_UNDER_MIN_ISR"] += len(partition.isr) < min_isr(image, topic, partition)
        counts["PARTITIONS_UNDER_REPLICATED"] += bool(_out(partition) - {*partition.adding_replicas})
        counts["REASSIGNMENTS_OPEN"] += partition.is_reassigning
    return {code: count for code, count in counts.items() if count}


def _missed(image: MetadataImage, code: str) -> dict[tuple[str, int], int]:
    """Why and by whom a symptom is explained, with the number of its partitions, one by one."""
    counts = Counter[tuple[str, int]]()
    for topic, _, partition in partitions(image):
        missed: set[int] = set()
        is_under = len(partition.isr) < min_isr(image, topic, partition)
        if code == "PARTITIONS_OFFLINE" and partition.leader == -1:
            missed = {*partition.isr} or {*partition.elr} or {*partition.last_known_elr} or {*partition.replicas}
        elif code == "REASSIGNMENTS_OPEN" and partition.is_reassigning:
            missed = _awaited(partition)
        elif code == "PARTITIONS_UNDER_REPLICATED" or (code == "PARTITIONS_UNDER_MIN_ISR" and is_under):
            missed = _out(partition) - {*partition.adding_replicas}
        counts.update((_why(image, partition, broker), broker) for broker in missed)
    return dict(counts)


def _awaited(partition: Partition) -> set[int]:
    """The replicas without which it does not end: those that come, and all that stay where fewer come than go."""
    come, go = {*partition.adding_replicas}, {*partition.removing_replicas}
    needed = come if len(come) >= len(go) else {*partition.replicas} - go
    return needed - {*partition.isr}


def _why(image: MetadataImage, partition: Partition, broker_id: int) -> str:
    broker = image.cluster.brokers[broker_id]
    if broker.is_fenced:
        return "BROKER_DOWN"
    directory = dict(zip(partition.replicas, partition.directories, strict=True))[broker_id]
    return "NOT_CAUGHT_UP" if broker.has_online(directory) else "DIRECTORY_OFFLINE"


def _out(partition: Partition) -> set[int]:
    return {*partition.replicas} - {*partition.isr}
