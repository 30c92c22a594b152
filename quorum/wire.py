"""Messages as bytes: a msgpack array of the type's number and its fields. Anything else is a ``ProtocolError``."""

from __future__ import annotations

from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

import msgpack

from quorum import messages
from quorum.errors import ProtocolError
from quorum.messages import Message

#: The numbers are the protocol: never reused, never renumbered without a new protocol version.
_TYPES: Final[dict[int, type[Any]]] = {
    1: messages.Append,
    2: messages.Commit,
    3: messages.AppendReply,
    4: messages.AppendConflict,
    5: messages.StaleEpoch,
    6: messages.PreVote,
    7: messages.PreVoteReply,
    8: messages.Vote,
    9: messages.VoteReply,
    # 10 was TimeoutNow.
    11: messages.EndEpoch,
    12: messages.CheckpointOffer,
    13: messages.CheckpointProgress,
    14: messages.ChunkRequest,
    15: messages.Chunk,
}
#: Written in the field annotations of ``messages``.
_FIELD_TYPES: Final[dict[str, type[Any]]] = {
    "int": int,
    "bool": bool,
    "bytes": bytes,
    "tuple[tuple[int, int], ...]": tuple,
}
_INT_LIMIT: Final = 1 << 63

_SPECS: Final = {number: tuple(_FIELD_TYPES[str(f.type)] for f in fields(cls)) for number, cls in _TYPES.items()}
_NUMBERS: Final = {cls: number for number, cls in _TYPES.items()}


def _getter(cls: type[Any]) -> Any:
    names = [f.name for f in fields(cls)]
    get = attrgetter(*names)
    return get if len(names) > 1 else (lambda message: (get(message),))


_GETTERS: Final = {cls: _getter(cls) for cls in _NUMBERS}


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    cls = type(message)
    packed: bytes = msgpack.packb((_NUMBERS[cls], *_GETTERS[cls](message)))
    return packed


def decode(payload: bytes | memoryview) -> Message:
    """The message in ``payload``, checked for type and range of every field.

    Raises:
        ProtocolError: the bytes are no message of this protocol.
    """
    try:
        number, *values = msgpack.unpackb(payload, use_list=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ProtocolError(f"{len(payload)} bytes are no message: {error}") from error
    spec = _SPECS.get(number) if type(number) is int else None
    if spec is None:
        raise ProtocolError(f"message type {str(number)[:20]} is not in the list")
    if len(spec) != len(values):
        raise ProtocolError(f"message type {number} has {len(values)} fields, not {len(spec)}")
    if tuple(map(type, values)) != spec:
        found, wanted = next((type(v), t) for v, t in zip(values, spec, strict=True) if type(v) is not t)
        raise ProtocolError(f"message type {number}: {found.__name__} where {wanted.__name__} is due")
    for value in values:
        if type(value) is int:
            if not 0 <= value < _INT_LIMIT:
                raise ProtocolError(f"message type {number}: {value} is out of range")
        elif type(value) is tuple:
            _check_pairs(number, value)
    message: Message = _TYPES[number](*values)
    return message


def _check_pairs(number: int, pairs: tuple[Any, ...]) -> None:
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2 or not all(type(x) is int and x >= 0 for x in pair):
            raise ProtocolError(f"message type {number}: a pair of numbers is due, not {str(pair)[:40]}")
