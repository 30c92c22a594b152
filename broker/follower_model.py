"""Which replicas would be caught up by now: the model that stands in for data in a rehearsal.

The model: a replica of a partition that is led from this process begins to follow when it is first seen outside the ISR
with its broker unfenced (and not shutting down) and its log directory online; it is caught up ``copy_ms`` later. A
broker that is fenced, leaves or registers anew starts over, and so does a partition whose rows moved because its topic
grew. Nothing is copied.

Work is done by the page of the partition table, as columns: a page whose partitions are all fully in sync costs some
ten microseconds when it changes and nothing afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from broker.isr_proposals import IsrProposals, proposals_of
from metadata_log.errors import ErrorCode
from snapshots import page_access
from snapshots.cluster import BrokerRegistration
from snapshots.directories import LOST_CODE, MIGRATING_CODE, UNASSIGNED_CODE
from snapshots.image import EMPTY_IMAGE, MetadataImage
from snapshots.pages import PAGE_ROWS, PAGE_SHIFT, Page

#: Answered "done": the image shows it soon. If it does not by then, ask again; that is harmless.
CONFIRM_MS: Final = 10_000.0
#: Refused for a reason that passes: the controller is behind or ahead of the image, a broker is on its way.
RETRY_MS: Final = 200.0
#: Never, until the partition itself changes.
NEVER: Final = np.inf

#: Errors that end a proposal: the partition has another leader, is gone, or the request made no sense.
_FINAL_ERRORS: Final = np.array(
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
)
_FULL_MASKS: Final = np.array([(1 << count) - 1 for count in range(65)], np.uint64)

Ids = NDArray[np.int32]
Times = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class _Followers:
    """The replicas of one page that follow and are not in the ISR. ``n`` rows have any."""

    page: Page
    #: int64[n], ascending: rows within the page.
    rows: NDArray[np.int64]
    #: float64[width, n]: when the replica in each slot began to follow; NEVER = it does not.
    since_ms: Times
    #: float64[n]: the row is not proposed before.
    hold_ms: Times
    #: No row may be proposed before; a lower bound, exact after ``find_next_due``.
    next_due_ms: float = NEVER

    def due_ms(self, copy_ms: float) -> Times:
        """float64[n]: when each row may be proposed."""
        due: Times = np.maximum(self.since_ms.min(axis=0) + copy_ms, self.hold_ms)
        return due

    def find_next_due(self, copy_ms: float) -> None:
        """Make ``next_due_ms`` exact."""
        self.next_due_ms = float(self.due_ms(copy_ms).min())


class FollowerModel:
    """The model over one image. Not thread-safe; times are monotonic milliseconds."""

    def __init__(self, copy_ms: float) -> None:
        self.copy_ms = copy_ms
        self._image = EMPTY_IMAGE
        self._leaders: frozenset[int] = frozenset()
        self._places = _places(EMPTY_IMAGE)
        self._pages: dict[int, _Followers] = {}

    @property
    def following_count(self) -> int:
        """Replicas that follow and are not in the ISR."""
        return sum(int(np.isfinite(followers.since_ms).sum()) for followers in self._pages.values())

    def next_due_after(self, now_ms: float) -> float:
        """When something more falls due; infinite if an event must come first. What is due waits for its leader."""
        return min((self._next_due_after(followers, now_ms) for followers in self._pages.values()), default=NEVER)

    def _next_due_after(self, followers: _Followers, now_ms: float) -> float:
        if followers.next_due_ms > now_ms:
            return followers.next_due_ms
        due_ms = followers.due_ms(self.copy_ms)
        return float(due_ms[due_ms > now_ms].min(initial=NEVER))

    def update(self, image: MetadataImage, leaders: Collection[int], now_ms: float) -> None:
        """Take a new image, and the brokers that are played here. Only pages that changed are looked at."""
        before, self._image = self._image, image
        restarted = _restarted(before, image)
        is_same_cast = restarted is None and self._leaders == leaders
        self._leaders = frozenset(leaders)
        old_pages, pages = before.partitions.pages, image.partitions.pages
        if image.cluster is not before.cluster or image.partitions.directories is not before.partitions.directories:
            self._places = _places(image)
        scan = _Scan(_sorted(self._leaders), self._places, restarted or frozenset(), now_ms)
        for number, page in enumerate(pages):
            if is_same_cast and number < len(old_pages) and old_pages[number] is page:
                continue
            followers = scan.followers(page, self._pages.get(number))
            if followers is not None:
                followers.find_next_due(self.copy_ms)
                self._pages[number] = followers
            else:
                self._pages.pop(number, None)
        for number in [number for number in self._pages if number >= len(pages)]:
            del self._pages[number]

    def due(self, now_ms: float, busy: Collection[int], rows_max: int) -> Iterator[IsrProposals]:
        """The ISRs that leaders would ask for now: for each leader not ``busy``, at most ``rows_max`` partitions.

        What is returned is held back until ``answered`` or ``postponed`` says more.
        """
        if self._leaders.issubset(busy):  # As while the answer to the last request of the only leader is out.
            return
        rows, masks = self._due_rows(now_ms)
        columns = self._image.partitions.gather(rows)
        chosen = {leader: at[:rows_max] for leader, at in _by_value(columns.leaders).items() if leader not in busy}
        if not chosen:
            return
        held = np.sort(np.concatenate(list(chosen.values())))
        self._hold(rows[held], np.full(len(held), NEVER))
        for leader, at in chosen.items():
            yield proposals_of(leader, self._image, columns, at, masks[at])

    def answered(self, proposals: IsrProposals, error_codes: NDArray[np.int16], now_ms: float) -> None:
        """The controller answered, one code for each partition in order."""
        holds = np.where(error_codes == ErrorCode.NONE, now_ms + CONFIRM_MS, now_ms + RETRY_MS)
        holds[np.isin(error_codes, _FINAL_ERRORS)] = NEVER
        self._hold_proposed(proposals, holds)

    def postponed(self, proposals: IsrProposals, until_ms: float) -> None:
        """The request as a whole failed: propose again, not before a time."""
        self._hold_proposed(proposals, np.full(len(proposals), until_ms))

    # --- holds ---------------------------------------------------------------------------------------

    def _due_rows(self, now_ms: float) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Rows of the table, ascending, with replicas that are caught up, and those as masks over the slots."""
        all_rows, all_masks = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
        for number in sorted(self._pages):
            followers = self._pages[number]
            if followers.next_due_ms > now_ms:
                continue
            followers.find_next_due(self.copy_ms)
            masks = np.zeros(len(followers.rows), np.uint64)
            for slot, since in enumerate(followers.since_ms):
                masks |= (since + self.copy_ms <= now_ms).astype(np.uint64) << np.uint64(slot)
            is_due = (masks != 0) & (followers.hold_ms <= now_ms)
            if is_due.any():
                all_rows.append(followers.rows[is_due] + (number << PAGE_SHIFT))
                all_masks.append(masks[is_due])
        return np.concatenate(all_rows), np.concatenate(all_masks)

    def _hold(self, rows: NDArray[np.int64], holds: Times) -> None:
        """Set when the rows (ascending) may be proposed again; rows without followers are left alone."""
        for number in np.unique(rows >> PAGE_SHIFT).tolist():
            followers = self._pages.get(number)
            if followers is None:
                continue
            first, end = np.searchsorted(rows, (number << PAGE_SHIFT, (number + 1) << PAGE_SHIFT))
            wanted = rows[first:end] & (PAGE_ROWS - 1)
            at = np.minimum(np.searchsorted(followers.rows, wanted), len(followers.rows) - 1)
            is_known = followers.rows[at] == wanted
            followers.hold_ms[at[is_known]] = holds[first:end][is_known]
            followers.next_due_ms = min(followers.next_due_ms, float(holds[first:end].min()))

    def _hold_proposed(self, proposals: IsrProposals, holds: Times) -> None:
        """Like ``_hold``, for partitions that are still as they were when they were proposed."""
        table = self._image.partitions
        rows = proposals.rows
        if table.extents is not proposals.image.partitions.extents:  # topics came, went or moved
            rows = table.rows_for(proposals.topic_ids, proposals.partition_ids)
        at = np.flatnonzero(rows >= 0)
        at = at[np.argsort(rows[at], kind="stable")]
        present = page_access.gather(table.pages, rows[at], ("partition_epochs",))["partition_epochs"]
        is_same = present == proposals.partition_epochs[at]
        self._hold(rows[at][is_same], holds[at][is_same])


