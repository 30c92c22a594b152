"""Progress of the replicas here that follow another process's broker, or one of this process, page by page.

A replica *copies* until it holds what its leader had when it answered last; from then on it is *level*, and what all
level replicas of a link hold is the link's position. A replica that is in the ISR when it begins to follow holds what
the leader has; any other one holds what it had before, as long as this process lives, and nothing otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.broker.directories.online_replicas import online_places
from quorate.broker.directories.places import Flags, Ints, in_slots, is_alike, is_among, remembered, slot_pairs
from quorate.broker.replicas.messages import EVERYTHING, NOTHING, FollowedRows, no_rows
from quorate.broker.replicas.stand_in import Pace
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS, PAGE_SHIFT, Page, other_pages

NEVER: Final = np.inf
#: Of a broker that cannot be followed.
NO_LINK: Final = -1

#: States of a replica: not followed from here; to be said; said to copy; to be said to be level; said to be level.
_NONE: Final = -1
_NEW: Final = 0
_COPYING: Final = 1
_ARRIVED: Final = 2
_LEVEL: Final = 3

_EVERYTHING: Final = np.inf
_ROW_COLUMNS: Final = tuple(FollowedRows.__dataclass_fields__)

Brokers = NDArray[np.int32]
Positions = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class LinkColumns:
    """The state of all links as columns, by their index."""

    #: float64[links]: what level replicas hold; infinite where that is not known.
    positions: Positions
    #: bool[links]: whether there was an answer, and where it said that logs begin and end.
    is_answered: Flags
    starts: Positions
    ends: Positions


@dataclass(frozen=True, slots=True, eq=False)
class Leaders:
    """The brokers that lead, each with the link over which it does."""

    #: int32[n], ascending, and int32[n].
    brokers: Brokers
    links: NDArray[np.int32]

    def links_of(self, leaders: Brokers) -> NDArray[np.int32]:
        """int32[n]: the link of each broker; NO_LINK."""
        links = np.full(len(leaders), NO_LINK, np.int32)
        is_known = is_among(leaders, self.brokers)
        links[is_known] = self.links[np.searchsorted(self.brokers, leaders[is_known])]
        return links


@dataclass(frozen=True, slots=True)
class FollowedChanges:
    """The changes that another image brought."""

    #: Whether who follows whom may be another matter now.
    is_any: bool
    #: Links over which replicas are followed no more that were said to be, under the same leader.
    dropped_links: frozenset[int]


@dataclass(slots=True, eq=False)
class _Followed:
    """The rows of one page that are followed from here. ``n`` of them."""

    page: Page
    #: int64[n], ascending: rows within the page.
    rows: Ints
    #: int32[n]: by index.
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
        copying, new = (int(np.count_nonzero(self.states == state)) for state in (_COPYING, _NEW))
        self.lacking = copying + new
        self.is_copying = copying > 0
        self.has_unsaid = new > 0 or bool((self.states == _ARRIVED).any())
        return self.is_copying or self.has_unsaid

    def row_counts(self) -> Counter[int]:
        """Rows over each link."""
        counts = np.bincount(self.links[self.links != NO_LINK]).tolist()
        return Counter(dict(enumerate(counts)))

    def keep(self, is_kept: Flags) -> None:
        """Forget the other rows."""
        if not is_kept.all():
            self.rows, self.links = self.rows[is_kept], self.links[is_kept]
            self.states, self.held = self.states[:, is_kept], self.held[:, is_kept]

    def brokers(self, slot: int) -> Brokers:
        """int32[n]: who is in a slot."""
        brokers: Brokers = self.page.slots[slot, self.rows]
        return brokers


class FollowedPages:
    """See the module. Links are known by their index."""

    def __init__(self) -> None:
        self._image = EMPTY_IMAGE
        self._online = online_places(EMPTY_IMAGE, ())
        #: Of the update that is under way.
        self._dropped_links: set[int] = set()
        self._pages: dict[int, _Followed] = {}
        #: Those of them that copy or have something to say: of a large image few, and all that every turn looks at.
        self._busy: dict[int, _Followed] = {}
        #: Of all pages, by link.
        self._row_counts: Counter[int] = Counter()

    @property
    def copying_count(self) -> int:
        """Replicas that do not hold what their leader has."""
        return sum(followed.lacking for followed in self._busy.values())

    def row_counts(self, links: int) -> list[int]:
        """Rows followed over each of so many links."""
        return [self._row_counts[link] for link in range(links)]

    # --- what happened -------------------------------------------------------------------------------

    def update(
        self,
        image: MetadataImage,
        hosted: Collection[int],
        leaders: Leaders,
        columns: LinkColumns,
        own_end: int,
        *,
        is_recast: bool,
    ) -> FollowedChanges:
        """Take a new image.

        Args:
            own_end: where the logs that are led here end now.
            is_recast: all pages must be looked at anew; otherwise only those that changed are.
        """
        before, self._image = self._image, image
        directories = image.partitions.directories
        if is_recast or image.cluster is not before.cluster or directories is not before.partitions.directories:
            online, self._online = self._online, online_places(image, hosted)
            is_recast = is_recast or online != self._online
        self._dropped_links = set()
        pages = image.partitions.pages
        fresh: dict[int, _Followed] = {}
        for number in other_pages(() if is_recast else before.partitions.pages, pages):
            known = self._pages.get(number)
            if known is not None and not is_recast and is_alike(known.page, pages[number]):
                known.page = pages[number]
                continue
            fresh[number] = self._scan(before, number, leaders, columns, own_end)
        gone = [] if len(pages) >= len(before.partitions.pages) else [n for n in self._pages if n >= len(pages)]
        for number in (*gone, *fresh):
            known = self._pages.pop(number, None)
            self._busy.pop(number, None)
            if known is not None:
                self._row_counts.subtract(known.row_counts())
        for number, followed in fresh.items():
            if len(followed.rows):
                self._pages[number] = followed
                self._row_counts.update(followed.row_counts())
                self._look(number, followed)
        return FollowedChanges(bool(fresh or gone), frozenset(self._dropped_links))

    def say_again(self, brokers: Collection[int] | None, link: int | None, columns: LinkColumns) -> None:
        """Let what some brokers follow (None: all), over one link (None: any), be said again."""
        wanted = None if brokers is None else np.array(sorted(brokers), np.int32)
        for number, followed in self._pages.items():
            on_link = np.ones(len(followed.rows), np.bool_) if link is None else followed.links == link
            if not on_link.any():
                continue
            for slot, states in enumerate(followed.states):
                again = on_link if wanted is None else on_link & is_among(followed.brokers(slot), wanted)
                is_level = again & (states == _LEVEL)
                followed.held[slot, is_level] = columns.positions[followed.links[is_level]]
                states[is_level] = _ARRIVED
                states[again & (states == _COPYING)] = _NEW
            self._look(number, followed)

    def copy(self, pace: Pace, elapsed_ms: float, columns: LinkColumns) -> None:
        """Let all that copies copy for some time, each no further than its leader's log was answered to reach."""
        copied = pace.copied(elapsed_ms)
        for number, followed in list(self._busy.items()):
            if not followed.is_copying:
                continue
            links = followed.links
            for slot, states in enumerate(followed.states):
                at = np.flatnonzero((states == _COPYING) & (links != NO_LINK) & columns.is_answered[links])
                ends, held = columns.ends[links[at]], followed.held[slot, at]
                # What its leader has dropped nobody can copy, nor has to: it begins, or goes on, where the log begins.
                reached = np.minimum(np.maximum(held, columns.starts[links[at]]) + copied, ends)
                followed.held[slot, at] = reached
                states[at[reached >= ends]] = _ARRIVED
            self._look(number, followed)

    def needed_ms(self, pace: Pace, columns: LinkColumns) -> float:
        """Until the next replica holds what its leader was answered to have; NEVER: none copies."""
        missing = [NEVER]
        for followed in self._busy.values():
            if not followed.is_copying:
                continue
            ends = np.where(columns.is_answered, columns.ends, NEVER)[followed.links]
            for slot, states in enumerate(followed.states):
                at = states == _COPYING
                missing.append(float((ends[at] - followed.held[slot, at]).min(initial=NEVER)))
        least = min(missing)
        return NEVER if least == NEVER else pace.needed_ms(least)

    # --- what is said --------------------------------------------------------------------------------

    def take_unsaid(self, link: int, followers: Collection[int], rows_max: int) -> FollowedRows:
        """The rows to be said over a link for some brokers, which count as said now."""
        parts: list[FollowedRows] = []
        left = rows_max
        wanted = np.array(sorted(followers), np.int32)
        for number, followed in list(self._busy.items()):
            if not left:
                break
            if not followed.has_unsaid:
                continue
            on_link = followed.links == link
            if not on_link.any():
                continue
            for slot, states in enumerate(followed.states):
                unsaid = on_link & ((states == _NEW) | (states == _ARRIVED)) & is_among(followed.brokers(slot), wanted)
                at = np.flatnonzero(unsaid)[:left]
                if len(at):
                    parts.append(_say(followed, slot, at))
                    left -= len(at)
            self._look(number, followed)
        if len(parts) < 2:
            return parts[0] if parts else no_rows()
        return FollowedRows(*(np.concatenate([getattr(part, name) for part in parts]) for name in _ROW_COLUMNS))

    def unsay(self, rows: FollowedRows, at: Ints) -> None:
        """Let some rows that were said be said again, if they still hold."""
        found = self._image.partitions.rows_for(rows.topic_ids[at], rows.partition_ids[at])
        for number in np.unique(found[found >= 0] >> PAGE_SHIFT).tolist():
            followed = self._pages.get(number)
            if followed is not None:
                here = np.flatnonzero((found >= 0) & (found >> PAGE_SHIFT == number))
                _unsay(followed, found[here] & (PAGE_ROWS - 1), rows, at[here])
                self._look(number, followed)

    # --- pages ---------------------------------------------------------------------------------------

    def _look(self, number: int, followed: _Followed) -> None:
        """Note whether there is anything to do in a page, after every change of its states."""
        if followed.look():
            self._busy[number] = followed
        else:
            self._busy.pop(number, None)

    def _scan(
        self, before: MetadataImage, number: int, leaders: Leaders, columns: LinkColumns, own_end: int
    ) -> _Followed:
        """The rows of a page that are followed from here; of those followed before what they hold is kept."""
        page = self._image.partitions.pages[number]
        is_wanted: Flags = np.logical_or.reduce(is_among(page.slots, self._online.brokers), axis=0)
        followed_before = self._pages.get(number)
        if followed_before is not None:
            is_wanted[followed_before.rows] = True
        rows = np.flatnonzero(is_wanted & (page.leader_slots >= 0))
        leader_slots, replica_counts = page.leader_slots[rows], page.replica_counts[rows]
        is_followed = np.empty((page.width, len(rows)), np.bool_)
        for slot in range(page.width):
            is_followed[slot] = (leader_slots != slot) & (replica_counts > slot)
            is_followed[slot] &= self._online.has(page.slots[slot, rows], page.directories[slot, rows])
        links = leaders.links_of(page.slots[leader_slots, rows])
        states = np.where(is_followed & (links != NO_LINK), np.int8(_NEW), np.int8(_NONE))
        held = np.full(states.shape, float(NOTHING))
        for slot in range(page.width):
            held[slot, in_slots(page.isr[rows], slot)] = _EVERYTHING
        followed = _Followed(page, rows, links, states, held)
        table = self._image.partitions
        for old, (new_at, old_at) in remembered(before.partitions, self._pages, table, number, rows):
            self._dropped_links |= _carry(followed, new_at, old, old_at, columns.positions)
        if number < len(before.partitions.pages):
            _keep_what_was_led(followed, before.partitions.pages[number], own_end)
        followed.keep((followed.states != _NONE).any(axis=0))
        return followed


