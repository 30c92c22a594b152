"""The field tables of every record, read from ``schemas.json`` (facts of Kafka 4.3.1's own schemas).

Names go three ways: ``LeaderEpoch`` in the schema, ``leader_epoch`` in our classes, ``leaderEpoch`` in JSON.
There is one object for each schema and field: they are compared, and looked up, by identity.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from quorate.metadata_log.ids import ZERO_UUID
from quorate.metadata_log.records import records


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A closed range of record versions."""

    first: int
    last: int

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


NO_VERSIONS: Final = VersionRange(0, -1)
_OPEN_END: Final = 32_767


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of a record or of a struct in it."""

    name: str
    json_name: str
    #: A primitive's name, or that of a struct.
    element_type: str
    is_array: bool
    versions: VersionRange
    nullable: VersionRange
    #: None = not tagged.
    tag: int | None
    default: Any
    struct: StructSchema | None


@dataclass(frozen=True, slots=True, eq=False)
class StructSchema:
    """A class and its fields in the order of the wire."""

    cls: type
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RecordSchema:
    """One record type.

    ``type_id`` is the api key of a data record, or the control type in the key of a control record.
    """

    name: str
    #: The type in Kafka's dumps, such as ``PARTITION_CHANGE_RECORD`` or ``LeaderChange``.
    json_type: str
    type_id: int
    is_control: bool
    versions: VersionRange
    struct: StructSchema


#: Control types (Kafka's ``ControlRecordType``), and the names Kafka's dump gives them.
_CONTROL_TYPES: Final = {
    "LeaderChangeMessage": (2, "LeaderChange"),
    "SnapshotHeaderRecord": (3, "SnapshotHeader"),
    "SnapshotFooterRecord": (4, "SnapshotFooter"),
    "KRaftVersionRecord": (5, "KRaftVersion"),
    "VotersRecord": (6, "KRaftVoters"),
}

#: Structs whose schema name says too little, or stands for two things.
_STRUCT_CLASSES: Final = {
    ("VotersRecord", "Voter"): records.VotersVoter,
    ("VotersRecord", "Endpoint"): records.VoterEndpoint,
}

_ZERO_VALUES: Final = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "uuid": ZERO_UUID,
    "float64": 0.0,
}


def _versions(text: str | None) -> VersionRange:
    if text is None:
        return NO_VERSIONS
    if text.endswith("+"):
        return VersionRange(int(text[:-1]), _OPEN_END)
    first, _, last = text.partition("-")
    return VersionRange(int(first), int(last or first))


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.replace("KRaft", "Kraft")).lower()


def _default(raw: dict[str, Any], element_type: str, is_array: bool, struct: StructSchema | None) -> Any:
    text = raw.get("default")
    if text == "null":
        return None
    if is_array:
        return ()
    if text in ("true", "false"):
        return text == "true"
    if text is not None:
        return int(text)
    if "nullableVersions" in raw:
        return None
    return struct.cls() if struct else _ZERO_VALUES.get(element_type, 0)


def _field(record: str, raw: dict[str, Any], commons: dict[str, Any]) -> Field:
    is_array = raw["type"].startswith("[]")
    element_type = raw["type"].removeprefix("[]")
    nested = raw.get("fields") or commons.get(element_type)
    struct = None
    if nested is not None:
        cls = _STRUCT_CLASSES.get((record, element_type)) or getattr(records, element_type)
        struct = StructSchema(cls, tuple(_field(record, f, commons) for f in nested))
    return Field(
        name=_snake_case(raw["name"]),
        json_name=raw["name"][0].lower() + raw["name"][1:],
        element_type=element_type,
        is_array=is_array,
        versions=_versions(raw["versions"]),
        nullable=_versions(raw.get("nullableVersions")),
        tag=raw.get("tag"),
        default=_default(raw, element_type, is_array, struct),
        struct=struct,
    )


def _record(name: str, raw: dict[str, Any]) -> RecordSchema:
    is_control = raw["apiKey"] is None
    if is_control:
        type_id, json_type = _CONTROL_TYPES[name]
    else:
        type_id, json_type = raw["apiKey"], re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
    commons = {c["name"]: c["fields"] for c in raw.get("commonStructs", ())}
    # A control record begins with its own version, which the codec writes: it is not a field of ours.
    fields = tuple(_field(name, f, commons) for f in raw["fields"] if not (is_control and f["name"] == "Version"))
    return RecordSchema(
        name=name,
        json_type=json_type,
        type_id=type_id,
        is_control=is_control,
        versions=_versions(raw["validVersions"]),
        struct=StructSchema(getattr(records, name), fields),
    )


def _load() -> tuple[RecordSchema, ...]:
    table = json.loads(resources.files(__package__).joinpath("schemas.json").read_text("utf-8"))
    return tuple(_record(name, raw) for name, raw in table.items())


SCHEMAS: Final = _load()
SCHEMA_OF_CLASS: Final[dict[type, RecordSchema]] = {s.struct.cls: s for s in SCHEMAS}
DATA_SCHEMAS: Final = {s.type_id: s for s in SCHEMAS if not s.is_control}
CONTROL_SCHEMAS: Final = {s.type_id: s for s in SCHEMAS if s.is_control}
