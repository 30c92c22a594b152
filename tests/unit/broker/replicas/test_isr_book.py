"""Which ISRs leaders ask for, by what was noted of their followers. Times are milliseconds."""

import numpy as np
import pytest

from quorate.broker.replicas.isr_book import AS_BEFORE, CONFIRM_MS, RETRY_MS, IsrBook
from quorate.broker.replicas.led_rows import NEVER, UNKNOWN, FollowerGroup
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import PartitionChangeRecord, RemoveTopicRecord
from tests.unit.broker.images import change, cluster_image, fencing, partition, registration, replayed, uuid
from tests.unit.broker.replicas.books import ALL, LAG_MAX_MS, Asked, book_of, note, proposed, told


def test_due_all_in_sync_is_nothing() -> None:
    book = told(cluster_image([1, 2, 3], [partition(0, n, [1, 2, 3]) for n in range(5)]))

    assert proposed(book, 0) == {}
    assert book.next_due_after(0) == NEVER
    assert book.outside_count == 0


def test_replicas_outside_are_counted_when_pages_change_and_not_when_somebody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image = cluster_image([1, 2, 3], [partition(0, n, [1, 2, 3], isr=[1, 3] if n else [1]) for n in range(5)])
    counted: list[int] = []
    usual = np.bitwise_count

    def count(isr: np.ndarray) -> np.ndarray:
        counted.append(len(isr))
        return np.asarray(usual(isr))

    monkeypatch.setattr(np, "bitwise_count", count)
    book = book_of(image)
    assert (book.outside_count, counted) == (6, [5])
    assert {book.outside_count for _ in range(10)} == {6}
    assert counted == [5]

    book.update(replayed(image, change(0, 0, isr=[1, 2])), ALL, now_ms=20)
    assert (book.outside_count, counted) == (5, [5, 5])


def test_due_follower_of_which_nothing_is_known_is_not_asked_for() -> None:
    """Alive, registered, unfenced: none of that says that it has anything."""
    book = book_of(cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1, 3])]))

    assert proposed(book, 0) == {}
    assert book.outside_count == 1
    note(book, 0, [0], 2)
    assert proposed(book, 500) == {1: {(uuid(0), 0): ((1, 1), (2, 1), (3, 1))}}
    assert proposed(book, 501) == {}, "it is out"


def test_due_carries_the_epochs_of_the_image() -> None:
    image = cluster_image([1, 2], [partition(0, 4, [1, 2], isr=[1])])
    image = replayed(image, change(0, 4, leader=1), change(0, 4, isr=[1]))
    (proposals,) = told(image).due(0, frozenset(), 100)

    assert proposals.leader_epochs.tolist() == [1]
    assert proposals.partition_epochs.tolist() == [2]
    assert proposals.partition_ids.tolist() == [4]


def test_note_what_does_not_fit_the_image_is_refused_as_a_leader_would() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2], isr=[1]), partition(0, 1, [2, 1], isr=[2])])
    image = replayed(image, change(0, 0, leader=1))
    book = book_of(image, frozenset({1}))

    assert note(book, 0, [0, 7], 2, leader_epoch=1) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
    assert note(book, 0, [0], 2, leader_epoch=0) == [ErrorCode.FENCED_LEADER_EPOCH]
    assert note(book, 0, [0], 2, leader_epoch=2) == [ErrorCode.UNKNOWN_LEADER_EPOCH]
    assert note(book, 0, [1], 1) == [ErrorCode.NOT_LEADER_OR_FOLLOWER], "it is led elsewhere"
    assert note(book, 0, [0], 3, leader_epoch=1) == [ErrorCode.NOT_LEADER_OR_FOLLOWER], "it is no replica"
    assert note(book, 0, [0], 1, leader_epoch=1) == [ErrorCode.NOT_LEADER_OR_FOLLOWER], "it is the leader itself"


