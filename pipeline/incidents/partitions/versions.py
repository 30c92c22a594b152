"""The versions of some topics' partitions as arrays: those of one partition together, in the order of the log. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import pyarrow as pa

from quorate.pipeline.fold.fields import Bools, Ints, Longs
from quorate.pipeline.incidents.partitions.lists import Lists
from quorate.snapshots.incidents.kinds import BASE

#: What is read of the table ``partition_versions``.
COLUMNS: Final = (
    "cluster_id",
    "topic_id",
    "topic",
    "partition",
    "leader",
    "leader_epoch",
    "isr",
    "replicas",
    "adding_replicas",
    "removing_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
    "valid_from_offset",
    "valid_from",
    "valid_to_offset",
    "valid_to",
    "record_offset",
    "change",
    "removed",
)

#: An offset or a time that there is not.
NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts of which there are few: a number a row."""

    names: list[str]
    codes: Ints

    @classmethod
    def of(cls, column: pa.ChunkedArray, order: Longs) -> Self:
        """A column's texts in this order of rows."""
        found = _encoded(column)
        return cls(found.dictionary.to_pylist(), found.indices.to_numpy()[order])

    def array(self, rows: Longs) -> pa.Array:
        """The texts of these rows, as a column."""
        return pa.DictionaryArray.from_arrays(self.codes[rows], pa.array(self.names, pa.string()))


@dataclass(frozen=True, slots=True)
class PartitionVersions:
    """One row a version, by partition, offset, and within a transaction by record."""

    cluster: Texts
    topic_id: Texts
    topic: Texts
    partition: Ints
    #: Number of the row's partition, 0, 1, ...: rows of one partition have one.
    group: Longs
    #: Whether a partition begins with this row.
    is_start: Bools
    #: From when on it holds; those of a transaction all hold from its end on. Times in microseconds since 1970.
    offset: Longs
    time_us: Longs
    leader: Ints
    leader_epoch: Ints
    isr: Lists
    replicas: Lists
    adding: Lists
    removing: Lists
    #: A partition from before the ELR was known has none.
    elr: Lists
    last_known_elr: Lists
    is_base: Bools
    #: The topic's removal, the same in all rows of a partition; ``NEVER`` while it lives.
    gone_offset: Longs
    gone_us: Longs

    def __len__(self) -> int:
        return len(self.offset)

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """The rows of a table that has ``COLUMNS``, all versions of whatever partitions."""
        order, codes = _order(table)
        is_start = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
        group = np.cumsum(is_start) - 1
        removed = table["removed"].to_numpy()[order]
        gone_offset, gone_us = (_gone(table[name], order, group, removed) for name in ("valid_to_offset", "valid_to"))
        is_base = Texts.of(table["change"], order)
        return cls(
            cluster=Texts.of(table["cluster_id"], order),
            topic_id=Texts.of(table["topic_id"], order),
            topic=Texts.of(table["topic"], order),
            partition=table["partition"].to_numpy()[order],
            group=group,
            is_start=is_start,
            offset=table["valid_from_offset"].to_numpy()[order],
            time_us=table["valid_from"].cast(pa.int64()).to_numpy()[order],
            leader=table["leader"].to_numpy()[order],
            leader_epoch=table["leader_epoch"].to_numpy()[order],
            isr=_lists(table["isr"], order),
            replicas=_lists(table["replicas"], order),
            adding=_lists(table["adding_replicas"], order),
            removing=_lists(table["removing_replicas"], order),
            elr=_lists(table["eligible_leader_replicas"], order),
            last_known_elr=_lists(table["last_known_elr"], order),
            is_base=np.array([name == BASE for name in is_base.names], np.bool_)[is_base.codes],
            gone_offset=gone_offset,
            gone_us=gone_us,
        )

    def leads_as_preferred(self) -> Bools:
        """Whether the first replica leads."""
        found: Bools = (self.leader >= 0) & (self.replicas.first() == self.leader)
        return found

    def are_open(self) -> Bools:
        """Whether a reassignment is under way."""
        found: Bools = self.adding.lengths + self.removing.lengths > 0
        return found

    def have_arrived(self, last: Longs, end: Longs) -> Bools:
        """Whether reassignments came to their target.

        One that is cancelled takes away what it added, or leaves what it removes.

        Args:
            last: rows of the last versions in which they were under way.
            end: the row behind each.
        """
        reached, target = self.replicas.take(end), self.replicas.take(last).without(self.removing.take(last))
        found: Bools = (reached.lengths == target.lengths) & (reached.without(target).lengths == 0)
        return found

    def key(self, rows: Longs) -> dict[str, pa.Array]:
        """The columns that name the partitions of these rows."""
        return {
            "cluster_id": self.cluster.array(rows),
            "topic_id": self.topic_id.array(rows),
            "partition": pa.array(self.partition[rows]),
            "topic": self.topic.array(rows),
        }

    def name(self, row: int) -> str:
        """A row's partition for people."""
        return f"{self.topic.names[self.topic.codes[row]]}-{self.partition[row]}"


def _order(table: pa.Table) -> tuple[Longs, Longs]:
    """The rows in order, and in that order a number for each row's partition."""
    cluster, topic = (_encoded(table[name]).indices.to_numpy().astype(np.int64) for name in ("cluster_id", "topic_id"))
    # Topics are some thousands, partitions of one below a million: one number for all three.
    codes = (cluster << 56 | topic << 32) | table["partition"].to_numpy()
    order = np.lexsort((table["record_offset"].to_numpy(), table["valid_from_offset"].to_numpy(), codes))
    return order, codes[order]


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    found = column.unify_dictionaries().combine_chunks()
    return found if isinstance(found, pa.DictionaryArray) else pa.concat_arrays(found.chunks)


def _lists(column: pa.ChunkedArray, order: Longs) -> Lists:
    found = column.combine_chunks()
    return Lists.of(found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)).take(order)


def _gone(column: pa.ChunkedArray, order: Longs, group: Longs, removed: Bools) -> Longs:
    """The end of each row's partition, by its version that a removal ended."""
    ends = column.cast(pa.int64()).fill_null(NEVER).to_numpy()[order]
    by_group = np.full(int(group[-1]) + 1 if len(group) else 0, NEVER, np.int64)
    by_group[group[removed]] = ends[removed]
    found: Longs = by_group[group]
    return found
