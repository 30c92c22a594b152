"""The fields of a partition, as the fold sees them: what a record sets, in bits, and the columns that hold it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Flags = NDArray[np.uint16]
Bools = NDArray[np.bool_]
AnyColumn = NDArray[Any]

#: Fields that are lists of broker ids, by the names that records and runs give them.
ID_LISTS: Final = (
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
)
DIRECTORIES: Final = "directories"
LISTS: Final = (*ID_LISTS, DIRECTORIES)

#: One bit for each field that a row or an element sets.
BIT: Final[dict[str, int]] = {name: 1 << at for at, name in enumerate((*LISTS, "leader", "leader_recovery_state"))}
ALL_FIELDS: Final = sum(BIT.values())
#: The partition is declared whole: nothing from before counts.
BASE: Final = 1 << 9
#: The replicas change and no directories are named: each replica keeps the directory it had.
KEEPS_DIRECTORIES: Final = 1 << 10

UUID_TYPE: Final = pa.binary(16)
ID_LIST_TYPE: Final = pa.list_(pa.int32())
DIRECTORY_LIST_TYPE: Final = pa.list_(UUID_TYPE)


def list_type(name: str) -> pa.DataType:
    """The Arrow type of a list field."""
    return DIRECTORY_LIST_TYPE if name == DIRECTORIES else ID_LIST_TYPE


def uuid_array(uuids: NDArray[np.uint8]) -> pa.Array:
    """uint8[n, 16] as an Arrow column, sharing memory where it lies in a row."""
    return pa.Array.from_buffers(UUID_TYPE, len(uuids), [None, pa.py_buffer(np.ascontiguousarray(uuids))])


def uuid_bytes(column: pa.Array) -> NDArray[np.uint8]:
    """An Arrow column of uuids without nulls as uint8[n, 16]."""
    data = column.buffers()[1]
    if data is None:
        return np.empty((0, 16), np.uint8)
    found: NDArray[np.uint8] = np.frombuffer(data, np.uint8).reshape(-1, 16)
    return found[column.offset : column.offset + len(column)]
