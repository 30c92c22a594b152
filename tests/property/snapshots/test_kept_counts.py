"""The counts that are kept with a table, held against looking at each of its partitions."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.metadata_log.records.records import ConfigRecord
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import MIN_INSYNC_REPLICAS, TOPIC_RESOURCE
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.kept_counts import tally_of
from quorate.snapshots.table.partition import RECOVERING, Partition
from tests.record_stream import EXAMPLES, RecordStream, as_runs, versioned

seeds = st.integers(0, 2**32 - 1)
FLAGS = ("offline", "new", "under-replicated", "not-preferred", "reassigning", "recovering")
PARTS = ("in-sync", "leads", "adding")


def shape(partition: Partition, own: int) -> tuple[Any, ...]:
    """The definitions, read off one partition."""
    p = partition
    is_new = not p.has_leader and p.leader_epoch == 0 and p.partition_epoch == 0
    is_under = bool(set(p.replicas) - set(p.isr) - set(p.adding_replicas))
    is_other = not p.replicas or p.leader != p.replicas[0]
    is_recovering = p.leader_recovery_state == RECOVERING
    found = (not p.has_leader, is_new, is_under, is_other, p.is_reassigning, is_recovering)
    flags = tuple(name for name, is_so in zip(FLAGS, found, strict=True) if is_so)
    return flags, len(p.isr), len(p.replicas), own


def looked_at(image: MetadataImage) -> tuple[Counter[Any], Counter[Any]]:
    """Partitions by shape, and replicas by broker, directory, part and shape: one by one."""
    partitions, replicas = Counter[Any](), Counter[Any]()
    for topic in image.topics.by_id.values():
        text = image.configs.of(TOPIC_RESOURCE, topic.name).get(MIN_INSYNC_REPLICAS)
        own = int(text) + 1 if text else 0
        for _, p in image.partitions.partitions_of(topic.id):
            partitions[shape(p, own)] += 1
            for broker, directory in zip(p.replicas, p.directories, strict=True):
                found = (broker in p.isr, p.leader == broker, broker in p.adding_replicas)
                parts = tuple(name for name, is_so in zip(PARTS, found, strict=True) if is_so)
                replicas[broker, directory, parts, shape(p, own)] += 1
    return partitions, replicas


def named(names: tuple[str, ...], bits: int) -> tuple[str, ...]:
    return tuple(name for place, name in enumerate(names) if bits >> place & 1)


def kept(image: MetadataImage) -> tuple[dict[Any, int], dict[Any, int]]:
    """The same out of the counts that are kept."""
    tally = tally_of(image.partitions)
    shapes = [zip(*map(list, of), strict=True) for of in (tally.shapes, tally.replica_shapes)]
    of_partitions, of_replicas = [[(named(FLAGS, s[0]), *map(int, s[1:])) for s in of] for of in shapes]
    uuid = image.partitions.directories.uuid
    brokers, codes, parts, _ = (key.tolist() for key in tally.replicas.keys)
    keys = [
        (broker, uuid(code), named(PARTS, part), of)
        for broker, code, part, of in zip(brokers, codes, parts, of_replicas, strict=True)
    ]
    return (
        dict(zip(of_partitions, tally.partitions.counts.tolist(), strict=True)),
        dict(zip(keys, tally.replicas.counts.tolist(), strict=True)),
    )


def min_isr(draw: Random, image: MetadataImage) -> list[ConfigRecord]:
    """A topic gets a ``min.insync.replicas`` of its own, or loses it."""
    topics = sorted(topic.name for topic in image.topics.by_id.values())
    value = draw.choice((None, "1", "2", "64"))
    return [ConfigRecord(TOPIC_RESOURCE, draw.choice(topics), MIN_INSYNC_REPLICAS, value)] if topics else []


def history(seed: int) -> list[MetadataImage]:
    """Images of a random log, row by row and in runs, of which some have been asked for their counts."""
    draw = Random(seed)
    image, images = EMPTY_IMAGE, []
    made = RecordStream(draw)
    for records in made.operations(25):
        image = replay(image, as_runs(records) if draw.random() < 0.5 else [versioned(one) for one in records])
        if draw.random() < 0.3:
            configs: list[Any] = min_isr(draw, image)
            for config in configs:
                made.model.apply(config)
            image = replay(image, [versioned(config) for config in configs])
        if draw.random() < 0.3:
            tally_of(image.partitions)  # so that some count on from here, and others from before
        images.append(image)
    return images


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_counts_of_every_image_equal_looking_at_each_partition(seed: int) -> None:
    """Also of older images, after newer ones were made of them and counted."""
    images = history(seed)
    for image in (images[-1], *Random(seed).sample(images, 4)):
        assert kept(image) == looked_at(image)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_counts_of_a_checkpoint_equal_those_of_the_image_it_was_made_of(seed: int) -> None:
    image = history(seed)[-1]
    assert kept(replay(EMPTY_IMAGE, [*image_records(image)])) == kept(image)
