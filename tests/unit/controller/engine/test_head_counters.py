"""What the active controller counts of its own records: elections by kind, and commits; and of its leaders."""

from __future__ import annotations

import numpy as np
import pytest

from quorate.controller.engine.counters import Histogram
from quorate.controller.engine.head import Head
from quorate.controller.engine.head_counters import Elected, HeadWatch, elected_by_record, elected_by_run
from quorate.controller.engine.leader_counters import LeaderWatch
from quorate.metadata_log.batches.builder import encode_items
from quorate.metadata_log.batches.columns import decode_body
from quorate.metadata_log.batches.runs import PartitionChangeRun
from quorate.metadata_log.records.records import (
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.replay.replay import replay
from quorate.snapshots.replay.replay_state import ReplayState

TOPIC = b"t" * 16
MANY = 40


def image(
    metadata_version: int = 30,
    *,
    elr: tuple[int, ...] = (),
    isr: tuple[int, ...] = (1, 2),
    last_known: tuple[int, ...] = (),
) -> MetadataImage:
    """Partitions of brokers 1, 2 and 3, led by 1."""
    partitions = [
        PartitionRecord(
            partition_id=number, topic_id=TOPIC, replicas=(1, 2, 3), isr=isr, leader=1 if isr else -1,
            eligible_leader_replicas=elr or None, last_known_elr=last_known or None,
        )
        for number in range(MANY)
    ]  # fmt: skip
    level = VersionedRecord(FeatureLevelRecord("metadata.version", metadata_version), 0)
    records = [level, VersionedRecord(TopicRecord("foo", TOPIC), 0), *(VersionedRecord(p, 2) for p in partitions)]
    return replay(EMPTY_IMAGE, records)


def change(number: int, **fields: object) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=number, topic_id=TOPIC, **fields)  # type: ignore[arg-type]


def both_ways(before: MetadataImage, **fields: object) -> Elected:
    """What a change of every partition elects: record by record and as a run, which must be the same."""
    records = [change(number, **fields) for number in range(MANY)]
    one_by_one = [elected_by_record(before, record) for record in records]
    body = encode_items([VersionedRecord(record, 2) for record in records], 0)
    runs = [item for item in decode_body(body, 0, MANY) if isinstance(item, PartitionChangeRun)]
    assert sum(map(len, runs)) == MANY
    totals = [elected_by_run(before, run) for run in runs]
    found = Elected(*(sum(column) for column in zip(*totals, strict=True)))
    assert found == Elected(*(sum(column) for column in zip(*one_by_one, strict=True)))
    return found


def test_elections_of_a_lost_leader_are_counted_one_a_partition() -> None:
    assert both_ways(image(), leader=2, isr=(2,)) == Elected(MANY)


def test_elections_that_find_nobody_are_none() -> None:
    assert both_ways(image(), leader=-1, isr=()) == Elected()


@pytest.mark.parametrize("metadata_version", [11, 30])
def test_record_that_names_the_leader_there_was_elects_nobody(metadata_version: int) -> None:
    before = image(metadata_version)
    fields = {"replicas": (1, 2)} if metadata_version == 30 else {}
    assert both_ways(before, leader=1, isr=(1,), **fields) == Elected()


def test_elections_that_begin_a_recovery_are_unclean() -> None:
    assert both_ways(image(isr=()), leader=3, isr=(3,), leader_recovery_state=1) == Elected(MANY, unclean=MANY)


@pytest.mark.parametrize(("last_known", "count"), [((3,), MANY), ((2,), 0), ((2, 3), 0), ((), 0)])
def test_unclean_elections_of_the_last_known_leader_are_told_from_others(
    last_known: tuple[int, ...], count: int
) -> None:
    elected = both_ways(image(isr=(), last_known=last_known), leader=3, isr=(3,), leader_recovery_state=1)
    assert elected == Elected(MANY, unclean=MANY, last_known=count)


def test_elections_of_an_eligible_replica_are_told_from_those_of_one_in_sync() -> None:
    elected = both_ways(image(isr=(), elr=(2, 3)), leader=2, isr=(2,), eligible_leader_replicas=(3,))
    assert elected == Elected(MANY, from_eligible=MANY)
    in_sync = both_ways(image(isr=(1, 2), elr=(3,)), leader=2, isr=(2,), eligible_leader_replicas=(1, 3))
    assert in_sync == Elected(MANY)


