"""Changes of replicas, from the first record to the last."""

from typing import Any

from tests.incident_versions import found_in, partition

ADDING = {"replicas": [1, 2, 3, 4], "adding_replicas": [4], "removing_replicas": [3]}
DONE: dict[str, Any] = {"replicas": [1, 2, 4], "adding_replicas": [], "removing_replicas": [], "isr": [1, 2, 4]}
BACK: dict[str, Any] = {"replicas": [1, 2, 3], "adding_replicas": [], "removing_replicas": []}


def test_it_is_completed_when_the_target_is_reached() -> None:
    (one,) = found_in("reassignments", partition((10, {}), (20, ADDING), (25, {"isr": [1, 2, 3, 4]}), (30, DONE)))

    assert (one["from_offset"], one["to_offset"], one["from_time"], one["to_time"]) == (20, 30, 20, 30)
    assert (one["replicas"], one["adding"], one["removing"]) == ([1, 2, 3], [4], [3])
    assert (one["waiting_for"], one["outcome"]) == ([], "completed")


def test_it_is_cancelled_when_it_ends_elsewhere() -> None:
    (one,) = found_in("reassignments", partition((10, {}), (20, ADDING), (30, BACK)))

    assert (one["outcome"], one["waiting_for"], one["to_offset"]) == ("cancelled", [4], 30)


def test_it_is_open_while_nothing_ends_it() -> None:
    """What is said of it is what is so now."""
    later = {"replicas": [1, 2, 3, 5], "adding_replicas": [5], "isr": [1, 2, 3]}
    (one,) = found_in("reassignments", partition((10, {}), (20, ADDING), (30, later)))

    assert (one["outcome"], one["to_offset"], one["to_time"]) == ("open", None, None)
    assert (one["adding"], one["removing"], one["waiting_for"]) == ([5], [3], [5])


def test_it_ends_with_its_topic() -> None:
    (one,) = found_in("reassignments", partition((10, {}), (20, ADDING), gone=40))

    assert (one["outcome"], one["to_offset"], one["waiting_for"]) == ("topic_removed", 40, [4])


def test_one_that_the_history_begins_with_has_no_replicas_before() -> None:
    (one,) = found_in("reassignments", partition((10, ADDING), (30, DONE)), partition((10, {}), topic="u"))

    assert (one["replicas"], one["outcome"]) == (None, "completed")


def test_one_to_replicas_that_are_there_is_done_at_once() -> None:
    (one,) = found_in("reassignments", partition((10, {}), (20, {"replicas": [3, 1], "isr": [1, 3]})))

    assert (one["from_offset"], one["to_offset"], one["outcome"]) == (20, 20, "completed")
    assert (one["replicas"], one["adding"], one["removing"]) == ([1, 2, 3], [], [2])
    assert one["waiting_for"] == []


def test_a_change_of_target_is_the_same_reassignment() -> None:
    other = {"replicas": [1, 2, 3, 5], "adding_replicas": [5]}
    done = DONE | {"replicas": [1, 5, 2], "isr": [1, 2, 5]}

    (one,) = found_in("reassignments", partition((10, {}), (20, ADDING), (25, other), (30, done)))

    assert (one["from_offset"], one["to_offset"], one["adding"], one["outcome"]) == (20, 30, [5], "completed")
