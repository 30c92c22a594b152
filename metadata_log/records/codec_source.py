"""Readers and writers of one struct in one version, written out as Python source from the schema tables.

Why source: code that interprets the tables spends most of its time finding out, for every record, what the tables have
said before. Written out, reading a record costs little more than making its object. The source says what a person
would write: fixed-width neighbours in one ``struct`` call, the one-byte case of every length in line, tags as a chain
of ifs. ``linecache`` has it, so tracebacks and debuggers show its lines.

Rules of a reader: ``read(buf, pos)``, where ``buf`` is ``bytes``, returns ``(object, next position)`` and raises
``MalformedData`` or one of ``wire.DECODE_ERRORS``. Slicing never fails by itself, so each slice is preceded by a check
against the end. A count that was read is held against the bytes left before anything of its size is made.
Rules of a writer: ``write(value)`` returns ``bytes`` and raises ``MalformedData`` or one of ``ENCODE_ERRORS``.
"""

from __future__ import annotations

import dataclasses
import linecache
import struct
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby
from typing import Any, Final

from quorate.metadata_log.errors import MalformedData
from quorate.metadata_log.records import wire
from quorate.metadata_log.records.schema import Field, StructSchema

Reader = Callable[[bytes, int], tuple[Any, int]]
Writer = Callable[[Any], bytes]

#: What a value of the wrong kind raises in a writer.
ENCODE_ERRORS: Final = (struct.error, TypeError, OverflowError, AttributeError, UnicodeEncodeError)

#: ``struct`` codes of the types that have a fixed width.
_FIXED_CODES: Final = {
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "bool": "?",
    "uuid": "16s",
}
#: Element types whose arrays ``wire`` reads and writes at once.
_WHOLE_ARRAYS: Final = ("int32", "uuid")

_Lines = list[str]


