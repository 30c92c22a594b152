"""Differences of random images: against a comparison value by value, and the same whatever the images share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from quorate.metadata_log.records import records as r
from quorate.metadata_log.records.hidden_values import HIDDEN, no_secrets
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, read_checkpoint
from quorate.snapshots.difference.difference_entries import PartDifference
from quorate.snapshots.difference.image_difference import image_difference
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.views.as_json import image_json
from tests.record_stream import EXAMPLES, RecordStream, as_runs, versioned

seeds = st.integers(0, 2**32 - 1)

#: Fields of a partition that are sets.
_SETS = {"isr", "elr", "last_known_elr", "adding_replicas", "removing_replicas"}


def two_images(seed: int) -> tuple[MetadataImage, MetadataImage]:
    """An image and a later one of the same log."""
    made = RecordStream(Random(seed))
    old = replay(EMPTY_IMAGE, as_runs(made.records(12)), Provenance(99, 4, 1234))
    return old, replay(old, as_runs(made.records(6)), Provenance(199, 4, 1234))


def read_again(image: MetadataImage) -> MetadataImage:
    """The same state in an image that shares nothing with any other."""
    return read_checkpoint(checkpoint_batches(image, 0), image.provenance.end_offset, image.provenance.epoch)


def compared(old: MetadataImage, new: MetadataImage, **options: bool) -> dict[str, PartDifference]:
    parts = image_difference(old, new, lambda *_: False, **options)
    for part in parts:
        entries = list(part.entries)
        changes = Counter(entry.change for entry in entries)
        fields = Counter(field for entry in entries if entry.change == "changed" for field in entry.fields)
        assert (part.added, part.removed, part.changed) == tuple(changes[c] for c in ("added", "removed", "changed"))
        assert dict(part.fields) == dict(fields), part.part
    return {part.part: part for part in parts}


def content(parts: dict[str, PartDifference]) -> dict[str, Any]:
    return {name: list(part.entries) for name, part in parts.items()}


def partition_values(image: MetadataImage) -> dict[tuple[str, bytes, int], dict[str, Any]]:
    return {
        (topic.name, topic.id, number): {
            name: sorted(value) if name in _SETS else value
            for name in partition.__slots__
            for value in [getattr(partition, name)]
        }
        for topic in image.topics.by_id.values()
        for number, partition in image.partitions.partitions_of(topic.id)
    }


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_difference_of_partitions_is_that_of_a_look_at_every_value(seed: int) -> None:
    old, new = two_images(seed)
    before, after = partition_values(old), partition_values(new)

    expected = {}
    for key in sorted({*before, *after}):
        name = f"{key[0]}-{key[2]}"
        if key not in before or key not in after:
            expected[name] = "added" if key in after else "removed"
        elif before[key] != after[key]:
            expected[name] = ",".join(sorted(field for field in before[key] if before[key][field] != after[key][field]))

    found = {
        entry.name: ",".join(sorted(entry.fields)) if entry.change == "changed" else entry.change
        for entry in compared(old, new)["partitions"].entries
    }
    assert found == expected
    assert list(found) == list(expected)


@settings(max_examples=EXAMPLES)
@given(seeds)
@example(268)  # a topic gets a partition whose number lies below that of another, so that its rows stay where they are
def test_difference_is_the_same_whatever_the_images_share(seed: int) -> None:
    old, new = two_images(seed)

    assert content(compared(old, new)) == content(compared(read_again(old), read_again(new)))


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_without_epochs_the_rest_of_the_difference_is_left(seed: int) -> None:
    old, new = two_images(seed)
    epochs = {"epoch", "leader_epoch", "partition_epoch"}
    expected = {
        name: [(entry.change, entry.name, fields) for entry in entries
               if (fields := {field: one for field, one in entry.fields.items() if field not in epochs})
               or entry.change != "changed"]
        for name, entries in content(compared(old, new)).items()
    }  # fmt: skip
    found = content(compared(old, new, without_epochs=True))
    assert {
        name: [(one.change, one.name, dict(one.fields)) for one in entries] for name, entries in found.items()
    } == expected


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_images_without_a_difference_are_those_that_say_the_same(seed: int) -> None:
    old, new = two_images(seed)
    is_same = not any(compared(old, new).values())

    assert is_same == (comparable(old) == comparable(new))
    assert not any(compared(new, read_again(new)).values())


def comparable(image: MetadataImage) -> Any:
    document = image_json(image, no_secrets)
    del document["provenance"]
    at = document["partition_columns"].index("isr")
    # Derived: the broker's own entry tells.
    offline = document["partition_columns"].index("offline_replicas")
    for topic in document["topics"].values():
        for row in topic["partitions"].values():
            row[at] = sorted(row[at])
            row[offline] = None
    kept = image.scram.credentials.items()
    return document, sorted((key, one.salt, one.stored_key, one.server_key) for key, one in kept)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_clusters_that_differ_in_what_each_makes_up_are_the_same_by_name(seed: int) -> None:
    """The same topics and brokers made on two clusters: every id is another one."""
    made = RecordStream(Random(seed))
    items = made.model
    list(made.operations(12))
    chance, ids = Random(seed), dict[bytes, bytes]()

    def other(id_: bytes) -> bytes:
        return ids.setdefault(id_, chance.randbytes(16))

    def elsewhere(record: Any) -> Any:
        if isinstance(record, r.TopicRecord):
            return replace(record, topic_id=other(record.topic_id))
        if isinstance(record, r.PartitionRecord):
            here = tuple(chance.randbytes(16) for _ in record.replicas)
            return replace(record, topic_id=other(record.topic_id), directories=here)
        if isinstance(record, r.AccessControlEntryRecord):
            return replace(record, id=other(record.id))
        if isinstance(record, r.RegisterBrokerRecord):
            return replace(record, incarnation_id=chance.randbytes(16), broker_epoch=7, log_dirs=(b"d" * 16,))
        if isinstance(record, r.RegisterControllerRecord):
            return replace(record, incarnation_id=chance.randbytes(16))
        return record

    records = items.records()
    here = replay(EMPTY_IMAGE, [versioned(record) for record in records])
    there = replay(EMPTY_IMAGE, [versioned(elsewhere(record)) for record in records])

    by_name = compared(here, there, by_name=True)
    # Directories that a broker takes no partitions in are made up too, and so are compared neither.
    assert {name: part for name, part in content(by_name).items() if part} == {}
    assert bool(compared(here, there)["topics"]) == bool(len(here.topics))


def test_difference_of_credentials_says_that_they_differ_and_not_how() -> None:
    credential = r.UserScramCredentialRecord("ana", 1, b"salt", b"stored", b"server", 4096)
    old = replay(EMPTY_IMAGE, [versioned(credential), versioned(r.ConfigRecord(4, "1", "ssl.key.password", "one"))])
    new = replay(
        old,
        [
            versioned(replace(credential, stored_key=b"another")),
            versioned(r.ConfigRecord(4, "1", "ssl.key.password", "two")),
        ],
    )

    parts = {part.part: part for part in image_difference(old, new, lambda _, name: name == "ssl.key.password")}

    for part, field in (("scram", "credential"), ("configs", "ssl.key.password")):
        (entry,) = parts[part].entries
        assert list(entry.fields) == [field]
        assert (entry.fields[field].old, entry.fields[field].new) == (HIDDEN, HIDDEN)
