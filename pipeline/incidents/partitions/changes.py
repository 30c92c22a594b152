"""Every version of every partition beside the one before it: what that change took away, and why. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa

from quorate.pipeline.fold.fields import Bools, Ints, Longs
from quorate.pipeline.incidents.partitions.lists import NOBODY, Lists
from quorate.pipeline.incidents.partitions.versions import PartitionVersions
from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.causes import CAUSES, NONE, BrokerTimeline

#: All causes that a change or the end of a run can have; in the arrays they are places in it.
NAMES: Final = (*CAUSES, *kinds.OWN_CAUSES, *kinds.ENDS)
CODES: Final = {name: code for code, name in enumerate(NAMES)}
RISKY_CODES: Final = [CODES[name] for name in kinds.RISKY]


def cause_names(codes: Longs) -> pa.Array:
    """Causes as a column of texts."""
    return pa.DictionaryArray.from_arrays(codes.astype(np.int8), pa.array(NAMES))


@dataclass(frozen=True, slots=True)
class Changes:
    """Versions, and what each changed of the one before; a partition's first one changed nothing."""

    versions: PartitionVersions
    #: Whether brokers left or joined the ISR, and the first of those.
    shrank: Bools
    grew: Bools
    gained: Ints
    #: The first broker that left the ELR; ``NOBODY`` if none did.
    dropped: Ints
    #: Led by another one, or nobody, from now on.
    is_moved: Bools
    #: The broker that lost leadership or ISR membership; ``NOBODY`` if none did.
    subject: Ints
    #: Places in ``NAMES``, and the broker's event that is the cause, ``NONE`` if it is none.
    cause: Longs
    cause_offset: Longs

    @classmethod
    def of(cls, versions: PartitionVersions, timeline: BrokerTimeline, within_us: int) -> Self:
        """The changes, each from the version before it.

        Args:
            versions: of whatever partitions.
            timeline: what happened to brokers.
            within_us: how near a broker's event must be to be a loss's cause, whatever its state was.
        """
        seen = _VersionPairs(versions)
        lost, gained = seen.differences(versions.isr)
        dropped, _ = seen.differences(versions.elr)
        deposed = seen.is_moved & (seen.led >= 0)
        subject = np.where(deposed, seen.led, lost)
        own = _own_causes(seen, lost, gained, dropped)
        cause, cause_offset = _broker_causes(seen, own, subject, timeline, within_us)
        return cls(
            versions=versions,
            shrank=lost != NOBODY,
            grew=gained != NOBODY,
            gained=gained,
            dropped=dropped,
            is_moved=seen.is_moved,
            subject=subject,
            cause=np.where(cause == NONE, own, cause),
            cause_offset=cause_offset,
        )


class _VersionPairs:
    """The versions beside those before them; a partition's first one is beside itself."""

    def __init__(self, versions: PartitionVersions) -> None:
        self.versions = versions
        self.rows = np.arange(len(versions))
        self.before = np.where(versions.is_start, self.rows, self.rows - 1)
        self.has_before = ~versions.is_start
        self.led = np.where(self.has_before, versions.leader[self.before], NOBODY).astype(np.int32)
        self.is_moved = self.has_before & (versions.leader != versions.leader[self.before])
        self.keeps_replicas = self._same(versions.replicas)
        self.keeps_adding = self._same(versions.adding)

    def _same(self, lists: Lists) -> Bools:
        return lists.equals(lists.take(self.before))

    def differences(self, lists: Lists) -> tuple[Ints, Ints]:
        """The first broker that left and the first that joined, ``NOBODY`` where none did."""
        left, joined = (np.full(len(self.rows), NOBODY, np.int32) for _ in range(2))
        changed = np.flatnonzero(~self._same(lists))
        was, now = lists.take(self.before[changed]), lists.take(changed)
        left[changed] = was.without(now).first()
        joined[changed] = now.without(was).first()
        return left, joined

    def completes(self, rows: Longs) -> Bools:
        """Of some versions, whether a reassignment has arrived with them."""
        before, is_open = self.before[rows], self.versions.are_open()
        found: Bools = is_open[before] & ~is_open[rows]
        over = np.flatnonzero(found)  # few of many
        found[over] = self.versions.have_arrived(before[over], rows[over])
        return found


def _broker_causes(
    seen: _VersionPairs, own: Longs, subject: Ints, timeline: BrokerTimeline, within_us: int
) -> tuple[Longs, Longs]:
    """Of the changes in which a broker left the ISR against its will the event of it that lies behind.

    The last member of an ISR stays in it as it goes down, where there is no ELR: then nobody leads. An election that
    may lose data takes it out: that is no event of the broker's. ``own``: what each change is by itself.
    """
    versions = seen.versions
    cause, offset = (np.full(len(seen.rows), NONE, np.int64) for _ in range(2))
    lost = np.flatnonzero((subject != NOBODY) & seen.keeps_replicas & ~np.isin(own, RISKY_CODES))
    lost = lost[~versions.isr.take(lost).contains(subject[lost]) | (versions.leader[lost] < 0)]
    if len(lost):
        clusters = pa.array(versions.cluster.names).take(pa.array(versions.cluster.codes[lost])).to_pylist()
        cause[lost], offset[lost] = timeline.losses(
            clusters, subject[lost].astype(np.int64), versions.offset[lost], versions.time_us[lost], within_us
        )
    return cause, offset


def _own_causes(seen: _VersionPairs, lost: Ints, gained: Ints, dropped: Ints) -> Longs:
    """The cause of each change by itself: of the first rule that holds."""
    versions = seen.versions
    was_led = seen.led >= 0
    # A reassignment that completes admits a replica and lets it lead in one record, for the leader that it takes away.
    taken = np.flatnonzero(seen.is_moved & (versions.leader >= 0))
    taken = taken[~(was_led[taken] & seen.completes(taken))]
    unclean, last_known = (np.zeros(len(seen.rows), np.bool_) for _ in range(2))
    before, leader = seen.before[taken], versions.leader[taken]
    outside = ~versions.isr.take(before).contains(leader) & ~versions.elr.take(before).contains(leader)
    unclean[taken] = outside
    last_known[taken] = outside & versions.last_known_elr.take(before).contains(leader)
    rules = [
        (versions.is_start & versions.is_base, kinds.BASE),
        (versions.is_start, kinds.CREATED),
        (last_known, kinds.LAST_KNOWN),
        (unclean, kinds.UNCLEAN),
        (~seen.keeps_replicas | ~seen.keeps_adding, kinds.REASSIGNMENT),
        (was_led & seen.is_moved & versions.leads_as_preferred(), kinds.PREFERRED),
        (seen.is_moved, kinds.ELECTED),
        (lost != NOBODY, kinds.LAGGED),
        (gained != NOBODY, kinds.CAUGHT_UP),
        (versions.leader_epoch != versions.leader_epoch[seen.before], kinds.ELECTED),
        (dropped != NOBODY, kinds.UNCLEAN_STOP),
    ]
    found: Longs = np.select(
        [holds for holds, _ in rules], [CODES[name] for _, name in rules], CODES[kinds.ASSIGNED_DIRECTORIES]
    )
    return found
