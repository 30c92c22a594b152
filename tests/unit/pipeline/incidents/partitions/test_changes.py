"""Why each version of a partition came about."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from quorate.pipeline.incidents.partitions.changes import NAMES
from quorate.pipeline.incidents.partitions.lists import NOBODY
from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.brokers import FENCED, BrokerEvent
from quorate.snapshots.incidents.causes import NONE
from tests.incident_versions import SECOND, causes_of, changes_of, known, partition, versions_of

NOBODY_LEADS = {"leader": -1, "isr": [], "eligible_leader_replicas": [], "last_known_elr": []}


@pytest.mark.parametrize(
    ("before", "change", "cause", "broker"),
    [
        ({}, {"leader": 2}, kinds.ELECTED, 1),
        ({"leader": 2}, {"leader": 1}, kinds.PREFERRED, 2),
        ({}, {"leader": -1}, kinds.ELECTED, 1),
        ({}, {"leader_epoch": 1}, kinds.ELECTED, NOBODY),
        ({}, {"isr": [1, 3]}, kinds.LAGGED, 2),
        ({}, {"isr": [1]}, kinds.LAGGED, 2),
        ({"isr": [1]}, {"isr": [1, 2, 3]}, kinds.CAUGHT_UP, NOBODY),
        ({"isr": [1, 2]}, {"isr": [1, 3]}, kinds.LAGGED, 2),
        ({}, {"isr": [3, 2, 1]}, kinds.ASSIGNED_DIRECTORIES, NOBODY),
        ({}, {"directories": ["d"]}, kinds.ASSIGNED_DIRECTORIES, NOBODY),
        ({}, {"replicas": [1, 2, 4], "isr": [1, 2]}, kinds.REASSIGNMENT, 3),
        ({}, {"adding_replicas": [4]}, kinds.REASSIGNMENT, NOBODY),
        ({"removing_replicas": [3]}, {"removing_replicas": []}, kinds.ASSIGNED_DIRECTORIES, NOBODY),
        ({"eligible_leader_replicas": [3, 2]}, {"eligible_leader_replicas": [2]}, kinds.UNCLEAN_STOP, NOBODY),
        ({"eligible_leader_replicas": [3]}, {"eligible_leader_replicas": None}, kinds.UNCLEAN_STOP, NOBODY),
        ({"eligible_leader_replicas": None}, {"eligible_leader_replicas": [3]}, kinds.ASSIGNED_DIRECTORIES, NOBODY),
        (NOBODY_LEADS, {"leader": 2, "isr": [2]}, kinds.UNCLEAN, NOBODY),
        (NOBODY_LEADS | {"last_known_elr": [2]}, {"leader": 2, "isr": [2]}, kinds.LAST_KNOWN, NOBODY),
        (NOBODY_LEADS | {"last_known_elr": [3]}, {"leader": 2, "isr": [2]}, kinds.UNCLEAN, NOBODY),
        (NOBODY_LEADS | {"eligible_leader_replicas": [2]}, {"leader": 2, "isr": [2]}, kinds.ELECTED, NOBODY),
        (NOBODY_LEADS | {"isr": [2]}, {"leader": 2}, kinds.ELECTED, NOBODY),
        (NOBODY_LEADS, {"leader": 2, "isr": [2], "replicas": [2, 3]}, kinds.UNCLEAN, NOBODY),
        # Straight from a leader that goes down alone in sync, in one record.
        ({"isr": [1]}, {"leader": 2, "isr": [2]}, kinds.UNCLEAN, 1),
        ({"isr": [1], "last_known_elr": [2]}, {"leader": 2, "isr": [2]}, kinds.LAST_KNOWN, 1),
        ({"isr": [1], "eligible_leader_replicas": [2]}, {"leader": 2, "isr": [2]}, kinds.ELECTED, 1),
        # What a reassignment admits as it completes may lead at once, added or not.
        (
            {"isr": [1], "replicas": [4, 1], "adding_replicas": [4], "removing_replicas": [1]},
            {"leader": 4, "isr": [4], "replicas": [4], "adding_replicas": [], "removing_replicas": []},
            kinds.REASSIGNMENT,
            1,
        ),
        (
            {"isr": [1], "removing_replicas": [1]},
            {"leader": 2, "isr": [2], "replicas": [2, 3], "removing_replicas": []},
            kinds.REASSIGNMENT,
            1,
        ),
        # One that goes on has admitted nobody, nor has one that is cancelled, or a change that ends none.
        (
            {"isr": [1], "replicas": [1, 4], "adding_replicas": [4]},
            {"leader": 4, "isr": [4]},
            kinds.UNCLEAN,
            1,
        ),
        (
            {"isr": [4], "leader": 4, "replicas": [4, 1], "adding_replicas": [4], "removing_replicas": [1]},
            {"leader": 1, "isr": [1], "replicas": [1], "adding_replicas": [], "removing_replicas": []},
            kinds.UNCLEAN,
            4,
        ),
        (
            {"isr": [4], "leader": 4, "replicas": [1, 2, 4], "adding_replicas": [4]},
            {"leader": 2, "isr": [2], "replicas": [1, 2], "adding_replicas": []},
            kinds.UNCLEAN,
            4,
        ),
        (
            {"isr": [1], "removing_replicas": [1]},
            {"leader": 2, "isr": [2], "replicas": [2, 3, 1], "removing_replicas": []},
            kinds.UNCLEAN,
            1,
        ),
        ({"isr": [1], "replicas": [1, 4]}, {"leader": 4, "isr": [4], "replicas": [4]}, kinds.UNCLEAN, 1),
    ],
)
def test_a_change_says_what_it_was(
    before: Mapping[str, Any], change: Mapping[str, Any], cause: str, broker: int
) -> None:
    assert causes_of(partition((10, before), (20, change))) == [(cause, broker, NONE)]


def test_the_first_version_was_created_or_is_of_the_checkpoint() -> None:
    found = changes_of(versions_of(partition((1, {})), partition((1, {"change": "base"}), topic="u")))

    assert {NAMES[cause] for cause in found.cause} == {kinds.CREATED, kinds.BASE}
    assert not found.is_moved.any()
    assert (found.subject == NOBODY).all()


def test_a_broker_that_was_fenced_is_the_cause_of_what_it_lost() -> None:
    of = known([BrokerEvent("c", 1, FENCED, 25, 21 * SECOND)])

    assert causes_of(partition((10, {}), (20, {"leader": 2, "isr": [2, 3]})), of=of) == [(FENCED, 1, 25)]
    # Its last member stays in the ISR where there is no ELR.
    assert causes_of(partition((10, {"isr": [1]}), (20, {"leader": -1})), of=of) == [(FENCED, 1, 25)]
    # An election that may lose data takes it out then, which is no event of the broker's.
    unclean = partition((10, {"isr": [1]}), (20, {"leader": -1}), (26, {"leader": 2, "isr": [2]}))
    assert causes_of(unclean, of=of) == [(FENCED, 1, 25), (kinds.UNCLEAN, 1, NONE)]
    # Not of a change that left it in the ISR, nor of one that moved replicas, nor of another broker's loss.
    assert causes_of(partition((10, {}), (20, {"leader": 2})), of=of) == [(kinds.ELECTED, 1, NONE)]
    moved = {"leader": 2, "isr": [2, 3], "replicas": [2, 3]}
    assert causes_of(partition((10, {}), (20, moved)), of=of) == [(kinds.REASSIGNMENT, 1, NONE)]
    assert causes_of(partition((10, {}), (20, {"isr": [1, 3]})), of=of) == [(kinds.LAGGED, 2, NONE)]


def test_changes_of_one_transaction_are_in_the_order_of_their_records() -> None:
    """They hold from its end on, all from one offset."""
    rows = partition(
        (10, {}), (30, {"isr": [1, 2], "record_offset": 21}), (30, {"isr": [1, 2, 3], "record_offset": 22}), gone=40
    )

    assert [cause for cause, _, _ in causes_of(rows)] == [kinds.LAGGED, kinds.CAUGHT_UP]


def test_what_came_first_is_told_of_what_came_and_went() -> None:
    found = changes_of(versions_of(partition((1, {}), (2, {"isr": [1]}), (3, {"isr": [1, 3, 2]}))))

    assert found.shrank.tolist() == [False, True, False]
    assert found.grew.tolist() == [False, False, True]
    assert (found.subject.tolist(), found.gained.tolist()) == ([-1, 2, -1], [-1, -1, 3])


def test_partitions_are_told_apart_and_know_the_end_of_their_topic() -> None:
    versions = versions_of(
        partition((1, {}), (5, {}), gone=9), partition((2, {}), number=1, gone=9), partition((3, {}), topic="u")
    )

    names = [versions.name(row) for row in range(len(versions))]
    assert sorted(zip(names, versions.offset.tolist(), versions.gone_offset.tolist(), strict=True)) == [
        ("t-0", 1, 9), ("t-0", 5, 9), ("t-1", 2, 9), ("u-0", 3, -1),
    ]  # fmt: skip
    assert [names[row] for row in np.flatnonzero(versions.is_start)] == list(dict.fromkeys(names))
    assert (versions.gone_us == versions.gone_offset * SECOND)[versions.gone_offset != -1].all()


def test_texts_may_come_as_texts() -> None:
    """As Spark itself writes them."""
    versions = versions_of(partition((1, {})))

    assert versions.topic.array(np.array([0])).cast(pa.string()).to_pylist() == ["t"]


def test_an_empty_table_has_no_changes() -> None:
    assert len(changes_of(versions_of()).cause) == 0
