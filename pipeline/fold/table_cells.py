"""Tables as values: what workers hand each other where the JVM only moves bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from quorate.pipeline.fold.fields import Longs


def to_bytes(table: pa.Table | pa.RecordBatch) -> bytes:
    """A table as one value."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes) -> pa.Table:
    """A table that was one value."""
    return pa.ipc.open_stream(data).read_all()


def shared_out(table: pa.Table, place: Longs, places: int) -> list[bytes]:
    """The rows of each place, in the order in which they were; ``place`` has a number below ``places`` for each."""
    if places == 1:
        return [to_bytes(table)]
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place, minlength=places))[:-1]
    return [to_bytes(table.take(pa.array(rows))) for rows in np.split(order, ends)]
