"""The byte layout of a mass record of one shape: derived from the schema tables, used to write and to read.

A layout is a sequence of parts: constant bytes, or a column of fixed width. It covers a record's *value*.
A row form is a layout with the framing of a record around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from quorate.metadata_log.batches.runs import PartitionChangeRun, PartitionRun, Run
from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records import wire
from quorate.metadata_log.records.codec import FRAME_VERSION
from quorate.metadata_log.records.schema import DATA_SCHEMAS, Field
from quorate.metadata_log.records.wire import Buffer

#: Bytes of one element.
_WIDTHS: Final = {"int8": 1, "int32": 4, "uuid": 16}

RUN_CLASSES: Final[dict[int, type[Run]]] = {3: PartitionRun, 5: PartitionChangeRun}
#: The run's names of the two fields that every row has.
_COLUMN_NAMES: Final = {"partition_id": "partition_ids", "topic_id": "topic_ids"}


@dataclass(frozen=True, slots=True)
class Column:
    """One field's bytes in every row."""

    name: str
    #: Position in the value.
    start: int
    element_bytes: int
    #: Elements a row; None = not an array.
    length: int | None
    #: Bytes a row.
    size: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """One shape. Compared by identity: ``layout_of`` gives one object for one shape."""

    type_id: int
    version: int
    columns: tuple[Column, ...]
    #: The value's constant bytes, and 0 where columns lie.
    template: bytes
    #: 0 where columns lie, 255 elsewhere.
    mask: bytes

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return len(self.template)


@dataclass(frozen=True, slots=True, eq=False)
class RowForm:
    """A whole record of one shape, for offset deltas of one width. All positions are within the record."""

    layout: Layout
    delta_start: int
    delta_width: int
    value_start: int
    #: Its constant bytes, and 0 elsewhere.
    template: bytes
    #: 0 where columns lie, 255 elsewhere.
    mask: bytes

    @property
    def size(self) -> int:
        """Bytes of the record."""
        return len(self.template)


class _ColumnWriter:
    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.template = bytearray()
        self.mask = bytearray()

    def constant(self, data: bytes) -> None:
        self.template += data
        self.mask += b"\xff" * len(data)

    def column(self, field: Field, length: int | None) -> None:
        name = _COLUMN_NAMES.get(field.name, field.name)
        width = _WIDTHS[field.element_type]
        column = Column(name, len(self.template), width, length, width * (1 if length is None else length))
        self.columns.append(column)
        self.template += bytes(column.size)
        self.mask += bytes(column.size)


def layout_of(type_id: int, version: int, lengths: Mapping[str, int | None]) -> Layout:
    """The layout of one shape.

    Args:
        lengths: every field that is present, by its run column's name, with its elements a row (None = no array).
            Fields that are not tagged are always present.
    """
    return _layout(type_id, version, tuple(sorted(lengths.items(), key=lambda item: item[0])))


@lru_cache(maxsize=4096)
def _layout(type_id: int, version: int, shape: tuple[tuple[str, int | None], ...]) -> Layout:
    lengths = dict(shape)
    fields = [f for f in DATA_SCHEMAS[type_id].struct.fields if version in f.versions]
    out = _ColumnWriter()
    out.constant(wire.uvarint(FRAME_VERSION) + wire.uvarint(type_id) + wire.uvarint(version))
    for field in fields:
        if field.tag is None:
            _put(out, field, lengths[_COLUMN_NAMES.get(field.name, field.name)])
    tagged = sorted((f for f in fields if f.tag is not None and f.name in lengths), key=lambda f: f.tag or 0)
    out.constant(wire.uvarint(len(tagged)))
    for field in tagged:
        length = lengths[field.name]
        prefix = 0 if length is None else len(wire.uvarint(length + 1))
        size = prefix + _WIDTHS[field.element_type] * (1 if length is None else length)
        out.constant(wire.uvarint(field.tag or 0) + wire.uvarint(size))
        _put(out, field, length)
    return Layout(type_id, version, tuple(out.columns), bytes(out.template), bytes(out.mask))


@lru_cache(maxsize=4096)
def row_form(layout: Layout, delta_width: int) -> RowForm:
    """The form of a record as we and Kafka frame it: null key, no headers, every length in as few bytes as can be."""
    tail = b"\x01" + wire.varint(layout.size)  # null key, then the value's length
    head = wire.varint(2 + delta_width + len(tail) + layout.size + 1) + b"\0\0"
    delta_start = len(head)
    value_start = delta_start + delta_width + len(tail)
    template = head + bytes(delta_width) + tail + layout.template + b"\0"
    mask = b"\xff" * value_start + layout.mask + b"\xff"
    return RowForm(layout, delta_start, delta_width, value_start, template, mask)


def _put(out: _ColumnWriter, field: Field, length: int | None) -> None:
    if length is not None:
        out.constant(wire.uvarint(length + 1))
    out.column(field, length)


def read_layout(value: Buffer) -> Layout | None:
    """The layout of the mass record whose value this is; None where a run cannot hold it.

    A run cannot hold a tag that the schema does not know, an array written as null, or a value that is malformed:
    the row path takes those, and says what is wrong with them.
    """
    try:
        return _read_layout(value)
    except (MalformedData, *wire.DECODE_ERRORS):
        return None


def _read_layout(value: Buffer) -> Layout | None:
    type_id, version = value[1], value[2]
    schema = DATA_SCHEMAS[type_id]
    if value[0] != FRAME_VERSION or version not in schema.versions:
        return None
    fields = [f for f in schema.struct.fields if version in f.versions]
    by_tag = {f.tag: f for f in fields if f.tag is not None}
    lengths: dict[str, int | None] = {}
    pos = 3
    for field in fields:
        if field.tag is None:
            pos = _measure(value, pos, field, lengths)
    tag_count, pos = wire.read_uvarint(value, pos)
    for _ in range(tag_count):
        tag, pos = wire.read_uvarint(value, pos)
        size, pos = wire.read_uvarint(value, pos)
        field_or_none = by_tag.get(tag)
        if field_or_none is None or _measure(value, pos, field_or_none, lengths) != pos + size:
            return None
        pos += size
    if pos != len(value):
        return None
    layout = layout_of(type_id, version, lengths)
    # The same shape always gives the same bytes: anything else here is not how Kafka writes it.
    return layout if layout.size == len(value) and _has_constants(value, layout) else None


def _has_constants(value: Buffer, layout: Layout) -> bool:
    differs = int.from_bytes(value, "big") ^ int.from_bytes(layout.template, "big")
    return differs & int.from_bytes(layout.mask, "big") == 0


def _measure(value: Buffer, pos: int, field: Field, lengths: dict[str, int | None]) -> int:
    name = _COLUMN_NAMES.get(field.name, field.name)
    if not field.is_array:
        lengths[name] = None
        return pos + _WIDTHS[field.element_type]
    length, pos = wire.read_size(value, pos)
    if length < 0:
        raise MalformedData(f"{field.name} is null")
    lengths[name] = length
    return pos + length * _WIDTHS[field.element_type]
