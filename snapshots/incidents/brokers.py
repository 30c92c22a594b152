"""The history of brokers: events and incarnations, out of their versions. Pure; brokers are few.

A version holds from one offset to the next. A broker that is fenced leads nothing; it registers fenced, is unfenced
when it has caught up, and is fenced again when its session ends or its controlled shutdown is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Final, NamedTuple

REGISTERED: Final = "registered"
#: Registered by a new process while the one before was not fenced yet.
RESTARTED: Final = "broker_restarted"
UNFENCED: Final = "unfenced"
FENCED: Final = "broker_fenced"
SHUTDOWN: Final = "controlled_shutdown"
#: Fenced at the end of its controlled shutdown.
STOPPED: Final = "broker_stopped"
DIRECTORIES_LOST: Final = "log_dirs_lost"
UNREGISTERED: Final = "broker_unregistered"
#: Events that take partitions from a broker.
LOSSES: Final = frozenset({RESTARTED, FENCED, SHUTDOWN, STOPPED, DIRECTORIES_LOST, UNREGISTERED})


class BrokerVersion(NamedTuple):
    """One row of ``broker_versions``, as far as outages are concerned; times in microseconds since 1970."""

    cluster_id: str
    broker_id: int
    incarnation_id: str
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    log_dirs: tuple[str, ...]
    from_offset: int
    from_us: int
    #: None: it holds still.
    to_offset: int | None
    to_us: int | None
    #: The version was ended by the broker's removal.
    removed: bool


class BrokerEvent(NamedTuple):
    """The event of one broker in one record."""

    cluster_id: str
    broker_id: int
    kind: str
    offset: int
    at_us: int
    #: Directories that were lost.
    log_dirs: tuple[str, ...] = ()


@dataclass(slots=True)
class Incarnation:
    """One process of a broker, from its registration to the next one's; times in microseconds since 1970."""

    cluster_id: str
    broker_id: int
    incarnation_id: str
    rack: str | None
    registered_offset: int
    registered_us: int
    #: First time that it might lead; None: it never got so far.
    unfenced_offset: int | None
    unfenced_us: int | None
    #: From when on it was gone for good: its last fencing; None while it runs.
    down_offset: int | None
    down_us: int | None
    #: ``running``, ``controlled_shutdown``, ``crash``, ``restarted`` (before anybody noticed), ``unregistered``,
    #: ``never_unfenced``. A clean stop of a broker that leads nothing leaves the records of a crash.
    end: str
    #: Time in which it was fenced after it had been unfenced once, and how often.
    fenced_us: int
    fencings: int
    log_dirs_lost: int


def events(versions: Iterable[BrokerVersion]) -> list[BrokerEvent]:
    """The events of all brokers, by cluster, broker and offset."""
    return [event for rows in by_broker(versions) for event in _events(rows)]


def by_broker(versions: Iterable[BrokerVersion]) -> Iterator[list[BrokerVersion]]:
    """The versions of one broker after the other, each in order of offset."""
    ordered = sorted(versions, key=lambda row: (row.cluster_id, row.broker_id, row.from_offset))
    for _, rows in groupby(ordered, key=lambda row: (row.cluster_id, row.broker_id)):
        yield list(rows)


def _events(rows: list[BrokerVersion]) -> Iterator[BrokerEvent]:
    before: BrokerVersion | None = None
    for row in rows:
        for kind in _kinds(before, row):
            lost: tuple[str, ...] = ()
            if kind == DIRECTORIES_LOST and before is not None:
                lost = tuple(sorted(set(before.log_dirs) - set(row.log_dirs)))
            yield BrokerEvent(row.cluster_id, row.broker_id, kind, row.from_offset, row.from_us, lost)
        before = row
        if row.removed and row.to_offset is not None and row.to_us is not None:
            yield BrokerEvent(row.cluster_id, row.broker_id, UNREGISTERED, row.to_offset, row.to_us)
            before = None


def _kinds(before: BrokerVersion | None, row: BrokerVersion) -> Iterator[str]:
    if before is None or before.incarnation_id != row.incarnation_id:
        yield REGISTERED if before is None or before.fenced else RESTARTED
        if not row.fenced:
            yield UNFENCED
        return
    if row.in_controlled_shutdown and not before.in_controlled_shutdown:
        yield SHUTDOWN
    if row.fenced and not before.fenced:
        yield STOPPED if row.in_controlled_shutdown else FENCED
    if before.fenced and not row.fenced:
        yield UNFENCED
    if set(before.log_dirs) - set(row.log_dirs):
        yield DIRECTORIES_LOST


