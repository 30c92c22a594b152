"""Questions that the metadata cache answers, and the states that the history keeps."""

from quorate.broker.metadata.metadata_cache import MetadataCache
from quorate.broker.publisher import Manifest
from quorate.metadata_log.records.records import NoOpRecord
from quorate.snapshots.difference.delta import MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_history import IMAGES_KEPT, ImageHistory
from tests.unit.broker.images import change, cluster_image, fencing, partition, replayed


def cache_of(image: MetadataImage) -> MetadataCache:
    cache = MetadataCache()
    manifest = Manifest(image.provenance, 1, 1, 0.0, is_checkpoint=False)
    cache.on_metadata_update(MetadataDelta(EMPTY_IMAGE, image), image, manifest)
    return cache


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
    image = cluster_image([1], [partition(0, 0, [1]), partition(0, 1, [1])])

    assert cache_of(image).offline_partition_count() == 0
    assert cache_of(replayed(image, change(0, 1, leader=-1))).offline_partition_count() == 1


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
