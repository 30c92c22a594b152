"""A chunk as one Arrow record batch, with the columns that are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from quorate.metadata_log.batches.run_layout import RUN_CLASSES
from quorate.metadata_log.records.schema import DATA_SCHEMAS
from quorate.pipeline.files.walk import LogChunk
from quorate.pipeline.source.record_arrays import RecordStructs
from quorate.pipeline.source.schema import CONTROL_TYPE_NAMES, DATA_TYPE_NAMES, RECORD_COLUMNS

#: Type names by code: of a control record its type id and this.
_CONTROL_CODE: Final = 256
_NAMES: Final = pa.array(
    [DATA_TYPE_NAMES.get(code) for code in range(_CONTROL_CODE)]
    + [CONTROL_TYPE_NAMES.get(code) for code in range(_CONTROL_CODE)]
)


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The columns wanted, and of which records."""

    #: Names, in order; the types must be those of ``schema.COLUMN_TYPES``.
    schema: pa.Schema
    #: Names of record types, None = all.
    types: frozenset[str] | None = None

    @property
    def data_types(self) -> frozenset[int] | None:
        """The type ids of data records that must be decoded: of those that are wanted and have a column; None = all."""
        columns = {RECORD_COLUMNS[name].record for name in self.schema.names if name in RECORD_COLUMNS}
        if any(record.is_control for record in columns):
            return None
        ids = frozenset(record.type_id for record in columns if not record.is_control)
        if self.types is not None:
            ids &= frozenset(type_id for type_id, schema in DATA_SCHEMAS.items() if schema.name in self.types)
        return ids


def chunk_rows(chunk: LogChunk, cluster_id: str, plan: RowPlan) -> pa.RecordBatch:
    """The rows of a chunk, in order of offset; raises as ``LogChunk`` does."""
    rows = _Rows(chunk, cluster_id, plan)
    arrays = [rows.column(name) for name in plan.schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=plan.schema)


class _Rows:
    def __init__(self, chunk: LogChunk, cluster_id: str, plan: RowPlan) -> None:
        self._chunk = chunk
        self._cluster_id = cluster_id
        self._plan = plan
        #: Rows of the chunk that are wanted, None = all.
        self._kept: npt.NDArray[np.int64] | None = None
        if plan.types is not None:
            wanted = np.array([name.as_py() in plan.types for name in _NAMES])
            self._kept = np.flatnonzero(wanted[self._codes])
        self._count = chunk.count if self._kept is None else len(self._kept)

    def column(self, name: str) -> pa.Array:
        record = RECORD_COLUMNS.get(name)
        if record is not None:
            return self._structs.rows(record, self._kept)
        match name:
            case "cluster_id":
                return self._same(self._cluster_id)
            case "file":
                return self._same(self._chunk.range.file.name)
            case "kind":
                return self._same("checkpoint" if self._chunk.range.file.is_checkpoint else "log")
            case "offset":
                return pa.array(self._wanted(self._chunk.offsets()))
            case "type":
                return _NAMES.take(pa.array(self._wanted(self._codes)))
            case "type_id":
                return pa.array(self._wanted(self._codes % _CONTROL_CODE).astype(np.int16))
            case "version":
                return pa.array(self._wanted(self._chunk.versions()).astype(np.int16))
        return self._of_batch(name)

    def _of_batch(self, name: str) -> pa.Array:
        batches = self._chunk.batches
        match name:
            case "epoch":
                return pa.array(self._spread(batches.epochs))
            case "batch":
                return pa.array(self._spread(batches.base_offsets))
            case "position":
                return pa.array(self._spread(batches.positions))
            case "time":
                return pa.array(self._spread(batches.timestamps) * 1000, pa.timestamp("us", tz="UTC"))
            case "control":
                return pa.array(self._spread(batches.is_control))
        raise AssertionError(name)

    def _spread(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The value of each batch, for each of its records that are wanted."""
        spread: npt.NDArray[Any] = column[self._wanted(self._batch_rows)]
        return spread

    def _wanted(self, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return column if self._kept is None else column[self._kept]

    def _same(self, value: str) -> pa.Array:
        return pa.repeat(pa.scalar(value), self._count)

    @cached_property
    def _batch_rows(self) -> npt.NDArray[np.int64]:
        return self._chunk.batch_rows()

    @cached_property
    def _codes(self) -> npt.NDArray[np.int64]:
        codes = self._chunk.types().astype(np.int64)
        codes += _CONTROL_CODE * self._chunk.batches.is_control[self._batch_rows]
        return codes

    @cached_property
    def _structs(self) -> RecordStructs:
        types = self._plan.data_types
        chunk = self._chunk
        has_mass = types is None or not types.isdisjoint(RUN_CLASSES)
        runs = chunk.runs() if has_mass else []
        return RecordStructs(runs, chunk.records(types), chunk.first_offset, chunk.count)