def incarnations(versions: Iterable[BrokerVersion]) -> list[Incarnation]:
    """Every process of every broker, by cluster, broker and registration."""
    found = []
    for rows in by_broker(versions):
        runs = [list(run) for _, run in groupby(rows, key=lambda row: row.incarnation_id)]
        successors = [run[0] for run in runs[1:]]
        found += [_incarnation(run, after) for run, after in zip(runs, [*successors, None], strict=True)]
    return found


def _incarnation(run: list[BrokerVersion], successor: BrokerVersion | None) -> Incarnation:
    first, last = run[0], run[-1]
    up = next((row for row in run if not row.fenced), None)
    fencings = [row for before, row in pairwise(run) if row.fenced and not before.fenced]
    down: tuple[int, int] | None = None
    if up is not None and last.fenced:
        down = (fencings[-1].from_offset, fencings[-1].from_us)
    elif successor is not None or last.removed:
        assert last.to_offset is not None
        assert last.to_us is not None
        down = (last.to_offset, last.to_us)
    return Incarnation(
        cluster_id=first.cluster_id, broker_id=first.broker_id, incarnation_id=first.incarnation_id, rack=first.rack,
        registered_offset=first.from_offset, registered_us=first.from_us,
        unfenced_offset=up.from_offset if up else None, unfenced_us=up.from_us if up else None,
        down_offset=down[0] if down else None, down_us=down[1] if down else None,
        end=_end(last, has_been_up=up is not None, has_successor=successor is not None),
        fenced_us=_fenced_us(run, up), fencings=len(fencings),
        log_dirs_lost=len(set(first.log_dirs) - set(last.log_dirs)),
    )  # fmt: skip


def _end(last: BrokerVersion, *, has_been_up: bool, has_successor: bool) -> str:
    if last.in_controlled_shutdown:
        return "controlled_shutdown"
    if not has_been_up:
        return "never_unfenced"
    if last.fenced:
        return "crash"
    if last.removed:
        return "unregistered"
    return "restarted" if has_successor else "running"


def _fenced_us(run: list[BrokerVersion], up: BrokerVersion | None) -> int:
    """Fenced time after the first unfencing that came to an end within this incarnation's records."""
    if up is None:
        return 0
    return sum(row.to_us - row.from_us for row in run if row.fenced and row.from_us > up.from_us and row.to_us)


class Outage(NamedTuple):
    """A broker's way from losing its partitions to leading again, over any number of processes."""

    cluster_id: str
    broker_id: int
    #: The event it began with, one of ``LOSSES``.
    kind: str
    offset: int
    at_us: int
    #: When it was fenced, if it was: a controlled shutdown begins earlier.
    fenced_offset: int | None
    #: When it was unfenced again; None: it is down still, or was unregistered.
    back_offset: int | None
    back_us: int | None
    #: Processes that registered in between.
    registrations: int
    unregistered: bool


def outages(found: Iterable[BrokerEvent]) -> list[Outage]:
    """The outages in the events of ``events``; a lost directory is none, for the broker goes on."""
    done: list[Outage] = []
    for _, group in groupby(found, key=lambda event: (event.cluster_id, event.broker_id)):
        open_: Outage | None = None
        for event in group:
            open_ = _follow(open_, event, done)
        if open_ is not None:
            done.append(open_)
    return done


def _follow(open_: Outage | None, event: BrokerEvent, done: list[Outage]) -> Outage | None:
    if open_ is None:
        if event.kind not in LOSSES or event.kind in (DIRECTORIES_LOST, UNREGISTERED):
            return None
        fenced_offset = event.offset if event.kind in (FENCED, RESTARTED) else None
        registrations = 1 if event.kind == RESTARTED else 0
        return Outage(*event[:5], fenced_offset, None, None, registrations, False)
    if event.kind in (STOPPED, FENCED) and open_.fenced_offset is None:
        return open_._replace(fenced_offset=event.offset)
    if event.kind in (REGISTERED, RESTARTED):
        return open_._replace(registrations=open_.registrations + 1)
    if event.kind == UNREGISTERED:
        done.append(open_._replace(unregistered=True))
        return None
    if event.kind == UNFENCED:
        done.append(open_._replace(back_offset=event.offset, back_us=event.at_us))
        return None
    return open_
