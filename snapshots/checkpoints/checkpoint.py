"""The content of checkpoint files, in Kafka's form: record batches between a SnapshotHeader and a SnapshotFooter.

Features come first, then registrations, topics, partitions in long runs of one shape, and the rest. Reading one is
replay. Names, listing, checks of files and their transfer are ``metadata_log``'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from typing import Final

import numpy as np

from quorate.metadata_log.batches.batch import control_batch, parse_header, place_batch
from quorate.metadata_log.batches.builder import filled_builders
from quorate.metadata_log.batches.columns import decode_batch
from quorate.metadata_log.batches.runs import BatchItem
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.limits import BATCH_BYTES_MAX
from quorate.metadata_log.records.records import (
    KRaftVersionRecord,
    PartitionRecord,
    Record,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    TopicRecord,
    VersionedRecord,
)
from quorate.metadata_log.records.wire import Buffer
from quorate.snapshots.checkpoints.as_records import after_topics, before_topics
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage
from quorate.snapshots.image.image_editor import ImageEditor
from quorate.snapshots.image.image_parts import Provenance
from quorate.snapshots.pauses import Pause, no_pause, rows_at_once
from quorate.snapshots.replay.replay import replay_items
from quorate.snapshots.table.record_versions import NEWEST_LEVEL
from quorate.snapshots.table.table_to_runs import partition_runs, rows_by_shape

#: Rows that are gathered by shape: their records stand in runs, which are quicker to read the longer they are.
_ROWS_BY_SHAPE: Final = 16_384

#: Single records between two places to pause: half a millisecond of work.
_RECORDS_AT_ONCE: Final = 64

#: Names of topics that are sorted at once: a millisecond of work.
_NAMES_AT_ONCE: Final = 2_048

#: Bytes that are given to who writes a file at once: to copy them takes no time that anybody notices.
_CHUNK_BYTES: Final = 256 * 1024


def checkpoint_batches(image: MetadataImage, timestamp: int, bytes_max: int = BATCH_BYTES_MAX) -> Iterator[bytes]:
    """The file's batches, each placed: offsets count from 0, the epoch is that of the last record contained.

    Args:
        image: outside of any transaction.
        timestamp: of the batches, milliseconds since 1970.
    """
    return (b"".join(pieces) for pieces in _batches(image, timestamp, bytes_max, no_pause))


def checkpoint_chunks(image: MetadataImage, timestamp: int, pause: Pause) -> Iterator[bytes]:
    """The bytes of all batches in chunks, for who writes a file beside other work.

    No step of it keeps the interpreter for long, as joining a batch of 8 MiB would.

    Args:
        image, timestamp: as of ``checkpoint_batches``. The image may go on being used while this runs in a thread.
        pause: called after every millisecond or two of work.
    """
    for pieces in _batches(image, timestamp, BATCH_BYTES_MAX, pause):
        gathered: list[Buffer] = []
        size = 0
        for piece in pieces:
            gathered.append(piece)
            size += len(piece)
            if size >= _CHUNK_BYTES:
                yield b"".join(gathered)
                pause()
                gathered, size = [], 0
        if gathered:
            yield b"".join(gathered)
            pause()


def _batches(image: MetadataImage, timestamp: int, bytes_max: int, pause: Pause) -> Iterator[Sequence[Buffer]]:
    """The batches in pieces."""
    epoch = image.provenance.epoch
    head = _head_records(image)
    yield (place_batch(control_batch(head, timestamp), 0, epoch),)
    offset = len(head)
    for builder in filled_builders(checkpoint_items(image, pause), bytes_max):
        yield builder.placed_pieces(timestamp, offset, epoch)
        offset += builder.record_count
    yield (place_batch(control_batch([(SnapshotFooterRecord(), 0)], timestamp), offset, epoch),)


def _head_records(image: MetadataImage) -> list[tuple[Record, int]]:
    head: list[tuple[Record, int]] = [(SnapshotHeaderRecord(image.provenance.log_time_ms), 0)]
    if image.kraft.version > 0:
        head.append((KRaftVersionRecord(image.kraft.version), 0))
        if image.kraft.voters is not None:
            head.append((image.kraft.voters, 0))
    return head


def checkpoint_items(image: MetadataImage, pause: Pause = no_pause) -> Iterator[BatchItem]:
    """The data records of a checkpoint, mass records as runs; ``pause`` as in ``checkpoint_chunks``."""
    level = image.features.metadata_version or NEWEST_LEVEL
    yield from _paced(before_topics(image, level), pause)
    yield from _paced(_topic_records(image), pause)
    table, size = image.partitions, rows_at_once(pause)
    for rows in table.held_rows(_ROWS_BY_SHAPE):
        for of_one_shape in rows_by_shape(table, rows, level):
            for start in range(0, len(of_one_shape), size):
                yield from (run for _, run in partition_runs(table, of_one_shape[start : start + size], level))
                pause()
    yield from _paced(after_topics(image), pause)


def _paced(records: Iterable[VersionedRecord], pause: Pause) -> Iterator[VersionedRecord]:
    for number, record in enumerate(records, 1):
        yield record
        if number % _RECORDS_AT_ONCE == 0:
            pause()


def _topic_records(image: MetadataImage) -> Iterator[VersionedRecord]:
    # Sorted in parts that are merged: a sort of all of them at once would keep the interpreter, which others wait for.
    names = iter(image.topics.by_name)
    parts = iter(lambda: sorted(islice(names, _NAMES_AT_ONCE)), [])
    # As arrays: the cycle collector, on whichever thread it runs, would look at each name in a list.
    for name in merge(*(np.array(part, object) for part in parts)):
        yield VersionedRecord(TopicRecord(name, image.topics.by_name[name].id), 0)


def read_checkpoint(
    batches: Iterable[Buffer], end_offset: int | None, epoch: int | None, empty: MetadataImage = EMPTY_IMAGE
) -> MetadataImage:
    """The image that a checkpoint's batches hold. The caller has checked their CRCs and continuity.

    Args:
        end_offset, epoch: by the file's name; None where it has none (``bootstrap.checkpoint``): then the image
            covers no offset, and the epoch is that of the batches.
        empty: the image without anything; ``EMPTY_UNCOUNTED_IMAGE`` for one of which no counts are kept.

    Raises:
        MalformedData: not a whole checkpoint: header or footer are missing, or not where they belong.
        ReplayError: a record cannot be replayed. It is in the batch before the last one that was taken, or, if they
            have ended, in the last one.
    """
    editor = ImageEditor(empty)
    log_time_ms: int | None = None
    batch_epoch = 0
    is_complete = False
    before: list[BatchItem] = []
    for batch in batches:
        header = parse_header(batch)
        items = decode_batch(batch)
        if log_time_ms is None:
            log_time_ms = _log_time(items[0])
        if is_complete:
            raise MalformedData("records after the SnapshotFooter")
        is_complete = _has_footer(items)
        # One batch behind: partitions of one topic stand in two of them, of different shapes, and rows that are
        # reserved for all of them need not be moved.
        replay_items(editor, before, items)
        before, batch_epoch = items, header.epoch
    replay_items(editor, before)
    if log_time_ms is None or not is_complete:
        raise MalformedData("no SnapshotFooter at the end")
    last_offset = -1 if end_offset is None else end_offset - 1
    return editor.finish(Provenance(last_offset, batch_epoch if epoch is None else epoch, log_time_ms))


def _log_time(first: BatchItem) -> int:
    if isinstance(first, VersionedRecord) and isinstance(first.record, SnapshotHeaderRecord):
        return first.record.last_contained_log_timestamp
    raise MalformedData("no SnapshotHeader at the start")


def _has_footer(items: list[BatchItem]) -> bool:
    return any(isinstance(item, VersionedRecord) and isinstance(item.record, SnapshotFooterRecord) for item in items)


def record_counts(image: MetadataImage) -> dict[str, int]:
    """Data records of the image's checkpoint by type name, for the manifest beside it."""
    rare = chain(before_topics(image, NEWEST_LEVEL), _topic_records(image), after_topics(image))
    counts = Counter(type(item.record).__name__ for item in rare)
    counts[PartitionRecord.__name__] = len(image.partitions)
    return {name: count for name, count in sorted(counts.items()) if count}
