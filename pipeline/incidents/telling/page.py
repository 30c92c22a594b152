"""The page of `incidents --html`: what happened to brokers, controllers, leaders and ISRs over time. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any, Final

from quorate.pipeline.incidents.partitions.series import ClusterSeries, Steps
from quorate.pipeline.incidents.telling.severity import SEVERITIES, by_severity, severity, worst
from quorate.pipeline.pages import UP_TIME_COLOURS, HtmlPage, PageLink, TimelineSpan, cell, over_time, spans
from quorate.pipeline.pages.drawing import BAD
from quorate.snapshots.incidents import brokers
from quorate.snapshots.incidents.brokers import BrokerEvent
from quorate.snapshots.incidents.failovers import Failover
from quorate.snapshots.incidents.findings import HistorySpan, IncidentFindings, at, at_or_none
from quorate.snapshots.incidents.telling.incident import Incident

#: Incidents before the plots, and all of them behind these.
_WORST_SHOWN: Final = 100
_ROWS_SHOWN: Final = 5_000
_COLUMNS: Final = (
    "severity", "offset", "begin", "end, – if open", "what", "in words", "cause", "partitions",
)  # fmt: skip
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


def incidents_page(
    found: IncidentFindings,
    told: Sequence[Incident],
    drawn: Mapping[str, ClusterSeries],
    failed: Mapping[str, str],
) -> HtmlPage:
    """The page.

    Args:
        drawn: by cluster.
        failed: why a cluster is not in it, by cluster.
    """
    names = [span.cluster_id for span in found.spans]
    title = f"Incidents of {len(names)} clusters" if len(names) > 1 else " of cluster ".join(["Incidents", *names])
    page = HtmlPage(title, "outages reconstructed from the metadata log")
    if not found.spans:
        page.text("The tables hold no partition: there is no history to look at.")
    if failed:
        page.section("Not on this page", "What happened there is not known, which does not mean that nothing did.")
        page.table("Clusters that were left out", ("cluster", "why"), sorted(failed.items()))
    of = {name: [one for one in told if one.cluster_id == name] for name in names}
    if len(names) > 1:
        _fleet(page, found.spans, of)
    for stretch in found.spans:
        _cluster(page, stretch, found, of[stretch.cluster_id], drawn[stretch.cluster_id])
    return page


def _fleet(page: HtmlPage, stretches: Sequence[HistorySpan], of: Mapping[str, Sequence[Incident]]) -> None:
    """One row a cluster, the worst first."""
    rows: list[list[Any]] = []
    for stretch in stretches:
        mine = of[stretch.cluster_id]
        counts = Counter(map(severity, mine))
        link = PageLink(stretch.cluster_id, stretch.cluster_id)
        row = [link, *(counts[name] for name in SEVERITIES), sum(one.is_open for one in mine)]
        rows.append([*row, stretch.partitions, stretch.begin, stretch.end])
    rows.sort(key=lambda row: [-count for count in row[1:5]])
    page.table("Clusters", ["cluster", *SEVERITIES, "open", "partitions", "from", "to"], rows, rows_max=len(rows))


def _kinds(told: Sequence[Incident]) -> list[list[Any]]:
    """One row a kind, the worst first."""
    rows: dict[str, list[Any]] = {}
    for one in by_severity(told):
        row = rows.setdefault(one.kind, [severity(one), one.kind, 0, 0, 0, one.begin, one.begin])
        row[2:5] = row[2] + 1, row[3] + one.is_open, row[4] + one.partitions
        row[5:7] = min(row[5], one.begin), max(row[6], one.begin)
    return list(rows.values())


def _row(one: Incident) -> list[Any]:
    return [severity(one), one.from_offset, one.begin, one.end, one.kind, one.text, one.cause, one.partitions]


def _cluster(
    page: HtmlPage, stretch: HistorySpan, found: IncidentFindings, told: Sequence[Incident], drawn: ClusterSeries
) -> None:
    highest = {name: max((count for _, count in steps), default=0) for name, steps in drawn.health.items()}
    page.section(
        f"Cluster {stretch.cluster_id}",
        f"Offsets {stretch.from_offset:,} to {stretch.to_offset:,}, {cell(stretch.begin)} to {cell(stretch.end)}.",
        anchor=stretch.cluster_id,
    )
    page.facts(
        [
            ("Length of the history", stretch.end - stretch.begin),
            ("Partitions", stretch.partitions),
            ("Incidents", len(told)),
            ("Open", sum(one.is_open for one in told)),
            *((f"Most at once: {_HEALTH_NAMES[name]}", count) for name, count in highest.items()),
        ]
    )
    kinds = ["worst", "what", "incidents", "open", "partitions, each time", "first", "last"]
    page.table("Kinds of incidents", kinds, _kinds(told))
    chosen = worst(told, _WORST_SHOWN)
    text = "" if len(chosen) == len(told) else f"Of {len(told):,}; behind the plots they are in the order of time."
    page.table("The worst first", _COLUMNS, list(map(_row, chosen)), rows_max=_WORST_SHOWN, text=text)
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
    if len(chosen) < len(told):
        page.table("All incidents", _COLUMNS, list(map(_row, told)), rows_max=_ROWS_SHOWN)


def _over_time(page: HtmlPage, title: str, given: Mapping[str, Steps], stretch: HistorySpan) -> None:
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


def broker_spans(events: Iterable[BrokerEvent], stretch: HistorySpan) -> Iterator[TimelineSpan]:
    """The states of each broker, from its registration to the end of the history."""
    for broker, group in groupby(events, key=lambda event: event.broker_id):
        known = [(at(event.at_us), _STATES[event.kind]) for event in group if event.kind in _STATES]
        for (start, state), end in zip(known, [*(start for start, _ in known[1:]), stretch.end], strict=True):
            if end > start:
                yield TimelineSpan(f"broker {broker}", start, end, state)


def controller_spans(changes: Sequence[Failover], stretch: HistorySpan) -> Iterator[TimelineSpan]:
    """The leaders of the quorum, each from when to when."""
    starts = [stretch.begin, *(at(change.elected_us) for change in changes)]
    ends = [*(at(change.last_us) for change in changes), stretch.end]
    leaders = [changes[0].old_leader, *(change.new_leader for change in changes)]
    notes = ["", *(f"epoch {change.epoch}, first wrote at {at_or_none(change.writes_us)}" for change in changes)]
    for leader, start, end, note in zip(leaders, starts, ends, notes, strict=True):
        name = "unknown" if leader is None else f"controller {leader}"
        if end > start:
            yield TimelineSpan(name, start, end, "leading", note)


def leader_spans(leaders: Mapping[str, Steps], stretch: HistorySpan) -> Iterator[TimelineSpan]:
    """The leaders of each partition, each from when to when."""
    for name, steps in leaders.items():
        for (start, leader), (end, _) in pairwise([*steps, (stretch.end, 0)]):
            if end > start:
                yield TimelineSpan(name, start, end, "none" if leader < 0 else f"broker {leader}")
