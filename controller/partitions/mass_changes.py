"""Decisions that take a broker out of, or back into, any number of partitions: all at once, or as slices of a pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from quorate.controller.decisions.controller_config import ControllerConfig
from quorate.controller.decisions.decision import Slice
from quorate.controller.decisions.record_slices import ROWS_PER_SLICE_MAX
from quorate.controller.partitions.elections import Rows, leader_and_isr_changes
from quorate.metadata_log.batches.runs import BatchItem, PartitionChangeRun
from quorate.snapshots.counts.tally import IN_SYNC
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.kept_counts import tally_of
from quorate.snapshots.table.page_access import has_in_set
from quorate.snapshots.table.partition_table import PartitionTable

_NO_ROWS: Final[Rows] = np.empty(0, np.int64)


class RowSearch:
    """The rows of a table with a broker in the ISR, found in their order, and only when they are asked for.

    To look for all of them at once would keep the loop for 30 ms, of ten million partitions.
    """

    def __init__(self, table: PartitionTable, broker_id: int, count: int) -> None:
        """``count``: how many there are, by the counts that are kept."""
        self._table = table
        self._is_in = partial(has_in_set, name="isr", broker=broker_id)
        self._count = count
        self._next_row = 0

    def __len__(self) -> int:
        return self._count

    def take(self, rows_max: int | None) -> Rows:
        """int64[n], ascending: the next rows; ``rows_max`` None: all that are left."""
        end = self._table.row_end
        rows = next(self._table.select_parts(self._is_in, self._next_row, end, rows_max or end), _NO_ROWS)
        self._next_row = int(rows[-1]) + 1 if len(rows) else end
        return rows


def rows_in_isr(table: PartitionTable, broker_id: int) -> Rows | RowSearch:
    """int64[n], ascending: rows with a broker in the ISR; more than a slice holds as a search, to go on by slices.

    None is looked for where the counts have none: a broker that is fenced is fenced again when its session ends.
    """
    replicas = tally_of(table).replicas
    brokers, _, parts, _ = replicas.keys
    count = int(replicas.counts[(brokers == broker_id) & ((parts & IN_SYNC) != 0)].sum())
    if not count:
        return _NO_ROWS
    return RowSearch(table, broker_id, count) if count > ROWS_PER_SLICE_MAX else table.rows_with_isr(broker_id)


@dataclass(frozen=True, slots=True)
class IsrChanges:
    """``leader_and_isr_changes`` that are still to be decided; see there."""

    #: Ascending.
    rows: Rows | RowSearch
    #: Of a search: the rows that are taken from it, so many at most; None: all that are left.
    rows_max: int | None = None
    broker_to_remove: int | None = None
    broker_to_add: int | None = None
    is_unclean_shutdown: bool = False

    def decide(self, image: MetadataImage, config: ControllerConfig) -> list[PartitionChangeRun]:
        """The records, decided on this image."""
        return leader_and_isr_changes(
            image,
            config,
            self.rows.take(self.rows_max) if isinstance(self.rows, RowSearch) else self.rows,
            broker_to_remove=self.broker_to_remove,
            broker_to_add=self.broker_to_add,
            is_unclean_shutdown=self.is_unclean_shutdown,
        )

    def cut(self, rows_max: int) -> Iterator[IsrChanges]:
        """The same in parts of so many rows, to be decided in their order."""
        if isinstance(self.rows, RowSearch):
            full = replace(self, rows_max=rows_max)
            yield from (full for _ in range(rows_max, len(self.rows), rows_max))
            yield self
            return
        for first in range(0, len(self.rows), rows_max):
            yield replace(self, rows=self.rows[first : first + rows_max])


#: What a decision is put together from.
Part = BatchItem | IsrChanges


def records_or_slices(
    image: MetadataImage, config: ControllerConfig, parts: Sequence[Part]
) -> tuple[list[BatchItem], list[Slice]]:
    """``records`` and ``slices`` of a decision, in the order of its parts; slices if more change than fit one turn."""
    if sum(len(part.rows) for part in parts if isinstance(part, IsrChanges)) <= ROWS_PER_SLICE_MAX:
        return _decided(image, config, parts), []
    extents = image.partitions.extents

    def slice_of(some: Sequence[Part]) -> Slice:
        def decide(head: MetadataImage) -> Sequence[BatchItem]:
            # Rows mean the same partitions as long as no topic has come, gone or grown since they were found.
            assert head.partitions.extents is extents, "something else was decided during a pass"
            return _decided(head, config, some)

        return decide

    return [], [slice_of(some) for some in _grouped(parts)]


def _decided(image: MetadataImage, config: ControllerConfig, parts: Iterable[Part]) -> list[BatchItem]:
    items: list[BatchItem] = []
    for part in parts:
        items += part.decide(image, config) if isinstance(part, IsrChanges) else [part]
    return items


def _grouped(parts: Sequence[Part]) -> list[list[Part]]:
    """The parts in order, so that no group changes more partitions than a slice may."""
    groups: list[list[Part]] = [[]]
    for part in parts:
        if not isinstance(part, IsrChanges):
            groups[-1].append(part)
            continue
        for some in part.cut(ROWS_PER_SLICE_MAX):
            if any(isinstance(other, IsrChanges) for other in groups[-1]):
                groups.append([])
            groups[-1].append(some)
    return groups
