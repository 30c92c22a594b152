"""The same events as spans of time in lanes: epochs, brokers away, partitions in trouble, reassignments. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from typing import Literal, NamedTuple

from quorate.snapshots.incidents.brokers import BrokerVersion, by_broker
from quorate.snapshots.incidents.findings import Row
from quorate.snapshots.incidents.giving_up import Look, looked_at, nobody_gives_up
from quorate.snapshots.incidents.kinds import OPEN
from quorate.snapshots.incidents.serial.search import LogVersions, SerialFindings
from quorate.snapshots.incidents.telling.incident import controller_named, counted
from quorate.snapshots.incidents.telling.story import because
from quorate.snapshots.incidents.telling.timeline import run_rows, together
from quorate.snapshots.incidents.thresholds import Thresholds

LaneName = Literal["epoch", "broker", "offline", "under_min_isr", "reassignment"]


class LaneSpan(NamedTuple):
    """Something that was so for a while; times in milliseconds since 1970."""

    lane: LaneName
    from_offset: int
    from_ms: int
    #: None: it lasts.
    to_ms: int | None
    #: The broker that was away, or the controller that led; of the other lanes None.
    node: int | None
    #: How many it concerned; 0: it is not about partitions.
    partitions: int
    text: str


def lane_spans(
    versions: LogVersions, found: SerialFindings, thresholds: Thresholds, check: Look = nobody_gives_up
) -> list[LaneSpan]:
    """All spans, by their begin. What was so before the first record that was read begins with it.

    Raises:
        What ``check`` raises, which is called again and again.
    """
    gap = thresholds.mass_gap
    told = chain(
        _epochs(versions),
        (span for rows in by_broker(versions.brokers) for span in _absences(rows)),
        _runs(run_rows(found, found.leaderless, gap), "offline", "without a leader"),
        _runs(run_rows(found, found.under_min_isr, gap), "under_min_isr", "below min.insync.replicas"),
        _reassignments(found.reassignments, gap),
    )
    return sorted(looked_at(told, check), key=lambda span: (span.from_offset, span.from_ms))


def _epochs(versions: LogVersions) -> Iterator[LaneSpan]:
    epochs = sorted(versions.epochs, key=lambda epoch: epoch.epoch)
    ends = [epoch.begin_us // 1000 for epoch in epochs[1:]]
    for epoch, end in zip_longest(epochs, ends):
        text = f"{controller_named(epoch.leader)} leads in epoch {epoch.epoch}"
        yield LaneSpan("epoch", epoch.begin_offset, epoch.begin_us // 1000, end, epoch.leader, 0, text)


def _absences(rows: Sequence[BrokerVersion]) -> Iterator[LaneSpan]:
    """The times in which one broker was fenced or shutting down: it may lead nothing then."""
    begin: BrokerVersion | None = None
    for row in rows:
        is_away = row.fenced or row.in_controlled_shutdown
        if begin is None and is_away:
            begin = row
        elif begin is not None and not is_away:
            yield _absence(begin, row.from_us)
            begin = None
        if begin is not None and row.removed:
            yield _absence(begin, row.to_us)
            begin = None
    if begin is not None:
        yield _absence(begin, None)


def _absence(begin: BrokerVersion, to_us: int | None) -> LaneSpan:
    what = "fenced" if begin.fenced else "in controlled shutdown, then fenced"
    to_ms = None if to_us is None else to_us // 1000
    text = f"broker {begin.broker_id} {what}"
    return LaneSpan("broker", begin.from_offset, begin.from_us // 1000, to_ms, begin.broker_id, 0, text)


def _runs(rows_of_each: Iterable[Sequence[Row]], lane: LaneName, words: str) -> Iterator[LaneSpan]:
    for row in (row for rows in rows_of_each for row in rows):
        to_ms = None if row["ended_by"] == OPEN else _ms(row["to_time"])
        text = f"{counted(row['partitions'], 'partition')} {words} ({row['first_partition']}...): {because(row)}"
        yield LaneSpan(lane, row["from_offset"], _ms(row["from_time"]), to_ms, None, row["partitions"], text)


def _reassignments(rows: Iterable[Row], gap: timedelta) -> Iterator[LaneSpan]:
    """Those that began shortly after each other are one, as long as the longest of them."""
    for mine in together((row for row in rows if row["from_offset"] != row["to_offset"]), "from_time", gap):
        first = min(mine, key=lambda row: row["from_offset"])
        ends = [row["to_time"] for row in mine]
        to_ms = None if None in ends else max(map(_ms, ends))
        others = ", ..." if len(mine) > 1 else ""
        text = f"reassignment of {counted(len(mine), 'partition')} ({first['topic']}-{first['partition']}{others})"
        yield LaneSpan("reassignment", first["from_offset"], _ms(first["from_time"]), to_ms, None, len(mine), text)


def _ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)
