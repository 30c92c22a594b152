"""Reassignments that have not ended, told from hand-made findings."""

from datetime import UTC, datetime, timedelta
from typing import Any

from quorate.snapshots.incidents.brokers import FENCED, Outage
from quorate.snapshots.incidents.findings import IncidentFindings
from quorate.snapshots.incidents.telling.story import incidents
from quorate.snapshots.incidents.thresholds import Thresholds

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def open_reassignment(*, adding: list[int], waiting_for: list[int]) -> dict[str, Any]:
    return {
        "cluster_id": "c", "topic": "orders", "partition": 3, "adding": adding, "removing": [12],
        "waiting_for": waiting_for, "outcome": "open", "lasted": timedelta(minutes=5),
        "from_offset": 100, "from_time": BEGAN, "to_offset": None, "to_time": None,
    }  # fmt: skip


def test_reassignment_that_lasts_is_open_and_names_what_it_waits_for() -> None:
    row = open_reassignment(adding=[14], waiting_for=[14])
    (told,) = incidents(IncidentFindings([], reassignments=[row]), Thresholds())

    assert (told.kind, told.is_open, told.cause) == ("reassignment_open", True, "slow")
    assert (told.from_offset, told.to_offset, told.end, told.brokers) == (100, None, None, (14,))
    assert (
        told.text == "orders-3: reassignment adding [14], removing [12] is open since 5.0 min; [14] have not caught up"
    )


def test_reassignment_to_a_broker_that_is_down_has_that_as_its_cause() -> None:
    down = Outage(
        "c", 14, FENCED, offset=50, at_us=0, fenced_offset=50, back_offset=None, back_us=None, registrations=0,
        unregistered=False,
    )  # fmt: skip
    row = open_reassignment(adding=[14], waiting_for=[14])
    told = {one.kind: one for one in incidents(IncidentFindings([], outages=[down], reassignments=[row]), Thresholds())}

    assert told["reassignment_open"].cause == "target_down"
    assert told["reassignment_open"].text.endswith("is open since 5.0 min; broker 14 was down meanwhile")