def test_due_fenced_follower_waits_until_it_is_unfenced() -> None:
    image = replayed(cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])]), fencing(2, fenced=True))
    book = told(image)
    assert proposed(book, 0) == {}

    book.update(replayed(image, fencing(2, fenced=False)), ALL, now_ms=1_000)
    assert list(proposed(book, 1_000)) == [1]


def test_update_new_leader_epoch_forgets_what_was_said_under_the_old_one() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1, 3])])
    book = told(image)
    book.update(replayed(image, change(0, 0, leader=3)), ALL, now_ms=10)

    assert proposed(book, 10) == {}
    note(book, 0, [0], 2, leader_epoch=1)
    assert list(proposed(book, 10)) == [3]


def test_update_follower_registered_anew_is_known_no_more() -> None:
    """Fenced, replaced and unfenced within one answer of the feed: no image shows it fenced."""
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    book = told(image)
    book.update(replayed(image, registration(2, epoch=50, incarnation=1)), ALL, now_ms=90)

    assert proposed(book, 90) == {}
    note(book, 0, [0], 2)
    assert proposed(book, 90) == {1: {(uuid(0), 0): ((1, 1), (2, 50))}}


def test_update_topic_that_grows_and_moves_keeps_what_is_known() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1]), partition(1, 0, [1, 2])])
    book = told(image)
    grown = replayed(image, *(partition(0, n, [1, 2], isr=[1]) for n in range(1, 40)))
    assert grown.partitions.row(uuid(0), 0) != image.partitions.row(uuid(0), 0), "the topic has other rows now"
    book.update(grown, ALL, now_ms=50)

    assert list(proposed(book, 50)[1]) == [(uuid(0), 0)]


def test_update_replica_in_another_slot_stays_known() -> None:
    """A reassignment puts replicas in another order, and bumps no leader epoch."""
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1, 3])])
    book = told(image)
    moved = PartitionChangeRecord(
        partition_id=0, topic_id=uuid(0), replicas=(3, 1, 2), directories=(uuid(503), uuid(501), uuid(502))
    )
    book.update(replayed(image, moved), ALL, now_ms=60)

    assert proposed(book, 60) == {1: {(uuid(0), 0): ((1, 1), (2, 1), (3, 1))}}


# --- leaving the ISR -------------------------------------------------------------------------------------


def expired(book: IsrBook, now_ms: float) -> dict[int, Asked]:
    book.expire(now_ms)
    return proposed(book, now_ms)


def test_expire_silent_member_leaves_when_it_was_not_caught_up_for_too_long() -> None:
    """Its leader has just begun: it has the time that anybody has."""
    book = book_of(cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3])]))
    note(book, 0, [0], 3, caught_up_ms=500)

    assert expired(book, LAG_MAX_MS) == {}
    assert expired(book, LAG_MAX_MS + 1) == {1: {(uuid(0), 0): ((1, 1), (3, 1))}}


def test_expire_group_speaks_for_all_partitions_of_its_broker_by_one_number() -> None:
    image = cluster_image([1, 2, 3], [partition(0, n, [1, 2, 3]) for n in range(3)])
    book = book_of(image)
    book.groups = {2: FollowerGroup(caught_up_ms=900), 3: FollowerGroup(caught_up_ms=400)}
    for broker in (2, 3):
        note(book, 0, range(3), broker, AS_BEFORE, is_member=True)

    assert expired(book, LAG_MAX_MS + 400) == {}
    assert set(expired(book, LAG_MAX_MS + 401)[1].values()) == {((1, 1), (2, 1))}
    book.groups[3] = FollowerGroup(caught_up_ms=1_300, is_level=True)
    book.look_again()
    assert proposed(book, 1_402) == {}, "it is level, and was never out of the image's ISR"


