"""Images of random streams: queries, checkpoints, deltas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quorate.metadata_log.batches.batch import checked_header
from quorate.snapshots.checkpoints.as_records import image_records
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches, read_checkpoint
from quorate.snapshots.difference.delta import KeyChanges, MetadataDelta
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.table.page_access import holds_partition
from quorate.snapshots.views.summary import summarize
from tests.record_stream import EXAMPLES, RecordStream, as_runs

seeds = st.integers(0, 2**32 - 1)


def image_and_stream(seed: int, operations: int = 15) -> tuple[MetadataImage, RecordStream]:
    made = RecordStream(Random(seed))
    return replay(EMPTY_IMAGE, as_runs(made.records(operations)), Provenance(99, 4, 1234)), made


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_queries_of_table_answer_as_a_look_at_every_partition(seed: int) -> None:
    image, made = image_and_stream(seed)
    table = image.partitions
    rows = {key: row for key in made.model.partitions if (row := table.row(*key)) is not None}
    assert rows.keys() == made.model.partitions.keys()
    assert sorted(rows.values()) == table.all_rows().tolist()
    assert len(table) == len(rows)
    brokers = {broker for partition in made.model.partitions.values() for broker in partition.replicas}
    for broker in [*sorted(brokers)[:4], 123456]:
        queries = {
            "replicas": table.rows_with_replica(broker),
            "isr": table.rows_with_isr(broker),
            "eligible_leader_replicas": table.rows_with_elr(broker),
        }
        for field, found in queries.items():
            expected = [rows[k] for k, p in made.model.partitions.items() if broker in (getattr(p, field) or ())]
            assert found.tolist() == sorted(expected), (field, broker)
        led = [rows[key] for key, partition in made.model.partitions.items() if partition.leader == broker]
        assert table.rows_led_by(broker).tolist() == sorted(led)
    leaderless = [rows[key] for key, partition in made.model.partitions.items() if partition.leader == -1]
    assert table.rows_without_leader().tolist() == sorted(leaderless)
    moving = [rows[k] for k, p in made.model.partitions.items() if p.adding_replicas or p.removing_replicas]
    assert table.rows_reassigning().tolist() == sorted(moving)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_gathered_columns_say_what_each_partition_says(seed: int) -> None:
    image, _ = image_and_stream(seed)
    table = image.partitions
    rows = table.all_rows()
    Random(seed).shuffle(shuffled := rows.tolist() + rows.tolist()[:3])
    columns = table.gather(shuffled)
    sets = {
        "elr": "elr",
        "last_known_elr": "last_known_elr",
        "adding": "adding_replicas",
        "removing": "removing_replicas",
    }
    for name, field in sets.items():
        assert columns.ids_in(getattr(columns, name)) == [getattr(table.partition(row), field) for row in shuffled]
    for at, row in enumerate(shuffled):
        partition = table.partition(row)
        count = int(columns.replica_counts[at])
        assert tuple(columns.slots[at, :count].tolist()) == partition.replicas
        assert tuple(table.directories.uuid(code) for code in columns.directories[at, :count]) == partition.directories
        assert columns.isr_ids()[at] == partition.isr
        assert set(columns.ids_in(columns.isr)[at]) == set(partition.isr)
        assert columns.leaders[at] == partition.leader
        assert (columns.leader_epochs[at], columns.partition_epochs[at], columns.recovery_states[at]) == (
            partition.leader_epoch,
            partition.partition_epoch,
            partition.leader_recovery_state,
        )
        assert table.row(table.topic_id(row), table.partition_id(row)) == row
    found = table.rows_for(columns.topic_ids, columns.partition_ids)
    assert found.tolist() == shuffled
    assert table.rows_for(columns.topic_ids, columns.partition_ids + 1000).tolist() == [-1] * len(shuffled)


@settings(max_examples=EXAMPLES)
@given(seeds, st.sampled_from([400, 5000, 8 * 1024 * 1024]))
def test_image_read_from_its_checkpoint_is_the_same(seed: int, bytes_max: int) -> None:
    image, _ = image_and_stream(seed)
    batches = list(checkpoint_batches(image, 1700000000000, bytes_max))
    headers = [checked_header(batch) for batch in batches]

    assert read_checkpoint(batches, 100, 4) == image
    assert [header.base_offset for header in headers] == [
        sum(header.record_count for header in headers[:at]) for at in range(len(headers))
    ]
    assert {header.epoch for header in headers} == {4}
    assert all(header.size <= bytes_max or header.record_count == 1 for header in headers)


#: The parts of an image that a delta tells by key.
_PARTS: Final[Mapping[str, Callable[[MetadataImage], Mapping[Any, Any]]]] = {
    "features": lambda image: image.features.levels,
    "brokers": lambda image: image.cluster.brokers,
    "controllers": lambda image: image.cluster.controllers,
    "topics": lambda image: image.topics.by_id,
    "configs": lambda image: image.configs.resources,
    "labels": lambda image: image.labels.resources,
    "client_quotas": lambda image: image.client_quotas.entities,
    "acls": lambda image: image.acls.entries,
    "scram": lambda image: image.scram.credentials,
    "delegation_tokens": lambda image: image.delegation_tokens.tokens,
}


@settings(max_examples=EXAMPLES)
@given(seeds)
@example(820)  # the state of a migration from ZooKeeper is all that differs
@example(60)  # a credential goes; in the others a token, an ACL, a quota, a feature level
@example(153)
@example(203)
@example(398)
@example(958)
def test_delta_names_exactly_what_differs(seed: int) -> None:
    made = RecordStream(Random(seed))
    old = replay(EMPTY_IMAGE, as_runs(made.records(12)))
    before = dict(made.model.partitions)
    brokers = dict(made.model.brokers)
    new = replay(old, as_runs(made.records(6)))
    after = made.model.partitions
    delta = MetadataDelta(old, new)

    changed = {key for key, partition in after.items() if key not in before or _differs(before[key], partition)}
    table = new.partitions
    named = [(table.topic_id(row), table.partition_id(row)) for row in delta.partitions.rows.tolist()]
    assert sorted(named) == sorted(changed)
    for (topic, number), row in zip(named, delta.partitions.old_rows.tolist(), strict=True):
        assert old.partitions.row(topic, number) == (row if row >= 0 else None)
    gone = [
        (old.partitions.topic_id(r), old.partitions.partition_id(r)) for r in delta.partitions.removed_rows.tolist()
    ]
    assert sorted(gone) == sorted(before.keys() - after.keys())
    assert delta.brokers.removed == brokers.keys() - made.model.brokers.keys()
    for name, entries in _PARTS.items():
        were, are = dict(entries(old)), dict(entries(new))
        updated = frozenset(key for key, value in are.items() if key not in were or were[key] != value)
        assert getattr(delta, name) == KeyChanges(updated, frozenset(were.keys() - are.keys())), name
    assert bool(delta) == (old != new)
    assert not MetadataDelta(new, replay(EMPTY_IMAGE, [*image_records(new)]))


def _differs(one: object, other: object) -> bool:
    """Whether two records say something else; order has no meaning in their sets."""
    names = ("adding_replicas", "removing_replicas", "eligible_leader_replicas", "last_known_elr")
    if any(sorted(getattr(one, name) or ()) != sorted(getattr(other, name) or ()) for name in names):
        return True
    rest = ("replicas", "isr", "leader", "leader_epoch", "partition_epoch", "leader_recovery_state", "directories")
    return any(getattr(one, name) != getattr(other, name) for name in rest)


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_local_changes_are_those_of_the_brokers_replicas(seed: int) -> None:
    made = RecordStream(Random(seed))
    old = replay(EMPTY_IMAGE, as_runs(made.records(12)))
    before, names = dict(made.model.partitions), dict(made.model.topics)
    new = replay(old, as_runs(made.records(6)))
    after = made.model.partitions
    names |= made.model.topics
    changed = {key for key, partition in after.items() if key not in before or _differs(before[key], partition)}
    for broker in {broker for partition in after.values() for broker in partition.replicas}:
        local = MetadataDelta(old, new).local_changes(broker)
        leads = {key for key in changed if after[key].leader == broker}
        elected = {key for key in leads if key not in before or before[key].leader_epoch != after[key].leader_epoch}
        follows = {key for key in changed if broker in after[key].replicas} - leads
        had = {key for key, partition in before.items() if broker in partition.replicas}
        lost = {key for key in had if key not in after or (key in changed and broker not in after[key].replicas)}

        assert _keys(new, local.leaders) == leads
        assert _keys(new, local.elected_leaders) == elected
        assert _keys(new, local.followers) == follows
        assert _keys(old, local.removed) == lost
        assert bool(local) == bool(leads or follows or lost)
        for found, keys, partitions in (
            (local.led(), leads, after),
            (local.elected(), elected, after),
            (local.followed(), follows, after),
            (local.stopped(), lost, before),
        ):
            assert {(one.topic_id, one.partition_id) for one in found} == keys
            for one in found:
                record = partitions[one.topic_id, one.partition_id]
                assert (one.state.replicas, one.state.leader) == (record.replicas, record.leader)
                assert one.topic == names[one.topic_id]


def _keys(image: MetadataImage, rows: np.ndarray) -> set[tuple[bytes, int]]:
    return {(image.partitions.topic_id(row), image.partitions.partition_id(row)) for row in rows.tolist()}


@settings(max_examples=EXAMPLES)
@given(seeds)
def test_summary_counts_what_partitions_say(seed: int) -> None:
    image, made = image_and_stream(seed)
    partitions = made.model.partitions.values()
    summary = summarize(image)

    assert summary.partitions == len(partitions)
    assert summary.without_leader == sum(p.leader == -1 for p in partitions)
    assert summary.under_replicated == sum(len(p.isr) < len(p.replicas) for p in partitions)
    assert summary.with_elr == sum(bool(p.eligible_leader_replicas) for p in partitions)
    assert summary.recovering == sum(p.leader_recovery_state for p in partitions)
    assert summary.not_preferred == sum(p.leader != -1 and p.leader not in p.replicas[:1] for p in partitions)
    for broker, load in summary.brokers.items():
        assert load.replicas == sum(broker in p.replicas for p in partitions)
        assert load.in_sync == sum(broker in p.isr for p in partitions)
        assert load.leaders == sum(broker == p.leader for p in partitions)


def test_pages_of_table_published_are_read_only() -> None:
    image, _ = image_and_stream(3)

    for page in image.partitions.pages:
        assert holds_partition(page).any()
        assert not page.isr.flags.writeable
        assert not page.slots.flags.writeable
