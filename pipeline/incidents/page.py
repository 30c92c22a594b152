"""The page of `incidents --html`: what happened to brokers, controllers, leaders and ISRs over time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, pairwise
from typing import Final

from pipeline.incidents import brokers
from pipeline.incidents.brokers import BrokerEvent
from pipeline.incidents.failovers import Failover
from pipeline.incidents.findings import Findings, at, at_or_none
from pipeline.incidents.findings import Span as Stretch
from pipeline.incidents.incident import Incident
from pipeline.incidents.series import Series, Steps
from pipeline.pages import UP_TIME_COLOURS, Page, Span, cell, over_time, spans
from pipeline.pages.drawing import BAD

_ROWS_SHOWN: Final = 500
#: What a broker is from an event on; a lost directory changes nothing of it.
_STATES: Final = {
    brokers.REGISTERED: "fenced",
    brokers.RESTARTED: "fenced",
    brokers.FENCED: "fenced",
    brokers.STOPPED: "fenced",
    brokers.SHUTDOWN: "shutting down",
    brokers.UNFENCED: "up",
    brokers.UNREGISTERED: "not registered",
}
_HEALTH_NAMES: Final = {
    "leaderless": "without a leader",
    "under_replicated": "under-replicated",
    "under_min_isr": "too few in the ISR for acks=all",
}


def incidents_page(found: Findings, told: Sequence[Incident], drawn: Mapping[str, Series]) -> Page:
    """The page.

    Args:
        drawn: by cluster.
    """
    clusters = ", ".join(span.cluster_id for span in found.spans)
    page = Page(
        f"Incidents of cluster {clusters}" if clusters else "Incidents", "outages reconstructed from the metadata log"
    )
    if not found.spans:
        page.text("The tables hold no partition: there is no history to look at.")
    for stretch in found.spans:
        mine = [one for one in told if one.cluster_id == stretch.cluster_id]
        _cluster(page, stretch, found, mine, drawn[stretch.cluster_id])
    return page


def _cluster(page: Page, stretch: Stretch, found: Findings, told: Sequence[Incident], drawn: Series) -> None:
    worst = {name: max((count for _, count in steps), default=0) for name, steps in drawn.health.items()}
    page.section(
        f"Cluster {stretch.cluster_id}",
        f"Offsets {stretch.from_offset:,} to {stretch.to_offset:,}, {cell(stretch.begin)} to {cell(stretch.end)}.",
    )
    page.facts(
        [
            ("Length of the history", stretch.end - stretch.begin),
            ("Partitions", stretch.partitions),
            ("Incidents", len(told)),
            ("Open", sum(one.is_open for one in told)),
            *((f"Most at once: {_HEALTH_NAMES[name]}", count) for name, count in worst.items()),
        ]
    )
    columns = ["offset", "begin", "end, – if open", "what", "cause", "partitions", "in words"]
    rows = [[one.from_offset, one.begin, one.end, one.kind, one.cause, one.partitions, one.text] for one in told]
    page.table("Incidents", columns, rows, rows_max=_ROWS_SHOWN)
    events = [event for event in found.events if event.cluster_id == stretch.cluster_id]
    if events:
        page.plot("Brokers", spans(broker_spans(events, stretch), colours=UP_TIME_COLOURS))
    changes = [change for change in found.failovers if change.cluster_id == stretch.cluster_id]
    if changes:
        page.plot("Controllers", spans(controller_spans(changes, stretch)), "Who led the quorum; gaps are failovers.")
    _over_time(page, "ISR health", {_HEALTH_NAMES[name]: steps for name, steps in drawn.health.items()}, stretch)
    _over_time(page, "Partitions led", {f"broker {one}": steps for one, steps in sorted(drawn.led.items())}, stretch)
    if drawn.leaders:
        text = f"Who led each partition: of those that were ever without a leader the {len(drawn.leaders):,} worst."
        page.plot("Leadership", spans(leader_spans(drawn.leaders, stretch), colours={"none": BAD}), text)


def _over_time(page: Page, title: str, given: Mapping[str, Steps], stretch: Stretch) -> None:
    times = sorted({stretch.begin, stretch.end, *(time for steps in given.values() for time, _ in steps)})
    if any(given.values()):
        page.plot(
            title,
            over_time(
                times, {name: _held(steps, times) for name, steps in given.items()}, unit="partitions", is_stepped=True
            ),
        )


def _held(steps: Steps, times: Sequence[datetime]) -> list[int]:
    """The count at each of the times: it holds until the next step."""
    held, values, index = 0, [], 0
    for time in times:
        while index < len(steps) and steps[index][0] <= time:
            held = steps[index][1]
            index += 1
        values.append(held)
    return values


def broker_spans(events: Iterable[BrokerEvent], stretch: Stretch) -> Iterator[Span]:
    """What each broker was, from its registration to the end of the history."""
    for broker, group in groupby(events, key=lambda event: event.broker_id):
        known = [(at(event.at_us), _STATES[event.kind]) for event in group if event.kind in _STATES]
        for (start, state), end in zip(known, [*(start for start, _ in known[1:]), stretch.end], strict=True):
            if end > start:
                yield Span(f"broker {broker}", start, end, state)


def controller_spans(changes: Sequence[Failover], stretch: Stretch) -> Iterator[Span]:
    """Who led the quorum from when to when."""
    starts = [stretch.begin, *(at(change.elected_us) for change in changes)]
    ends = [*(at(change.last_us) for change in changes), stretch.end]
    leaders = [changes[0].old_leader, *(change.new_leader for change in changes)]
    notes = ["", *(f"epoch {change.epoch}, first wrote at {at_or_none(change.writes_us)}" for change in changes)]
    for leader, start, end, note in zip(leaders, starts, ends, notes, strict=True):
        name = "unknown" if leader is None else f"controller {leader}"
        if end > start:
            yield Span(name, start, end, "leading", note)


def leader_spans(leaders: Mapping[str, Steps], stretch: Stretch) -> Iterator[Span]:
    """Who led each partition from when to when."""
    for name, steps in leaders.items():
        for (start, leader), (end, _) in pairwise([*steps, (stretch.end, 0)]):
            if end > start:
                yield Span(name, start, end, "none" if leader < 0 else f"broker {leader}")
