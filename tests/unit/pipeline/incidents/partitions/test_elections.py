"""Elections that may have lost data, and what they may have cost."""

from datetime import UTC, datetime
from typing import Any

from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.election_groups import grouped_elections
from tests.incident_versions import found_in, partition

DOWN: dict[str, Any] = {"leader": -1, "isr": [], "eligible_leader_replicas": [], "last_known_elr": []}


def test_others_could_acknowledge_from_when_it_left_until_the_last_leader_was_gone() -> None:
    rows = partition(
        (10, {"isr": [1, 3]}), (15, {"isr": [1, 2, 3]}), (20, {"isr": [1, 3]}), (30, {"isr": [1]}), (40, DOWN),
        (50, {"leader": 2, "isr": [2]}),
    )  # fmt: skip

    (one,) = found_in("risky_elections", rows)

    assert (one["offset"], one["time"], one["kind"], one["leader"]) == (50, 50, kinds.UNCLEAN, 2)
    assert (one["last_isr"], one["ahead"]) == ([1], [{"in_isr_ms": 30_000, "broker": 1}])
    assert (one["left_isr"], one["isr_ended"], one["exposed_ms"]) == (20, 40, 20_000)


def test_those_ahead_come_by_how_long_they_were_members() -> None:
    rows = partition((10, {"isr": [3]}), (15, {"isr": [1, 2, 3]}), (30, DOWN), (31, {"leader": 4, "isr": [4]}))

    (one,) = found_in("risky_elections", rows)

    assert [(ahead["broker"], ahead["in_isr_ms"]) for ahead in one["ahead"]] == [(3, 20_000), (2, 15_000), (1, 15_000)]
    assert (one["left_isr"], one["exposed_ms"]) == (None, None)


def test_a_member_of_the_last_isr_lacks_nothing_that_is_known() -> None:
    rows = partition((10, {"isr": [1]}), (40, DOWN | {"last_known_elr": [1]}), (50, {"leader": 1, "isr": [1]}))

    (one,) = found_in("risky_elections", rows)

    assert (one["kind"], one["last_isr"], one["ahead"], one["exposed_ms"]) == (kinds.LAST_KNOWN, [1], None, 0)


def test_of_a_partition_that_nobody_ever_led_nothing_is_known() -> None:
    (one,) = found_in("risky_elections", partition((10, DOWN), (20, {"leader": 1, "isr": [1]})))

    assert (one["last_isr"], one["ahead"], one["left_isr"], one["isr_ended"], one["exposed_ms"]) == (None,) * 5


def test_what_is_over_within_one_transaction_has_no_past() -> None:
    rows = partition((10, DOWN | {"record_offset": 5}), (10, {"leader": 1, "isr": [1], "record_offset": 6}))

    assert found_in("risky_elections", rows) == []


def group(offset: int, topic: str, **fields: Any) -> dict[str, Any]:
    return {
        "cluster_id": "c", "time": datetime(2026, 1, 1, tzinfo=UTC), "kind": kinds.UNCLEAN, "leader": 2,
        "from_offset": offset, "to_offset": offset, "partitions": 1, "exposed_ms": None, "ahead": [],
        "topics": [topic], "first_partition": f"{topic}-0", **fields,
    }  # fmt: skip


def test_a_group_is_as_bad_as_its_worst() -> None:
    ahead = [{"in_isr_ms": 7, "broker": 1}]
    rows = [group(5, "b"), group(3, "c", exposed_ms=4, ahead=ahead), group(9, "a", exposed_ms=2)]

    (one,) = grouped_elections(rows)

    assert (one["from_offset"], one["to_offset"], one["partitions"], one["first_partition"]) == (3, 9, 3, "c-0")
    assert (one["exposed_ms"], one["ahead"], one["topics"]) == (4, ahead, ["a", "b", "c"])


def test_groups_of_groups_are_the_groups_of_all() -> None:
    rows = [group(number, f"t{number:02}", exposed_ms=number % 5, leader=number % 2) for number in range(60)]

    together = grouped_elections(rows)

    assert grouped_elections([*grouped_elections(rows[:25]), *grouped_elections(rows[25:])]) == together
    assert [len(one["topics"]) for one in together] == [20, 20]
