"""The tables of a history, one row a version."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_INTS: Final = pa.list_(pa.int32())
#: Texts of which there are few: a number each, and the texts once. Readers see strings.
_FEW: Final = pa.dictionary(pa.int32(), pa.string())
_TEXTS: Final = pa.list_(_FEW)
_TIME: Final = pa.timestamp("us", tz="UTC")

#: What every version has. Null in ``valid_to``: it still holds.
VALIDITY: Final = (
    pa.field("valid_from_offset", pa.int64(), nullable=False),
    pa.field("valid_to_offset", pa.int64()),
    pa.field("valid_from", _TIME, nullable=False),
    pa.field("valid_to", _TIME),
    #: Of the record that made it: below ``valid_from_offset`` inside a transaction.
    pa.field("record_offset", pa.int64(), nullable=False),
    #: created, changed, elr_cleared, or base: it was so in the checkpoint that the history begins with.
    pa.field("change", _FEW, nullable=False),
    #: It ended because what it is about was removed.
    pa.field("removed", pa.bool_(), nullable=False),
)

PARTITION_VERSIONS: Final = pa.schema(
    [
        pa.field("cluster_id", _FEW),
        pa.field("topic_id", _FEW),
        pa.field("topic", _FEW),
        pa.field("partition", pa.int32()),
        pa.field("replicas", _INTS),
        pa.field("isr", _INTS),
        pa.field("removing_replicas", _INTS),
        pa.field("adding_replicas", _INTS),
        pa.field("leader", pa.int32()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("partition_epoch", pa.int32()),
        pa.field("leader_recovery_state", pa.int32()),
        pa.field("directories", _TEXTS),
        pa.field("eligible_leader_replicas", _INTS),
        pa.field("last_known_elr", _INTS),
        *VALIDITY,
    ]
)

_END_POINT: Final = pa.struct(
    [("name", pa.string()), ("host", pa.string()), ("port", pa.int32()), ("security_protocol", pa.int16())]
)
_FEATURE: Final = pa.struct(
    [("name", pa.string()), ("min_supported_version", pa.int16()), ("max_supported_version", pa.int16())]
)

BROKER_VERSIONS: Final = pa.schema(
    [
        pa.field("cluster_id", _FEW),
        pa.field("broker_id", pa.int32()),
        pa.field("broker_epoch", pa.int64()),
        pa.field("incarnation_id", pa.string()),
        pa.field("rack", pa.string()),
        pa.field("fenced", pa.bool_()),
        pa.field("in_controlled_shutdown", pa.bool_()),
        pa.field("log_dirs", _TEXTS),
        pa.field("end_points", pa.list_(_END_POINT)),
        pa.field("features", pa.list_(_FEATURE)),
        *VALIDITY,
    ]
)

TOPIC_VERSIONS: Final = pa.schema(
    [
        pa.field("cluster_id", _FEW),
        pa.field("topic_id", _FEW),
        pa.field("topic", _FEW),
        *VALIDITY,
    ]
)

CONFIG_VERSIONS: Final = pa.schema(
    [
        pa.field("cluster_id", _FEW),
        pa.field("resource_type", pa.int8()),
        pa.field("resource", pa.string()),
        pa.field("name", pa.string()),
        pa.field("value", pa.string()),
        *VALIDITY,
    ]
)

TABLES: Final = {
    "partition_versions": PARTITION_VERSIONS,
    "broker_versions": BROKER_VERSIONS,
    "topic_versions": TOPIC_VERSIONS,
    "config_versions": CONFIG_VERSIONS,
}
#: By table the columns that tell what a version is about, of one cluster: at most one of its versions holds at a time.
KEYS: Final = {
    "partition_versions": ("topic_id", "partition"),
    "broker_versions": ("broker_id",),
    "topic_versions": ("topic_id",),
    "config_versions": ("resource_type", "resource", "name"),
}
