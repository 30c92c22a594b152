"""Cutting what a large decision writes into slices: one batch and one turn of the loop each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from quorate.controller.decisions.decision import Slice
from quorate.controller.decisions.metadata_version import TRANSACTIONS_LEVEL
from quorate.metadata_log.batches.batch import HEADER_BYTES
from quorate.metadata_log.batches.builder import item_count, size_max, split_items
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.metadata_log.records.records import BeginTransactionRecord, EndTransactionRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage

#: Mass records that one turn of the loop decides, replays and appends at most: some 15 ms. Heartbeats of the quorum and
#: of brokers come in between, on this controller and on those who follow, which take in one batch a turn at least.
ROWS_PER_SLICE_MAX: Final = 12_288


def slices_of(items: Sequence[BatchItem]) -> list[Slice]:
    """Slices of records that have been decided already."""
    return [_decided(part) for part in _cut(items)]


def as_transaction(name: str, slices: Sequence[Slice], image: MetadataImage) -> Sequence[Slice]:
    """The same slices, at least one, taking effect together or not at all.

    Below 3.6-IV1 a log holds no transactions, and whoever follows it knows none: there each slice takes effect by
    itself. What is cut between two is carried on by whoever asks again: a broker that registers, somebody who
    unregisters one.
    """
    if image.features.metadata_version < TRANSACTIONS_LEVEL:
        return slices
    begin = VersionedRecord(BeginTransactionRecord(name=name), 0)
    end = VersionedRecord(EndTransactionRecord(), 0)
    framed = list(slices)
    framed[0] = _between((begin,), framed[0], ())
    framed[-1] = _between((), framed[-1], (end,))
    return framed


def _decided(items: Sequence[BatchItem]) -> Slice:
    return lambda _: items


def _between(before: Sequence[BatchItem], part: Slice, after: Sequence[BatchItem]) -> Slice:
    return lambda image: (*before, *part(image), *after)


def _cut(items: Sequence[BatchItem]) -> Iterator[list[BatchItem]]:
    """The items in order, in slices that each fit one batch and one turn."""
    part: list[BatchItem] = []
    rows = size = 0
    for item in split_items(items, BATCH_BYTES_MAX // 2, ROWS_PER_SLICE_MAX):
        count, item_size = item_count(item), size_max(item)
        if part and (rows + count > ROWS_PER_SLICE_MAX or size + item_size > BATCH_BYTES_MAX - HEADER_BYTES):
            yield part
            part, rows, size = [], 0, 0
        part.append(item)
        rows += count
        size += item_size
    if part:
        yield part
