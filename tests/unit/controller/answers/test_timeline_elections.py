"""Elections that may have lost data: told whatever happened to brokers before, and once, however a log is parted."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from quorate.controller.answers.timeline import TimelineNode, told_timeline
from quorate.controller.api.answers.timeline_models import EVENTS_MAX, TimelineReply
from quorate.controller.reads.past import PastStretch
from quorate.metadata_log.records import records as r
from quorate.snapshots.checkpoints.loading import batches_from_start
from quorate.snapshots.incidents.serial.search import SerialFindings
from quorate.snapshots.incidents.telling.timeline import whole_from
from quorate.snapshots.replay.replay_state import ReplayState
from tests.default_parts import controller_config
from tests.pipeline_logs import LogWriter

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

    told: list[tuple[int, tuple[int, ...], int]] = []
    before: int | None = None
    while True:
        part = _told(log, before, limit)
        told = _elected(part) + told
        if part.earlier is None:
            break
        assert part.earlier < (log.offset if before is None else before)
        before = part.earlier

    assert told == [(base, (2,), count // 2), (base + 1, (3,), count // 2)]


@pytest.mark.parametrize("asked", [5_000, 3, 2, 1, 0])
def test_of_a_long_chain_of_elections_that_overlap_none_is_cut(asked: int) -> None:
    """Of a clock that goes back and forth: each group goes on behind the begin of the next one."""
    rows = [{"from_offset": 2 * number, "to_offset": 2 * number + 3} for number in range(3_000)]
    found = SimpleNamespace(findings=SimpleNamespace(elections=rows))
    assert whole_from(cast("SerialFindings", found), asked) == 0
    assert whole_from(cast("SerialFindings", found), 6_002) == 6_002
