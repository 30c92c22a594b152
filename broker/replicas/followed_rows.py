"""The replicas of one page that follow from here: what each holds, and what was said of it to its leader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.broker.directories.online_replicas import Placements
from quorate.broker.directories.places import Flags, Ints, in_slots, slot_pairs, with_replaced
from quorate.broker.replicas.joined_pages import JoinedPages, joined
from quorate.broker.replicas.messages import EVERYTHING, NOTHING, FollowedRows
from quorate.snapshots.table.pages import EPOCH_TYPE, Page

#: Of a broker that cannot be followed.
NO_LINK: Final = -1

#: States of a replica: not one of here that could follow; one that holds what it has, with nobody to follow or in a
#: directory that is offline; to be said; said to copy; to be said to be level; said to be level.
UNFOLLOWED: Final = -2
IDLE: Final = -1
NEW: Final = 0
COPYING: Final = 1
ARRIVED: Final = 2
LEVEL: Final = 3

#: As what a replica holds: all that its leader has.
HOLDS_ALL: Final = np.inf

Brokers = NDArray[np.int32]
Positions = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class PageFollowed:
    """The rows of one page, or of a joined one, that are followed from here or could be. ``n`` of them."""

    page: Page
    #: int64[n], ascending: rows within the page.
    rows: Ints
    #: int32[n]: by index; NO_LINK where all are idle.
    links: NDArray[np.int32]
    #: int8[width, n]
    states: NDArray[np.int8]
    #: float64[width, n]: positions of those that are not level.
    held: Positions
    is_copying: bool = False
    has_unsaid: bool = True
    #: Replicas that do not hold what their leader has.
    lacking: int = 0

    def look(self) -> bool:
        """Find out what there is to do, and return whether there is anything."""
        copying, new = (int(np.count_nonzero(self.states == state)) for state in (COPYING, NEW))
        self.lacking = copying + new
        self.is_copying = copying > 0
        self.has_unsaid = new > 0 or bool((self.states == ARRIVED).any())
        return self.is_copying or self.has_unsaid

    def unsaid(self, link: int) -> Ints:
        """int64[n], ascending: positions of the rows of which something is to be said over a link."""
        is_unsaid: Flags = ((self.states == NEW) | (self.states == ARRIVED)).any(axis=0)
        return np.flatnonzero(is_unsaid & (self.links == link))

    def taken(self, at: Ints) -> PageFollowed:
        """Copies of some of the rows, by their positions."""
        return PageFollowed(self.page, self.rows[at], self.links[at], self.states[:, at], self.held[:, at])

    def with_others(self, replaced: Ints, new: PageFollowed) -> PageFollowed:
        """All rows but the ``replaced`` ones, with the ``new`` ones, which are among those."""
        rows, order = with_replaced(self.rows, replaced, new.rows)
        links = np.concatenate([self.links, new.links]).take(order)
        states = np.concatenate([self.states, new.states], axis=1).take(order, axis=1)
        held = np.concatenate([self.held, new.held], axis=1).take(order, axis=1)
        return PageFollowed(new.page, rows, links, states, held)

    @staticmethod
    def joined(page: Page, rows: Ints, parts: Sequence[PageFollowed]) -> PageFollowed:
        """The rows of several pages as ``rows`` of a joined one; there is one page at least."""
        return PageFollowed(
            page,
            rows,
            np.concatenate([part.links for part in parts]),
            joined([part.states for part in parts], UNFOLLOWED),
            joined([part.held for part in parts], float(NOTHING)),
        )

    def parted(self, pages: JoinedPages, table: Sequence[Page]) -> Iterator[tuple[int, PageFollowed]]:
        """The same by page, out of those of a table."""
        for number, rows, part in pages.parts(self.rows):
            page = table[number]
            states, held = self.states[: page.width, part].copy(), self.held[: page.width, part].copy()
            yield number, PageFollowed(page, rows, self.links[part].copy(), states, held)

    def keep(self, is_kept: Flags) -> None:
        """Forget the other rows."""
        if not is_kept.all():
            self.rows, self.links = self.rows[is_kept], self.links[is_kept]
            self.states, self.held = self.states[:, is_kept], self.held[:, is_kept]

    def brokers(self, slot: int) -> Brokers:
        """int32[n]: who is in a slot."""
        brokers: Brokers = self.page.slots[slot, self.rows]
        return brokers


def row_counts(parts: Iterable[PageFollowed]) -> NDArray[np.int64]:
    """int64[m]: the rows of some pages over each link, up to the last that has any."""
    links = np.concatenate([np.empty(0, np.int32), *(part.links for part in parts)])
    return np.bincount(links[links != NO_LINK])


def carry_on(
    new: PageFollowed, new_at: Ints, old: PageFollowed, old_at: Ints, positions: Positions, placements: Placements
) -> set[int]:
    """Keep what replicas hold, whoever leads; what was said to a leader under its epoch stays said.

    Returns the links over which that was said of a replica that does not follow any more, though it still could.
    """
    dropped: set[int] = set()
    page, before = new.page, old.page
    rows, old_rows = new.rows[new_at], old.rows[old_at]
    is_same_leader = page.leader_epochs[rows] == before.leader_epochs[old_rows]
    is_same_leader &= new.links[new_at] == old.links[old_at]
    for slot, old_slot in slot_pairs(page, before):
        was, is_now = old.states[old_slot, old_at], new.states[slot, new_at]
        is_same = page.slots[slot, rows] == before.slots[old_slot, old_rows]
        is_same &= (was != UNFOLLOWED) & (page.replica_counts[rows] > slot)
        is_dropped = is_same & is_same_leader & (was >= NEW) & (is_now < NEW)
        dropped.update(old.links[old_at[is_dropped]].tolist())
        is_same &= is_now != UNFOLLOWED
        codes, old_codes = page.directories[slot, rows], before.directories[old_slot, old_rows]
        is_same &= ~placements.left_behind(page.slots[slot, rows], codes, old_codes)
        to, source = new_at[is_same], old_at[is_same]
        states, held = old.states[old_slot, source], old.held[old_slot, source]
        is_level = states == LEVEL
        held[is_level] = positions[old.links[source[is_level]]]
        # What "everything" is depends on the leader: of another one, whether it is in the ISR now says it anew.
        goes_on = is_same_leader[is_same] & (states >= NEW) & (new.states[slot, to] >= NEW)
        new.held[slot, to] = np.where((held == HOLDS_ALL) & ~goes_on, new.held[slot, to], held)
        new.states[slot, to] = np.where(goes_on, states, new.states[slot, to])
    return dropped


def keep_what_was_led(followed: PageFollowed, old: Page, own_end: int, placements: Placements) -> None:
    """A replica that led until now holds what it had as a leader."""
    page, rows = followed.page, followed.rows
    is_same = np.ones(len(rows), np.bool_)
    if page.partition_ids is not old.partition_ids:
        is_same &= page.partition_ids[rows] == old.partition_ids[rows]
    if page.topic_ids is not old.topic_ids:
        is_same &= (page.topic_ids[rows] == old.topic_ids[rows]).all(axis=1)
    is_same &= old.leader_slots[rows] >= 0
    had, old_codes = (column[old.leader_slots[rows], rows] for column in (old.slots, old.directories))
    for slot, states in enumerate(followed.states):
        is_new = (states == NEW) | (states == IDLE)
        is_kept = is_same & (followed.brokers(slot) == had) & is_new
        is_kept &= ~placements.left_behind(had, page.directories[slot, rows], old_codes)
        followed.held[slot, is_kept] = own_end


def say(followed: PageFollowed, slot: int, at: Ints) -> FollowedRows:
    """The rows of a message about the replicas in a slot, which count as said now; ``at``: int64[n], among the rows."""
    page, rows, states = followed.page, followed.rows[at], followed.states[slot]
    held = followed.held[slot, at]
    # Whoever was taken out of the ISR before it could say so holds nobody knows what.
    is_unknown = (held == HOLDS_ALL) & ~in_slots(page.isr[rows], slot)
    held[is_unknown] = NOTHING
    followed.held[slot, at] = held
    has_everything = held == HOLDS_ALL
    is_level = ((states[at] == ARRIVED) & ~is_unknown) | has_everything
    states[at] = np.where(is_level, np.int8(LEVEL), np.int8(COPYING))
    said = np.where(has_everything, 0.0, held).astype(np.int64)
    said[has_everything] = EVERYTHING
    return FollowedRows(
        page.topic_ids[rows],
        page.partition_ids[rows],
        page.leader_epochs[rows].astype(EPOCH_TYPE),
        page.slots[slot, rows],
        said,
        is_level,
    )


def unsay(followed: PageFollowed, wanted: Ints, rows: FollowedRows, at: Ints) -> None:
    """Let rows of a message be said again, if they still hold.

    Args:
        wanted: int64[n]: rows of the page.
        at: int64[n]: the rows of the message that stand in them.
    """
    found = np.minimum(np.searchsorted(followed.rows, wanted), len(followed.rows) - 1)
    page, here = followed.page, followed.rows[found]
    is_same = (here == wanted) & (page.leader_epochs[here] == rows.leader_epochs[at])
    for slot, states in enumerate(followed.states):
        its = is_same & (page.slots[slot, here] == rows.followers[at]) & (states[found] >= NEW)
        said = rows.held[at[its]]
        followed.held[slot, found[its]] = np.where(said == EVERYTHING, HOLDS_ALL, said.astype(np.float64))
        states[found[its]] = NEW
