"""What an active controller does every few minutes: leaderships go back, and leaderless partitions elect uncleanly."""

from __future__ import annotations

import pytest

from quorate.controller.decisions.decision import Decision
from quorate.controller.engine.log_in_memory import LogInMemory
from quorate.controller.operations.active_role import RoleSettings
from quorate.controller.partitions import elections
from quorate.controller.partitions.elections import decide_balance_leaders
from quorate.controller.process.composition import Machine, compose
from quorate.metadata_log.batches.batch import data_batch
from quorate.metadata_log.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from quorate.metadata_log.records.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.scripts.conformance_runner.java_random import JavaRandom
from quorate.snapshots.image.image_parts import TOPIC_RESOURCE
from quorate.snapshots.table.partition import Partition
from tests.default_parts import controller_config, controller_limits, role_settings
from tests.guards.sound_images import watch
from tests.unit.controller.manual_quorum import RecordingFaults
from tests.unit.controller.manual_scheduler import ManualScheduler
from tests.unit.controller.small_cluster import uuid

MINUTES_5 = 300_000
TOPIC = uuid(3, 0)


def partition(number: int, replicas: tuple[int, ...], isr: tuple[int, ...], leader: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=number,
        topic_id=TOPIC,
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=0,
        partition_epoch=0,
        directories=(DIRECTORY_UNASSIGNED,) * len(replicas),
    )


def versioned(record: Record) -> VersionedRecord:
    return VersionedRecord(record, {RegisterBrokerRecord: 4, PartitionRecord: 2}.get(type(record), 0))


class Controller:
    """A controller that leads a log in memory, under virtual time; brokers 0 to 3, of which 3 is fenced."""

    def __init__(self, *partitions: PartitionRecord, settings: RoleSettings, percentage: int | None = None) -> None:
        self.scheduler = ManualScheduler()
        self.log = LogInMemory(self.scheduler)
        self.faults = RecordingFaults()
        config = controller_config(node_id=9, cluster_id="c", leader_imbalance_percentage=percentage)
        machine = Machine(self.scheduler, self.faults, JavaRandom(1), lambda: TOPIC)
        self.quorum = compose(config, settings, controller_limits(), (), self.log, machine).controller
        self.log.controllers = (self.quorum,)
        watch(lambda: self.quorum.stable)
        self.config = config
        self.write(FeatureLevelRecord("metadata.version", 30), TopicRecord("t", TOPIC))
        for broker in range(4):
            directories = (DIRECTORY_MIGRATING[:15] + bytes([100 + broker]),)
            self.write(
                RegisterBrokerRecord(broker_id=broker, broker_epoch=broker, fenced=broker == 3, log_dirs=directories)
            )
        self.write(*partitions)
        self.log.leader_id = 9
        self.quorum.on_leader_change(9, 2)
        self.scheduler.run()

    def write(self, *records: Record) -> None:
        """What the log begins with."""
        self.log.write(1, data_batch([(v.record, v.version) for v in map(versioned, records)], 0))
        self.scheduler.run()

    def change(self, *records: Record) -> None:
        """As its leader."""
        decision = Decision([versioned(record) for record in records], None)
        self.quorum.events.append(self.quorum.write_internally("change", lambda _: decision))
        self.scheduler.run()

    def partition(self, number: int) -> Partition:
        row = self.quorum.stable.partitions.row(TOPIC, number)
        assert row is not None
        return self.quorum.stable.partitions.partition(row)


def settings(balance: float = MINUTES_5, unclean: float = MINUTES_5) -> RoleSettings:
    return role_settings(
        idle_noop_interval_ms=0,
        starts_sessions=False,
        leader_balance_interval_ms=balance,
        unclean_election_interval_ms=unclean,
    )


def test_balance_after_five_minutes_gives_leadership_back() -> None:
    c = Controller(
        partition(0, (0, 1), (0, 1), 1),
        partition(1, (2, 1), (1,), 1),  # the preferred leader is not in sync
        partition(2, (3, 1), (3, 1), 1),  # ... or fenced
        settings=settings(),
    )

    c.scheduler.advance(MINUTES_5 - 1)
    assert c.partition(0).leader == 1
    c.scheduler.advance(1)
    assert [c.partition(number).leader for number in range(3)] == [0, 1, 1]
    c.change(partition(3, (0, 1), (0, 1), 1))
    c.scheduler.advance(MINUTES_5)
    assert c.partition(3).leader == 0