def _restarted(before: MetadataImage, image: MetadataImage) -> frozenset[int] | None:
    """Brokers whose registration is another one; None if nothing that matters here changed about any broker."""
    if image.cluster is before.cluster:
        return None
    updated, removed = image.cluster.brokers.changes_since(before.cluster.brokers)
    if not updated and not removed:
        return None

    def epoch(registration: BrokerRegistration | None) -> int:
        return -1 if registration is None else registration.epoch

    old, new = before.cluster.brokers, image.cluster.brokers
    return frozenset(broker for broker in updated if epoch(old.get(broker)) != epoch(new.get(broker)))


def _by_value(values: Ids) -> dict[int, NDArray[np.int64]]:
    """Ascending positions of each value."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(values[order][1:] != values[order][:-1]) + 1
    return {int(values[at[0]]): at for at in np.split(order, starts) if len(at)}


def _sorted(brokers: Collection[int]) -> Ids:
    return np.array(sorted(brokers), np.int32)


def _is_in(ids: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    """Which ids are among the sorted ``wanted``."""
    if not len(wanted):
        return np.zeros(ids.shape, np.bool_)
    found: NDArray[np.bool_] = wanted[np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)] == ids
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where replicas can follow."""

    #: int64[n], ascending: an active broker and the code of a directory that it has online.
    online: NDArray[np.int64]
    #: int32[n], ascending: active brokers that registered no directories; all of theirs count as online.
    anywhere: Ids

    def can_follow(self, brokers: Ids, directories: Ids) -> NDArray[np.bool_]:
        """Which replicas can, by broker and directory code."""
        here: NDArray[np.bool_] = _is_in(_pairs(brokers, directories), self.online)
        here |= _is_in(brokers, self.anywhere) & (directories != LOST_CODE)
        return here


