"""Followers say how far they are, leaders keep the ISRs by it: whole exchanges, in virtual milliseconds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.broker.replicas import follower as follower_module
from quorate.broker.replicas.follower import ROWS_PER_MESSAGE
from quorate.broker.replicas.messages import ROWS_MAX
from quorate.broker.replicas.stand_in import Pace, StandInLog
from quorate.metadata_log.ids import DIRECTORY_LOST
from quorate.metadata_log.records.records import PartitionChangeRecord
from tests.unit.broker.images import change, cluster_image, fencing, partition, registration, replayed, uuid
from tests.unit.broker.replicas.exchange import INTERVAL_MS, LAG_MAX_MS, Cluster

SEPARATE = [[1], [2], [3]]
#: A partition holds 1,000 bytes; nothing is written.
SMALL = StandInLog(1_000, 0)
#: 1,000 bytes a second are written to each partition.
WRITTEN = StandInLog(1_000, 1_000)
T0 = (uuid(0), 0)


def three(isr: list[int] | None = None) -> Cluster:
    """One partition led by 1, three processes."""
    return Cluster(cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=isr)]), SEPARATE)


def reassigned(replicas: tuple[int, ...], adding: tuple[int, ...], removing: tuple[int, ...]) -> PartitionChangeRecord:
    return PartitionChangeRecord(
        partition_id=0,
        topic_id=uuid(0),
        replicas=replicas,
        directories=tuple(uuid(500 + replica) for replica in replicas),
        adding_replicas=adding,
        removing_replicas=removing,
    )


def test_exchange_replica_outside_the_isr_enters_when_it_has_said_so() -> None:
    cluster = three(isr=[1, 3])
    cluster.settle()

    assert cluster.isr(*T0) == (1, 2, 3)
    assert [isr for _, _, _, isr in cluster.asked] == [(1, 2, 3)]


def test_exchange_target_of_a_reassignment_that_is_frozen_is_not_asked_for() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2])])
    cluster = Cluster(image, SEPARATE)
    cluster.settle()
    cluster.process(3).is_frozen = True
    cluster.write(reassigned((3, 1, 2), (3,), (2,)))
    cluster.run(2 * LAG_MAX_MS)
    assert cluster.isr(*T0) == (1, 2)

    cluster.thaw(cluster.process(3))
    cluster.settle()
    assert cluster.isr(*T0) == (1, 2, 3)


def test_exchange_copying_takes_size_over_rate() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    cluster = Cluster(image, [[1], [2]], log=SMALL, pace=Pace(2_000))
    cluster.run(480)
    assert cluster.asked == []

    cluster.run(100)
    assert [(at, isr) for at, _, _, isr in cluster.asked] == [(510, (1, 2))]  # asked first after 10 ms


def test_exchange_copy_goes_on_under_another_leader() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 3, 2], isr=[1, 3])])
    cluster = Cluster(image, SEPARATE, log=SMALL, pace=Pace(2_000))
    cluster.run(400)
    cluster.write(change(0, 0, leader=3))
    cluster.run(200)

    ((at, _, _, isr),) = cluster.asked
    assert isr == (1, 2, 3)
    assert 500 <= at <= 530


def test_exchange_copy_that_was_held_up_copies_only_what_the_leader_still_has() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    cluster = Cluster(image, [[1], [2]], log=WRITTEN, pace=Pace(2_000))
    cluster.run(200)
    cluster.process(2).follower.set_pace(Pace(2_000, is_stalled=True), cluster.now)
    cluster.run(60_000)
    assert cluster.asked == []

    cluster.process(2).follower.set_pace(Pace(2_000), cluster.now)
    cluster.run(3_000)
    assert cluster.isr(*T0) == (1, 2), "the partition holds what is written in a second, not in a minute"


def test_exchange_process_that_begins_anew_has_nothing_unless_it_is_in_the_isr() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1, 3])])
    cluster = Cluster(image, SEPARATE, log=SMALL, pace=Pace(1_000))
    cluster.run(900)
    cluster.restart(2)
    cluster.restart(3)
    cluster.run(900)
    assert cluster.asked == [], "what 2 had copied is gone"

    cluster.run(200)
    assert cluster.isr(*T0) == (1, 2, 3)


def test_exchange_frozen_follower_leaves_after_the_lag_and_comes_back() -> None:
    cluster = three()
    cluster.run(1_000)
    cluster.process(3).is_frozen = True
    frozen_at = cluster.now
    cluster.run(2 * LAG_MAX_MS)

    (asked,) = cluster.asked
    assert asked[3] == (1, 2)
    assert LAG_MAX_MS - INTERVAL_MS <= asked[0] - frozen_at <= 1.5 * LAG_MAX_MS + 10
    cluster.thaw(cluster.process(3))
    cluster.run(2 * INTERVAL_MS)
    assert cluster.isr(*T0) == (1, 2, 3)


def test_exchange_slow_follower_falls_out_and_comes_back_at_its_old_rate() -> None:
    """It goes on to say how far it is: that it lags is seen by its position, not by its silence."""
    image = cluster_image([1, 2], [partition(0, n, [1, 2]) for n in range(3)])
    cluster = Cluster(image, [[1], [2]], log=WRITTEN, pace=Pace(10_000))
    cluster.run(3 * LAG_MAX_MS)
    assert cluster.asked == []

    cluster.process(2).follower.set_pace(Pace(500), cluster.now)
    slowed_at = cluster.now
    cluster.run(3 * LAG_MAX_MS)
    assert {isr for _, _, _, isr in cluster.asked} == {(1,)}
    # At half the rate the lag grows by half a second a second.
    assert 2 * LAG_MAX_MS - 2 * INTERVAL_MS <= cluster.asked[0][0] - slowed_at <= 2.5 * LAG_MAX_MS + INTERVAL_MS

    cluster.process(2).follower.set_pace(Pace(10_000), cluster.now)
    cluster.run(2_000)
    assert [cluster.isr(uuid(0), n) for n in range(3)] == [(1, 2)] * 3


def test_exchange_stalled_follower_says_nothing_and_copies_nothing() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2]), partition(0, 1, [1, 2], isr=[1])])
    cluster = Cluster(image, [[1], [2]], log=SMALL, pace=Pace(1_000))
    cluster.run(500)
    cluster.process(2).follower.set_pace(Pace(1_000, is_stalled=True), cluster.now)
    cluster.run(2 * LAG_MAX_MS)
    assert (cluster.isr(uuid(0), 0), cluster.isr(uuid(0), 1)) == ((1,), (1,))

    cluster.process(2).follower.set_pace(Pace(1_000), cluster.now)
    cluster.run(400)
    assert cluster.isr(uuid(0), 1) == (1,), "half of it is still to be copied"
    cluster.run(200)
    assert (cluster.isr(uuid(0), 0), cluster.isr(uuid(0), 1)) == ((1, 2), (1, 2))


def test_exchange_steady_state_costs_one_message_an_interval_and_no_rows() -> None:
    image = cluster_image([1, 2], [partition(0, n, [1, 2]) for n in range(200)])
    cluster = Cluster(image, [[1], [2]])
    cluster.run(1_000)
    follower = cluster.process(2)
    assert set(follower.said.values()) == {1}, "each partition once"

    sent = follower.messages_sent
    cluster.run(10 * INTERVAL_MS)
    assert (follower.said.total(), follower.messages_sent - sent) == (200, 10)


def test_exchange_more_rows_than_a_message_holds_are_said_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 4_500
    image = cluster_image([1, 2], [partition(0, n, [1, 2], isr=[1]) for n in range(rows)])
    cluster = Cluster(image, [[1], [2]])
    follower = cluster.process(2).follower
    (link,) = [link for link in follower.links if link.row_count]
    follower.set_followers({2: 1})
    assert rows < ROWS_PER_MESSAGE <= ROWS_MAX

    said = follower._pages.take_unsaid(link.index, [2], 1_000)
    assert len(said) == 1_000
    monkeypatch.setattr(follower_module, "ROWS_PER_MESSAGE", 3_000)
    ((_, message),) = follower.messages(cluster.now)
    assert len(message.rows) == 3_000
    rest = follower._pages.take_unsaid(link.index, [2], ROWS_MAX)
    assert len(rest) == rows - 4_000
    numbers = [number for part in (said, message.rows, rest) for number in part.partition_ids.tolist()]
    assert sorted(numbers) == list(range(rows))


def test_exchange_leader_whose_image_is_behind_is_told_again() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1, 2])])
    cluster = Cluster(image, SEPARATE, log=SMALL, pace=Pace(1_000_000))
    leader = cluster.process(2)
    cluster.publish(replayed(image, change(0, 0, leader=2)), only=[cluster.process(1), cluster.process(3)])
    cluster.run(300)
    assert cluster.asked == []

    leader.leader.update(cluster.image, leader.brokers, cluster.now)
    leader.follower.update(cluster.image, leader.brokers, {1: "process-1", 3: "process-3"}, 0, cluster.now)
    cluster.run(600)
    assert cluster.isr(*T0) == (1, 2, 3)


def test_exchange_restarted_leader_is_told_everything_again() -> None:
    cluster = three(isr=[1, 2])
    cluster.process(3).is_frozen = True
    cluster.run(100)
    cluster.restart(1)
    cluster.run(LAG_MAX_MS * 2)
    assert cluster.isr(*T0) == (1, 2)

    cluster.thaw(cluster.process(3))
    cluster.run(2 * INTERVAL_MS)
    assert cluster.isr(*T0) == (1, 2, 3)


def test_exchange_follower_registered_anew_says_all_again_under_its_new_epoch() -> None:
    cluster = three()
    cluster.run(100)
    cluster.write(registration(2, epoch=50, incarnation=1), change(0, 0, isr=[1, 3]))
    cluster.run(100)

    assert cluster.isr(*T0) == (1, 2, 3)


def test_exchange_fenced_follower_that_lives_comes_back_when_it_is_unfenced() -> None:
    cluster = three()
    cluster.run(100)
    cluster.write(fencing(2, fenced=True), change(0, 0, isr=[1, 3]))
    cluster.run(2_000)
    assert cluster.isr(*T0) == (1, 3)

    cluster.write(fencing(2, fenced=False))
    cluster.settle()
    assert cluster.isr(*T0) == (1, 2, 3)


def test_exchange_replica_in_a_directory_that_failed_does_not_follow() -> None:
    """Its broker lives and follows with others: of this one nothing may be heard any more."""
    image = cluster_image([1, 2], [partition(0, 0, [1, 2]), partition(0, 1, [1, 2])])
    cluster = Cluster(image, [[1], [2]])
    cluster.run(1_000)
    failed = PartitionChangeRecord(partition_id=0, topic_id=uuid(0), directories=(uuid(501), DIRECTORY_LOST), isr=(1,))
    cluster.write(failed)
    cluster.run(2 * LAG_MAX_MS)

    assert (cluster.isr(uuid(0), 0), cluster.isr(uuid(0), 1)) == ((1,), (1, 2))


def test_exchange_replica_whose_directory_comes_back_is_not_taken_for_what_it_was() -> None:
    """What was said of it before counts no more: its data were lost with the directory."""
    image = cluster_image([1, 2], [partition(0, 0, [1, 2]), partition(0, 1, [1, 2])])
    cluster = Cluster(image, [[1], [2]], log=SMALL, pace=Pace(100))
    cluster.run(1_000)
    lost, back = ((uuid(501), DIRECTORY_LOST), (uuid(501), uuid(502)))
    cluster.write(PartitionChangeRecord(partition_id=0, topic_id=uuid(0), directories=lost, isr=(1,)))
    cluster.run(1_000)
    cluster.write(PartitionChangeRecord(partition_id=0, topic_id=uuid(0), directories=back))
    cluster.run(5_000)
    assert cluster.asked == [], "half of it is still to be copied"

    cluster.run(6_000)
    assert cluster.isr(uuid(0), 0) == (1, 2)


def test_exchange_brokers_of_one_process_follow_each_other_and_others() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1]), partition(0, 1, [3, 2, 1], isr=[3])])
    cluster = Cluster(image, [[1, 2], [3]])
    cluster.settle()

    assert [cluster.isr(uuid(0), n) for n in (0, 1)] == [(1, 2, 3)] * 2


def test_exchange_older_image_than_before_makes_everybody_say_all_again() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2])])
    later = replayed(image, change(0, 0, leader=2), change(0, 0, leader=1))
    cluster = Cluster(later, [[1], [2]])
    cluster.run(1_000)
    leader = cluster.process(1)
    leader.leader.update(image, leader.brokers, cluster.now)
    leader.leader.update(later, leader.brokers, cluster.now)
    cluster.run(3 * LAG_MAX_MS)

    assert cluster.isr(*T0) == (1, 2)


@pytest.mark.parametrize("position", [0, 1])
def test_exchange_row_that_moves_stays_followed(position: int) -> None:
    """A topic that grows gets other rows, in the leader's image and the follower's."""
    image = cluster_image([1, 2], [partition(0, 0, [1, 2]), partition(1, 0, [1, 2])])
    cluster = Cluster(image, [[1], [2]], log=SMALL, pace=Pace(10))
    cluster.run(1_000)
    grown = replayed(image, *(partition(0, n, [1, 2]) for n in range(1, 40)))
    first = cluster.processes[position]
    cluster.publish(grown, only=[first])
    cluster.run(50)
    cluster.publish(grown, only=[one for one in cluster.processes if one is not first])
    cluster.run(2 * LAG_MAX_MS)

    assert cluster.asked == []
    assert {cluster.process(2).said[uuid(topic), 0] for topic in (0, 1)} == {1}


# --- any history -----------------------------------------------------------------------------------------


@st.composite
def steps(draw: st.DrawFn) -> list[tuple[str, int, float]]:
    kinds = st.sampled_from(["freeze", "thaw", "restart", "lead", "fence", "unfence", "slow", "fast", "pass"])
    times = st.sampled_from([0.0, 30.0, 700.0, LAG_MAX_MS, 2 * LAG_MAX_MS])
    count = draw(st.integers(1, 8))
    return [(draw(kinds), draw(st.integers(1, 3)), draw(times)) for _ in range(count)]


@settings(max_examples=25)
@given(steps())
def test_exchange_any_history_nobody_enters_while_frozen_and_all_are_in_at_the_end(
    history: list[tuple[str, int, float]],
) -> None:
    cluster = Cluster(
        cluster_image([1, 2, 3], [partition(0, n, [1, 2, 3]) for n in range(2)]),
        SEPARATE,
        log=WRITTEN,
        pace=Pace(20_000),
    )
    for kind, broker, wait_ms in history:
        before = {n: set(cluster.isr(uuid(0), n)) for n in range(2)}
        asked = len(cluster.asked)
        frozen = {min(one.brokers) for one in cluster.processes if one.is_frozen}
        play(cluster, kind, broker)
        frozen &= {min(one.brokers) for one in cluster.processes if one.is_frozen}
        cluster.run(wait_ms, step=100)
        for _, _, number, isr in cluster.asked[asked:]:
            assert not (set(isr) - before[number]) & frozen, (kind, broker, isr)
    for process in cluster.processes:
        if process.is_frozen:
            cluster.thaw(process)
        process.follower.set_pace(Pace(20_000), cluster.now)
    for broker in (1, 2, 3):
        cluster.write(fencing(broker, fenced=False))
    cluster.run(2 * LAG_MAX_MS, step=100)

    assert [cluster.isr(uuid(0), n) for n in range(2)] == [(1, 2, 3)] * 2


def play(cluster: Cluster, kind: str, broker: int) -> None:
    process = cluster.process(broker)
    if kind == "freeze":
        process.is_frozen = True
    elif kind == "thaw":
        cluster.thaw(process)
    elif kind == "restart" and not process.is_frozen:
        cluster.restart(broker)
    elif kind == "lead":
        for number in range(2):
            if broker in cluster.isr(uuid(0), number):
                cluster.write(change(0, number, leader=broker))
    elif kind in ("fence", "unfence"):
        cluster.write(fencing(broker, fenced=kind == "fence"))
    elif kind in ("slow", "fast"):
        process.follower.set_pace(Pace(500 if kind == "slow" else 20_000), cluster.now)