def test_expire_level_group_that_fell_silent_does_not_come_back() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2])])
    book = book_of(image)
    book.groups = {2: FollowerGroup(caught_up_ms=100, is_level=True)}
    note(book, 0, [0], 2, AS_BEFORE, is_member=True)
    assert list(expired(book, 1_101)) == [1]
    book.update(replayed(image, change(0, 0, isr=[1])), ALL, now_ms=1_110)

    assert expired(book, 1_110) == {}
    book.groups[2].caught_up_ms = 1_120
    book.look_again()
    assert proposed(book, 1_130) == {1: {(uuid(0), 0): ((1, 1), (2, 1))}}


def test_leave_group_what_it_said_last_holds_for_each_by_itself() -> None:
    book = book_of(cluster_image([1, 2], [partition(0, 0, [1, 2])]))
    book.groups = {2: FollowerGroup(caught_up_ms=700, is_level=True)}
    note(book, 0, [0], 2, AS_BEFORE, is_member=True)
    book.leave_group(2)

    assert expired(book, 1_700) == {}
    assert list(expired(book, 1_701)) == [1]


def test_trusted_isr_shrinks_only_when_told_and_who_left_is_told_of_anew() -> None:
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3])])
    book = book_of(image, trusts_isr=True)
    assert expired(book, 1e9) == {}
    note(book, 0, [0], 2, UNKNOWN)
    assert expired(book, 1e9) == {1: {(uuid(0), 0): ((1, 1), (3, 1))}}

    out = replayed(image, change(0, 0, isr=[1]))  # the controllers took 3 out as well
    book.update(out, ALL, now_ms=1e9)
    assert expired(book, 1e9) == {}
    note(book, 0, [0], 3)
    assert proposed(book, 1e9) == {1: {(uuid(0), 0): ((1, 1), (3, 1))}}


# --- answers ---------------------------------------------------------------------------------------------


def test_answered_granted_waits_for_the_log_and_asks_again_if_it_does_not_come() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = told(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.answered(proposals, np.array([ErrorCode.NONE], np.int16), now_ms=10)

    assert proposed(model, 10) == {}
    assert model.next_due_after(10) == 10 + CONFIRM_MS
    model.update(replayed(image, change(0, 0, isr=[1, 2])), ALL, now_ms=20)
    assert model.next_due_after(20) == NEVER
    assert model.outside_count == 0


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INELIGIBLE_REPLICA, ErrorCode.NOT_CONTROLLER]
)
def test_answered_stale_is_asked_again_soon_or_when_the_partition_changes(code: ErrorCode) -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = told(image)
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
    model = told(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.answered(proposals, np.array([code], np.int16), now_ms=10)

    assert model.next_due_after(10) == NEVER
    model.update(replayed(image, change(0, 0, isr=[1])), ALL, now_ms=20)
    assert list(proposed(model, 20)) == [1]


def test_answered_after_the_partition_changed_says_nothing_about_it() -> None:
    """The answer to an old state must not hold back what the new one asks for."""
    image = cluster_image([1, 2, 3], [partition(0, 0, [1, 2, 3], isr=[1])])
    model = told(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.update(replayed(image, change(0, 0, isr=[1, 2])), ALL, now_ms=5)
    model.answered(proposals, np.array([ErrorCode.FENCED_LEADER_EPOCH], np.int16), now_ms=10)

    assert proposed(model, 10) == {1: {(uuid(0), 0): ((1, 1), (2, 1), (3, 1))}}


def test_postponed_request_is_repeated_at_its_time() -> None:
    model = told(cluster_image([1, 2], [partition(0, n, [1, 2], isr=[1]) for n in range(3)]))
    (proposals,) = model.due(0, frozenset(), 100)
    model.postponed(proposals, until_ms=70)

    assert proposed(model, 69) == {}
    assert len(proposed(model, 70)[1]) == 3


def test_update_deleted_topic_is_forgotten() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = told(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.update(replayed(image, RemoveTopicRecord(topic_id=uuid(0))), ALL, now_ms=5)
    model.answered(proposals, np.array([ErrorCode.UNKNOWN_TOPIC_ID], np.int16), now_ms=10)

    assert model.outside_count == 0
    assert model.next_due_after(10) == NEVER
