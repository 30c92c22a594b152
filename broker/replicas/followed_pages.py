"""Progress of the replicas here that follow another process's broker, or one of this process, page by page.

A replica *copies* until it holds what its leader had when it answered last; from then on it is *level*, and what all
level replicas of a link hold is the link's position. A replica that is in the ISR when it begins to follow holds what
the leader has; any other one holds what it had before, as long as this process lives, and nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.broker.directories.online_replicas import Placements, online_places
from quorate.broker.directories.places import (
    Carried,
    Flags,
    Ints,
    changed_leaders,
    in_slots,
    is_among,
    matched,
    remembered,
)
from quorate.broker.replicas.followed_rows import (
    ARRIVED,
    COPYING,
    HOLDS_ALL,
    IDLE,
    LEVEL,
    NEW,
    NO_LINK,
    UNFOLLOWED,
    Brokers,
    PageFollowed,
    Positions,
    carry_on,
    keep_what_was_led,
    row_counts,
    say,
    unsay,
)
from quorate.broker.replicas.joined_pages import (
    LEADER_COLUMNS,
    PAGES_JOINED_MAX,
    JoinedPages,
    rows_of_brokers,
    table_rows,
    with_leaders_of,
)
from quorate.broker.replicas.messages import NOTHING, FollowedRows, no_rows
from quorate.broker.replicas.stand_in import Pace
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.table.pages import PAGE_ROWS, PAGE_SHIFT, Page, other_pages

NEVER: Final = np.inf
_ROW_COLUMNS: Final = tuple(FollowedRows.__dataclass_fields__)
#: What a message says of rows.
_SAID_COLUMNS: Final = ("slots", "topic_ids", "partition_ids", "leader_epochs", "isr")
#: What is looked at of rows whose leader moved.
_COLUMNS: Final = ("slots", "directories", "replica_counts", "leader_slots", "leader_epochs", "isr")


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


class FollowedPages:
    """See the module. Links are known by their index."""

    def __init__(self) -> None:
        self._image = EMPTY_IMAGE
        self._online = online_places(EMPTY_IMAGE, ())
        #: Of the update that is under way.
        self._placements = Placements(self._online, None)
        self._dropped_links: set[int] = set()
        self._pages: dict[int, PageFollowed] = {}
        #: Those of them that copy or have something to say: of a large image few, and all that every turn looks at.
        self._busy: dict[int, PageFollowed] = {}
        #: int64[links that any row has had]: rows of all pages.
        self._row_counts: NDArray[np.int64] = np.zeros(0, np.int64)

    @property
    def copying_count(self) -> int:
        """Replicas that do not hold what their leader has."""
        return sum(followed.lacking for followed in self._busy.values())

    def row_counts(self, links: int) -> list[int]:
        """Rows followed over each of so many links."""
        return [*self._row_counts[:links].tolist(), *[0] * (links - len(self._row_counts))]

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
        self._placements = Placements.of(before.partitions.directories, image, hosted, self._online)
        self._dropped_links = set()
        old_pages, pages = before.partitions.pages, image.partitions.pages
        fresh: dict[int, PageFollowed] = {}
        moved: dict[int, Ints] = {}
        for number in other_pages(() if is_recast else old_pages, pages):
            known, page = self._pages.get(number), pages[number]
            changed = None if is_recast or number >= len(old_pages) else changed_leaders(old_pages[number], page)
            if changed is None:
                fresh[number] = self._scan(before, number, leaders, columns, own_end)
            elif len(changed):
                moved[number] = changed
            elif known is not None:
                known.page = page
        if moved:  # in the order of pages, as their turns go by it
            fresh = dict(sorted((*fresh.items(), *self._with_moved(before, moved, leaders, columns, own_end))))
        gone = [number for number in range(len(pages), len(old_pages)) if number in self._pages]
        forgotten = []
        for number in (*gone, *fresh):
            self._busy.pop(number, None)
            if number in self._pages:
                forgotten.append(self._pages.pop(number))
        for number, followed in fresh.items():
            if len(followed.rows):
                self._pages[number] = followed
                self._look(number, followed)
        if forgotten or fresh:
            self._count(forgotten, fresh.values())
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
                is_level = again & (states == LEVEL)
                followed.held[slot, is_level] = columns.positions[followed.links[is_level]]
                states[is_level] = ARRIVED
                states[again & (states == COPYING)] = NEW
            self._look(number, followed)

    def copy(self, pace: Pace, elapsed_ms: float, columns: LinkColumns) -> None:
        """Let all that copies copy for some time, each no further than its leader's log was answered to reach."""
        copied = pace.copied(elapsed_ms)
        for number, followed in list(self._busy.items()):
            if not followed.is_copying:
                continue
            links = followed.links
            for slot, states in enumerate(followed.states):
                at = np.flatnonzero((states == COPYING) & (links != NO_LINK) & columns.is_answered[links])
                ends, held = columns.ends[links[at]], followed.held[slot, at]
                # What its leader has dropped nobody can copy, nor has to: it begins, or goes on, where the log begins.
                reached = np.minimum(np.maximum(held, columns.starts[links[at]]) + copied, ends)
                followed.held[slot, at] = reached
                states[at[reached >= ends]] = ARRIVED
            self._look(number, followed)

    def needed_ms(self, pace: Pace, columns: LinkColumns) -> float:
        """Until the next replica holds what its leader was answered to have; NEVER: none copies."""
        missing = [NEVER]
        for followed in self._busy.values():
            if not followed.is_copying:
                continue
            ends = np.where(columns.is_answered, columns.ends, NEVER)[followed.links]
            for slot, states in enumerate(followed.states):
                at = states == COPYING
                missing.append(float((ends[at] - followed.held[slot, at]).min(initial=NEVER)))
        least = min(missing)
        return NEVER if least == NEVER else pace.needed_ms(least)

    # --- what is said --------------------------------------------------------------------------------

    def take_unsaid(self, link: int, followers: Collection[int], rows_max: int) -> FollowedRows:
        """The rows to be said over a link for some brokers, which count as said now."""
        parts: list[FollowedRows] = []
        left = rows_max
        wanted = np.array(sorted(followers), np.int32)
        unsaid = [number for number, followed in self._busy.items() if followed.has_unsaid]
        for first in range(0, len(unsaid), PAGES_JOINED_MAX):
            if not left:
                break
            places = {
                number: self._busy[number].unsaid(link) for number in sorted(unsaid[first : first + PAGES_JOINED_MAX])
            }
            taken = [self._busy[number].taken(at) for number, at in places.items()]
            joined = JoinedPages.of({number: part.rows for number, part in zip(places, taken, strict=True)})
            page = joined.page(self._image.partitions.pages, _SAID_COLUMNS)
            together = PageFollowed.joined(page, np.arange(len(joined.rows)), taken)
            for slot, states in enumerate(together.states):
                is_new = ((states == NEW) | (states == ARRIVED)) & is_among(together.brokers(slot), wanted)
                at = np.flatnonzero(is_new)[:left]
                if len(at):
                    parts.append(say(together, slot, at))
                    left -= len(at)
            for number, _, part in joined.parts(together.rows):
                followed, place = self._busy[number], places[number]
                followed.states[:, place] = together.states[: followed.page.width, part]
                followed.held[:, place] = together.held[: followed.page.width, part]
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
                unsay(followed, found[here] & (PAGE_ROWS - 1), rows, at[here])
                self._look(number, followed)

    # --- pages ---------------------------------------------------------------------------------------

    def _count(self, forgotten: Iterable[PageFollowed], known: Iterable[PageFollowed]) -> None:
        """Keep count of the rows of each link."""
        without, with_ = row_counts(forgotten), row_counts(known)
        counts = np.zeros(max(len(self._row_counts), len(without), len(with_)), np.int64)
        counts[: len(self._row_counts)] = self._row_counts
        counts[: len(without)] -= without
        counts[: len(with_)] += with_
        self._row_counts = counts

    def _look(self, number: int, followed: PageFollowed) -> None:
        """Note whether there is anything to do in a page, after every change of its states."""
        if followed.look():
            self._busy[number] = followed
        else:
            self._busy.pop(number, None)

    def _scan(
        self, before: MetadataImage, number: int, leaders: Leaders, columns: LinkColumns, own_end: int
    ) -> PageFollowed:
        """The rows of a page that are followed from here; of those followed before what they hold is kept."""
        table, old_pages = self._image.partitions, before.partitions.pages
        page, rows = table.pages[number], self._wanted(number)
        carried = remembered(before.partitions, self._pages, table, number, rows)
        return self._found(
            page, rows, old_pages[number] if number < len(old_pages) else None, carried, leaders, columns, own_end
        )

    def _with_moved(
        self, before: MetadataImage, moved: Mapping[int, Ints], leaders: Leaders, columns: LinkColumns, own_end: int
    ) -> Iterator[tuple[int, PageFollowed]]:
        """Pages in which some rows (by page, ascending) have another leader, and nothing but that, ISRs and what
        follows from them is new.
        """
        pages = self._image.partitions.pages
        known = {number: self._pages.get(number) or _nothing_followed(pages[number]) for number in moved}
        followed = table_rows({number: one.rows for number, one in known.items()})
        changed = rows_of_brokers(moved, pages, self._online.brokers)
        joined, moving = JoinedPages.of_rows(moved, followed, changed), JoinedPages.of_rows(moved, changed)
        # Of the others nothing is looked at, so only these are gathered.
        page = moving.page(pages, _COLUMNS)
        old_page = with_leaders_of(moving.page(before.partitions.pages, LEADER_COLUMNS), page)
        known_rows = np.searchsorted(joined.rows, followed)
        all_known = PageFollowed.joined(Page.blank(page.width), known_rows, list(known.values()))
        replaced = np.searchsorted(joined.rows, changed)
        new_at, old_at = matched(all_known, np.arange(len(replaced)), replaced)
        old = replace(all_known.taken(old_at), page=old_page, rows=new_at)
        carried = [(old, Carried(new_at, np.arange(len(new_at))))]
        found = self._found(page, np.arange(len(replaced)), old_page, carried, leaders, columns, own_end)
        found = replace(found, rows=replaced[found.rows])
        return all_known.with_others(replaced, found).parted(joined, pages)

    def _found(
        self,
        page: Page,
        rows: Ints,
        old_page: Page | None,
        carried: Iterable[tuple[PageFollowed, Carried]],
        leaders: Leaders,
        columns: LinkColumns,
        own_end: int,
    ) -> PageFollowed:
        """Those of the rows that are followed from here or could be. ``carried``: what is remembered of them."""
        leader_slots, replica_counts = page.leader_slots[rows], page.replica_counts[rows]
        links = np.where(leader_slots < 0, np.int32(NO_LINK), leaders.links_of(page.slots[leader_slots, rows]))
        states = np.full((page.width, len(rows)), np.int8(UNFOLLOWED))
        held = np.full(states.shape, float(NOTHING))
        for slot in range(page.width):
            brokers = page.slots[slot, rows]
            is_here = is_among(brokers, self._online.brokers) & (leader_slots != slot) & (replica_counts > slot)
            follows = is_here & (links != NO_LINK) & self._online.has(brokers, page.directories[slot, rows])
            states[slot, is_here] = IDLE
            states[slot, follows] = NEW
            held[slot, in_slots(page.isr[rows], slot)] = HOLDS_ALL
        followed = PageFollowed(page, rows, links, states, held)
        for old, (new_at, old_at) in carried:
            self._dropped_links |= carry_on(followed, new_at, old, old_at, columns.positions, self._placements)
        if old_page is not None:
            keep_what_was_led(followed, old_page, own_end, self._placements)
        links[~(followed.states >= NEW).any(axis=0)] = NO_LINK
        followed.keep((followed.states != UNFOLLOWED).any(axis=0))
        return followed

    def _wanted(self, number: int) -> Ints:
        """int64[n], ascending: rows of a page in which somebody here follows, may follow or followed."""
        page, followed = self._image.partitions.pages[number], self._pages.get(number)
        is_wanted: Flags = np.logical_or.reduce(is_among(page.slots, self._online.brokers), axis=0)
        if followed is not None:
            is_wanted[followed.rows] = True
        return np.flatnonzero(is_wanted)


def _nothing_followed(page: Page) -> PageFollowed:
    none = np.empty((page.width, 0))
    return PageFollowed(page, np.empty(0, np.int64), np.empty(0, np.int32), none.astype(np.int8), none)