def _carry(new: _Followed, new_at: Ints, old: _Followed, old_at: Ints, positions: Positions) -> set[int]:
    """Keep what replicas hold, whoever leads; what was said to a leader under its epoch stays said.

    Returns the links over which that was said of a replica that does not follow any more, though it still could.
    """
    dropped: set[int] = set()
    page, before = new.page, old.page
    rows, old_rows = new.rows[new_at], old.rows[old_at]
    is_same_leader = page.leader_epochs[rows] == before.leader_epochs[old_rows]
    is_same_leader &= new.links[new_at] == old.links[old_at]
    for slot, old_slot in slot_pairs(page, before):
        is_same = page.slots[slot, rows] == before.slots[old_slot, old_rows]
        is_same &= (old.states[old_slot, old_at] != _NONE) & (page.replica_counts[rows] > slot)
        is_dropped = is_same & is_same_leader & (new.states[slot, new_at] == _NONE)
        dropped.update(old.links[old_at[is_dropped]].tolist())
        is_same &= new.states[slot, new_at] != _NONE
        to, source = new_at[is_same], old_at[is_same]
        states, held = old.states[old_slot, source], old.held[old_slot, source]
        is_level = states == _LEVEL
        held[is_level] = positions[old.links[source[is_level]]]
        # What "everything" is depends on the moment: whether it is in the ISR now says it anew.
        new.held[slot, to] = np.where(held == _EVERYTHING, new.held[slot, to], held)
        new.states[slot, to] = np.where(is_same_leader[is_same], states, np.int8(_NEW))
    return dropped


