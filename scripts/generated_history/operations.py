"""A controller's operations on partitions and topics: each changes the state and writes its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.random import Generator

from quorate.controller.decisions.metadata_version import partition_version
from quorate.controller.partitions.columns import ELECT_ONLINE, ELECT_PREFERRED, ELECT_UNCLEAN
from quorate.controller.partitions.rules import RuleSettings
from quorate.metadata_log.batches.runs import BatchItem, IntColumn
from quorate.metadata_log.records.records import (
    ClearElrRecord,
    ConfigRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.scripts.generated_history.brokers import GeneratedBrokers
from quorate.scripts.generated_history.log_writer import LogWriter
from quorate.scripts.generated_history.partition_changes import Rules, creation_runs, decide
from quorate.scripts.generated_history.partition_pool import (
    NOBODY,
    Columns,
    Flags,
    Masks,
    PartitionPool,
    Rows,
    bit,
    bit_of,
    empty_columns,
)
from quorate.scripts.generated_history.topic_pool import TopicPool

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4
MIN_ISR: Final = "min.insync.replicas"

#: Changes rows as wished: (before, after). What it makes of ``before`` counts as the slots to compare with.
Wish = Callable[[Columns, Columns], None]


class GeneratedCluster:
    """The state of the made-up cluster, and the operations on its partitions."""

    def __init__(self, random: Generator, log: LogWriter, brokers: GeneratedBrokers) -> None:
        self.random = random
        self.log = log
        self.brokers = brokers
        self.pool = PartitionPool()
        self.topics = TopicPool(random)
        self.level = 21
        self.is_elr_enabled = False
        #: Inside a transaction that will be aborted, or never ends: records are written and nothing changes.
        self.is_dry = False

    # --- changes -------------------------------------------------------------------------------------

    def change(
        self,
        rows: Rows,
        wish: Wish,
        *,
        first: Sequence[BatchItem] = (),
        last: Sequence[BatchItem] = (),
        sorts_isr: bool = False,
        election: int = ELECT_ONLINE,
    ) -> int:
        """Change partitions, in slices of a batch, between some other records; how many had a change."""
        rules = Rules(self.brokers.is_up, RuleSettings(self.level, self.is_elr_enabled), election, sorts_isr)
        size = self.log.plan.batch_rows_max
        changed = 0
        items: list[BatchItem] = list(first)
        for start in range(0, max(len(rows), 1), size):
            part = rows[start : start + size]
            before, after = self.pool.columns.take(part), self.pool.columns.take(part)
            same_slots = self.pool.columns.take(part)
            wish(same_slots, after)
            numbers = after.topic
            ids, min_isrs = self.topics.ids_of(numbers), self.topics.min_isrs_of(numbers)
            change = decide(before, same_slots, after, ids, min_isrs, rules)
            items += change.runs(self.brokers.directory_ids, partition_version(self.level))
            if start + size >= len(rows):
                items += last
            changed += int(change.decided.has_change.sum())
            if not self.is_dry:
                self.pool.columns.put(part, after)
            self.log.write(items)
            items = []
        return changed

    def leave_isr(self, rows: Rows, broker: int, **options: Sequence[BatchItem] | bool) -> int:
        """A broker is out of the ISR of partitions; it may be down."""

        def wish(_: Columns, after: Columns) -> None:
            after.isr &= ~bit_of(after, broker)

        return self.change(rows, wish, **options)  # type: ignore[arg-type]

    def leave_elr(self, rows: Rows, broker: int, last: Sequence[BatchItem]) -> int:
        """A broker came back after an unclean stop: nothing that it promised counts."""

        def wish(_: Columns, after: Columns) -> None:
            after.elr &= ~bit_of(after, broker)

        return self.change(rows, wish, last=last)

    def join_isr(self, rows: Rows, broker: int) -> int:
        """A broker has caught up; a reassignment that waited for it is complete."""

        def wish(_: Columns, after: Columns) -> None:
            joins = bit_of(after, broker)
            if self.is_elr_enabled:
                joins = np.where(self._leaves_eligible(after, joins), np.uint8(0), joins)
            after.isr |= joins
            after.is_recovering[:] = False

        return self.change(rows, wish, sorts_isr=True)

    def _leaves_eligible(self, columns: Columns, joins: Masks) -> Flags:
        """The rows in which a replica that is taken out with this would stay eligible: the pool knows of replicas
        only.
        """
        isr, gone = columns.isr | joins, columns.removing
        completes = (columns.adding & ~isr) == 0
        is_small = np.bitwise_count(isr & ~gone) < self.topics.min_isrs_of(columns.topic)
        leaves: Flags = completes & is_small & (gone & (isr | columns.elr) != 0)
        return leaves

    def elect(self, rows: Rows, *, last: Sequence[BatchItem] = (), allows_unclean: bool = False) -> int:
        """Give leaders to partitions that have none, where somebody may lead."""
        election = ELECT_UNCLEAN if allows_unclean else ELECT_ONLINE
        return self.change(rows, lambda _, __: None, last=last, election=election)

    def prefer(self, rows: Rows) -> int:
        """Give the leadership back to first replicas."""
        return self.change(rows, lambda _, __: None, election=ELECT_PREFERRED)

    # --- reassignments -------------------------------------------------------------------------------

    def reassign(self, rows: Rows, places: Rows, targets: IntColumn, *, replaces: bool) -> int:
        """Begin to move one replica a partition (the one at ``places``) to ``targets``, or to add ``targets``."""
        at = 0

        def wish(same_slots: Columns, after: Columns) -> None:
            nonlocal at
            part = slice(at, at + len(after))
            at += len(after)
            begin_move(same_slots, after, places[part], targets[part], replaces=replaces)

        return self.change(rows, wish)

    def cancel(self, rows: Rows) -> int:
        """Undo open reassignments: the replicas without those that were being added."""

        def wish(same_slots: Columns, after: Columns) -> None:
            for columns in (same_slots, after):
                undo_move(columns)

        return self.change(rows, wish)

    def assign_directories(self, rows: Rows) -> int:
        """Brokers say in which directories they have put replicas."""
        number = self.random.integers(0, 2, (len(rows), 8)).astype(np.int32)
        at = 0

        def wish(_: Columns, after: Columns) -> None:
            nonlocal at
            codes = self.brokers.directory_codes(after.replicas, number[at : at + len(after)])
            at += len(after)
            is_due = (after.directories == 0) & (after.replicas != NOBODY) & self.brokers.is_up[after.replicas]
            after.directories = np.where(is_due, codes, after.directories)

        return self.change(rows, wish)

    # --- topics --------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int, replicas: int, configs: dict[str, str]) -> None:
        """A topic with all its partitions."""
        topic_id = self.random.bytes(16)
        min_isr = int(configs.get(MIN_ISR, "1"))
        items: list[BatchItem] = [VersionedRecord(TopicRecord(name, topic_id), 0)]
        items += [_topic_config(name, key, value) for key, value in configs.items()]
        if self.is_dry:
            ids = np.frombuffer(topic_id * partitions, np.uint8).reshape(partitions, 16)
            columns = self._new_partitions(0, 0, partitions, replicas)
            version = partition_version(self.level)
            self.log.write([*items, *creation_runs(columns, ids, self.brokers.directory_ids, version)])
            return
        number = self.topics.add(name, topic_id, min_isr)
        self._add(number, self._new_partitions(number, 0, partitions, replicas), items)

    def grow_topic(self, number: int, count: int) -> None:
        """More partitions for a topic."""
        rows = self.topics.rows[number]
        replicas = int((self.pool.columns.replicas[rows[0]] != NOBODY).sum())
        replicas = min(replicas, len(self.brokers.up))
        self._add(number, self._new_partitions(number, len(rows), count, replicas), [])

    def _add(self, number: int, columns: Columns, items: list[BatchItem]) -> None:
        rows = self.pool.allocate(len(columns))
        self.pool.hold(rows, columns)
        self.topics.rows[number] = np.concatenate([self.topics.rows[number], rows])
        version = partition_version(self.level)
        ids = self.topics.ids_of(columns.topic)
        self.log.write([*items, *creation_runs(columns, ids, self.brokers.directory_ids, version)])

    def _new_partitions(self, topic: int, first: int, count: int, replicas: int) -> Columns:
        """Replicas over racks in turns, the first one leads, all are in sync."""
        order = self.brokers.interleaved()
        replicas = min(replicas, len(order))
        columns = empty_columns(count)
        columns.topic[:] = topic
        columns.number[:] = np.arange(first, first + count)
        start = int(self.random.integers(len(order)))
        places = (start + np.arange(count)[:, None] + np.arange(replicas)) % len(order)
        columns.replicas[:, :replicas] = order[places]
        number = self.random.integers(0, 2, (count, replicas)).astype(np.int32)
        codes = self.brokers.directory_codes(columns.replicas[:, :replicas], number)
        is_chosen = bool(self.random.random() < 0.7)
        columns.directories[:, :replicas] = codes if is_chosen else 0
        columns.isr[:] = (1 << replicas) - 1
        columns.leader[:] = 0
        return columns

    def delete_topic(self, number: int) -> None:
        """A topic and all its partitions are gone."""
        record = VersionedRecord(RemoveTopicRecord(self.topics.id_of(number)), 0)
        if not self.is_dry:
            self.pool.release(self.topics.rows[number])
            self.topics.remove(number)
        self.log.write([record])

    def set_min_isr(self, number: int, value: int) -> None:
        """A topic's ``min.insync.replicas`` changes, and with it what its ELRs were worth."""
        items: list[VersionedRecord] = []
        if self.is_elr_enabled:
            items.append(VersionedRecord(ClearElrRecord(self.topics.names[number]), 0))
            if not self.is_dry:
                self._forget_elrs(self.topics.rows[number])
        if not self.is_dry:
            self.topics.set_min_isr(number, value)
        self.log.write([*items, _topic_config(self.topics.names[number], MIN_ISR, str(value))])

    def clear_all_elrs(self, *before: tuple[Record, int]) -> None:
        """The cluster's default changes: no ELR holds any more."""
        if not self.is_dry:
            self._forget_elrs(np.flatnonzero(self.pool.is_held))
        records = [VersionedRecord(record, version) for record, version in before]
        self.log.write([*records, VersionedRecord(ClearElrRecord(""), 0)])

    def _forget_elrs(self, rows: Rows) -> None:
        self.pool.columns.elr[rows] = 0
        self.pool.columns.last_known_leader[rows] = NOBODY


