"""Publishers: what each is told, and that none of them can disturb another."""

import asyncio

import pytest
from structlog.testing import capture_logs

from quorate.broker.publisher import ControllerEpoch, DuplicatePublisher, Manifest, MetadataPublisher, PublisherSet
from quorate.metadata_log.records.records import NoOpRecord, TopicRecord
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from tests.unit.broker.images import change, cluster_image, partition, replayed, uuid


class Listener(MetadataPublisher):
    """Keeps what it was told, NoOps included; raises when it is told to."""

    wants_every_offset = True

    def __init__(self, name: str) -> None:
        self._name = name
        self.told: list[tuple[int, int, bool]] = []
        self.controllers: list[ControllerEpoch] = []
        self.fails = False
        self.is_closed = False

    @property
    def name(self) -> str:
        return self._name

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if self.fails:
            raise RuntimeError("as it was told")
        assert delta.new is image
        self.told.append((delta.old.provenance.end_offset, image.provenance.end_offset, manifest.is_checkpoint))

    def on_controller_change(self, controller: ControllerEpoch) -> None:
        if self.fails:
            raise RuntimeError("as it was told")
        self.controllers.append(controller)

    def close(self) -> None:
        self.is_closed = True
        if self.fails:
            raise RuntimeError("as it was told")


def images(count: int) -> list[MetadataImage]:
    """Images that follow each other, one record apart."""
    made = [cluster_image([1, 2], [partition(0, 0, [1, 2])])]
    while len(made) < count:
        made.append(replayed(made[-1], NoOpRecord()))
    return made


def publish(publishers: PublisherSet, image: MetadataImage) -> None:
    publishers.publish(image, Manifest(image.provenance, 1, 100, 0.1, is_checkpoint=False))


def test_publish_first_update_is_the_whole_image_from_nothing() -> None:
    listener = Listener("a")
    publishers = PublisherSet([listener])
    one, two = images(2)
    publish(publishers, one)
    publish(publishers, two)

    end = one.provenance.end_offset
    assert listener.told == [(0, end, True), (end, end + 1, False)]


def test_install_later_gets_the_published_image_and_the_controller_at_once() -> None:
    publishers = PublisherSet()
    (one,) = images(1)
    publish(publishers, one)
    publishers.announce_controller(ControllerEpoch(1, 5))
    late = Listener("late")
    publishers.install(late)

    assert late.told == [(0, one.provenance.end_offset, True)]
    assert late.controllers == [ControllerEpoch(1, 5)]


def test_install_before_anything_is_published_waits() -> None:
    listener = Listener("a")
    publishers = PublisherSet([listener])

    assert listener.told == []
    assert not publishers.is_published
    assert publishers.image is EMPTY_IMAGE


def test_install_same_name_twice_is_refused() -> None:
    publishers = PublisherSet([Listener("a")])

    with pytest.raises(DuplicatePublisher, match="'a'"):
        publishers.install(Listener("a"))


def test_publish_one_raises_the_others_go_on_and_it_misses_nothing() -> None:
    """Its error is counted and said once; when it works again its delta covers all it has missed."""
    before, broken, after = Listener("before"), Listener("broken"), Listener("after")
    publishers = PublisherSet([before, broken, after])
    one, two, three, four = images(4)
    publish(publishers, one)
    broken.fails = True
    with capture_logs() as logs:
        publish(publishers, two)
        publish(publishers, three)
        broken.fails = False
        publish(publishers, four)

    end = one.provenance.end_offset
    assert before.told == after.told == [(0, end, True), *((end + n, end + n + 1, False) for n in range(3))]
    assert broken.told == [(0, end, True), (end, end + 3, False)]
    assert [state.error_count for state in publishers.states()] == [0, 2, 0]
    assert [(entry["event"], entry.get("missed_updates")) for entry in logs] == [
        ("publisher.failed", None),
        ("publisher.recovered", 2),
    ]


def test_publish_first_update_raises_is_whole_again_the_next_time() -> None:
    listener = Listener("a")
    listener.fails = True
    publishers = PublisherSet([listener])
    one, two = images(2)
    publish(publishers, one)
    listener.fails = False
    publish(publishers, two)

    assert listener.told == [(0, two.provenance.end_offset, True)]


def test_announce_controller_same_again_is_not_news() -> None:
    listener, broken = Listener("a"), Listener("b")
    broken.fails = True
    publishers = PublisherSet([broken, listener])
    for _ in range(2):
        publishers.announce_controller(ControllerEpoch(1, 5))
    publishers.announce_controller(ControllerEpoch(None, 5))

    assert listener.controllers == [ControllerEpoch(1, 5), ControllerEpoch(None, 5)]
    assert publishers.states()[0].error_count == 2


def test_close_all_are_closed_even_if_one_raises() -> None:
    one, two = Listener("one"), Listener("two")
    two.fails = True
    publishers = PublisherSet([one, two])
    publishers.close()
    publish(publishers, images(1)[0])

    assert one.is_closed
    assert two.is_closed
    assert one.told == []