def _keep_what_was_led(followed: _Followed, old: Page, own_end: int) -> None:
    """A replica that led until now holds what it had as a leader."""
    page, rows = followed.page, followed.rows
    is_same = page.partition_ids[rows] == old.partition_ids[rows]
    if page.topic_ids is not old.topic_ids:
        is_same &= (page.topic_ids[rows] == old.topic_ids[rows]).all(axis=1)
    is_same &= old.leader_slots[rows] >= 0
    had = old.slots[old.leader_slots[rows], rows]
    for slot, states in enumerate(followed.states):
        followed.held[slot, is_same & (followed.brokers(slot) == had) & (states == _NEW)] = own_end


def _say(followed: _Followed, slot: int, at: Ints) -> FollowedRows:
    page, rows, states = followed.page, followed.rows[at], followed.states[slot]
    held = followed.held[slot, at]
    has_everything = held == _EVERYTHING
    is_level = (states[at] == _ARRIVED) | has_everything
    states[at] = np.where(is_level, np.int8(_LEVEL), np.int8(_COPYING))
    said = np.where(has_everything, 0.0, held).astype(np.int64)
    said[has_everything] = EVERYTHING
    return FollowedRows(
        page.topic_ids[rows],
        page.partition_ids[rows],
        page.leader_epochs[rows],
        page.slots[slot, rows],
        said,
        is_level,
    )


def _unsay(followed: _Followed, wanted: Ints, rows: FollowedRows, at: Ints) -> None:
    """``at``: of the rows of a message, those that stand in the rows ``wanted`` of a page."""
    found = np.minimum(np.searchsorted(followed.rows, wanted), len(followed.rows) - 1)
    page, here = followed.page, followed.rows[found]
    is_same = (here == wanted) & (page.leader_epochs[here] == rows.leader_epochs[at])
    for slot, states in enumerate(followed.states):
        its = is_same & (page.slots[slot, here] == rows.followers[at]) & (states[found] != _NONE)
        said = rows.held[at[its]]
        followed.held[slot, found[its]] = np.where(said == EVERYTHING, _EVERYTHING, said.astype(np.float64))
        states[found[its]] = _NEW
