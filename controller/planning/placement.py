"""The placement while it is being changed: who holds what, what may go where, and the act of moving.

A replica that is moved twice counts once, and one that goes back to where it was not at all: so it is that which is
moved first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from quorate.controller.planning.cluster import NONE, ClusterLayout, Counts, Indexes, Mask, counts_of
from quorate.controller.planning.rules import holds, racks_of

#: Multiplied with a row's number it gives an order that has nothing to do with that of topics (Knuth).
_SCATTER = 2_654_435_761


class ReplicaPlacement:
    """Replicas that follow the rules, and stay so with each move.

    Attributes:
        replicas: as `ClusterLayout.replicas`. loads, leads: how many replicas, and how many preferred leaders, each
            broker has. wanted, wanted_leads: how many it is to have.
    """

    def __init__(
        self, cluster: ClusterLayout, wanted: Counts, replicas: Indexes | None = None, *, moves_all: bool = True
    ) -> None:
        """Begin with the cluster as it is, or with other replicas of its partitions.

        Args:
            moves_all: whether replicas may move that stand where they stood before; else those only that came.
        """
        self.cluster = cluster
        self.brokers = cluster.brokers
        self.replicas: Indexes = (cluster.replicas if replicas is None else replicas).copy()
        self._moves_all = moves_all
        self._others = np.zeros(len(self.brokers), np.int64) if cluster.other_loads is None else cluster.other_loads
        self.loads = counts_of(self.replicas, len(self.brokers)) + self._others
        self.leads = counts_of(self.replicas[:, 0], len(self.brokers))
        self.wanted = wanted
        self.wanted_leads = np.zeros(len(self.brokers), np.int64)
        self.bytes_on: NDArray[np.float64] = np.zeros(len(self.brokers))
        if cluster.sizes is not None:
            held = self.replicas != NONE
            sizes = np.broadcast_to(cluster.sizes[:, None], held.shape)
            self.bytes_on += np.bincount(self.replicas[held], sizes[held], minlength=len(self.brokers))
        self._starts: Counts = np.zeros(len(self.brokers) + 1, np.int64)
        self._order: Counts = np.zeros(0, np.int64)
        self._came: dict[int, list[Counts]] = {}

    def index(self) -> None:
        """Note which places each broker has: once, before the first `move`; moves keep it up."""
        flat = self.replicas.ravel()
        # Without the places that hold no replica, which sort first.
        self._order = np.argsort(flat, kind="stable")[np.count_nonzero(flat == NONE) :]
        held = counts_of(self.replicas, len(self.brokers))
        self.loads = held + self._others
        self.leads = counts_of(self.replicas[:, 0], len(self.brokers))
        self._starts = np.concatenate([[0], np.cumsum(held)])
        self._came.clear()

    def places(self, broker: int) -> tuple[Counts, Counts]:
        """int64[n], int64[n]: the rows and columns of a broker's replicas that may be moved."""
        flat = self._order[self._starts[broker] : self._starts[broker + 1]]
        if broker in self._came:
            # A replica that went and came back is there twice.
            flat = np.unique(np.concatenate([flat, *self._came[broker]]))
        flat = flat[self.replicas.ravel()[flat] == broker]
        rows, columns = np.divmod(flat, self.replicas.shape[1])
        return (rows, columns) if self._moves_all else self._that_came(rows, columns, broker)

    def _that_came(self, rows: Counts, columns: Counts, broker: int) -> tuple[Counts, Counts]:
        return _where((rows, columns), ~holds(self.cluster.replicas[rows], broker))

    def _beside(self, rows: Counts, columns: Counts) -> tuple[Indexes, Indexes, Mask]:
        """Return the other replicas, their racks, and for which rows the replica's own rack is among these."""
        others = self.replicas[rows]
        own = self.brokers.racks[others[np.arange(len(rows)), columns]]
        others[np.arange(len(rows)), columns] = NONE
        racks = racks_of(self.brokers, others)
        return others, racks, holds(racks, own)

    def ways(self, source: int) -> Counts:
        """int64[brokers]: how many of the source's replicas could be replaced by one on each.

        Where the rule holds, and the replica's rack has no other of its partition, what replaces it must come to a
        rack that has none: its own, or a new one. Where its rack has another, it may come to any broker without one.
        """
        others, racks, is_shared = self._beside(*self.places(source))
        count = len(is_shared)
        shared = int(np.count_nonzero(is_shared))
        in_rack = np.bincount(_each_once(racks[~is_shared]).ravel() + 1, minlength=self.brokers.rack_count + 1)[1:]
        on_broker = np.bincount(others[is_shared].ravel() + 1, minlength=len(self.brokers) + 1)[1:]
        found = (count - shared - in_rack[self.brokers.racks]) + (shared - on_broker)
        found[~self.brokers.takers] = 0
        found[source] = 0
        return np.asarray(found, np.int64)

    def move(self, source: int, sink: int, most: int) -> int:
        """Replace up to `most` of the source's replicas by replicas on the sink; return how many."""
        rows, columns = self._fitting(source, sink)
        rows, columns = self.chosen(rows, columns, source, sink, most)
        self.place(rows, columns, sink)
        return len(rows)

    def exchange(self, leader: int, other: int, most: int) -> int:
        """Exchange up to `most` replicas that lead on one broker for such as do not on another; return how many."""
        there = self._fitting(leader, other)
        back = self._fitting(other, leader)
        there, back = _where(there, there[1] == 0), _where(back, back[1] > 0)
        count = min(most, len(there[0]), len(back[0]))
        self.place(there[0][:count], there[1][:count], other)
        self.place(back[0][:count], back[1][:count], leader)
        return count

    def _fitting(self, source: int, sink: int) -> tuple[Counts, Counts]:
        rows, columns = self.places(source)
        others, racks, is_shared = self._beside(rows, columns)
        fits = ~holds(others, sink) & (is_shared | ~holds(racks, self.brokers.racks[sink]))
        return _where((rows, columns), fits)

    def fitting(self, source: int, sink: int, cost: int, apart_from: Sequence[Counts] = ()) -> tuple[Counts, Counts]:
        """int64[n], int64[n]: the places of the source's replicas that the sink can have at this cost (`costs`).

        Args:
            apart_from: rows that are not meant.
        """
        rows, columns = self._fitting(source, sink)
        fits = self._costs(rows, source, sink) == cost
        for others in apart_from:
            fits &= ~np.isin(rows, others)
        return _where((rows, columns), fits)

    def _costs(self, rows: Counts, source: int, sink: int) -> Counts:
        """Return what replacing one by the other costs (`costs.COSTS`) in each of these rows."""
        original = self.cluster.replicas[rows]
        return holds(original, source).astype(np.int64) - holds(original, sink)

    def _are_lost(self, rows: Counts, broker: int) -> Mask:
        """Return in which of these rows the broker's replica is lost."""
        lost = self.cluster.lost
        if lost is None:
            return np.zeros(len(rows), np.bool_)
        return holds(np.where(lost[rows], self.cluster.replicas[rows], NONE), broker)

    def place(self, rows: Counts, columns: Counts, sink: int) -> None:
        """Replace what these places hold by replicas on the sink; the rows are all different."""
        self.put(rows, columns, np.full(len(rows), sink, np.int32))
        self._came.setdefault(sink, []).append(rows * self.replicas.shape[1] + columns)

    def chosen(self, rows: Counts, columns: Counts, source: int, sink: int, most: int) -> tuple[Counts, Counts]:
        """int64[n], int64[n]: up to `most` of these to move: those that cost least, with leaders that make these even.

        Lost ones before others that cost as much: they must be copied anew anyway, and elsewhere they are there again.
        """
        costs = self._costs(rows, source, sink)
        leads = columns == 0
        over = self.leads[source] - self.wanted_leads[source]
        under = self.wanted_leads[sink] - self.leads[sink]
        leaders_wanted = int(max(0, min(most, over, under)))
        scattered = (rows * _SCATTER) & 0xFFFF_FFFF
        is_healthy = ~self._are_lost(rows, source)
        order = np.lexsort((scattered, leads, is_healthy, costs))
        if leaders_wanted:
            best = np.lexsort((scattered, ~leads, is_healthy, costs))[:leaders_wanted]
            best = best[leads[best]]
            order = np.concatenate([best, order[~np.isin(order, best)]])
        if self.cluster.sizes is not None and len(order) > most:
            order = self._by_size(order, rows, costs, source, sink, most)
        return rows[order[:most]], columns[order[:most]]

    def _by_size(self, order: Counts, rows: Counts, costs: Counts, source: int, sink: int, most: int) -> Counts:
        """Return `most` neighbours in the order of size, of those that cost least, that even the bytes best."""
        assert self.cluster.sizes is not None
        cheap = order[costs[order] <= costs[order[most - 1]]]
        by_size = cheap[np.argsort(self.cluster.sizes[rows[cheap]], kind="stable")]
        sums = np.concatenate([[0.0], np.cumsum(self.cluster.sizes[rows[by_size]])])
        together = sums[most:] - sums[:-most]
        # Of the bytes that part them, the share that stands to the rest as these moves to those still to come.
        still = max(1, int(self.loads[source] - self.wanted[source]), int(self.wanted[sink] - self.loads[sink]))
        ideal = max(0.0, (self.bytes_on[source] - self.bytes_on[sink]) / 2) * most / still
        start = int(np.argmin(np.abs(together - ideal)))
        return np.asarray(by_size[start : start + most])

    def put(self, rows: Counts, columns: Counts, sinks: Indexes) -> None:
        """Set places, whose rows are all different, to brokers; what they held before has one less."""
        before = self.replicas[rows, columns]
        self.replicas[rows, columns] = sinks
        self.loads += counts_of(sinks, len(self.brokers)) - counts_of(before, len(self.brokers))
        first = columns == 0
        self.leads += counts_of(sinks[first], len(self.brokers)) - counts_of(before[first], len(self.brokers))
        if self.cluster.sizes is not None:
            sizes = self.cluster.sizes[rows]
            held = before != NONE
            self.bytes_on += np.bincount(sinks, sizes, minlength=len(self.brokers))
            self.bytes_on -= np.bincount(before[held], sizes[held], minlength=len(self.brokers))


def _where(places: tuple[Counts, Counts], which: Mask) -> tuple[Counts, Counts]:
    return places[0][which], places[1][which]


def _each_once(rows: Indexes) -> Indexes:
    """Return rows with the second and further places of a value set to `NONE`."""
    ordered = np.sort(rows, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = NONE
    return ordered
