"""Followers of the partitions of a page that are led here: their known state, and the ISRs that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.broker.directories.online_replicas import Online
from quorate.broker.directories.places import Flags, Ints, in_slots, is_among, slot_pairs, with_replaced
from quorate.broker.replicas.joined_pages import JoinedPages, joined
from quorate.snapshots.table.pages import Page

#: As a time to come: never. As the time when somebody was caught up: always.
NEVER: Final = np.inf
ALWAYS: Final = np.inf
#: When somebody was caught up of whom nothing is known.
UNKNOWN: Final = -np.inf

Times = NDArray[np.float64]


@dataclass(slots=True)
class FollowerGroup:
    """The knowledge of all partitions at once that a broker follows as a member."""

    #: When it had all that the leaders had.
    caught_up_ms: float = UNKNOWN
    #: Whether it had, when it was heard last.
    is_level: bool = False


@dataclass(slots=True, eq=False)
class LedRows:
    """The rows of one page, or of a joined one, that are led here and have followers. ``n`` of them."""

    page: Page
    #: int64[n], ascending: rows within the page.
    rows: Ints
    #: float64[width, n]: when the replica in a slot was caught up by itself; ALWAYS: it counts as level until told
    #: otherwise.
    caught_up_ms: Times
    #: bool[width, n]: its broker's group speaks for it, too.
    is_member: Flags
    #: float64[n]: the row is not proposed before.
    hold_ms: Times
    #: bool[n]: the row needs a look, whatever the time.
    is_unseen: Flags
    #: No other row needs a look before; a lower bound.
    next_due_ms: float = NEVER
    #: ... but for those that are due and led by one of these, which can ask for so many at a time.
    awaited: frozenset[int] = frozenset()
    #: Oldest time of an ISR member other than the leader for whom no group speaks; a lower bound.
    oldest_ms: float = NEVER
    #: Replicas that are not in their ISR.
    outside: int = 0

    @staticmethod
    def joined(page: Page, rows: Ints, parts: Sequence[LedRows]) -> LedRows:
        """The rows of several pages as ``rows`` of a joined one; there is one page at least."""
        return LedRows(
            page,
            rows,
            joined([part.caught_up_ms for part in parts], UNKNOWN),
            joined([part.is_member for part in parts], False),
            np.concatenate([part.hold_ms for part in parts]),
            np.concatenate([part.is_unseen for part in parts]),
            oldest_ms=min(part.oldest_ms for part in parts),
        )

    def taken(self, at: Ints) -> LedRows:
        """Copies of some of the rows, by their positions."""
        return LedRows(
            self.page,
            self.rows[at],
            self.caught_up_ms[:, at],
            self.is_member[:, at],
            self.hold_ms[at],
            self.is_unseen[at],
            oldest_ms=self.oldest_ms,
        )

    def put(self, at: Ints, noted: LedRows, part: slice, oldest_ms: float) -> bool:
        """Take what is new of the followers of some rows, by their positions. Returns whether any needs a look.

        ``part``: where they stand among those that were noted; ``oldest_ms``: the oldest time of theirs.
        """
        self.caught_up_ms[:, at] = noted.caught_up_ms[: self.page.width, part]
        self.is_member[:, at] = noted.is_member[: self.page.width, part]
        self.is_unseen[at] = noted.is_unseen[part]
        self.oldest_ms = min(self.oldest_ms, oldest_ms)
        return bool(noted.is_unseen[part].any())

    def seen(self, rows: Ints, next_due_ms: float, awaited: frozenset[int]) -> None:
        """Some rows, or all, had their look: when the next of them is due, and which leaders the due ones wait for."""
        if len(rows) == len(self.rows):
            self.is_unseen[:] = False
            self.next_due_ms, self.awaited = next_due_ms, awaited
            return
        self.is_unseen[np.searchsorted(self.rows, rows)] = False
        self.next_due_ms, self.awaited = min(self.next_due_ms, next_due_ms), self.awaited | awaited

    @property
    def is_open(self) -> bool:
        """Whether any row wants a look, now or at a time."""
        return self.next_due_ms < NEVER or bool(self.awaited) or bool(self.is_unseen.any())

    def is_due(self, now_ms: float, leaders: frozenset[int]) -> bool:
        """Whether all rows want a look now, of which the awaited ones can ask for so many if they are ``leaders``."""
        return self.next_due_ms <= now_ms or not self.awaited.isdisjoint(leaders)

    def wants_look(self, now_ms: float, leaders: frozenset[int]) -> bool:
        """Whether any row wants a look now."""
        return self.is_due(now_ms, leaders) or bool(self.is_unseen.any())

    def found(self, wanted: Ints) -> Ints:
        """int64[m]: positions of those of the wanted rows of the page that are here."""
        at: Ints = np.minimum(np.searchsorted(self.rows, wanted), len(self.rows) - 1)
        is_here: Flags = self.rows[at] == wanted
        return at[is_here]

    def parted(self, pages: JoinedPages, table: Sequence[Page]) -> Iterator[tuple[int, LedRows]]:
        """The same by page, out of those of a table, with exact counts."""
        outside, oldest = self._outside(), self.oldest()
        held = np.where(self.is_unseen | (self.hold_ms == -np.inf), NEVER, self.hold_ms)
        for number, rows, part in pages.parts(self.rows):
            page = table[number]
            yield (
                number,
                LedRows(
                    page,
                    rows,
                    self.caught_up_ms[: page.width, part].copy(),
                    self.is_member[: page.width, part].copy(),
                    self.hold_ms[part].copy(),
                    self.is_unseen[part].copy(),
                    next_due_ms=float(held[part].min(initial=NEVER)),
                    oldest_ms=float(oldest[part].min(initial=NEVER)),
                    outside=int(outside[part].sum()),
                ),
            )

    def look(self) -> None:
        """Make ``outside`` and ``oldest_ms`` exact."""
        self.outside = int(self._outside().sum())
        self.find_oldest()

    def find_oldest(self) -> None:
        """Make ``oldest_ms`` exact."""
        self.oldest_ms = float(self.oldest().min(initial=NEVER))

    def _outside(self) -> Ints:
        """int64[n]: replicas that are not in the ISR."""
        replicas, isr = self.page.replica_counts[self.rows], self.page.isr[self.rows]
        outside: Ints = replicas.astype(np.int64) - np.bitwise_count(isr)
        return outside

    def oldest(self) -> Times:
        """float64[n]: of each row what ``oldest_ms`` is the least of."""
        isr, leader_slots = self.page.isr[self.rows], self.page.leader_slots[self.rows]
        oldest = np.full(len(self.rows), NEVER)
        for slot in range(self.page.width):
            is_alone = in_slots(isr, slot) & (leader_slots != slot) & ~self.is_member[slot]
            np.minimum(oldest, self.caught_up_ms[slot], out=oldest, where=is_alone)
        return oldest


class Standing:
    """The state of every broker, as columns to look up in."""

    def __init__(self, groups: Mapping[int, FollowerGroup], online: Online, limit_ms: float) -> None:
        """``online``: where replicas of brokers are that may enter ISRs."""
        ids = sorted(groups)
        self._online = online
        self._ids = np.array(ids, np.int32)
        self._caught_up = np.array([groups[id_].caught_up_ms for id_ in ids], np.float64)
        # One that fell silent was level when it was heard last.
        self._is_level = np.array([groups[id_].is_level for id_ in ids], np.bool_)
        self._is_level &= self._caught_up >= limit_ms
        self._limit_ms = limit_ms
        self._groups_lag = bool((self._caught_up < limit_ms).any())

    def wanted_isr(self, led: LedRows) -> NDArray[np.uint64]:
        """uint64[n]: for each row the ISR that its leader would ask for."""
        isr = led.page.isr[led.rows]
        wanted = isr.astype(np.uint64)
        for slot in range(led.page.width):
            is_in = in_slots(isr, slot)
            entering = self._entering(led, slot, np.flatnonzero(~is_in))
            wanted[entering] |= np.uint64(1 << slot)
            if self._groups_lag or led.oldest_ms < self._limit_ms:
                leaving = self._leaving(led, slot, np.flatnonzero(is_in))
                wanted[leaving] &= ~np.uint64(1 << slot)
        return wanted

    def _entering(self, led: LedRows, slot: int, at: Ints) -> Ints:
        """Those of the rows ``at`` whose replica in a slot, which is not in the ISR, is level and may enter."""
        page, rows = led.page, led.rows
        at = at[page.replica_counts[rows[at]] > slot]
        if not len(at):
            return at
        is_level = led.caught_up_ms[slot, at] == ALWAYS
        is_member, places = self._members(led, slot, at)
        is_level[is_member] |= self._is_level[places]
        at = at[is_level]
        if not len(at):
            return at
        return at[self._online.has(page.slots[slot, rows[at]], page.directories[slot, rows[at]])]

    def _leaving(self, led: LedRows, slot: int, at: Ints) -> Ints:
        """Those of the rows ``at`` whose replica in a slot, which is in the ISR, lags; a leader never does."""
        at = at[led.page.leader_slots[led.rows[at]] != slot]
        caught_up = led.caught_up_ms[slot, at]
        is_member, places = self._members(led, slot, at)
        caught_up[is_member] = np.maximum(caught_up[is_member], self._caught_up[places])
        lags: Flags = caught_up < self._limit_ms
        return at[lags]

    def _members(self, led: LedRows, slot: int, at: Ints) -> tuple[Ints, Ints]:
        """Positions in ``at`` of those for whom a group speaks, and the place of their brokers among all."""
        is_member = np.flatnonzero(led.is_member[slot, at])
        brokers = led.page.slots[slot, led.rows[at[is_member]]]
        is_known = is_among(brokers, self._ids)
        return is_member[is_known], np.searchsorted(self._ids, brokers[is_known])


def with_others(led: LedRows, replaced: Ints, new: LedRows) -> LedRows:
    """All rows but the ``replaced`` ones, with the ``new`` ones, which are among those.

    Where nothing is replaced, the page of ``new`` differs in nothing but its ISRs and what follows from them.
    """
    old, page, count = led.page, new.page, len(led.rows)
    rows, order = with_replaced(led.rows, replaced, new.rows)
    caught_up_ms = np.concatenate([led.caught_up_ms, new.caught_up_ms], axis=1)
    hold_ms, is_unseen = np.concatenate([led.hold_ms, new.hold_ms]), np.concatenate([led.is_unseen, new.is_unseen])
    # Of the replaced ones, too: nothing is taken of them.
    is_changed = page.partition_epochs.take(led.rows) != old.partition_epochs.take(led.rows)
    hold_ms[:count][is_changed] = -np.inf
    is_unseen[:count] |= is_changed
    left = old.isr.take(led.rows)
    left &= ~page.isr.take(led.rows)
    for slot in range(page.width):
        _expel(caught_up_ms[slot, :count], in_slots(left, slot))
    return LedRows(
        page,
        rows,
        caught_up_ms.take(order, axis=1),
        np.concatenate([led.is_member, new.is_member], axis=1).take(order, axis=1),
        hold_ms.take(order),
        is_unseen.take(order),
    )


def _expel(caught_up_ms: Times, left: Flags) -> None:
    """Note who left the ISR: level again only when that is said anew."""
    caught_up_ms[left & (caught_up_ms == ALWAYS)] = UNKNOWN


def carry(new: LedRows, new_at: Ints, old: LedRows, old_at: Ints) -> None:
    """Give partitions that have the leader epoch they had what was known of their followers."""
    page, before = new.page, old.page
    rows, old_rows = new.rows[new_at], old.rows[old_at]
    goes_on = page.leader_epochs[rows] == before.leader_epochs[old_rows]
    new_at, old_at, rows, old_rows = new_at[goes_on], old_at[goes_on], rows[goes_on], old_rows[goes_on]
    for slot, old_slot in slot_pairs(page, before):
        is_same = page.slots[slot, rows] == before.slots[old_slot, old_rows]
        is_same &= before.replica_counts[old_rows] > old_slot
        to, source = new_at[is_same], old_at[is_same]
        caught_up_ms = old.caught_up_ms[old_slot, source]
        was_in = in_slots(before.isr[old.rows[source]], old_slot)
        _expel(caught_up_ms, was_in & ~in_slots(page.isr[new.rows[to]], slot))
        new.caught_up_ms[slot, to] = caught_up_ms
        new.is_member[slot, to] = old.is_member[old_slot, source]
    is_unchanged = page.partition_epochs[rows] == before.partition_epochs[old_rows]
    new.hold_ms[new_at[is_unchanged]] = old.hold_ms[old_at[is_unchanged]]
