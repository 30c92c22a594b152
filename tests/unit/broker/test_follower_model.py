"""Which replicas count as caught up, and which ISRs leaders ask for. Times are milliseconds."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.follower_model import CONFIRM_MS, NEVER, RETRY_MS, FollowerModel
from broker.isr_proposals import NO_MEMBER, IsrProposals
from metadata_log.errors import ErrorCode
from metadata_log.ids import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from metadata_log.records import PartitionChangeRecord, Record, RemoveTopicRecord
from snapshots.image import MetadataImage
from tests.unit.broker.images import change, cluster_image, fencing, partition, registration, replayed, uuid

ALL = frozenset({1, 2, 3})
#: Partition (topic id, number) -> members of the ISR asked for, with their broker epochs.
Asked = dict[tuple[bytes, int], tuple[tuple[int, int], ...]]


def proposed(
    model: FollowerModel, now_ms: float, busy: frozenset[int] = frozenset(), rows_max: int = 100
) -> dict[int, Asked]:
    """What each leader would ask for."""
    asked = {}
    for proposals in model.due(now_ms, busy, rows_max):
        asked[proposals.leader] = as_dict(proposals)
    return asked


def as_dict(proposals: IsrProposals) -> Asked:
    return {
        (topic.tobytes(), number): tuple(
            (id_, epoch) for id_, epoch in zip(isr, epochs, strict=True) if id_ != NO_MEMBER
        )
        for topic, number, isr, epochs in zip(
            proposals.topic_ids,
            proposals.partition_ids.tolist(),
            proposals.isr.tolist(),
            proposals.isr_broker_epochs.tolist(),
            strict=True,
        )
    }


def model_of(image: MetadataImage, copy_ms: float = 0.0, leaders: frozenset[int] = ALL) -> FollowerModel:
    model = FollowerModel(copy_ms)
    model.update(image, leaders, now_ms=0.0)
    return model


def test_due_all_in_sync_is_nothing() -> None:
    model = model_of(cluster_image([1, 2, 3], [partition(0, n, [1, 2, 3]) for n in range(5)]))

    assert proposed(model, 0) == {}
    assert model.next_due_after(0) == NEVER
    assert model.following_count == 0


def test_due_replica_outside_the_isr_is_asked_for_after_the_copy_time() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1, 3])])
    model = model_of(image, copy_ms=500)

    assert proposed(model, 499) == {}
    assert model.next_due_after(0) == 500
    assert proposed(model, 500) == {1: {(uuid(0), 0): ((1, 1), (2, 1), (3, 1))}}
    assert proposed(model, 501) == {}, "it is out"
    assert model.following_count == 1


def test_due_carries_the_epochs_of_the_image() -> None:
    image = cluster_image([1, 2], [partition(0, 4, [1, 2], isr=[1])])
    image = replayed(image, change(0, 4, leader=1), change(0, 4, isr=[1]))
    (proposals,) = model_of(image).due(0, frozenset(), 100)

    assert proposals.leader_epochs.tolist() == [1]
    assert proposals.partition_epochs.tolist() == [2]
    assert proposals.partition_ids.tolist() == [4]


def test_due_leader_elsewhere_is_not_ours_to_ask_for() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2], isr=[1]), partition(0, 1, [2, 1], isr=[2])])

    assert set(proposed(model_of(image, leaders=frozenset({2})), 0)) == {2}


def test_due_fenced_follower_begins_when_it_is_unfenced() -> None:
    image = replayed(cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])]), fencing(2, fenced=True))
    model = model_of(image, copy_ms=100)
    assert model.next_due_after(0) == NEVER

    model.update(replayed(image, fencing(2, fenced=False)), ALL, now_ms=1_000)

    assert proposed(model, 1_099) == {}
    assert list(proposed(model, 1_100)) == [1]


def test_due_replica_in_a_directory_that_is_lost_does_not_follow_until_it_is_back() -> None:
    """Its broker has no data there to copy to, whatever it says of its other directories."""
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1])])
    gone = replace(registration(2), log_dirs=(uuid(77),))
    model = model_of(replayed(image, gone))
    assert model.following_count == 1

    model.update(replayed(image, replace(gone, log_dirs=(uuid(77), uuid(502)))), ALL, now_ms=10)
    assert proposed(model, 10) == {1: {(uuid(0), 0): ((1, 1), (2, 1), (3, 1))}}

    unassigned = partition(0, 0, [1, 2, 3], isr=[1])
    for directory, follows in ((DIRECTORY_UNASSIGNED, True), (DIRECTORY_MIGRATING, True), (DIRECTORY_LOST, False)):
        record = replace(unassigned, directories=(uuid(501), directory, uuid(503)))
        (isr,) = proposed(model_of(cluster_image([1, 2, 3], [record])), 0)[1].values()
        assert ((2, 1) in isr) == follows, directory


def test_due_follower_that_was_fenced_meanwhile_starts_over() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = model_of(image, copy_ms=100)
    fenced = replayed(image, fencing(2, fenced=True))
    model.update(fenced, ALL, now_ms=90)
    model.update(replayed(fenced, fencing(2, fenced=False)), ALL, now_ms=95)

    assert proposed(model, 194) == {}
    assert list(proposed(model, 195)) == [1]


def test_due_follower_registered_anew_between_two_images_starts_over() -> None:
    """Fenced, replaced and unfenced within one answer of the feed: no image shows it fenced."""
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = model_of(image, copy_ms=100)
    model.update(replayed(image, registration(2, epoch=50, incarnation=1)), ALL, now_ms=90)

    assert proposed(model, 189) == {}
    assert proposed(model, 190) == {1: {(uuid(0), 0): ((1, 1), (2, 50))}}


def test_update_other_changes_leave_clocks_running() -> None:
    """Other partitions, another leader of this one, and a reassignment that moves the replica to another slot."""
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1, 3]), partition(1, 0, [3])])
    model = model_of(image, copy_ms=100)
    image = replayed(image, change(1, 0, isr=[3]), change(0, 0, leader=3))
    model.update(image, ALL, now_ms=50)
    moved = PartitionChangeRecord(
        partition_id=0, topic_id=uuid(0), replicas=(3, 1, 2), directories=(uuid(503), uuid(501), uuid(502))
    )
    model.update(replayed(image, moved), ALL, now_ms=60)

    assert proposed(model, 99) == {}
    assert list(proposed(model, 100)) == [3]


def test_answered_granted_waits_for_the_log_and_asks_again_if_it_does_not_come() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = model_of(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.answered(proposals, np.array([ErrorCode.NONE], np.int16), now_ms=10)

    assert proposed(model, 10) == {}
    assert model.next_due_after(10) == 10 + CONFIRM_MS
    model.update(replayed(image, change(0, 0, isr=[1, 2])), ALL, now_ms=20)
    assert model.next_due_after(20) == NEVER
    assert model.following_count == 0


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.NOT_CONTROLLER]
)
def test_answered_stale_is_asked_again_soon_or_when_the_partition_changes(code: ErrorCode) -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = model_of(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.answered(proposals, np.array([code], np.int16), now_ms=10)

    assert proposed(model, 10) == {}
    assert model.next_due_after(10) == 10 + RETRY_MS
    model.update(replayed(image, change(0, 0, isr=[1])), ALL, now_ms=20)
    assert list(proposed(model, 20)) == [1], "the image has moved on"


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_answered_fenced_is_dropped_until_the_partition_changes(code: ErrorCode) -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = model_of(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.answered(proposals, np.array([code], np.int16), now_ms=10)

    assert model.next_due_after(10) == NEVER
    model.update(replayed(image, change(0, 0, leader=1)), ALL, now_ms=20)
    assert list(proposed(model, 20)) == [1]


def test_answered_after_the_partition_changed_says_nothing_about_it() -> None:
    """The answer to an old state must not hold back what the new one asks for."""
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1])])
    model = model_of(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.update(replayed(image, change(0, 0, isr=[1, 2])), ALL, now_ms=5)
    model.answered(proposals, np.array([ErrorCode.FENCED_LEADER_EPOCH], np.int16), now_ms=10)

    assert proposed(model, 10) == {1: {(uuid(0), 0): ((1, 1), (2, 1), (3, 1))}}


def test_postponed_request_is_repeated_at_its_time() -> None:
    model = model_of(cluster_image([1, 2], [partition(0, n, [1, 2], isr=[1]) for n in range(3)]))
    (proposals,) = model.due(0, frozenset(), 100)
    model.postponed(proposals, until_ms=70)

    assert proposed(model, 69) == {}
    assert len(proposed(model, 70)[1]) == 3


def test_due_busy_leader_and_full_request_leave_the_rest_for_later() -> None:
    image = cluster_image(
        [1, 2], [*(partition(0, n, [1, 2], isr=[1]) for n in range(5)), partition(1, 0, [2, 1], isr=[2])]
    )
    model = model_of(image)

    assert set(proposed(model, 0, busy=frozenset({1}))) == {2}
    assert model.next_due_after(0) == NEVER, "what is due waits for its leader, not for a time"
    assert len(proposed(model, 0, rows_max=3)[1]) == 3
    assert len(proposed(model, 0, rows_max=3)[1]) == 2


def test_update_deleted_topic_is_forgotten() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = model_of(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.update(replayed(image, RemoveTopicRecord(topic_id=uuid(0))), ALL, now_ms=5)
    model.answered(proposals, np.array([ErrorCode.UNKNOWN_TOPIC_ID], np.int16), now_ms=10)

    assert model.following_count == 0
    assert model.next_due_after(10) == NEVER


# --- against a model that looks at one partition at a time -----------------------------------------------


@dataclass
class NaiveModel:
    """The same rules, partition by partition."""

    copy_ms: float
    since: dict[tuple[bytes, int, int], float] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)

    def update(self, image: MetadataImage, leaders: frozenset[int], now_ms: float) -> None:
        brokers = image.cluster.brokers
        epochs = {id_: broker.epoch for id_, broker in brokers.items()}
        since = {}
        for topic in image.topics.by_id:
            for number, state in image.partitions.partitions_of(topic):
                for replica in state.replicas:
                    broker = brokers.get(replica)
                    is_following = broker is not None and broker.is_active and replica not in state.isr
                    if state.leader in leaders and is_following:
                        key = (topic, number, replica)
                        goes_on = key in self.since and self.epochs.get(replica) == epochs[replica]
                        since[key] = self.since[key] if goes_on else now_ms
        self.since, self.epochs = since, epochs

    def due(self, image: MetadataImage, now_ms: float) -> dict[int, Asked]:
        asked: dict[int, Asked] = {}
        for (topic, number, replica), since in self.since.items():
            if since + self.copy_ms <= now_ms:
                row = image.partitions.row(topic, number)
                assert row is not None
                state = image.partitions.partition(row)
                by_partition = asked.setdefault(state.leader, {})
                members = {id_ for id_, _ in by_partition.get((topic, number), ())} | {replica, *state.isr}
                by_partition[topic, number] = tuple((id_, self.epochs[id_]) for id_ in sorted(members))
        return asked


BROKERS = (1, 2, 3, 4)


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[tuple[float, list[Record]]], frozenset[int]]:
    """Changes of a small cluster, in steps with times, and the brokers that are played."""
    steps = []
    epoch = 10
    for _ in range(draw(st.integers(1, 8))):
        records: list[Record] = []
        for _ in range(draw(st.integers(0, 3))):
            topic, number, broker = draw(st.integers(0, 1)), draw(st.integers(0, 2)), draw(st.sampled_from(BROKERS))
            kind = draw(st.sampled_from(["isr", "leader", "replicas", "fence", "unfence", "register"]))
            if kind == "isr":
                isr = draw(st.lists(st.sampled_from(BROKERS), unique=True, min_size=1, max_size=4))
                records.append(change(topic, number, isr=isr))
            elif kind == "leader":
                records.append(change(topic, number, leader=draw(st.sampled_from((-1, *BROKERS)))))
            elif kind == "replicas":
                replicas = tuple(draw(st.permutations(BROKERS)))[: draw(st.integers(1, 4))]
                records.append(
                    PartitionChangeRecord(
                        partition_id=number,
                        topic_id=uuid(topic),
                        replicas=replicas,
                        directories=tuple(uuid(500 + replica) for replica in replicas),
                    )
                )
            else:
                epoch += 1
                records.append(registration(broker, epoch, fenced=kind == "fence", incarnation=epoch))
        steps.append((draw(st.sampled_from((0.0, 30.0, 60.0))), records))
    return steps, frozenset(draw(st.sets(st.sampled_from(BROKERS))))


@given(histories())
def test_model_any_history_agrees_with_the_naive_model(
    history: tuple[list[tuple[float, list[Record]]], frozenset[int]],
) -> None:
    steps, leaders = history
    image = cluster_image(BROKERS, [partition(topic, n, [1, 2, 3]) for topic in (0, 1) for n in range(3)])
    model, naive = FollowerModel(100), NaiveModel(100)
    now = 0.0
    for wait_ms, records in steps:
        now += wait_ms
        image = replayed(image, *records)
        model.update(image, leaders, now)
        naive.update(image, leaders, now)
        expected = naive.due(image, now)
        asked = list(model.due(now, frozenset(), 100))
        assert {proposals.leader: as_dict(proposals) for proposals in asked} == expected
        assert model.following_count == len(naive.since)
        for proposals in asked:
            model.postponed(proposals, until_ms=now)


def test_update_topic_beside_it_grows_and_moves_is_still_found() -> None:
    """The rows of a topic that grows are moved; its clocks start over, which the model says."""
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1]), partition(1, 0, [1, 2])])
    model = model_of(image, copy_ms=100)
    grown = replayed(image, *(partition(0, n, [1, 2], isr=[1]) for n in range(1, 40)))
    model.update(grown, ALL, now_ms=50)

    assert len(proposed(model, 150)[1]) == 40
