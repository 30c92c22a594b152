"""The input and the form of a plan: arrays of broker indexes, one row per partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quorate.metadata_log.errors import QuorateError

Indexes = NDArray[np.int32]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: No broker: what fills the rows of partitions with fewer replicas than others.
NONE: Final = -1


class BrokerRole(IntEnum):
    """The part that a plan may give to a broker."""

    #: Gets its share, and no more.
    TAKES = 0
    #: Gets nothing and keeps what it has, unless a rack rule needs it to go: a fenced or an excluded broker.
    KEEPS = 1
    #: Keeps nothing: a broker that is to be taken away, or one that is not registered any more.
    DRAINS = 2


class NoPlan(QuorateError):
    """There is no placement of this cluster's replicas that follows the rules."""


class TooFewBrokers(NoPlan):
    """A partition has more replicas than there are brokers for them.

    Attributes:
        rows: int64[n], the rows of such partitions. partition: the first of them. replicas, brokers: what it has, and
            what it may have.
    """

    def __init__(self, rows: Counts, replicas: int, brokers: int) -> None:
        lacking = "1 partition is" if len(rows) == 1 else f"{len(rows):,} partitions are"
        first = "" if len(rows) == 1 else "the first of them "
        super().__init__(
            f"{lacking} to have more replicas than there are brokers that may hold them "
            f"({first}{replicas} for {brokers}), and each needs a broker of its own: have fewer replicas, or more "
            "brokers that take some"
        )
        self.rows = rows
        self.partition = int(rows[0])
        self.replicas = replicas
        self.brokers = brokers


@dataclass(frozen=True)
class Brokers:
    """The brokers that a placement knows; an index is a place in these arrays.

    Attributes:
        ids: ascending. racks: a number for each rack; where no broker has a rack, each broker has a number of its own,
            which is no rule but that of different brokers. roles: of `BrokerRole`.
    """

    ids: Indexes
    racks: Indexes
    roles: NDArray[np.int8]
    #: By number; empty where there are none.
    rack_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, racks: Mapping[int, str | None], roles: Mapping[int, BrokerRole] | None = None) -> Brokers:
        """Return brokers [n] by id with their racks; those without one share one of their own if others have any."""
        ids = sorted(racks)
        names = sorted({rack for rack in racks.values() if rack is not None})
        numbers = {name: number for number, name in enumerate(names)}
        if len(names) == 0:
            codes = list(range(len(ids)))
        else:
            codes = [numbers.get(rack, len(names)) if (rack := racks[one]) is not None else len(names) for one in ids]
            names += ["(none)"] if len(names) in codes else []
        role_of = roles or {}
        return cls(
            np.array(ids, np.int32),
            np.array(codes, np.int32),
            np.array([role_of.get(one, BrokerRole.TAKES) for one in ids], np.int8),
            tuple(names),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def takers(self) -> Mask:
        """bool[brokers]: those among which counts are evened."""
        return np.asarray(self.roles == BrokerRole.TAKES)

    @cached_property
    def rack_count(self) -> int:
        """One more than the highest number of a rack."""
        return int(self.racks.max()) + 1 if len(self.racks) else 0


@dataclass(frozen=True)
class ClusterLayout:
    """Partitions and where their replicas are.

    Attributes:
        replicas: one row a partition, broker indexes in order, the preferred leader first, `NONE` behind the last.
        sizes: bytes of one replica of each partition; None: every replica counts one. lost: the places whose replica
            lies in a log directory that is not online; None: no place. other_loads, other_leads: int64[brokers], the
            replicas and the preferred leaders that each broker has of partitions that are not here; None: all are here.
    """

    brokers: Brokers
    replicas: Indexes
    sizes: NDArray[np.float64] | None = None
    lost: Mask | None = None
    other_loads: Counts | None = None
    other_leads: Counts | None = None

    @classmethod
    def of(cls, brokers: Brokers, assignment: Sequence[Sequence[int]], **rest: Any) -> ClusterLayout:
        """Return a cluster from lists of broker ids: for tests and small inputs."""
        width = max(map(len, assignment), default=1)
        replicas = np.full((len(assignment), width), NONE, np.int32)
        index = {int(one): at for at, one in enumerate(brokers.ids)}
        for row, ids in enumerate(assignment):
            replicas[row, : len(ids)] = [index[one] for one in ids]
        return cls(brokers, replicas, **rest)

    @cached_property
    def widths(self) -> Counts:
        """int64[partitions]: the number of replicas of each."""
        return np.asarray(np.count_nonzero(self.replicas != NONE, axis=1))


@dataclass(frozen=True)
class ReassignmentPlan:
    """The places where the replicas of a cluster are to be: `after` has the rows of `before.replicas`, in the same
    order.
    """

    before: ClusterLayout
    after: Indexes

    @cached_property
    def changed(self) -> Counts:
        """int64[n]: the rows that differ, in order or in brokers."""
        return np.flatnonzero((self.before.replicas != self.after).any(axis=1))

    @cached_property
    def moves_by_row(self) -> Counts:
        """int64[n]: for each changed row, how many replicas come to a broker that had none."""
        old, new = self.before.replicas[self.changed], self.after[self.changed]
        came = (new[:, :, None] != old[:, None, :]).all(axis=2) & (new != NONE)
        return np.asarray(np.count_nonzero(came, axis=1))

    @property
    def moves(self) -> int:
        """The number of replicas that are copied."""
        return int(self.moves_by_row.sum())


def counts_of(indexes: Indexes, brokers: int) -> Counts:
    """int64[brokers]: how often each broker comes."""
    return np.bincount(indexes.ravel() + 1, minlength=brokers + 1)[1:].astype(np.int64)


def even_shares(total: int, members: Counts, loads: Counts) -> Counts:
    """int64[brokers]: even shares of a total for some, one more for those that have most now; 0 for the others."""
    shares = np.zeros(len(loads), np.int64)
    share, more = divmod(total, len(members))
    shares[members] = share
    shares[members[np.argsort(-loads[members], kind="stable")[:more]]] += 1
    return shares
