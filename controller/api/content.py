"""Bodies and parameters: from bytes to models and back, with a typed refusal for everything that does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgpack
from pydantic import BaseModel, ValidationError

from quorate.controller.api.errors import HttpRefusal
from quorate.controller.protocol.problems import message_of, place_of
from quorate.controller.protocol.types import SecretMessage

if TYPE_CHECKING:
    # A client needs no server: commands should start fast.
    from aiohttp import web

JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"
#: What broker RPCs speak.
JSON_OR_MSGPACK: Final = (JSON, MSGPACK)
BATCHES: Final = "application/vnd.quorate.batches"
OCTETS: Final = "application/octet-stream"

#: Problems named in one refusal: a body with a wrong field in each of 10,000 items must not be answered with megabytes.
_PROBLEMS_SHOWN: Final = 10
#: Characters of a wrong value that are shown.
_VALUE_CHARS: Final = 100
_READ_BYTES: Final = 65_536
#: Lists, objects and what is in them, of one body: more than 10,000 partitions with the brokers of each need. A body of
#: a few megabytes may have millions, which take seconds to make, and a gigabyte, before the first of them is refused.
_PARTS_MAX: Final = 500_000
#: Lists and objects alone: only these are counted in msgpack.
_LISTS_MAX: Final = 200_000
#: Above this many problems none is named: that would take longer than to find them.
_PROBLEMS_MAX: Final = 20_000
#: More than any message has fields.
_KEYS_MAX: Final = 64
#: Of JSON: there are at least as many as there are parts, but for one.
_SEPARATORS: Final = (b",", b"[", b"{")
#: Models whose JSON is made in one call.
_MODELS_AT_ONCE: Final = 256

M = TypeVar("M", bound=BaseModel)


async def read_body(request: web.Request, bytes_max: int, grow: Callable[[int], None]) -> bytes:
    """The whole body. ``grow`` makes room for it: all of it, before it is read, where it says its size.

    Raises:
        HttpRefusal: 413, more than ``bytes_max``; read no further than that. 417, it expects what nobody promises.
        Overloaded: there is no room.
    """
    announced = request.content_length
    if announced is not None:
        if announced > bytes_max:
            raise _too_large(announced, bytes_max)
        grow(announced)
    await _ask_for_body(request)
    parts = []
    size = 0
    while chunk := await request.content.read(_READ_BYTES):
        size += len(chunk)
        if size > bytes_max:
            raise _too_large(size, bytes_max)
        if announced is None:
            grow(len(chunk))
        parts.append(chunk)
    return b"".join(parts)


async def _ask_for_body(request: web.Request) -> None:
    """A client may wait with a body until it is asked for it, which nobody is who may not send one."""
    expected = request.headers.get("Expect")
    if expected is None or request.version < (1, 1):
        return
    if expected.lower() != "100-continue":
        raise HttpRefusal(417, f"header Expect: {expected[:_VALUE_CHARS]!r} is not known, 100-continue is")
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # of the answer, which is still to be begun


def _too_large(size: int, bytes_max: int) -> HttpRefusal:
    return HttpRefusal(
        413, f"the body has {size} bytes or more, {bytes_max} is the most", details={"bytes_max": bytes_max}
    )


def body_media(request: web.Request, taken: Sequence[str]) -> str:
    """The content type of a body.

    Raises:
        HttpRefusal: 415, none that is taken here, or the body is compressed.
    """
    coding = request.headers.get("Content-Encoding", "identity")
    if coding.lower() != "identity":
        raise HttpRefusal(415, f"content encoding {coding[:_VALUE_CHARS]!r} is not taken here: send bodies as they are")
    # aiohttp says application/octet-stream where the header is missing.
    if request.content_type not in taken:
        raise HttpRefusal(415, f"content type {request.content_type!r} is not taken here: send {' or '.join(taken)}")
    return request.content_type


def decode_body(model: type[M], data: bytes, media: str) -> M:
    """The body as a model.

    Raises:
        HttpRefusal: 400, it is not JSON (msgpack), or not what the model says; names field, value and rule.
    """
    try:
        if media == MSGPACK:
            return model.model_validate(_unpack_bounded(data))
        if sum(map(data.count, _SEPARATORS)) > _PARTS_MAX:
            raise HttpRefusal(400, f"the body has more than {_PARTS_MAX} parts: lists, objects and what is in them")
        return model.model_validate_json(data)
    except ValidationError as error:
        if issubclass(model, SecretMessage):
            # Neither the answer nor a traceback may show what was sent.
            raise _invalid("body", error, shows_values=False) from None
        raise _invalid("body", error) from error


def unpack(data: bytes, **limits: Any) -> Any:
    """The content of a msgpack body. ``limits``: of ``msgpack.unpackb``, beside those that follow from its own size.

    Raises:
        HttpRefusal: 400, it is not msgpack.
    """
    try:
        # Only text may be a key.
        return msgpack.unpackb(data, strict_map_key=True, raw=False, use_list=True, **limits)
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise HttpRefusal(400, f"the body is no msgpack: {error or type(error).__name__}") from error


def _unpack_bounded(data: bytes) -> Any:
    """The same of a body that may have been made to take long."""
    if len(data) <= _LISTS_MAX:
        return unpack(data, max_map_len=_KEYS_MAX)
    parts = 0

    def count(part: Any) -> Any:
        nonlocal parts
        parts += 1
        if parts > _LISTS_MAX:
            raise HttpRefusal(400, f"the body has more than {_LISTS_MAX} lists and objects")
        return part

    return unpack(data, max_map_len=_KEYS_MAX, list_hook=count, object_hook=count)


def pack(model: BaseModel) -> bytes:
    """A model as msgpack; uuids as their bytes."""
    data: bytes = msgpack.packb(model.model_dump(mode="python"))
    return data


def is_large(model: BaseModel) -> bool:
    """Whether its JSON is better made in pieces: there are many models in it."""
    waiting: list[Any] = [model]
    count = 0
    while waiting and count <= _MODELS_AT_ONCE:
        value = waiting.pop()
        if isinstance(value, BaseModel):
            count += 1
            waiting += [getattr(value, name) for name in type(value).model_fields]
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            if len(value) > _MODELS_AT_ONCE:
                return True
            waiting += value
    return count > _MODELS_AT_ONCE


def json_in_pieces(model: BaseModel) -> bytearray:
    """The JSON of a model, as ``model_dump_json``, for a thread that others run beside.

    One call keeps the interpreter until all of it is made, a second for some hundred thousand partitions.
    """
    made = bytearray()
    for piece in _json_pieces(model):
        made += piece
    return made


def _json_pieces(model: BaseModel) -> Iterator[bytes]:
    before = b"{"
    for name in type(model).model_fields:
        value = getattr(model, name)
        key = before + json.dumps(name).encode() + b":"
        before = b","
        if isinstance(value, BaseModel):
            yield key
            yield from _json_pieces(value)
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            opening = key + b"["
            for item in value:
                yield opening
                yield from _json_pieces(item) if is_large(item) else (item.model_dump_json().encode(),)
                opening = b","
            yield b"]"
        else:
            # By the serializer of the field, which the model's has: what it makes but for its braces.
            yield key + model.model_dump_json(include={name}).encode()[len(key) : -1]
    yield b"}" if before == b"," else b"{}"


def decode_parameters(model: type[M], path: Mapping[str, str], query: Iterable[tuple[str, str]]) -> M:
    """Parameters of the path and of the query string as a model.

    Raises:
        HttpRefusal: 400, an unknown, repeated or wrong parameter.
    """
    values = dict(path)
    for name, value in query:
        if name in values:
            raise HttpRefusal(400, f"parameter {name[:_VALUE_CHARS]} was given more than once")
        values[name] = value
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _invalid("parameter", error) from error


def _invalid(what: str, error: ValidationError, *, shows_values: bool = True) -> HttpRefusal:
    if error.error_count() > _PROBLEMS_MAX:
        return HttpRefusal(400, f"{what}: {error.error_count()} problems, too many to name one")
    problems = error.errors(include_url=False, include_context=False)
    shown = [
        {"where": place_of(problem["loc"]), "message": message_of(problem, shows_value=shows_values)}
        for problem in problems[:_PROBLEMS_SHOWN]
    ]
    first = shown[0]
    where = f"{what} {first['where']}" if first["where"] else what
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return HttpRefusal(400, f"{where}: {first['message']}{more}", details={"problems": shown})
