"""Findings of the queries, small enough to be held: the material of the story, the report and the page. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from quorate.snapshots.incidents.brokers import BrokerEvent, Incarnation, Outage
from quorate.snapshots.incidents.failovers import Failover

#: A row as it came from a query, times with their zone.
Row = dict[str, Any]


def at(us: int) -> datetime:
    """A time in microseconds since 1970, in UTC."""
    return datetime.fromtimestamp(us / 1_000_000, UTC)


def at_or_none(us: int | None) -> datetime | None:
    return None if us is None else at(us)


@dataclass(frozen=True, slots=True)
class HistorySpan:
    """The stretch of one cluster's history that was looked at; the offsets are those of the first and last change.

    It ends where the log does, where that is known, else with the last change.
    """

    cluster_id: str
    from_offset: int
    to_offset: int
    begin: datetime
    end: datetime
    partitions: int


@dataclass(slots=True)
class IncidentFindings:
    """Everything that the report is made of; lists of rows are as the functions of the same name return them."""

    spans: list[HistorySpan]
    events: list[BrokerEvent] = field(default_factory=list)
    incarnations: list[Incarnation] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    failovers: list[Failover] = field(default_factory=list)
    effects: list[Row] = field(default_factory=list)
    instants: list[Row] = field(default_factory=list)
    unclean_stops: list[Row] = field(default_factory=list)
    leaderless: list[Row] = field(default_factory=list)
    under_min_isr: list[Row] = field(default_factory=list)
    under_replicated: list[Row] = field(default_factory=list)
    elections: list[Row] = field(default_factory=list)
    #: The slow and the open ones, the longest first, up to a limit; and how many there were of each outcome.
    reassignments: list[Row] = field(default_factory=list)
    reassignment_outcomes: list[Row] = field(default_factory=list)
    flapping: list[Row] = field(default_factory=list)
    #: Topics in which unclean elections were allowed at some time, by cluster.
    unclean_allowed: frozenset[tuple[str, str]] = frozenset()
