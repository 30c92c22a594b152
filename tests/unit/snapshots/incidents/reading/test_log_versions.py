"""A log read as versions of its partitions, brokers and configs."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest

from quorate.controller.partitions.view import allows_unclean_election
from quorate.metadata_log.records import records as r
from quorate.snapshots.checkpoints.loading import batches_from_start, load_image
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.checkpoints.stretches import stretches_of
from quorate.snapshots.errors import ReplayError
from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.failovers import failovers
from quorate.snapshots.incidents.reading import partition_versions
from quorate.snapshots.incidents.reading.log_versions import read_versions
from quorate.snapshots.incidents.reading.partition_versions import TooManyVersions
from quorate.snapshots.incidents.serial.search import LogVersions, search
from quorate.snapshots.incidents.serial.versions import PartitionHistory
from quorate.snapshots.incidents.thresholds import Thresholds
from quorate.snapshots.replay.replay_state import ReplayState
from quorate.snapshots.table.page_access import holds_partition
from tests.default_parts import controller_config
from tests.guards.patching import patching
from tests.pipeline_logs import KAFKA_LOG, TIME, LogWriter

A, B = bytes(15) + b"a", bytes(15) + b"b"


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    """A topic of one partition on two brokers."""
    made = LogWriter(tmp_path / "log")
    made.append([r.TopicRecord("a", A), r.PartitionRecord(0, A, (1, 2), (1, 2), leader=1)])
    return made


def read(log: LogWriter) -> LogVersions:
    start, batches = batches_from_start(log.path)
    return read_versions(start, (batch.data for batch in batches), "c")


def told(history: PartitionHistory) -> list[tuple[int, int, int, tuple[int, ...]]]:
    """Offset, seconds since the log's begin, leader and ISR of each version."""
    return [
        (version.offset, (version.time_us // 1000 - TIME) // 1000, version.leader, version.isr)
        for version in history.versions
    ]


def change(**fields: Any) -> r.PartitionChangeRecord:
    return r.PartitionChangeRecord(0, A, **fields)


def test_every_record_about_a_partition_is_a_version_of_it(log: LogWriter) -> None:
    log.append([change(leader=2, isr=(2,)), change(isr=(2, 1))])
    log.append([r.RemoveTopicRecord(A)])
    (history,) = read(log).partitions
    assert told(history) == [(1, 0, 1, (1, 2)), (2, 2, 2, (2,)), (3, 2, 2, (2, 1))]
    assert (history.topic, history.partition, history.is_base) == ("a", 0, False)
    assert history.gone == (4, (TIME + 4000) * 1000)


def test_what_a_transaction_changes_holds_from_its_end_on_or_never(log: LogWriter) -> None:
    log.append([r.BeginTransactionRecord("x")])
    log.append([change(leader=2), r.TopicRecord("b", B), r.PartitionRecord(0, B, (1,), (1,), leader=1)])
    log.append([r.EndTransactionRecord()])
    log.append([r.BeginTransactionRecord("y"), change(leader=1), r.AbortTransactionRecord("no")])
    first, second = read(log).partitions
    assert told(first) == [(1, 0, 1, (1, 2)), (6, 6, 2, (1, 2))]
    assert told(second) == [(6, 6, 1, (1,))]


@pytest.mark.parametrize("end", [r.EndTransactionRecord(), r.AbortTransactionRecord("no")], ids=["ended", "aborted"])
def test_what_one_transaction_held_is_no_part_of_the_next(log: LogWriter, end: r.Record) -> None:
    log.append([r.BeginTransactionRecord("x"), change(leader=2), end])
    log.append([r.BeginTransactionRecord("y"), change(leader=-1), r.EndTransactionRecord()])
    (history,) = read(log).partitions
    ended = [(4, 2, 2, (1, 2))] if isinstance(end, r.EndTransactionRecord) else []
    assert told(history) == [(1, 0, 1, (1, 2)), *ended, (7, 5, -1, (1, 2))]


def test_elr_went_with_its_topic(log: LogWriter) -> None:
    log.append([change(isr=(1,), eligible_leader_replicas=(2,)), r.RemoveTopicRecord(A), r.ClearElrRecord("")])
    (history,) = read(log).partitions
    assert [version.elr for version in history.versions] == [(), (2,)]


def test_partition_of_a_topic_that_came_again_is_not_that_of_the_start(log: LogWriter) -> None:
    """Under its own id, as no controller creates it."""
    start, [first] = batches_from_start(log.path)
    behind = LogWriter(log.path.parent / "behind")
    behind.offset = 2
    behind.append([r.RemoveTopicRecord(A), r.TopicRecord("a", A), r.PartitionRecord(0, A, (3,), (3,), leader=3)])
    (history,) = read_versions(start.replay_batch(first.data), [behind.segment.read_bytes()], "c").partitions
    assert (history.is_base, told(history)) == (False, [(4, 2, 3, (3,))])


def test_cleared_elr_is_a_version_of_the_partitions_that_had_one(log: LogWriter) -> None:
    log.append([r.TopicRecord("b", B), r.PartitionRecord(0, B, (1,), (1,), leader=1)])
    log.append([change(isr=(1,), eligible_leader_replicas=(2,))])
    log.append([r.ClearElrRecord("b")])
    log.append([r.ClearElrRecord("")])
    first, second = read(log).partitions
    assert [(version.offset, version.elr) for version in first.versions] == [(1, ()), (4, (2,)), (6, ())]
    assert [version.offset for version in second.versions] == [3]


def test_elr_is_cleared_of_the_topic_that_has_the_name_now(log: LogWriter) -> None:
    log.append([r.RemoveTopicRecord(A), r.TopicRecord("a", B), r.PartitionRecord(0, B, (1, 2), (1,), leader=1)])
    log.append([r.PartitionChangeRecord(0, B, eligible_leader_replicas=(2,))])
    log.append([r.ClearElrRecord("a"), r.ClearElrRecord("")])
    first, second = read(log).partitions
    assert [version.offset for version in first.versions] == [1]
    assert [(version.offset, version.elr) for version in second.versions] == [(4, ()), (5, (2,)), (6, ())]


def test_removed_partitions_that_were_well_are_only_counted(tmp_path: Path) -> None:
    """However many a topic has, nothing is noted of each: 100,000 in one record took seven seconds."""
    log = LogWriter(tmp_path / "log")
    log.append([r.TopicRecord("a", A), *(r.PartitionRecord(n, A, (1, 2), (1, 2), leader=1) for n in range(50))])
    log.append([r.NoOpRecord()])
    (start, batches), is_told = batches_from_start(log.path), [bool(number % 10) for number in range(50)]
    for batch in batches:
        start = start.replay_batch(batch.data)
    changes = [r.PartitionChangeRecord(n, A, leader=2) for n in range(50) if not is_told[n]]
    behind = LogWriter(tmp_path / "behind")
    behind.offset = start.end_offset
    behind.append([*changes, r.PartitionRecord(50, A, (1, 2), (1, 2), leader=1), r.RemoveTopicRecord(A)])
    versions = read_versions(start, [behind.segment.read_bytes()], "c")
    assert (len(versions.partitions), versions.untold.partitions) == (6, 45)
    found = search(versions, Thresholds(mass_partitions=1)).findings
    removed = {row["partitions"] for row in found.instants if row["cause"] == kinds.REMOVED}
    assert (removed, found.spans[0].partitions, found.spans[0].to_offset) == ({51}, 51, behind.offset - 1)


def test_brokers_and_configs_have_versions_from_record_to_record(log: LogWriter) -> None:
    endpoint = r.BrokerEndpoint(name="B", host="h", port=1, security_protocol=0)
    broker = r.RegisterBrokerRecord(
        7, incarnation_id=A, broker_epoch=2, end_points=(endpoint,), fenced=True, log_dirs=(B,)
    )
    log.append([broker], [3])
    log.append([r.UnfenceBrokerRecord(7, 2)])
    log.append([r.ConfigRecord(2, "a", "min.insync.replicas", "2")])
    log.append([r.ConfigRecord(2, "a", "unclean.leader.election.enable", "true")])
    log.append([r.UnregisterBrokerRecord(7, 2), r.RemoveTopicRecord(A)])
    found = read(log)
    assert [(one.fenced, one.from_offset, one.to_offset, one.removed) for one in found.brokers] == [
        (True, 2, 3, False), (False, 3, 6, True),
    ]  # fmt: skip
    assert [(one.resource_name, one.value, one.from_offset, one.to_offset) for one in found.min_isr] == [
        ("a", "2", 4, 7)
    ]
    assert found.unclean_allowed == {"a"}


@pytest.mark.parametrize(("value", "is_allowed"), [("TRUE ", True), ("false", False), ("yes", False)])
def test_unclean_elections_are_allowed_where_elections_take_it_for_so(
    log: LogWriter, value: str, is_allowed: bool
) -> None:
    log.append([r.ConfigRecord(2, "a", "unclean.leader.election.enable", value)])
    (start, batches), config = batches_from_start(log.path), controller_config(node_id=1, cluster_id="c")
    for batch in batches:
        start = start.replay_batch(batch.data)
    assert ("a" in read(log).unclean_allowed) is is_allowed
    assert allows_unclean_election(start.stable, config, "a") is is_allowed


def test_epochs_have_their_leaders_and_first_and_last_records(log: LogWriter) -> None:
    log.epoch = 4
    log.elect(9)
    log.append([r.NoOpRecord()])
    log.append([r.NoOpRecord()])
    first, second = read(log).epochs
    assert (first.leader, first.first_offset, first.last_offset) == (None, 0, 1)
    assert (second.leader, second.begin_offset, second.first_offset, second.last_offset) == (9, 2, 3, 4)


def test_part_that_begins_with_the_first_record_of_an_epoch_has_the_one_before(log: LogWriter) -> None:
    log.epoch = 2
    begin = log.offset
    log.elect(3)
    log.append([change(leader=2, isr=(2,))])
    start = load_image(log.path, Moment(offset=begin))
    batches = [batch.data for batch in batches_from_start(log.path)[1]][1:]
    (whole,), (part,) = (
        failovers(found.epochs) for found in (read(log), read_versions(ReplayState(start), batches, "c"))
    )
    assert (part.epoch, part.new_leader, part.elected_offset, part.writes_offset) == (2, 3, begin, begin + 1)
    assert part == whole


def test_history_that_begins_with_a_checkpoint_begins_with_what_is_in_it() -> None:
    newest = next(stretches_of(KAFKA_LOG))
    found = read_versions(newest.start, newest.batches, "c")
    last = newest.start.end_offset - 1
    assert {one.versions[0].offset for one in found.partitions if one.is_base} == {last}
    assert {one.is_base for one in found.partitions} == {True}
    assert (len(found.partitions) + found.untold.partitions, found.untold.offset) == (3061, last)
    assert sorted(one.broker_id for one in found.brokers if one.from_offset == last) == [11, 12, 13, 14]


@pytest.mark.parametrize(
    ("record", "sentence"),
    [
        (r.PartitionChangeRecord(1, A, leader=1), "there is no partition .*-1"),
        (r.PartitionRecord(0, B, (1,), (1,), leader=1), "there is no topic "),
        (r.UnfenceBrokerRecord(7, 2), "broker 7 is not registered"),
    ],
)
def test_record_about_what_is_not_there_is_refused_with_its_offset(log: LogWriter, record: Any, sentence: str) -> None:
    log.append([record])
    with pytest.raises(ReplayError, match=sentence) as refused:
        read(log)
    assert refused.value.offset == 2


def test_more_versions_than_are_held_are_refused(log: LogWriter) -> None:
    log.append([change(leader=2)] * 3)
    with patching() as patch:
        patch.setattr(partition_versions, "VERSIONS_MAX", 3)
        with pytest.raises(TooManyVersions, match="more than 3 changes of partitions up to offset 4: say --since"):
            read(log)


@pytest.mark.parametrize("begin", [3, 2, 1])
def test_partitions_that_are_well_all_along_change_no_finding(begin: int) -> None:
    """As if all of the start were looked at, topics that are removed and ELRs that are cleared among it."""
    stretches = list(stretches_of(KAFKA_LOG))[:begin][::-1]
    batches = [bytes(batch) for stretch in stretches for batch in stretch.batches]

    def found() -> list[list[str]]:
        """Of the same time in the order in which they are met, which depends on which are looked at."""
        one = search(read_versions(stretches[0].start, batches, "c"), Thresholds())
        return [sorted(map(str, rows)) for rows in (one.reassignments, *astuple(one.findings))]

    few = found()
    with patching() as patch:
        patch.setattr(partition_versions, "_is_unwell", holds_partition)
        assert found() == few
