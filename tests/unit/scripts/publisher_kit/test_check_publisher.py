"""The test of publishers: right ones pass, and each of the ways to be wrong is found, with seed and step."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import pytest

from quorate.publishers import EMPTY_IMAGE, ControllerEpoch, Manifest, MetadataDelta, MetadataImage, MetadataPublisher
from quorate.testing import HISTORY_BROKERS, PublisherDiffers, check_publisher

Led = dict[tuple[str, int], int]


def led_by(broker: int, image: MetadataImage) -> Led:
    """What a broker leads, with the leader epoch, from the state alone."""
    found = {}
    for name, topic in image.topics.by_name.items():
        for number, state in image.partitions.partitions_of(topic.id):
            if state.leader == broker:
                found[name, number] = state.leader_epoch
    return found


class Leader(MetadataPublisher):
    """Follows what a broker leads, by deltas. Its parts are what the wrong ones below have otherwise."""

    broker: ClassVar[int] = 2

    def __init__(self) -> None:
        self.led: Led = {}

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if manifest.follows_failure:
            self.led, delta = {}, MetadataDelta(EMPTY_IMAGE, image)
        self.forget(delta)
        self.learn(delta)

    def forget(self, delta: MetadataDelta) -> None:
        local = delta.local_changes(self.broker)
        for one in local.stopped() + local.followed():
            self.led.pop((one.topic, one.partition_id), None)

    def learn(self, delta: MetadataDelta) -> None:
        for one in delta.local_changes(self.broker).led():
            self.led[one.topic, one.partition_id] = one.state.leader_epoch


class IgnoresDeletions(Leader):
    def forget(self, delta: MetadataDelta) -> None:
        for one in delta.local_changes(self.broker).followed():
            self.led.pop((one.topic, one.partition_id), None)


class IgnoresFailures(Leader):
    """Goes on from half of an update that failed."""

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        super().on_metadata_update(delta, image, replace(manifest, follows_failure=False))


class ForgetsLast(Leader):
    """A topic that is deleted and made again in one update is lost."""

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        self.learn(delta)
        self.forget(delta)


class LearnsElectionsByName(Leader):
    """Takes no new leader epoch where it led before."""

    def learn(self, delta: MetadataDelta) -> None:
        for one in delta.local_changes(self.broker).led():
            self.led.setdefault((one.topic, one.partition_id), one.state.leader_epoch)


class IgnoresWholeImages(Leader):
    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if not manifest.is_checkpoint or not self.led:
            super().on_metadata_update(delta, image, manifest)


class TakesWholeImagesAsNews(Leader):
    """Forgets all when a state is loaded whole, and learns what the delta has: not what is the same."""

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if manifest.is_checkpoint:
            self.led = {}
        super().on_metadata_update(delta, image, manifest)


class IgnoresOlderStates(Leader):
    offset = -1

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if manifest.offset >= self.offset:
            self.offset = manifest.offset
            super().on_metadata_update(delta, image, manifest)


class StopsWithoutController(Leader):
    def on_controller_change(self, controller: ControllerEpoch) -> None:
        if controller.leader_id is None:
            self.led = {}


class FailsWhenATopicGoes(Leader):
    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        super().on_metadata_update(delta, image, manifest)
        if delta.topics.removed and not manifest.is_checkpoint:
            raise KeyError("no such topic")


class Labels(MetadataPublisher):
    """Follows all labels, by deltas."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, str]] = {}

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if manifest.follows_failure:
            self.values, delta = {}, MetadataDelta(EMPTY_IMAGE, image)
        for resource in delta.labels.removed:
            self.values.pop(resource, None)
        for resource in delta.labels.updated:
            self.values[resource] = dict(image.labels.of(resource))


class NoLabels(Labels):
    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        """Does nothing."""


class KeepsLabelsThatAreGone(Labels):
    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        for resource in delta.labels.updated:
            self.values.setdefault(resource, {}).update(image.labels.of(resource))


class StartsTasks(Leader):
    """Leaves its work to a task, as one does whose work takes long."""

    done: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.tasks: set[asyncio.Task[None]] = set()

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        super().on_metadata_update(delta, image, manifest)
        self.tasks.add(asyncio.get_running_loop().create_task(self.work()))

    async def work(self) -> None:
        StartsTasks.done += 1


