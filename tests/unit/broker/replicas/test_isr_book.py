"""Which ISRs leaders ask for, by what was noted of their followers. Times are milliseconds."""

from collections.abc import Iterable

import numpy as np
import pytest

from quorate.broker.controllers.isr_proposals import NO_MEMBER, IsrProposals
from quorate.broker.replicas import isr_book
from quorate.broker.replicas.isr_book import AS_BEFORE, CONFIRM_MS, RETRY_MS, IsrBook
from quorate.broker.replicas.led_rows import ALWAYS, NEVER, UNKNOWN, FollowerGroup
from quorate.metadata_log.errors import ErrorCode
from quorate.metadata_log.records.records import PartitionChangeRecord, RemoveTopicRecord
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS
from tests.unit.broker.images import change, cluster_image, fencing, partition, registration, replayed, uuid

ALL = frozenset({1, 2, 3})
LAG_MAX_MS = 1_000.0
#: Partition (topic id, number) -> members of the ISR asked for, with their broker epochs.
Asked = dict[tuple[bytes, int], tuple[tuple[int, int], ...]]


def proposed(
    model: IsrBook, now_ms: float, busy: frozenset[int] = frozenset(), rows_max: int = 100
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


def book_of(image: MetadataImage, leaders: frozenset[int] = ALL, *, trusts_isr: bool = False) -> IsrBook:
    book = IsrBook(LAG_MAX_MS, trusts_isr=trusts_isr)
    book.update(image, leaders, now_ms=0.0)
    return book


def note(
    book: IsrBook,
    topic: int,
    numbers: Iterable[int],
    broker: int,
    caught_up_ms: float = ALWAYS,
    leader_epoch: int = 0,
    *,
    is_member: bool = False,
) -> list[ErrorCode]:
    """Say the same of a broker's replicas in some partitions of a topic."""
    ids = list(numbers)
    codes = book.note(
        np.frombuffer(uuid(topic) * len(ids), np.uint8).reshape(-1, 16),
        np.array(ids, np.int32),
        np.full(len(ids), leader_epoch, np.int32),
        np.full(len(ids), broker, np.int32),
        np.full(len(ids), caught_up_ms),
        np.full(len(ids), is_member),
    )
    return [ErrorCode(code) for code in codes.tolist()]


def told(image: MetadataImage, leaders: frozenset[int] = ALL) -> IsrBook:
    """A book in which every follower was said to have all."""
    book = book_of(image, leaders)
    for topic in image.topics.by_id:
        for number, state in image.partitions.partitions_of(topic):
            for replica in state.replicas:
                if replica != state.leader:
                    note(book, int.from_bytes(topic, "big") - 1000, [number], replica, leader_epoch=state.leader_epoch)
    return book


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


def test_due_busy_leader_and_full_request_leave_the_rest_for_later() -> None:
    image = cluster_image(
        [1, 2], [*(partition(0, n, [1, 2], isr=[1]) for n in range(5)), partition(1, 0, [2, 1], isr=[2])]
    )
    model = told(image)

    assert set(proposed(model, 0, busy=frozenset({1}))) == {2}
    assert model.next_due_after(0) == NEVER, "what is due waits for its leader, not for a time"
    assert len(proposed(model, 0, rows_max=3)[1]) == 3
    assert len(proposed(model, 0, rows_max=3)[1]) == 2


def test_due_looks_at_some_pages_a_call_and_says_that_there_are_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_book, "PAGES_PER_LOOK_MAX", 1)
    numbers = [page * PAGE_ROWS for page in range(3)]
    model = told(cluster_image([1, 2], [partition(0, n, [1, 2], isr=[1]) for n in numbers]))

    asked = [proposed(model, 0)]
    while model.next_due_after(0) == 0 and len(asked) < 2 * len(numbers):
        asked.append(proposed(model, 0))
    assert [list(one[1]) for one in asked if one] == [[(uuid(0), number)] for number in numbers]


