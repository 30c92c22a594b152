"""When rows have a look that may want another ISR: none is forgotten, whatever happens in its page meanwhile."""

import pytest

from quorate.broker.replicas import isr_book
from quorate.broker.replicas.isr_book import AS_BEFORE
from quorate.broker.replicas.led_rows import NEVER, FollowerGroup
from quorate.snapshots.table.pages import PAGE_ROWS
from tests.unit.broker.images import change, cluster_image, partition, replayed, uuid
from tests.unit.broker.replicas.books import ALL, book_of, note, proposed, told


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