def test_balance_switched_off_leaves_leaders_alone() -> None:
    c = Controller(partition(0, (0, 1), (0, 1), 1), settings=settings(balance=0))

    c.scheduler.advance(10 * MINUTES_5)

    assert c.partition(0).leader == 1


@pytest.fixture
def small_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "ELECTIONS_PER_PASS_MAX", 3)
    monkeypatch.setattr(elections, "_ROWS_AT_ONCE", 2)
    monkeypatch.setattr(elections, "_LOOKS_PER_PASS_MAX", 2)


@pytest.mark.usefixtures("small_passes")
def test_balance_more_than_a_pass_holds_goes_on_at_once() -> None:
    c = Controller(*[partition(number, (0, 1), (0, 1), 1) for number in range(8)], settings=settings())
    end = len(c.log.batches)

    first = decide_balance_leaders(c.quorum.stable, c.config)
    assert (first.reply, sum(len(run) for run in first.records if not isinstance(run, tuple))) == (3, 3)
    c.scheduler.advance(MINUTES_5)

    assert {c.partition(number).leader for number in range(8)} == {0}
    assert c.faults.seen == []
    assert len(c.log.batches) > end


@pytest.mark.usefixtures("small_passes")
def test_balance_finding_nothing_looks_at_a_bounded_number_of_rows_at_once() -> None:
    """The preferred leader of most partitions is not in sync, as after it came back."""
    behind = [partition(number, (2, 1), (1,), 1) for number in range(9)]
    c = Controller(*behind, partition(9, (0, 1), (0, 1), 1), settings=settings())

    first = decide_balance_leaders(c.quorum.stable, c.config)
    assert (list(first.records), first.reply) == ([], 4)
    c.scheduler.advance(MINUTES_5)

    assert c.partition(9).leader == 0


@pytest.mark.usefixtures("small_passes")
def test_balance_passes_over_partitions_whose_preferred_leader_is_away() -> None:
    """As after the loss of a broker: nothing can be given back to it, however many there are."""
    away = [partition(number, (3, 1), (1,), 1) for number in range(9)]
    c = Controller(*away, partition(9, (0, 1), (0, 1), 1), settings=settings())

    first = decide_balance_leaders(c.quorum.stable, c.config)
    assert (sum(len(run) for run in first.records if not isinstance(run, tuple)), first.reply) == (1, None)


def test_balance_elects_where_nobody_active_leads_though_the_preferred_leader_is_away() -> None:
    c = Controller(partition(0, (3, 1), (1,), -1), partition(1, (4, 3, 1), (3, 1), 3), settings=settings())

    c.scheduler.advance(MINUTES_5)

    assert [c.partition(number).leader for number in range(2)] == [1, 1]


@pytest.mark.parametrize(
    ("percentage", "leaders"), [(None, [0, 0, 0, 1, 2]), (25, [0, 0, 0, 2, 2]), (0, [0, 0, 0, 1, 2])]
)
def test_balance_by_percentage_only_gives_back_to_brokers_above_it(percentage: int | None, leaders: list[int]) -> None:
    """Broker 0 misses one of its three partitions, broker 1 its one of four."""
    others = [partition(5 + number, (1, 2), (1, 2), 1) for number in range(3)]
    c = Controller(
        partition(0, (0, 1), (0, 1), 0),
        partition(1, (0, 1), (0, 1), 0),
        partition(2, (0, 1), (0, 1), 1),
        partition(3, (1, 2), (1, 2), 2),
        partition(4, (2, 1), (2, 1), 2),
        *others,
        settings=settings(),
        percentage=percentage,
    )

    c.scheduler.advance(MINUTES_5)

    assert [c.partition(number).leader for number in range(5)] == leaders


def test_unclean_after_five_minutes_only_where_the_topic_allows_it() -> None:
    c = Controller(partition(0, (3, 1), (3,), -1), settings=settings())
    c.scheduler.advance(MINUTES_5)
    assert c.partition(0).leader == -1

    c.change(ConfigRecord(TOPIC_RESOURCE, "t", "unclean.leader.election.enable", "true"))
    c.scheduler.advance(MINUTES_5)

    assert (c.partition(0).leader, c.partition(0).isr, c.partition(0).leader_recovery_state) == (1, (1,), 1)


def test_periodic_work_stops_when_leadership_is_lost() -> None:
    c = Controller(partition(0, (0, 1), (0, 1), 1), settings=settings())
    c.quorum.on_leader_change(8, 3)

    c.scheduler.advance(MINUTES_5)

    assert c.partition(0).leader == 1