def _topic_config(name: str, key: str, value: str) -> VersionedRecord:
    return VersionedRecord(ConfigRecord(TOPIC_RESOURCE, name, key, value), 0)


# --- slots -------------------------------------------------------------------------------------------


def begin_move(same_slots: Columns, after: Columns, places: Rows, targets: IntColumn, *, replaces: bool) -> None:
    """Put ``targets`` at ``places`` and who stood there last, to be removed; or put ``targets`` last."""
    rows = np.arange(len(after))
    last = after.replica_count
    new = places if replaces else last
    for columns in (same_slots, after):
        if replaces:
            for name in ("replicas", "directories"):
                column = getattr(columns, name)
                column[rows, last] = column[rows, places]
            for name in ("isr", "elr"):
                setattr(columns, name, _moved(getattr(columns, name), places, last))
            columns.leader = np.where(columns.leader == places, last, columns.leader).astype(np.int8)
        columns.replicas[rows, new] = targets
        columns.directories[rows, new] = 0
    after.adding = bit(new)
    if replaces:
        after.removing = bit(last)


def undo_move(columns: Columns) -> None:
    """Take out the replica that was being added; those behind it move up."""
    place = np.bitwise_count(columns.adding - 1).astype(np.int64)  # one bit: those below it count its slot
    slots = np.arange(columns.replicas.shape[1])
    source = slots + (slots >= place[:, None])
    for name, blank in (("replicas", NOBODY), ("directories", 0)):
        column = getattr(columns, name)
        wide = np.concatenate([column, np.full((len(column), 1), blank, column.dtype)], axis=1)
        setattr(columns, name, np.take_along_axis(wide, source, axis=1))
    below = columns.adding - np.uint8(1)
    for name in ("isr", "elr"):
        mask = getattr(columns, name)
        setattr(columns, name, (mask & below) | (mask >> 1 & ~below))
    is_behind = columns.leader > place
    columns.leader = np.where(columns.leader == place, NOBODY, columns.leader - is_behind).astype(np.int8)
    columns.adding = np.zeros_like(columns.adding)
    columns.removing = np.zeros_like(columns.removing)


def _moved(masks: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Masks whose bit ``source`` stands at ``target`` instead."""
    has = (masks & bit(source)) != 0
    return np.where(has, (masks & ~bit(source)) | bit(target), masks)
