"""The state that the tables of a history hold of a cluster at their end, as the base of what is appended to them.

Of partitions those are the versions that still hold; they come back as declarations with offsets before those of every
log. So what is made of them and the new records is what would have been made of all records, but for the versions that
held: of those only the ones count that end now.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorate.pipeline.files.storage import read
from quorate.pipeline.fold.elements import Elements
from quorate.pipeline.fold.fields import DIRECTORIES, LISTS, Longs, uuid_bytes
from quorate.pipeline.fold.rows import RowTable, ShapeTable
from quorate.pipeline.history.cells import TIMES, decode_rare
from quorate.pipeline.history.reading import ReadTask
from quorate.pipeline.tables.state_tables import PARTITIONS, elements_of
from quorate.pipeline.tables.table_reading import grouped_files, read_table

_SCALARS: Final = ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state")
#: How a task is named that reads a file of partitions' versions, or a cluster's state, and is no part of a log.
_VERSIONS: Final = "versions "
_STATE: Final = "state "


def held_tasks(versions: Mapping[str, int], state: str, task_bytes: int) -> list[str]:
    """The tasks that read what is held of a cluster.

    Args:
        versions: files of partitions' versions, with their bytes. state: the file that ``cells.encode_rare`` wrote.
        task_bytes: of the files in a task, about.
    """
    groups = grouped_files(versions, task_bytes)
    return [f"{_STATE}{state}", *(f"{_VERSIONS}{json.dumps(paths)}" for paths in groups)]


def is_held(task: str) -> bool:
    """Whether a task is one of these."""
    return task.startswith((_VERSIONS, _STATE))


def read_held(task: str, cluster_id: str) -> ReadTask:
    """Read such a task; raises OSError, as the files do."""
    if task.startswith(_STATE):
        return ReadTask(RowTable([]), decode_rare([read(task.removeprefix(_STATE))]), 0)
    files = [_open_versions(path, cluster_id) for path in json.loads(task.removeprefix(_VERSIONS))]
    return ReadTask(RowTable([table for rows in map(_rows, files) for table in rows.tables]), [], 0)


def _open_versions(path: str, cluster_id: str) -> pa.Table:
    columns = [name for name in PARTITIONS.names if name not in ("cluster_id", "topic")]
    its_open = (pc.field("cluster_id") == cluster_id) & pc.field("valid_to_offset").is_null()
    return read_table([path], [*columns, "valid_from"], its_open, by=["cluster_id", "valid_to_offset"])


def _rows(versions: pa.Table) -> RowTable:
    """Declarations of these versions, the time of each that from when on it holds."""
    if not versions.num_rows:
        return RowTable([])
    elements = elements_of(versions)
    times = versions["valid_from"].cast(pa.int64()).to_numpy() // 1000
    lengths = np.stack([elements.lists[name].value_lengths().to_numpy() for name in LISTS], axis=1)
    shapes, shape_of = np.unique(lengths, axis=0, return_inverse=True)
    return RowTable(
        [
            _shape(elements, times, np.flatnonzero(shape_of.reshape(-1) == number), shape.tolist())
            for number, shape in enumerate(shapes)
        ]
    )


def _shape(elements: Elements, times: Longs, rows: Longs, lengths: list[int]) -> ShapeTable:
    columns: dict[str, Any] = {
        "topic_ids": elements.topic_ids[rows],
        "partition_ids": elements.partition_ids[rows],
        **{name: getattr(elements, name)[rows] for name in _SCALARS},
        TIMES: times[rows],
    }
    for name, length in zip(LISTS, lengths, strict=True):
        values = elements.lists[name].take(pa.array(rows)).flatten()
        if name == DIRECTORIES:
            columns[name] = uuid_bytes(values).reshape(len(rows), length, 16)
        else:
            columns[name] = values.to_numpy().reshape(len(rows), length)
    return ShapeTable(True, elements.first_offset[rows], columns)


def changes_of(table: pa.Table) -> pa.Table:
    """Of versions that were made of what was held and of new records: those to be appended, and those that end now.

    The latter have ``base`` in the column ``change``; of their validity only when and where they end counts, and the
    time at which they began.
    """
    return table.filter(
        pc.or_(pc.not_equal(table["change"].cast(pa.string()), "base"), table["valid_to_offset"].is_valid())
    )
