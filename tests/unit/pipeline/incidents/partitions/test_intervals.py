"""From when to when something was true of a partition."""

from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.brokers import FENCED, BrokerEvent
from quorate.snapshots.incidents.min_isr import BROKER, TOPIC, ConfigSpan
from tests.incident_versions import SECOND, found_in, known, partition


def spans(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return [(row["from_offset"], row["to_offset"], row["cause"], row["ended_by"]) for row in rows]


def min_isr(value: int, start: int, end: int | None = None, topic: str = "") -> ConfigSpan:
    ends = (None, None) if end is None else (end, end * SECOND)
    return ConfigSpan("c", TOPIC if topic else BROKER, topic, str(value), start, start * SECOND, *ends)


def test_a_partition_is_without_a_leader_until_one_is_elected() -> None:
    rows = partition((10, {}), (20, {"leader": -1}), (22, {"isr": [1]}), (30, {"leader": 1}), (40, {"leader": -1}))
    of = known([BrokerEvent("c", 1, FENCED, 21, 20 * SECOND)])

    first, second = found_in("leaderless", rows, of=of)

    assert (first["from_offset"], first["to_offset"], first["ended_by"]) == (20, 30, kinds.ELECTED)
    assert (first["from_time"], first["to_time"], first["broker"], first["cause_offset"]) == (20, 30, 1, 21)
    assert (second["from_offset"], second["to_offset"], second["ended_by"]) == (40, None, kinds.OPEN)
    assert (first["cluster_id"], first["topic_id"], first["topic"], first["partition"]) == ("c", "id-of-t", "t", 0)


def test_what_began_a_run_is_its_cause() -> None:
    rows = partition((10, {}), (20, {"leader": -1, "isr": [2, 3]}), (30, {"leader": 2}))
    (run,) = found_in("leaderless", rows, of=known([BrokerEvent("c", 1, FENCED, 21, 20 * SECOND)]))

    assert (run["cause"], run["broker"], run["cause_offset"]) == (FENCED, 1, 21)


def test_a_topic_that_is_removed_ends_its_runs() -> None:
    assert spans(found_in("leaderless", partition((10, {}), (20, {"leader": -1}), gone=50))) == [
        (20, 50, kinds.ELECTED, kinds.TOPIC_REMOVED)
    ]


def test_a_run_may_begin_with_the_partition_and_ends_with_it() -> None:
    down = {"leader": -1}
    runs = found_in("leaderless", partition((10, down), gone=12), partition((11, down), number=1))

    assert spans(runs) == [(10, 12, kinds.CREATED, kinds.TOPIC_REMOVED), (11, None, kinds.CREATED, kinds.OPEN)]


def test_a_run_within_a_transaction_has_no_length() -> None:
    rows = partition((10, {}), (30, {"leader": -1, "record_offset": 21}), (30, {"leader": 2, "record_offset": 22}))

    assert spans(found_in("leaderless", rows)) == [(30, 30, kinds.ELECTED, kinds.ELECTED)]


def test_replicas_that_are_being_added_need_not_be_in_the_isr() -> None:
    adding = {"replicas": [1, 2, 3, 4], "adding_replicas": [4]}
    rows = partition((10, {}), (20, adding), (30, {"isr": [1, 2]}), (40, {"isr": [1, 2, 4]}))

    assert spans(found_in("under_replicated", rows)) == [(30, 40, kinds.LAGGED, kinds.CAUGHT_UP)]


# --- min.insync.replicas ------------------------------------------------------------------------------


def test_too_few_are_in_the_isr_by_the_value_that_holds() -> None:
    rows = partition((10, {}), (20, {"isr": [1]}), (60, {"isr": [1, 2]}))
    of = known(min_isr=[min_isr(2, 30, 50)])

    run, *none = found_in("under_min_isr", rows, of=of)

    assert not none
    assert (run["from_offset"], run["to_offset"]) == (30, 50)
    assert (run["from_time"], run["to_time"]) == (30, 50)
    assert (run["cause"], run["broker"], run["cause_offset"], run["ended_by"]) == (
        kinds.MIN_ISR_CHANGED, None, None, kinds.MIN_ISR_CHANGED,
    )  # fmt: skip


def test_a_topics_own_value_holds_for_it_alone() -> None:
    rows = [partition((10, {}), (20, {"isr": [1]}), topic=topic) for topic in ("t", "u")]
    of = known(min_isr=[min_isr(2, 1, topic="u")])

    assert [(run["topic"], run["from_offset"]) for run in found_in("under_min_isr", *rows, of=of)] == [("u", 20)]


def test_a_topic_of_fewer_replicas_needs_them_all() -> None:
    rows = partition((10, {"replicas": [1], "isr": [1]}), (20, {"isr": [], "leader": -1}), (30, {"isr": [1]}))

    assert spans(found_in("under_min_isr", rows, of=known(min_isr=[min_isr(2, 1)]))) == [
        (20, 30, kinds.ELECTED, kinds.CAUGHT_UP)
    ]


def test_a_value_that_changes_nothing_makes_no_end() -> None:
    rows = partition((10, {}), (20, {"isr": [1]}))
    of = known(min_isr=[min_isr(2, 1, 30), min_isr(3, 30, 40), min_isr(2, 40)])

    assert spans(found_in("under_min_isr", rows, of=of)) == [(20, None, kinds.LAGGED, kinds.OPEN)]


def test_what_a_value_is_when_the_topic_is_gone_is_nothing_to_it() -> None:
    """A topic's own value ends with it."""
    short = partition((10, {}), (20, {"isr": [1]}), gone=40)
    enough = partition((10, {}), (20, {"isr": [1, 2]}), topic="u", gone=40)
    of = known(min_isr=[min_isr(2, 1, 40, topic="t"), min_isr(3, 50)])

    assert spans(found_in("under_min_isr", short, enough, of=of)) == [(20, 40, kinds.LAGGED, kinds.TOPIC_REMOVED)]


def test_of_a_change_at_the_same_offset_as_a_value_the_value_counts() -> None:
    """Within a transaction: what was overtaken at once was never measured."""
    rows = partition((10, {}), (30, {"isr": [1], "record_offset": 21}), (30, {"isr": [1, 2], "record_offset": 22}))

    assert found_in("under_min_isr", rows, of=known(min_isr=[min_isr(2, 30)])) == []