class Changes(MetadataPublisher):
    """Keeps what it was told, in a class that says nothing of itself."""

    def __init__(self) -> None:
        self.told: list[tuple[int, int]] = []
        self.manifests: list[Manifest] = []
        self.fails = False

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
        if self.fails:
            raise RuntimeError("as it was told")
        self.told.append((delta.old.provenance.end_offset, image.provenance.end_offset))
        self.manifests.append(manifest)


def test_publisher_without_a_name_has_that_of_its_class() -> None:
    assert Changes().name == "Changes"
    with pytest.raises(DuplicatePublisher, match="'Changes' is installed already: each needs a name"):
        PublisherSet([Changes(), Changes()])


def test_publish_offset_alone_is_news_only_to_those_that_ask_for_it() -> None:
    """What follows is told from the image that the publisher has, not from one that it never saw."""
    changes, every = Changes(), Listener("every")
    publishers = PublisherSet([changes, every])
    one, two, three = images(3)
    last = replayed(three, change(0, 0, leader=2))
    for image in (one, two, three, last):
        publish(publishers, image)

    end = one.provenance.end_offset
    assert changes.told == [(0, end), (end, end + 3)]
    assert [told[:2] for told in every.told] == [(0, end), (end, end + 1), (end + 1, end + 2), (end + 2, end + 3)]
    assert publishers.image is last


def test_publish_whole_image_that_says_the_same_is_news_to_all() -> None:
    """Rows of another table are other rows."""
    changes = Changes()
    publishers = PublisherSet([changes])
    one, two = images(2)
    publish(publishers, one)
    publishers.publish(two, Manifest(two.provenance, 0, 100, 0.1, is_checkpoint=True))

    assert [manifest.is_checkpoint for manifest in changes.manifests] == [True, True]


def test_publish_change_that_raised_and_was_undone_is_told_all_the_same() -> None:
    """It may have taken half of what it was told when it raised."""
    changes = Changes()
    publishers = PublisherSet([changes])
    (one,) = images(1)
    publish(publishers, one)
    changes.fails = True
    publish(publishers, replayed(one, TopicRecord(name="new", topic_id=uuid(7))))
    changes.fails = False
    end = one.provenance.end_offset
    undone = replayed(one, NoOpRecord(), NoOpRecord())
    publish(publishers, undone)
    publish(publishers, replayed(undone, NoOpRecord()))

    publish(publishers, replayed(undone, change(0, 0, leader=2)))
    assert changes.told == [(0, end), (end, end + 2), (end + 2, end + 3)]
    assert [manifest.follows_failure for manifest in changes.manifests] == [False, True, False]


def test_manifest_says_offset_epoch_time_and_who_led() -> None:
    first, second = Changes(), Changes()
    publishers = PublisherSet([first])
    (one,) = images(1)
    led = ControllerEpoch(3, 7)
    publishers.publish(one, Manifest(one.provenance, 1, 100, 0.1, is_checkpoint=False, controller=led))

    (told,) = first.manifests
    assert (told.offset, told.epoch, told.time_ms) == (one.provenance.end_offset - 1, 1, 1_000)
    assert (told.controller, told.is_checkpoint, told.batch_count) == (led, True, 0)
    publishers.announce_controller(led)
    publishers.remove("Changes")
    publishers.install(second)
    assert [manifest.controller for manifest in second.manifests] == [led]


async def test_publish_cancelled_error_of_a_publisher_is_its_own_fault() -> None:
    """As of a task of its own, whose result it asks for: nobody cancels the one that publishes."""
    own = asyncio.get_running_loop().create_future()
    own.cancel()

    class Asking(Listener):
        def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
            own.result()

    asking, other = Asking("asking"), Listener("other")
    publishers = PublisherSet([asking, other])
    (one,) = images(1)
    publish(publishers, one)

    assert len(other.told) == 1
    assert [state.error_count for state in publishers.states()] == [1, 0]


def test_publish_publisher_that_is_removed_meanwhile_gets_no_call_after_close() -> None:
    class Removing(Listener):
        def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
            publishers.remove("later")

        def on_controller_change(self, controller: ControllerEpoch) -> None:
            publishers.remove("last")

    later, last = Listener("later"), Listener("last")
    publishers = PublisherSet([Removing("removing"), later, last])
    (one,) = images(1)
    publish(publishers, one)
    publishers.announce_controller(ControllerEpoch(1, 2))

    assert (later.is_closed, later.told) == (True, [])
    assert (last.is_closed, last.controllers) == (True, [])


def test_install_publisher_that_removes_itself_gets_no_call_after_close() -> None:
    class Leaving(Listener):
        def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest) -> None:
            publishers.remove("leaving")

    publishers, leaving = PublisherSet(), Leaving("leaving")
    (one,) = images(1)
    publish(publishers, one)
    publishers.announce_controller(ControllerEpoch(1, 2))
    publishers.install(leaving)

    assert (leaving.is_closed, leaving.controllers) == (True, [])
