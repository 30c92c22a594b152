"""The output of tasks: their elements shared out over buckets by topic, and all other records, as bytes.

A bucket has all partitions of its topics, and besides their elements what is needed to compose them: the records of
these topics, and of every task the transaction markers and clearings. One cell more, ``others``, has all records that
are no mass records, for the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgpack
import numpy as np
import pyarrow as pa

from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.codec import decode_control, decode_value, encode_control, encode_value
from quorate.metadata_log.records.records import (
    ClearElrRecord,
    KRaftVersionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
    VotersRecord,
)
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.pipeline.fold.elements import SCHEMA, Elements, empty_elements
from quorate.pipeline.fold.fields import Longs
from quorate.pipeline.fold.grouping import topic_hashes
from quorate.pipeline.fold.table_cells import from_bytes, to_bytes
from quorate.pipeline.fold.task import FoldedTask
from quorate.pipeline.fold.timeline import MARKERS, Located

_CONTROL: Final = (KRaftVersionRecord, VotersRecord)


def split(task: FoldedTask, buckets: int) -> Iterator[tuple[int, bytes]]:
    """A task's cells: (bucket, bytes); the cell ``others`` has the number ``buckets``. Empty ones are left out."""
    if task.others:
        yield buckets, _packed(b"", task.others)
    numbers = buckets_of(task.elements.topic_ids, buckets)
    ordered = task.elements.take(np.argsort(numbers, kind="stable")).to_arrow() if len(numbers) else None
    ends = np.cumsum(np.bincount(numbers, minlength=buckets)).tolist()
    shared = _shared(task.others, buckets)
    for bucket, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
        elements = b"" if ordered is None or first == end else to_bytes(ordered.slice(first, end - first))
        if elements or shared[bucket]:
            yield bucket, _packed(elements, shared[bucket])


def state_cell(state: Elements | None, others: list[Located]) -> bytes:
    """A state, or a part of one, as a cell."""
    return _packed(b"" if state is None or not len(state) else to_bytes(state.to_arrow()), others)


def join(cells: Iterable[bytes | pa.Buffer]) -> tuple[Elements, list[Located]]:
    """The content of some cells of one bucket: the elements, and the other records in order."""
    batches: list[pa.RecordBatch] = []
    records: list[Located] = []
    for cell in cells:
        elements, others = msgpack.unpackb(cell)
        if elements:
            batches += from_bytes(elements).to_batches()
        records += (Located(offset, _decoded(key, value)) for offset, key, value in others)
    records.sort(key=lambda located: located.offset)
    if not batches:
        return empty_elements(), records
    joined = pa.Table.from_batches(batches, SCHEMA).combine_chunks().to_batches()
    return Elements.from_arrow(joined[0]), records


def buckets_of(topic_ids: Any, buckets: int) -> Longs:
    """The bucket of each topic of uint8[n, 16]."""
    found: Longs = (topic_hashes(topic_ids) >> np.uint64(17)).astype(np.int64) % buckets
    return found


def _shared(others: list[Located], buckets: int) -> list[list[Located]]:
    """For each bucket the records that it needs."""
    found: list[list[Located]] = [[] for _ in range(buckets)]
    for located in others:
        record = located.record
        if isinstance(record, (TopicRecord, RemoveTopicRecord)):
            found[_bucket_of(record.topic_id, buckets)].append(located)
        elif isinstance(record, (*MARKERS, ClearElrRecord)):
            for bucket in found:
                bucket.append(located)
    return found


def _bucket_of(topic_id: Uuid, buckets: int) -> int:
    return int(buckets_of(np.frombuffer(topic_id, np.uint8).reshape(1, 16), buckets)[0])


def _packed(elements: bytes, others: list[Located]) -> bytes:
    packed: bytes = msgpack.packb([elements, [(offset, *_encoded(record)) for offset, record in others]])
    return packed


def _encoded(record: Record) -> tuple[bytes, bytes]:
    """Key and value; data records have no key."""
    version = SCHEMA_OF_CLASS[type(record)].versions.last
    if isinstance(record, _CONTROL):
        return encode_control(record, version)
    return b"", encode_value(record, version)


def _decoded(key: bytes, value: bytes) -> Record:
    return (decode_control(key, value) if key else decode_value(value)).record