def _places(image: MetadataImage) -> _Places:
    brokers, codes, anywhere = [], [], []
    for id_ in image.cluster.active_brokers():
        directories = image.cluster.brokers[id_].directories
        if not directories:
            anywhere.append(id_)
            continue
        known = (image.partitions.directories.code(directory) for directory in directories)
        online = [MIGRATING_CODE, UNASSIGNED_CODE, *(code for code in known if code is not None)]
        brokers += [id_] * len(online)
        codes += online
    pairs = np.sort(_pairs(np.array(brokers, np.int32), np.array(codes, np.int32)))
    return _Places(pairs, _sorted(anywhere))


def _pairs(brokers: Ids, directories: Ids) -> NDArray[np.int64]:
    pairs: NDArray[np.int64] = brokers.astype(np.int64) << 32 | directories
    return pairs


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """One look at some pages: who leads from here, who may follow, whose clocks start over."""

    leaders: Ids
    places: _Places
    restarted: frozenset[int]
    now_ms: float

    def followers(self, page: Page, old: _Followers | None) -> _Followers | None:
        """The followers of a page; those that ``old`` knows keep their clocks. None if it has none."""
        full = _FULL_MASKS[page.replica_counts].astype(page.isr.dtype)
        candidates = np.flatnonzero(((page.isr & full) != full) & (page.leader_slots >= 0))
        if not len(candidates):
            return None
        leader_slots = page.leader_slots[candidates]
        candidates = candidates[_is_in(page.slots[leader_slots, candidates], self.leaders)]
        since_ms = np.full((page.width, len(candidates)), NEVER)
        for slot in range(page.width):
            is_replica = page.replica_counts[candidates] > slot
            is_in_isr = (page.isr[candidates] & page.isr.dtype.type(1 << slot)) != 0
            can_follow = self.places.can_follow(page.slots[slot, candidates], page.directories[slot, candidates])
            follows = is_replica & ~is_in_isr & can_follow
            since_ms[slot, follows] = self.now_ms
        has_any = (since_ms != NEVER).any(axis=0)
        if not has_any.any():
            return None
        rows, since_ms = candidates[has_any], since_ms[:, has_any]
        followers = _Followers(page, rows, since_ms, np.full(len(rows), -np.inf))
        if old is not None:
            self._carry(followers, old)
        return followers

    def _carry(self, new: _Followers, old: _Followers) -> None:
        """Give replicas that followed before their clocks, and unchanged partitions their holds."""
        at = np.minimum(np.searchsorted(old.rows, new.rows), len(old.rows) - 1)
        page, before, rows = new.page, old.page, new.rows
        is_same = (old.rows[at] == rows) & (page.partition_ids[rows] == before.partition_ids[rows])
        if page.topic_ids is not before.topic_ids:
            is_same &= (page.topic_ids[rows] == before.topic_ids[rows]).all(axis=1)
        for slot in range(page.width):
            brokers = page.slots[slot, rows]
            goes_on = is_same & (new.since_ms[slot] != NEVER)
            for broker in self.restarted:
                goes_on &= brokers != broker
            for old_slot in range(before.width):
                since = old.since_ms[old_slot, at]
                kept = goes_on & (before.slots[old_slot, rows] == brokers) & (since != NEVER)
                new.since_ms[slot, kept] = since[kept]
        is_unchanged = is_same & (page.partition_epochs[rows] == before.partition_epochs[rows])
        new.hold_ms[is_unchanged] = old.hold_ms[at][is_unchanged]
