"""Failovers of the controller quorum: times without a leader that writes, by epochs' first and last records. Pure.

Time stamps are the leaders' own: two machines' clocks meet in every duration. A controller writes at least a no-op per
idle interval (half a second by default), so the old leader may have lived on for so long after its last record.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple


class Epoch(NamedTuple):
    """First and last records of one epoch; times in microseconds since 1970."""

    cluster_id: str
    epoch: int
    #: None: the log does not begin with this epoch's first record.
    leader: int | None
    begin_offset: int
    begin_us: int
    #: First record that is no control record; None: there is none.
    first_offset: int | None
    first_us: int | None
    last_offset: int
    last_us: int


class Failover(NamedTuple):
    """One change of the leader."""

    cluster_id: str
    epoch: int
    old_leader: int | None
    new_leader: int | None
    #: Last record of the old epoch.
    last_offset: int
    last_us: int
    #: The new leader's LeaderChange.
    elected_offset: int
    elected_us: int
    #: First data record of the new epoch; None: it never wrote any.
    writes_offset: int | None
    writes_us: int | None
    #: From the old epoch's last record to the election, and to the first data record (None: there is none).
    election_ms: int
    failover_ms: int | None


def failovers(epochs: Iterable[Epoch]) -> list[Failover]:
    """The changes between epochs that follow each other in a cluster's log."""
    ordered = sorted(epochs, key=lambda epoch: (epoch.cluster_id, epoch.epoch))
    return [_failover(old, new) for old, new in pairwise(ordered) if old.cluster_id == new.cluster_id]


def _failover(old: Epoch, new: Epoch) -> Failover:
    return Failover(
        new.cluster_id,
        new.epoch,
        old.leader,
        new.leader,
        old.last_offset,
        old.last_us,
        new.begin_offset,
        new.begin_us,
        new.first_offset,
        new.first_us,
        (new.begin_us - old.last_us) // 1000,
        None if new.first_us is None else (new.first_us - old.last_us) // 1000,
    )
