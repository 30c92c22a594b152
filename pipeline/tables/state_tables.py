"""A state as tables, and back: what ``replay`` writes, and what a later replay begins with.

``partitions``, ``topics``, ``brokers`` and ``configs`` are for questions. ``entries`` has every record of the state
that is no partition's, as JSON: with ``partitions`` it is the whole state, unless secrets are hidden in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from quorate.metadata_log.batches.runs import ByteColumn
from quorate.metadata_log.ids import uuid_from_text, uuid_text
from quorate.metadata_log.records.hidden_values import IsSecret, shown_data, shown_value
from quorate.metadata_log.records.json_form import json_type, record_from_data
from quorate.metadata_log.records.records import Record
from quorate.metadata_log.records.schema import SCHEMA_OF_CLASS
from quorate.pipeline.fold.catalogue import Catalogue
from quorate.pipeline.fold.elements import Elements
from quorate.pipeline.fold.fields import ALL_FIELDS, BASE, DIRECTORIES, ID_LISTS, LISTS, uuid_array
from quorate.pipeline.fold.timeline import BASE_OFFSET, Located
from quorate.pipeline.tables.history_schema import (
    BROKER_VERSIONS,
    CONFIG_VERSIONS,
    PARTITION_VERSIONS,
    TOPIC_VERSIONS,
    VALIDITY,
)
from quorate.pipeline.tables.uuid_column import uuid_texts

_SCALARS: Final = ("leader", "leader_epoch", "partition_epoch", "leader_recovery_state")
#: Partitions of a base come behind its topics.
_PARTITIONS_OFFSET: Final = -1


def _of_state(versions: pa.Schema) -> pa.Schema:
    """A table of versions without what only a version has."""
    return pa.schema([field for field in versions if field not in VALIDITY])


PARTITIONS: Final = _of_state(PARTITION_VERSIONS)
TABLES: Final = {
    "partitions": PARTITIONS,
    "topics": _of_state(TOPIC_VERSIONS),
    "brokers": _of_state(BROKER_VERSIONS),
    "configs": _of_state(CONFIG_VERSIONS),
    "entries": pa.schema(
        [("cluster_id", pa.string()), ("kind", pa.string()), ("version", pa.int16()), ("data", pa.string())]
    ),
}


def partitions_table(state: Elements, names: dict[bytes, str], cluster_id: str) -> pa.Table:
    """The partitions of a state."""
    columns: dict[str, Any] = {
        "cluster_id": pa.array([cluster_id] * len(state)),
        "topic_id": uuid_texts(state.topic_ids),
        "topic": pa.array([names[row.tobytes()] for row in state.topic_ids], pa.string()),
        "partition": state.partition_ids,
        **{name: state.lists[name] for name in ID_LISTS},
        **{name: getattr(state, name) for name in _SCALARS},
        DIRECTORIES: directory_texts(state.lists[DIRECTORIES]),
    }
    return pa.table({field.name: pa.array(columns[field.name]) for field in PARTITIONS})


def directory_texts(directories: pa.Array) -> pa.Array:
    """Lists of directories as lists of their texts, each text once."""
    encoded = directories.flatten().dictionary_encode()
    texts = pa.array([uuid_text(uuid) for uuid in encoded.dictionary.to_pylist()], pa.string())
    ends = np.concatenate([[0], np.cumsum(directories.value_lengths().to_numpy())]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pa.DictionaryArray.from_arrays(encoded.indices, texts))


def elements_of(partitions: pa.Table) -> Elements:
    """The partitions of a table as a base."""
    table = partitions.combine_chunks()
    count = table.num_rows
    lists = {name: _one(table.column(name)).cast(pa.list_(pa.int32())) for name in ID_LISTS}
    texts = _one(table.column(DIRECTORIES))
    ends = np.concatenate([[0], np.cumsum(texts.value_lengths().to_numpy())]).astype(np.int32)
    lists[DIRECTORIES] = pa.ListArray.from_arrays(pa.array(ends), uuid_array(_uuids(texts.flatten())))
    zeros = np.zeros(count, np.int32)
    return Elements(
        topic_ids=_uuids(_one(table.column("topic_id"))),
        partition_ids=_ints(table, "partition"),
        flags=np.full(count, ALL_FIELDS | BASE, np.uint16),
        first_offset=np.full(count, _PARTITIONS_OFFSET, np.int64),
        last_offset=np.full(count, _PARTITIONS_OFFSET, np.int64),
        changes=zeros,
        leader_changes=zeros,
        lists={name: lists[name] for name in LISTS},
        **{name: _ints(table, name) for name in _SCALARS},
    )


def _one(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _ints(table: pa.Table, name: str) -> Any:
    return _one(table.column(name)).to_numpy().astype(np.int32)


def _uuids(texts: pa.Array) -> ByteColumn:
    encoded = texts.cast(pa.string()).dictionary_encode()
    distinct = b"".join(uuid_from_text(text) for text in encoded.dictionary.to_pylist())
    found: ByteColumn = np.frombuffer(distinct, np.uint8).reshape(-1, 16)[encoded.indices.to_numpy()]
    return found


# --- the rest ----------------------------------------------------------------------------------------


def catalogue_tables(catalogue: Catalogue, cluster_id: str, is_secret: IsSecret) -> dict[str, pa.Table]:
    """All tables but that of partitions, with `(hidden)` in the place of secrets."""
    rows: dict[str, list[dict[str, Any]]] = {
        "topics": [{"topic_id": uuid_text(topic.topic_id), "topic": topic.name} for topic in catalogue.topics.values()],
        "brokers": [_broker(broker) for broker in catalogue.brokers.values()],
        "configs": [
            {
                "resource_type": config.resource_type,
                "resource": config.resource_name,
                "name": config.name,
                "value": shown_value(config.resource_type, config.name, config.value, is_secret),
            }
            for configs in catalogue.configs.values()
            for config in configs.values()
        ],
        "entries": [_entry(record, is_secret) for record in (*catalogue.topics.values(), *catalogue.entries())],
    }
    return {
        name: pa.Table.from_pylist([{"cluster_id": cluster_id, **row} for row in found], TABLES[name])
        for name, found in rows.items()
    }


def _broker(broker: Any) -> dict[str, Any]:
    return {
        "broker_id": broker.broker_id,
        "broker_epoch": broker.broker_epoch,
        "incarnation_id": uuid_text(broker.incarnation_id),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
        "log_dirs": [uuid_text(directory) for directory in broker.log_dirs],
        "end_points": [_fields(point) for point in broker.end_points],
        "features": [_fields(feature) for feature in broker.features],
    }


def _fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__slots__}


def _entry(record: Record, is_secret: IsSecret) -> dict[str, Any]:
    version = SCHEMA_OF_CLASS[type(record)].versions.last
    data = json.dumps(shown_data(record, version, is_secret), ensure_ascii=False, sort_keys=True)
    return {"kind": json_type(record), "version": version, "data": data}


def records_of(entries: Iterable[dict[str, Any]]) -> Sequence[Located]:
    """The records of a table of entries, as a base's."""
    return [
        Located(BASE_OFFSET + at, record_from_data(row["kind"], row["version"], json.loads(row["data"])).record)
        for at, row in enumerate(entries)
    ]
