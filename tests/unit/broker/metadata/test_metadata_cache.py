"""Questions that the metadata cache answers, and the states that the history keeps."""

from quorate.broker.metadata.metadata_cache import MetadataCache
from quorate.broker.publisher import Manifest
from quorate.metadata_log.records.records import NoOpRecord, RemoveTopicRecord, TopicRecord
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_history import IMAGES_KEPT, ImageHistory
from quorate.snapshots.table.pages import PAGE_ROWS
from tests.unit.broker.images import change, cluster_image, fencing, partition, replayed, uuid


def cache_of(image: MetadataImage) -> MetadataCache:
    cache = MetadataCache()
    take(cache, image)
    return cache


def take(cache: MetadataCache, image: MetadataImage) -> None:
    manifest = Manifest(image.provenance, 1, 1, 0.0, is_checkpoint=False)
    cache.on_metadata_update(MetadataDelta(cache.image, image), image, manifest)


def test_cache_fenced_broker_is_not_alive_and_its_replicas_are_offline() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [2, 1]), partition(0, 1, [1, 7])])
    cache = cache_of(replayed(image, fencing(2, fenced=True)))
    topic = cache.topic("topic-0")
    assert topic is not None

    assert [broker.id for broker in cache.alive_brokers()] == [1, 3]
    first, second = cache.partitions(topic)
    assert (first.state.leader, first.available_leader, first.offline_replicas) == (2, None, (2,))
    assert (second.available_leader, second.offline_replicas) == (1, (7,)), "7 is not registered"


def test_cache_that_stands_still_knows_nothing_of_what_comes_later() -> None:
    image = cluster_image([1], [partition(0, 0, [1])])
    cache = cache_of(image)
    still = cache.still()
    cache.image = replayed(image, NoOpRecord())

    assert still.image is image
    assert (still.topic("topic-0") is None, still.topic("topic-99") is None) == (False, True)


def test_cache_counts_partitions_without_a_leader() -> None:
    numbers = [0, 1, PAGE_ROWS, 2 * PAGE_ROWS]
    image = cluster_image([1], [*(partition(0, n, [1]) for n in numbers), partition(1, 0, [1])])
    cache = MetadataCache()

    def count(image: MetadataImage) -> int:
        take(cache, image)
        assert cache.offline_partition_count() == cache.still().offline_partition_count()
        return cache.offline_partition_count()

    assert count(image) == 0
    image = replayed(image, change(0, 1, leader=-1), change(0, PAGE_ROWS, leader=-1), change(1, 0, leader=-1))
    assert count(image) == 3
    image = replayed(image, change(0, PAGE_ROWS, leader=1))
    assert count(image) == 2
    image = replayed(image, TopicRecord(name="new", topic_id=uuid(2)), partition(2, PAGE_ROWS, [1]))
    image = replayed(image, change(2, PAGE_ROWS, leader=-1))
    assert count(image) == 3, "there are more pages"
    image = replayed(image, RemoveTopicRecord(topic_id=uuid(0)), RemoveTopicRecord(topic_id=uuid(2)))
    assert count(image) == 1


def test_history_keeps_the_last_states_by_the_offset_they_are_at() -> None:
    history = ImageHistory()
    image = cluster_image([1], [])
    images = [image]
    for _ in range(IMAGES_KEPT):
        images.append(replayed(images[-1], NoOpRecord()))
    for one in images:
        history.add(one)

    assert history.at(images[0].provenance.end_offset) is None
    assert [history.at(one.provenance.end_offset) for one in images[1:]] == images[1:]
    assert history.offsets() == [one.provenance.end_offset for one in images[1:]]
    history.clear()
    assert history.offsets() == []
