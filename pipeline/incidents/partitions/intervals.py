"""From when to when something was true of a partition: the runs in its changes. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa

from quorate.pipeline.fold.fields import Bools, Ints, Longs
from quorate.pipeline.incidents.partitions.changes import CODES, Changes, cause_names
from quorate.pipeline.incidents.partitions.lists import NOBODY
from quorate.pipeline.incidents.partitions.versions import NEVER, PartitionVersions
from quorate.pipeline.incidents.tables import RUNS, table_of, times
from quorate.snapshots.incidents import kinds
from quorate.snapshots.incidents.causes import NONE
from quorate.snapshots.incidents.min_isr import MinIsrSteps

#: Room for an offset beside a topic's number in one int64.
_OFFSET_BITS: Final = 44


@dataclass(frozen=True, slots=True)
class IntervalBounds:
    """The points at which a run may begin or end: changes, or whatever lies between them; in order."""

    versions: PartitionVersions
    #: The change in which each lies.
    rows: Longs
    offset: Longs
    time_us: Longs
    cause: Longs
    subject: Ints
    cause_offset: Longs

    @classmethod
    def of(cls, changes: Changes) -> Self:
        """The changes themselves."""
        versions = changes.versions
        return cls(
            versions,
            np.arange(len(versions)),
            versions.offset,
            versions.time_us,
            changes.cause,
            changes.subject,
            changes.cause_offset,
        )


def leaderless(versions: PartitionVersions) -> Bools:
    """No broker leads the partition."""
    found: Bools = versions.leader < 0
    return found


def under_replicated(versions: PartitionVersions) -> Bools:
    """Fewer in the ISR than replicas, those not counted that a reassignment is still adding (as Kafka counts)."""
    needed = versions.replicas.lengths.copy()
    adding = np.flatnonzero(versions.adding.lengths)
    needed[adding] = versions.replicas.take(adding).without(versions.adding.take(adding)).lengths
    found: Bools = versions.isr.lengths < needed
    return found


def edges(group: Longs, holds: Bools) -> tuple[Longs, Longs]:
    """The points at which the condition begins to hold, and at which it ends; ``NEVER`` if it does not within the
    partition.

    Args:
        group: number of each row's partition.
    """
    same = group[1:] == group[:-1]
    was = np.append(False, holds[:-1] & same)[: len(holds)]
    found = np.flatnonzero(holds != was)
    following = np.append(found[1:], NEVER)[: len(found)]
    ends_inside = np.append(group[found[1:]] == group[found[:-1]], False)[: len(found)]
    following = np.where(ends_inside, following, NEVER)
    # A condition that held to a partition's end leaves no edge there: the next one begins by itself.
    begins = holds[found]
    return found[begins], following[begins]


def runs(moments: IntervalBounds, holds: Bools) -> pa.Table:
    """One row per run of moments in which the condition holds: a table of ``RUNS``."""
    versions = moments.versions
    first, end = edges(versions.group[moments.rows], holds)
    row, is_ended = moments.rows[first], end != NEVER
    gone = versions.gone_offset[row]
    not_ended = np.where(gone != NEVER, CODES[kinds.TOPIC_REMOVED], CODES[kinds.OPEN])
    to_offset = np.where(is_ended, moments.offset[end], gone)
    broker, cause_offset = moments.subject[first], moments.cause_offset[first]
    return table_of(
        {
            **versions.key(row),
            "from_offset": pa.array(moments.offset[first]),
            "from_time": times(moments.time_us[first]),
            "to_offset": pa.array(to_offset, mask=to_offset == NEVER),
            "to_time": times(np.where(is_ended, moments.time_us[end], versions.gone_us[row]), to_offset == NEVER),
            "cause": cause_names(moments.cause[first]),
            "broker": pa.array(broker, mask=broker == NOBODY),
            "cause_offset": pa.array(cause_offset, mask=cause_offset == NONE),
            "ended_by": cause_names(np.where(is_ended, moments.cause[end], not_ended)),
        },
        RUNS,
    )


# --- min.insync.replicas ------------------------------------------------------------------------------


def under_min_isr(changes: Changes, steps: MinIsrSteps) -> pa.Table:
    """Runs with fewer in the ISR than min.insync.replicas asks for, whichever of the two changed.

    As in Kafka a topic of fewer replicas than that needs them all.
    """
    versions = changes.versions
    moments, values = _Values.of(versions, steps).moments(changes)
    needed = np.minimum(values, versions.replicas.lengths[moments.rows])
    return runs(moments, versions.isr.lengths[moments.rows] < needed)


@dataclass(frozen=True, slots=True)
class _Values:
    """The steps of the topics of a bucket, one topic after the other, to be searched."""

    #: Number of each row's topic; topics of one name have the same steps.
    topic: Longs
    #: Topic and offset from which each step holds, as one number: one more than the offset, for the first is -1.
    keys: Longs
    offset: Longs
    time_us: Longs
    value: Longs

    @classmethod
    def of(cls, versions: PartitionVersions, steps: MinIsrSteps) -> Self:
        clusters, names = versions.cluster.names, versions.topic.names
        pairs, topic = np.unique(
            versions.cluster.codes.astype(np.int64) * len(names) + versions.topic.codes, return_inverse=True
        )
        found = [
            (number, step)
            for number, pair in enumerate(pairs.tolist())
            for step in steps.of(clusters[pair // len(names)], names[pair % len(names)])
        ]
        columns = np.array([(number, *step[:1], *step[2:]) for number, step in found], np.int64).reshape(-1, 4)
        keys = (columns[:, 0] << _OFFSET_BITS) | (columns[:, 1] + 1)
        return cls(topic, keys, columns[:, 1], columns[:, 2], columns[:, 3])

    def moments(self, changes: Changes) -> tuple[IntervalBounds, Longs]:
        """Each change once for every value that held while it did, and the values."""
        versions = changes.versions
        base = self.topic << _OFFSET_BITS
        first = np.searchsorted(self.keys, base | (versions.offset + 1), "right") - 1
        # To the offset of the next change or the topic's end, exclusive: of two changes at one offset the first holds
        # never, and what a value is when a topic is gone is nothing to it.
        is_last = np.append(versions.is_start[1:], True)[: len(versions)]
        until = np.where(is_last, versions.gone_offset, np.append(versions.offset[1:], NEVER)[: len(versions)])
        ends = np.where(until == NEVER, (1 << _OFFSET_BITS) - 1, until + 1)
        last = np.searchsorted(self.keys, base | ends, "left") - 1
        count = last - first + 1
        rows = np.repeat(np.arange(len(versions)), count)
        step = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count) + first[rows]
        is_later = self.offset[step] > versions.offset[rows]
        moments = IntervalBounds(
            versions,
            rows,
            np.maximum(versions.offset[rows], self.offset[step]),
            np.where(is_later, self.time_us[step], versions.time_us[rows]),
            np.where(is_later, CODES[kinds.MIN_ISR_CHANGED], changes.cause[rows]),
            np.where(is_later, NOBODY, changes.subject[rows]).astype(np.int32),
            np.where(is_later, NONE, changes.cause_offset[rows]),
        )
        return moments, self.value[step]
