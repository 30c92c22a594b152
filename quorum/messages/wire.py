"""Messages as bytes: a msgpack array of the type's number and its fields. Anything else is a ``ProtocolError``.

What is decoded could have been meant: every number can stand in a log, and a message does not contradict itself.
Whether it contradicts what the node knows is for those to say who take it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from reprlib import Repr
from typing import Any, Final

import msgpack

from quorate.metadata_log.limits import EPOCH_MAX, OFFSET_MAX
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages import messages
from quorate.quorum.messages.messages import Message

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
    15: messages.ChunkMessage,
}
#: Written in the field annotations of ``messages``.
_FIELD_TYPES: Final[dict[str, type[Any]]] = {
    "int": int,
    "bool": bool,
    "bytes": bytes,
    "tuple[tuple[int, int], ...]": tuple,
}
#: Pairs in one message: more than a quorum has voters.
_PAIRS_MAX: Final = 1000
#: Counts of types and records, and a digest: a kilobyte in practice.
_MANIFEST_BYTES_MAX: Final = 1024 * 1024
#: The highest number in a field, by its name; offsets, sizes and rounds have the same one.
_HIGHEST: Final = {"epoch": EPOCH_MAX, "prev_epoch": EPOCH_MAX, "last_epoch": EPOCH_MAX, "crc": (1 << 32) - 1}

#: What is wrong may be long and deep.
_SHORT: Final = Repr()

_SPECS: Final = {number: tuple(_FIELD_TYPES[str(f.type)] for f in fields(cls)) for number, cls in _TYPES.items()}
_LIMITS: Final = {
    number: tuple(_HIGHEST.get(f.name, OFFSET_MAX) for f in fields(cls)) for number, cls in _TYPES.items()
}
#: What fields of one message must be to each other.
_RULES: Final[dict[type[Any], tuple[str, Callable[[Any], bool]]]] = {
    messages.Append: ("prev_epoch is above epoch", lambda m: m.prev_epoch <= m.epoch),
    messages.AppendReply: ("acked_end is above matched_end", lambda m: m.acked_end <= m.matched_end),
    messages.PreVote: ("last_epoch is not below epoch", lambda m: m.last_epoch < m.epoch),
    messages.Vote: ("last_epoch is not below epoch", lambda m: m.last_epoch < m.epoch),
    messages.CheckpointOffer: (
        "last_epoch is above epoch, or the size is 0, or the manifest too large",
        lambda m: m.last_epoch <= m.epoch and m.size > 0 and len(m.manifest) <= _MANIFEST_BYTES_MAX,
    ),
    messages.ChunkRequest: ("last_epoch is above epoch", lambda m: m.last_epoch <= m.epoch),
    messages.ChunkMessage: ("last_epoch is above epoch", lambda m: m.last_epoch <= m.epoch),
}
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
        # A frame has room for millions of parts; no message has more than a few, and none of them is a map. What says
        # that it is longer is refused before it is made.
        number, *values = msgpack.unpackb(payload, use_list=False, max_array_len=_PAIRS_MAX, max_map_len=0)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ProtocolError(f"{len(payload)} bytes are no message: {error}") from error
    spec = _SPECS.get(number) if type(number) is int else None
    if spec is None:
        named = number if type(number) is int else f"of type {type(number).__name__}"
        raise ProtocolError(f"message type {named} is not in the list")
    if len(spec) != len(values):
        raise ProtocolError(f"message type {number} has {len(values)} fields, not {len(spec)}")
    if tuple(map(type, values)) != spec:
        found, wanted = next((type(v), t) for v, t in zip(values, spec, strict=True) if type(v) is not t)
        raise ProtocolError(f"message type {number}: {found.__name__} where {wanted.__name__} is due")
    for value, highest in zip(values, _LIMITS[number], strict=True):
        if type(value) is int:
            if not 0 <= value <= highest:
                raise ProtocolError(f"message type {number}: {value} is out of range: {highest} is the most")
        elif type(value) is tuple:
            _check_pairs(number, value)
    message: Message = _TYPES[number](*values)
    rule = _RULES.get(type(message))
    if rule is not None and not rule[1](message):
        raise ProtocolError(f"{type(message).__name__} of epoch {message.epoch}: {rule[0]}")
    return message


def _check_pairs(number: int, pairs: tuple[Any, ...]) -> None:
    for pair in pairs:
        if type(pair) is not tuple or len(pair) != 2 or not all(type(x) is int and 0 <= x <= OFFSET_MAX for x in pair):
            raise ProtocolError(f"message type {number}: a pair of numbers is due, not {_SHORT.repr(pair)}")