def test_due_pages_of_a_busy_leader_do_not_keep_those_of_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isr_book, "PAGES_PER_LOOK_MAX", 1)
    of_one = [partition(0, page * PAGE_ROWS, [1, 2], isr=[1]) for page in range(2)]
    model = told(cluster_image([1, 2], [*of_one, partition(0, 2 * PAGE_ROWS, [2, 1], isr=[2])]))
    busy = frozenset({1})

    assert (proposed(model, 0, busy), proposed(model, 0, busy)) == ({}, {})
    assert list(proposed(model, 0, busy)[2]) == [(uuid(0), 2 * PAGE_ROWS)]
    assert model.next_due_after(0) == NEVER, "what is left waits for its leader"
    assert list(proposed(model, 0)[1]) == [(uuid(0), 0)]
    assert proposed(model, 0) == {}, "it is held back"
    assert list(proposed(model, 0)[1]) == [(uuid(0), PAGE_ROWS)]


def test_due_change_held_back_beside_one_that_waits_for_its_leader_comes_at_its_time() -> None:
    model = told(cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1]), partition(0, 1, [2, 1], isr=[2])]))
    (proposals,) = model.due(0, frozenset({1}), 100)
    model.postponed(proposals, until_ms=70)

    assert proposed(model, 0, busy=frozenset({1})) == {}
    assert model.next_due_after(0) == 70
    assert set(proposed(model, 70, busy=frozenset({1}))) == {2}


def test_update_deleted_topic_is_forgotten() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1])])
    model = told(image)
    (proposals,) = model.due(0, frozenset(), 100)
    model.update(replayed(image, RemoveTopicRecord(topic_id=uuid(0))), ALL, now_ms=5)
    model.answered(proposals, np.array([ErrorCode.UNKNOWN_TOPIC_ID], np.int16), now_ms=10)

    assert model.outside_count == 0
    assert model.next_due_after(10) == NEVER


def test_due_row_that_needs_a_look_has_it_though_its_page_changes_before() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1]), partition(0, 1, [1, 2])])
    model = book_of(image)
    assert proposed(model, 0) == {}
    note(model, 0, [0], 2)
    model.update(replayed(image, change(0, 1, isr=[1])), ALL, now_ms=10)

    assert list(proposed(model, 10)[1]) == [(uuid(0), 0)]


def test_due_change_that_is_held_back_comes_at_its_time_though_another_row_of_its_page_has_a_look_before() -> None:
    model = book_of(cluster_image([1, 2, 3], [partition(0, n, [1, 2, 3], isr=[1]) for n in range(2)]))
    note(model, 0, [0], 2)
    (proposals,) = model.due(0, frozenset(), 100)
    model.postponed(proposals, until_ms=70)
    assert proposed(model, 0) == {}
    note(model, 0, [1], 2)

    assert list(proposed(model, 10)[1]) == [(uuid(0), 1)]
    assert model.next_due_after(10) == 70
    assert list(proposed(model, 70)[1]) == [(uuid(0), 0)]


def test_due_row_that_waits_for_its_leader_has_its_turn_though_its_page_changes_before() -> None:
    image = cluster_image([1, 2], [partition(0, 0, [1, 2], isr=[1]), partition(0, 1, [2, 1])])
    model = told(image)
    assert proposed(model, 0, busy=frozenset({1})) == {}
    model.update(replayed(image, change(0, 1, isr=[2])), ALL, now_ms=10)
    assert proposed(model, 10, busy=frozenset({1})).keys() <= {2}

    assert list(proposed(model, 10)[1]) == [(uuid(0), 0)]


def test_due_member_that_leaves_its_group_and_lags_by_itself_is_noticed_at_once() -> None:
    model = book_of(cluster_image([1, 2], [partition(0, 0, [1, 2])]))
    model.groups = {2: FollowerGroup(caught_up_ms=5_000, is_level=True)}
    note(model, 0, [0], 2, AS_BEFORE, is_member=True)
    assert proposed(model, 5_000) == {}
    note(model, 0, [0], 2, AS_BEFORE)

    assert proposed(model, 5_000) == {1: {(uuid(0), 0): ((1, 1),)}}