class Queue:
    """As much of the event queue as the watch looks at."""

    running = ""
    began_ms = 0.0


class Watched:
    def __init__(self) -> None:
        self.queue = Queue()
        self.watch = HeadWatch(lambda: 0.0, self.queue)  # type: ignore[arg-type]
        self.watch.begun()

    def elect(self, event: str, end_offset: int) -> None:
        self.queue.running = event
        items = [VersionedRecord(NoOpRecord(), 0), VersionedRecord(change(0, leader=2, isr=(2,)), 2)]
        self.watch.staged(image(), items, end_offset)


def test_elections_count_by_the_kind_of_their_event_once_they_commit() -> None:
    w = Watched()
    assert not w.watch.has_elected
    for end_offset, event in enumerate(
        ["fence_stale_broker", "controlled_shutdown", "elect_leaders", "balance_leaders", "alter_partition"], 1
    ):
        w.elect(event, end_offset)
    assert sum(w.watch.counts.elections.values()) == 0
    w.watch.committed(4, 250.0)
    assert w.watch.counts.elections == {"offline": 1, "controlled_shutdown": 1, "preferred": 2, "reassignment": 0}
    assert w.watch.counts.election_times["preferred"].total_seconds == 0.5
    w.watch.committed(5, 250.0)
    assert w.watch.counts.elections["reassignment"] == 1
    assert not w.watch.has_elected


def test_elections_of_a_lost_head_are_not_counted() -> None:
    w = Watched()
    w.elect("fence_stale_broker", 2)
    w.watch.begun()
    w.watch.committed(2, 40.0)
    assert w.watch.counts.elections["offline"] == 0


def test_head_times_each_commit_from_the_batchs_last_event() -> None:
    w = Watched()
    head = Head(ReplayState(), 1, 0, w.watch)
    for began_ms in (10.0, 30.0):
        w.queue.began_ms = began_ms
        head.stage(head.encode([VersionedRecord(NoOpRecord(), 0)]), 1, 0)
        head.close_batch()
    w.watch.now_ms = lambda: 60.0
    assert head.commit(0) is None
    assert head.commit(1) is not None
    assert head.commit(2) is not None
    times = w.watch.counts.commit_times
    assert (sum(times.counts), round(times.total_seconds, 6)) == (2, 0.08)
    assert sum(w.watch.counts.commit_times.counts) == 2, "each is entered once"


def test_histogram_takes_many_durations_as_one_by_one() -> None:
    durations = [0.0, 0.0001, 0.00011, 0.3, 0.5, 9.99, 10.0, 10.1, 500.0]
    one_by_one, together = Histogram(), Histogram()
    for seconds in durations:
        one_by_one.note(seconds)
    together.note_all(np.array(durations[:4]))
    together.note_all(np.array(durations[4:]))
    assert together.counts == one_by_one.counts
    assert together.total_seconds == pytest.approx(one_by_one.total_seconds)


def test_leader_watch_times_the_time_without_a_leader() -> None:
    watch = LeaderWatch()
    watch.changed(None, 10.0, is_own=False, log_end_offset=0)
    watch.changed(None, 11.0, is_own=False, log_end_offset=0)
    watch.changed(2, 12.5, is_own=False, log_end_offset=0)
    watch.changed(3, 20.0, is_own=False, log_end_offset=0)
    assert (sum(watch.latency.counts), watch.latency.total_seconds) == (1, 2.5)


def test_fetched_records_are_those_taken_over_while_another_led() -> None:
    watch = LeaderWatch()
    assert watch.fetched_records(100) == 0
    watch.changed(2, 0.0, is_own=False, log_end_offset=100)
    assert [watch.fetched_records(end) for end in (100, 90, 100, 130)] == [0, 0, 0, 30]
    watch.changed(1, 1.0, is_own=True, log_end_offset=130)
    assert watch.fetched_records(500) == 30
    watch.changed(None, 2.0, is_own=False, log_end_offset=500)
    watch.changed(2, 3.0, is_own=False, log_end_offset=500)
    assert watch.fetched_records(505) == 35
    assert watch.appended_records(505) == 370