class Counter(MetadataPublisher):
    """How many partitions there are, counted by what came and went: an update that comes twice counts twice."""

    def __init__(self) -> None:
        self.count = 0

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        new = int((delta.partitions.old_rows < 0).sum())
        self.count += new - len(delta.partitions.removed_rows)


def check(make: Callable[[], Leader], broker: int = 2, **more: object) -> None:
    check_publisher(make, lambda leader: leader.led, lambda image: led_by(broker, image), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("broker", HISTORY_BROKERS)
def test_publisher_that_is_right_passes(broker: int) -> None:
    class OfBroker(Leader):
        pass

    OfBroker.broker = broker
    check(OfBroker, broker, seeds=range(2))


WRONG: list[type[Leader]] = [
    IgnoresDeletions,
    IgnoresFailures,
    ForgetsLast,
    LearnsElectionsByName,
    IgnoresWholeImages,
    TakesWholeImagesAsNews,
    IgnoresOlderStates,
    StopsWithoutController,
    FailsWhenATopicGoes,
]


@pytest.mark.parametrize("make", WRONG)
def test_publisher_that_is_wrong_is_found_with_the_seed_and_step_that_show_it_again(make: type[Leader]) -> None:
    with pytest.raises(PublisherDiffers) as first:
        check(make)
    matched = re.match(r"seed (\d+)\b.*, step \d+: ", str(first.value))
    assert matched is not None

    with pytest.raises(PublisherDiffers) as again:
        check(make, seeds=[int(matched[1])])
    assert str(again.value) == str(first.value)


def check_labels(make: Callable[[], Labels], seeds: range) -> None:
    def expected(image: MetadataImage) -> dict[str, dict[str, str]]:
        return {resource: dict(image.labels.of(resource)) for resource in image.labels.resources}

    check_publisher(make, lambda labels: labels.values, expected, seeds=seeds)


def test_publisher_of_labels_that_is_right_passes() -> None:
    check_labels(Labels, range(2))


@pytest.mark.parametrize("make", [NoLabels, KeepsLabelsThatAreGone])
def test_publisher_of_labels_that_is_wrong_is_found(make: type[Labels]) -> None:
    with pytest.raises(PublisherDiffers, match=r"^seed \d+"):
        check_labels(make, range(4))


def test_publisher_that_starts_tasks_passes_and_they_run() -> None:
    StartsTasks.done = 0
    check(StartsTasks, seeds=[0])
    assert StartsTasks.done


async def test_publisher_that_starts_tasks_passes_in_a_loop_that_runs_already() -> None:
    StartsTasks.done = 0
    check(StartsTasks, seeds=[0])
    await asyncio.sleep(0)
    assert StartsTasks.done


def test_update_that_is_counted_twice_is_found() -> None:
    with pytest.raises(PublisherDiffers, match=r"the next update fails after the publisher has it"):
        check_publisher(Counter, lambda counter: counter.count, lambda image: len(image.partitions))


def test_publisher_that_changes_nothing_when_it_raises_need_not_look_at_failures() -> None:
    check(IgnoresFailures, seeds=range(2), is_atomic=True)


def test_message_says_what_is_too_much_and_what_is_missing_and_the_way_there() -> None:
    with pytest.raises(PublisherDiffers) as caught:
        check_publisher(IgnoresDeletions, lambda leader: {*leader.led}, lambda image: {*led_by(2, image)}, seeds=[0])
    what, *steps = str(caught.value).splitlines()
    assert re.search(r", step \d+: it has too much: \[\('\w+', \d\).*\]$", what)
    assert len(steps) >= 2
    assert steps[-1].startswith("  step ")


def test_error_of_a_publisher_is_told_with_its_cause() -> None:
    with pytest.raises(PublisherDiffers, match=r"it raised KeyError: 'no such topic'") as caught:
        check(FailsWhenATopicGoes)
    assert isinstance(caught.value.__cause__, KeyError)
    assert isinstance(caught.value, AssertionError)
