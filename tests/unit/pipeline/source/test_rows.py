"""Chunks as Arrow rows: every record of real logs, field by field the same as read one by one."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from quorate.metadata_log.batches.batch import control_batch, iter_records, place_batch
from quorate.metadata_log.directory.reader import find_files, iter_batches
from quorate.metadata_log.ids import uuid_text
from quorate.metadata_log.records.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    SnapshotHeaderRecord,
    VotersRecord,
)
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS, StructSchema
from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.files.ranges import all_ranges, plan_checkpoint, plan_log
from quorate.pipeline.files.walk import read_range
from quorate.pipeline.source.rows import RowPlan, chunk_rows
from quorate.pipeline.source.schema import COLUMN_TYPES, RECORD_COLUMNS, UNCHANGED, column_name
from quorate.pipeline.tables.uuid_column import uuid_texts
from tests.pipeline_logs import KAFKA, KAFKA_LOG, LogWriter

EVERY_COLUMN = pa.schema(list(COLUMN_TYPES.items()))


def rows_of(path: Path, plan: RowPlan | None = None, *, chunk_bytes: int = 100_000) -> list[dict[str, Any]]:
    (cluster,) = find_inputs([str(path)], cluster_id=None)
    tasks = plan_log(cluster) + [task for file in cluster.checkpoints for task in plan_checkpoint(cluster, file)]
    batches = (
        chunk_rows(chunk, cluster.cluster_id, plan or RowPlan(EVERY_COLUMN))
        for one in all_ranges(tasks)
        for chunk in read_range(one, chunk_bytes=chunk_bytes)
    )
    return [row for batch in batches for row in batch.to_pylist()]


def as_value(name: str, struct: StructSchema, value: Any) -> dict[str, Any]:
    """A record as its struct, by the plainest way there is."""
    found = {}
    for field in struct.fields:
        item = getattr(value, field.name)
        unchanged = (name, field.name) in UNCHANGED and UNCHANGED[name, field.name] == item
        items = item if field.is_array and item is not None else [item]
        if field.struct is not None:
            items = [as_value("", field.struct, one) for one in items]
        elif field.element_type == "uuid":
            items = [None if one is None else uuid_text(one) for one in items]
        found[field.name] = None if item is None or unchanged else list(items) if field.is_array else items[0]
    return found


def expected_rows(path: Path, cluster_id: str) -> Iterator[dict[str, Any]]:
    for file in find_files(path):
        for batch in iter_batches(file):
            header = batch.header
            for one in iter_records(batch.data):
                schema = SCHEMA_OF_CLASS[type(one.record)]
                row = dict.fromkeys(COLUMN_TYPES)
                row |= {
                    "cluster_id": cluster_id, "file": str(file.path), "offset": one.offset, "epoch": header.epoch,
                    "kind": "checkpoint" if file.is_checkpoint else "log", "batch": header.base_offset,
                    "position": batch.position, "control": header.is_control, "type": schema.name,
                    "time": datetime.fromtimestamp(header.timestamp / 1000, UTC), "type_id": schema.type_id,
                    "version": one.version,
                }  # fmt: skip
                if schema.struct.fields:
                    row[column_name(schema)] = as_value(schema.name, schema.struct, one.record)
                yield row


@pytest.mark.parametrize("moment", ["static/m1", "static/m2", "dynamic-small/m1"])
def test_rows_of_a_real_log_are_its_records(moment: str) -> None:
    """Log and checkpoints, every column."""
    path = KAFKA / moment / "log"
    if not path.exists():
        pytest.skip(f"{moment} is not among the captures here")
    (cluster,) = find_inputs([str(path)])

    assert rows_of(path) == list(expected_rows(path, cluster.cluster_id))


def test_rows_of_a_few_columns_are_the_same_columns() -> None:
    """What is not asked for is left out, and changes nothing else."""
    names = ["partition_change", "offset", "time", "leader_change"]
    whole = rows_of(KAFKA_LOG)

    found = rows_of(KAFKA_LOG, RowPlan(pa.schema([(name, COLUMN_TYPES[name]) for name in names])))

    assert found == [{name: row[name] for name in names} for row in whole]


def test_rows_of_some_types_are_those_rows() -> None:
    """Control records have types too."""
    types = frozenset({"TopicRecord", "PartitionRecord", "LeaderChangeMessage"})
    whole = rows_of(KAFKA_LOG)

    assert rows_of(KAFKA_LOG, RowPlan(EVERY_COLUMN, types)) == [row for row in whole if row["type"] in types]


def test_odd_records_have_rows_like_all_others(tmp_path: Path) -> None:
    """Old versions, empty and absent arrays, records between mass records, nested structs."""
    log = LogWriter(tmp_path / "node")
    ids = [bytes([n]) * 16 for n in range(5)]
    log.append([PartitionRecord(n, ids[0], (n,), (), leader=-1, leader_epoch=0, partition_epoch=0) for n in range(40)],
               [n % 2 for n in range(40)])  # fmt: skip
    log.append(
        [
            PartitionChangeRecord(1, ids[0], isr=(), leader=-1),
            BrokerRegistrationChangeRecord(1, 5, fenced=-1),
            BrokerRegistrationChangeRecord(1, 5, fenced=0, log_dirs=(ids[1], ids[2])),
            PartitionChangeRecord(1, ids[1], directories=(ids[3],), leader_recovery_state=0),
            *(PartitionChangeRecord(n, ids[4], replicas=tuple(range(n)), leader=-2) for n in range(40)),
        ],
        [0, 1, 2, 1, *[2] * 40],
    )
    control: list[tuple[Record, int]] = [(SnapshotHeaderRecord(5), 0), (VotersRecord(()), 0)]
    with log.segment.open("ab") as stream:
        stream.write(place_batch(control_batch(control, 5), log.offset, 1))

    assert rows_of(log.path) == list(expected_rows(log.path, "cluster-a"))


def test_uuid_column_has_the_texts_of_kafka() -> None:
    """All bytes, none, and whatever chance gives."""
    random_bytes = Random(1).randbytes(16 * 500)
    uuids = np.frombuffer(bytes(16) + b"\xff" * 16 + random_bytes, np.uint8).reshape(-1, 16)

    assert uuid_texts(uuids).to_pylist() == [uuid_text(row.tobytes()) for row in uuids]
    assert uuid_texts(uuids[:0]).to_pylist() == []


def test_every_type_with_fields_has_a_column() -> None:
    """Named as documented."""
    assert {"partition_change", "partition", "topic", "config", "register_broker", "kraft_version", "voters",
            "leader_change", "broker_registration_change"} <= RECORD_COLUMNS.keys()  # fmt: skip
    assert "no_op" not in RECORD_COLUMNS
