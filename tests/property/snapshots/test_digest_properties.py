"""Digests: by what changed as from scratch, in bulk as leaf by leaf."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.metadata_log.records import records as r
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.digest import digest_bytes, entry_leaf, root, topic_leaf
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay import replay
from tests.record_stream import EXAMPLES, RecordStream, as_runs

seeds = st.integers(0, 2**32 - 1)


def leaf_by_leaf(records: list[Any]) -> bytes:
    """The digest by its definition, of the records that a snapshot has."""
    partitions = [record for record in records if isinstance(record, r.PartitionRecord)]
    leaves = [
        topic_leaf(record, [partition for partition in partitions if partition.topic_id == record.topic_id])
        if isinstance(record, r.TopicRecord)
        else entry_leaf(record)
        for record in records
        if not isinstance(record, r.PartitionRecord)
    ]
    return digest_bytes(root(leaves))


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_digest_of_image_is_the_sum_of_the_leaves_of_its_records(seed: int) -> None:
    made = RecordStream(Random(seed))
    image = replay(EMPTY_IMAGE, as_runs(made.records(15)))
    shuffled = made.model.records()
    Random(seed).shuffle(shuffled)

    assert digest_image(image).value == leaf_by_leaf(shuffled)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_digest_by_what_changed_equals_digest_from_scratch(seed: int) -> None:
    made = RecordStream(Random(seed))
    image = EMPTY_IMAGE
    digest = digest_image(image)
    for operation in made.operations(12):
        image = replay(image, as_runs(operation))
        digest = digest_image(image, digest)

        assert digest.value == digest_image(image).value, operation[0]


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_digest_by_what_changed_goes_back_as_well(seed: int) -> None:
    """A node is asked for states in any order: what the later one has and the earlier one has not must go again."""
    made = RecordStream(Random(seed))
    images = [EMPTY_IMAGE]
    for operation in made.operations(12):
        images.append(replay(images[-1], as_runs(operation)))
    expected = [digest_image(image).value for image in images]
    order = Random(seed).choices(range(len(images)), k=12)
    digest = digest_image(images[-1])

    for number in order:
        digest = digest_image(images[number], digest)

        assert digest.value == expected[number], order


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_digest_does_not_depend_on_history_or_provenance(seed: int) -> None:
    image = replay(EMPTY_IMAGE, as_runs(RecordStream(Random(seed)).records(15)))
    rebuilt = replay(EMPTY_IMAGE, [*image_records(image)], Provenance(5, 5, 5))

    assert digest_image(rebuilt).value == digest_image(image).value


def test_digest_of_nothing_is_zero() -> None:
    assert digest_image(EMPTY_IMAGE).value == bytes(32)
