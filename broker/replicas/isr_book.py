"""The ISRs that the leaders of this process would ask for, by what is known of their followers.

Of every follower of a partition that is led here the book knows when it was caught up last, by itself or by the
*group* of its broker (see ``FollowerGroup``), whose times are one number for all partitions. A follower enters the ISR
when it is level with the leader, and leaves it when it has not been caught up for longer than ``lag_max_ms`` (Kafka's
``Replica.lastCaughtUpTimeMs`` and ``Partition.isFollowerOutOfSync``).

Work is done by the page of the partition table, as columns. What is known about a broker costs the same for one of its
partitions as for all; a page is looked at when it, or somebody's being level, changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quorate.broker.controllers.isr_proposals import IsrProposals, proposals_of
from quorate.broker.directories.online_replicas import online_places
from quorate.broker.directories.places import (
    Flags,
    Ints,
    in_slots,
    is_among,
)
from quorate.broker.replicas.joined_pages import (
    PAGES_JOINED_MAX,
)
from quorate.broker.replicas.led_pages import LedPages
from quorate.broker.replicas.led_rows import (
    ALWAYS,
    NEVER,
    UNKNOWN,
    FollowerGroup,
    LedRows,
    Standing,
    Times,
)
from quorate.metadata_log.errors import ErrorCode
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.table import page_access
from quorate.snapshots.table.pages import PAGE_ROWS, PAGE_SHIFT

#: Answered "done": the image shows it soon. If it does not by then, ask again; that is harmless.
CONFIRM_MS: Final = 10_000.0
#: Refused for a reason that passes: the controller is behind or ahead of the image, a broker is on its way.
RETRY_MS: Final = 200.0
#: As what is told of it: nothing new.
AS_BEFORE: Final = np.nan
#: Pages that one call of ``due`` looks at: some milliseconds of work. All of them at once, as where a broker becomes
#: level with ten million partitions, would keep the process from its heartbeats.
PAGES_PER_LOOK_MAX: Final = 64

#: What is looked at of rows that are led here: to find what their leaders would ask for, and to note what is said of
#: them.
_LOOK_COLUMNS: Final = ("slots", "directories", "replica_counts", "leader_slots", "isr")
_NOTE_COLUMNS: Final = ("slots", "replica_counts", "leader_slots", "leader_epochs", "isr")

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


class IsrBook:
    """See the module. Not thread-safe; times are milliseconds of one clock.

    Args:
        lag_max_ms: how long an ISR member may go without being caught up.
        trusts_isr: ISR members count as level until told otherwise (``ALWAYS``); otherwise as caught up when their
            leader began.
    """

    def __init__(self, lag_max_ms: float, *, trusts_isr: bool = False) -> None:
        self.lag_max_ms = lag_max_ms
        #: Of brokers that follow as members, by id.
        self.groups: dict[int, FollowerGroup] = {}
        self._led = LedPages(trusts_isr=trusts_isr)
        self._online = online_places(EMPTY_IMAGE, ())
        #: Whether ``due`` left some for its next call.
        self._has_more = False

    # --- what happened -------------------------------------------------------------------------------

    def update(self, image: MetadataImage, leaders: Collection[int], now_ms: float) -> None:
        """Take a new image, and the brokers that are played here. Only pages that changed are looked at."""
        before = self._led.image
        self._led.update(image, frozenset(leaders), now_ms)
        directories = image.partitions.directories
        if image.cluster is not before.cluster or directories is not before.partitions.directories:
            online, self._online = self._online, online_places(image, image.cluster.active_brokers())
            if online != self._online:
                self.look_again()
            self._forget_restarted(before, image)

    def note(
        self,
        topic_ids: NDArray[np.uint8],
        partition_ids: NDArray[np.int32],
        leader_epochs: NDArray[np.int32],
        brokers: NDArray[np.int32],
        caught_up_ms: Times,
        is_member: Flags,
    ) -> NDArray[np.int16]:
        """Take what is known of n followers; of one that is named twice the last holds.

        Args:
            caught_up_ms: float64[n]: by itself; taken if it is later than what was known, or UNKNOWN.

        Returns:
            int16[n]: NONE, or why nothing was noted, as a leader refuses a fetch.
        """
        table = self._led.image.partitions
        rows = table.rows_for(topic_ids, partition_ids)
        codes = np.full(len(rows), ErrorCode.UNKNOWN_TOPIC_ID, np.int16)
        codes[rows >= 0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
        places = self._led.places(rows[rows >= 0])
        if not places:
            return codes
        joined, led = self._led.taken(places, _NOTE_COLUMNS)
        found = np.minimum(np.searchsorted(joined.rows, rows), len(joined.rows) - 1)
        at = np.flatnonzero(joined.rows[found] == rows)
        found = found[at]
        present = led.page.leader_epochs[found]
        codes[at[leader_epochs[at] < present]] = ErrorCode.FENCED_LEADER_EPOCH
        codes[at[leader_epochs[at] > present]] = ErrorCode.UNKNOWN_LEADER_EPOCH
        is_now = leader_epochs[at] == present
        _note_in(led, at[is_now], found[is_now], brokers, caught_up_ms, is_member, codes)
        oldest = led.oldest()
        for (number, place), first, end in zip(places.items(), joined.bounds, joined.bounds[1:], strict=False):
            if self._led.pages[number].put(place, led, slice(first, end), float(oldest[first:end].min(initial=NEVER))):
                self._led.open.add(number)
        return codes

    def leave_group(self, broker: int) -> None:
        """The group of a broker speaks for nobody any more; what it said last holds for each partition by itself."""
        group = self.groups.pop(broker, None)
        if group is None:
            return
        for led in self._led.pages.values():
            for slot in range(led.page.width):
                is_its = led.is_member[slot] & (led.page.slots[slot, led.rows] == broker)
                if is_its.any():
                    led.is_member[slot, is_its] = False
                    led.caught_up_ms[slot, is_its] = np.maximum(led.caught_up_ms[slot, is_its], group.caught_up_ms)
                    led.find_oldest()

    def look_again(self) -> None:
        """Somebody is level who was not, or may enter ISRs who might not."""
        for led in self._led.pages.values():
            led.next_due_ms = -np.inf
        self._led.open.update(self._led.pages)

    def expire(self, now_ms: float) -> None:
        """Look for ISR members that lag; to be called every ``lag_max_ms / 2`` (as Kafka's ``isr-expiration``)."""
        limit = now_ms - self.lag_max_ms
        if any(group.caught_up_ms < limit for group in self.groups.values()):
            self.look_again()
            return
        for number, led in self._led.pages.items():
            if led.oldest_ms < limit:
                led.find_oldest()
            if led.oldest_ms < limit:
                led.next_due_ms = -np.inf
                self._led.open.add(number)

    # --- what to ask for -----------------------------------------------------------------------------

    @property
    def outside_count(self) -> int:
        """Replicas of partitions led here that are not in the ISR."""
        return sum(led.outside for led in self._led.pages.values())

    def next_due_after(self, now_ms: float) -> float:
        """The time at which a change that is held back falls due; NEVER if an event must come first.

        It is now where ``due`` has not looked at everything yet.
        """
        if self._has_more:
            return now_ms
        due = (self._led.pages[number].next_due_ms for number in self._led.open)
        return min((due_ms for due_ms in due if due_ms > now_ms), default=NEVER)

    def due(self, now_ms: float, busy: Collection[int], rows_max: int) -> Iterator[IsrProposals]:
        """The ISRs that leaders would ask for now: for each leader not ``busy``, at most ``rows_max`` partitions.

        What is returned is held back until ``answered`` or ``postponed`` says more. Where there is much to look at,
        a call looks at a part of it, and the next one goes on.
        """
        self._has_more = False
        if self._led.leaders.issubset(busy):  # As while the answer to the last request of the only leader is out.
            return
        rows, masks = self._due_rows(now_ms, self._led.leaders.difference(busy), rows_max)
        if not len(rows):
            return
        columns = self._led.image.partitions.gather(rows)
        chosen = {leader: at[:rows_max] for leader, at in _by_value(columns.leaders).items()}
        held = np.sort(np.concatenate(list(chosen.values())))
        self._hold(rows[held], np.full(len(held), NEVER))
        for leader, at in chosen.items():
            yield proposals_of(leader, self._led.image, columns, at, masks[at])

    def answered(self, proposals: IsrProposals, error_codes: NDArray[np.int16], now_ms: float) -> None:
        """The controller answered, one code for each partition in order."""
        holds = np.where(error_codes == ErrorCode.NONE, now_ms + CONFIRM_MS, now_ms + RETRY_MS)
        holds[np.isin(error_codes, _FINAL_ERRORS)] = NEVER
        self._hold_proposed(proposals, holds)

    def postponed(self, proposals: IsrProposals, until_ms: float) -> None:
        """The request as a whole failed: propose again, not before a time."""
        self._hold_proposed(proposals, np.full(len(proposals), until_ms))

    def _forget_restarted(self, before: MetadataImage, image: MetadataImage) -> None:
        """Forget what brokers said of themselves under a registration that is not theirs any more."""
        for broker in restarted_brokers(before, image):
            for led in self._led.pages.values():
                for slot in range(led.page.width):
                    is_its = led.page.slots[slot, led.rows] == broker
                    is_its &= ~in_slots(led.page.isr[led.rows], slot)
                    led.caught_up_ms[slot, is_its] = UNKNOWN

    def _due_rows(self, now_ms: float, leaders: frozenset[int], rows_max: int) -> tuple[Ints, NDArray[np.uint64]]:
        """Rows of the table, ascending, that want another ISR, and which, as masks over the slots.

        Of these leaders only; pages behind those that fill a request for each are left for later.
        """
        free = np.array(sorted(leaders), np.int32)
        all_rows, all_masks = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
        counts = np.zeros(len(free), np.int64)
        standing = Standing(self.groups, self._online, now_ms - self.lag_max_ms)
        looked_at = self._to_look_at(now_ms, leaders)
        for first in range(0, len(looked_at), PAGES_JOINED_MAX):
            numbers = looked_at[first : first + PAGES_JOINED_MAX]
            places = {number: self._wanting(number, now_ms, leaders) for number in numbers}
            joined, together = self._led.taken(places, _LOOK_COLUMNS)
            page = together.page
            wanted = standing.wanted_isr(together)
            is_other = wanted != page.isr
            is_due = is_other & (together.hold_ms <= now_ms)
            later = np.where(is_other & ~is_due, together.hold_ms, NEVER)
            led_by = page.slots[page.leader_slots, together.rows]
            is_free = is_due & is_among(led_by, free)
            for number, local, part in joined.parts(together.rows):
                led = self._led.pages[number]
                led.seen(local, float(later[part].min(initial=NEVER)), frozenset(led_by[part][is_due[part]].tolist()))
                if not led.is_open:
                    self._led.open.discard(number)
                at = np.flatnonzero(is_free[part]) + part.start
                if not len(at):
                    continue
                all_rows.append(joined.rows[at])
                all_masks.append(wanted[at])
                counts += np.bincount(np.searchsorted(free, led_by[at]), minlength=len(free))
                if (counts >= rows_max).all():
                    return np.concatenate(all_rows), np.concatenate(all_masks)
        return np.concatenate(all_rows), np.concatenate(all_masks)

    def _to_look_at(self, now_ms: float, leaders: frozenset[int]) -> list[int]:
        """The first pages, by number, with rows that want a look now."""
        due = (number for number in sorted(self._led.open) if self._led.pages[number].wants_look(now_ms, leaders))
        found = list(islice(due, PAGES_PER_LOOK_MAX + 1))
        self._has_more = len(found) > PAGES_PER_LOOK_MAX
        return found[:PAGES_PER_LOOK_MAX]

    def _wanting(self, number: int, now_ms: float, leaders: frozenset[int]) -> Ints:
        """int64[n], ascending: positions of the rows of a page that want a look now."""
        led = self._led.pages[number]
        return np.arange(len(led.rows)) if led.is_due(now_ms, leaders) else np.flatnonzero(led.is_unseen)

    # --- holds ---------------------------------------------------------------------------------------

    def _hold(self, rows: Ints, holds: Times) -> None:
        """Set when the rows (ascending) may be proposed again; rows that are not led here any more are left alone."""
        for number in np.unique(rows >> PAGE_SHIFT).tolist():
            led = self._led.pages.get(number)
            if led is None:
                continue
            first, end = np.searchsorted(rows, (number << PAGE_SHIFT, (number + 1) << PAGE_SHIFT))
            wanted = rows[first:end] & (PAGE_ROWS - 1)
            at = np.minimum(np.searchsorted(led.rows, wanted), len(led.rows) - 1)
            is_known = led.rows[at] == wanted
            led.hold_ms[at[is_known]] = holds[first:end][is_known]
            led.next_due_ms = min(led.next_due_ms, float(holds[first:end].min()))
            self._led.open.add(number)

    def _hold_proposed(self, proposals: IsrProposals, holds: Times) -> None:
        """Like ``_hold``, for partitions that are still as they were when they were proposed."""
        table = self._led.image.partitions
        rows = proposals.rows
        if table.extents is not proposals.image.partitions.extents:  # topics came, went or moved
            rows = table.rows_for(proposals.topic_ids, proposals.partition_ids)
        at = np.flatnonzero(rows >= 0)
        at = at[np.argsort(rows[at], kind="stable")]
        present = page_access.gather(table.pages, rows[at], ("partition_epochs",))["partition_epochs"]
        is_same = present == proposals.partition_epochs[at]
        self._hold(rows[at][is_same], holds[at][is_same])


def restarted_brokers(before: MetadataImage, image: MetadataImage) -> frozenset[int]:
    """Brokers whose registration is another one, or gone."""
    if image.cluster is before.cluster:
        return frozenset()
    updated, removed = image.cluster.brokers.changes_since(before.cluster.brokers)
    old, new = before.cluster.brokers, image.cluster.brokers
    return frozenset({b for b in updated if b in old and old[b].epoch != new[b].epoch}) | frozenset(removed)


def _by_value(values: NDArray[np.int32]) -> dict[int, Ints]:
    """Ascending positions of each value."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(values[order][1:] != values[order][:-1]) + 1
    return {int(values[at[0]]): at for at in np.split(order, starts) if len(at)}


def _note_in(
    led: LedRows,
    at: Ints,
    found: Ints,
    brokers: NDArray[np.int32],
    caught_up_ms: Times,
    is_member: Flags,
    codes: NDArray[np.int16],
) -> None:
    """Note rows ``at`` of a report for the rows ``found`` of a joined page, which they name rightly."""
    page = led.page
    for slot in range(page.width):
        is_its = (page.slots[slot, found] == brokers[at]) & (page.replica_counts[found] > slot)
        is_its &= page.leader_slots[found] != slot
        to, source = found[is_its], at[is_its]
        codes[source] = ErrorCode.NONE
        known, told = led.caught_up_ms[slot, to], caught_up_ms[source]
        is_recent = (told == UNKNOWN) | (told > known)
        led.caught_up_ms[slot, to] = np.where(is_recent, told, known)
        led.is_member[slot, to] = is_member[source]
        # Who is in the ISR and is known no worse stays there: of a mass change most followers say no more than that.
        stays = in_slots(page.isr[to], slot) & (told != UNKNOWN) & (is_member[source] | (told == ALWAYS))
        led.is_unseen[to[~stays]] = True