class _Names:
    """The objects that the names in one piece of source stand for."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {"wire": wire, "MalformedData": MalformedData, "new": object.__new__}

    def add(self, stem: str, value: Any) -> str:
        """A name for this object, unlike all others."""
        name = f"{stem}_{len(self.values)}"
        self.values[name] = value
        return name


def _indented(lines: Iterable[str]) -> _Lines:
    return ["    " + line for line in lines]


def _compiled(title: str, lines: _Lines, names: _Names) -> Any:
    """The function that the source defines; its first line is the ``def``."""
    text = "\n".join(lines) + "\n"
    file_name = f"<{title}>"
    linecache.cache[file_name] = (len(text), None, text.splitlines(keepends=True), file_name)
    exec(compile(text, file_name, "exec"), names.values)
    return names.values[lines[0].removeprefix("def ").partition("(")[0]]


def _default(names: _Names, field: Field) -> str:
    return repr(field.default) if field.struct is None or field.is_array else names.add("default", field.default)


def _is_fixed(field: Field) -> bool:
    return field.element_type in _FIXED_CODES and not field.is_array


def _split(schema: StructSchema, version: int) -> tuple[list[Field], list[Field], list[Field]]:
    """The fields that are plain, tagged (by tag) and absent in this version."""
    present = [field for field in schema.fields if version in field.versions]
    plain = [field for field in present if field.tag is None]
    tagged = sorted((field for field in present if field.tag is not None), key=lambda field: field.tag or 0)
    return plain, tagged, [field for field in schema.fields if version not in field.versions]


# --- reading -----------------------------------------------------------------------------------------


@cache
def struct_reader(schema: StructSchema, version: int) -> Reader:
    """The function that reads this struct."""
    names = _Names()
    plain, tagged, absent = _split(schema, version)
    body = [f"f_{field.name} = {_default(names, field)}" for field in (*absent, *tagged)]
    for is_fixed, fields in groupby(plain, _is_fixed):
        if is_fixed:
            body += _read_fixed(names, list(fields))
        else:
            body += [line for field in fields for line in _read_field(names, field, version)]
    body += _read_tags(names, tagged, version)
    body += _make_object(names, schema.cls)
    title = f"reader of {schema.cls.__name__} version {version}"
    return _compiled(title, ["def read(buf, pos):", *_indented(body)], names)  # type: ignore[no-any-return]


def _make_object(names: _Names, cls: type) -> _Lines:
    # A frozen class sets its fields through ``object.__setattr__``, name by name. Its slots do it in half the time, and
    # making the object is half of reading a record.
    setters = [(names.add("set", getattr(cls, field.name).__set__), field.name) for field in dataclasses.fields(cls)]
    lines = [f"{setter}(made, f_{name})" for setter, name in setters]
    return [f"made = new({names.add('cls', cls)})", *lines, "return made, pos"]


def _read_fixed(names: _Names, fields: list[Field]) -> _Lines:
    packer = struct.Struct(">" + "".join(_FIXED_CODES[field.element_type] for field in fields))
    targets = "".join(f"f_{field.name}, " for field in fields)
    return [f"{targets}= {names.add('unpack', packer.unpack_from)}(buf, pos)", f"pos += {packer.size}"]


def _read_field(names: _Names, field: Field, version: int) -> _Lines:
    """Lines that set ``f_NAME`` and move ``pos`` past the field."""
    if _is_fixed(field):
        return _read_fixed(names, [field])
    if field.struct is not None and not field.is_array:
        return [f"f_{field.name}, pos = {names.add('read', struct_reader(field.struct, version))}(buf, pos)"]
    is_nullable = version in field.nullable
    null = f"f_{field.name} = None" if is_nullable else f"raise MalformedData('{field.name} must not be null')"
    return [
        "size = buf[pos] - 1",  # written plus 1, so that 0 is null
        "pos += 1",
        "if size > 126:",
        "    size, pos = wire.read_size(buf, pos - 1)",
        "if size < 0:",
        f"    {null}",
        "else:",
        *_indented(_read_sized(names, field, version)),
    ]


def _read_sized(names: _Names, field: Field, version: int) -> _Lines:
    """Lines that read a field of ``size`` bytes or elements."""
    target = f"f_{field.name}"
    if not field.is_array:
        decoded = ".decode()" if field.element_type == "string" else ""
        return [
            "end = pos + size",
            "if size > 126 or end > len(buf):",  # long, or wrong: then this says what is wrong
            f"    {target}, pos = wire.cut_{field.element_type}(buf, pos, size)",
            "else:",
            f"    {target} = buf[pos:end]{decoded}",
            "    pos = end",
        ]
    if field.element_type in _WHOLE_ARRAYS:
        return [f"{target}, pos = wire.read_{field.element_type}s(buf, pos, size)"]
    read = "wire.read_string" if field.struct is None else names.add("read", struct_reader(field.struct, version))
    return [f"{target}, pos = wire.read_elements({read}, buf, pos, size)"]


def _read_tags(names: _Names, tagged: list[Field], version: int) -> _Lines:
    choices: _Lines = []
    for field in tagged:
        choices.append(f"{'elif' if choices else 'if'} tag == {field.tag}:")
        choices += _indented(_read_field(names, field, version))
    # A tag of a later version is skipped, as Kafka does: that is what tags are for.
    choices += ["else:", "    pos = tag_end"] if choices else ["pos = tag_end"]
    return [
        "count = buf[pos]",
        "pos += 1",
        "if count > 127:",
        "    count, pos = wire.read_uvarint(buf, pos - 1)",
        "while count:",  # the end of the buffer bounds it: each takes two bytes at least
        "    count -= 1",
        "    tag = buf[pos]",
        "    tag_size = buf[pos + 1]",
        "    pos += 2",
        "    if tag > 127 or tag_size > 127:",
        "        tag, pos = wire.read_uvarint(buf, pos - 2)",
        "        tag_size, pos = wire.read_uvarint(buf, pos)",
        "    tag_end = pos + tag_size",
        "    if tag_end > len(buf):",
        "        raise MalformedData(f'tagged field {tag} of {tag_size} bytes, {len(buf) - pos} there')",
        *_indented(choices),
        "    if pos != tag_end:",
        "        raise MalformedData(f'tagged field {tag} does not fill its {tag_size} bytes')",
    ]


# --- writing -----------------------------------------------------------------------------------------


@cache
def struct_writer(schema: StructSchema, version: int) -> Writer:
    """The function that writes this struct."""
    names = _Names()
    plain, tagged, absent = _split(schema, version)
    title = f"{schema.cls.__name__} version {version}"
    body: _Lines = []
    for field in absent:
        body += [
            f"if value.{field.name} {_unlike_default(names, field)}:",
            f"    raise MalformedData('{title} cannot carry {field.name}')",
        ]
    body += [line for field in plain for line in _check(field, version)]
    pieces: list[str] = []
    for is_fixed, fields in groupby(plain, _is_fixed):
        if is_fixed:
            pieces.append(_write_fixed(names, list(fields)))
            continue
        for field in fields:
            if field.element_type == "string" and not field.is_array:
                body += _write_string(field)
                pieces.append(f"f_{field.name}")
            else:
                pieces.append(_write_field(names, field, version))
    body += _write_tags(names, tagged, version)
    pieces.append("wire.SINGLE_BYTES[count] + tags" if tagged else repr(b"\0"))
    body.append(f"return {' + '.join(pieces)}")
    return _compiled(f"writer of {title}", ["def write(value):", *_indented(body)], names)  # type: ignore[no-any-return]


def _unlike_default(names: _Names, field: Field) -> str:
    return "is not None" if field.default is None else f"!= {_default(names, field)}"


def _check(field: Field, version: int) -> _Lines:
    """Lines that refuse what the encoding of this field would silently change or cannot say."""
    if field.element_type == "uuid" and not field.is_array:
        return [f"if len(value.{field.name}) != 16:", f"    raise wire.bad_uuid(value.{field.name})"]
    can_be_null = field.is_array or field.element_type in ("string", "bytes")
    if can_be_null and version not in field.nullable:
        return [f"if value.{field.name} is None:", f"    raise MalformedData('{field.name} must not be null')"]
    return []


def _write_fixed(names: _Names, fields: list[Field]) -> str:
    packer = struct.Struct(">" + "".join(_FIXED_CODES[field.element_type] for field in fields))
    return f"{names.add('pack', packer.pack)}({', '.join(f'value.{field.name}' for field in fields)})"


def _write_string(field: Field) -> _Lines:
    """Lines that set ``f_NAME`` to the bytes of a string, which may be null if ``_check`` let that pass."""
    return [
        f"data = value.{field.name}",
        "data = None if data is None else data.encode()",
        "if data is None or len(data) > 126:",
        f"    f_{field.name} = wire.compact_string(value.{field.name})",
        "else:",
        f"    f_{field.name} = wire.SINGLE_BYTES[len(data) + 1] + data",
    ]


def _write_field(names: _Names, field: Field, version: int) -> str:
    """An expression for the bytes of a field."""
    value = f"value.{field.name}"
    if _is_fixed(field):
        return _write_fixed(names, [field])
    if field.struct is not None:
        write = names.add("write", struct_writer(field.struct, version))
        return f"wire.compact_elements({write}, {value})" if field.is_array else f"{write}({value})"
    if not field.is_array:
        return f"wire.compact_{field.element_type}({value})"
    if field.element_type in _WHOLE_ARRAYS:
        return f"wire.compact_{field.element_type}s({value})"
    return f"wire.compact_elements(wire.plain_string, {value})"


def _write_tags(names: _Names, tagged: list[Field], version: int) -> _Lines:
    """Lines that set ``tags`` to the tagged fields that are not at their default, and ``count`` to their number."""
    lines = ["count = 0", "tags = b''"] if tagged else []
    for field in tagged:
        lines += [
            f"if value.{field.name} {_unlike_default(names, field)}:",
            *_indented(_check(field, version)),
            f"    data = {_write_field(names, field, version)}",
            f"    tags += {wire.uvarint(field.tag or 0)!r} + wire.uvarint(len(data)) + data",
            "    count += 1",
        ]
    return lines
