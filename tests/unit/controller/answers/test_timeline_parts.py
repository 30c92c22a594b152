"""Elections that may have lost data are told whatever happened to brokers before; what is one event, in one part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from quorate.controller.answers import timeline as answers_timeline
from quorate.controller.answers.timeline import TimelineNode, told_timeline
from quorate.controller.api.answers.timeline_models import EVENTS_MAX, TimelineReply
from quorate.controller.reads.past import PastStretch
from quorate.metadata_log.records import records as r
from quorate.snapshots.checkpoints.loading import batches_from_start
from quorate.snapshots.incidents.findings import IncidentFindings
from quorate.snapshots.incidents.serial.search import SerialFindings
from quorate.snapshots.incidents.telling.timeline import whole_from
from quorate.snapshots.incidents.thresholds import Thresholds
from quorate.snapshots.replay.replay_state import ReplayState
from tests.default_parts import controller_config
from tests.pipeline_logs import TIME, LogWriter

T = TypeVar("T")
_TOPIC: Final = bytes(15) + b"\7"
_ABOUT: Final = TimelineNode("c", controller_config(node_id=1, cluster_id="c"), None, is_led=True)
#: What becomes of an ISR of broker 1 alone as it goes down: it stays, or it goes into a set that is asked later.
_DOWN: Final[dict[str, dict[str, Any]]] = {
    "in the ISR": {},
    "eligible": {"isr": (), "eligible_leader_replicas": (1,)},
    "known last": {"isr": (), "last_known_elr": (1,)},
}


def _brokers(*ids: int) -> list[Any]:
    return [r.RegisterBrokerRecord(n, incarnation_id=bytes([n]) * 16, broker_epoch=n, fenced=False) for n in ids]


def _told(log: LogWriter, before: int | None = None, limit: int = EVENTS_MAX) -> TimelineReply:
    stretch = PastStretch(ReplayState(), [one.data for one in batches_from_start(log.path)[1]], has_earlier=False)
    return told_timeline(stretch, _ABOUT, before, limit, lambda: None)


def _elected(reply: TimelineReply) -> list[tuple[int, tuple[int, ...], int]]:
    return [
        (event.offset, tuple(event.brokers), event.partitions)
        for event in reply.events
        if event.kind == "unclean_election"
    ]


def _in_parts(log: LogWriter, limit: int, told_of: Callable[[TimelineReply], list[T]]) -> list[T]:
    """What all parts of a log tell, each of so many events."""
    told: list[T] = []
    before: int | None = None
    while True:
        part = _told(log, before, limit)
        told = told_of(part) + told
        if part.earlier is None:
            return told
        assert part.earlier < (log.offset if before is None else before)
        before = part.earlier


def _counted(reply: TimelineReply) -> list[tuple[int, str, int]]:
    """Of all that is not told again in each part that some of it ended in."""
    return [(event.offset, event.kind, event.partitions) for event in reply.events if "ends" not in event.kind]


@pytest.mark.parametrize("down", _DOWN, ids=str)
@pytest.mark.parametrize("quiet", [1, 3_600], ids="{}s later".format)
def test_an_unclean_election_is_told_while_who_led_is_down(tmp_path: Path, down: str, quiet: int) -> None:
    log = LogWriter(tmp_path / "log")
    log.append(_brokers(1, 2))
    log.append([r.TopicRecord("t", _TOPIC), r.PartitionRecord(0, _TOPIC, (1, 2), (1,), leader=1)])
    log.append([r.PartitionChangeRecord(0, _TOPIC, leader=-1, **_DOWN[down]), r.FenceBrokerRecord(1, 1)])
    log.append([r.NoOpRecord()] * quiet)
    election = log.append([r.PartitionChangeRecord(0, _TOPIC, isr=(2,), leader=2, leader_recovery_state=1)])

    reply = _told(log)

    assert _elected(reply) == [(election, (2,), 1)]
    [ended] = [event for event in reply.events if event.kind == "offline_ends"]
    assert "unclean election" in ended.text


def test_an_unclean_election_straight_from_who_led_is_no_loss_by_a_fencing(tmp_path: Path) -> None:
    """As controllers write it where unclean elections are allowed when a broker goes down: one record."""
    log = LogWriter(tmp_path / "log")
    log.append(_brokers(1, 2))
    log.append([r.TopicRecord("t", _TOPIC), r.PartitionRecord(0, _TOPIC, (1, 2), (1,), leader=1)])
    change = r.PartitionChangeRecord(0, _TOPIC, isr=(2,), leader=2, leader_recovery_state=1)
    election = log.append([change, r.FenceBrokerRecord(1, 1)])

    assert _elected(_told(log)) == [(election, (2,), 1)]


def test_an_unclean_election_by_a_reassignment_that_is_cancelled_is_told(tmp_path: Path) -> None:
    """What it added was all that was in sync: controllers take it away and let another one lead, in one record."""
    log = LogWriter(tmp_path / "log")
    log.append(_brokers(1, 2))
    added = r.PartitionRecord(0, _TOPIC, (2, 1), (2,), leader=2, adding_replicas=(2,), removing_replicas=(1,))
    log.append([r.TopicRecord("t", _TOPIC), added])
    back = r.PartitionChangeRecord(
        0, _TOPIC, isr=(1,), leader=1, replicas=(1,), adding_replicas=(), removing_replicas=()
    )
    election = log.append([back])

    assert _elected(_told(log)) == [(election, (1,), 1)]


@pytest.mark.parametrize(("limit", "is_cut"), [(6, False), (4, True)])
def test_only_what_has_more_events_is_cut(tmp_path: Path, limit: int, *, is_cut: bool) -> None:
    log = LogWriter(tmp_path / "log")
    for broker in (1, 2, 3):  # each is told as registered and as unfenced
        log.append([r.NoOpRecord(), *_brokers(broker)])
    reply = _told(log, limit=limit)
    assert len(reply.events) == 6 - 2 * is_cut
    assert reply.earlier == (3 if is_cut else None)


def test_before_the_first_event_there_is_nothing_to_ask_for(tmp_path: Path) -> None:
    log = LogWriter(tmp_path / "log")
    log.append([r.NoOpRecord(), *_brokers(1)])
    reply = _told(log, limit=1)
    assert (len(reply.events), reply.earlier) == (2, None)


@pytest.mark.parametrize("behind", [0, 3, 8])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 9, 10, 11, 12])
def test_elections_that_are_told_together_are_in_one_part(tmp_path: Path, behind: int, limit: int) -> None:
    count = 40
    log = LogWriter(tmp_path / "log")
    log.append(_brokers(1, 2, 3, 4))
    made = [r.PartitionRecord(n, _TOPIC, (1, 2 + n % 2), (1,), leader=1) for n in range(count)]
    log.append([r.TopicRecord("t", _TOPIC), *made])
    log.append([r.PartitionChangeRecord(n, _TOPIC, leader=-1, isr=()) for n in range(count)])
    base = log.append(
        [
            r.PartitionChangeRecord(n, _TOPIC, isr=(2 + n % 2,), leader=2 + n % 2, leader_recovery_state=1)
            for n in range(count)
        ]
    )
    for number in range(behind):
        log.append([(r.UnfenceBrokerRecord if number % 2 else r.FenceBrokerRecord)(4, 4)])

    told = _in_parts(log, limit, _elected)

    assert told == [(base, (2,), count // 2), (base + 1, (3,), count // 2)]


@pytest.mark.parametrize("cleared", ["", "t", "u"])
def test_elrs_are_cleared_of_partitions_that_were_left_out_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cleared: str
) -> None:
    monkeypatch.setattr(answers_timeline, "UNWELL_MAX", 2)
    log = LogWriter(tmp_path / "log")
    log.append(_brokers(1, 2, 3))
    elrs: dict[str, Any] = {"eligible_leader_replicas": (2,), "last_known_elr": (1,)}
    made = [r.PartitionRecord(n, _TOPIC, (1, 2, 3), (), leader=-1, **elrs) for n in range(5)]
    log.append([r.TopicRecord("u", bytes(15) + b"\10"), r.TopicRecord("t", _TOPIC), *made])
    first = log.offset
    log.append([r.ClearElrRecord(cleared)])
    log.append([r.NoOpRecord(), r.ClearElrRecord(cleared)])
    elected: dict[str, Any] = {"isr": (2,), "leader": 2, "leader_recovery_state": 1}
    log.append([r.PartitionChangeRecord(n, _TOPIC, **elected) for n in range(5)])
    batches = [one.data for one in batches_from_start(log.path)[1]]
    start = ReplayState()
    for batch in batches[:2]:
        start = start.replay_batch(batch)
    assert start.head.provenance.end_offset == first

    stretch = PastStretch(start, batches[2:], has_earlier=True)
    reply = told_timeline(stretch, _ABOUT, None, EVENTS_MAX, lambda: None)

    assert reply.left_out == 3
    assert sum(count for _, _, count in _elected(reply)) == (0 if cleared == "u" else 5)


@pytest.mark.parametrize("fenced", [True, False], ids=["fenced", "for no reason"])
@pytest.mark.parametrize("limit", range(1, 9))
def test_what_many_partitions_lost_is_told_as_one(tmp_path: Path, limit: int, *, fenced: bool) -> None:
    """In batches, with other events between them, and their reason behind them or none."""
    log = LogWriter(tmp_path / "log")
    log.append(_brokers(1, 2, 3, 4))
    made = [r.PartitionRecord(n, _TOPIC, (1, 2), (1, 2), leader=1) for n in range(150)]
    log.append([r.TopicRecord("t", _TOPIC), *made])
    for first in range(0, 150, 50):
        log.append([r.FenceBrokerRecord(3, 3), r.UnfenceBrokerRecord(3, 3)], time=TIME)
        log.append(
            [r.PartitionChangeRecord(n, _TOPIC, isr=(2,), leader=2) for n in range(first, first + 50)], time=TIME
        )
    log.append([r.FenceBrokerRecord(1, 1) if fenced else r.NoOpRecord()], time=TIME)
    log.append([r.FenceBrokerRecord(4, 4), r.UnfenceBrokerRecord(4, 4)], time=TIME)

    told = _in_parts(log, limit, _counted)

    assert sorted(told) == sorted(_counted(_told(log)))
    [(_, kind, count)] = [one for one in told if one[2]]
    assert (kind, count) == ("broker_fenced" if fenced else "mass_change", 150)


@pytest.mark.parametrize("asked", [5_000, 3, 2, 1, 0])
def test_of_a_long_chain_of_elections_that_overlap_none_is_cut(asked: int) -> None:
    """Of a clock that goes back and forth: each group goes on behind the begin of the next one."""
    found = IncidentFindings([])
    found.elections = [{"from_offset": 2 * number, "to_offset": 2 * number + 3} for number in range(3_000)]
    assert whole_from(SerialFindings(found), Thresholds(), asked) == 0
    assert whole_from(SerialFindings(found), Thresholds(), 6_002) == 6_002
